"""Checks of gradients: that they are right, finite, absent where nothing may be learned, and present in every head."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from mha_viz.analysis.layout import mask_tensors
from mha_viz.analysis.validation.check import Cannot, Measured, number, question_of_finite
from mha_viz.core.decimals import prose

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Float64
    from torch import Tensor, nn

    from mha_viz.analysis.validation.subject import Subject


FEW_ITEMS, FEW_TOKENS = 2, 6  # on which gradcheck runs: it is quadratic in them
NOISE = 1e-12  # a gradient below this, relative to the largest head's, is none


@dataclass(frozen=True, eq=False)
class Gradients:
    """Gradients of the mean square of real outputs: of the layer's ``weights`` by name, none of them where only a Call is known, and
    of what was ``given`` by name, query, key, value or q, k, v; ``loss``; all float64."""

    weights: dict[str, Float64[np.ndarray, ...]]
    given: dict[str, Float64[np.ndarray, ...]]
    loss: float


Function: TypeAlias = Callable[..., "Tensor | tuple[Tensor, Tensor]"]  # of the tensors that gradients are wanted by


def gradients(s: Subject) -> Gradients:
    """The Gradients of a Subject: through PyTorch's own module, on the path that makes weights, or through the Call's q, k and v."""
    import torch

    run: Callable[..., Tensor]
    given: dict[str, np.ndarray]
    parameters: dict[str, nn.Parameter] = {}
    if s.has_layer:
        layer, batch = s.attended
        module = s.module(layer, "float64", True)
        given = {name: getattr(batch, name) for name in ("query", "key", "value") if getattr(batch, name) is not None}
        parameters = dict(module.named_parameters())
        padding, attn_mask = mask_tensors(batch, "float64")

        def of_module(*tokens: Tensor) -> Tensor:
            query, key, value = (*tokens, *tokens[-1:] * 2)[:3]
            output: Tensor = module(query, key, value, padding, attn_mask=attn_mask)[0]  # [N, L, E]
            return output

        run = of_module
    else:
        call = s.whole_call
        given, added = {"q": call.q, "k": call.k, "v": s.values}, torch.tensor(s.added())

        def of_call(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            if call.without_key == "nan":
                return mixed(q, k, v, added, call.scale).flatten(2)  # [N, L, H·D]
            empty = added.isneginf().all(dim=-1, keepdim=True)  # [N, H, L, 1]
            found = mixed(q, k, v, added.masked_fill(empty, 0), call.scale)  # [N, L, H, D]
            return found.masked_fill(empty.transpose(1, 2), 0).flatten(2)  # [N, L, H·D]

        run = of_call

    tokens = [torch.tensor(x, dtype=torch.float64).requires_grad_() for x in given.values()]
    rows = torch.tensor(s.real)
    if not rows.any():
        raise Cannot("Every query is padding: no real output is left for a loss.")
    loss = (run(*tokens)[rows] ** 2).mean()
    loss.backward()
    weights = {name: parameter.grad.numpy() for name, parameter in parameters.items() if parameter.grad is not None}
    of_given = {name: x.grad.numpy() for name, x in zip(given, tokens, strict=True) if x.grad is not None}
    return Gradients(weights, of_given, float(loss.detach()))


def mixed(
    q: Float[Tensor, "N H L D"],
    k: Float[Tensor, "N G S D"],
    v: Float[Tensor, "N G S D"],
    added: Float[Tensor, "N H L S"],
    scale: float,
) -> Float[Tensor, "N L H D"]:
    """softmax(scale · q kᵀ + added) v, grouped key and value heads seen by their groups."""
    import torch

    groups = q.shape[1] // k.shape[1]
    k, v = (x.repeat_interleave(groups, dim=1) for x in (k, v))  # [N, H, S, D]
    return (torch.softmax(q @ k.transpose(2, 3) * scale + added, dim=-1) @ v).transpose(1, 2)


@question_of_finite("gradcheck", "Gradients are those of the function (gradcheck)")
def gradcheck(s: Subject) -> Measured:
    import torch

    if s.trace.undefined.any():
        raise Cannot(
            "Some queries have no key: what is NaN has no derivative. “Every query has a key that it may see” says which."
        )
    if s.trace.nonfinite.any():
        raise Cannot("Some rows of weights are not finite, though all that came in is: what is NaN has no derivative.")
    N, L = (min(size, few) for size, few in zip(s.real.shape, (FEW_ITEMS, FEW_TOKENS), strict=True))
    S = min(s.trace.num_positions, FEW_TOKENS)
    function: Function
    few: list[tuple[np.ndarray | None, int]]
    inputs: list[Tensor]
    if s.has_layer:
        layer, batch = s.attended
        module = s.module(layer, "float64", True)
        few = [(batch.query, L), (batch.key, S), (batch.value, S)]
        inputs = [torch.tensor(x[:N, :length], dtype=torch.float64).requires_grad_() for x, length in few if x is not None]
        attn_mask = torch.tensor(_few(s.mask[:N, :, :L, :S])).flatten(0, 1)  # [N·H, L, S]
        names, parameters = zip(*module.named_parameters(), strict=True)
        count, inputs = len(inputs), [*inputs, *parameters]

        def of_module(*given: Tensor) -> tuple[Tensor, Tensor]:
            query, key, value = (*given[:count], *[given[count - 1]] * 2)[:3]
            named = dict(zip(names, given[count:], strict=True))
            output, weights = torch.func.functional_call(module, named, (query, key, value), {"attn_mask": attn_mask})
            return output, weights

        function = of_module
    else:
        call = s.whole_call
        few = [(call.q, L), (call.k, S), (s.values, S)]
        inputs = [torch.tensor(x[:N, :, :length], dtype=torch.float64).requires_grad_() for x, length in few if x is not None]
        added = torch.where(torch.tensor(_few(s.mask[:N, :, :L, :S])), -torch.inf, 0.0).double()  # [N, H, L, S]

        def of_call(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            return mixed(q, k, v, added, call.scale)

        function = of_call

    generator = torch.random.get_rng_state()
    try:
        torch.manual_seed(0)  # fast mode draws its directions from the generator that everybody shares
        said = _gradcheck(function, inputs)
    finally:
        torch.random.set_rng_state(generator)
    return Measured(
        f"derivatives that PyTorch computes against differences, by {'tokens and all weights' if s.has_layer else 'q, k and v'}, along "
        "random directions (fast mode, float64), "
        f"on {number(N, 'item')} of {number(L, 'query', 'queries')}",
        len(said),
        "They agree.",
        " ".join(said),
        tolerance=0,
    )


def _few(hidden: Bool[np.ndarray, "N H L S"]) -> Bool[np.ndarray, "N H L S"]:
    """A mask cut to few tokens, in which no query is left without a key."""
    return np.where(hidden.all(axis=-1, keepdims=True), False, hidden)


def _gradcheck(function: Function, inputs: Sequence[Tensor]) -> list[str]:
    """[] where ``torch.autograd.gradcheck`` in fast mode is content, else what it says."""
    from torch.autograd.gradcheck import GradcheckError, gradcheck

    try:
        gradcheck(function, inputs, fast_mode=True)
    except GradcheckError as error:
        return [str(error).strip().splitlines()[0]]
    return []


@question_of_finite("gradients_finite", "Every gradient is finite")
def gradients_finite(s: Subject) -> Measured:
    found = gradients(s)
    bad = {name: int((~np.isfinite(array)).sum()) for name, array in found.weights.items()}
    bad |= {name: int((~np.isfinite(array)).sum()) for name, array in found.given.items()}
    where = ", ".join(f"{count:,} of {name}" for name, count in bad.items() if count)
    loss = f"The loss itself, mean square of the real outputs, is {prose(found.loss, '.4g')}"
    why = "One undefined row is enough, since 0 · NaN is NaN: mask so that each query keeps a key."
    if not s.trace.undefined.any():
        why = "One number that overflows is enough, since 0 · NaN is NaN."
    return Measured(
        f"derivatives of the mean square of real outputs by {', '.join(bad)}",
        sum(bad.values()),
        f"All are. {loss}.",
        f"{loss}. Not finite: {where}. {why}",
        tolerance=0,
    )


@question_of_finite("gradients_padding", "No gradient reaches a padded token")
def gradients_padding(s: Subject) -> Measured:
    padded = s.padded
    found = gradients(s).given
    if s.has_layer:
        padded = padded[:, : s.trace.num_positions]
        read = [found[name][padded] for name in ("key", "value") if name in found] or [found["query"][padded]]
    else:
        read = [found[name].swapaxes(1, 2)[padded] for name in ("k", "v")]
    most = max(float(np.abs(array).max()) for array in read)
    return Measured(
        f"derivatives of the mean square of real outputs by {number(int(padded.sum()), 'padded token')}, against 0",
        float("inf") if np.isnan(most) else most,
        "Every one is 0.",
        "NaN reaches the padded tokens." if np.isnan(most) else "The layer learns from its padding.",
        tolerance=0,
    )


@question_of_finite("gradients_heads", "Every head learns")
def gradients_heads(s: Subject) -> Measured:
    norms = head_norms(s)
    if not np.isfinite(norms).all():
        raise Cannot("Gradients are not finite: there are no norms to compare.")
    listed = ", ".join(f"{head}: {prose(norm, '.3g')}" for head, norm in enumerate(norms[:32])) + (
        ", …" if len(norms) > 32 else ""
    )
    share = float(norms.min() / norms.max()) if norms.max() else 0.0
    dead = np.flatnonzero(norms <= NOISE * norms.max()) if norms.max() else np.arange(len(norms))
    whose = "its rows of Wq, Wk, Wv, its columns of out_proj.weight" if s.has_layer else "by its q, k and v"
    return Measured(
        f"the smallest norm of a head's gradients ({whose}), relative to the largest",
        share,
        f"Norms by head: {listed}.",
        f"No gradient reaches {number(len(dead), 'head')}: {', '.join(map(str, dead[:16]))}. By head: {listed}.",
        least=NOISE,
        by_head=tuple(norms.tolist()),
    )


def head_norms(s: Subject) -> Float64[np.ndarray, " H"]:
    """The norm of all gradients by a head's own weights, or by its q, k and v where these alone are known."""
    found = gradients(s)
    squares: list[Float64[np.ndarray, " H"]]
    if not s.has_layer:
        H = found.given["q"].shape[1]
        each = [array.repeat(H // array.shape[1], axis=1) for array in found.given.values()]  # [N, H, L|S, D]
        squares = [(array**2).sum(axis=(0, 2, 3)) for array in each]
    else:
        layer, _ = s.attended
        H, D, packed = layer.num_heads, layer.head_dim, found.weights.get("in_proj_weight")
        parts = [found.weights[f"{name}_proj_weight"] for name in "qkv"] if packed is None else np.split(packed, 3)
        squares = [(part.reshape(H, D, -1) ** 2).sum(axis=(1, 2)) for part in parts]
        squares.append((found.weights["out_proj.weight"].reshape(-1, H, D) ** 2).sum(axis=(0, 2)))
    norms: Float64[np.ndarray, " H"] = np.sqrt(np.sum(squares, axis=0))
    return norms
