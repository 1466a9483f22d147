"""One figure of a document: what it is of, what it shows of that, how it is dressed, and which file it becomes."""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from mha_viz.core.rules import Wrong, closest_number, one_of, whole
from mha_viz.core.typed_number import read_number
from mha_viz.export.asked import PICTURES, check_asked
from mha_viz.figures.theme import THEMES, ThemeName
from mha_viz.settings import View, ruled_value
from mha_viz.settings.rules import Ruled, choice, flag, number, optional, ruled
from mha_viz.settings.spelling import unknown
from mha_viz.studies.quality import shipped_tasks
from mha_viz.views import VIEWS
from mha_viz.views.shown import MEAN, HeadNames

FORMATS = (*PICTURES, "html", "json", "csv", "npz", "safetensors", "md", "py")
OF_MEASURED = (*PICTURES, "html", "json", "csv", "md")  # those that what was measured can have
PX = {"px": 1.0, "in": 96.0, "mm": 96 / 25.4, "pt": 96 / 72}  # CSS: 96 px are an inch
TEXT = 14  # px of ordinary text in a figure that is drawn at its own size
PRINTED = (8.0, "pt")  # the same in a figure whose size is one on paper
STATIC = "Arial, Helvetica, sans-serif"  # a PDF holds these as TrueType
NARROWEST, WIDEST = 320, 3840  # px that a figure is drawn in


def length(*units: str) -> Callable[[str, object], tuple[float, str]]:
    """A rule: a number and its unit, as in "160 mm" or (160, "mm"); a number alone is in the first unit."""

    def rule(argument: str, value: object) -> tuple[float, str]:
        found = re.fullmatch(r"(.*?)\s*([a-z]*)\s*", value, re.DOTALL) if isinstance(value, str) else None
        given, unit = found.groups() if found else value if isinstance(value, tuple) and len(value) == 2 else (value, "")
        number, unit = closest_number(read_number(given)), unit or units[0]
        if isinstance(read_number(given), str) or unit not in units or not 0 < number < 1e5:
            example = "160 mm" if "mm" in units else "8 pt"
            likely = f"{number:g} {unit if unit in units else units[0]}" if 0 < number < 1e5 else example
            raise Wrong(argument, value, f'must be a length in {" or ".join(units)}, as in "{example}".', [{argument: likely}])
        return number, unit

    return rule


def maps(argument: str, value: object) -> HeadNames:
    """A rule: heads by number and "mean", as in "2,5,mean" or [2, 5, "mean"]."""
    given = value.split(",") if isinstance(value, str) else value if isinstance(value, Iterable) else ()
    try:
        found = tuple(
            dict.fromkeys(MEAN if str(one).strip() == MEAN else whole(argument, read_number(one), 0) for one in given)
        )
    except (TypeError, ValueError):
        found = ()
    if not found:
        raise Wrong(
            argument,
            value,
            'must be numbers of heads, "mean" among them for the average, as in "2,5,mean".',
            [{argument: None}],
        )
    return found


def view_name(argument: str, value: object) -> str:
    """A rule: the name of a view."""
    return one_of(argument, value, tuple(VIEWS))


def pair_of_limits(argument: str, value: object) -> tuple[float, float]:
    """A rule: where colours begin and end, as in "0,0.5" or [0, 0.5]."""
    given = tuple(map(read_number, value.split(","))) if isinstance(value, str) else value
    limits: tuple[float, float] = ruled_value(View, "limits", given)
    return limits


def address(argument: str, value: object) -> str:
    """A rule: the address of a page, which may be empty."""
    if not isinstance(value, str):
        raise Wrong(argument, value, 'must be an address, as in "?seed=8&causal=1".')
    return value


def text(argument: str, value: object) -> str:
    """A rule: a text that is not empty."""
    if not isinstance(value, str) or not value.strip():
        raise Wrong(argument, value, "must be a text.")
    return value


