"""What is validated, and how it is run again with something changed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Literal, TypedDict, overload

import numpy as np

from mha_viz.analysis.causes import origin_of_nonfinite
from mha_viz.analysis.layout import mask_tensors, module_of
from mha_viz.analysis.validation.check import Cannot
from mha_viz.core.attend import attend, call_of, trace_of_call
from mha_viz.core.decode import decode
from mha_viz.core.trace import Trace

if TYPE_CHECKING:
    from typing import Unpack

    from jaxtyping import Bool, Float, Float64, Shaped
    from torch import nn

    from mha_viz.core.arrays import Dtype
    from mha_viz.core.batch import Batch
    from mha_viz.core.call import Call
    from mha_viz.core.decode import Decoding
    from mha_viz.core.layer import Layer


MOST_RUNS = 24  # that one check makes


class Changes(TypedDict, total=False):
    """Fields of a Batch, to be changed."""

    query: Float[np.ndarray, "N L E"]
    key: Float[np.ndarray, "N S kdim"] | None
    value: Float[np.ndarray, "N S vdim"] | None
    key_padding_mask: Shaped[np.ndarray, "N S"] | None
    attn_mask: Shaped[np.ndarray, "... L S"] | None
    query_padding_mask: Bool[np.ndarray, "N L"] | None
    query_tokens: tuple[tuple[str, ...], ...]
    key_tokens: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, eq=False)
class Subject:
    """A ``trace`` to validate, and what its checks run: ``attend`` and ``decode`` on its Layer and Batch, ``rerun`` on its Call where only
    q, k, v are known, ``module`` for PyTorch's own. What another layer gives in their place is validated as well."""

    trace: Trace
    attend: Callable[..., Trace] = attend
    decode: Callable[..., Decoding] = decode
    rerun: Callable[[Call], Trace] = trace_of_call
    module: Callable[[Layer, Dtype, bool], nn.MultiheadAttention] = module_of

    @property
    def name(self) -> str:
        return self.trace.name

    @property
    def dtype(self) -> Dtype:
        return self.trace.dtype

    @cached_property
    def origin(self) -> str | None:
        """Where a number came in that is not finite, as a sentence; None where all that is known to have come in is finite."""
        return origin_of_nonfinite(self.trace)

    def check_finite(self) -> None:
        """Raises Cannot where a number that is not finite came in: what is made of it says nothing about the layer."""
        if self.origin is not None:
            raise Cannot(
                f"{self.origin}. Mend that first: what is made of it is not finite, whatever this check looks at does."
            )

    @property
    def nonfinite(self) -> Bool[np.ndarray, "N H L"]:
        """Rows that are not finite because of what came in; those that are so for another reason are not excused."""
        return self.trace.nonfinite if self.origin is not None else np.zeros(self.trace.undefined.shape, bool)

    @property
    def real(self) -> Bool[np.ndarray, "N L"]:
        """Queries that are no padding."""
        return ~self.trace.query_padding

    @property
    def attended(self) -> tuple[Layer, Batch]:
        """The layer and its batch; raises Cannot where the Trace has none."""
        self._check_whole()
        if self.trace.layer is None or self.trace.batch is None:
            raise Cannot("What went into the layer and its input projections are not known here: only what came out of them.")
        return self.trace.layer, self.trace.batch

    @property
    def call(self) -> Call:
        """The Call; raises Cannot where the Trace holds its weights alone."""
        self._check_whole()
        if not self.trace.has("q", "k"):
            raise Cannot("The attention weights alone are known here: nothing can be computed again from them.")
        return call_of(self.trace)

    @property
    def mask(self) -> Bool[np.ndarray, "N H L S"]:
        """True where a query may not attend; raises Cannot where only zeros in the weights tell of a mask."""
        if not self.trace.has("q", "k"):
            raise Cannot("The attention weights alone are known here: which keys a mask hid, they do not say.")
        return self.trace.mask

    @property
    def padded(self) -> Bool[np.ndarray, "N S"]:
        """Keys that are hidden as padding, extra columns included; raises Cannot where there are none."""
        N, S = len(self.trace.weights), self.trace.weights.shape[3]
        hidden = np.zeros((N, S), bool)
        rules, batch = self.trace.rules, self.trace.batch
        if rules is None:
            raise Cannot("The attention weights alone are known here: which keys are padding, they do not say.")
        if rules.padded is not None:
            hidden[:, : rules.num_keys] |= rules.padded
            if (
                rules.may_spare
            ):  # a number that stands everywhere in an item hides nothing there, unless its queries are padding too
                spared = np.broadcast_to(rules.spared().all(axis=(1, 2, 3)), N)  # [N]
                hidden[spared & self.real.any(axis=1)] = False
        if batch is not None and batch.key_padding_mask is not None and batch.key_padding_mask.dtype != bool:
            hidden[:, : rules.num_keys] |= np.isneginf(batch.key_padding_mask)
        if not hidden.any():
            raise Cannot("No key is padded here. Pad an item to check what padding does.")
        return hidden

    @property
    def whole_call(self) -> Call:
        """The Call; raises Cannot where its values are not known."""
        if self.call.v is None:
            raise Cannot("The values are not known here.")
        return self.call

    @property
    def values(self) -> Float[np.ndarray, "N G S D"]:
        """The values of the Call; raises Cannot where they are not known."""
        assert self.whole_call.v is not None
        return self.whole_call.v

    @property
    def has_layer(self) -> bool:
        """True where the Layer and its Batch are known, not only what came out of the projections."""
        return self.trace.layer is not None and self.trace.batch is not None

    def added(self) -> Float64[np.ndarray, "N H L S"]:
        """What the masks add to the scores, −∞ where they hide."""
        bias = 0 if self.trace.mask_bias is None else self.trace.mask_bias.astype(np.float64)
        return np.where(self.mask, -np.inf, bias)

    def _check_whole(self) -> None:
        if self.trace.off:
            raise Cannot(
                "A head is off in this Trace: what is left of it is no multi-head attention. Check it with its heads on."
            )
        if self.trace.plain is not self.trace:
            raise Cannot("Its cells are no attention weights.")

    def again(self, dtype: Dtype | None = None, **changed: Unpack[Changes]) -> Trace:
        """The Trace of the same layer, in eval mode, on the same batch with these of its fields changed."""
        layer, batch = self.attended
        return self.attend(layer, replace(batch, **changed), dtype=dtype or self.dtype)

    def replaced(self, where: Bool[np.ndarray, "N S"]) -> tuple[Trace, Bool[np.ndarray, "N L"]]:
        """The Trace in which the tokens ``where`` hold other, larger numbers, and which rows ask what they asked.

        In self-attention a token asks as well as it is read.
        """
        rng = np.random.default_rng(0)
        if self.has_layer:
            _, batch = self.attended
            where = where[:, : batch.S]
            names: tuple[Literal["query", "key", "value"], ...] = ("query",)
            if batch.key is not None:
                names = ("key",) if batch.value is None else ("key", "value")
            changed: Changes = {}
            for name in names:
                changed[name] = other(getattr(batch, name), where, rng)
            stayed = ~where if batch.key is None else np.ones((batch.N, batch.L), bool)
            return self.again(**changed), stayed
        call = self.call
        k = other(call.k, where, rng)
        v = None if call.v is None else other(call.v, where, rng)
        return self.rerun(replace(call, k=k, v=v)), np.ones(self.real.shape, bool)

    def before(self) -> Trace:
        """The Trace that others are compared with: this one, without dropout."""
        if self.has_layer:
            return self.again()
        return self.rerun(self.call)

    @overload
    def run_module(
        self, *, dtype: Dtype = "float32", batch_first: bool = True, need_weights: Literal[True] = True, fast: bool = False
    ) -> tuple[Float[np.ndarray, "N L E"], Float[np.ndarray, "N H L S"]]: ...
    @overload
    def run_module(
        self, *, dtype: Dtype = "float32", batch_first: bool = True, need_weights: Literal[False], fast: bool = False
    ) -> tuple[Float[np.ndarray, "N L E"], Float[np.ndarray, "N H L S"] | None]: ...
    def run_module(
        self, *, dtype: Dtype = "float32", batch_first: bool = True, need_weights: bool = True, fast: bool = False
    ) -> tuple[Float[np.ndarray, "N L E"], Float[np.ndarray, "N H L S"] | None]:
        """Output and weights of PyTorch's own module in eval mode, as NumPy; ``fast`` without gradients."""
        import torch

        layer, batch = self.attended
        module = self.module(layer, dtype, batch_first).eval()
        padding, attn_mask = mask_tensors(batch, dtype)
        tokens = [torch.tensor(x).to(getattr(torch, dtype)) for x in (batch.query, batch.key, batch.value) if x is not None]
        tokens = tokens if batch_first else [x.transpose(0, 1) for x in tokens]
        query, key, value = (*tokens, *tokens[-1:] * 2)[:3]
        with torch.set_grad_enabled(not fast):
            output, weights = module(
                query, key, value, padding, need_weights=need_weights, attn_mask=attn_mask, average_attn_weights=False
            )
        output = output if batch_first else output.transpose(0, 1)
        return output.detach().numpy(), None if weights is None else weights.detach().numpy()


