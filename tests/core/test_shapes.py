"""The types that the core declares for its arrays are true: each has the shape that its annotation says, letters alike throughout."""

import numpy as np
import pytest

from mha_viz.core.attend import attend, call_of
from mha_viz.core.batch import Batch
from mha_viz.core.call import Call
from mha_viz.core.decode import Decoding, Step, decode, share_kv
from mha_viz.core.intervention import Intervention, changed
from mha_viz.core.layer import Layer
from mha_viz.core.long import Pooled, averaging, pooled
from mha_viz.core.mask import Mask
from mha_viz.core.rows import Block
from mha_viz.core.tokens import Tokens
from mha_viz.core.trace import Trace
from tests.shapes import SHAPED, check, declared


def an_input(**how):
    query = np.random.default_rng(3).standard_normal((2, 3, 8))
    return Batch(query, **how)


CASES = {
    "self-attention": (Layer.random(8, 2), an_input(), {}),
    "float64": (Layer.random(8, 2), an_input(), {"dtype": "float64"}),
    "numpy": (Layer.random(8, 2), an_input(causal=True), {"engine": "numpy"}),
    "extra columns": (Layer.random(8, 4, add_bias_kv=True, add_zero_attn=True), an_input(window=2), {}),
    "cross-attention": (
        Layer.random(8, 2, kdim=5, vdim=6),
        an_input(key=np.ones((2, 4, 5)), value=np.ones((2, 4, 6)), attn_mask=np.zeros((4, 3, 4))),
        {},
    ),
    "dropout": (Layer.random(8, 2, dropout=0.5), an_input(key_padding_mask=np.eye(3)[:2] > 0), {"training": True}),
    "added masks": (Layer.random(8, 2), an_input(attn_mask=np.ones((3, 3)), key_padding_mask=np.zeros((2, 3))), {}),
    "later": (Layer.random(8, 2), an_input(causal=True), {"later": True}),
}


@pytest.mark.parametrize("case", CASES)
def test_a_trace_and_all_around_it_have_their_declared_shapes(case):
    layer, batch, how = CASES[case]
    trace = attend(layer, batch, **how)
    N, H, L, S = trace.shape
    sizes = {"N": N, "H": H, "L": L, "S": S, "E": layer.embed_dim, "D": layer.head_dim}
    check(trace, sizes)
    assert declared(Trace).keys() == set(Trace.fields())
    check(batch, sizes | {"S": batch.S, "kdim": layer.kdim, "vdim": layer.vdim})
    check(trace.tokens, sizes)
    check(trace.rules, sizes | {"S": batch.S})
    check(call_of(trace), sizes | {"G": H, "Dv": layer.head_dim})
    if how.get("training") is None:
        check(changed(trace, Intervention(off={1: "mean"}, hidden_keys=[0])), sizes)


def test_decoding_has_its_declared_shapes():
    layer = share_kv(Layer.random(8, 4, add_bias_kv=True), 2)
    decoding = decode(layer, an_input(causal=True), prompt=2, num_kv_heads=2)
    known = {"N": 2, "H": 4, "G": 2, "D": 2, "E": 8, "extra": 1}
    check(decoding, known | {"L": 3})
    for step in decoding.steps:
        check(step, known | {"n": step.stop - step.start, "stop": step.stop})


def test_pooled_maps_have_their_declared_shapes():
    trace = attend(Layer.random(8, 2), an_input())
    found = [*pooled(trace, shape=(2, 3)), [*averaging(trace, shape=(2, 3))][-1].found]
    for one in found:
        check(one, {"rows": 2, "columns": 3})
    assert len(found) == 3


def test_a_wrong_shape_would_be_seen():
    trace = attend(Layer.random(8, 2), an_input())
    with pytest.raises(AssertionError, match="weights"):
        check(Trace({"weights": trace.weights[0]}), {"N": 2, "H": 2, "L": 3, "S": 3})
    with pytest.raises(AssertionError, match="mask"):
        check(Trace({"mask": trace.weights}), {"N": 2, "H": 2, "L": 3, "S": 3})


def test_every_array_that_is_kept_says_its_shape():
    """No attribute of the core's public values is a bare array."""
    for kind in (Trace, Batch, Call, Mask, Tokens, Pooled, Block, Step, Decoding):
        assert declared(kind)
        for name, annotation in vars(kind)["__annotations__"].items():
            assert "np.ndarray" not in SHAPED.sub("", annotation), (kind.__name__, name)
