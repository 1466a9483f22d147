"""Attention inside PyTorch's own modules, made again from what goes into them: whichever path PyTorch takes stays taken."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias, TypeGuard

import torch
from torch import nn
from torch.nn import functional as F

from mha_viz.core.engine import project_heads
from mha_viz.sources.capture.agreement import gap, gives_zero
from mha_viz.sources.capture.axes import leaves
from mha_viz.sources.capture.beneath import NoNumbers, NoTokens, alone, batched, has_numbers, mapped, plain
from mha_viz.sources.capture.masks import of_floats, row_without_key, split, symbolic, together
from mha_viz.sources.capture.rows import numbers_of

if TYPE_CHECKING:
    import numpy as np
    from jaxtyping import Int
    from torch import Tensor

    from mha_viz.core.mask import Mask
    from mha_viz.sources.capture.axes import Axis
    from mha_viz.sources.capture.beneath import Args, Kwargs
    from mha_viz.sources.capture.kept import Kept
    from mha_viz.sources.capture.rows import Rows
    from mha_viz.sources.capture.run import Run

FAST = nn.MultiheadAttention, nn.TransformerEncoderLayer, nn.TransformerEncoder  # what has a fast path
ARGUMENTS = {cls: inspect.signature(cls.forward) for cls in FAST}
FUNCTION = inspect.signature(F.multi_head_attention_forward)


Inputs: TypeAlias = "tuple[Tensor, Tensor, Tensor]"  # query, key, value
Result: TypeAlias = "tuple[Tensor, bool]"  # what the model computed, and whether its items come first


def is_multihead(module: object) -> TypeGuard[nn.MultiheadAttention]:
    """True for an ``nn.MultiheadAttention`` that computes what PyTorch's does."""
    return isinstance(module, nn.MultiheadAttention) and type(module).forward is nn.MultiheadAttention.forward


def before(run: Run, module: nn.Module, args: Args, kwargs: Kwargs) -> Callable[[Any], None] | None:
    """``module`` is about to run: a function that is to be told its output, or None."""
    if is_multihead(module):
        return lambda output: from_module(run, module, arguments(module, args, kwargs), output[0])
    if isinstance(module, nn.TransformerEncoderLayer) and is_multihead(module.self_attn):
        calls = run.calls_of(module.self_attn)

        def see(output: object) -> None:
            if run.calls_of(module.self_attn) == calls:  # one kernel for the whole layer: its attention never ran by itself
                from_fast_layer(run, module, arguments(module, args, kwargs))

        return see
    if isinstance(module, nn.TransformerEncoder):
        src = arguments(module, args, kwargs)["src"]
        run.padded_length = src.shape[1] if src.dim() == 3 else None
    return None


def arguments(module: nn.Module, args: Args, kwargs: Kwargs) -> dict[str, Any]:
    """What ``forward`` was called with, by name."""
    signature = next(signature for cls, signature in ARGUMENTS.items() if isinstance(module, cls))
    bound = signature.bind(module, *args, **kwargs)
    bound.apply_defaults()
    return bound.arguments


def from_module(run: Run, module: nn.MultiheadAttention, given: Mapping[str, Any], output: Tensor) -> None:
    """Keep a call of ``nn.MultiheadAttention``."""
    given_output = output
    run.called(module)
    if not run.wants(run.names[module]):
        return
    query, key, value = _beneath(*(given[name] for name in ("query", "key", "value")))
    attn_mask, padding, is_causal = alone(given["attn_mask"]), alone(given["key_padding_mask"]), given["is_causal"]
    if query.is_nested:
        query, padding = _padded(run, module, query)
        key = value = query
    _say_layout(run, module, given, query)
    if is_causal and attn_mask is None:
        _say_ignored(run, module)
    items_first = module.batch_first and query.dim() == 3
    padding = padding if padding is None or query.dim() == 3 else padding[None]
    result = None if output.is_nested else (output, items_first)
    if is_causal and attn_mask is not None and padding is None and not given["need_weights"]:
        hint = _top_left(attn_mask)
        hides = attn_mask if attn_mask.dtype == torch.bool else split(attn_mask)[0]
        if not bool((hides == hint).all()) and (
            module.training
            or (result is not None and _believed(module, _sequence_first(query, key, value, items_first), attn_mask, result))
        ):
            sentence = "is_causal was believed, and the attn_mask beside it, which is not causal, never read."
            run.note(sentence, run.names[module])
            attn_mask = hint
    kept = multihead(
        run,
        module,
        (query, key, value),
        items_first,
        module.num_heads,
        parameters(module),
        module.add_zero_attn,
        padding,
        attn_mask,
        module.dropout if module.training else 0.0,
        result,
        not given["need_weights"],
        None if given["query"].is_nested else (given["query"], given["key"]),
    )
    if run.watch:
        run.watch.result(kept.order, given_output)


