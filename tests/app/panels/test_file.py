"""Files on the Models page: what is uploaded is looked at, asked about and opened; what is wrong with one is said, and nothing is lost."""

import io
import json

import numpy as np
import pytest
import torch
from safetensors.numpy import save as save_tensors
from torch import nn

import mha_viz as mv
from mha_viz import Batch, Settings, View, attend, synthetic
from mha_viz.analysis import choose
from mha_viz.analysis.examples import strongest
from mha_viz.app import opened as app_opened
from mha_viz.core.attend import trace_of_call
from mha_viz.core.budget import Budget
from mha_viz.core.call import Call
from mha_viz.core.trace import bytes_held
from mha_viz.recording import Cause
from mha_viz.settings import to_address
from mha_viz.sources.files import look, open_found
from mha_viz.stored import stored
from tests.app.screen import (
    decoded,
    errors,
    figure,
    held,
    models,
    page_text,
    pictures,
    press,
    sent,
    set_to,
    unescaped,
    whole,
    widgets,
)


def maps(*shape, seed=0):
    """Random distributions along the last axis."""
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)).softmax(-1).numpy()


def npy(array, **options):
    file = io.BytesIO()
    np.save(file, array, **options)
    return file.getvalue()


def npz(**arrays):
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


def pt(held):
    file = io.BytesIO()
    torch.save(held, file)
    return file.getvalue()


def recorded(*traces, notes=(), cause=None, folder):
    path = folder / "made.safetensors"
    mv.Recording(traces, notes, cause).save(path)
    return path.read_bytes()


@pytest.fixture
def two_calls(tmp_path):
    """A recording of two calls of three items, 20 tokens and 8 heads each."""
    return recorded(synthetic(), synthetic(Settings(seed=8)), notes=("A note.",), folder=tmp_path)


def upload(at, name, data):
    """Drop a file on the page."""
    return whole(at.get("file_uploader")[0].set_value((name, data, "application/octet-stream")).run())


def opened_with(name, data):
    """The page with a file of one's own that was just dropped on it."""
    return upload(models(source="file"), name, data)


def shows(at, trace, view=None):
    """Whether the picture holds exactly the weights of this Trace."""
    choice = choose(trace, view or View())
    tiles = [decoded(one["z"]) for one in figure(at)["data"] if one["type"] == "heatmap"]
    np.testing.assert_array_equal(tiles[-2], trace.weights[choice.item, choice.head])
    np.testing.assert_array_equal(tiles[-1], trace.mean_weights[choice.item])
    assert not at.exception and not at.error
    return True


def head(at):
    """The number of the chosen head."""
    return figure(at)["layout"]["meta"]["chosen"]["head"]


def test_at_first_the_page_says_what_can_be_opened():
    at = models(source="file")
    assert "a recording of your own model, its weights, or its attention maps" in page_text(at)
    assert at.get("file_uploader")[0].allowed_type == [".safetensors", ".pt", ".pth", ".npy", ".npz", ".txt", ".json"]
    assert not pictures(at)


def test_a_recording_opens_at_once(two_calls):
    at = opened_with("run.safetensors", two_calls)
    recording = open_found(look("run.safetensors", two_calls))
    assert shows(at, recording.traces[0])
    assert "run.safetensors · recording" in page_text(at).replace("**", "") and "A note." in page_text(at)
    assert at.query_params == {"source": "file", "file": "run.safetensors"}
    small = [decoded(one["z"]) for one in figure(at, "overview")["data"] if one["type"] == "heatmap"]
    np.testing.assert_array_equal(small, np.concatenate([trace.weights[0] for trace in recording.traces]))
    set_to(at, "view_layer", 1)
    assert shows(at, recording.traces[1])


def test_a_recording_opens_where_something_went_wrong(tmp_path):
    padded = synthetic(Settings(causal=True, padding_side="left"))
    cause = Cause(1, "Item 0, query 1 has no key.", 0, 3, 1)
    at = opened_with("run.safetensors", recorded(synthetic(), padded, cause=cause, folder=tmp_path))
    assert "Item 0, query 1 has no key." in errors(at)[0]
    assert at.query_params == {"source": "file", "file": "run.safetensors", "layer": "1", "head": "3", "cell": "1,"}
    assert np.isnan(decoded([one["z"] for one in figure(at)["data"] if one["type"] == "heatmap"][-1])[1]).all()


