"""An exact part of one head's long map."""

from __future__ import annotations

from dataclasses import replace

from mha_viz.core.rules import Wrong
from mha_viz.core.sight import CELLS
from mha_viz.core.trace import Trace
from mha_viz.settings import View
from mha_viz.views.base import WIDE
from mha_viz.views.head import Head
from mha_viz.views.shown import Shown


class Window(Head):
    """Every weight around a cell of one head whose map is too long to be whole."""

    name = "window"
    public = False
    width = WIDE
    reads = tuple(name for name in Head.reads if name != "pooling")  # every weight is there

    def lack(self, shown: Shown) -> Wrong | None:
        if shown.sight is None:
            rule = "is an exact window of maps that are too long to be whole, and these are not: every view of them is exact."
            return Wrong("view", self.name, rule, [{"view": "head"}])
        if not shown.sight.exact:
            spans = zip(("rows", "columns"), shown.sight.spans, strict=True)
            name, (start, stop) = next((name, span) for name, span in spans if span[1] - span[0] > CELLS)
            rule = f"are {stop - start:,}, and an exact window holds at most {CELLS} a side: “head” shows more, in blocks."
            return Wrong(name, f"{start},{stop}", rule, [{name: f"{start},{start + CELLS}"}, {"view": "head"}])
        return super().lack(shown)

    def caption(self, shown: Shown) -> str:
        return f"A window of the attention of head {shown.head}"

    def placed(self, trace: Trace, view: View) -> View:
        from mha_viz.analysis.long_maps import around

        if view.rows and view.columns:
            return view
        rows, columns = around(trace, view)
        return replace(view, rows=view.rows or rows, columns=view.columns or columns)


WINDOW = Window()
