"""What ``mha_viz`` holds, for editors and type checkers: at run time each name is imported when it is first used."""

from collections.abc import Sequence
from typing import Literal, Protocol, TypeAlias, TypedDict, Unpack

import plotly.graph_objects as go
import torch

from mha_viz.core.arrays import Numbers
from mha_viz.core.attend import attend as attend
from mha_viz.core.batch import Batch as Batch
from mha_viz.core.decode import decode as decode
from mha_viz.core.decode import share_kv as share_kv
from mha_viz.core.intervention import Intervention as Intervention
from mha_viz.core.intervention import changed as changed
from mha_viz.core.layer import Layer as Layer
from mha_viz.core.long import pooled as pooled
from mha_viz.core.rules import Wrong as Wrong
from mha_viz.core.sight import Pooling
from mha_viz.core.trace import Trace as Trace
from mha_viz.recording import Recording as Recording
from mha_viz.recording import load as load
from mha_viz.settings import Settings as Settings
from mha_viz.settings import View as View
from mha_viz.settings.view import Arrangement, Colors, Order, Picture, Scale, Weighting
from mha_viz.sources.pretrained import Pretrained as Pretrained
from mha_viz.sources.pretrained import pretrained as pretrained
from mha_viz.sources.recorded import record as record
from mha_viz.sources.synthetic import synthetic as synthetic
from mha_viz.sources.trained import Trained as Trained
from mha_viz.sources.trained import trained as trained

__version__: str

class _HoldsTraces(Protocol):
    @property
    def traces(self) -> Sequence[Trace]: ...

class _HoldsRecording(Protocol):
    @property
    def recording(self) -> _HoldsTraces: ...

_Attention: TypeAlias = Trace | _HoldsTraces | _HoldsRecording | Numbers | Sequence[torch.Tensor]
_Texts: TypeAlias = Sequence[str] | Sequence[Sequence[str]]

class _How(TypedDict, total=False):
    """How a picture is drawn: fields of ``View``, and of what a document asks for."""

    item: int
    order: Order
    head: int | None
    cell: tuple[int | None, int | None] | None
    arrangement: Arrangement
    picture: Picture
    weighting: Weighting
    pooling: Pooling
    rows: tuple[int, int] | None
    columns: tuple[int, int] | None
    scale: Scale
    limits: tuple[float, float] | None
    colors: Colors
    heads: Sequence[int | Literal["mean"]] | None
    theme: Literal["light", "dark", "print"]
    transparent: bool
    title: bool
    labels: bool
    bar: bool
    legend: bool
    values: bool
    font: str | None

class _Picture(Protocol):
    def __call__(
        self,
        attention: _Attention,
        tokens: _Texts | None = None,
        key_tokens: _Texts | None = None,
        *,
        axes: str | None = None,
        layer: int = 0,
        view: View | None = None,
        width: float | None = None,
        **how: Unpack[_How],
    ) -> go.Figure:
        """A picture of the attention of one layer; Wrong is raised where it cannot be drawn."""

class _Comparison(Protocol):
    def __call__(
        self,
        a: _Attention,
        b: _Attention,
        tokens: _Texts | None = None,
        key_tokens: _Texts | None = None,
        *,
        axes: str | None = None,
        layer: int = 0,
        view: View | None = None,
        width: float | None = None,
        **how: Unpack[_How],
    ) -> go.Figure:
        """A picture of what differs from ``a`` to ``b``; Wrong is raised where it cannot be drawn."""

page: _Picture
heads: _Picture
head: _Picture
average: _Picture
pair: _Picture
lines: _Picture
layers: _Picture
difference: _Comparison
