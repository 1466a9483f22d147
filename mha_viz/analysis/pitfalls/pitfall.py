"""What a pitfall is: an experiment on a real layer, with the mistake, the right way and the check that tells them apart."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Protocol, Self, TypeAlias

import numpy as np

from mha_viz.analysis.known import why_not_alone
from mha_viz.core.layer import Layer
from mha_viz.core.rules import Wrong, one_of, whole

if TYPE_CHECKING:
    from jaxtyping import Bool, Float
    from torch import Tensor, nn

    from mha_viz.core.trace import Trace


SYMPTOMS = (
    "NaN",
    "rows do not sum to 1",
    "everything uniform",
    "wrong shape",
    "answer changes with batch",
    "works in eval only",
    "sees the future",
    "padding is read",
    "an error",
    "wrong numbers, no error",
)
WIDEST = 2048  # embed_dim: an experiment makes the layer several times over, and it grows with the square of that
ITEMS, TOKENS = 3, 8  # of the input that experiments use at most: maps stay small enough to be read cell by cell


def check_width(embed_dim: int, num_heads: int) -> None:
    """Raises Wrong for a layer that is too wide for experiments, with the widest that these heads divide."""
    if embed_dim > WIDEST:
        rule = f"may be {WIDEST:,} at most here: an experiment makes the layer several times over."
        right = WIDEST // num_heads * num_heads
        raise Wrong("embed_dim", embed_dim, rule, [{"embed_dim": right} if right else {"embed_dim": WIDEST, "num_heads": 8}])


Value: TypeAlias = int | str  # of a knob


class Attention(Protocol):
    """``nn.MultiheadAttention`` as experiments call it, with what it gives: of the module itself PyTorch says that it takes and gives
    anything."""

    @property
    def num_heads(self) -> int: ...

    def __call__(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        *,
        key_padding_mask: Tensor | None = None,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor]: ...

    def train(self) -> object: ...

    def eval(self) -> object: ...


@dataclass(frozen=True, eq=False)
class Bench:
    """What experiments run on: a ``layer`` without extra keys, ``tokens`` [N, L, E] and their ``names``, N tuples of L texts."""

    layer: Layer
    tokens: Float[np.ndarray, "N L E"]
    names: tuple[tuple[str, ...], ...]

    @classmethod
    def of(cls, trace: Trace) -> Self:
        """The layer and the first ITEMS items and TOKENS tokens of a Trace of self-attention, in float32; its masks stay behind."""
        assert trace.layer is not None and trace.batch is not None  # as ``why_no_bench`` tells
        check_width(trace.layer.embed_dim, trace.layer.num_heads)
        names = tuple(item[:TOKENS] for item in trace.query_tokens[:ITEMS])
        weights = {name: array.astype(np.float32, copy=False) for name, array in trace.layer.weights.items()}
        tokens = trace.batch.query[:ITEMS, :TOKENS].astype(np.float32)  # [N, L, E]
        return cls(replace(trace.layer, weights=weights), tokens, names)

    @property
    def x(self) -> Float[Tensor, "N L E"]:
        """The tokens as a tensor [N, L, E] of its own."""
        import torch

        return torch.tensor(self.tokens)

    def module(self, batch_first: bool = True) -> nn.MultiheadAttention:
        """The layer as an ``nn.MultiheadAttention`` of its own in eval mode, made without drawing a number."""
        import torch
        from torch import nn

        weights = {name: torch.tensor(array) for name, array in self.layer.weights.items()}
        bias = "in_proj_bias" in weights
        made = nn.MultiheadAttention(
            self.layer.embed_dim, self.layer.num_heads, bias=bias, batch_first=batch_first, device="meta"
        )
        made.load_state_dict(weights, assign=True)
        return made.eval()

    def needs(self, items: int = 1, tokens: int = 1, heads: int = 1) -> None:
        """Raises Wrong where there are fewer items, tokens or heads than that: the mistake could not be seen."""
        have = {"batch_size": self.tokens.shape[0], "seq_len": self.tokens.shape[1], "num_heads": self.layer.num_heads}
        for (name, count), least in zip(have.items(), (items, tokens, heads), strict=True):
            if count < least:
                E = self.layer.embed_dim
                nearest = {name: least} if name != "num_heads" or E % least == 0 else {name: least, "embed_dim": least * E}
                rule = f"must be {least} or more here: with {count} the mistake changes nothing, and no test could see it."
                raise Wrong(name, count, rule, [nearest])


@dataclass(frozen=True)
class Knob:
    """A parameter of an experiment that a person may change: a whole number from ``least`` to ``most``, or one of ``choices``."""

    name: str
    default: Value
    help: str
    least: int = 0
    most: int = 0
    choices: tuple[str, ...] = ()

    def check(self, value: object) -> Value:
        """``value`` where it keeps the rule; raises Wrong otherwise."""
        return one_of(self.name, value, self.choices) if self.choices else whole(self.name, value, self.least, self.most)


@dataclass(frozen=True, eq=False)
class Map:
    """A small map: ``values`` [R, C], NaN where undefined; ``hidden`` [R, C] bool, True where a mask hides the cell."""

    title: str
    values: Float[np.ndarray, "R C"]
    row_names: tuple[str, ...]
    column_names: tuple[str, ...]
    hidden: Bool[np.ndarray, "R C"] | None = None
    rows: str = "query"
    columns: str = "key"
    quantity: str = "weight"


@dataclass(frozen=True)
class Number:
    """One line of the comparison: ``what`` it is, and how it came out the wrong way and the right way, in words."""

    what: str
    wrong: str
    right: str


@dataclass(frozen=True, eq=False)
class Version:
    """One way to write it: the function ``code``, whose source is shown, and the arguments of the check that ``tried`` it."""

    code: Callable[..., object]
    tried: tuple[object, ...]

    @property
    def source(self) -> str:
        return source_of(self.code)


@dataclass(frozen=True, eq=False)
class Experiment:
    """What came out: ``maps`` beside each other, ``numbers`` wrong against right, one ``sentence`` with the result; the ``wrong``
    and the ``right`` Version, and the ``check`` that takes what either of them tried."""

    maps: tuple[Map, ...]
    numbers: tuple[Number, ...]
    sentence: str
    wrong: Version
    right: Version
    check: Callable[..., None]

    @cached_property
    def caught(self) -> str | None:
        """What the check says to the wrong version; None where it passes, since the mistake does no harm here."""
        return verdict(self.check, *self.wrong.tried)

    @cached_property
    def objection(self) -> str | None:
        """What the check says to the right version: None, it passes."""
        return verdict(self.check, *self.right.tried)


def verdict(check: Callable[..., object], *arguments: object) -> str | None:
    """What ``check(*arguments)`` raises, as Python prints it; None where it passes."""
    try:
        check(*arguments)
    except (AssertionError, RuntimeError, ValueError, TypeError) as error:
        return f"{type(error).__name__}: {error}"
    return None


def source_of(function: Callable[..., object]) -> str:
    """The source of a function as it is shown and pasted: without types, so that it needs PyTorch alone."""
    lines = inspect.getsource(function).splitlines(keepends=True)
    defined = ast.parse("".join(lines)).body[0]
    assert isinstance(defined, ast.FunctionDef)
    for one in ast.walk(defined.args):
        if isinstance(one, ast.arg):
            one.annotation = None
    return f"def {defined.name}({ast.unparse(defined.args)}):\n{''.join(lines[defined.body[0].lineno - 1 :])}"


def pasted(check: Callable[..., None]) -> str:
    """The check as text to paste into one's own tests: what it imports, and its source."""
    source = source_of(check)
    needs = ((r"\bmath\.", "import math\n"), (r"\btorch\.", "import torch\n"), (r"\bF\.", "import torch.nn.functional as F\n"))
    imports = "".join(line for pattern, line in needs if re.search(pattern, source))
    return f"{imports}\n\n{source}" if imports else source