def test_a_cause_outside_attention_leads_to_the_first_layer(two_calls, tmp_path):
    """The model's input was NaN already: no layer is to blame, and the address stays one that can be read."""
    query = synthetic().batch.query.copy()
    query[0, 1, 0] = np.nan
    spoilt = attend(synthetic().layer, Batch(query))
    cause = Cause(None, "The model's input is not finite: argument 0 holds NaN or an infinite number.")
    at = opened_with("run.safetensors", recorded(spoilt, cause=cause, folder=tmp_path))
    assert "input is not finite" in errors(at)[0] and "whole number" not in page_text(at)
    assert at.query_params == {"source": "file", "file": "run.safetensors"}
    assert "q holds" in page_text(at) and "No mask made that" in page_text(at).replace("\\", "")
    assert "NaN, and no mask made it" in {trace.get("name") for trace in figure(at)["data"] if trace.get("showlegend")}


def test_the_address_names_what_is_chosen_while_nothing_is_open():
    at = models()
    set_to(at, "view_source", "file")
    assert at.query_params == {"source": "file"}
    set_to(at, "view_source", "trained")
    assert "source" not in at.query_params and not at.exception


def test_maps_are_opened_when_their_axes_are_said():
    weights = maps(3, 2, 5, 5)
    at = opened_with("attention.npy", npy(weights))
    assert "attention.npy · maps" in page_text(at).replace("**", "")
    assert not pictures(at), "nothing is shown before it is known"
    answer = next(widget for widget in widgets(at) if widget.key == "answer_attention.npy_axes")
    assert answer.value == "N H L S" and "N H S L" not in answer.options, "rows sum to 1 along the last axis"
    found = look("attention.npy", npy(weights))
    assert shows(press(at, "Open"), open_found(found).traces[0])
    at = opened_with("attention.npy", npy(weights))
    set_to(at, "answer_attention.npy_axes", "H N L S")
    assert shows(press(at, "Open"), open_found(found, axes="H N L S").traces[0])
    assert "Open" not in [button.label for button in at.button], "the questions are gone"


def test_a_file_can_be_left_unopened(two_calls):
    at = opened_with("run.safetensors", two_calls)
    before = sent(at)
    at = upload(at, "attention.npy", npy(maps(3, 2, 5, 5)))
    assert sent(at) == before, "what is open stays while questions stand"
    at = press(at, "Not now")
    assert sent(at) == before and "Open" not in [button.label for button in at.button]


@pytest.mark.parametrize("name", ["layer.pt", "layer.safetensors"])
def test_a_state_dict_asks_for_its_heads_and_reads_random_numbers(name):
    torch.manual_seed(3)
    state = nn.MultiheadAttention(16, 4).state_dict()
    data = pt(state) if name.endswith("pt") else save_tensors({key: value.numpy() for key, value in state.items()})
    at = opened_with(name, data)
    assert "It looks untrained" in page_text(at)
    heads = next(widget for widget in widgets(at) if widget.key == f"answer_{name}_num_heads")
    assert heads.options == ["1", "2", "4", "8", "16"] and heads.value is None, "nothing speaks for one of them"
    assert next(button for button in at.get("button") if button.label == "Open").disabled, "a question has no answer yet"
    set_to(at, heads.key, 4)
    assert shows(press(at, "Open"), open_found(look(name, data), num_heads=4).traces[0])
    assert "Your weights, random input" in page_text(at)


def test_one_list_names_the_tokens_of_all_items(two_calls):
    words = [f"word{i}" for i in range(20)]
    at = upload(opened_with("run.safetensors", two_calls), "words.json", json.dumps(words).encode())
    assert figure(at)["layout"]["meta"]["queries"] == words and "named by words.json" in page_text(at).replace("\\", "")
    set_to(at, "view_item", 2)
    assert figure(at)["layout"]["meta"]["queries"] == words


def test_a_token_list_names_what_is_open(two_calls):
    words = [[f"word{item}.{i}" for i in range(20)] for item in range(3)]
    at = opened_with("run.safetensors", two_calls)
    before = [one["z"] for one in figure(at)["data"] if one["type"] == "heatmap"]
    at = upload(at, "words.json", json.dumps(words).encode())
    meta = figure(at)["layout"]["meta"]
    assert meta["queries"] == meta["keys"] == words[0]
    assert [one["z"] for one in figure(at)["data"] if one["type"] == "heatmap"] == before, "names, and no number"
    assert at.query_params == {"source": "file", "file": "run.safetensors"}


