"""What was measured, opened for a figure of a document: a profile, or what head counts do to quality."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mha_viz.core.rules import Wrong
from mha_viz.figures.profile import length_of
from mha_viz.settings import spell
from mha_viz.studies.profile_results import Results
from mha_viz.studies.quality import Quality, read_measured, shipped, shipped_tasks
from mha_viz.views.base import VIEWS, view_of_results
from mha_viz.views.shown import Measured


def measured(name: str, view: str, at_length: int | None = None) -> Measured[Any]:
    """The Measured that ``name`` holds, for the view of this name, which shows it or whatever there is.

    Raises Wrong where it cannot be read, was not measured at that length, or is of another view.
    """
    held: Quality | Results | None = shipped(name) if name in shipped_tasks() else None
    if held is None:
        try:
            text = Path(name).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            why = getattr(error, "strerror", error)
            rule = f"cannot be read: {why}. It must be a file, or a task whose quality ships."
            raise Wrong("results", name, rule, [{"results": task} for task in shipped_tasks()]) from None
        held = read_measured(text)
    found, of = Measured(held, name, at_length), view_of_results(held)
    if VIEWS[view].drawn_as(found) is not of:
        raise Wrong("view", view, f"is no picture of {name}, which holds a {of.name}.", [{"view": of.name}])
    if at_length is not None and not (isinstance(held, Results) and length_of(held, at_length) == at_length):
        lengths = f"was not measured: {spell(held.profile.seq_len)} were." if isinstance(held, Results) else "is for a profile."
        raise Wrong("at_length", at_length, lengths, [{"at_length": None}])
    return found
