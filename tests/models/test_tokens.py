"""Tokens as texts, words as tokens joined, special tokens set aside, padding cropped."""

import shutil
from copy import deepcopy
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from mha_viz.core.attend import call_of
from mha_viz.core.rules import Wrong
from mha_viz.sources.pretrained import Pretrained, pretrained
from mha_viz.sources.pretrained.encode import encode
from mha_viz.sources.pretrained.load import load

SPLIT = "the unbelievable foxes\nit"


def tokens(folder, text, **options):
    return pretrained(Pretrained(folder, text, **options)).traces[0].query_tokens


def test_pieces_of_words_keep_their_mark_and_special_tokens_their_name(saved):
    assert tokens(saved("bert"), "the unbelievable FOXES") == (
        ("[CLS]", "the", "un", "##believ", "##able", "fox", "##es", "[SEP]"),
    )


def test_bytes_are_the_letters_that_they_are(saved):
    assert tokens(saved("gpt2"), "the fox né") == (("the", " fox", " ", "n", r"\xc3", r"\xa9"),)


def test_a_letter_in_one_token_is_whole(saved):
    from mha_viz.sources.pretrained.encode import readable

    assert readable(load(saved("gpt2")).tokenizer, ["ĠnÃ©", "ĠðŁĺ", "<|endoftext|>"]) == [
        " né",
        r" \xf0\x9f\x98",
        "<|endoftext|>",
    ]


def test_tokens_that_somebody_added_are_as_they_were_added(saved):
    from mha_viz.sources.pretrained.encode import readable

    for family, added in (("gpt2", "né"), ("llama", "<end▁of>")):
        tokenizer = deepcopy(load(saved(family)).tokenizer)
        tokenizer.add_tokens([added])
        assert readable(tokenizer, [added]) == [added]
    assert readable(load(saved("gpt2")).tokenizer, ["漢"]) == ["漢"]  # no letter of bytes


def test_a_mark_for_a_space_is_a_space(saved):
    assert tokens(saved("llama"), "the fox") == (("<s>", " the", " fox"),)


def test_shorter_texts_are_padded_at_their_end_though_the_tokenizer_knows_no_padding(saved):
    trace = pretrained(Pretrained(saved("gpt2"), "the fox\nthe")).traces[0]
    assert trace.query_tokens == (("the", " fox"), ("the", "<pad>"))
    assert trace.query_padding.tolist() == [[False, False], [False, True]]


# Words


def test_a_words_row_is_the_average_of_its_tokens_and_its_column_their_sum(saved):
    folder = saved("bert")
    apart, words = (pretrained(Pretrained(folder, SPLIT, join=join)).traces[1] for join in (False, True))
    assert words.query_tokens[0] == ("[CLS]", "the", "unbelievable", "foxes", "[SEP]")
    assert words.query_tokens[1] == ("[CLS]", "it", "[SEP]", "[PAD]", "[PAD]")
    assert words.query_padding.tolist() == [[False] * 5, [False] * 3 + [True] * 2]
    groups = [[0], [1], [2, 3, 4], [5, 6], [7]]
    for i, rows in enumerate(groups):
        for j, columns in enumerate(groups):
            expected = sum(apart.weights[0, :, row, column] for row in rows for column in columns) / len(rows)
            np.testing.assert_allclose(words.weights[0, :, i, j], expected, atol=1e-6)
    np.testing.assert_allclose(words.weights.sum(axis=-1), 1, atol=1e-5)
    assert not words.has("q")


def test_words_of_every_item_come_to_one_number_whatever_their_padding(saved):
    trace = pretrained(Pretrained(saved("bert"), "unbelievable\nso so so so", join=True)).traces[0]
    assert trace.query_tokens == (
        ("[CLS]", "unbelievable", "[SEP]", "[PAD]", "[PAD]", "[PAD]"),
        ("[CLS]", "so", "so", "so", "so", "[SEP]"),
    )
    assert not trace.undefined.any()


def test_padding_that_only_words_need_is_not_shown_with_tokens(saved):
    assert [len(item) for item in tokens(saved("bert"), "unbelievable\nso so so so")] == [6, 6]


