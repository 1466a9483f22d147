"""The two models that packages ship, on real sentences: against their own eager attentions, and heads that are known for what they do."""

import doctest

import numpy as np
import pytest

from mha_viz.analysis.statistics import STATISTICS, statistic, why_not
from mha_viz.sources.pretrained import Pretrained, pretrained
from mha_viz.sources.pretrained.load import load

MINILM, SMOLLM2 = "all-MiniLM-L6-v2", "SmolLM2-135M-Instruct"
TEXT = "The quick brown fox jumps over the lazy dog because it was tired.\nUnbelievably, naïve foxes don’t mind 🦊."


def own(name, text):
    """(the model's own eager attentions, [N, H, L, L] each; real [N, L])."""
    import torch

    loaded = load(name)
    given = loaded.tokenizer(text.splitlines(), padding=True, padding_side="right", return_tensors="pt")
    with torch.no_grad():
        theirs = [one.numpy() for one in loaded.model(**given, output_attentions=True).attentions]
    return theirs, given["attention_mask"].numpy() == 1


@pytest.mark.parametrize(("name", "layers", "heads"), [(MINILM, 6, 12), (SMOLLM2, 30, 9)])
def test_weights_are_the_models_own(shipped, name, layers, heads):
    assert shipped(name)
    theirs, real = own(name, TEXT)
    traces = pretrained(Pretrained(name, TEXT)).traces
    assert len(traces) == len(theirs) == layers
    for trace, maps in zip(traces, theirs, strict=True):
        L = maps.shape[-1]
        assert maps.shape[1] == heads
        ours = trace.probabilities[:, :, :L, :L].swapaxes(1, 2)[real]  # [real queries, H, L]
        np.testing.assert_allclose(ours, maps.swapaxes(1, 2)[real], atol=1e-5)
        assert trace.has("q", "k", "v", "output")


def test_a_head_of_minilm_reads_the_token_before(shipped):
    assert shipped(MINILM)
    trace = pretrained(Pretrained(MINILM, TEXT)).traces[0]
    assert statistic(trace, 0, "previous")[2] > 0.9


def test_a_head_of_smollm2_finds_what_came_after_the_same_token_before(shipped):
    """Olsson et al., In-context Learning and Induction Heads, 2022: the same random words twice."""
    assert shipped(SMOLLM2)
    words = " lamp river seven coat under glass march yellow stone bread window train"
    trace = pretrained(Pretrained(SMOLLM2, words * 2)).traces[18]
    assert trace.query_tokens[0] == tuple(f" {word}" for word in words.split()) * 2
    assert statistic(trace, 0, "induction")[6] > 0.7


def test_grouped_heads_and_rounded_weights_are_told(shipped):
    assert shipped(SMOLLM2)
    notes = pretrained(Pretrained(SMOLLM2, TEXT)).notes
    assert notes[0] == f"{SMOLLM2}: LlamaModel, 30 layers of 9 heads, which share 3 key and value heads, in float32."
    assert any("GGUF" in note for note in notes)


def test_letters_of_several_tokens_are_readable(shipped):
    assert shipped(SMOLLM2)
    tokens = pretrained(Pretrained(SMOLLM2, "naïve 🦊")).traces[0].query_tokens[0]
    assert tokens[0] == "na" and not {"Ġ", "Ã"} & set("".join(tokens))


def test_what_was_read_can_be_saved_and_opened(shipped, tmp_path):
    import mha_viz as mv

    assert shipped(MINILM)
    for join in (False, True):
        recording = pretrained(Pretrained(MINILM, TEXT, join=join))
        recording.save(tmp_path / "run.safetensors")
        again = mv.load(tmp_path / "run.safetensors")
        np.testing.assert_allclose(again.traces[3].probabilities, recording.traces[3].probabilities, atol=1e-6)
        assert again.traces[3].query_tokens == recording.traces[3].query_tokens
        assert again.notes == recording.notes


def test_every_statistic_reads_words_too_but_for_what_needs_values(shipped):
    assert shipped(MINILM)
    trace = pretrained(Pretrained(MINILM, "Unbelievable: the fox saw the fox.", join=True)).traces[0]
    unknown = [name for name in STATISTICS if why_not(trace, 0, name)]
    assert unknown == ["contribution"]


def test_the_example_in_the_docstring_gives_what_it_says(shipped):
    """It is skipped where examples are run, since few have the model."""
    assert shipped(MINILM)
    (test,) = doctest.DocTestFinder(recurse=False).find(pretrained, "pretrained", globs={})
    for example in test.examples:
        example.options.clear()
    said = []
    result = doctest.DocTestRunner(verbose=False).run(test, out=said.append)
    assert result.attempted >= 4 and not result.failed, "".join(said)
