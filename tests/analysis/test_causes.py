"""Findings: each odd call is named with its cause and place, and an ordinary call with nothing."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from mha_viz import Batch, Layer, Settings, Trace, attend, synthetic
from mha_viz.analysis.causes import findings, spans
from mha_viz.core.tokens import Tokens

LAYER = Layer.random(8, 2, dropout=0.5)
QUERY = np.random.default_rng(0).normal(size=(2, 5, 8)).astype(np.float32)


def of(kind, trace, chosen=None):
    return [finding for finding in findings(trace, chosen) if finding.kind == kind]


def masked(attn_mask, **batch):
    return attend(LAYER, Batch(QUERY, attn_mask=attn_mask, **batch))


ORDINARY = {
    "defaults": {},
    "causal": {"causal": True},
    "window": {"window": 1, "padding": ()},
    "many items": {"batch_size": 30},
    "another source": {"source_len": 2, "source_padding": (1,)},
}


@pytest.mark.parametrize("case", ORDINARY)
def test_an_ordinary_call_has_no_findings(case):
    chosen = Settings(**ORDINARY[case])
    assert findings(synthetic(chosen), chosen) == []


def test_masks_that_are_as_they_should_be_have_no_findings():
    causal = np.triu(np.ones((5, 5), bool), 1)
    for mask in (causal, np.where(causal, -np.inf, 0), np.zeros((5, 5)), np.linspace(-1, 1, 25).reshape(5, 5)):
        assert findings(masked(mask)) == []


def test_padding_and_causal_together():
    trace = synthetic(Settings(padding=(0, 3, 3), padding_side="left", causal=True))
    (finding,) = findings(trace, Settings())
    assert (finding.kind, finding.items, finding.heads, finding.queries) == ("left_padding", (1, 2), (), (0, 1, 2))
    assert finding.sentence.startswith("Items 1–2, queries 0–2: causal and key padding together leave no key")
    assert "padding themselves" in finding.sentence and "on the right" in finding.sentence


def test_real_queries_without_a_key_are_not_called_padding():
    padding = np.array([[1, 1, 0, 0, 0], [0] * 5], bool)
    batch = Batch(QUERY, key_padding_mask=padding, query_padding_mask=np.zeros((2, 5), bool), causal=True)
    (finding,) = findings(attend(LAYER, batch))
    assert (finding.kind, finding.items, finding.queries) == ("no_key", (0,), (0, 1))
    assert "padding themselves" not in finding.sentence


def test_some_padded_queries_among_real_ones_are_not_called_padding():
    padding = np.array([[1, 1, 0, 0, 0], [0] * 5], bool)
    batch = Batch(QUERY, key_padding_mask=padding, query_padding_mask=np.eye(5, dtype=bool)[:2] & padding, causal=True)
    (finding,) = findings(attend(LAYER, batch))
    assert (finding.kind, finding.queries) == ("no_key", (0, 1))


def test_padded_queries_out_of_reach_of_every_token():
    """A window that ends in the padding leaves no key either, but not because of the side of the padding."""
    (finding,) = findings(synthetic(Settings(padding=(3,), window=2)))
    assert (finding.kind, finding.items, finding.queries) == ("no_key", (0,), (18, 19))
    assert "window and key padding together" in finding.sentence
    assert "padding themselves" in finding.sentence and "on the right" not in finding.sentence


def test_only_the_rules_that_do_it_are_named():
    """Query 0 has no key by the mask alone, query 4 by mask and window; causal, which hides too, takes the last key of neither."""
    mask = np.zeros((5, 5), bool)
    mask[0], mask[4, 3:] = True, True
    found = of("no_key", masked(mask, causal=True, window=2))
    assert [(f.queries, f.sentence.split(": ")[1].split(" no key")[0]) for f in found] == [
        ((0,), "attn_mask leaves"),
        ((4,), "window and attn_mask together leave"),
    ]


def test_heads_with_masks_of_their_own_are_named():
    mask = np.zeros((4, 5, 5), bool)
    mask[[1, 3], 2:4] = True  # head 1 of both items
    (finding,) = of("no_key", masked(mask))
    assert (finding.items, finding.heads, finding.queries) == ((0, 1), (1,), (2, 3))
    assert finding.sentence.startswith("Items 0–1, head 1, queries 2–3: attn_mask leaves no key")


def test_padding_that_hides_everything_of_an_item():
    (finding,) = findings(synthetic(Settings(padding=(3, 20), causal=True)))
    assert (finding.kind, finding.items, finding.queries) == ("all_padded", (1,), ())
    assert finding.sentence.startswith("Item 1: key padding hides all 20 keys") and "NaN" in finding.sentence
    (finding,) = findings(synthetic(Settings(padding=(20,), add_bias_kv=True, add_zero_attn=True)))
    assert "only bias_k and zero can be read" in finding.sentence and "NaN" not in finding.sentence
    (finding,) = findings(masked(None, key_padding_mask=np.full((2, 5), -np.inf)))
    assert (finding.kind, finding.items) == ("all_padded", (0, 1))
    assert findings(masked(None, key_padding_mask=np.full((2, 5), 0.5))) == []


@pytest.mark.parametrize("alignment", ["square", "bottom-right", "top-left", "of each head", "added"])
def test_an_inverted_causal_mask(alignment):
    key = None if alignment not in ("bottom-right", "top-left") else np.ones((2, 7, 8), np.float32)
    past = np.tri(5, 5 if key is None else 7, 2 if alignment == "bottom-right" else 0, dtype=bool)
    mask = {"of each head": np.tile(past, (4, 1, 1)), "added": np.where(past, -np.inf, 0)}.get(alignment, past)
    (finding,) = of("inverted_mask", masked(mask, key=key))
    assert ("~attn_mask" in finding.sentence) == (alignment != "added")
    assert not of("inverted_mask", masked(past ^ (np.arange(past.size).reshape(past.shape) == 3), key=key)), "all but one cell"


def test_a_single_query_that_sees_nothing_is_no_inverted_mask():
    trace = attend(LAYER, Batch(QUERY[:, :1], QUERY, attn_mask=np.ones((1, 5), bool)))
    assert [finding.kind for finding in findings(trace)] == ["no_key"]


def test_a_float_mask_of_0_and_1_is_added():
    """What the sentence says is what happens: equal tokens, one key with 1 added, e / (e + 4) of the weight."""
    mask = np.zeros((5, 5), np.float32)
    mask[:, 2] = 1
    trace = attend(LAYER, Batch(np.ones((1, 5, 8)), attn_mask=mask))
    (finding,) = findings(trace)
    assert finding.kind == "float_mask" and finding.sentence.startswith("attn_mask holds") and "2.718" in finding.sentence
    assert trace.weights[0, 0, 0, 2] == pytest.approx(np.e / (np.e + 4), rel=1e-6)
    (finding,) = findings(masked(None, key_padding_mask=mask[:2]))
    assert finding.sentence.startswith("key_padding_mask holds")
    assert findings(masked(mask * 2)) == []


def test_dropout_counts_the_rows_that_do_not_sum_to_1():
    batch = Batch(QUERY, key_padding_mask=np.array([[0, 0, 0, 0, 1], [0, 0, 0, 0, 0]], bool))
    trace = attend(LAYER, batch, training=True, generator=torch.Generator().manual_seed(1))
    (finding,) = findings(trace)
    rows = [trace.weights[n, h, i].sum() for n in range(2) for h in range(2) for i in range(5) if (n, i) != (0, 4)]
    off = sum(abs(row - 1) > 1e-5 for row in rows)
    furthest = max(rows, key=lambda row: abs(row - 1))
    assert finding.sentence.startswith(f"Dropout is on (train mode, p = 0.5): {off} of 18 rows")
    assert finding.sentence.endswith(f"sums to {furthest:.2f}.")
    words = finding.sentence.split("The furthest, ")[1].replace(",", "").split()
    item, head, query = int(words[1]), int(words[3]), int(words[5])
    assert trace.weights[item, head, query].sum() == pytest.approx(furthest, abs=1e-6)


def test_dropout_that_is_off_says_nothing():
    assert findings(attend(Layer.random(8, 2), Batch(QUERY), training=True)) == []
    assert findings(attend(LAYER, Batch(QUERY))) == []


def test_more_items_than_tokens_looks_swapped_unless_something_says_it_is_meant():
    many = np.ones((6, 2, 8), np.float32)
    (finding,) = findings(attend(LAYER, Batch(many)))
    assert finding.kind == "layout" and "[6, 2, 8]: 6 items of 2 tokens" in finding.sentence
    meant = [
        Batch(many.swapaxes(0, 1)),
        Batch(many[:, :1]),
        Batch(many, np.ones((6, 3, 8))),
        Batch(many, attn_mask=np.zeros((2, 2))),
        Batch(many, key_padding_mask=np.zeros((6, 2), bool)),
        Batch(many, query_tokens=(("a", "b"),) * 6),
    ]
    assert [findings(attend(LAYER, batch)) for batch in meant] == [[]] * 6
    assert findings(attend(LAYER, Batch(many)), Settings()) == []


def test_a_source_that_knows_no_rules_is_told_what_can_be_told():
    undefined = np.array([[[True, False]]])  # [N, H, L]
    mask = np.broadcast_to(undefined[..., None], (1, 1, 2, 2))
    trace = Trace({"undefined": undefined, "mask": mask}, tokens=Tokens.of(1, 2, 2))
    (finding,) = findings(trace)
    assert finding.sentence.startswith("Item 0, query 0: the maps hold no numbers there (NaN)")


@pytest.mark.parametrize(
    ("numbers", "words"),
    [([5], "5"), ([0, 1, 2, 5], "0–2 and 5"), ([0, 2, 4], "0, 2 and 4"), (range(0, 40, 2), "0, 2, 4, 6, 8 and 15 more")],
)
def test_spans(numbers, words):
    assert spans(numbers) == words


@settings(derandomize=True, deadline=None, max_examples=50)
@given(st.sets(st.integers(0, 30), min_size=1, max_size=6).map(sorted))
def test_spans_name_every_number_and_no_other(numbers):
    named = []
    for part in spans(numbers).replace(" and ", ", ").split(", "):
        first, _, last = part.partition("–")
        named.extend(range(int(first), int(last or first) + 1))
    assert named == numbers
