"""The pages of the app, in the order of their links. A new page is its file in ``pages``, and a line here."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Page:
    """``name`` is that of the page's file and of its address, ``title`` what its link says.

    Pages ``of_layer`` look at a layer, all at the same one. ``source`` is the kind of source that an address of such a page means where it
    names none, None for the first kind. A page that is not ``linked`` is reached by its address alone.
    """

    name: str
    title: str
    of_layer: bool = False
    source: str | None = None
    linked: bool = True


LISTED = (
    Page("lessons", "Start here"),
    Page("explore", "Explore", of_layer=True),
    Page("models", "Models", of_layer=True, source="trained", linked=False),  # Explore under its former address
    Page("steps", "Step by step", of_layer=True),
    Page("decode", "Decode", of_layer=True),
    Page("pitfalls", "Pitfalls", of_layer=True),
    Page("validate", "Validate", of_layer=True),
    Page("profile", "Profile"),
    Page("about", "About"),
)
FIRST = "explore"  # the page that the bare address opens
ICON = Path(__file__).with_name("icon.svg")


def file_of(page: str) -> Path:
    """The file of a page, by its name. Streamlit knows pages by their files, wherever the app's script is."""
    return Path(__file__).parent / "pages" / f"{page}.py"