def from_fast_layer(run: Run, layer: nn.TransformerEncoderLayer, given: Mapping[str, Any]) -> None:
    """Keep the attention of an ``nn.TransformerEncoderLayer`` that took its fast path, made again from the layer's input."""
    module, src = layer.self_attn, given["src"]
    run.called(module)
    if not run.wants(run.names[module]):
        return
    if given["is_causal"] and given["src_mask"] is None:
        _say_ignored(run, module)
    src, padding, attn_mask = map(alone, (src, given["src_key_padding_mask"], given["src_mask"]))
    read = None if src.is_nested else (given["src"], given["src"])
    if src.is_nested:
        src, padding = _padded(run, module, src)
    for name, mask in (("src_key_padding_mask", padding), ("src_mask", attn_mask)):
        if mask is not None and mask.dtype != torch.bool and split(mask)[1] is not None:
            run.note(
                f"the fast path reads {name} as yes or no. Each of its numbers that is not 0 hides a key, where in training the number "
                "would be added to the scores.",
                run.names[module],
            )
    padding, attn_mask = (mask if mask is None or mask.dtype == torch.bool else mask != 0 for mask in (padding, attn_mask))
    x = layer.norm1(src) if layer.norm_first else src
    multihead(
        run, module, (x, x, x), True, module.num_heads, parameters(module), False, padding, attn_mask, 0.0, None, read=read
    )


def from_function(run: Run, module: nn.Module, args: Args, kwargs: Kwargs, output: tuple[Tensor, Tensor | None]) -> None:
    """Keep a call of ``F.multi_head_attention_forward``, with which some models attend without the module."""
    bound = FUNCTION.bind(*args, **kwargs)
    bound.apply_defaults()
    given = bound.arguments
    name = run.names[module]
    if not run.wants(name):
        return
    if given["static_k"] is not None or given["static_v"] is not None:
        run.note("static_k and static_v of multi_head_attention_forward cannot be recorded.", name)
        return
    separate = given["use_separate_proj_weight"]
    kinds = ("q_proj_weight", "k_proj_weight", "v_proj_weight") if separate else ("in_proj_weight",)
    W = {kind: given[kind] for kind in (*kinds, "in_proj_bias", "bias_k", "bias_v") if given[kind] is not None}
    W |= {"out_proj.weight": given["out_proj_weight"], "out_proj.bias": given["out_proj_bias"]}
    query, key, value = _beneath(*(given[part] for part in ("query", "key", "value")))
    padding, attn_mask = alone(given["key_padding_mask"]), alone(given["attn_mask"])
    if given["is_causal"] and attn_mask is not None and padding is None and not given["need_weights"]:
        attn_mask = _top_left(attn_mask)  # believed: the mask itself is never read
    multihead(
        run,
        module,
        (query, key, value),
        False,
        given["num_heads"],
        W,
        given["add_zero_attn"],
        padding if padding is None or query.dim() == 3 else padding[None],
        attn_mask,
        given["dropout_p"] if given["training"] else 0.0,
        (output[0], False),
        not given["need_weights"],
        (given["query"], given["key"]),
    )


