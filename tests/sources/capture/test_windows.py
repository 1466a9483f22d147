"""Batch items that are windows of a model's own are named by their place, where the program shows it."""

import json

import pytest
import torch
from safetensors import safe_open
from safetensors.numpy import save_file
from torch import nn
from torch.nn import functional as F

import mha_viz
from mha_viz.core.rules import Wrong
from mha_viz.figures.overview import describe, spec
from mha_viz.settings import View
from tests.sources.capture.models import recorded

E, H, D = 8, 2, 4
IMAGES = torch.randn(2, 8, 12, E, generator=torch.Generator().manual_seed(0))  # [N, height, width, E]


class Attention(nn.Module):
    """Attention by hand of x [N, L, E]; where ``grid`` is a size, q is seen by rows and columns, as for relative positions."""

    def __init__(self, grid=None):
        super().__init__()
        self.qkv, self.out, self.grid = nn.Linear(E, 3 * E), nn.Linear(E, E), grid

    def forward(self, x):
        N, L, _ = x.shape
        q, k, v = self.qkv(x).view(N, L, 3, H, D).permute(2, 0, 3, 1, 4).reshape(3, N * H, L, D).unbind()  # [N·H, L, D] each
        w = (q @ k.transpose(1, 2) / D**0.5).softmax(-1)  # [N·H, L, L]
        heads = (w @ v).view(N, H, *(self.grid or (L,)), D)
        return self.out(heads.movedim(1, -2).flatten(-2)).view(N, L, E)


