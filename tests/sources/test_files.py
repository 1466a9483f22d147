"""Opening files: what is in one is told by its content, asked about, and opened; whatever is wrong with it is a sentence."""

import io
import json
import pickle
import zipfile

import numpy as np
import pytest
import torch
from safetensors.numpy import save_file

import mha_viz as mv
from mha_viz.core.rules import Wrong
from mha_viz.sources.files import look, open_found, read
from mha_viz.stored import stored


def maps(*shape, seed=0, dtype=np.float32):
    """Random distributions along the last axis."""
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)).softmax(-1).numpy().astype(dtype)


def npy(array):
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def npz(**arrays):
    file = io.BytesIO()
    np.savez_compressed(file, **arrays)
    return file.getvalue()


def pt(value, **options):
    file = io.BytesIO()
    torch.save(value, file, **options)
    return file.getvalue()


def refused(name, data, **answers):
    """The sentence with which a file is refused."""
    with pytest.raises(Wrong) as caught:
        open_found(look(name, data), **answers)
    return str(caught.value)


# Recordings


@pytest.fixture
def run(tmp_path):
    """A saved recording of three items of 20 tokens."""
    path = tmp_path / "run.safetensors"
    mv.Recording((mv.synthetic(),), ("A note.",)).save(path)
    return path


@pytest.mark.parametrize("as_bytes", [False, True])
def test_a_recording_is_opened_as_it_was_saved(run, as_bytes):
    found = look("run.safetensors", run.read_bytes() if as_bytes else run)
    assert (found.kind, found.questions) == ("recording", ())
    assert found.holds == ("A recording of 1 attention call.", "A note.")
    np.testing.assert_allclose(open_found(found).traces[0].weights, mv.synthetic().weights, atol=1e-6)


def test_tokens_name_a_recordings_rows_and_columns(run):
    words = [[f"word {item}.{i}" for i in range(20)] for item in range(3)]
    trace = open_found(look("run.safetensors", run), tokens=words).traces[0]
    assert trace.query_tokens == trace.key_tokens == tuple(map(tuple, words))
    assert trace.query_padding[0].sum() == 3
    np.testing.assert_allclose(trace.weights, mv.synthetic().weights, atol=1e-6)


def test_a_recording_is_refused_by_its_own_name(tmp_path):
    path = tmp_path / "broken.safetensors"
    save_file({"0.q": np.zeros((1, 1, 2, 2), np.float32)}, path, {"mha_viz": json.dumps({"format": "another"})})
    message = refused("mine.safetensors", path.read_bytes())
    assert "'mine.safetensors'" in message
    assert "'another'" in message
    assert "tmp" not in message


# Attention maps


@pytest.mark.parametrize(
    ("shape", "axes", "opened"),
    [
        ((5, 5), "L S", (1, 1, 5, 5)),
        ((2, 5, 5), "H L S", (1, 2, 5, 5)),
        ((3, 2, 5, 5), "N H L S", (3, 2, 5, 5)),
        ((3, 2, 4, 7), "N H L S", (3, 2, 4, 7)),
        ((4, 3, 2, 5, 5), "layer N H L S", (3, 2, 5, 5)),
    ],
)
def test_the_usual_order_of_axes_is_guessed(shape, axes, opened):
    weights = maps(*shape)
    found = look("attention.npy", npy(weights))
    assert (found.kind, found.questions[-1].guess) == ("maps", axes)
    recording = open_found(found)
    assert len(recording.traces) == (4 if "layer" in axes else 1)
    for i, trace in enumerate(recording.traces):
        assert trace.weights.shape == opened
        np.testing.assert_array_equal(trace.weights.ravel(), (weights[i] if "layer" in axes else weights).ravel())