def test_tokens_alone_are_read_by_an_untrained_layer():
    at = opened_with("words.txt", b"the\ncat\nsat")
    assert figure(at)["layout"]["meta"]["keys"] == ["the", "cat", "sat"]
    assert "read by an untrained layer" in page_text(at)


def test_one_goes_from_file_to_file(two_calls):
    at = opened_with("run.safetensors", two_calls)
    first = sent(at)
    at = press(upload(at, "attention.npy", npy(maps(2, 5, 5))), "Open")
    assert held(at)["opened_file"] == "attention.npy" and sent(at) != first
    set_to(at, "opened_file", "run.safetensors")
    assert sent(at) == first and at.query_params["file"] == "run.safetensors"
    set_to(at, "view_source", "trained")
    set_to(at, "view_source", "file")
    assert sent(at) == first, "a look at another source closes nothing"


def test_an_address_names_a_file_and_keeps_its_place(two_calls):
    at = models(source="file", file="run.safetensors", layer="1", head="5")
    assert "run.safetensors is not open in this session" in page_text(at).replace("**", "")
    at = upload(at, "run.safetensors", two_calls)
    assert shows(at, open_found(look("run.safetensors", two_calls)).traces[1], View(layer=1, head=5))


# What cannot be opened


class Attack:
    """Unpickled, it would write a file."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (str(self.path), "w")


GOOD = maps(3, 2, 20, 20)
STATE = {name: value.numpy() for name, value in nn.MultiheadAttention(16, 4).state_dict().items()}
BAD = {
    "empty": ("maps.npy", b"", "is empty"),
    "cut off": ("maps.npy", npy(GOOD)[:-100], "is cut off"),
    "cut off tensors": ("layer.safetensors", save_tensors(STATE)[:-100], "is cut off"),
    "cut off archive": ("layer.pt", pt(STATE)[:-100], "cannot be read"),
    "another kind": ("maps.npy", b"\x89PNG\r\n\x1a\n" + bytes(100), "does not begin as such a file does"),
    "no text": ("words.txt", b"\xff\xfe\x00\x01", "is not UTF-8 text"),
    "no tokens": ("words.json", b'{"a": 1}', "must be token lists"),
    "rows that are none": ("maps.npy", npy(np.ones((4, 4), np.float32)), "sum"),
    "objects": ("maps.npy", npy(np.array([{}, {}], object), allow_pickle=True), "holds Python objects"),
    "no attention": (
        "layer.pt",
        pt({"conv.weight": torch.full((3, 3, 3), -1.0)}),
        "no attention layer by a name that is known",
    ),
    "shapes that do not fit": (
        "layer.safetensors",
        save_tensors(STATE | {"out_proj.weight": np.zeros((8, 8), np.float32)}),
        "shape",
    ),
    "too many names": (
        "words.json",
        json.dumps([["a"] * 21] * 3).encode(),
        "for each of 3 batch items, and item 0 has 21 names",
    ),
    "names of too few items": ("words.json", json.dumps([["a"] * 20] * 2).encode(), "must be one for each batch item, 3"),
}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return recorded(synthetic(), folder=tmp_path_factory.mktemp("files"))


@pytest.mark.slow
@pytest.mark.parametrize(("name", "data", "said"), BAD.values(), ids=list(BAD))
def test_a_bad_file_is_named_and_what_is_open_stays(run, name, data, said):
    at = upload(opened_with("run.safetensors", run), "attention.npy", npy(maps(2, 5, 5)))
    before = sent(at)
    at = upload(at, name, data)
    assert len(errors(at)) == 1 and said in errors(at)[0] and not at.exception
    assert "Traceback" not in page_text(at) and "/tmp" not in page_text(at)
    assert sent(at) == before
    assert at.query_params == {"source": "file", "file": "run.safetensors"}
    assert list(at.session_state["opened"]) == ["run.safetensors"], "nothing half-opened"
    assert "answer_attention.npy_axes" in held(at), "questions stand as they stood"
    assert not upload(at, "words.json", json.dumps([["a"] * 20] * 3).encode()).error, "the next one is right"


def test_maps_that_hold_nan_open_and_the_cell_is_marked_and_named():
    weights = GOOD.copy()
    weights[0, 1, 2, 3] = np.nan
    at = press(opened_with("maps.npy", npy(weights)), "Open")
    assert not at.error and not at.exception
    assert "1 row holds NaN or an infinite number beside others" in page_text(at)
    assert "item 0, head 1, query 2" in page_text(at)
    assert "NaN, and no mask made it" in {trace.get("name") for trace in figure(at)["data"] if trace.get("showlegend")}


def test_numbers_in_weights_that_are_none_are_said_before_they_are_opened():
    weights = {name: array.copy() for name, array in STATE.items()}
    weights["in_proj_weight"][3, 5] = np.nan
    at = opened_with("layer.safetensors", save_tensors(weights))
    assert "1 NaN of" in page_text(at) and "all that they make is NaN" in page_text(at)
    set_to(at, "answer_layer.safetensors_num_heads", 4)
    at = press(at, "Open")
    assert not at.exception and "all that they make is NaN" in page_text(at)


def test_code_in_a_file_is_never_run(tmp_path):
    written = tmp_path / "attacked"
    for data in (pt({"a": Attack(written)}), npy(np.array([Attack(written)], object), allow_pickle=True)):
        at = opened_with("layer.pt" if data.startswith(b"PK") else "maps.npy", data)
        assert "could run code" in errors(at)[0]
        assert not written.exists() and not pictures(at)


def test_a_file_that_is_too_large_is_refused_with_the_limit(monkeypatch):
    monkeypatch.setattr(stored, "LARGEST", 1000)
    assert "at most 1,000 are read at once" in errors(opened_with("maps.npy", npy(GOOD)))[0]


# Weights read an input; a known output answers what they leave open


@pytest.fixture(scope="module")
def known():
    """A layer's weights, an input [2, 6, 16] and its output, and its weights on the way, the heads' [2, 4, 6, 6]."""
    torch.manual_seed(3)
    layer = nn.MultiheadAttention(16, 4, batch_first=True).eval()
    query = torch.randn(2, 6, 16)
    with torch.no_grad():
        output, weights = layer(query, query, query, average_attn_weights=False)
    return pt(layer.state_dict()), query.numpy(), output.numpy(), weights.numpy()


def give(at, key, name, data):
    """Drop a file on another place than the page's first."""
    place = next(one for one in at.get("file_uploader") if one.key == key)
    return whole(place.set_value((name, data, "application/octet-stream")).run())


