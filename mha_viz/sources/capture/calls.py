"""Calls of operators: what kind each is, what it was given, and the axes of what it gives where it is a view."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, TypeAlias

import torch
from torch.nn import functional as F

from mha_viz.sources.capture.axes import regroup

if TYPE_CHECKING:
    from torch import Tensor

    from mha_viz.sources.capture.axes import Axes
    from mha_viz.sources.capture.beneath import Args, Kwargs

PRODUCTS = {"matmul", "bmm", "mm", "einsum", "baddbmm"}
WHOLE = {"scaled_dot_product_attention", "multi_head_attention_forward", "flex_attention"}  # attention in one call
STARTS = PRODUCTS | WHOLE  # what is looked at whatever goes in
ATTENDING = (F.scaled_dot_product_attention, F.multi_head_attention_forward, F.softmax, torch.softmax, torch.Tensor.softmax)
SAME = {
    "to",
    "float",
    "half",
    "bfloat16",
    "double",
    "type",
    "type_as",
    "contiguous",
    "clone",
    "detach",
    "cpu",
    "cuda",
    "alias",
    "requires_grad_",
    "retain_grad",
}
UNSEEN = {"__set__", "size", "dim", "stride", "numel", "is_contiguous", "__len__", "__bool__", "item", "backward"}  # no tensor
DROPOUTS = {"dropout", "feature_dropout", "alpha_dropout"}
SCALED = {"mul", "multiply", "div", "divide", "true_divide", "layer_norm", "rms_norm"}  # what may stand behind attention
VIEWS = {"view", "reshape", "flatten", "unflatten", "squeeze", "unsqueeze", "view_as", "reshape_as"}
SWAPS = {"transpose", "swapaxes", "swapdims", "permute", "movedim", "moveaxis", "t"}
DATA, *MIRRORED = (getattr(torch.Tensor, name).__get__ for name in ("data", "mT", "T"))
Operator: TypeAlias = Callable[..., Any]


def axes_of_view(
    function: Operator, name: str, args: Args, kwargs: Kwargs, tensor: Tensor, axes: Axes, output: Any
) -> Axes | None:
    """The axes of ``output`` where the operator is a view of ``tensor`` with ``axes``; None where it is none."""
    if name in VIEWS:
        return regroup(axes, output.shape)
    if name in SWAPS or (name == "__get__" and function in MIRRORED):
        strides = [2**i for i in range(tensor.dim())]
        probe = torch.empty_strided(tensor.shape, strides, device="meta")  # its strides tell where each axis went
        args = tuple(probe if value is tensor else value for value in args)
        kwargs = {key: probe if value is tensor else value for key, value in kwargs.items()}
        return [axes[strides.index(stride)] for stride in function(*args, **kwargs).stride()]
    return None


def name_of(function: Operator) -> str:
    """What an operator is called, in place or not."""
    name = getattr(function, "__name__", "")
    return name if name.startswith("__") else name.rstrip("_")


def tensors_in(args: Args, kwargs: Kwargs) -> Iterator[Tensor]:
    for value in (*args, *kwargs.values()):
        if isinstance(value, torch.Tensor):
            yield value
        elif isinstance(value, list | tuple):
            yield from (part for part in value if isinstance(part, torch.Tensor))


def argument(args: Args, kwargs: Kwargs, index: int, name: str, default: Any) -> Any:
    return args[index] if len(args) > index else kwargs.get(name, default)