def windows(x, high=4, wide=4):
    N, height, width, _ = x.shape
    return x.view(N, height // high, high, width // wide, wide, E).transpose(2, 3).reshape(-1, high * wide, E)


def grid(x, high=4, wide=4):
    N, height, width, _ = x.shape
    return x.view(N, high, height // high, wide, width // wide, E).permute(0, 2, 4, 1, 3, 5).reshape(-1, high * wide, E)


class Windowed(nn.Module):
    """Attends within the parts that each of ``ways`` makes of images, one layer a way."""

    def __init__(self, *ways, of_grid=None):
        super().__init__()
        self.ways = ways
        self.layers = nn.ModuleList(Attention(of_grid) for _ in ways)

    def forward(self, x):
        for way, layer in zip(self.ways, self.layers, strict=True):
            x = x + layer(way(x)).sum() * 0
        return x


def names(*ways, x=IMAGES, of_grid=None, **filters):
    recording = recorded(Windowed(*ways, of_grid=of_grid).eval(), x, filters=filters)
    return [[trace.tokens.item_name(item) for item in range(len(trace.q))] for trace in recording.traces], recording


PLACES = [(n, i, j) for n in range(2) for i in range(2) for j in range(3)]


@pytest.mark.parametrize("of_grid", (None, (4, 4)))
def test_windows_grids_and_shifted_windows(of_grid):
    ways = windows, lambda x: windows(x.roll((-2, -2), (1, 2))), grid, lambda x: windows(x.roll(1, 1).roll(-1, 1))
    found, recording = names(*ways, of_grid=of_grid)
    kinds = "window", "shifted window", "grid window", "window"
    assert found == [[f"{kind} ({i}, {j}) of image {n}" for n, i, j in PLACES] for kind in kinds]
    assert [trace.shape for trace in recording.traces] == [(12, H, 16, 16)] * 4
    assert any(
        "its 12 items are grid windows of 16 tokens: item 0 is grid window (0, 0) of image 0." in n for n in recording.notes
    )


def test_windows_of_rows_that_are_one_sequence_keep_the_true_numbers_of_their_tokens():
    flat = IMAGES.flatten(1, 2)  # [N, 96, E]

    def unflattened(x):
        return windows(x.view(2, 8, 12, E))

    def shifted(x):
        return windows(x.view(2, 8, 12, E).roll(-1, 2))

    found, recording = names(unflattened, shifted, x=flat)
    assert found[0] == [f"window ({i}, {j}) of image {n}" for n, i, j in PLACES]
    assert found[1] == [f"shifted window ({i}, {j}) of image {n}" for n, i, j in PLACES]
    number = torch.arange(96.0).view(1, 8, 12, 1).expand(2, -1, -1, E)
    for trace, made in zip(recording.traces[:1], (windows(number),), strict=True):
        assert [[float(text) for text in item] for item in trace.query_tokens] == made[:, :, 0].tolist()
    assert "Tokens are numbered within each" not in next(note for note in recording.notes if "window (0, 0)" in note)


@pytest.mark.parametrize("joined", (True, False))
def test_blocks_of_a_sequence(joined):
    class Blocks(nn.Module):
        def __init__(self):
            super().__init__()
            self.qkv, self.out = nn.Linear(E, 3 * E), nn.Linear(E, E)

        def forward(self, x):
            q, k, v = self.qkv(x).view(2, 3, 4, 3, H, D).permute(3, 0, 1, 4, 2, 5).unbind()  # [N, blocks, H, 4, D] each
            if joined:
                q, k, v = (t.flatten(0, 1) for t in (q, k, v))  # [N·blocks, H, 4, D]
            heads = F.scaled_dot_product_attention(q, k, v)
            return self.out(heads.transpose(-3, -2).reshape(2, 12, E))

    (trace,) = recorded(Blocks().eval(), torch.randn(2, 12, E)).traces
    assert [trace.tokens.item_name(item) for item in range(6)] == [f"block {i} of item {n}" for n in range(2) for i in range(3)]
    assert trace.query_tokens[4] == trace.key_tokens[4] == ("4", "5", "6", "7")


def test_where_nothing_shows_it_items_are_numbered_and_said_to_be_parts():
    found, recording = names(
        lambda x: windows(x).sort(dim=1).values.clone().flip(0)[torch.arange(12).flip(0)[:, None], torch.arange(16)]
    )
    assert found == [[f"batch item {i}" for i in range(12)]]
    assert "its 12 items are 6 parts of 16 tokens, such as windows, of each of 2 batch items" in recording.notes[0]
    alone, recording = names(lambda x: x.flatten(1, 2))
    assert alone == [["batch item 0", "batch item 1"]] and not recording.notes


def test_filters_and_files_keep_the_names(tmp_path):
    (found,), recording = names(windows, items=(7, 2))
    assert found == ["window (0, 1) of image 1", "window (0, 2) of image 0"]
    for file in ("a.safetensors", "a.npz"):
        recording.save(tmp_path / file)
        assert mha_viz.load(tmp_path / file).traces[0].tokens.item_name(0) == found[0]


@pytest.mark.parametrize(
    "parts",
    (
        [],
        "window",
        {"kind": "window", "whole": "image"},
        {"kind": 3, "whole": "image", "places": [[0, 0]] * 12},
        {"kind": "window", "whole": "image", "places": [[0, 0]] * 11},
        {"kind": "window", "whole": "image", "places": [[0]] * 12},
        {"kind": "window", "whole": "image", "places": [[0, 0]] * 11 + [[0, 0, 0]]},
        {"kind": "window", "whole": "image", "places": [[0, -1]] * 12},
        {"kind": "window", "whole": "image", "places": [[0, 1.5]] * 12},
    ),
)
def test_names_that_do_not_fit_the_items_are_refused(parts, tmp_path):
    _, recording = names(windows)
    recording.save(tmp_path / "a.safetensors")
    with safe_open(tmp_path / "a.safetensors", "numpy") as file:
        tensors, about = {key: file.get_tensor(key) for key in file.keys()}, json.loads(file.metadata()["mha_viz"])  # noqa: SIM118
    about["calls"][0]["parts"] = parts
    save_file(tensors, tmp_path / "a.safetensors", {"mha_viz": json.dumps(about)})
    with pytest.raises(Wrong, match=r"calls\[0\].parts"):
        mha_viz.load(tmp_path / "a.safetensors")


def test_the_overview_calls_windows_what_they_are():
    _, recording = names(
        windows, lambda x: windows(x.roll(1, 2)), lambda x: windows(x, 2, 2), lambda x: windows(x, 4, 12)[:, :16]
    )
    traces = recording.traces
    said = " ".join(note["text"] for note in spec(traces, View(item=1), 0)["layout"]["annotations"])
    both = "item 1: window (0, 1) of image 0 in 1, shifted window (0, 1) of image 0 in 1"
    assert both in said and "1 other has windows of 4 × 4" in said and "another size" not in said
    assert both in describe(traces, View(item=1), 0)
    far = " ".join(note["text"] for note in spec(traces, View(item=7), 0)["layout"]["annotations"])
    assert "1 other has no window (0, 1) of image 1" in far
    narrow = " ".join(note["text"] for note in spec(traces, View(item=1), 0, width=390)["layout"]["annotations"])
    assert "3 layers; 1 other has windows of 4 × 4" in narrow and "shifted" not in narrow