def test_a_known_output_answers_the_questions(known):
    state, query, output, weights = known
    at = opened_with("layer.pt", state)
    at = give(at, "known", "known.npz", npz(query=query, output=output))
    assert "num_heads = 4" in unescaped(at.success[0].value)
    assert held(at)["answer_layer.pt_num_heads"] == 4
    at = give(press(at, "Open"), "input_upload", "query.npy", npy(query))
    assert "Your weights, your input" in page_text(at)
    tiles = [decoded(one["z"]) for one in figure(at)["data"] if one["type"] == "heatmap"]
    np.testing.assert_allclose(tiles[-2], weights[0, head(at)], atol=1e-6)


@pytest.mark.parametrize(
    ("array", "said"),
    [
        (np.zeros((2, 6, 8), np.float32), "must be [N, L, E] or [L, E], where E is the layer's, 16"),
        (np.full((2, 6, 16), "a"), "the array = <U1**: must be of floating type"),
    ],
)
def test_an_input_that_does_not_fit_is_named_and_the_last_one_stays(known, array, said):
    at = press(set_to(opened_with("layer.pt", known[0]), "answer_layer.pt_num_heads", 4), "Open")
    before = sent(at)
    at = give(at, "input_upload", "query.npy", npy(array))
    assert len(at.error) == 1 and said in errors(at)[0] and not at.exception
    assert sent(at) == before


def test_a_known_output_of_another_size_is_named_and_the_questions_stand(known):
    state, query, output, _ = known
    at = opened_with("layer.pt", state)
    for data, said in ((npz(query=query), "output"), (npz(query=query, output=output[:, :5]), "same axes but for the last")):
        at = give(at, "known", "known.npz", data)
        assert said in errors(at)[0] and not at.exception and "answer_layer.pt_num_heads" in held(at)


