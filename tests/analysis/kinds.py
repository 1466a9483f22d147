"""One computation as each kind of Trace knows it: attended by a layer, recorded after projection, and as maps alone."""

from mha_viz.core.attend import trace_of_call
from mha_viz.core.call import Call
from mha_viz.core.maps import trace_of_maps

KINDS = ("attended", "call", "maps")
MAPS_ALONE = ("maps",)


def of_kind(kind, trace):
    """What a source of this ``kind`` would know of an attended Trace (in eval mode)."""
    if kind == "call":
        return trace_of_call(Call(trace.q, trace.k, trace.v, trace.rules, None, *trace.out_proj, trace.tokens, "layers.3"))
    return trace_of_maps(trace.probabilities, trace.tokens, "layers.3") if kind == "maps" else trace
