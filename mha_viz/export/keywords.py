"""What can be said of each picture of a notebook, by name: its fields of View and of Figure, typed, so that an editor completes them.

What a picture heeds is decided by its view, in ``mha_viz.views``.
"""

from collections.abc import Callable, Sequence
from inspect import Parameter, signature
from typing import Literal, TypedDict, TypeVar

import plotly.graph_objects as go

from mha_viz.core.sight import Pooling
from mha_viz.export.figure import Figure
from mha_viz.figures.theme import ThemeName
from mha_viz.settings import View
from mha_viz.settings.view import Arrangement, Colors, Order, Picture, Scale, Weighting

Draw = TypeVar("Draw", bound=Callable[..., go.Figure])


class Look(TypedDict, total=False):
    """How any picture is dressed, as a Figure is."""

    theme: ThemeName
    transparent: bool
    title: bool
    labels: bool
    bar: bool
    legend: bool
    values: bool
    font: str | None


class OfLayers(Look, total=False):
    """What can be said of the picture of all layers."""

    item: int
    order: Order
    head: int | None
    cell: Sequence[int | None] | None
    scale: Scale
    limits: Sequence[float] | None
    colors: Colors


class OfAverage(Look, total=False):
    """What can be said of maps that are of no head."""

    item: int
    cell: Sequence[int | None] | None
    weighting: Weighting
    scale: Scale
    limits: Sequence[float] | None
    colors: Colors
    pooling: Pooling
    rows: Sequence[int] | None
    columns: Sequence[int] | None
    heads: Sequence[int | Literal["mean"]] | None


class OfMaps(OfAverage, total=False):
    """What can be said of the maps of heads."""

    order: Order
    head: int | None


class OfLines(OfMaps, total=False):
    """What can be said of lines between tokens."""

    arrangement: Arrangement


class OfPage(OfLines, total=False):
    """What can be said of the page's picture."""

    picture: Picture


LOOKS = (*Look.__annotations__, "heads")  # fields of Figure that a picture takes


def keywords(of: type[OfPage | OfLayers | OfAverage]) -> Callable[[Draw], Draw]:
    """Spell the keywords ``of`` a picture out in its signature, with what they are at first, for ``help`` and for notebooks."""

    def spelled(draw: Draw) -> Draw:
        *own, _ = signature(draw).parameters.values()
        for name, told in of.__annotations__.items():
            default = (Figure if name in LOOKS else View).__dataclass_fields__[name].default
            own.append(Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=told))
        draw.__signature__ = signature(draw).replace(parameters=own)  # type: ignore[attr-defined]  # any function has one
        return draw

    return spelled