@pytest.mark.parametrize(("family", "words"), [("gpt2", ("the", "fox", "'t", ".")), ("llama", ("<s>", "the", "fox't."))])
def test_words_are_the_tokenizers_and_never_reach_over_white_space(saved, family, words):
    assert tokens(saved(family), "the fox't.", join=True) == (words,)


def test_white_space_that_is_a_word_to_the_tokenizer_stays_to_be_seen(saved):
    assert tokens(saved("gpt2"), "the  fox", join=True) == (("the", " ", "fox"),)


def test_white_space_that_the_tokens_leave_out_parts_words(saved):
    from types import SimpleNamespace

    from mha_viz.sources.pretrained.encode import _words

    class Read(SimpleNamespace):
        def __getitem__(self, name):
            return getattr(self, name)

    one = Read(
        tokens=lambda: ["▁the", "▁fo", "x"],
        offset_mapping=[(0, 3), (4, 6), (6, 7)],  # the space is in none
        word_ids=lambda: [0, 0, 0],
        sequence_ids=lambda: [0, 0, 0],
        special_tokens_mask=[0, 0, 0],
    )
    assert _words(one, ("the fox",)) == [(0, "the"), (1, "fox")]


def test_words_hide_what_all_their_tokens_hide(saved):
    trace = pretrained(Pretrained(saved("gpt2"), "the foxes jump", join=True)).traces[0]
    assert trace.mask[0, 0].tolist() == [[False, True, True], [False, False, True], [False, False, False]]


def test_two_texts_end_their_words(saved):
    assert tokens(saved("bert"), "the fox", pair="foxes", join=True) == (("[CLS]", "the", "fox", "[SEP]", "foxes", "[SEP]"),)


# Special tokens


def test_special_tokens_set_aside_share_out_what_they_got(saved):
    shown, aside = (pretrained(Pretrained(saved("bert"), SPLIT, special=special)) for special in ("shown", "set aside"))
    for before, after in zip(shown.traces, aside.traces, strict=True):
        assert after.query_tokens[1] == ("it", "[PAD]", "[PAD]", "[PAD]", "[PAD]", "[PAD]")
        rest = before.probabilities[0, :, 1:7, 1:7]
        np.testing.assert_allclose(after.probabilities[0], rest / rest.sum(-1, keepdims=True), atol=1e-5)
        np.testing.assert_allclose(after.probabilities[1, :, 0, 0], 1, atol=1e-6)  # nothing else is left to read
    assert any("set aside" in note for note in aside.notes) and not any("set aside" in note for note in shown.notes)


def test_special_tokens_are_set_aside_in_maps_too(saved):
    shown, aside = (
        pretrained(Pretrained(saved("gemma2"), "the fox", special=special)).traces[0] for special in ("shown", "set aside")
    )
    rest = shown.probabilities[0, :, 1:, 1:]
    np.testing.assert_allclose(aside.probabilities[0], rest / rest.sum(-1, keepdims=True), atol=1e-6)


@pytest.mark.parametrize("family", ["llama", "mistral", "t5"])
def test_rules_and_biases_go_along(saved, family):
    pair = (
        "so it" if family == "t5" else None
    )  # with a special token between them, so that what is left does not lie side by side
    asked = Pretrained(saved(family), "the foxes don't jump", pair)
    shown, aside = (pretrained(replace(asked, special=special)).traces[0] for special in ("shown", "set aside"))
    places = [i for i, token in enumerate(shown.query_tokens[0]) if token not in ("<s>", "[CLS]", "[SEP]")]
    assert [shown.query_tokens[0][i] for i in places] == list(aside.query_tokens[0])
    here = np.ix_(range(4), places, places)
    np.testing.assert_array_equal(aside.mask[0], shown.mask[0][here])
    rest = shown.probabilities[0][here]
    np.testing.assert_allclose(aside.probabilities[0], rest / rest.sum(-1, keepdims=True), atol=1e-5)


def test_a_mark_that_a_person_types_is_read_and_stays(saved):
    assert tokens(saved("bert"), "the [MASK] jump", special="set aside") == (("the", "[MASK]", "jump"),)


# Padding


