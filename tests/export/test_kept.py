"""Programs of a layer that no seed draws: with the file beside them they run as they stand, and compute what the page shows."""

import dataclasses

import numpy as np
import pytest

from mha_viz import Batch, Intervention, Layer, Settings, Trained, attend, changed, synthetic, trained
from mha_viz.analysis.known import ALONE, OFF, PROJECTED
from mha_viz.export.code import program
from mha_viz.export.kept import kept, numbers, why_not_kept
from tests.analysis.kinds import of_kind
from tests.export.programs import by_language, executed, ignored, same
from tests.export.test_code import NAMES

SMALL = {"embed_dim": 12, "num_heads": 3, "batch_size": 2, "seq_len": 5, "padding": (2,)}


def half(settings):
    """The Trace of a layer whose weights are float16, as files hold them."""
    trace = synthetic(settings)
    weights = {name: np.float16(array) for name, array in trace.layer.weights.items()}
    return attend(Layer.from_state_dict(weights, settings.num_heads), trace.batch)


def spoilt(value):
    """The Trace of a layer whose input holds a number that is not finite."""
    trace = synthetic(Settings(**SMALL, causal=True))
    query = trace.batch.query.copy()
    query[1, 2, 0] = value
    return attend(trace.layer, dataclasses.replace(trace.batch, query=query))


CASES = {
    "trained, causal": lambda: trained(Trained("induction", batch_size=2)).recording.traces[1],
    "trained, both ways": lambda: trained(Trained("look-both-ways-2", batch_size=2)).recording.traces[0],
    "padded, window": lambda: synthetic(Settings(**SMALL, window=2, causal=True)),
    "no bias, extra keys": lambda: synthetic(Settings(**SMALL, bias=False, add_bias_kv=True, add_zero_attn=True)),
    "cross": lambda: synthetic(Settings(**SMALL, source_len=7, kdim=5, vdim=7, causal=True)),
    "cross, one source": lambda: synthetic(Settings(**SMALL, source_len=7)),
    "half precision": lambda: half(Settings(**SMALL)),
    "NaN in the input": lambda: spoilt(np.nan),
    "∞ in the input": lambda: spoilt(np.inf),
}


@ignored
@by_language
@pytest.mark.parametrize("case", CASES)
def test_a_program_and_its_file_compute_what_is_shown(case, language, tmp_path, monkeypatch):
    trace = CASES[case]()
    assert why_not_kept(trace) is None
    monkeypatch.chdir(tmp_path)
    (tmp_path / "layer.npz").write_bytes(numbers(trace))
    told = program(kept(trace, "layer.npz"), language)
    names, printed = executed(told)
    for ours, theirs in NAMES.items():
        same(names[ours], getattr(trace, theirs))
    assert ("torch" in told) == (language == "torch")
    assert "all gradients finite: True" in printed or "holds for" in printed or (trace.undefined | trace.nonfinite).any()


def test_why_no_program_can_be_given():
    trace = synthetic(Settings(**SMALL))
    assert why_not_kept(of_kind("call", trace)) == PROJECTED
    assert why_not_kept(of_kind("maps", trace)) == ALONE
    assert why_not_kept(changed(trace, Intervention(off={1: "zero"}))) == OFF
    typed = attend(trace.layer, Batch(trace.batch.query, attn_mask=np.triu(np.ones((5, 5), bool), 1)))
    assert "a table of its own" in why_not_kept(typed)


def test_what_a_program_reads_of_settings_a_kept_layer_has_too():
    """Every field that a Kept has beyond its own is one of Settings, under the same name."""
    own = {"file", "weights", "own_value", "padded", "finite"}
    settings = Settings()
    assert all(
        hasattr(settings, field.name) for field in dataclasses.fields(kept(synthetic(settings), "f")) if field.name not in own
    )