@pytest.mark.parametrize(
    ("shape", "axes", "opened"), [((2, 5, 3, 3, 7), "N H L L S", (2, 5, 9, 7)), ((5, 3, 3, 9), "H L L S", (1, 5, 9, 9))]
)
def test_queries_of_a_grid_are_offered_first_where_they_look_like_one(shape, axes, opened):
    """Two equal axes before keys that are others: 5 heads of 3 × 3 places, not layers or items of 3 heads."""
    weights = maps(*shape)
    found = look("attention.npy", npy(weights))
    question = found.questions[-1]
    assert question.guess == axes and {"layer N H L S", "N H L S"} & {*question.choices}
    recording = open_found(found)
    (trace,) = recording.traces
    np.testing.assert_array_equal(trace.weights, weights.reshape(opened))
    assert f"{opened[2]} queries (3 × 3)" in recording.notes[0]


@pytest.mark.parametrize("axes", ["N L H S", "L S N H", "S L H N", "H N L S"])
def test_any_order_of_axes_can_be_said(axes):
    weights = maps(3, 2, 4, 6)
    turned = weights.transpose(["NHLS".index(letter) for letter in axes.split()])
    found = look("attention.npy", npy(turned))
    assert axes in found.questions[-1].choices
    np.testing.assert_array_equal(open_found(found, axes=axes).traces[0].weights, weights)


def test_queries_are_taken_to_be_as_long_as_keys():
    found = look("attention.npy", npy(maps(3, 5, 2, 5)))
    assert found.questions[-1].guess == "N L H S"


def test_the_axis_that_sums_to_one_is_the_keys_and_the_file_says_so():
    question = look("attention.npy", npy(maps(2, 5, 5).swapaxes(1, 2))).questions[-1]
    assert all(choice.split()[1] == "S" for choice in question.choices)
    assert "along axis 1 alone" in question.check
    both = look("attention.npy", npy(np.full((2, 4, 4), 0.25))).questions[-1]
    assert "1, 2" in both.check
    assert {choice.split().index("S") for choice in both.choices} == {1, 2}
    assert "axes = 'S L H'" in refused("attention.npy", npy(maps(2, 5, 5)), axes="S L H")


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_every_floating_type_is_read(dtype, tmp_path):
    from safetensors.torch import save_file

    weights = torch.tensor(maps(3, 200, 300)).to(dtype)
    save_file({"a": weights}, tmp_path / "a.safetensors")
    for data in (tmp_path / "a.safetensors", pt(weights)):
        trace = open_found(look("a", data)).traces[0]
        np.testing.assert_array_equal(trace.weights[0], weights.float() if dtype == torch.bfloat16 else weights)
    mv.Recording((trace,)).save(tmp_path / "again.safetensors")
    np.testing.assert_array_equal(mv.load(tmp_path / "again.safetensors").traces[0].weights, trace.weights)


def test_arrays_of_one_shape_are_layers_in_their_natural_order():
    layers = {f"layer{i}": maps(1, 2, 5, 5, seed=i) for i in (10, 9, 1)}
    found = look("layers.npz", npz(**layers))
    assert found.questions[0].guess == "all"
    assert [trace.name for trace in open_found(found).traces] == ["layer1", "layer9", "layer10"]
    (one,) = open_found(found, array="layer9").traces
    np.testing.assert_array_equal(one.weights, layers["layer9"])


def test_the_attentions_that_a_model_returns_can_be_saved_as_they_are(tmp_path):
    attentions = tuple(torch.tensor(maps(2, 3, 6, 6, seed=i)) for i in range(3))
    torch.save(attentions, tmp_path / "attentions.pt")
    traces = open_found(look("attentions.pt", tmp_path / "attentions.pt")).traces
    assert len(traces) == 3
    np.testing.assert_array_equal(traces[2].weights, attentions[2])


def test_what_axes_can_be_asked_depends_on_the_array():
    found = look(
        "two.npz", npz(heads=maps(2, 3, 5, 5), mean=maps(2, 5, 5), hidden=np.ones((5, 8), np.float32), ids=np.arange(5))
    )
    assert found.questions[0].choices == ("heads", "mean")
    assert "hidden, ids" in found.holds[-1]
    assert found.ask(array="mean")[1].guess == "H L S"
    assert open_found(found, array="mean", axes="N L S").traces[0].weights.shape == (2, 1, 5, 5)
    with pytest.raises(Wrong, match="array"):
        found.ask(array="neither")


