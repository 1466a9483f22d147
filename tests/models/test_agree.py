"""What is shown of a pretrained model is what the model itself computes, a family of models at a time."""

import subprocess
import sys

import numpy as np
import pytest

from mha_viz.core.intervention import Intervention, changed
from mha_viz.sources.pretrained import Pretrained, pretrained

TEXT = "the foxes jump so\nit don't"
ATTENDING = ("bert", "albert", "roberta", "deberta", "gpt2", "llama", "mistral", "gemma2", "bloom", "falcon", "t5")
OUTPUT = {"bert": "attention.output.dense", "gpt2": "attn.c_proj", "llama": "self_attn.o_proj"}


def own(folder, text):
    """(the model's own eager attentions, what each of its output projections gave, real [N, L]) for these lines."""
    import torch
    from transformers import AutoModel, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    tokenizer.pad_token = tokenizer.pad_token or tokenizer.eos_token
    model = AutoModel.from_pretrained(folder, attn_implementation="eager").eval()
    model = model.get_encoder() if model.config.is_encoder_decoder else model
    given = tokenizer(text.splitlines(), padding=True, padding_side="right", return_tensors="pt")
    if model.config.model_type in ("roberta", "t5"):
        given.pop("token_type_ids", None)
    outputs, hooks = [], []
    for name, module in model.named_modules():
        if name.endswith(tuple(OUTPUT.values())):
            hooks.append(module.register_forward_hook(lambda _, __, output: outputs.append(output.numpy())))
    with torch.no_grad():
        attentions = [one.numpy() for one in model(**given, output_attentions=True).attentions]  # [N, H, L, L] each
    return attentions, outputs, given["attention_mask"].numpy() == 1


@pytest.mark.parametrize("family", ATTENDING)
def test_weights_are_the_models_own(saved, family):
    attentions, _, real = own(saved(family), TEXT)
    traces = pretrained(Pretrained(saved(family), TEXT)).traces
    assert [trace.name for trace in traces] == [f"layer {i}" for i in range(len(attentions))]
    for trace, theirs in zip(traces, attentions, strict=True):
        assert trace.probabilities.shape == theirs.shape
        np.testing.assert_array_equal(trace.query_padding, ~real)
        ours, theirs = (maps.swapaxes(1, 2)[real] for maps in (trace.probabilities, theirs))  # [real queries, H, L]
        np.testing.assert_allclose(ours, theirs, atol=1e-5)
        assert theirs.max() > 0.5  # and not all alike


@pytest.mark.parametrize("family", OUTPUT)
def test_outputs_are_the_models_own(saved, family):
    _, outputs, real = own(saved(family), TEXT)
    for trace, theirs in zip(pretrained(Pretrained(saved(family), TEXT)).traces, outputs, strict=True):
        np.testing.assert_allclose(trace.output[real], theirs[real], rtol=1e-5, atol=1e-5)


def test_grouped_key_heads_stay_grouped_and_are_told(saved):
    recording = pretrained(Pretrained(saved("llama"), TEXT))
    assert recording.traces[0].call.k.shape[1] == 2
    assert "4 heads, which share 2 key and value heads" in recording.notes[0]


def test_rules_are_found_again(saved):
    causal = pretrained(Pretrained(saved("gpt2"), TEXT)).traces[0].rules
    assert (
        causal.causal and causal.padded.tolist() == pretrained(Pretrained(saved("gpt2"), TEXT)).traces[0].query_padding.tolist()
    )
    window = pretrained(Pretrained(saved("mistral"), TEXT)).traces[0].rules
    assert (window.causal, window.window) == (True, 4)


@pytest.mark.parametrize("family", ["bloom", "t5"])
def test_what_a_model_adds_to_its_scores_is_the_masks_bias(saved, family):
    trace = pretrained(Pretrained(saved(family), TEXT)).traces[0]
    assert trace.rules.bias is not None and trace.rules.bias.any()


def test_weights_that_do_not_follow_from_scores_come_as_maps(saved):
    recording = pretrained(Pretrained(saved("gemma2"), TEXT))
    assert not recording.traces[0].has("q")
    assert sum("tanh" in note for note in recording.notes) == 1


def test_of_an_encoder_and_decoder_the_encoder_is_shown_and_said_to_be(saved):
    recording = pretrained(Pretrained(saved("t5"), TEXT))
    assert len(recording.traces) == 2
    assert any("the encoder reads the text" in note for note in recording.notes)


def test_texts_read_together_are_read_as_each_alone(saved):
    for family in ("bert", "gpt2"):
        together = pretrained(Pretrained(saved(family), TEXT, crop=1)).traces[-1]
        alone = pretrained(Pretrained(saved(family), TEXT.splitlines()[1])).traces[-1]
        np.testing.assert_allclose(together.probabilities, alone.probabilities, atol=1e-5)
        np.testing.assert_allclose(together.output, alone.output, rtol=1e-4, atol=1e-4)


def test_a_second_text_is_told_from_the_first(saved):
    import torch
    from transformers import AutoModel, AutoTokenizer

    trace = pretrained(Pretrained(saved("bert"), "the fox", "so it")).traces[0]
    assert trace.query_tokens == (("[CLS]", "the", "fox", "[SEP]", "so", "it", "[SEP]"),)
    tokenizer, model = (
        AutoTokenizer.from_pretrained(saved("bert")),
        AutoModel.from_pretrained(saved("bert"), attn_implementation="eager"),
    )
    with torch.no_grad():
        theirs = (
            model.eval()(**tokenizer("the fox", "so it", return_tensors="pt"), output_attentions=True).attentions[0].numpy()
        )
    np.testing.assert_allclose(trace.probabilities, theirs, atol=1e-5)


def test_a_layer_can_be_changed(saved):
    trace = pretrained(Pretrained(saved("llama"), TEXT)).traces[0]
    what_if = changed(trace, Intervention(off={1: "zero"}, hidden_keys=(0,)))
    assert (what_if.head_outputs[:, 1][~what_if.undefined[:, 1]] == 0).all()
    assert what_if.weights[:, 0, 1:, 0].max() == 0 < trace.weights[:, 0, 1:, 0].max()


def test_the_heavy_import_is_out_of_the_garbage_collectors_walk():
    code = (
        "import gc, sys; from mha_viz.sources.pretrained import warm_up; warm_up(); "
        "print('transformers' in sys.modules, gc.get_freeze_count())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    imported, frozen = done.stdout.split()
    assert imported == "True" and int(frozen) > 100_000