def test_a_known_output_that_no_answer_gives_answers_nothing(known):
    state, query, output, _ = known
    at = give(opened_with("layer.pt", state), "known", "known.npz", npz(query=query, output=output + query))
    assert not at.success and held(at)["answer_layer.pt_num_heads"] is None
    said = errors(at)[0]
    assert (
        "comes of none of the" in said
        and "rotation of q and k (RoPE" in said
        and f"is {np.abs(output + query).max():.3g}" in said
    )


# What a file can and cannot show


def test_maps_alone_cannot_be_weighted_by_values_and_say_why():
    at = press(opened_with("attention.npy", npy(maps(2, 5, 5))), "Open")
    at.session_state["popover_scale"] = True
    switch = next(widget for widget in widgets(at.run()) if widget.key == "view_weighting")
    assert switch.disabled and "the values v are not known, only weights" in switch.proto.help


def test_what_if_in_the_layer_that_is_shown(two_calls):
    at = opened_with("run.safetensors", two_calls)
    set_to(at, "view_layer", 1)
    at.session_state["popover_what_if"] = True
    at.run()
    set_to(at, "what_if_off", [(1, 2)])
    trace = open_found(look("run.safetensors", two_calls)).traces[1]
    off = mv.changed(trace, mv.Intervention({2: "zero"}))
    assert at.query_params["what_if"] == "1:2=zero"
    assert shows(at, off, View(layer=1))
    assert "What if: Layer 1, head 2 is off" in page_text(at)
    set_to(at, "what_if_keys", "20")
    assert "names key 20, and there are 20" in errors(at)[0]
    set_to(at, "what_if_keys", "19")
    assert not at.error and at.query_params["what_if"] == "1:2=zero 1:keys=19"
    assert "what_if" not in press(at, "Undo all").query_params
    assert shows(at, trace)


def test_maps_alone_have_no_temperature_and_say_so():
    at = press(opened_with("attention.npy", npy(maps(2, 5, 5))), "Open")
    at.session_state["popover_what_if"] = True
    set_to(at.run(), "what_if_temperature", 2.0)
    assert "needs q and k" in errors(at)[0] and not at.exception


def test_one_layer_beside_another(two_calls):
    at = press(opened_with("run.safetensors", two_calls), "Pin as A")
    assert at.query_params["pinned"] == "file=run.safetensors"
    set_to(at, "view_layer", 1)
    traces = open_found(look("run.safetensors", two_calls)).traces
    head = choose(traces[1], View()).head
    tiles = [decoded(one["z"]) for one in figure(at)["data"] if one["type"] == "heatmap"]
    change = traces[1].weights[0, head] - traces[0].weights[0, head]
    assert any(np.allclose(tile, change, atol=1e-7) for tile in tiles)
    at = press(press(at, "Unpin A"), "Pin as A")
    assert at.query_params["pinned"] == "file=run.safetensors&layer=1", "what is shown is what is pinned"
    at = set_to(at, "view_layer", 0)
    head = choose(traces[0], View()).head
    change = traces[0].weights[0, head] - traces[1].weights[0, head]
    assert any(np.allclose(decoded(one["z"]), change, atol=1e-7) for one in figure(at)["data"] if one["type"] == "heatmap")
    at = models(source="file", file="run.safetensors", pinned="file=gone.npy")
    at = upload(at, "run.safetensors", two_calls)
    assert "gone.npy: is not open in this session" in page_text(at)


def test_examples_are_looked_for_in_all_calls_of_a_module(two_calls):
    at = opened_with("run.safetensors", two_calls)
    at.session_state["head_panel"] = True
    at.run()
    assert "over 6 sequences" in page_text(at)
    labels = [unescaped(button.label) for button in at.button if str(button.key).startswith("example")]
    assert len(labels) == 8
    first = strongest([trace for trace in open_found(look("run.safetensors", two_calls)).traces], head(at), 8, sink=False)[0]
    press(at, labels[0])
    view = View(layer=first.trace, item=first.item, cell=(first.query, first.key))
    assert at.query_params == {"source": "file", "file": "run.safetensors"} | to_address(**vars(view))


