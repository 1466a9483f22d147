"""What was measured, opened for a figure of a document: a profile, or what head counts do to quality."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mha_viz.core.rules import Wrong
from mha_viz.figures.profile import length_of
from mha_viz.settings import spell
from mha_viz.studies.quality import read_measured, shipped, shipped_tasks
from mha_viz.views.base import VIEWS, view_of_results
from mha_viz.views.shown import Measured


def measured(name: str, view: str, at_length: int | None = None) -> Measured[Any]:
    """The Measured that ``name`` holds, for the view of this name, which shows it or whatever there is.

    Raises Wrong where it cannot be read, was not measured at that length, or is of another view.
    """
    if name in shipped_tasks():
        found = Measured(shipped(name), name, at_length)
    else:
        try:
            text = Path(name).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            why = getattr(error, "strerror", error)
            rule = f"cannot be read: {why}. It must be a file, or a task whose quality ships."
            raise Wrong("results", name, rule, [{"results": task} for task in shipped_tasks()]) from None
        found = Measured(read_measured(text), name, at_length)
    of = view_of_results(found.found)
    if VIEWS[view].drawn_as(found) is not of:
        raise Wrong("view", view, f"is no picture of {name}, which holds a {of.name}.", [{"view": of.name}])
    if at_length is not None and (not of.at_lengths or length_of(found.found, at_length) != at_length):
        rule = f"was not measured: {spell(found.found.profile.seq_len)} were." if of.at_lengths else "is for a profile."
        raise Wrong("at_length", at_length, rule, [{"at_length": None}])
    return found
