"""Where everything stands in a picture of lines, in px from its top left corner; as ``geometry`` does for maps."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mha_viz.figures.geometry import NARROW, NICE, ROW_PITCH, Box
from mha_viz.figures.labels import Names
from mha_viz.figures.parts import ALL, Parts
from mha_viz.figures.widths import width_of

KEY, KEY_PITCH = 128, 24  # px beside the panels for what a line's width means, and px per line of that
EDGE = 8  # px around a panel for the frame of the chosen one
NODE = 14  # px between a token's name and the end of its lines
TITLES = {True: (28, 17), False: (22, 14)}  # of large panels and small ones: px above, size of text


@dataclass(frozen=True)
class Place:
    """``count`` panels of ``size`` (width, height) px, ``across`` in a row, ``step`` px from one to the next, below ``top``.

    In each, names ``labels`` (queries, keys) px wide stand on both sides of the lines, and tokens ``pitch`` (queries, keys) px
    apart, the first one's row ``head_room`` px below the panel's top. ``sides`` are the Names; ``key`` holds what a line's width
    means in ``key_columns`` columns, ``legend`` what a token's mark means. The picture has these ``parts``.
    """

    width: int
    height: int
    top: float
    count: int
    across: int
    size: tuple[float, float]
    step: tuple[float, float]
    head_room: float
    labels: tuple[float, float]
    pitch: tuple[float, float]
    sides: tuple[Names, Names]
    large: bool
    key: Box
    key_columns: int
    legend: Box
    parts: Parts

    def panel(self, index: int) -> Box:
        """The Box of one panel, its title included."""
        row, column = divmod(index, self.across)
        return Box(EDGE + column * self.step[0], self.top + row * self.step[1], *self.size)

    def ends(self, index: int) -> tuple[float, float, float]:
        """x of the lines' ends at queries and at keys, and y of the first token's row, in one panel."""
        box = self.panel(index)
        return box.x + self.labels[0] + NODE, box.right - self.labels[1] - NODE, box.y + self.head_room

    def named(self, side: int) -> range:
        """The tokens of a side, 0 queries and 1 keys, whose names are drawn."""
        step = next(step for step in NICE if step * self.pitch[side] >= ROW_PITCH - 1e-9)
        return range(0, len(self.sides[side].texts), step) if self.labels[side] else range(0)

    def sample(self, step: int) -> Box:
        """The Box of one sample line of the key, its words to the right of it."""
        row, column = divmod(step, self.key_columns)
        return Box(self.key.x + column * self.key.width // self.key_columns, self.key.y + 26 + row * KEY_PITCH, 26, KEY_PITCH)


def arrange(
    width: int,
    count: int,
    large: bool,
    names_in: Callable[[float], tuple[Names, Names]],
    noted: bool,
    steps: int,
    legend_words: Sequence[str],
    parts: Parts = ALL,
) -> Place:
    """The Place of ``count`` panels, ``large`` or small, in a picture ``width`` px wide.

    ``names_in(room)`` are the Names of queries and of keys where each has so many px; ``noted`` is True where a line of words stands
    above and below the panels; the key has ``steps`` samples, the legend these words. Only these ``parts`` take room.
    """
    narrow, noted = width < NARROW, noted and parts.title
    room, gap = width - 2 * EDGE - (KEY if parts.bar and not narrow else 0), 32 if large else 24
    across = 1 if narrow else count
    queries, keys = names_in(min(120, 0.24 * room / across) if large else 72)
    labels = (math.ceil(queries.widest), math.ceil(keys.widest)) if parts.labels else (0, 0)
    if not large and count > 32:  # no room for names
        gap = 16
        labels, across = (0, 0), (room + gap) // (84 + gap)
    elif not large:
        across = max((room + gap) // (sum(labels) + 2 * NODE + 96 + gap), 1)
    across = math.ceil(count / math.ceil(count / across))  # rows of about one length
    widest = (760 if parts.around else room) if count == 1 else 520
    panel = min((room - (across - 1) * gap) // across, widest)
    band = panel - sum(labels) - 2 * NODE
    L, S = len(queries.texts), len(keys.texts)
    counts = (S, S) if L <= S <= L + 2 else (L, S)  # one length: level, extra keys below; others share the whole height
    tallest = 500 if large else min(max(1.6 * band, 120), 340)
    pitch = max(28, min(48, 240 / max(counts))) if large else 20
    body = max(min(pitch * max(counts), tallest), max(counts), 56)
    head_room = (TITLES[large][0] if parts.title else 0) + (28 if sum(labels) else 4)
    size = panel, head_room + body + (20 if noted else 4)
    step = panel + gap, size[1] + gap
    top = (44 if noted else 24) if parts.title else EDGE
    bottom = top + math.ceil(count / across) * step[1] - gap + 8
    if not parts.bar:
        key_columns, key = 1, Box(0, bottom, 0, 0)
    elif narrow:
        key_columns = max(width // 84, 1)
        key = Box(EDGE, bottom + 8, width - EDGE, 26 + KEY_PITCH * math.ceil(steps / key_columns))
    else:
        key_columns, key = 1, Box(EDGE + across * step[0] - gap + 24, top + head_room - 26, KEY - 24, 26 + KEY_PITCH * steps)
    bottom = max(bottom, key.bottom + (8 if parts.bar else 0))
    entries = [width_of(words, 14) + 48 for words in legend_words if parts.legend]
    rows = 1 if sum(entries) <= width else math.ceil(len(entries) / max(width // max(entries), 1))  # as Plotly sets them
    legend = Box(0, bottom, width, 10 + 20 * rows if entries else 0)
    return Place(
        width=width,
        height=math.ceil(legend.bottom),
        top=top,
        count=count,
        across=across,
        size=size,
        step=step,
        head_room=head_room,
        labels=labels,
        pitch=(body / counts[0], body / counts[1]),
        sides=(queries, keys),
        large=large,
        key=key,
        key_columns=key_columns,
        legend=legend,
        parts=parts,
    )