def test_rows_of_zeros_are_undefined_and_said_to_be():
    weights = maps(1, 2, 4, 4)
    weights[0, :, 1] = 0
    recording = open_found(look("attention.npy", npy(weights)))
    assert recording.traces[0].undefined[0].tolist() == [[False, True, False, False]] * 2
    assert "2 rows hold nothing but 0" in recording.notes[1]


@pytest.mark.parametrize(
    ("array", "said"),
    [
        (torch.randn(2, 5, 5, generator=torch.Generator().manual_seed(0)).numpy(), "before the softmax"),
        (maps(2, 5, 5) * 1.1, "does not sum to 1"),
        (np.where(np.arange(5) == 2, np.nan, maps(2, 5, 5)), "NaN in every row"),
        (np.full((2, 5, 5), np.nan), "nothing but NaN or 0"),
        (np.full((2, 5, 5), np.inf), "infinite"),
        (np.zeros((2, 0, 5)), "empty axis"),
        (np.arange(6).reshape(2, 3), "floating type"),
        (np.ones(5), "2 to 5 axes"),
        (np.ones((1,) * 6), "2 to 5 axes"),
        (np.array([["the", "cat"]]), "floating type"),
    ],
)
def test_what_is_no_attention_map_is_refused_with_what_it_looks_like(array, said):
    assert said in refused("attention.npy", npy(array))


def test_a_softmax_is_never_applied_twice():
    weights = maps(2, 5, 5)
    np.testing.assert_array_equal(open_found(look("a.npy", npy(weights))).traces[0].weights[0], weights)


# Tokens


@pytest.mark.parametrize(
    ("text", "items"),
    [
        ("the cat sat\n", (("the", "cat", "sat"),)),
        ("the\ncat\n\na\ndog\n", (("the", "cat"), ("a", "dog"))),
        ("\ufeffthe\r\ncat\r\n \r\na\r\ndog", (("the", "cat"), ("a", "dog"))),
        ('["the", "cat"]', (("the", "cat"),)),
        ('{"tokens": [["the"], ["a"]]}', (("the",), ("a",))),
        ("[CLS] the [SEP]", (("[CLS]", "the", "[SEP]"),)),
        ("<s> ▁the 🐈 <s>", (("<s>", "▁the", "🐈", "<s>"),)),
    ],
)
def test_token_lists(text, items):
    found = look("tokens", text.encode())
    assert found.kind == "tokens"
    assert found.content.lists() == (items, None)


def test_lines_of_several_words_are_asked_about():
    found = look("tokens.txt", b"New York\nis\n\nthe cat\nsat")
    (question,) = found.questions
    assert question.guess == "a token a line"
    assert found.content.lists()[0] == (("New York", "is"), ("the cat", "sat"))
    assert found.content.lists("split at white space")[0] == (("New", "York", "is"), ("the", "cat", "sat"))
    assert look("tokens.txt", b"the cat\n\na dog").questions[0].guess == "split at white space"


def test_tokens_alone_are_read_by_an_untrained_layer():
    recording = open_found(look("tokens.txt", b"the cat and the dog\n\na dog"))
    (trace,) = recording.traces
    assert "untrained" in recording.notes[0]
    assert trace.query_tokens == (("the", "cat", "and", "the", "dog"), ("a", "dog", "<pad>", "<pad>", "<pad>"))
    assert trace.query_padding.tolist() == [[False] * 5, [False, False, True, True, True]]
    assert (trace.weights[1, :, :, 2:] == 0).all()
    np.testing.assert_allclose(trace.weights[0, :, 0], trace.weights[0, :, 3], atol=1e-6)


def test_queries_and_keys_of_two_texts():
    found = look("tokens.json", json.dumps({"queries": ["a", "b"], "keys": [["x", "y", "z"]]}).encode())
    (trace,) = open_found(found).traces
    assert (trace.query_tokens, trace.key_tokens) == ((("a", "b"),), (("x", "y", "z"),))


