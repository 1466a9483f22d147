"""The terms of a trace: names, axes and shapes, in the order in which they are made."""

import pytest

import mha_viz as mv
from mha_viz.analysis.pitfalls import PITFALLS
from mha_viz.analysis.pitfalls.spelling import read_pitfall
from mha_viz.analysis.validation.contract import contract
from mha_viz.core.maps import trace_of_maps
from mha_viz.core.rules import Wrong


def terms(batch_first=True, **settings):
    sizes = {"batch_size": 2, "seq_len": 3, "embed_dim": 4, "num_heads": 2, "padding": ()}
    return {term.name: term for term in contract(mv.synthetic(mv.Settings(**sizes | settings)), batch_first)}


def test_what_goes_in_comes_first_with_its_axes():
    found = terms(source_len=3, vdim=6, source_padding=(1,), causal=True, window=2, attn_mask="010/000/000")
    assert [*found][:7] == ["query", "key", "value", "key_padding_mask", "attn_mask", "causal", "window"]
    assert (found["key_padding_mask"].axes, found["key_padding_mask"].means) == ("N, S", "True = may not attend")
    assert (found["attn_mask"].axes, found["attn_mask"].shape) == ("L, S", (3, 3))
    assert found["window"].means == "a query sees 2 keys, itself included"
    assert found["weights"].shape == (2, 2, 3, 3) and found["concat"].axes == "N, L, H·D"


@pytest.mark.parametrize(("batch_first", "shape"), [(True, (2, 3, 4)), (False, (3, 2, 4))])
def test_tokens_come_batch_first_or_sequence_first(batch_first, shape):
    found = terms(batch_first)
    assert found["query"].shape == found["output"].shape == shape
    assert not {"causal", "window", "attn_mask", "key_padding_mask"} & found.keys()


def test_maps_alone_have_the_terms_that_they_hold():
    names = [term.name for term in contract(trace_of_maps([[[[1.0]]]]))]
    assert "weights" in names and not {"query", "q", "output"} & {*names}


def test_a_pitfall_is_read_with_its_knobs_or_refused():
    assert read_pitfall("")[0] is next(iter(PITFALLS.values()))
    name, pitfall = next((name, one) for name, one in PITFALLS.items() if one.knobs)
    assert read_pitfall(name) == (pitfall, {knob.name: knob.default for knob in pitfall.knobs})
    knob = pitfall.knobs[0]
    assert read_pitfall(f"{name}&{knob.name}={knob.default}")[1][knob.name] == knob.default
    with pytest.raises(Wrong, match="is none of the"):
        read_pitfall(name + "s")
    with pytest.raises(Wrong, match="is nothing that"):
        read_pitfall(f"{name}&nothing=1")
