"""The command that makes a figure again."""

from __future__ import annotations

from dataclasses import replace
from shlex import quote
from typing import Any

from mha_viz.export.figure import Figure, specification
from mha_viz.export.words import address_of, view_address_of
from mha_viz.views.shown import Measured, Shown


def command(figure: Figure, shown: Shown | Measured[Any]) -> str:
    """What makes the file of this Figure of a Shown or a Measured: where this app is, or a file of the person's."""
    if isinstance(shown, Measured):
        figure = replace(figure, results=shown.name, at_length=shown.at_length)
    elif not shown.source.kind.in_address:
        figure = replace(figure, recording=shown.source.name, address=view_address_of(shown))
    else:
        figure = replace(figure, address=address_of(shown) or "?")
    told = [_option(name, value) for name, value in specification(figure).items()]
    return " ".join(["python -m mha_viz export", *told, "--out", quote(figure.out)])


def _option(name: str, value: object) -> str:
    """A field of a Figure as the command line has it."""
    spelled = name.replace("_", "-")
    if isinstance(value, bool):
        return f"--{spelled}" if value else f"--no-{spelled}"
    return f"--{spelled} {quote(f'{value[0]:g} {value[1]}' if isinstance(value, tuple) else str(value))}"
