"""What the average hides: the sentence is true, cell by cell."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mha_viz import Settings, Trace, synthetic
from mha_viz.analysis.average import what_average_hides
from mha_viz.core.tokens import Tokens


def given_weights(*heads):
    weights = np.array(heads, np.float64)[None]  # [1, H, L, S]
    fields = {"weights": weights, "mean_weights": weights.mean(axis=1), "undefined": np.zeros(weights.shape[:3], bool)}
    return Trace(fields, tokens=Tokens.of(1, *weights.shape[2:], one_sequence=False))


def test_two_heads_that_look_at_different_keys():
    """Each head is certain of a key of its own, and both take the third for their second: the average's first choice is nobody's."""
    hidden = what_average_hides(given_weights([[0.6, 0, 0.4]], [[0, 0.6, 0.4]]), 0)
    assert (hidden.head, hidden.query, hidden.key, hidden.weight, hidden.average) == pytest.approx((0, 0, 0, 0.6, 0.3))
    assert hidden.overruled == 1
    assert hidden.sentence == (
        "In head 0 query 0 gives 0.60 to key 0; the average says 0.30. "
        "In the one query the average's largest weight is on a key that is the largest of no head."
    )


def test_the_tutorials_example():
    hidden = what_average_hides(synthetic(), 0)
    assert hidden.sentence == "In head 4 query 6 gives 0.29 to key 0; the average says 0.08."


def test_a_small_difference_gets_the_digits_that_show_it():
    hidden = what_average_hides(given_weights([[0.5, 0.5, 0]], [[0.5, 0.4996, 0.0004]]), 0)
    assert "gives 0.4996 to key 1; the average says 0.4998." in hidden.sentence


@pytest.mark.parametrize(
    ("weight", "other", "written"),
    [
        (0.0412, 0.0, ("0.04", "0.02")),
        (0.0102, 0.0001, ("0.010", "0.0052")),
        (0.0041, 0.0006, ("0.0041", "0.0024")),
        (0.0016, 0.0, ("0.0016", "0.00080")),
        (2e-6, 0.0, ("0.0000020", "0.0000010")),
    ],
)
def test_small_weights_are_written_with_two_of_their_digits(weight, other, written):
    rows = [[[first, (1 - first) / 2, (1 - first) / 2]] for first in (weight, other)]
    hidden = what_average_hides(given_weights(*rows), 0)
    assert f"query 0 gives {written[0]} to key 0; the average says {written[1]}." in hidden.sentence


@pytest.mark.parametrize("heads", [[[[0.5, 0.5]]], [[[0.25, 0.75]], [[0.25, 0.75]]]])
def test_one_head_or_equal_heads_hide_nothing(heads):
    assert what_average_hides(given_weights(*heads), 0) is None


def test_an_item_without_a_real_query_hides_nothing():
    assert what_average_hides(synthetic(Settings(padding=(20,))), 0) is None


@settings(derandomize=True, deadline=None, max_examples=30)
@given(
    st.builds(
        Settings,
        embed_dim=st.just(12),
        num_heads=st.sampled_from((2, 3)),
        batch_size=st.just(2),
        seq_len=st.integers(2, 6),
        padding=st.tuples(st.integers(0, 2)),
        causal=st.booleans(),
        training=st.booleans(),
        seed=st.integers(0, 50),
        padding_side=st.sampled_from(("left", "right")),
    )
)
def test_it_is_always_true(chosen):
    trace = synthetic(chosen)
    real = [i for i in range(chosen.L) if not trace.query_padding[0, i] and not trace.undefined[0, :, i].any()]
    hidden = what_average_hides(trace, 0)
    if hidden is None:
        return
    gaps = np.abs(trace.weights[0] - trace.mean_weights[0])[:, real]
    assert hidden.query in real and hidden.queries == len(real)
    assert hidden.weight == trace.weights[0, hidden.head, hidden.query, hidden.key]
    assert hidden.average == trace.mean_weights[0, hidden.query, hidden.key]
    assert abs(hidden.weight - hidden.average) == pytest.approx(gaps.max())
    says = [float(word.rstrip(".")) for word in hidden.sentence.split(" In ")[0].split() if "." in word and word[0].isdigit()]
    assert says == pytest.approx([hidden.weight, hidden.average], abs=0.005) and says[0] != says[1]
    overruled = 0
    for i in real:
        top = trace.mean_weights[0, i].argmax()
        overruled += all(trace.weights[0, h, i, top] < trace.weights[0, h, i].max() for h in range(chosen.num_heads))
    assert hidden.overruled == overruled
    assert ("of no head" in hidden.sentence) == (overruled > 0)


def test_it_speaks_of_the_heads_that_are_shown():
    """In the tutorial's layer head 4 differs most; beside heads 2 and 5 alone it is not there to be seen."""
    trace = synthetic()
    assert what_average_hides(trace, 0).head == 4
    hidden = what_average_hides(trace, 0, (2, 5))
    assert (hidden.head, hidden.query, hidden.key) == (5, 10, 3)
    assert hidden.overruled == what_average_hides(trace, 0).overruled  # of which all heads have a say
    assert hidden.sentence.startswith("In head 5 query 10 gives 0.22 to key 3; the average says 0.08.")
