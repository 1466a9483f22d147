"""Three heads of MiniLM that each read one kind of relationship, on sentences that did not choose them."""

import re

import numpy as np
import pytest

from mha_viz.settings import View, from_address
from mha_viz.sources.pretrained import Pretrained, pretrained
from mha_viz.studies.lessons import LESSONS
from mha_viz.studies.relationships import KINDS, RELATIONSHIPS, read, relationship, sentences


@pytest.mark.parametrize(("name", "least", "times"), [("positional", 0.9, 10), ("syntactic", 0.25, 4), ("semantic", 0.12, 1.5)])
def test_a_head_reads_its_relationship_and_not_any_word(name, least, times):
    found = relationship(name)
    assert found.score > least and found.score > times * found.shuffled and found.count == 50


def test_the_head_before_each_word_is_the_known_one():
    assert (relationship("positional").layer, relationship("positional").head) == (0, 2)


@pytest.mark.parametrize("name", RELATIONSHIPS)
def test_the_sentences_that_score_are_not_those_that_chose(name):
    chose, scored = ({" ".join(words) for words, _, _ in sentences(name, seed)} for seed in (1, 2))
    assert len(scored - chose) > 40


def test_words_stand_where_the_pairs_say():
    words, (query,), (key,) = sentences("semantic", 2)[0]
    assert any(words[query] in kind and words[key] in kind for kind in KINDS)
    assert read([" ".join(words)]).traces[0].query_tokens[0][1 : 1 + len(words)] == tuple(words)


def test_the_lesson_says_it():
    lesson = LESSONS["kinds"]
    assert "layer 0 head 2" in lesson.answered() and np.isfinite(lesson.traces()[0].weights[0]).all()


def test_its_picture_is_of_the_sentence_it_quotes_on_the_head_and_the_cell_it_names():
    lesson, found = LESSONS["kinds"], relationship("syntactic")
    (trace,), view = lesson.traces(), lesson.view()
    sentence, noun, verb = re.findall(r"“(.+?)”", lesson.look)
    assert trace.query_tokens[0][1:-1] == tuple(sentence.split())
    assert (trace.query_tokens[0][view.cell[0]], trace.key_tokens[0][view.cell[1]]) == (noun, verb)
    assert (view.layer, view.head) == (found.layer, found.head) and trace.weights[0, view.head][view.cell] > 0.25
    assert f"layer {found.layer} head {found.head}" in lesson.answered()
    settings, shown, _ = from_address({k: v for k, v in lesson.address().items() if k != "source"}, Pretrained, View)
    again = pretrained(Pretrained(**settings)).traces[view.layer]
    assert View(**shown) == view and np.allclose(again.weights, trace.weights, atol=1e-6)
