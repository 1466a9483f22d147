"""Which parts a picture has beside its maps or lines."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Parts:
    """What stands around the maps or lines of a picture. What is left out, False, leaves no hole: the others take its room.

    ``title``: captions, titles of maps and panels, labels of tiles. ``labels``: names of tokens, or layers, along rows and columns, and
    what rows and columns are. ``bar``: the colour bar, or with lines what their width means. ``legend``: the line that explains
    hatches and marks, and the word "undefined" on a map. ``values``: the numbers in cells that have room for them.
    """

    title: bool = True
    labels: bool = True
    bar: bool = True
    legend: bool = True
    values: bool = True

    @property
    def around(self) -> bool:
        """Whether anything stands around the maps."""
        return self.title or self.labels or self.bar or self.legend


ALL = Parts()
