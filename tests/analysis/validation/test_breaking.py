"""Each check passes on what is right, and fails on the very thing that it is there to find."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from mha_viz import Batch, Layer, Settings, Trace, attend, synthetic
from mha_viz.analysis.layout import module_of
from mha_viz.analysis.validation import QUESTIONS, Subject
from mha_viz.core.decode import Decoder
from mha_viz.core.maps import trace_of_maps
from mha_viz.core.reference import softmax

PLAIN = Settings(embed_dim=12, num_heads=2, batch_size=3, seq_len=5, padding=(2,))
CAUSAL = replace(PLAIN, causal=True, padding=())
WINDOW = replace(PLAIN, window=2, padding=())
LEFT = replace(PLAIN, causal=True, padding_side="left")


def altered(trace, fields=(), **about):
    """The same Trace with some tensors, or what is known around it, replaced."""
    known = {name: getattr(trace, name) for name in ("tokens", "rules", "layer", "batch", "call", "training", "name")}
    return Trace({name: getattr(trace, name) for name in trace.fields() if trace.has(name)} | dict(fields), **known | about)


def with_input(settings, change):
    """The Subject of a layer that reads ``change(query)``."""
    trace = synthetic(settings)
    return Subject(attend(trace.layer, replace(trace.batch, query=change(np.array(trace.batch.query)))))


def with_tensor(settings, name, change):
    """The Subject of a Trace in which one tensor is ``change(trace)``."""
    trace = synthetic(settings)
    return Subject(altered(trace, {name: change(trace)}))


def with_attend(settings, broken):
    return Subject(synthetic(settings), attend=broken)


def with_module(settings, forward):
    """The Subject whose PyTorch module does ``forward(module, usual, query, key, value, padding, **options)`` in place of its own."""

    class Broken(nn.MultiheadAttention):
        def forward(self, query, key, value, key_padding_mask=None, **options):
            return forward(self, super().forward, query, key, value, key_padding_mask, **options)

    def made(*arguments):
        module = module_of(*arguments)
        module.__class__ = Broken
        return module

    return Subject(synthetic(settings), module=made)


def with_weights(settings, **change):
    """The Subject of a layer some of whose weights are ``change(weight)``."""
    trace = synthetic(settings)
    weights = {name: np.array(array) for name, array in trace.layer.weights.items()}
    weights |= {name.replace("__", "."): do(weights[name.replace("__", ".")]) for name, do in change.items()}
    return Subject(attend(Layer.from_state_dict(weights, trace.layer.num_heads), trace.batch))


def without(*names):
    """An attend that overlooks these fields of its Batch."""
    return lambda layer, batch, **options: attend(layer, replace(batch, **dict.fromkeys(names)), **options)


def unsplit(layer, batch, **options):
    """Heads split by reshape without transpose: the shape is right, and tokens and numbers are mixed up."""
    trace = attend(layer, batch, **options)
    N, H, L, D = trace.q.shape
    q, k, v = (np.reshape(x.swapaxes(1, 2).reshape(N, L, H * D), (N, H, L, D)) for x in (trace.q, trace.k, trace.v))
    scores = q @ k.swapaxes(2, 3) * D**-0.5  # [N, H, L, S]
    mixed = softmax(np.where(trace.mask, -np.inf, scores)) @ v  # [N, H, L, D]
    weight, bias = trace.out_proj
    return altered(trace, {"output": mixed.swapaxes(1, 2).reshape(N, L, H * D) @ weight.T + bias})


def sequence_first(layer, batch, **options):
    """Takes items for tokens."""
    trace = attend(layer, Batch(batch.query.swapaxes(0, 1)), **options)
    return altered(trace, {"output": trace.output.swapaxes(0, 1)})


def centred(layer, batch, **options):
    """Subtracts the mean over the batch first, as a batch norm would."""
    return attend(layer, replace(batch, query=batch.query - batch.query.mean(axis=0)), **options)


def more(output, amount=0.01):
    return output[0] + amount, output[1]


def zero_rows(count):
    """Makes the first ``count`` rows of each of Wq, Wk, Wv 0, or all rows of Wq alone where None."""

    def zero(weight):
        E = len(weight) // 3
        if count is None:
            weight[:E] = 0
        else:
            weight.reshape(3, E, E)[:, :count] = 0
        return weight

    return zero


def set_to(value, *where):
    def change(array):
        array[where] = value
        return array

    return change


BROKEN = {
    "input_shape": lambda: Subject(altered(synthetic(PLAIN), layer=Layer.random(16, 2))),
    "input_values": lambda: with_input(PLAIN, set_to(np.nan, 0, 1, 2)),
    "input_range": lambda: with_input(PLAIN, set_to(1e30, 0, 1, 2)),
    "order": lambda: with_attend(PLAIN, unsplit),
    "shapes": lambda: with_tensor(PLAIN, "scores", lambda t: t.scores.swapaxes(0, 1)),
    "row_sums": lambda: with_tensor(PLAIN, "probabilities", lambda t: softmax(t.scores.swapaxes(2, 3)).swapaxes(2, 3)),
    "mean_weights": lambda: with_tensor(PLAIN, "mean_weights", lambda t: t.weights.sum(axis=1)),
    "no_key": lambda: Subject(synthetic(LEFT)),
    "padding_weight": lambda: with_tensor(PLAIN, "weights", lambda t: softmax(t.scores)),
    "padding_content": lambda: with_attend(PLAIN, without("key_padding_mask")),
    "padding_length": lambda: with_attend(PLAIN, without("key_padding_mask")),
    "mask_weight": lambda: with_tensor(CAUSAL, "weights", lambda t: softmax(np.where(t.mask, -9, t.scores))),
    "mask_content": lambda: with_attend(WINDOW, without("window")),
    "causality": lambda: with_attend(CAUSAL, without("causal")),
    "numpy": lambda: with_module(PLAIN, lambda m, usual, q, k, v, p, **o: usual(2 * q, k, v, p, **o)),
    "layouts": lambda: Subject(
        synthetic(replace(PLAIN, padding=())), module=lambda layer, dtype, _: module_of(layer, dtype, True)
    ),
    "items": lambda: with_attend(replace(PLAIN, padding=()), sequence_first),
    "item_alone": lambda: with_attend(PLAIN, centred),
    "no_weights": lambda: with_module(
        PLAIN, lambda m, usual, *tokens, **o: more(usual(*tokens, **o), 0 if o["need_weights"] else 0.01)
    ),
    "fast_path": lambda: with_module(
        PLAIN, lambda m, usual, *tokens, **o: more(usual(*tokens, **o), 0 if torch.is_grad_enabled() else 0.01)
    ),
    "decoding": lambda: with_attend(PLAIN, without("causal")),
    "dropout_off": lambda: Subject(synthetic(replace(PLAIN, training=True))),
    "deterministic": lambda: Subject(synthetic(replace(PLAIN, training=True))),
    "gradcheck": lambda: with_module(
        PLAIN, lambda m, usual, q, *rest, **o: more(usual(q, *rest, **o), 0.1 * (q - q.detach()).sum())
    ),
    "gradients_finite": lambda: Subject(synthetic(LEFT)),
    "gradients_padding": lambda: with_module(PLAIN, lambda m, usual, q, k, v, p, **o: usual(q, k, v, **o)),
    "gradients_heads": lambda: with_weights(
        PLAIN, in_proj_weight=zero_rows(6), out_proj__weight=set_to(0, slice(None), slice(6))
    ),
    "uniform": lambda: with_weights(PLAIN, in_proj_weight=zero_rows(None)),
    "one_head": lambda: with_weights(PLAIN, in_proj_weight=zero_rows(None)),
}
RIGHT = {"causality": CAUSAL, "mask_content": WINDOW, "mask_weight": CAUSAL}


def test_every_check_is_broken_here():
    assert BROKEN.keys() == QUESTIONS.keys()


@pytest.mark.parametrize("name", QUESTIONS)
def test_passes_on_what_is_right(name):
    found = QUESTIONS[name].ask(Subject(synthetic(RIGHT.get(name, PLAIN))))
    assert found.verdict == "pass", found
    assert found.figure <= found.tolerance if found.least is None else found.figure > found.least


@pytest.mark.parametrize("name", QUESTIONS)
def test_fails_on_what_it_is_there_to_find(name):
    found = QUESTIONS[name].ask(BROKEN[name]())
    assert found.verdict == "fail", found
    assert found.words and found.compared


@pytest.mark.parametrize("how", ["over queries", "of other weights", "one head left out"])
def test_an_average_that_is_none_is_found(how):
    wrong = {
        "over queries": lambda t: np.broadcast_to(t.weights.mean(axis=(1, 2), keepdims=True)[:, 0], t.mean_weights.shape),
        "of other weights": lambda t: softmax(np.where(t.mask, -np.inf, t.scores.mean(axis=1, keepdims=True))).mean(axis=1),
        "one head left out": lambda t: t.weights[:, 1:].mean(axis=1),
    }[how]
    assert QUESTIONS["mean_weights"].ask(with_tensor(PLAIN, "mean_weights", wrong)).verdict == "fail"


def test_the_average_of_maps_is_checked_too():
    maps = trace_of_maps(synthetic(PLAIN).weights)
    assert QUESTIONS["mean_weights"].ask(Subject(maps)).verdict == "pass"
    summed = altered(maps, {"mean_weights": maps.weights.sum(axis=1)})
    assert QUESTIONS["mean_weights"].ask(Subject(summed)).verdict == "fail"


def row_before(self, start, stop):
    return rows_of(self, max(start - 1, 0), stop - start, stop)


def rows_from_the_top(self, start, stop):
    return rows_of(self, 0, stop - start, stop)


def rows_of(decoder, first, count, stop):
    hidden = decoder.mask.hidden(first, first + count)
    return decoder._tensor(decoder.columns(np.where(hidden, np.float32(-np.inf), np.float32(0)), stop))


RUN = Decoder.run


def scaled_by_the_width(self, x, added, keep=None):
    """Divides the scores by √E, not by √D."""
    E, right = self.layer.embed_dim, self.in_weight
    queries = torch.arange(len(right))[:, None] < E  # the rows of Wq
    self.in_weight = torch.where(queries, right * (self.layer.head_dim / E) ** 0.5, right)
    try:
        return RUN(self, x, added, keep)
    finally:
        self.in_weight = right


@pytest.mark.parametrize("settings", [PLAIN, CAUSAL, WINDOW], ids=["plain", "causal", "window"])
@pytest.mark.parametrize(
    ("name", "broken"),
    [
        pytest.param("run", scaled_by_the_width, id="scale"),
        pytest.param("added", row_before, id="row before"),
        pytest.param("added", rows_from_the_top, id="rows from the top"),
    ],
)
def test_what_is_wrong_with_the_decoder_of_the_page_is_found(settings, name, broken, monkeypatch):
    monkeypatch.setattr(Decoder, name, broken)
    assert QUESTIONS["decoding"].ask(Subject(synthetic(settings))).verdict == "fail"


def test_decoding_under_a_mask_of_ones_own_is_checked():
    own = replace(PLAIN, padding=(), attn_mask="00000/10000/01000/00100/00010")
    assert QUESTIONS["decoding"].ask(Subject(synthetic(own))).verdict == "pass"


def test_numpy_sees_what_is_shown_as_well():
    def off(layer, batch, **options):
        trace = attend(layer, batch, **options)
        return altered(trace, {"output": trace.output * 1.001})

    found = QUESTIONS["numpy"].ask(with_attend(PLAIN, off))
    assert found.verdict == "fail" and "that are shown" in found.words
