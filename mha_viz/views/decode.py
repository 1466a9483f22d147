"""One step of decoding."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mha_viz.core.rules import Wrong
from mha_viz.core.trace import Missing
from mha_viz.figures.parts import ALL, Parts
from mha_viz.figures.piece import Spec, plain
from mha_viz.figures.theme import ThemeName
from mha_viz.settings.rules import Ruled
from mha_viz.sources.source import source
from mha_viz.views.base import COLORS, NO_HEADS, PARTS, OfAttention
from mha_viz.views.shown import Shown

if TYPE_CHECKING:
    from mha_viz.analysis.decoding import Beside


class Decode(OfAttention):
    """One step of decoding with a KV cache: the tensors that are new, and those that are kept."""

    name = "decode"
    public = False
    parts = PARTS
    reads = ("item", "token", "prompt", "kv_heads", "cache_dtype", *COLORS)
    naming = NO_HEADS
    needs = ()
    whole = True

    def lack(self, shown: Shown) -> Wrong | None:
        from mha_viz.analysis.decoding import why_not_decoded

        reason = None if _to_decode(shown) else why_not_decoded(shown.trace)
        if reason is None:
            return super().lack(shown)
        return Wrong("view", self.name, f"is not there for {shown.source.name}: {reason}", [{"view": self.instead}])

    def draw(self, shown: Shown, theme: ThemeName = "light", width: int = 1104, parts: Parts = ALL) -> Spec:
        from mha_viz.analysis.decoding import lengths
        from mha_viz.figures import decoding

        found, item = shown.once(_decoded), shown.item
        kept = lengths(found.decoding, item)
        return plain(decoding.cache(found, kept, _token(shown), item, shown.view, theme, width, parts))

    def describe(self, shown: Shown) -> str:
        from mha_viz.figures import decoding

        return decoding.describe_cache(shown.once(_decoded), _token(shown), shown.item)

    def caption(self, shown: Shown) -> str:
        return "Decoding with a KV cache"


def _to_decode(shown: Shown) -> tuple[Ruled, dict[str, int]] | None:
    return shown.source.kind.to_decode(shown.source.settings)


def _decoded(shown: Shown) -> Beside:
    """The layer decoded as its Caching says: one that settings make without what hinders that, any other as it is."""
    from mha_viz.analysis.decoding import beside

    caching, trace = shown.caching, shown.trace
    how: dict[str, Any] = {"prompt": caching.prompt, "num_kv_heads": caching.kv_heads, "dtype": caching.cache_dtype}
    if found := _to_decode(shown):
        settings, more = found
        (trace,), how = source(settings).traces, how | more
    if trace.layer is None or trace.batch is None:
        raise Missing("Decoding needs a layer and its input, and the source does not know them.")
    return beside(trace.layer, trace.batch, **how)


def _token(shown: Shown) -> int:
    """The newest token of the step that is shown: the one that is asked for, or the middle one."""
    decoding = shown.once(_decoded).decoding
    steps, L = decoding.steps, decoding.batch.L
    token = shown.caching.token
    return max(token if token is not None and token < L else L // 2, steps[0].stop - 1)


DECODE = Decode()
