"""Whatever of the wrong type or size reaches a public name is refused by Wrong, which names it: no TypeError from within comes out."""

from dataclasses import fields

import numpy as np
import pytest
import torch

import mha_viz as mv
from mha_viz.core.call import Call
from mha_viz.core.maps import trace_of_maps
from mha_viz.export.figure import Figure
from mha_viz.settings.profile import Profile

NUMBERS = (0, -1, 1.5, float("nan"), float("inf"), 10**30, 1j, True)
TEXTS = ("", "x", "1", b"x")
CONTAINERS = ([], [1], [[1]], ["x"], {}, {1: 2}, {"x": 1}, (), (None,), (1.5, 2), ("a", 2, None), set(), {1}, range(3))
ARRAYS = (np.zeros(3), np.zeros((2, 2)), np.zeros((2, 3, 8)), np.zeros((2, 3, 8), complex), np.zeros(0), np.array(["x"]))
SCALARS = (np.float32(1.5), np.array(None), np.datetime64("2020"))
TENSORS = (torch.zeros(3), torch.zeros(2, 3, 8))
OBJECTS = (None, object(), object, len, iter([1]), slice(1), ...)
ODD = (*NUMBERS, *TEXTS, *CONTAINERS, *ARRAYS, *SCALARS, *TENSORS, *OBJECTS)

LAYER = mv.Layer.random(8, 2)
X = np.random.default_rng(0).standard_normal((2, 3, 8), dtype=np.float32)
BATCH = mv.Batch(X)
TRACE = mv.attend(LAYER, BATCH)
Q = np.zeros((1, 2, 3, 4), np.float32)
STATE = dict(LAYER.weights)
MODEL = torch.nn.MultiheadAttention(8, 2, batch_first=True)


def each(call, *names, **others):
    """(name, function of an odd value) for each argument of a call that is otherwise right."""
    return {name: lambda odd, name=name: call(**others | {name: odd}) for name in names}


def recorded(model, **how):
    """What `mv.record` keeps of one call."""
    with mv.record(model, **how) as recording:
        MODEL(torch.ones(1, 3, 8), torch.ones(1, 3, 8), torch.ones(1, 3, 8))
    return recording.traces


def of_fields(kind, **others):
    return each(kind, *(field.name for field in fields(kind) if field.init), **others)


CALLS = (
    {
        "Settings": of_fields(mv.Settings),
        "View": of_fields(mv.View),
        "Trained": of_fields(mv.Trained, model="induction"),
        "Profile": of_fields(Profile),
        "Figure": of_fields(Figure),
        "Pretrained": of_fields(mv.Pretrained, name="gone"),
        "Intervention": of_fields(mv.Intervention),
        "Batch": of_fields(mv.Batch, query=X),
        "Call": of_fields(Call, q=Q, k=Q),
        "Layer.random": each(
            mv.Layer.random,
            "embed_dim",
            "num_heads",
            "seed",
            "dropout",
            "bias",
            "kdim",
            "vdim",
            "generator",
            embed_dim=8,
            num_heads=2,
        ),
        "Layer.from_state_dict": each(
            mv.Layer.from_state_dict, "state_dict", "num_heads", "add_zero_attn", "dropout", state_dict=STATE, num_heads=2
        ),
        "one weight": {name: lambda odd, name=name: mv.Layer.from_state_dict(STATE | {name: odd}, 2) for name in STATE},
        "attend": each(
            mv.attend, "layer", "batch", "engine", "dtype", "training", "generator", "name", layer=LAYER, batch=BATCH
        ),
        "decode": each(
            mv.decode,
            "layer",
            "batch",
            "prompt",
            "num_kv_heads",
            "dtype",
            "training",
            "generator",
            "draws",
            layer=LAYER,
            batch=mv.Batch(X, causal=True),
        ),
        "share_kv": each(mv.share_kv, "layer", "num_kv_heads", layer=LAYER, num_kv_heads=1),
        "changed": each(mv.changed, "trace", "intervention", trace=TRACE, intervention=mv.Intervention()),
        "pooled": each(
            lambda **how: list(mv.pooled(**how)),
            "attention",
            "heads",
            "item",
            "shape",
            "rows",
            "columns",
            "lengths",
            attention=TRACE,
        ),
        "trace_of_maps": each(trace_of_maps, "weights", "tokens", "name", "close", "dtype", weights=TRACE.weights),
        "synthetic": each(mv.synthetic, "settings"),
        "trained": each(mv.trained, "settings"),
        "pretrained": each(mv.pretrained, "settings"),
        "load": each(mv.load, "path"),
        "heads": each(
            mv.heads,
            "attention",
            "tokens",
            "key_tokens",
            "layer",
            "view",
            "width",
            "heads",
            "theme",
            "limits",
            "cell",
            "item",
            "order",
            attention=TRACE.weights,
        ),
        "difference": each(mv.difference, "a", "b", "view", "width", a=TRACE, b=TRACE),
    }
    | {
        name: each(
            getattr(mv, name),
            "attention",
            "tokens",
            "layer",
            "view",
            "width",
            "heads",
            "limits",
            "cell",
            attention=TRACE.weights,
        )
        for name in ("head", "average", "pair", "lines", "layers", "page")
    }
    | {"record": each(recorded, "model", "layers", "items", "steps", "max_length", "until", "tokens", model=MODEL)}
)


@pytest.mark.parametrize(("kind", "argument"), [(kind, argument) for kind, calls in CALLS.items() for argument in calls])
@pytest.mark.filterwarnings("ignore")
def test_a_wrong_type_is_wrong(kind, argument):
    odd_ones = [iter([1]) if type(odd).__name__ == "list_iterator" else odd for odd in ODD]
    escaped = []
    for odd in odd_ones:
        try:
            CALLS[kind][argument](odd)
        except mv.Wrong:
            continue
        except Exception as error:
            escaped.append(f"{argument}={odd!r}: {type(error).__name__}: {str(error)[:100]}")
    assert not escaped, "\n".join(escaped)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: mv.View(heads=0), "heads = 0: must be whole numbers"),
        (lambda: mv.View(cell=1.5), "cell = 1.5: must be a query and a key"),
        (lambda: mv.Layer.from_state_dict({1: X}, 2), "state_dict = 1: must have names for keys"),
        (lambda: mv.heads(TRACE, view=[1]), "view = [1]: must be a View"),
        (lambda: mv.Layer.random(10**6, 1), "embed_dim = 1000000: the weights"),
        (lambda: mv.attend(LAYER, X), "must be a Batch, and is a ndarray"),
        (lambda: mv.attend(LAYER, BATCH, training="eval"), "training = 'eval': must be True or False"),
    ],
)
def test_it_says_what_is_right(call, said):
    with pytest.raises(mv.Wrong) as found:
        call()
    assert said in str(found.value)