@dataclass(frozen=True)
class Figure(Ruled):
    """What a document asks for.

    ``out`` is the file, whose ending is the format: png, svg, pdf, html (which answers the pointer offline), json (Plotly's), csv,
    npz, safetensors (a recording), md (the caption, and an image with its alt text), py (a program that computes the numbers).

    It is of ``settings``, a file of them as JSON, of an ``address`` of a page, or of a ``recording``, weights or maps in a file; an
    ``address`` beside a file says how that is shown. ``against`` is A of a difference, an address or a file, in place of what the
    address pins. ``layer`` chooses one of several.

    It is of ``results`` in place of attention: the name of a file that `profile --json` or `quality` wrote, or of a task whose quality
    ships; of a profile head counts stand beside each other ``at_length``.

    ``view`` is the name of one of VIEWS; ``heads`` are those that it shows, "mean" among them for their average, all where None;
    ``limits`` fix the ends of the colours, so that all figures of a document agree.

    ``theme`` is light, dark or print (greys alone), ``transparent`` without a ground; ``title``, ``labels`` (of tokens), ``bar``,
    ``legend`` and ``values`` (in cells) may be left out. ``width`` is in px, mm or in, and the height follows; where None it is 1104 px,
    of one map alone 640. ``font`` is a family, in a PDF Arial where None, and ``font_size`` that of ordinary text: 14 px, or 8 pt where
    the width is one on paper. ``scale`` is how many pixels of a PNG are a px.

    ``code`` of a program is torch, numpy or pytest.

    Raises Wrong for a value that breaks its rule.
    """

    out: str = ruled("figure.svg", text)
    settings: str | None = ruled(None, optional(text))
    address: str | None = ruled(None, optional(address))
    recording: str | None = ruled(None, optional(text))
    against: str | None = ruled(None, optional(text))
    layer: int | None = ruled(None, optional(number(0)))
    results: str | None = ruled(None, optional(text))
    at_length: int | None = ruled(None, optional(number(2)))
    view: str = ruled("page", view_name)
    heads: HeadNames | None = ruled(None, optional(maps))
    limits: tuple[float, float] | None = ruled(None, optional(pair_of_limits))
    theme: ThemeName = ruled("light", choice(*THEMES))
    transparent: bool = ruled(False, flag)
    title: bool = ruled(True, flag)
    labels: bool = ruled(True, flag)
    bar: bool = ruled(True, flag)
    legend: bool = ruled(True, flag)
    values: bool = ruled(True, flag)
    width: tuple[float, str] | None = ruled(None, optional(length("px", "mm", "in")))
    font: str | None = ruled(None, optional(text))
    font_size: tuple[float, str] | None = ruled(None, optional(length("pt", "px")))
    scale: int = ruled(2, choice(1, 2, 4))
    code: str = ruled("torch", choice("torch", "numpy", "pytest"))

    def __post_init__(self) -> None:
        text("out", self.out)
        one_of("format", self.format, FORMATS)
        super().__post_init__()

    def check_together(self) -> None:
        """Raises Wrong where fields that are right by themselves do not go together."""
        if self.settings and self.recording:
            raise Wrong(
                "recording", self.recording, "stands beside settings: a figure is of one of them.", [{"settings": None}]
            )
        if self.results:
            self._check_results()
        if self.format == "json" and self.font_size is not None:
            rule = f"is for {', '.join(PICTURES)} and html: json is in px, its text at {TEXT}."
            raise Wrong("font_size", _told(self.font_size), rule, [{"font_size": None}])
        if not NARROWEST <= self.drawn_width <= WIDEST:
            rule = (
                f"with text of {_told(self.text_size)} leaves {self.drawn_width} px to draw in, and there must be {NARROWEST} to {WIDEST}: "
                "another width, or another font_size."
            )
            default = [{"font_size": None}] if self.font_size is not None else []
            raise Wrong("width", _told(self.size), rule, [{"width": self._width_in_reach()}, *default])

    def _width_in_reach(self) -> str:
        """The width nearest to this one that leaves enough px to draw in and not too many, to a tenth of its unit."""
        unit = self.size[1]
        scale = 10 * _px(self.text_size) / TEXT / PX[unit]
        if self.drawn_width < NARROWEST:
            return f"{math.ceil(NARROWEST * scale) / 10} {unit}".replace(".0 ", " ")
        return f"{math.floor(WIDEST * scale) / 10} {unit}".replace(".0 ", " ")

    def _check_results(self) -> None:
        """Raises Wrong where results stand beside what is of attention alone."""
        for name in ("settings", "address", "recording", "against", "layer", "heads", "limits"):
            if getattr(self, name) is not None:
                raise Wrong(name, getattr(self, name), "is of attention, and stands beside results.", [{name: None}])
        if self.format not in OF_MEASURED:
            right = str(Path(self.out).with_suffix(".csv"))
            raise Wrong(
                "out", self.out, f"would hold attention, and results have none: {', '.join(OF_MEASURED)}.", [{"out": right}]
            )

    @property
    def format(self) -> str:
        """The format of the file, which is its ending."""
        return Path(self.out).suffix.removeprefix(".").lower()

    @property
    def family(self) -> str | None:
        """The font family of all words, None for the usual one.

        That is a variable font, which a PDF would embed as Type 3, and publishers refuse it: a PDF has another one.
        """
        return self.font or (STATIC if self.format == "pdf" else None)

    @property
    def size(self) -> tuple[float, str]:
        """(number, unit) of the width: where none was asked for, what suits one map, or several beside each other."""
        return self.width or (VIEWS[self.view].width, "px")

    @property
    def text_size(self) -> tuple[float, str]:
        """(number, unit) of ordinary text."""
        return self.font_size or ((TEXT, "px") if self.size[1] == "px" else PRINTED)

    @property
    def drawn_width(self) -> int:
        """px that the figure is drawn in: what makes ordinary text as large as it should be once the figure is as wide as it should."""
        return round(_px(self.size) * TEXT / _px(self.text_size))

    @property
    def enlarged(self) -> float:
        """How large a px that the figure is drawn in becomes."""
        return _px(self.size) / self.drawn_width

    def named(self, folder: str | Path) -> Figure:
        """The same with the names of its files seen from ``folder``."""
        seen: dict[str, Any] = {
            name: str(Path(folder) / value) for name in ("settings", "recording", "out") if (value := getattr(self, name))
        }
        if self.results and self.results not in shipped_tasks():
            seen["results"] = str(Path(folder) / self.results)
        if self.against and "?" not in self.against:
            seen["against"] = str(Path(folder) / self.against)
        return replace(self, **seen)


