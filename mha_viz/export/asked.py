"""What a figure does with each thing that is asked of it: what its view, or its kind of file, would ignore is refused."""

from pathlib import Path

from mha_viz.core.rules import Wrong
from mha_viz.export.measured import VIEWS as OF_RESULTS
from mha_viz.export.views import MEAN, PARTS

PICTURES = ("png", "svg", "pdf")  # formats that a browser draws
DRAWN = (*PICTURES, "html", "json")  # formats that hold the picture
SCREEN = "screen"  # the view that is the page itself, as the app shows it
COMPARING = ("page", "difference")
MAPS = ("page", "heads", "head", "average", "pair", "lines", "difference", "layers", "window")
ONE_HEAD = ("head", "window", "terms", "softmax", "cell", "steps")
HEADS = ("page", "heads", "lines", "pair", *ONE_HEAD)  # views that heads are named for, and "mean" in the first four
ALONE = (*PARTS, "transparent", "font", "font_size")  # dress of a picture, which the page itself does not wear
VIEWS = {  # what is asked of a figure → the views that heed it; whatever is not here, all do
    "against": COMPARING, "limits": (*MAPS, "decode"), "heads": (*HEADS, "average", "difference"),
}  # fmt: skip
FORMATS = {  # what is asked of a figure → the formats that heed it
    "code": ("py",), "scale": ("png",), "limits": DRAWN, "against": (*DRAWN, "csv", "md", "py"), "heads": (*DRAWN, "csv", "md", "py"),
} | dict.fromkeys((*ALONE, "theme", "width"), DRAWN)  # fmt: skip
TABLES = ("csv", "py")  # formats of the weights that a view shows, which has to show some
WHOLE = ("npz", "safetensors")  # formats of all that was computed, whatever is shown of it


def check_asked(figure, names):
    """Raises Wrong where one of the fields with these ``names`` says something that the Figure would ignore."""
    for name in names:
        if getattr(figure, name) is not None:
            _check_view(figure, name)
            _check_format(figure, name)
    if "heads" in names and figure.heads is not None:
        _check_heads(figure)


def _check_view(figure, name):
    view, value = figure.view, _spelled(figure, name)
    if view == SCREEN and (name in (*ALONE, "scale", "layer", "limits", "heads", "against") or value == "print"):
        others = "its address says what is shown, theme is light or dark, and width is in px"
        raise Wrong(name, value, f"does nothing to the page itself: {others}.", [{name: _default(figure, name)}])
    if view == SCREEN and name == "width" and figure.width[1] != "px":
        raise Wrong(name, value, "must be in px for the page itself.", [{name: "1440 px"}])
    if view == "curves" and name == "layer":
        raise Wrong(name, value, "is not asked of curves, which are of the whole model.", [{name: None}])
    heeding = VIEWS.get(name, (view,))
    if view not in (*heeding, *OF_RESULTS):  # what stands beside results is checked with them
        right = [] if name == "against" or len(heeding) > 2 else heeding
        rule = f"does nothing to the view {view}: {_listed(heeding)} {'heeds' if len(heeding) == 1 else 'heed'} it."
        nearest = [{"view": heeding[-1]}] if name == "against" else [{name: None}, *({"view": one} for one in right)]
        raise Wrong(name, value, rule, nearest)


def _check_format(figure, name):
    format, value = figure.format, _spelled(figure, name)
    if name == "view" and format in WHOLE and figure.view != "page":
        rule = f"does nothing to a file of {format}, which holds the whole layer: leave it out, or write its weights as csv."
        raise Wrong(name, value, rule, [{"view": "page"}, {"out": str(Path(figure.out).with_suffix(".csv"))}])
    if name == "view" and format in TABLES and figure.view not in (*MAPS, *OF_RESULTS, SCREEN):
        rule = f"has no weights of its own that {format} could hold; {_listed(MAPS)} have."
        raise Wrong(name, value, rule, [{"view": "heads"}, {"out": str(Path(figure.out).with_suffix(".json"))}])
    heeding = FORMATS.get(name, (format,))
    if format not in heeding:
        rule = f"does nothing to a file of {format}: {_listed(heeding)} {'heeds' if len(heeding) == 1 else 'heed'} it."
        right = str(Path(figure.out).with_suffix(f".{heeding[0]}"))
        raise Wrong(name, value, rule, [{name: _default(figure, name)}, {"out": right}])


def _check_heads(figure):
    """Raises Wrong where a view draws another number of heads than are named, or no average, or nothing else."""
    view, heads = figure.view, figure.heads
    numbers = [head for head in heads if head != MEAN]
    value = ",".join(map(str, heads))
    if view == "average" and heads != (MEAN,):
        raise Wrong("heads", value, "does nothing to the view average, which is of all heads.", [{"heads": None}, {"view": "heads"}])
    if view in (*ONE_HEAD, "difference") and MEAN in heads:
        rule = f"names the average, which the view {view} does not draw."
        right = [{"heads": ",".join(map(str, numbers[:1] if view in ONE_HEAD else numbers))}] if numbers else []
        raise Wrong("heads", value, rule, [*right, {"view": "heads"}])
    if view in (*ONE_HEAD, "pair") and len(numbers) != 1:
        rule = f"must name one head for the view {view}, which draws one."
        raise Wrong("heads", value, rule, [*[{"heads": str(numbers[0])}] * bool(numbers), {"view": "heads"}])


def _default(figure, name):
    return figure.__dataclass_fields__[name].default


def _spelled(figure, name):
    """The value of a field, a tuple as it is typed."""
    value = getattr(figure, name)
    if not isinstance(value, tuple):
        return value
    return f"{value[0]:g} {value[1]}" if name in ("width", "font_size") else ",".join(f"{part}" for part in value)


def _listed(names):
    *before, last = names
    return f"{', '.join(before)} and {last}" if before else last
