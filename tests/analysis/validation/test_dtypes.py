"""What is right in half precision passes, as far as its type can hold it, and what is wrong fails there too. The type goes into files."""

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from torch import nn

import mha_viz as mv
from mha_viz.__main__ import main
from mha_viz.analysis.validation import FAIL, Subject, checks
from mha_viz.analysis.walk_checks import checks_of
from mha_viz.core.maps import trace_of_maps
from tests.analysis.validation.test_breaking import altered

DTYPES = ("float64", "float32", "float16", "bfloat16")


def layer_in(dtype, causal=False):
    padding = np.zeros((3, 20), bool)
    padding[0, -3:] = True
    x = np.random.default_rng(1).standard_normal((3, 20, 128), dtype=np.float32)
    return mv.attend(mv.Layer.random(128, 8), mv.Batch(x, key_padding_mask=padding, causal=causal), dtype=dtype)


def maps(dtype):
    return torch.softmax(2 * torch.randn(2, 4, 64, 64, generator=torch.Generator().manual_seed(0)), -1).to(
        getattr(torch, dtype)
    )


def failed(trace_or_subject):
    return {check.name for check in checks(trace_or_subject) if check.verdict == FAIL}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("causal", [False, True], ids=["", "causal"])
def test_a_right_layer_passes_in_every_type(dtype, causal):
    trace = layer_in(dtype, causal)
    assert trace.dtype == dtype
    assert not failed(trace)
    assert all(check.holds is not False for check in checks_of(trace, 1, 5))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_a_wrong_layer_fails_in_half_precision(dtype):
    trace = layer_in(dtype)
    assert "row_sums" in failed(altered(trace, {"probabilities": trace.probabilities * np.float32(1.01)}, dtype=dtype))
    assert {"numpy", "no_weights", "fast_path"} <= failed(
        Subject(trace, attend=lambda *args, **how: halved(mv.attend(*args, **how)))
    )


def halved(trace):
    return altered(trace, {"output": trace.output * np.float32(0.9)}, dtype=trace.dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_maps_are_held_to_the_type_that_they_were_made_in_also_from_a_file(dtype, tmp_path):
    save_file({"attention": maps(dtype)}, tmp_path / "maps.safetensors")
    assert main(["validate", str(tmp_path / "maps.safetensors")]) == 0
    mv.Recording((trace_of_maps(maps(dtype)),)).save(tmp_path / "run.safetensors")
    trace = mv.load(tmp_path / "run.safetensors").traces[0]
    assert trace.dtype == dtype and not failed(trace)


def test_maps_of_float32_are_not_held_to_less():
    with pytest.raises(mv.Wrong, match="does not sum to 1"):
        trace_of_maps(maps("bfloat16").float())


def test_maps_recorded_in_bfloat16_say_so(tmp_path):
    class Shifted(nn.Module):
        def forward(self, x):
            scores = x @ x.transpose(2, 3) + x @ torch.linspace(-1, 1, 64 * 4).view(64, 4).to(x).T
            return scores.softmax(-1) @ x

    model = Shifted()
    with mv.record(model) as recording:
        model(2 * torch.randn(2, 4, 64, 4, generator=torch.Generator().manual_seed(0)).bfloat16())
    trace = recording.traces[0]
    assert trace.dtype == "bfloat16" and not trace.has("q") and not failed(trace)
    recording.save(tmp_path / "run.npz")
    assert mv.load(tmp_path / "run.npz").traces[0].dtype == "bfloat16"


def test_a_type_that_there_is_not_is_refused():
    with pytest.raises(mv.Wrong, match="dtype = 'float8'"):
        trace_of_maps(maps("float32"), dtype="float8")
