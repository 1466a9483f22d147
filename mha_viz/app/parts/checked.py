"""The checks of one layer as a page shows them: run while one watches, told by group, to be copied and kept."""

import json
import math
import weakref
from dataclasses import dataclass
from html import escape
from shlex import quote
from urllib.parse import urlencode

import streamlit as st

from mha_viz.app.task import Done, begin, running, stop_or_go, task
from mha_viz.app.warm import kept_checks
from mha_viz.settings import to_address
from mha_viz.sources.base import Source

MARKS = {"pass": "✓", "fail": "✗", "cannot run": "–"}
QUICK, NARROW = 2**19, 2**24  # numbers in all maps and in the weights of a layer that is checked before anybody asks
FEW = 3  # checks that cannot run, which are named above all
AT_ONCE = 1.0  # seconds of checks before their progress is shown
CHECKS = "checks"


@dataclass(frozen=True, eq=False)
class Checked:
    """What is checked: the ``layer`` of the Source ``of``, which holds it with ``what_if`` changed in it."""

    of: Source
    layer: int
    what_if: str

    @property
    def trace(self):
        return self.of.traces[self.layer]

    @property
    def batch_first(self):
        """The layout in which the contract is written."""
        return getattr(self.of.settings, "batch_first", True)

    @property
    def arguments(self):
        """Those of the command that checks the same."""
        of = self.of
        if not of.kind.in_address:
            return quote(of.name)
        changed = to_address(layer=self.layer, what_if=self.what_if) if self.what_if else {}
        address = urlencode(of.address | changed)
        return f"--address {quote(f'?{address}')}" if address else ""


def checked(what):
    """Run the checks that are not done yet, and show them: each verdict, what was compared, and what to copy."""
    from mha_viz.studies.validation import summary

    done, finished = run(what)
    if done:
        failed = [one.title for one in done if one.verdict == "fail"]
        left = [one.title for one in done if one.verdict == "cannot run"]
        said = (
            f"<b class='broken'>✗ Does not hold: {quoted(failed)}.</b>"
            if failed
            else "<b>✓ Nothing that could be checked fails.</b>"
        )
        also = f" Cannot run: {quoted(left)}." if 0 < len(left) <= FEW else ""
        st.html(f"<p class='verdicts' role='status'>{said} {escape(summary(done))}{also} A row opens to what was compared.</p>")
        st.html(table(done))
    if finished:
        keep(what, done)


def quoted(titles):
    return escape(", ".join(f"“{title}”" for title in titles))


def run(what):
    """(the Checks that are done, whether that is all of them). Somebody may stop in between, and go on from there."""
    from mha_viz.studies.validation import count, validate

    kept, about = kept_of(what), weakref.ref(what.trace)  # the Trace is not kept for its checks
    if kept:
        return kept, True
    now = task(CHECKS, about)
    if now is None or (now.steps is None and not now.complete):
        how = {"about": about, "resumes": True, "stopped": not quick(what.trace)}
        now = begin(CHECKS, Done(count(what.of)), validate(what.of, what.layer), **how)
    if now.going:
        now.run(AT_ONCE)
    if now.complete:
        kept[:] = now.results
    elif now.going:
        running(CHECKS, lambda done: f"{len(done)} of {done.total}: {done[-1].title}")
        return [], False
    else:
        stop_or_go(CHECKS, "Go on" if now.results else "Run the checks", type="primary")
        if not now.results:
            st.caption("This layer is large: the checks compute it many times.")
    return now.results, now.complete


def quick(trace):
    """Whether the checks of this layer take a moment: they compute it many times."""
    layer = 0 if trace.layer is None else sum(array.size for array in trace.layer.weights.values())
    return math.prod(trace.shape) <= QUICK and layer <= NARROW


def kept_of(what):
    return [] if not what.of.kind.in_address else kept_checks(what.of.settings, what.layer, what.what_if)


def table(done):
    """Every Check by its group, as HTML: verdict, title and figure, what it means, and unfolded what was compared."""
    from mha_viz.studies.validation import by_group

    parts = [
        f"<section><h3>{escape(group)}</h3>{''.join(map(row, checks))}</section>" for group, checks in by_group(done).items()
    ]
    return f"<div class='checks'>{''.join(parts)}</div>"


def row(check):
    name = check.verdict.replace(" ", "-")
    of = (
        ""
        if check.verdict == "cannot run" and check.figure is None
        else f"<span class='figure'>{escape(check.measured)}</span>"
    )
    compared = f"Compared: {check.compared}." if check.compared else "Nothing was compared."
    return (
        f"<details class='check {name}'><summary><span class='verdict'>{MARKS[check.verdict]} {check.verdict}</span> "
        f"<span class='title'>{escape(check.title)}</span> {of}<span class='words'>{escape(check.words)}</span>"
        f"{bars(check.by_head)}</summary>"
        f"<p>{escape(compared)} {seconds(check.seconds)}</p></details>"
    )


def bars(by_head):
    """A bar for each head, as long as its figure is beside the largest; nothing where there are none."""
    if not by_head or not max(by_head):
        return ""
    drawn = "".join(
        f"<span title='head {head}: {value:.3g}'><b style='--share:{value / max(by_head):.3f}'></b><i>{head}</i></span>"
        for head, value in enumerate(by_head)
    )
    return f"<span class='bars' role='img' aria-label='a bar for each of {len(by_head)} heads'>{drawn}</span>"


def seconds(figure):
    return f"Took {1000 * figure:.0f} ms." if figure < 1 else f"Took {figure:.1f} s."


def keep(what, done):
    """What one copies into a project: the contract, the versions, the command; and the report as a file."""
    from mha_viz.analysis.validation import contract_text
    from mha_viz.studies.validation import report, versions

    with st.expander("Contract: every shape and every mask convention, to copy"):
        st.code(contract_text(what.trace, what.batch_first), language=None)
    with st.expander("Versions to pin, to copy"):
        st.code("\n".join(f"{name}: {version}" for name, version in versions(what.of).items()), language=None, wrap_lines=True)
    with st.container(horizontal=True, vertical_alignment="center", key="keep_checks"):
        st.download_button(
            "Report (JSON)",
            lambda: json.dumps(report(what.of, done), indent=1, ensure_ascii=False),
            "validation.json",
            "application/json",
            on_click="ignore",
            help="Every check with its figures, and the versions.",
        )
        st.code(f"python -m mha_viz validate {what.arguments}".strip(), language="bash")