@dataclass(frozen=True, eq=False)
class Pitfall:
    """One pitfall: its ``title``, the SYMPTOMS by which it is found, ``why`` it happens, how to ``avoid`` it, the ``knobs`` of its
    experiment, and the experiment itself, a function of a Bench and the knobs by name."""

    name: str
    title: str
    symptoms: tuple[str, ...]
    why: str
    avoid: str
    knobs: tuple[Knob, ...] = field(default=())
    experiment: Callable[..., Experiment] = field(kw_only=True)

    def run(self, bench: Bench, **values: Value) -> Experiment:
        """The Experiment with these values of the knobs, the others at their defaults. Raises Wrong for a value that breaks its
        rule, a knob that there is not, or an input too small to show anything."""
        known = {knob.name: knob for knob in self.knobs}
        for name, value in values.items():
            if name not in known:
                raise Wrong(name, value, f"is nothing that this experiment has; it has {', '.join(known) or 'nothing to set'}.")
            known[name].check(value)
        return self.experiment(bench, **{name: knob.default for name, knob in known.items()} | values)


def pitfall(
    title: str, symptoms: tuple[str, ...], why: str, avoid: str, knobs: tuple[Knob, ...] = ()
) -> Callable[[Callable[..., Experiment]], Pitfall]:
    """Makes the decorated experiment a Pitfall, named as the function is."""

    def made(experiment: Callable[..., Experiment]) -> Pitfall:
        name = experiment.__name__.replace("_", "-")
        return Pitfall(name, title, symptoms, why, avoid, knobs, experiment=experiment)

    return made


def why_no_bench(trace: Trace) -> str | None:
    """Why pitfalls cannot be tried on the layer of this Trace, as a sentence; None where they can."""
    reason, layer = why_not_alone(trace), trace.layer
    if reason is not None or layer is None:
        return reason
    if layer.embed_dim > WIDEST:
        return f"Its embed_dim is {layer.embed_dim:,}, and experiments take layers of up to {WIDEST:,}."
    if layer.extra_keys:
        return f"It has keys that are no tokens ({', '.join(layer.extra_keys)}), and experiments need a layer without."
    return None
