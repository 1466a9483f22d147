"""One step of decoding."""

from mha_viz.core.rules import Wrong
from mha_viz.figures.parts import ALL
from mha_viz.sources.source import source
from mha_viz.views.base import COLORS, NO_HEADS, PARTS, OfAttention


class Decode(OfAttention):
    """One step of decoding with a KV cache: the tensors that are new, and those that are kept."""

    name = "decode"
    public = False
    parts = PARTS
    reads = ("item", "token", "prompt", "kv_heads", "cache_dtype", *COLORS)
    naming = NO_HEADS
    needs = ()
    whole = True

    def lack(self, shown):
        from mha_viz.analysis.decoding import why_not_decoded

        reason = None if _to_decode(shown) else why_not_decoded(shown.trace)
        if reason is None:
            return super().lack(shown)
        return Wrong("view", self.name, f"is not there for {shown.source.name}: {reason}", [{"view": self.instead}])

    def draw(self, shown, theme="light", width=1104, parts=ALL):
        from mha_viz.analysis.decoding import lengths
        from mha_viz.figures import decoding

        found, item = shown.once(_decoded), shown.item
        kept = lengths(found.decoding, item)
        return decoding.cache(found, kept, _token(shown), item, shown.view, theme, width, parts).to_plotly_json()

    def describe(self, shown):
        from mha_viz.figures import decoding

        return decoding.describe_cache(shown.once(_decoded), _token(shown), shown.item)

    def caption(self, shown):
        return "Decoding with a KV cache"


def _to_decode(shown):
    return shown.source.kind.to_decode(shown.source.settings)


def _decoded(shown):
    """The layer decoded as its Caching says: one that settings make without what hinders that, any other as it is."""
    from mha_viz.analysis.decoding import beside

    caching, trace = shown.caching, shown.trace
    how = {"prompt": caching.prompt, "num_kv_heads": caching.kv_heads, "dtype": caching.cache_dtype}
    if found := _to_decode(shown):
        settings, more = found
        (trace,), how = source(settings).traces, how | more
    return beside(trace.layer, trace.batch, **how)


def _token(shown):
    """The newest token of the step that is shown: the one that is asked for, or the middle one."""
    steps, L = shown.once(_decoded).decoding.steps, shown.trace.batch.L
    token = shown.caching.token
    return max(token if token is not None and token < L else L // 2, steps[0].stop - 1)


DECODE = Decode()
