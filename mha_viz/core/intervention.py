"""What if: a head off, a key hidden, the scores at another temperature. A Trace in, a new Trace out."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, overload

import numpy as np

from mha_viz.core.arrays import read_only
from mha_viz.core.attend import call_of, trace_of_call
from mha_viz.core.rules import Wrong, closest_number, listed, of_kind, one_of, whole
from mha_viz.core.trace import Made, Maker, Trace
from mha_viz.core.typed_number import read_number

if TYPE_CHECKING:
    from jaxtyping import Float

    from mha_viz.core.mask import Mask

Way: TypeAlias = Literal["zero", "mean", "uniform"]
Off: TypeAlias = tuple[tuple[int, Way], ...]  # heads, each with the way in which it is put out
WAYS: tuple[Way, ...] = ("zero", "mean", "uniform")
TEMPERATURES = (1e-3, 1e3)  # beyond them softmax picks one key, or all alike, to the last bit of float32


@dataclass(frozen=True)
class Intervention:
    """What is changed in one attention call; the defaults change nothing.

    ``off`` pairs heads with the way in which each is put out (a dict is taken as well):

    - "zero": nothing of it arrives. Its output is 0, and its weights are shown as 0; its probabilities stay what the head computed.
      Michel, Levy & Neubig, Are Sixteen Heads Really Better than One?, 2019, equation 2 with ξ = 0.
    - "mean": it says the same whatever is asked. Its output is replaced by its mean over the real queries of the whole batch, its
      weights and probabilities by theirs: shown is the average row, also on keys that the row itself may not see. Wang et al.,
      Interpretability in the Wild, 2022, section 2 (mean ablation).
    - "uniform": it reads and does not choose: equal weight on every key that the row may see. Wiegreffe & Pinter, Attention is not
      not Explanation, 2019, section 3.2.

    ``hidden_keys`` are positions that no query of any item may read, as key padding hides them. ``temperature`` divides the scores:
    below 1 softmax is sharper, above it flatter (Hinton, Vinyals & Dean, Distilling the Knowledge in a Neural Network, 2015,
    equation 1). Raises Wrong for a value that is none of this.

    >>> import mha_viz as mv
    >>> mv.Intervention(off={2: "zero", 0: "mean"}, hidden_keys=[3], temperature=0.5)
    Intervention(off=((0, 'mean'), (2, 'zero')), hidden_keys=(3,), temperature=0.5)
    """

    off: Off = ()
    hidden_keys: tuple[int, ...] = ()
    temperature: float = 1.0

    if TYPE_CHECKING:  # a dict or a list in, tuples kept

        @overload
        def __init__(self, off: Mapping[int, Way], hidden_keys: Iterable[int] = (), temperature: float = 1.0) -> None: ...
        @overload
        def __init__(
            self, off: Iterable[tuple[int, Way]] = (), hidden_keys: Iterable[int] = (), temperature: float = 1.0
        ) -> None: ...
        def __init__(self, off: Any = (), hidden_keys: Any = (), temperature: Any = 1.0) -> None: ...

    def __post_init__(self) -> None:
        object.__setattr__(self, "off", _off(self.off))
        object.__setattr__(self, "hidden_keys", _positions(self.hidden_keys))
        object.__setattr__(self, "temperature", _temperature(self.temperature))

    def check(self, num_heads: int, num_keys: int) -> None:
        """Raises Wrong where a head or a key is named that a call with so many does not have."""
        for head, way in self.off:
            if head >= num_heads:
                rule = f"names head {head}, and there are {num_heads}, from 0 to {num_heads - 1}."
                right = {other: how for other, how in self.off if other < num_heads}
                raise Wrong("off", self.off, rule, [{"off": _off({num_heads - 1: way} | right)}])
        beyond = [key for key in self.hidden_keys if key >= num_keys]
        if beyond:
            rule = f"names key {beyond[0]}, and there are {num_keys}, from 0 to {num_keys - 1}."
            raise Wrong(
                "hidden_keys", self.hidden_keys, rule, [{"hidden_keys": tuple(sorted({*self.hidden_keys} - {*beyond}))}]
            )


def changed(trace: Trace, intervention: Intervention) -> Trace:
    """The Trace of the same call with this Intervention: everything that follows from it is new, ``trace`` stays as it is.

    Hidden keys and temperature act before the heads are put out. A row without a key is undefined in every field, also in heads
    that are off, and NaN stays NaN. The new Trace holds a Call where the scores or the mask changed, in place of layer and batch,
    which describe another computation then. Raises Wrong where the Trace lacks what is needed: q and k for hidden keys and temperature.

    >>> import numpy as np, mha_viz as mv
    >>> trace = mv.attend(mv.Layer.random(embed_dim=8, num_heads=2), mv.Batch(np.zeros((1, 3, 8)), causal=True))
    >>> print(mv.changed(trace, mv.Intervention(hidden_keys=[1])).weights[0, 0])
    [[1.  0.  0. ]
     [1.  0.  0. ]
     [0.5 0.  0.5]]
    """
    of_kind("trace", trace, Trace)
    of_kind("intervention", intervention, Intervention)
    if trace.has("dropped") and trace.dropped is not None:
        rule = "must be off: with dropout one cannot tell what the intervention did from what the draw did."
        raise Wrong("training", True, rule, [{"training": False}])
    if trace.off:
        rule = f"is for a Trace in which {_named(trace.off)} off already: change the Trace that it was made from."
        raise Wrong("intervention", intervention, rule)
    intervention.check(trace.undefined.shape[1], trace.num_positions)
    if intervention.hidden_keys or intervention.temperature != 1:
        if not trace.has("q", "k"):
            argument = "hidden_keys" if intervention.hidden_keys else "temperature"
            rule = f"needs q and k, and {trace.name} has none: its source knows the weights alone. Heads can still be put off."
            raise Wrong(argument, getattr(intervention, argument), rule, [{argument: Intervention().__dict__[argument]}])
        call = call_of(trace)
        mask = _hiding(call.mask, len(call.q), intervention.hidden_keys)
        trace = trace_of_call(replace(call, mask=mask, scale=call.scale / intervention.temperature))
    return _put_off(trace, intervention.off) if intervention.off else trace


def _hiding(mask: Mask, N: int, keys: tuple[int, ...]) -> Mask:
    if not keys:
        return mask
    mask = mask.settled()  # a key that a person hides is hidden from every query
    padded = np.zeros((N, mask.num_keys), bool) if mask.padded is None else mask.padded.copy()  # [N, S]
    padded[:, list(keys)] = True
    return replace(mask, padded=padded)


def _put_off(trace: Trace, off: Off) -> Trace:
    """``trace`` with these heads replaced in every field that shows what they say; computed when first read."""

    @cache  # weights and head_outputs are each asked for twice
    def replaced(name: str) -> np.ndarray:
        array = getattr(trace, name).copy()  # [N, H, L, S] or [N, H, L, D]
        for head, way in off:
            rows = ~(trace.undefined | trace.nonfinite)[:, head]  # [N, L]
            if way == "mean":
                real = rows & ~trace.query_padding  # [N, L]
                if real.any():
                    array[:, head][rows] = array[:, head][real].mean(axis=0, dtype=np.float64)
            elif way == "uniform":
                seen = ~trace.mask[:, head]  # [N, L, S]
                weights = seen / np.maximum(seen.sum(axis=-1, keepdims=True), 1)  # [N, L, S]
                alike = weights @ trace.v[:, head] if name == "head_outputs" else weights  # [N, L, D] or [N, L, S]
                array[:, head][rows] = alike[rows]
            elif name != "probabilities":
                array[:, head][rows] = 0
        return read_only(array)

    def concat(_: str) -> Float[np.ndarray, "N L H*D"]:
        outputs = replaced("head_outputs")  # [N, H, L, D]
        return read_only(outputs.swapaxes(1, 2).reshape(len(outputs), outputs.shape[2], -1))  # [N, L, H·D]

    def output(_: str) -> Float[np.ndarray, "N L E"]:
        projection = trace.out_proj
        assert projection is not None  # whoever has an output knows what made it of the heads
        weight, bias = projection  # [E, H·D], [E]
        beside = concat(_)  # [N, L, H·D]
        written = beside @ weight.T.astype(beside.dtype)  # [N, L, E]
        return read_only(written if bias is None else written + bias.astype(written.dtype))

    new: dict[str, Maker] = {
        "probabilities": replaced,
        "weights": replaced,
        "mean_weights": lambda _: read_only(replaced("weights").mean(axis=1)),  # [N, L, S]
        "head_outputs": replaced,
        "concat": concat,
        "output": output,
    }
    fields = Made(
        {name: new.get(name, partial(getattr, trace)) for name in Trace.fields() if trace.has(name)}, replaced.cache_clear
    )
    return Trace(
        fields,
        tokens=trace.tokens,
        rules=trace.rules,
        layer=trace.layer,
        batch=trace.batch,
        call=trace.call,
        name=trace.name,
        off=off,
        dtype=trace.dtype,
        step=trace.step,
    )


def _named(off: Off) -> str:
    heads = ", ".join(str(head) for head, _ in off)
    return f"heads {heads} are" if len(off) > 1 else f"head {heads} is"


def _off(value: Any) -> Off:
    try:
        pairs = tuple(value.items() if isinstance(value, Mapping) else value)
        pairs = tuple((head, way) for head, way in pairs)
    except (TypeError, ValueError):
        rule = f'must pair heads with one of {", ".join(WAYS)}, as in {{2: "zero"}}.'
        raise Wrong("off", value, rule, [{"off": ()}]) from None
    pairs = tuple(sorted((whole("off", head, 0), one_of("off", way, WAYS)) for head, way in pairs))
    twice = next((head for (head, _), (other, _) in pairwise(pairs) if head == other), None)  # they are sorted
    if twice is not None:
        rule = f"names head {twice} more than once; it can be put off in one way."
        raise Wrong("off", pairs, rule, [{"off": tuple(dict(pairs).items())}])
    return pairs


def _positions(value: object) -> tuple[int, ...]:
    value = listed("hidden_keys", value, "must be positions of keys, as in (3, 7).", [{"hidden_keys": ()}])
    right, first = set(), None
    for key in value:
        try:
            right.add(whole("hidden_keys", key, 0))
        except Wrong as wrong:
            first = first or wrong
    if first is not None:
        rule = f"must be positions of keys, whole numbers from 0, and {first.value!r} is not."
        raise Wrong("hidden_keys", value, rule, [{"hidden_keys": tuple(sorted(right))}])
    return tuple(sorted(right))


def _temperature(value: object) -> float:
    least, most = TEMPERATURES
    given = read_number(value)
    number = closest_number(given)
    if isinstance(given, str) or not least <= number <= most:
        near = 1.0 if math.isnan(number) else min(max(number, least), most)
        raise Wrong(
            "temperature", value, f"must be a number from {least:g} to {most:g}; 1 changes nothing.", [{"temperature": near}]
        )
    return number
