"""A figure in the making: panels, bars and words, placed in px from its top left corner."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import plotly.graph_objects as go

from mha_viz.figures.geometry import NICE, ROW_PITCH, Box
from mha_viz.figures.labels import SIZE, Names, escape
from mha_viz.figures.margins import TICK
from mha_viz.figures.parts import ALL, Parts
from mha_viz.figures.piece import Axes, Piece, color_bar, ground, note
from mha_viz.figures.scale import Scale
from mha_viz.figures.theme import FONT, Theme
from mha_viz.figures.tiles import hatches
from mha_viz.figures.widths import width_of

if TYPE_CHECKING:
    from jaxtyping import Bool, Float

TITLE = 26  # px of a title above a panel
_NOTHING = {"showgrid": False, "zeroline": False, "showticklabels": False, "ticks": "", "fixedrange": True}


class Sheet:
    """Collects a figure's traces, axes and words while its height is still open. It has these ``parts``."""

    def __init__(self, width: int, theme: Theme, parts: Parts = ALL) -> None:
        self.width, self.theme, self.parts = width, theme, parts
        self.data: list[Piece] = []
        self._panels: list[tuple[Box, int | str, Piece, Piece]] = []
        self._words: list[tuple[float, float, str, Piece]] = []

    def panel(
        self, box: Box, across: tuple[float, float], down: tuple[float, float], x: Piece | None = None, y: Piece | None = None
    ) -> Axes:
        """A pair of axes over ``box``, from ``across[0]`` to ``across[1]`` and, bottom to top, from ``down[0]`` to ``down[1]``.

        ``x`` and ``y`` are further settings of each; without them an axis draws nothing. Returns their names, ("x2", "y2").
        """
        number = len(self._panels) + 1 if self._panels else ""
        self._panels.append((box, number, {"range": list(across), **(x or {})}, {"range": list(down), **(y or {})}))
        return f"x{number}", f"y{number}"

    def say(
        self,
        x: float,
        y: float,
        text: str,
        size: float = 14,
        color: str | None = None,
        anchor: str = "left",
        angle: int = 0,
        behind: str | None = None,
    ) -> None:
        """Words: their left, right or centre at x, their middle at y, on what is there or on a colour of their own, ``behind``."""
        how = {"size": size, "color": color or self.theme.text, "xanchor": anchor, "textangle": angle, "bgcolor": behind}
        self._words.append((x, y, text, how))

    def title(self, x: float, top: float, name: str, words: str) -> float:
        """A name in bold, and more about it in quiet words where there is room; returns where that begins which it names."""
        if not self.parts.title:
            return top + TICK
        room = width_of(name, 14, bold=True) + width_of(f" {words}", 14) < self.width - x
        self.say(x, top + 12, f"<b>{name}</b>" + (f" <span style='color:{self.theme.soft}'>{words}</span>" if room else ""))
        return top + TITLE

    def bars(
        self, box: Box, values: Float[np.ndarray, " K"], hover: Sequence[str], colors: Sequence[str], written: Mapping[int, str]
    ) -> tuple[Axes, tuple[float, float]]:
        """Bars [K] over ``box``, upwards and downwards from 0, with a scale on their left.

        ``written``, index → text, stands at their ends.

        Values that are not finite have no bar. Returns the axes' names and (lowest, highest) of the vertical one.
        """
        finite = np.where(np.isfinite(values), values, 0)  # [K]
        low, high = min(finite.min(), 0), max(finite.max(), 0)
        below, above = (18 if written and low < 0 else 2, 18 if written else 2)  # px for what is written
        pixel = (high - low or 1) / (box.height - below - above)
        low, high = low - below * pixel, high + above * pixel
        marks = {
            "showticklabels": bool(finite.any()),
            "nticks": 4 if box.height > 60 else 3,
            "tickfont": {"size": 12, "color": self.theme.soft},
            "zeroline": True,
            "zerolinecolor": self.theme.line,
            "zerolinewidth": 1,
        }
        axes = self.panel(box, (-0.5, len(values) - 0.5), (low, high), y=marks)
        slot = box.width / len(values)
        self.data.append(
            {
                "type": "bar",
                "x": np.arange(len(values), dtype=np.float32),
                "y": finite.astype(np.float32),
                "xaxis": axes[0],
                "yaxis": axes[1],
                "width": 1 - min(0.3, 1.5 / slot) if slot >= 3 else 1,
                "marker": {"color": colors, "line": {"width": 0}},
                "hovertext": hover,
                "hovertemplate": "%{hovertext}<extra></extra>",
            }
        )
        for i, text in written.items():
            half = width_of(text.replace("<b>", "").replace("</b>", ""), SIZE, bold="<b>" in text) / 2
            x = min(max(box.x + (i + 0.5) * slot, box.x + half), max(self.width - half, box.x + half))
            end = box.y + (high - finite[i]) / pixel
            y = box.y + 9 if 2 * half > slot else end + (9 if finite[i] < 0 else -9)  # above all bars where it spans several
            self.say(x, y, text, SIZE, anchor="center", behind=self.theme.paper)
        return axes, (low, high)

    def hatch(self, where: Bool[np.ndarray, " K"], look: str, axes: Axes, extent: tuple[float, float], size: float = 6) -> None:
        """Hatches whole slots of a panel of bars, where [K] is True, over the panel's height."""
        x, y = axes
        low, high = extent
        for trace in hatches({look: where[None, None]}, np.zeros((1, 2)), (x, y), self.theme, size):
            trace["y"] = np.where(trace["y"] < 0, low, high).astype(np.float32)  # a tile's only row: from −0.5 to 0.5
            self.data.append(trace)

    def names_below(self, names: Names, left: float, slot: float, top: float, chosen: int, what: str) -> int:
        """Names below ``slot`` px wide columns, as many as fit and the chosen one in bold.

        Left of them stands ``what`` they are. Returns the px that they take.
        """
        if not self.parts.labels:
            return 0
        lying = names.widest + 8 <= slot or names.widest <= 32  # numbers lie, even where that leaves out more of them
        pitch = names.widest + 8 if lying else ROW_PITCH
        step = next(step for step in NICE if step * slot >= pitch - 1e-9)
        others = [i for i in range(0, len(names.short), step) if abs(i - chosen) * slot >= pitch - 1e-9]
        for i in [*others, chosen]:
            name, x = escape(names.short[i]), left + (i + 0.5) * slot
            name = f"<b>{name}</b>" if i == chosen else name
            color = self.theme.soft if names.hidden[i] else self.theme.text
            y = top + (SIZE / 2 + 2 if lying else 4 + width_of(names.short[i], SIZE) / 2)
            self.say(x, y, name, SIZE, color, "center", 0 if lying else -90)
        px = SIZE + 6 if lying else math.ceil(names.widest) + 8
        self.say(left - 8, top + px - 10, what, SIZE, self.theme.soft, "right")
        return px

    def color_bar(self, box: Box, height: float, lying: bool, scale: Scale) -> Piece:
        """The colour bar of a Scale in ``box``, "lying" or upright, in a figure that will be ``height`` px high."""
        return color_bar(box.x / self.width, 1 - box.y / height, box.width if lying else box.height, lying, scale, self.theme)

    def figure(self, height: float, kind: str, **layout: object) -> go.Figure:
        """The ``go.Figure``, ``height`` px high, with ``kind`` in its meta; ``layout`` adds to its layout or changes it."""
        height, theme, axes = math.ceil(height), self.theme, {}
        for box, number, x, y in self._panels:
            across, down = [box.x / self.width, box.right / self.width], [1 - box.bottom / height, 1 - box.y / height]
            axes[f"xaxis{number}"] = {**_NOTHING, "domain": across, "anchor": f"y{number}", **x}
            axes[f"yaxis{number}"] = {**_NOTHING, "domain": down, "anchor": f"x{number}", **y}
        words = [
            note(text, x / self.width, 1 - y / height, yanchor="middle", borderpad=0, **how) for x, y, text, how in self._words
        ]
        layout = {
            **axes,
            **ground(self.width, height, theme),
            "annotations": words,
            "meta": {"kind": kind},
            "hoverlabel": {"font": {"family": FONT, "size": 14}},
            "hovermode": "closest",
            "dragmode": False,
            "showlegend": False,
            **layout,
        }
        return go.Figure({"data": self.data, "layout": layout})
