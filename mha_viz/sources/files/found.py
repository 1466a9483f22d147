"""What was found in a file, and what has to be asked before it can be opened."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, Literal, Protocol, TypeAlias, TypedDict, TypeVar, cast

from mha_viz.core.rules import Wrong, one_of, whole

if TYPE_CHECKING:
    from mha_viz.recording import Recording

A = TypeVar("A", str, int)
Kind: TypeAlias = Literal["recording", "maps", "weights", "tokens"]
TokenLists: TypeAlias = Sequence[Sequence[str]]  # one sequence of texts per batch item


class Answers(TypedDict, total=False):
    """An answer to each Question of a file, by its field: checked, or the guess."""

    array: str
    axes: str
    split: str
    layers: str
    layout: str
    packed: str
    num_heads: int
    causal: bool
    seq_len: int
    seed: int


@dataclass(frozen=True)
class Question(Generic[A]):
    """What a file cannot tell: ``field`` names the answer, ``text`` asks for it.

    ``choices`` is a tuple of answers, or a ``range`` of whole numbers. ``guess`` is the one that is taken where nobody answers, None
    where nothing speaks for one more than for another. ``check`` says what the numbers in the file say about it, or that they
    say nothing.
    """

    field: str
    text: str
    choices: Sequence[A]
    guess: A | None = None
    check: str = ""

    def answered(self, answers: Mapping[str, object]) -> A:
        """The answer to this question among ``answers``, or its guess; raises Wrong for one that is no choice, and for none."""
        answer = answers.get(self.field, self.guess)
        if answer is None:
            raise Wrong(self.field, None, self.text, [{self.field: choice} for choice in self.choices[:8]])
        if isinstance(self.choices, range):
            return whole(self.field, answer, self.choices[0], self.choices[-1])
        return one_of(self.field, answer, self.choices)


AnyQuestion: TypeAlias = Question[str] | Question[int]


class Content(Protocol):
    """What a file of one kind holds: what has to be asked of it, and the Recording that it becomes."""

    @property
    def kind(self) -> Kind: ...

    @property
    def holds(self) -> tuple[str, ...]: ...

    def ask(self, answers: Mapping[str, object]) -> tuple[AnyQuestion, ...]:
        """The Questions that remain beside these ``answers``, which nobody has checked yet."""

    def open(self, name: str, answers: Answers, tokens: TokenLists | None, key_tokens: TokenLists | None) -> Recording:
        """The Recording of the content, called ``name``; the texts name rows and columns."""


@dataclass(frozen=True, eq=False)
class Found:
    """What ``look`` found in the file ``name``.

    ``content`` says what that is, and opens it.
    """

    name: str
    content: Content = field(repr=False)

    @property
    def kind(self) -> Kind:
        """ "recording", "maps", "weights" or "tokens"."""
        return self.content.kind

    @property
    def holds(self) -> tuple[str, ...]:
        """Sentences about what is in the file, and what of it is left out."""
        return self.content.holds

    @property
    def questions(self) -> tuple[AnyQuestion, ...]:
        """The Questions of this file, where none is answered yet."""
        return self.ask()

    def ask(self, **answers: object) -> tuple[AnyQuestion, ...]:
        """The Questions of this file, in the order of asking: what one asks may depend on the answers to those before it."""
        return self.content.ask(answers)

    def answered(self, **answers: object) -> Answers:
        """Every question's answer by its field, guesses where there are any; raises Wrong for answers that do not fit."""
        questions = self.ask(**answers)
        fields = [question.field for question in questions]
        for name, value in answers.items():
            if name not in fields:
                raise Wrong(name, value, f"is not asked of this file; these are: {', '.join(fields) or 'none'}.")
        checked = {question.field: question.answered(answers) for question in questions}
        return cast(Answers, checked)  # each field with an answer of its own type: its Question has checked it
