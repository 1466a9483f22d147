"""The colours of figures, light, dark and in print.

``ink`` runs from paper to full weight in nine steps that are equally far apart to the eye (in OKLab, B. Ottosson 2020): one hue
and an even fall (rise) of lightness, so it reads the same to the colour-blind, on a projector and in grey. ``more`` is the same,
and ``less`` in orange: a diverging scale whose sides the colour-blind tell apart. In print all are greys, in equal steps too. There
hue cannot tell a sign: both sides begin at the paper, and lines of paper cross all that is ``less``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from mha_viz.settings.view import Colors

ThemeName = Literal["light", "dark", "print"]
RGB = tuple[float, float, float]  # red, green, blue, 0 to 255 each
FONT = '"Source Sans", "Source Sans 3", "Source Sans Pro", Arial, sans-serif'


@dataclass(frozen=True)
class Theme:
    """The colours of a figure, as #rrggbb.

    ``paper`` is behind everything, ``line`` around a tile, ``hatch`` in cells that hold no weight; words are ``text``, or quieter ``soft``.
    ``choice`` marks what is chosen, ``rest`` fills bars that are not. ``ink`` runs from zero to the largest weight, ``more`` and ``less``
    from nothing to the most that was won or lost. ``hatched`` is the width of a hatch's lines, of the usual one: black ones would be louder
    than the weights. ``lined`` themes draw lines of paper across what is ``less``.
    """

    paper: str
    text: str
    soft: str
    line: str
    hatch: str
    choice: str
    rest: str
    ink: tuple[str, ...]
    more: tuple[str, ...]
    less: tuple[str, ...]
    hatched: float = 1.0
    lined: bool = False

    def dressed(self, colors: Colors) -> Theme:
        """This theme with the colours of weights that a View names: "ink", "viridis", "cividis" or "grey".

        They run from zero, nearest to the paper, to the largest weight. Viridis and Cividis run backwards on light paper, so that weight is
        dark there as ink is.
        """
        light = luminance(rgb(self.paper)) > 0.5
        if colors == "grey":
            return replace(self, ink=GREYS["light" if light else "dark"])
        from plotly.colors import sequential

        named = {"viridis": sequential.Viridis, "cividis": sequential.Cividis}.get(colors)
        return replace(self, ink=tuple(named[::-1] if light else named)) if named else self

    def colorscale(self) -> list[list[float | str]]:
        """``ink`` as Plotly wants it."""
        return [[i / (len(self.ink) - 1), color] for i, color in enumerate(self.ink)]

    def ink_at(self, fraction: float) -> RGB:
        """(r, g, b) of the colour at ``fraction`` of the scale, 0 to 255, mixed as Plotly mixes it."""
        return mixed(self.ink, fraction)


_BLUE_ON_LIGHT = ("#ffffff", "#c9e4ff", "#91c9fe", "#5eacf4", "#308fde", "#0873bd", "#015894", "#023f6b", "#0a2549")
_BLUE_ON_DARK = ("#0e1117", "#042c41", "#024768", "#006491", "#2082b6", "#4ea1d3", "#80bfe9", "#b6ddf8", "#f2f9ff")

GREYS = {
    "light": ("#ffffff", "#e1e1e1", "#c3c3c3", "#a6a6a6", "#8a8a8a", "#6f6f6f", "#555555", "#3d3d3d", "#262626"),
    "dark": ("#0e1117", "#25282e", "#3f4247", "#5b5d62", "#787a7e", "#96989b", "#b6b7b9", "#d6d7d8", "#f8f8f8"),
}

THEMES: dict[ThemeName, Theme] = {
    "light": Theme(
        paper="#ffffff",
        text="#1d2127",
        soft="#5b626d",
        line="#c9cdd4",
        hatch="#6f7682",
        choice="#1c6fd1",
        rest="#6f7682",
        ink=_BLUE_ON_LIGHT,
        more=_BLUE_ON_LIGHT,
        less=("#ffffff", "#fed8bf", "#fab07d", "#ed893c", "#cf6b02", "#a85600", "#824101", "#5f2d00", "#3d1b00"),
    ),
    "dark": Theme(
        paper="#0e1117",
        text="#f0f2f6",
        soft="#a9b0bb",
        line="#3b414b",
        hatch="#9aa3b0",
        choice="#5aa9ff",
        rest="#9aa3b0",
        ink=_BLUE_ON_DARK,
        more=_BLUE_ON_DARK,
        less=("#0e1117", "#401e02", "#663201", "#8e4701", "#b46016", "#d28145", "#e9a577", "#f9cdaf", "#fff6f1"),
    ),
    "print": Theme(
        paper="#ffffff",
        text="#000000",
        soft="#4a4a4a",
        line="#8a8a8a",
        hatch="#000000",
        choice="#000000",
        rest="#a6a6a6",
        ink=GREYS["light"],
        more=GREYS["light"],
        less=GREYS["light"],
        hatched=0.4,
        lined=True,
    ),
}


def mixed(colors: Sequence[str], fraction: float) -> RGB:
    """(r, g, b), 0 to 255, at ``fraction`` of the way through evenly spaced colours."""
    place = min(max(fraction, 0), 1) * (len(colors) - 1)
    low = min(int(place), len(colors) - 2)
    red, green, blue = (a + (b - a) * (place - low) for a, b in zip(rgb(colors[low]), rgb(colors[low + 1]), strict=True))
    return red, green, blue


def readable_on(color: RGB) -> str:
    """Black or white, whichever stands out more on (r, g, b): always at least 4.5:1."""
    return "#000000" if contrast((0, 0, 0), color) >= contrast((255, 255, 255), color) else "#ffffff"


def rgb(color: str) -> RGB:
    """#rrggbb → (r, g, b), 0 to 255."""
    red, green, blue = (int(color[i : i + 2], 16) for i in (1, 3, 5))
    return red, green, blue


def luminance(color: RGB) -> float:
    """Relative luminance of (r, g, b), 0 to 1, as WCAG 2.2 defines it."""
    linear = [c / 255 / 12.92 if c / 255 <= 0.04045 else ((c / 255 + 0.055) / 1.055) ** 2.4 for c in color]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(a: RGB, b: RGB) -> float:
    """Contrast ratio of two (r, g, b) colours, 1 to 21, as WCAG 2.2 defines it."""
    low, high = sorted((luminance(a), luminance(b)))
    return (high + 0.05) / (low + 0.05)
