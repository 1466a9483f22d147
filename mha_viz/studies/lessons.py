"""Lessons: one point each. What to look at, a question to answer before looking, the answer, and the numbers that prove it.

Nothing here is written down that can be computed: an answer is a text with places for numbers, and each lesson computes its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mha_viz.core.decimals import fill
from mha_viz.core.trace import Trace
from mha_viz.settings import View, to_address
from mha_viz.studies.lesson_numbers import (
    OBJECT,
    READ_ALOUD,
    SAME,
    VERB,
    WORDS,
    both_ways,
    both_ways_numbers,
    causal_numbers,
    dead_numbers,
    decimal_numbers,
    dropout_numbers,
    first_token_numbers,
    forming_numbers,
    hides_numbers,
    induction,
    kinds_numbers,
    kinds_traces,
    leak_numbers,
    many_heads_numbers,
    opposite_heads,
    opposite_numbers,
    order_traces,
    pinned,
    read_alone,
    same_words_numbers,
    slice_numbers,
    unmasked,
    usual,
    view_decimal,
    view_dropout,
    view_first,
    view_forming,
    view_hides,
    view_kinds,
    view_leak,
    view_positions,
    view_slice,
    with_one_number_changed,
)

if TYPE_CHECKING:
    from mha_viz.studies.lesson_numbers import LessonNumbers


@dataclass(frozen=True)
class Lesson:
    """One point. ``look`` says what to look at, ``question`` what to answer first, ``answer`` is a text with places for ``numbers()``.

    ``traces()`` gives the picture: one Trace, or two that are compared, A and B, as ``view()`` shows them: on the head and the cell that
    the lesson is about. ``page`` is where a person goes on by hand, None where the layer is made for this lesson alone; ``settings``,
    by name, show the same there, what A is among them.
    """

    title: str
    look: str
    question: str
    answer: str
    numbers: Callable[[], LessonNumbers]
    traces: Callable[[], tuple[Trace, ...]]
    view: Callable[[], View] = View
    page: str | None = None
    settings: Callable[[], dict[str, str]] = dict

    def answered(self) -> str:
        """The answer with its numbers."""
        return fill(self.answer, **self.numbers())

    def address(self) -> dict[str, str]:
        """The address on ``page`` that shows what the lesson shows, by name."""
        return self.settings() | to_address(**vars(self.view()))


# The lessons

LESSONS = {
    "nothing": Lesson(
        "The average that does nothing",
        "Two heads over tokens that are + or −. Each head's map is striped; look at the average beside them.",
        "The average of the two heads is the same everywhere. Does this layer do nothing?",
        "No. A head weighs tokens {high:.6f} or {low:.6f}, the other the reverse; their average is {average:.3f} in every cell (it "
        "varies by {spread:.1g}). The layer's output reaches ±{output:.4f}. From the average it would be {from_average:.1g}: nothing.",
        opposite_numbers,
        lambda: (opposite_heads(),),
    ),
    "hides": Lesson(
        "What the average hides",
        "Eight heads of the tutorial's layer, and their average at the right. Look for the darkest cell of the chosen head.",
        "How much of that weight is left in the average?",
        "Head {head} gives key {key} a weight of {weight:.2f} when query {query} asks; the average says {average:.2f}. Seven others dilute it.",
        hides_numbers,
        lambda: (usual(),),
        view_hides,
        page="explore",
    ),
    "both-ways": Lesson(
        "One head cannot look both ways",
        "Two trained models must report the token before and the token after. A has one head, B has two. The maps show their averages.",
        "The averages are nearly alike. Which one belongs to the model that fails?",
        "They differ by {gap:.4f} per cell, which tells you nothing. One head gets {before1:.0%} of “before” and {after1:.0%} of “after” right. "
        "Two heads get {before2:.0%} and {after2:.0%}; 32 heads with head_dim 1 get {before32:.0%} and {after32:.0%}. All three models have "
        "{parameters:,} parameters.",
        both_ways_numbers,
        lambda: (both_ways(1), both_ways(2)),
        lambda: View(head=0, cell=(1, 2)),
        page="models",
        settings=lambda: {"model": "look-both-ways-2", "pinned": "model=look-both-ways-1"},
    ),
    "dead": Lesson(
        "Loss 0.0357, model dead",
        "Causal attention, and the first three tokens of item 0 are padding. Their rows are undefined.",
        "The loss over the real tokens is finite and looks as before. Is it safe to keep training?",
        "No. Padded right, nothing is undefined ({none} rows), the loss is {right:.4f} and {fine} gradients are NaN. Padded left, {rows} rows "
        "are undefined, the loss is {left:.4f}, and {in_nan:,} in-projection and {out_nan:,} out-projection gradients are NaN: all of them.",
        dead_numbers,
        lambda: (usual(causal=True, padding_side="left"),),
        lambda: View(cell=(0, 0)),
        page="explore",
        settings=lambda: {"causal": "1", "padding_side": "left"},
    ),
    "slice": Lesson(
        "A head does not read a slice",
        "A and B are the same layer. In B, 1 was added to one of the 128 numbers of token 5, number 100. B − A shows which maps moved.",
        "128 = 8 heads × 16. Which of the eight heads notice?",
        "All {moved}: each head projects the whole token (changes from {least:.4f} to {most:.4f}). In a layer that wrongly gave each head its "
        "own 16 numbers, {count} head would: head {only}.",
        slice_numbers,
        with_one_number_changed,
        view_slice,
    ),
    "positions": Lesson(
        "The same word three times",
        "“cat” stands three times in the sentence. A has no positional encoding, B has one. Compare the three rows of “cat”.",
        "Without positions, how do the three rows of “cat” differ?",
        "They don't: the {count} rows are identical{without:within}. With positions they differ by up to {having:.3f}.",
        same_words_numbers,
        lambda: tuple(usual(words=SAME, padding=(), positions=p) for p in (False, True)),
        view_positions,
        page="explore",
        settings=lambda: {"words": SAME, "padding": "", "positions": "1", "pinned": pinned(words=SAME, padding="")},
    ),
    "leak": Lesson(
        "Padding that leaks",
        "A is without a padding mask, B with one. The last three tokens are padding.",
        "How much of its weight does a real token spend on padding when nobody masks it?",
        "{leak:.1%} on average: {pads} of {length} tokens get their share. Masked it is exactly {masked:g}. The outputs of real tokens differ "
        "by up to {moved:.3f}: pad length changes answers.",
        leak_numbers,
        lambda: (unmasked(), usual()),
        view_leak,
        page="explore",
        settings=lambda: {"pinned": pinned(padding="")},
    ),
    "dropout": Lesson(
        "Dropout in the weights",
        "The layer in train mode. Some cells that should hold weight are 0.",
        "Do the rows still sum to 1?",
        "{off} of {rows} rows do not: they sum to between {least:.2f} and {most:.2f}, since {dropped:.0%} of the weights are dropped and the "
        "others grow. In eval mode all do, to {eval:.1g}. Read weights in eval mode.",
        dropout_numbers,
        lambda: (usual(training=True, padding=()),),
        view_dropout,
        page="explore",
        settings=lambda: {"training": "1", "padding": ""},
    ),
    "forming": Lesson(
        "An induction head forming",
        "Layer 1 of a trained model: A before it had learnt anything, B at the end. Look for the stripe.",
        "Does the model get better step by step, or at once?",
        "Nearly at once: after {before} steps {was:.2f} of its answers are right, after {step} steps {accuracy:.2f}. The best head's weight where it "
        "should read goes from {first:.2f} to {last:.2f}. It needs a head in the layer below: with head 0·1 off, {whole:.2f} becomes {off:.2f}.",
        forming_numbers,
        lambda: (induction(0), induction()),
        view_forming,
        page="models",
        settings=lambda: {"pinned": "snapshot=0&layer=1"},
    ),
    "first": Lesson(
        "A sink, or an order",
        "Layer 0 of the model that reverses or shifts. Look at the first column.",
        "Heads rest on the first token. Is that weight that has nowhere else to go?",
        "Not here. Head {head} puts {weight:.0%} on it, where all alike would be {even:.0%}: the first token says what to do. Mask it in layer "
        "0, and accuracy goes from {whole:.2f} to {masked:.2f}. A map alone does not say why a head looks somewhere: change it and see.",
        first_token_numbers,
        lambda: order_traces()[:1],
        view_first,
        page="models",
        settings=lambda: {"model": "reverse-or-shift", "batch_size": "16"},
    ),
    "decimal": Lesson(
        "What the fourth decimal is for",
        "The tutorial's layer. Point at a cell: six decimals.",
        "How many of them mean anything in float32, in float16, in bfloat16?",
        "The largest weight is {largest:.3f}. Against float64, float32 is off by {float32:.1g}, float16 by {float16:.1g}, bfloat16 by "
        "{bfloat16:.1g}: six decimals, three, two. Compare to the tolerance of the type.",
        decimal_numbers,
        lambda: (usual(padding=()),),
        view_decimal,
        page="explore",
        settings=lambda: {"padding": ""},
    ),
    "many": Lesson(
        "Many heads, few dimensions",
        "64 heads of two numbers each, untrained. Are they more different from each other than eight heads of sixteen?",
        "Does a layer with more heads see more?",
        "Not by itself. Untrained heads differ from their average by {h2:.1f} % with 2 heads of {d2}, {h8:.1f} % with 8 of {d8}, {h64:.1f} % "
        "with 64 of {d64}: by chance, and hardly more. Trained on a task that needs sharp looks, 32 heads of one number reach {both32:.2f}.",
        many_heads_numbers,
        lambda: (usual(num_heads=64, padding=()),),
        page="explore",
        settings=lambda: {"num_heads": "64", "padding": ""},
    ),
    "causal": Lesson(
        "Causal, and not",
        "A sees all, B its past only. Compare the first row and the last.",
        "Which row does the causal mask leave as it was?",
        "The last row: it is unchanged{last:within}. Without the mask {later:.0%} of the weight lies on later tokens, with it {causal:g}. The first row "
        "sees itself alone: weight {first:g}, whatever was learnt.",
        causal_numbers,
        lambda: (usual(padding=()), usual(padding=(), causal=True)),
        lambda: View(cell=(0, 0)),
        page="explore",
        settings=lambda: {"padding": "", "causal": "1", "pinned": pinned(padding="")},
    ),
    "kinds": Lesson(
        "Three kinds of relationship",
        f"MiniLM, a model of real text, reads “{READ_ALOUD}” One head of this layer goes from the object, “{WORDS[OBJECT]}”, to its "
        f"verb, “{WORDS[VERB]}”.",
        "Heads are said to learn position, syntax and meaning. Do these?",
        "Over {count} sentences that had no part in the choice: position, layer {positional_layer} head {positional_head} puts {positional_score:.2f} on the word "
        "before (on another word {positional_shuffled:.2f}). Syntax, layer {syntactic_layer} head {syntactic_head} puts {syntactic_score:.2f} on the verb whose object asks "
        "({syntactic_shuffled:.2f}). Meaning, layer {semantic_layer} head {semantic_head} puts {semantic_score:.2f} on the noun of the same kind ({semantic_shuffled:.2f}). "
        "These are sentences from a template: try text of your own.",
        kinds_numbers,
        kinds_traces,
        view_kinds,
        page="models",
        settings=lambda: {"source": "pretrained"} | read_alone(),
    ),
}
