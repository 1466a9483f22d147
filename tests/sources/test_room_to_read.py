"""Files on a disk, which the command line names: room for what they hold is reserved before it is read, as for uploads."""

import numpy as np
import pytest
from safetensors.numpy import save_file

import mha_viz as mv
from mha_viz.core.budget import BUDGET
from mha_viz.core.maps import trace_of_maps
from mha_viz.core.rules import Wrong
from mha_viz.recording import Recording
from mha_viz.sources.source import source_of_file
from mha_viz.stored.stored import READING, room_to_read

MB = 2**20


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("large")
    maps = np.full((1, 3, 2000, 2000), 1 / 2000, np.float32)  # 46 MiB
    np.save(folder / "maps.npy", maps)
    weights = np.random.default_rng(0).normal(0, 0.02, (8000, 2000)).astype(np.float32)
    save_file({"in_proj_weight": weights[:6000], "out_proj.weight": weights[6000:]}, folder / "layer.safetensors")
    for name in ("run.safetensors", "run.npz"):
        Recording((trace_of_maps(maps, name="uploaded"),)).save(folder / name)
    return folder


@pytest.mark.parametrize("name", ["maps.npy", "layer.safetensors", "run.safetensors", "run.npz"])
def test_a_file_that_there_is_no_room_for_is_refused_before_it_is_read(folder, name, monkeypatch):
    answers = {"num_heads": 8} if name.startswith("layer") else {}
    assert source_of_file(folder / name, **answers).traces
    monkeypatch.setattr(BUDGET, "free", lambda: 150 * MB)
    with pytest.raises(Wrong, match=r"would take 9.* MiB while it is read, and 75 MiB may be used, half of what is free"):
        source_of_file(folder / name, **answers)
    if name.startswith("run"):
        with pytest.raises(Wrong, match="while it is read"):
            mv.load(folder / name)
    assert BUDGET.in_work == 0, "nothing stays reserved"


def test_parts_of_a_file_that_has_room_reserve_no_more(monkeypatch):
    monkeypatch.setattr(BUDGET, "free", lambda: 1000 * MB)
    with room_to_read("all", 100 * MB):
        with room_to_read("a part", 300 * MB):
            assert BUDGET.in_work == READING * 100 * MB
        with pytest.raises(Wrong, match="the other"), room_to_read("none", 0):
            raise Wrong("file", "the other", "is the other.")
    with room_to_read("none", 0), room_to_read("a part", 10 * MB):
        assert BUDGET.in_work == READING * 10 * MB, "nothing reserved is no room"
