"""Tensors as they are beneath what wraps them, and a look at them that the model never notices."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, overload

import torch
from torch._C import _functorch
from torch._functorch.pyfunctorch import temporarily_clear_interpreter_stack
from torch._subclasses.fake_tensor import is_fake
from torch.utils._python_dispatch import _disable_current_modes

from mha_viz.sources.capture.axes import Axis, Unclear

if TYPE_CHECKING:
    from mha_viz.sources.capture.axes import Axes, Side, TensorAxis


T = TypeVar("T")
Args: TypeAlias = tuple[Any, ...]  # what an operator or a module was called with
Kwargs: TypeAlias = dict[str, Any]


class NoNumbers(Exception):
    """Tensors that have shapes only, as while a model is traced."""


class NoTokens(Exception):
    """Tensors that hold nothing, as where no token was sent to a part of the model."""


@contextmanager
def beneath() -> Iterator[None]:
    """While it lasts, operators compute at once and alone: no gradient, no level of ``torch.func``, no tracer and no mode."""
    with ExitStack() as stack:
        stack.enter_context(torch.no_grad())
        if _functorch.peek_interpreter_stack() is not None:
            stack.enter_context(temporarily_clear_interpreter_stack())
        if torch._C._len_torch_dispatch_stack() or torch._ops._len_torch_dispatch_stack_pre_dispatch():
            stack.enter_context(_disable_current_modes())
        traced = torch._C._get_tracing_state()
        if traced is not None:
            torch._C._set_tracing_state(None)  # type: ignore[attr-defined]  # it is not in the stub
            stack.callback(torch._C._set_tracing_state, traced)  # type: ignore[attr-defined]
        yield


def plain(tensor: torch.Tensor, axes: Iterable[TensorAxis] | None = None) -> Side:
    """(``tensor`` without its wrappers, its axes): each level of ``torch.vmap`` is one more axis in front, the outer one first.

    ``axes`` are those that the model sees; one level is one Axis in all tensors. Without ``axes``, only levels are told.
    """
    axes = [] if axes is None else list(axes)
    if not _functorch.is_functorch_wrapped_tensor(tensor):
        return tensor.detach() if tensor.requires_grad else tensor, axes
    inner, levels = plain(_functorch.get_unwrapped(tensor))
    if _functorch.is_batchedtensor(tensor):
        place = len(levels) + _functorch.maybe_get_bdim(tensor)
        axis = (_level(_functorch.maybe_get_level(tensor), inner.shape[place]),)
        inner = inner.movedim(place, len(levels))  # [outer levels …, this level, …]
        levels = [*levels, axis]
    return inner, [*levels, *axes]


def repeated(tensor: torch.Tensor, axes: Axes, heads: int | None) -> Side:
    """``tensor`` [N, G, S, …] with its ``axes``, plain, its axis of heads repeated to ``heads``; as it is where None."""
    tensor, axes = plain(tensor, axes)
    return (tensor if heads is None else tensor.repeat_interleave(heads // tensor.shape[-3], dim=-3)), axes


@overload
def alone(tensor: torch.Tensor) -> torch.Tensor: ...
@overload
def alone(tensor: torch.Tensor | None) -> torch.Tensor | None: ...
def alone(tensor: torch.Tensor | None) -> torch.Tensor | None:
    """``tensor`` without its wrappers, None of None; raises Unclear where it differs along a level of ``torch.vmap``."""
    if tensor is None:
        return None
    beneath_it, levels = plain(tensor)
    if levels:
        raise Unclear
    return beneath_it


def batched(tensor: torch.Tensor | None) -> bool:
    """True where ``tensor`` differs along a level of ``torch.vmap``."""
    return tensor is not None and _functorch.is_functorch_wrapped_tensor(tensor) and bool(plain(tensor)[1])


def mapped(function: Callable[..., T], *tensors: torch.Tensor | None) -> tuple[T, list[int]]:
    """What ``function`` gives for ``tensors``, each alone or (tensor, levels), once for each place along all their levels.

    It gives one tensor or several; they get the levels in front, the outer one first.
    """
    found: list[Side | tuple[None, Axes]] = [(None, []) if tensor is None else plain(tensor) for tensor in tensors]
    order: Axes = []
    for _, levels in found:
        order += [axis for axis in levels if axis not in order]
    order.sort(key=lambda axis: axis[0].level)
    for axis in reversed(order):
        function = torch.vmap(function, in_dims=tuple(0 if axis in levels else None for _, levels in found))
    return function(*(tensor for tensor, _ in found)), [axis[0].size for axis in order]


def has_numbers(tensor: torch.Tensor) -> bool:
    """False for a tensor that is a shape only."""
    return not (tensor.is_meta or is_fake(tensor))


def in_backward() -> bool:
    """True while gradients are computed, in this thread."""
    return torch._C._current_graph_task_id() != -1


def eager(compiled: bool) -> AbstractContextManager[None]:
    """While it lasts a ``compiled`` model runs as it was written."""
    return torch.compiler.set_stance("force_eager") if compiled else nullcontext()


@functools.cache
def _level(level: int, size: int) -> Axis:
    axis = Axis(size)
    axis.level = level
    return axis