def test_a_recording_without_attention_says_why(tmp_path):
    """As one that waited for NaN and met none."""
    mv.Recording((), ("Nothing became NaN or infinite in 3 steps.",)).save(tmp_path / "run.safetensors")
    at = opened_with("run.safetensors", (tmp_path / "run.safetensors").read_bytes())
    assert "holds no attention" in page_text(at) and "Nothing became NaN or infinite in 3 steps" in page_text(at)
    assert not at.exception and not pictures(at)


def test_what_a_list_of_tokens_asks_of_one_file_is_not_asked_of_another():
    at = press(opened_with("attention.npy", npy(maps(1, 2, 8, 8))), "Open")
    at = upload(at, "words.txt", b"the cat sat")
    at = press(upload(at, "small.npy", npy(maps(1, 2, 2, 2))), "Open")
    assert "1 item × 2 heads × 2 queries × 2 keys" in page_text(at) and "and the maps have" not in page_text(at)


@pytest.mark.parametrize(
    ("label", "tokens", "note"),
    [
        ("Crop the maps", ["the", "cat", "sat"], "cropped to the 3 tokens that it names"),
        ("Number the rest", ["the", "cat", "sat", "3", "4", "5", "6", "7"], "names 3 of 8 tokens, and the rest are numbered"),
        ("Leave the names out", [*map(str, range(8))], ""),
    ],
)
def test_a_list_that_names_fewer_tokens_than_there_are_asks_whether_to_crop_or_to_number(label, tokens, note):
    weights = maps(1, 2, 8, 8)
    at = press(opened_with("attention.npy", npy(weights)), "Open")
    at = upload(at, "words.txt", b"the cat sat")
    assert "words.txt names 3 tokens, and the maps have 8." in page_text(at).replace("**", "") and not at.error
    at = press(at, label)
    assert figure(at)["layout"]["meta"]["queries"] == tokens and note in page_text(at) and not at.exception
    assert "and the maps have 8" not in page_text(at)
    shown = weights[:, :, :3, :3] / weights[:, :, :3, :3].sum(-1, keepdims=True) if len(tokens) == 3 else weights
    tiles = [decoded(one["z"]) for one in figure(at)["data"] if one["type"] == "heatmap"]
    np.testing.assert_allclose(tiles[-1], shown[0].mean(0), rtol=0, atol=1e-6)


def test_what_is_open_is_counted_and_can_be_closed(monkeypatch):
    budget = Budget(limit=300_000)  # bytes
    monkeypatch.setattr(app_opened, "BUDGET", budget)
    one = npy(maps(1, 4, 100, 100))  # 160 kB, and 40 kB of masks
    at = press(opened_with("one.npy", one), "Open")
    assert sum(sum(held.values()) for held in budget._open.values()) == 200_000 + 400
    at = press(upload(at, "two.npy", one), "Open")
    (said,) = errors(at)
    assert (
        said.startswith("**file = two.npy**: would take 195.7 KiB")
        and "You have 195.7 KiB open: one.npy (195.7 KiB). Close" in said
    )
    assert at.query_params["file"] == "one.npy" and pictures(at), "what was open stays open"
    at = press(at, "Close this file")
    assert budget.opened == 0 and not pictures(at) and not at.exception
    at = press(at, "Open")
    assert at.query_params["file"] == "two.npy" and pictures(at) and not errors(at)


def test_of_several_files_the_one_that_is_looked_at_is_closed(two_calls):
    at = upload(opened_with("a.safetensors", two_calls), "b.safetensors", two_calls)
    at = press(at, "Close this file")
    assert at.query_params["file"] == "a.safetensors" and pictures(at) and list(at.session_state.opened) == ["a.safetensors"]
    at = press(at, "Close this file")
    assert "Open a file on the left" in page_text(at) and not at.exception


def test_bytes_that_are_shared_are_counted_once():
    q = np.zeros((1, 2, 10, 4), np.float32)
    trace = trace_of_call(Call(q, q + 1, q + 2))
    assert bytes_held([trace]) == bytes_held([trace, trace]) == 3 * q.nbytes
    _ = trace.weights
    assert bytes_held([trace]) > 3 * q.nbytes
    trace.forget()
    assert bytes_held([trace]) == 3 * q.nbytes