def _px(size: tuple[float, str]) -> float:
    number, unit = size
    return number * PX[unit]


def _told(size: tuple[float, str]) -> str:
    return f"{size[0]:g} {size[1]}"


def read_figures(path: str | Path) -> list[Figure]:
    """The Figures of a TOML file: one for each [[figure]], with what [defaults] says of all. Their file names are those of its folder.

    Raises Wrong for a file that is none, a name that no Figure has, a value that breaks its rule, and two figures of one ``out``.
    """
    path = Path(path)
    try:
        held = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise Wrong("batch", str(path), f"cannot be read: {error.strerror}.") from None
    except RecursionError:
        raise Wrong("batch", str(path), "must be TOML, and its lists or tables are nested too deep to read.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise Wrong("batch", str(path), f"must be TOML: {error}.") from None
    strange, listed, defaults = held.keys() - {"defaults", "figure"}, held.get("figure"), held.get("defaults", {})
    tables = isinstance(listed, list) and all(isinstance(one, dict) for one in (*listed, defaults))
    if strange or not tables or not listed:
        found = f"has {', '.join(sorted(strange))}" if strange else "has no [[figure]], or [defaults] that are none"
        raise Wrong("batch", str(path), f"{found}: it must hold a [[figure]] for each figure, and may hold [defaults] for all.")
    figures: list[Figure] = []
    for place, given in enumerate(listed, 1):
        try:
            figure = figure_of(defaults | given, given)
        except Wrong as wrong:
            raise Wrong(wrong.argument, wrong.value, f"(figure {place} of {path.name}) {wrong.rule}", wrong.nearest) from None
        if figure.out in [one.out for one in figures]:
            raise Wrong(
                "out", figure.out, f"(figure {place} of {path.name}) is that of an earlier figure, which it would replace."
            )
        figures.append(figure)
    return figures


def figure_of(values: Mapping[str, object], asked: Collection[str] | None = None) -> Figure:
    """The Figure of these fields by name.

    Raises Wrong for a name that it does not have, and for a value that it would ignore, of those that are ``asked`` for, all where None:
    what a document says of all its figures need not concern each.
    """
    for name, value in values.items():
        if name not in Figure.__dataclass_fields__:
            raise unknown(name, value, Figure)
    told: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name, value in values.items()}
    figure = Figure(**told)
    check_asked(figure, values if asked is None else asked)
    return figure


def specification(figure: Figure) -> dict[str, object]:
    """What differs from the defaults, by name, without the file: as JSON takes it."""
    return {f.name: getattr(figure, f.name) for f in fields(figure) if f.name != "out" and getattr(figure, f.name) != f.default}
