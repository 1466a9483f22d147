"""What was found in a file, and what has to be asked before it can be opened."""

from dataclasses import dataclass, field

from mha_viz.core.rules import Wrong, one_of, whole


@dataclass(frozen=True)
class Question:
    """What a file cannot tell: ``field`` names the answer, ``text`` asks for it.

    ``choices`` is a tuple of answers, or a ``range`` of whole numbers. ``guess`` is the one that is taken where nobody answers, None
    where nothing speaks for one more than for another. ``check`` says what the numbers in the file say about it, or that they
    say nothing.
    """

    field: str
    text: str
    choices: tuple | range
    guess: object = None
    check: str = ""

    def answered(self, answers):
        """The answer to this question among ``answers``, or its guess; raises Wrong for one that is no choice, and for none."""
        answer = answers.get(self.field, self.guess)
        if answer is None:
            raise Wrong(self.field, None, self.text, [{self.field: choice} for choice in self.choices[:8]])
        if isinstance(self.choices, range):
            return whole(self.field, answer, self.choices[0], self.choices[-1])
        return one_of(self.field, answer, self.choices)


@dataclass(frozen=True, eq=False)
class Found:
    """What ``look`` found in the file ``name``.

    ``content`` is one of the kinds of content: each has a ``kind``, sentences ``holds``, ``ask(answers)`` for the questions that
    remain and ``open(name, answers, tokens, key_tokens)``.
    """

    name: str
    content: object = field(repr=False)

    @property
    def kind(self):
        """ "recording", "maps", "weights" or "tokens"."""
        return self.content.kind

    @property
    def holds(self):
        """Sentences about what is in the file, and what of it is left out."""
        return self.content.holds

    @property
    def questions(self):
        """The Questions of this file, where none is answered yet."""
        return self.ask()

    def ask(self, **answers):
        """The Questions of this file, in the order of asking: what one asks may depend on the answers to those before it."""
        return self.content.ask(answers)

    def answered(self, **answers):
        """Every question's answer by its field, guesses where there are any; raises Wrong for answers that do not fit."""
        questions = self.ask(**answers)
        fields = [question.field for question in questions]
        for name, value in answers.items():
            if name not in fields:
                raise Wrong(name, value, f"is not asked of this file; these are: {', '.join(fields) or 'none'}.")
        return {question.field: question.answered(answers) for question in questions}