def test_one_text_is_cropped_to_its_own_length(saved):
    both = pretrained(Pretrained(saved("bert"), SPLIT)).traces[1]
    one = pretrained(Pretrained(saved("bert"), SPLIT, crop=1)).traces[1]
    assert one.query_tokens == (("[CLS]", "it", "[SEP]"),) and not one.query_padding.any()
    np.testing.assert_allclose(one.probabilities[0], both.probabilities[1, :, :3, :3], atol=1e-6)
    np.testing.assert_allclose(one.output[0], both.output[1, :3], atol=1e-5)
    assert not call_of(one).mask.hidden().any()


def test_all_of_it_together(saved):
    assert tokens(saved("bert"), SPLIT, crop=0, special="set aside", join=True) == (("the", "unbelievable", "foxes"),)


# The model runs once


def test_another_way_to_show_a_text_does_not_run_the_model_again(saved, monkeypatch):
    from mha_viz.sources.pretrained import run

    assert pretrained(Pretrained(saved("bert"), SPLIT)).traces[0].probabilities.any()
    # what is kept for that holds no maps
    assert callable(run.read(saved("bert"), tuple(SPLIT.splitlines()), ()).traces[0]._fields["probabilities"])
    monkeypatch.setattr(run, "_read", None)
    pretrained(Pretrained(saved("bert"), SPLIT, join=True, special="set aside"))


def test_encoded_texts_are_what_the_tokenizer_gives(saved):
    encoded = encode(load(saved("bert")), ("the fox", "it"))
    tokenizer = load(saved("bert")).tokenizer
    given = tokenizer(["the fox", "it"], padding=True)
    assert encoded.ids.tolist() == given["input_ids"]
    assert (~encoded.padding).astype(int).tolist() == given["attention_mask"]
    assert encoded.types.tolist() == given["token_type_ids"]


# No tokenizer


@pytest.fixture
def bare(saved, tmp_path):
    """``bare(family)``: a folder of that family without a tokenizer."""

    def folder(family, keep=()):
        made = Path(shutil.copytree(saved(family), tmp_path / family))
        for file in [*made.glob("tokenizer*"), *made.glob("vocab*"), *made.glob("merges*")]:
            if file.name not in keep:
                file.unlink()
        return str(made)

    return folder


@pytest.mark.parametrize("family", ["gpt2", "bert", "llama", "t5"])
def test_without_a_tokenizer_tokens_are_numbers(family, bare):
    """A text of numbers is what the model itself is given."""
    import torch

    name = bare(family)
    found = pretrained(Pretrained(name, "5 3 3 1\n2 0"))
    assert "holds no tokenizer: its tokens are numbers" in " ".join(found.notes)
    assert found.traces[0].query_tokens == (("5", "3", "3", "1"), ("2", "0", "<pad>", "<pad>"))
    np.testing.assert_array_equal(found.traces[0].query_padding, [[False] * 4, [False, False, True, True]])
    model = load(name).model
    with torch.no_grad():
        right = model(input_ids=torch.tensor([[5, 3, 3, 1]]), output_attentions=True).attentions
    for trace, weights in zip(found.traces, right, strict=True):
        np.testing.assert_allclose(trace.weights[:1], weights.numpy(), rtol=0, atol=1e-6)


def test_words_without_a_tokenizer_are_numbered_as_they_appear(bare):
    name = bare("gpt2", keep=("tokenizer_config.json",))  # which is no vocabulary
    found = pretrained(Pretrained(name, "the fox saw the dog", join=True))
    assert found.traces[0].query_tokens == (("0", "1", "2", "0", "3"),)
    assert pretrained(Pretrained(name)).traces, "the first text is read too"


@pytest.mark.parametrize(
    ("text", "pair", "said"),
    [
        ("5 9999", None, "is no token of"),
        ("0 " * 30, None, "comes to 30 tokens in a line"),
        ("1 2", "3", "holds no tokenizer"),
        (" ".join(map("w{}".format, range(400))), None, "may hold"),
    ],
)
def test_what_cannot_be_numbered_is_refused_and_what_is_offered_can(text, pair, said, bare):
    name = bare("gpt2")
    with pytest.raises(Wrong, match=said) as caught:
        pretrained(Pretrained(name, text, pair))
    for change in caught.value.nearest:
        assert pretrained(Pretrained(**{"name": name, "text": text, "pair": pair} | change)).traces
