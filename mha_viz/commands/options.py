"""Kinds of options that several commands have."""

from __future__ import annotations

from argparse import ArgumentTypeError
from typing import TYPE_CHECKING

from mha_viz.core.rules import Wrong
from mha_viz.core.typed_number import meant, read_number
from mha_viz.settings import start

if TYPE_CHECKING:
    from pathlib import Path


def whole_number(text: str) -> int:
    """The whole number that ``text`` spells, as in a field of the app; argparse tells what this raises."""
    number = read_number(text)
    if isinstance(number, int):
        return number
    likely = number if isinstance(number, float) else meant(text)
    advice = f"; nearest right: {round(likely)}" if likely is not None and abs(likely) < 1e9 else ""
    raise ArgumentTypeError(f"{text!r} is no whole number{advice}")


def folder_to_write(out: Path | None) -> Path:
    """The folder that --out names, ready to be written into; without it, the checkout's data.

    Raises Wrong for a folder that cannot be written into, and where the package is installed, whose data stay as they are, for none.
    """
    from mha_viz.core.whole_file import check_folder
    from mha_viz.sources.models import DATA

    if out is None and start.INSTALLED:
        raise Wrong("out", None, "is needed: the folder to write into, as in --out made.", [{"out": "made"}])
    folder = DATA if out is None else out
    check_folder(folder)
    return folder
