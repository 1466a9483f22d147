"""What a figure does with each thing that is asked of it: what its view, or its kind of file, would ignore is refused."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mha_viz.core.rules import Wrong
from mha_viz.views import VIEWS
from mha_viz.views.base import NO_HEADS, PARTS, OfAttention, OfResults
from mha_viz.views.shown import MEAN, HeadNames

if TYPE_CHECKING:
    from mha_viz.export.figure import Figure

PICTURES: tuple[str, ...] = ("png", "svg", "pdf")  # formats that a browser draws
DRAWN: tuple[str, ...] = (*PICTURES, "html", "json")  # formats that hold the picture
ALONE = (*PARTS, "transparent", "font", "font_size")  # dress of a picture, which the page itself does not wear
HEEDED: dict[
    str, Callable[[OfAttention], bool]
] = {  # what is asked of a figure → whether a view of attention heeds it; whatever is not here, all do
    "against": lambda view: view.takes_a,
    "limits": lambda view: "limits" in view.reads,
    "heads": lambda view: view.naming != NO_HEADS,
}
FORMATS = {  # what is asked of a figure → the formats that heed it
    "code": ("py",),
    "scale": ("png",),
    "limits": DRAWN,
    "against": (*DRAWN, "csv", "md", "py"),
    "heads": (*DRAWN, "csv", "md", "py"),
} | dict.fromkeys((*ALONE, "theme", "width"), DRAWN)
TABLES = ("csv", "py")  # formats of the weights that a view shows, which has to show some
WHOLE = ("npz", "safetensors")  # formats of all that was computed, whatever is shown of it


def check_asked(figure: Figure, names: Collection[str]) -> None:
    """Raises Wrong where one of the fields with these ``names`` says something that the Figure would ignore."""
    for name in names:
        if getattr(figure, name) is not None:
            _check_view(figure, name)
            _check_format(figure, name)
    if "heads" in names and figure.heads is not None:
        _check_heads(figure.view, figure.heads)


def _check_view(figure: Figure, name: str) -> None:
    view, value = VIEWS[figure.view], _spelled(figure, name)
    if view.pictured and (name in (*ALONE, "scale", "layer", "limits", "heads", "against") or value == "print"):
        others = "its address says what is shown, theme is light or dark, and width is in px"
        raise Wrong(name, value, f"does nothing to the page itself: {others}.", [{name: _default(figure, name)}])
    if view.pictured and name == "width" and figure.width and figure.width[1] != "px":
        raise Wrong(name, value, "must be in px for the page itself.", [{name: "1440 px"}])
    if isinstance(view, OfResults):  # what stands beside results is checked with them
        return
    if name == "layer" and not view.of_layer:
        raise Wrong(name, value, f"is not asked of {view.name}, which are of the whole model.", [{name: None}])
    if name in HEEDED and not HEEDED[name](view):
        heeding = [one.name for one in _of_attention() if HEEDED[name](one)]
        rule = f"does nothing to the view {view.name}: {_listed(heeding)} {'heeds' if len(heeding) == 1 else 'heed'} it."
        raise Wrong(name, value, rule, [{"view": heeding[-1]} if name == "against" else {name: None}])


def _check_format(figure: Figure, name: str) -> None:
    view, format, value = VIEWS[figure.view], figure.format, _spelled(figure, name)
    if name == "view" and format in WHOLE and not _is_usual(figure):
        rule = f"does nothing to a file of {format}, which holds the whole layer: leave it out, or write its weights as csv."
        raise Wrong(name, value, rule, [{"view": _default(figure, name)}, {"out": str(Path(figure.out).with_suffix(".csv"))}])
    if name == "view" and format in TABLES and not (isinstance(view, OfResults) or view.pictured or _has_numbers(view)):
        having = _listed([one.name for one in _of_attention() if _has_numbers(one)])
        rule = f"has no weights of its own that {format} could hold; {having} have."
        raise Wrong(name, value, rule, [{"view": "heads"}, {"out": str(Path(figure.out).with_suffix(".json"))}])
    heeding = FORMATS.get(name, (format,))
    if format not in heeding:
        rule = f"does nothing to a file of {format}: {_listed(heeding)} {'heeds' if len(heeding) == 1 else 'heed'} it."
        right = str(Path(figure.out).with_suffix(f".{heeding[0]}"))
        raise Wrong(name, value, rule, [{name: _default(figure, name)}, {"out": right}])


def _check_heads(name: str, heads: HeadNames) -> None:
    """Raises Wrong where a view draws another number of heads than are named, or no average, or nothing else."""
    view = VIEWS[name]
    least, most = view.naming.least, view.naming.most
    numbers = [head for head in heads if isinstance(head, int)]
    value = ",".join(map(str, heads))
    if most == 0 and numbers:
        rule = f"does nothing to the view {view.name}, which is of all heads."
        raise Wrong("heads", value, rule, [{"heads": None}, {"view": "heads"}])
    if MEAN in heads and not view.naming.average:
        rule = f"names the average, which the view {view.name} does not draw."
        right: list[dict[str, object]] = [{"heads": ",".join(map(str, numbers[:most]))}] if numbers else []
        raise Wrong("heads", value, rule, [*right, {"view": "heads"}])
    if least and (len(numbers) < least or (most is not None and len(numbers) > most)):
        rule = f"must name one head for the view {view.name}, which draws one."
        raise Wrong("heads", value, rule, [*({"heads": str(head)} for head in numbers[:1]), {"view": "heads"}])


def _of_attention() -> list[OfAttention]:
    return [view for view in VIEWS.values() if not isinstance(view, OfResults) and not view.pictured]


def _has_numbers(view: OfAttention) -> bool:
    return view.maps or view.statistics


def _is_usual(figure: Figure) -> bool:
    return figure.view == _default(figure, "view")


def _default(figure: Figure, name: str) -> object:
    return figure.__dataclass_fields__[name].default


def _spelled(figure: Figure, name: str) -> object:
    """The value of a field, a tuple as it is typed."""
    value = getattr(figure, name)
    if not isinstance(value, tuple):
        return value
    return f"{value[0]:g} {value[1]}" if name in ("width", "font_size") else ",".join(f"{part}" for part in value)


def _listed(names: Sequence[str]) -> str:
    *before, last = names
    return f"{', '.join(before)} and {last}" if before else last