def test_tokens_name_maps():
    found = look("attention.npy", npy(maps(2, 3, 4, 4)))
    trace = open_found(found, tokens=[["a", "b", "c", "d"], ["x", "y", "[PAD]", "[PAD]"]]).traces[0]
    assert trace.key_tokens[1] == ("x", "y", "[PAD]", "[PAD]")
    assert trace.query_padding.tolist() == [[False] * 4, [False, False, True, True]]
    cross = look("cross.npy", npy(maps(1, 2, 3)))
    trace = open_found(cross, axes="H L S", tokens=[["a", "b"]], key_tokens=[["x", "y", "z"]]).traces[0]
    assert (trace.query_tokens, trace.key_tokens) == ((("a", "b"),), (("x", "y", "z"),))


@pytest.mark.parametrize("words", [[["a", "b"]], [["a", "b", "c", "d"]] * 2, [["a"] * 5]])
def test_tokens_of_another_number_are_refused(words):
    said = refused("attention.npy", npy(maps(3, 4, 4)), tokens=words)
    assert "must name 4 tokens for each of 1 batch item" in said and "Crop the maps" in said and "numbered" in said


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (" \n ", "no token"),
        ("[1, 2]", "must be token lists"),
        ('[["a"], []]', "must be token lists"),
        ('{"words": ["a"]}', "words"),
        ('{"queries": [["a"], ["b"]], "keys": [["a"]]}', "as many items"),
        ("[" * 100_000, "must be JSON"),
        ('["a"', "must be JSON"),
        ('["\\ud800"]', "half a character"),
        ('{"tokens": [[["a"]]]}', "must be token lists"),
        ('{"tokens": {"a": 1}}', "must be token lists"),
    ],
)
def test_what_is_no_token_list_is_refused(text, said):
    assert said in refused("tokens.json", text.encode())


# Bad files


class Evil:
    """What a pickle can do: make a file."""

    def __init__(self, path):
        self.path = str(path)

    def __reduce__(self):
        return open, (self.path, "w")


@pytest.mark.parametrize("kind", ["pt", "old pt", "pickle", "npy", "npz"])
def test_code_in_a_file_is_never_run(kind, tmp_path):
    made = tmp_path / "made"
    objects = np.array([Evil(made)], object)
    data = {
        "pt": lambda: pt({"a": Evil(made)}),
        "old pt": lambda: pt({"a": Evil(made)}, _use_new_zipfile_serialization=False),
        "pickle": lambda: pickle.dumps(Evil(made)),
        "npy": lambda: npy(objects),
        "npz": lambda: npz(a=objects),
    }[kind]()
    assert not made.exists()
    path = tmp_path / "evil"
    path.write_bytes(data)
    for given in (data, path):
        assert "could run code from the file" in refused("evil", given)
    assert not made.exists()


def everything(tmp_path):
    """One good file of each kind, by name."""
    weights = maps(2, 3, 5, 5)
    save_file({"a": weights}, tmp_path / "a.safetensors")
    mv.Recording((mv.synthetic(mv.Settings(seq_len=4, padding=())),)).save(tmp_path / "run.safetensors")
    return {
        "a.safetensors": (tmp_path / "a.safetensors").read_bytes(),
        "run.safetensors": (tmp_path / "run.safetensors").read_bytes(),
        "a.npy": npy(weights),
        "a.npz": npz(a=weights, b=weights),
        "a.pt": pt({"a": torch.tensor(weights)}),
        "old.pt": pt({"a": torch.tensor(weights)}, _use_new_zipfile_serialization=False),
    }