def other(
    array: Float[np.ndarray, "N ... last"], where: Bool[np.ndarray, "N S"], rng: np.random.Generator
) -> Float[np.ndarray, "N ... last"]:
    """``array`` [N, S, E] or [N, G, S, D] with other numbers, ten times as large, at the tokens ``where`` [N, S]."""
    changed = np.array(array)
    place = where[:, None] if array.ndim == 4 else where  # [N, 1, S] or [N, S]
    place = np.broadcast_to(place, array.shape[:-1])
    finite = array[np.isfinite(array)].astype(np.float64)
    size = 10 * max(float(np.sqrt((finite**2).mean())) if finite.size else 1.0, 1e-3)
    changed[place] = rng.normal(0, size, (int(place.sum()), array.shape[-1]))
    return changed


def result(trace: Trace) -> Float[np.ndarray, "N L ..."]:
    """What a call came to, [N, L, …]: its output, or what is known before it."""
    if trace.has("output"):
        return trace.output
    if trace.has("concat"):
        return trace.concat
    rows: Float[np.ndarray, "N L H S"] = trace.probabilities.swapaxes(1, 2)
    return rows


def spread(count: int, most: int = MOST_RUNS) -> list[int]:
    """At most ``most`` of the numbers from 0 to ``count`` − 1, evenly, the first and the last among them."""
    numbers: list[int] = np.unique(np.linspace(0, count - 1, min(count, most)).round().astype(int)).tolist()
    return numbers