def multihead(
    run: Run,
    module: nn.Module,
    inputs: Inputs,
    items_first: bool,
    num_heads: int,
    W: Mapping[str, Tensor],
    add_zero_attn: bool,
    padding: Tensor | None,
    attn_mask: Tensor | None,
    dropout: float,
    result: Result | None,
    no_weights: bool = False,
    read: tuple[Tensor, Tensor] | None = None,
) -> Kept:
    """Keep one call: query, key and value before projection, masks as ``nn.MultiheadAttention`` takes them.

    ``result`` is what the model computed, in the same order of axes, as (output, items first), or None; ``no_weights`` says that no
    weights were asked for, and ``read`` are query and key as they came. Along each level of ``torch.vmap`` there are more batch items.
    """
    name = run.names[module]
    if not has_numbers(inputs[0]):
        raise NoNumbers
    if not all(x.numel() for x in inputs):
        raise NoTokens
    absorbs = inputs[0].dtype == torch.float16 and not no_weights
    places = [next(i for i, other in enumerate(inputs) if other is x) for x in inputs]  # which of them are one tensor
    kinds = tuple(W)

    def project(*tensors: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        query, key, value = (tensors[place] for place in places)
        query, key, value = _sequence_first(query, key, value, items_first)  # [L|S, N, E]
        return project_heads(dict(zip(kinds, tensors[3:], strict=True)), query, key, value, num_heads, add_zero_attn)

    (q, k, v), levels = mapped(project, *inputs, *W.values())  # [levels…, N·H, L|S + extra, D]
    times = math.prod(levels)
    q, k, v = (t.unflatten(-3, (-1, num_heads)).flatten(0, len(levels)) for t in (q, k, v))  # [times·N, H, L|S + extra, D]
    N, L, S = len(q) // times, q.shape[2], inputs[1].shape[1 if items_first else 0]
    query, key = inputs[:2]
    one_projection = not (batched(W["out_proj.weight"]) or batched(W.get("out_proj.bias")))
    out = (alone(W["out_proj.weight"]), alone(W.get("out_proj.bias"))) if one_projection else None
    labels = ("bias_k",) * ("bias_k" in W) + ("zero",) * add_zero_attn
    rules: list[Mask] = [symbolic(L, S, extra=len(labels))]
    if attn_mask is not None:
        shape = (1, 1, L, S) if attn_mask.dim() == 2 else (N, num_heads, L, S)
        rules += _rules(run, attn_mask, shape, times, L, S, len(labels), absorbs)
    if padding is not None:
        rules += _rules(run, padding, (N, 1, 1, S), times, L, S, len(labels), absorbs)
    mask = together(rules, q.dtype)
    if mask.may_spare and row_without_key(mask):
        run.minimum(name)
    if dropout:
        run.note(f"dropout is on (train mode, p = {dropout:g}); weights are those before it.", name)
    own = query is key
    query_padding = padding if own and padding is not None and padding.dtype == torch.bool else None
    if own and padding is not None and query_padding is None:
        query_padding = split(padding)[0]  # bool masks reach a layer as −∞ where another mask holds floats
    query_padding = query_padding if query_padding is None else query_padding.repeat(times, 1)  # [times·N, S]
    scale, computed = math.sqrt(1 / q.shape[3]), None if result is None else _items_first(result)
    if computed is not None and not dropout:
        no_weights = gives_zero(mask, computed)
        if one_projection:
            run.compare(name, gap(q, k, v, mask, scale, no_weights, computed, out), q.dtype)
    if no_weights and row_without_key(mask):
        run.zero(name)
    return run.keep(
        module,
        q,
        k,
        v,
        mask,
        scale=scale,
        one_sequence=own or mask.causal,
        extra=labels,
        query_padding=query_padding,
        out=out,
        result=computed,
        without_key="zero" if no_weights else "nan",
        places=None if read is None else _rows(run, read, items_first),
    )


def _say_ignored(run: Run, module: nn.Module) -> None:
    """Say that the hint is_causal was given alone: the slow path refuses it, so this was the fast one."""
    run.note(
        "is_causal=True was given without a mask. PyTorch's fast path ignores it, so every query saw every key; give the causal mask "
        "as well.",
        run.names[module],
    )


def _say_layout(run: Run, module: nn.MultiheadAttention, given: Mapping[str, Any], query: Tensor) -> None:
    """Say how the input is read where it may be batch first, in a layer that is not, and no mask tells: where there are more items than
    tokens, or where positions were added along the axis that is read as items, and none along the other."""
    unmasked = given["attn_mask"] is None and given["key_padding_mask"] is None
    if module.batch_first or query.dim() != 3 or given["query"] is not given["key"] or not unmasked:
        return
    L, N, E = query.shape
    first, second = (run.operators.places.is_ordered(given["query"], dim) for dim in (0, 1))
    if L > 0 and N > 1 and (N > L or (second and not first)):
        plural = "s" if L > 1 else ""
        run.note(
            f"its input [{L}, {N}, {E}] is read as {N} items of {L} token{plural}, since batch_first is False. If it holds {L} "
            f"item{plural} of {N} tokens, set batch_first=True or pass it transposed.",
            run.names[module],
        )


def _rows(run: Run, read: tuple[Tensor, Tensor], items_first: bool) -> Rows:
    """The Rows of ``read``, query and key as the model gave them."""

    def known(tensor: Tensor) -> tuple[Axis | None, Int[np.ndarray, "1 rows"] | None]:
        places = run.operators.places.of(tensor)
        dim = 1 if items_first else 0
        roots = {leaf.root for leaf in leaves([places[dim]])} if len(places) > 1 else set()
        root = roots.pop() if len(roots) == 1 else None
        numbers = None if root is None else numbers_of(places, root)
        return root, numbers.reshape(1, -1) if numbers is not None and numbers.size == tensor.shape[dim] else None

    query, key = read
    return run.operators.places.rows(*known(query), *known(key))


def parameters(module: nn.MultiheadAttention) -> dict[str, Tensor]:
    """The parameters of an ``nn.MultiheadAttention``, as its state_dict names them."""
    W = {
        name: getattr(module, name)
        for name in ("in_proj_weight", "q_proj_weight", "k_proj_weight", "v_proj_weight", "in_proj_bias", "bias_k", "bias_v")
    }
    W |= {"out_proj.weight": module.out_proj.weight, "out_proj.bias": module.out_proj.bias}
    return {name: tensor for name, tensor in W.items() if tensor is not None}


def _rules(
    run: Run, mask: Tensor, shape: tuple[int, ...], times: int, L: int, S: int, extra: int, absorbs: bool
) -> tuple[Mask, ...]:
    """The Masks of a ``mask`` that a person gave, seen at this ``shape``: [1|N, 1|H, 1|L, S]; for N items so many ``times``."""

    def make() -> tuple[Mask, ...]:
        shaped = mask.reshape(shape)
        shaped = shaped.repeat(times, 1, 1, 1) if len(shaped) > 1 else shaped  # [1|times·N, 1|H, 1|L, S]
        if mask.dtype == torch.bool:
            return (symbolic(L, S, shaped, None, extra),)
        return of_floats(shaped, L, S, extra, absorbs)

    return run.memory.of(mask, (shape, times, extra, absorbs), make)


def _top_left(attn_mask: Tensor) -> Tensor:
    """What the hint is_causal hides: [L, S] bool, for an attn_mask of that size."""
    return torch.ones(attn_mask.shape[-2:], dtype=torch.bool, device=attn_mask.device).triu(1)


def _believed(module: nn.MultiheadAttention, inputs: Inputs, attn_mask: Tensor, result: Result) -> bool:
    """True where ``result`` is what the slow path computes, which believes is_causal; the fast path reads the mask."""
    query, key, value = inputs
    W = parameters(module)
    slow, _ = F.multi_head_attention_forward(
        query,
        key,
        value,
        module.embed_dim,
        module.num_heads,
        W.get("in_proj_weight"),
        W.get("in_proj_bias"),
        W.get("bias_k"),
        W.get("bias_v"),
        module.add_zero_attn,
        0.0,
        W["out_proj.weight"],
        W.get("out_proj.bias"),
        training=False,
        need_weights=False,
        attn_mask=attn_mask,
        use_separate_proj_weight="in_proj_weight" not in W,
        q_proj_weight=W.get("q_proj_weight"),
        k_proj_weight=W.get("k_proj_weight"),
        v_proj_weight=W.get("v_proj_weight"),
        is_causal=True,
    )
    return torch.allclose(slow.transpose(0, 1), _items_first(result), atol=1e-5, equal_nan=True)


def _beneath(query: Tensor, key: Tensor, value: Tensor) -> Inputs:
    """These without their wrappers, where they do not differ along ``torch.vmap``; tensors that were one stay one."""
    found = {id(x): x if batched(x) else alone(x) for x in (query, key, value)}
    return found[id(query)], found[id(key)], found[id(value)]


def _items_first(result: Result) -> Tensor:
    """[times·N, L, E] of (output, items first)."""
    output, levels = plain(result[0])
    output = output.unsqueeze(-2) if output.dim() == len(levels) + 2 else output
    output = output if result[1] else output.transpose(-3, -2)  # [levels…, N, L, E]
    return output.flatten(0, len(levels))


def _sequence_first(query: Tensor, key: Tensor, value: Tensor, batch_first: bool) -> Inputs:
    """query [L, N, E], key and value [S, N, …]; tensors that were one stay one, which decides how they are projected."""
    moved = {}
    for tensor in (query, key, value):
        if id(tensor) not in moved:
            moved[id(tensor)] = tensor.unsqueeze(1) if tensor.dim() == 2 else tensor.transpose(0, 1) if batch_first else tensor
    return moved[id(query)], moved[id(key)], moved[id(value)]


def _padded(run: Run, module: nn.Module, nested: Tensor) -> tuple[Tensor, Tensor]:
    """(tensor [N, S, E] with 0 for padding, padding [N, S] bool) of a nested tensor, S being what it was before it was nested."""
    items = nested.unbind()
    S = run.padded_length or max(map(len, items))
    run.note(
        "PyTorch left padded tokens out (nested tensors). They are shown as padding; what their queries would weigh was never computed.",
        run.names[module],
    )
    padding = torch.tensor([[False] * len(item) + [True] * (S - len(item)) for item in items], device=nested.device)
    return nested.to_padded_tensor(0.0, (len(items), S, nested.size(2))), padding