def test_a_file_that_is_cut_off_is_refused_wherever_it_ends(tmp_path):
    for name, data in everything(tmp_path).items():
        open_found(look(name, data))
        for share in range(16):
            cut = data[: len(data) * share // 16]
            (tmp_path / "cut").write_bytes(cut)
            for given in (cut, tmp_path / "cut"):
                with pytest.raises(Wrong, match=name):
                    look(name, given)


def test_a_damaged_file_is_refused_or_read_but_never_breaks(tmp_path):
    random = np.random.default_rng(0)
    for name, data in everything(tmp_path).items():
        for _ in range(40):
            damaged = bytearray(data)
            for place in random.integers(0, min(len(data), 2000), 3):
                damaged[place] = random.integers(256)
            try:
                open_found(look(name, bytes(damaged)))
            except Wrong as wrong:
                str(wrong).encode()


def test_a_zip_bomb_is_refused_before_it_is_unpacked(monkeypatch):
    monkeypatch.setattr(stored, "LARGEST", 10**6)
    bomb = npz(a=np.zeros((1000, 1000), np.float32))
    assert len(bomb) < 10_000
    assert "4,000,128 bytes" in refused("bomb.npz", bomb)


def test_a_header_that_promises_more_than_there_is(tmp_path):
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(file, {"descr": "<f4", "fortran_order": False, "shape": (10**6, 10**6)})
    assert "4,000,000,000,000 bytes" in refused("a.npy", file.getvalue() + bytes(100))
    wide = torch.zeros(1).expand(10**6, 10**6)  # four bytes on the disk, and a shape that would take terabytes
    assert "would expand to 4,000,000,000,000" in refused("a.pt", pt(wide))


def test_a_compressed_pt_is_refused():
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("archive/data.pkl", b"0" * 10**6)
    assert "compressed" in refused("a.pt", file.getvalue())


def test_the_limits_are_stated(monkeypatch, tmp_path):
    monkeypatch.setattr(stored, "LARGEST", 500)
    monkeypatch.setattr(read, "LARGEST_TEXT", 10)
    for name, data in everything(tmp_path).items():
        assert "at most 500" in refused(name, data)
    assert "may have 10" in refused("tokens.txt", b"a " * 10)


@pytest.mark.parametrize(
    ("name", "data", "said"),
    [
        ("a.npy", b"", "is empty"),
        ("a.npy", b"the cat", "is named .npy"),
        ("a.safetensors", b"version https://git-lfs.github.com/spec/v1", "is named .safetensors"),
        ("picture.png", b"\x89PNG\r\n\x1a\n" + bytes(20), "byte 0 is 0x89"),
        ("zero", bytes(20), "is no text"),
        ("tokens.txt", "caf\u00e9".encode("latin-1"), "byte 3 is 0xe9"),
        ("a.docx", npz(a=np.zeros(2)).replace(b"a.npy", b"a.xml"), "something else"),
        ("empty.npz", npz(), "no tensor at all"),
        ("empty.pt", pt({}), "no tensor at all"),
        ("module.pt", pt(torch.nn.Linear(2, 2)), "state_dict()"),
        ("ids.pt", pt({"ids": torch.arange(4)}), "ids [4] int64"),
        ("names.pt", pt({"\ud800": torch.zeros(2, 2)}), "surrogates not allowed"),
        ("sparse.pt", pt(torch.eye(3).to_sparse()), "sparse"),
    ],
)
def test_what_cannot_be_opened_is_refused_with_the_reason(name, data, said):
    assert said in refused(name, data)


def test_a_path_that_is_no_file(tmp_path):
    assert "is no file" in refused("folder", tmp_path)
    assert "no such file" in refused("gone.npy", tmp_path / "gone.npy")


def test_a_name_that_is_not_utf8_can_be_shown():
    found = look("caf\udce9.npy", npy(maps(2, 2)))
    assert found.name == "caf?.npy"
    assert open_found(found).traces[0].name == "caf?"


def test_answers_to_questions_that_were_not_asked_are_refused():
    assert "is not asked of this file; these are: axes" in refused("a.npy", npy(maps(2, 2)), num_heads=4)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_maps_that_hold_a_number_that_is_none_open_and_say_so(value):
    weights = maps(2, 5, 5).copy()
    weights[1, 3, 2] = value
    recording = open_found(look("maps.npy", npy(weights)), axes="H L S")
    (trace,) = recording.traces
    assert np.argwhere(trace.nonfinite).tolist() == [[0, 1, 3]] and np.array_equal(trace.weights[0], weights, equal_nan=True)
    assert "1 row holds NaN or an infinite number beside others" in " ".join(recording.notes)
