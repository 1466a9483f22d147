"""Checks of gradients: that they are right, finite, absent where nothing may be learned, and present in every head."""

from dataclasses import dataclass

import numpy as np

from mha_viz.analysis.layout import mask_tensors
from mha_viz.analysis.validation.check import Cannot, Measured, number, question

FEW_ITEMS, FEW_TOKENS = 2, 6  # on which gradcheck runs: it is quadratic in them
NOISE = 1e-12  # a gradient below this, relative to the largest head's, is none


@dataclass(frozen=True, eq=False)
class Gradients:
    """Gradients of the mean square of real outputs: ``weights`` by name, ``tokens`` a list of [N, L|S, …], ``loss``; all float64."""

    weights: dict
    tokens: list
    loss: float


def gradients(s):
    """The Gradients of a Subject: PyTorch's own module, on the path that makes weights, as training with them shown would run."""
    import torch

    layer, batch = s.attended
    module = s.module(layer, "float64", True)
    tokens = [torch.tensor(x, dtype=torch.float64).requires_grad_() for x in (batch.query, batch.key, batch.value) if x is not None]
    query, key, value = (*tokens, *tokens[-1:] * 2)[:3]
    padding, attn_mask = mask_tensors(batch, "float64")
    output, _ = module(query, key, value, padding, attn_mask=attn_mask)
    rows = torch.tensor(s.real)
    if not rows.any():
        raise Cannot("Every query is padding: no real output is left for a loss.")
    loss = (output[rows] ** 2).mean()
    loss.backward()
    weights = {name: parameter.grad.numpy() for name, parameter in module.named_parameters() if parameter.grad is not None}
    return Gradients(weights, [x.grad.numpy() for x in tokens], float(loss.detach()))


@question("gradcheck", "Gradients are those of the function (gradcheck)")
def gradcheck(s):
    import torch

    layer, batch = s.attended
    if s.trace.undefined.any():
        raise Cannot("Some queries have no key: what is NaN has no derivative. “Every query has a key that it may see” says which.")
    N, L, S = min(batch.N, FEW_ITEMS), min(batch.L, FEW_TOKENS), min(batch.S, FEW_TOKENS)
    module = s.module(layer, "float64", True)
    few = [(batch.query, L), (batch.key, S), (batch.value, S)]
    tokens = [torch.tensor(x[:N, :length], dtype=torch.float64).requires_grad_() for x, length in few if x is not None]
    hidden = s.mask[:N, :, :L, :S]
    hidden = np.where(hidden.all(axis=-1, keepdims=True), False, hidden)  # the crop may leave a query without keys
    attn_mask = torch.tensor(hidden).reshape(-1, L, S)  # [N·H, L, S]
    names, parameters = zip(*module.named_parameters(), strict=True)

    def function(*given):
        query, key, value = (*given[: len(tokens)], *[given[len(tokens) - 1]] * 2)[:3]
        named = dict(zip(names, given[len(tokens) :], strict=True))
        return torch.func.functional_call(module, named, (query, key, value), {"attn_mask": attn_mask})

    generator = torch.random.get_rng_state()
    try:
        said = _gradcheck(function, (*tokens, *parameters))
    finally:
        torch.random.set_rng_state(generator)  # fast mode draws its directions from the generator that everybody shares
    return Measured(
        "derivatives that PyTorch computes against differences, by tokens and all weights, along random directions (fast mode, float64), "
        f"on {number(N, 'item')} of {number(L, 'query', 'queries')}", len(said), "They agree.", " ".join(said), tolerance=0,
    )  # fmt: skip


def _gradcheck(function, inputs):
    """[] where ``torch.autograd.gradcheck`` in fast mode is content, else what it says."""
    from torch.autograd.gradcheck import GradcheckError, gradcheck

    try:
        gradcheck(function, inputs, fast_mode=True)
    except GradcheckError as error:
        return [str(error).strip().splitlines()[0]]
    return []


@question("gradients_finite", "Every gradient is finite")
def gradients_finite(s):
    found = gradients(s)
    bad = {name: int((~np.isfinite(array)).sum()) for name, array in found.weights.items()}
    names = ("query", "key", "value") if len(found.tokens) > 1 else ("input",)
    bad |= {name: int((~np.isfinite(array)).sum()) for name, array in zip(names, found.tokens, strict=False)}
    where = ", ".join(f"{count:,} of {name}" for name, count in bad.items() if count)
    loss = f"The loss itself, mean square of the real outputs, is {found.loss:.4g}"
    return Measured(
        "derivatives of the mean square of real outputs by every weight and every input", sum(bad.values()), f"All are. {loss}.",
        f"{loss}, and yet not finite: {where}. One undefined row is enough, since 0 · NaN is NaN: mask so that each query keeps a key.",
        tolerance=0,
    )  # fmt: skip


@question("gradients_padding", "No gradient reaches a padded token")
def gradients_padding(s):
    _, batch = s.attended
    padded = s.padded[:, : batch.S]
    found = gradients(s)
    most = max(float(np.abs(array[padded]).max()) for array in (found.tokens if batch.key is None else found.tokens[1:]))
    return Measured(
        f"derivatives of the mean square of real outputs by {number(int(padded.sum()), 'padded token')}, against 0",
        float("inf") if np.isnan(most) else most, "Every one is 0.",
        "NaN reaches the padded tokens." if np.isnan(most) else "The layer learns from its padding.", tolerance=0,
    )  # fmt: skip


@question("gradients_heads", "Every head learns")
def gradients_heads(s):
    norms = head_norms(s)
    if not np.isfinite(norms).all():
        raise Cannot("Gradients are not finite: there are no norms to compare.")
    listed = ", ".join(f"{head}: {norm:.3g}" for head, norm in enumerate(norms[:32])) + (", …" if len(norms) > 32 else "")
    share = float(norms.min() / norms.max()) if norms.max() else 0.0
    dead = np.flatnonzero(norms <= NOISE * norms.max()) if norms.max() else np.arange(len(norms))
    return Measured(
        "the smallest norm of a head's gradients (its rows of Wq, Wk, Wv, its columns of out_proj.weight), relative to the largest", share,
        f"Norms by head: {listed}.",
        f"No gradient reaches {number(len(dead), 'head')}: {', '.join(map(str, dead[:16]))}. By head: {listed}.", least=NOISE,
    )  # fmt: skip


def head_norms(s):
    """[H] float64: the norm of all gradients by a head's own weights."""
    layer, _ = s.attended
    found, H, D = gradients(s).weights, layer.num_heads, layer.head_dim
    packed = found.get("in_proj_weight")
    parts = [found[f"{name}_proj_weight"] for name in "qkv"] if packed is None else np.split(packed, 3)
    squares = sum((part.reshape(H, D, -1) ** 2).sum(axis=(1, 2)) for part in parts)  # [H]
    return np.sqrt(squares + (found["out_proj.weight"].reshape(-1, H, D) ** 2).sum(axis=(0, 2)))  # [H]


