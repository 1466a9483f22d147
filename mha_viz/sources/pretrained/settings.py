"""Which model reads what, and how the maps are shown."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from mha_viz.core.rules import Wrong
from mha_viz.settings.rules import LONGEST, Ruled, choice, flag, number, optional, ruled

NAME = "all-MiniLM-L6-v2"
TEXT = "The fox jumped over the fence because it was frightened.\nNobody had seen it."
Special: TypeAlias = Literal["shown", "set aside"]
SPECIAL: tuple[Special, ...] = ("shown", "set aside")


def lines(text: str | None) -> tuple[str, ...]:
    """The lines of ``text`` that hold anything, exactly as they are; () for None."""
    return () if text is None else tuple(line for line in text.splitlines() if line.strip())


def typed_lines(argument: str, value: object) -> str:
    if not isinstance(value, str) or not lines(value):
        right = {"text": TEXT, "pair": None}[argument]
        raise Wrong(argument, value, "must hold at least one word; each line is one batch item.", [{argument: right}])
    if len(value) > LONGEST:
        raise Wrong(argument, f"{len(value)} characters", f"may hold {LONGEST} characters.", [{argument: value[:LONGEST]}])
    return value


vars(typed_lines)["lines"] = True


def typed_name(argument: str, value: object) -> str:
    if not isinstance(value, str) or not value.strip() or not value.isprintable():
        rule = "must name a model: one that a package ships, a folder, or a name on the hub as in 'gpt2'."
        raise Wrong(argument, value, rule, [{argument: NAME}])
    return value.strip()


@dataclass(frozen=True)
class Pretrained(Ruled):
    """Which pretrained model reads which text, and how its tokens are shown.

    ``name`` is one of ``shipped_models()``, the path of a folder that holds a model (``./model``, not ``model``), or a name on
    the hub that has been downloaded. Each line of ``text`` is one batch item; shorter ones are padded at their end. ``pair``
    gives each line a second text, a line each, for models that read two.

    ``special`` "set aside" takes the tokens that the tokenizer adds ([CLS], [SEP], <s>) out of rows and columns, and each row shares
    among the others what they got, as if they had been hidden. ``join`` makes words of sub-words: the row of a word is the average
    of its tokens' rows, its column the sum of their columns, so that rows still sum to 1 (Clark et al., What Does BERT Look At?,
    2019, section 4.1). A word is what the tokenizer takes for one, and never reaches over white space. ``crop`` is the number of the
    one text, from 0, that is kept, without the padding that the longer ones brought it; None keeps all.

    Raises Wrong for a value that breaks a rule. Whether the model exists and can read the text is seen when it runs.

    >>> import mha_viz as mv
    >>> mv.Pretrained(text="The fox jumped.\\n\\nNobody saw it.").lines  # one batch item each
    ('The fox jumped.', 'Nobody saw it.')
    >>> mv.Pretrained(text="One line.", pair="Two\\nlines.")
    Traceback (most recent call last):
    mha_viz.core.rules.Wrong: pair = 'Two\\nlines.': must hold a line for each of text: 1, and it holds 2. Nearest right: ...
    """

    name: str = ruled(NAME, typed_name)
    text: str = ruled(TEXT, typed_lines)
    pair: str | None = ruled(None, optional(typed_lines))
    special: Special = ruled("shown", choice(*SPECIAL))
    join: bool = ruled(False, flag)
    crop: int | None = ruled(None, optional(number(0)))

    def check_together(self) -> None:
        count = len(self.lines)
        if self.pair is not None and len(self.pairs) != count:
            right = [{"pair": "\n".join(self.pairs[:count])}] if len(self.pairs) > count else []
            raise Wrong(
                "pair",
                self.pair,
                f"must hold a line for each of text: {count}, and it holds {len(self.pairs)}.",
                [*right, {"pair": None}],
            )
        if self.crop is not None and self.crop >= count:
            raise Wrong(
                "crop",
                self.crop,
                f"names a line of text, and there are {count}, from 0.",
                [{"crop": count - 1}, {"crop": None}],
            )

    @property
    def lines(self) -> tuple[str, ...]:
        """The texts, one per batch item."""
        return lines(self.text)

    @property
    def pairs(self) -> tuple[str, ...]:
        """The second texts, one per batch item; () where there are none."""
        return lines(self.pair)
