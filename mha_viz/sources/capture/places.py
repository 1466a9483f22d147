"""Which token of which sequence each row of a tensor came from: axes followed from the first operator that saw them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import torch
from torch.nn.parameter import Parameter
from torch.utils.weak import WeakTensorKeyDictionary

from mha_viz.sources.capture.axes import Axis, Unclear, leaves
from mha_viz.sources.capture.picked import cut, is_list, merge, places_in, select, size_of, take
from mha_viz.sources.capture.products import operands_of
from mha_viz.sources.capture.rows import Rows
from mha_viz.sources.capture.scores import JOINED

if TYPE_CHECKING:
    from jaxtyping import Int
    from torch import Tensor

    from mha_viz.sources.capture.axes import Axes, TensorAxis
    from mha_viz.sources.capture.beneath import Args, Kwargs
    from mha_viz.sources.capture.products import Letters

PARTED = {"split", "chunk", "tensor_split", "split_with_sizes", "unsafe_split", "unsafe_chunk"}
STRETCHED = {"expand", "expand_as", "repeat_interleave", "pad"}
PICKED = {
    "gather": 1,
    "take_along_dim": 2,
    "sort": 1,
    "topk": 2,
    "scatter": 1,
}  # where their ``dim`` stands: rows move as they like
MOVED = {"argsort", "rot90", "fliplr", "flipud"}


Within: TypeAlias = "tuple[torch.Size, Axes]"  # the shape and the axes of what a module was given
Entered: TypeAlias = "tuple[Within, Within | None]"  # of this module, and of the one around it that ran unseen
Viewed: TypeAlias = "Callable[[Axes], Axes | None]"


class Places:
    """Tensors by the axes that they count along. An Axis is one sequence as long as its ``root`` is the same, whoever reads it."""

    def __init__(self) -> None:
        self.axes = WeakTensorKeyDictionary()
        self.parents: dict[Axis, Axis] = {}  # root → the root of what it was joined to
        self.begins: dict[
            Axis, tuple[Axis, int]
        ] = {}  # root → (the root of what it was last joined to as a whole, where it begins there)
        self.began = Axis(0).born  # when this step did
        self.within: Within | None = None  # (shape, axes) of what a module of PyTorch was given, while it runs unseen

    def of(self, tensor: Tensor) -> Axes:
        """The axes of ``tensor``, its own where nothing is known of it."""
        found: Axes | None = self.axes.get(tensor)
        if found is None:
            if self.within is not None and self.within[0] == tensor.shape:
                found = self.within[1]
            else:
                found = [(Axis(size),) for size in tensor.shape]
            self.axes[tensor] = found
        return found

    def begin(self) -> None:
        """A step of the model begins."""
        self.began = Axis(0).born

    def family(self, root: Axis) -> Axis:
        """The sequence that ``root`` belongs to: with a cache, keys of all steps are one."""
        while root in self.parents:
            root = self.parents[root]
        return root

    def _join(self, root: Axis, whole: Axis) -> None:
        """``root`` is part of the sequence of ``whole`` from now on; one that is its part already changes nothing."""
        part, family = self.family(root), self.family(whole)
        if part is not family:  # or the way up would go round in a circle
            self.parents[part] = family

    def enter(self, unseen: bool, whole: bool, args: Args, kwargs: Kwargs) -> Entered | None:
        """A module begins, which runs ``unseen`` or not. Of a ``whole`` one the input [N, L, E] is the only sequence in it."""
        first = next((x for x in (*args, *kwargs.values()) if isinstance(x, torch.Tensor)), None)
        if not unseen or first is None or first.is_nested:
            return None
        within, before = (first.shape, self.of(first)), self.within
        self.within = (before or within) if whole else before
        return within, before

    def leave(self, entered: Entered | None, output: object) -> None:
        """It ends: where it is as large as the input, the output is the same sequence."""
        if entered is None:
            return
        (shape, axes), self.within = entered
        output = output[0] if isinstance(output, tuple) else output
        if isinstance(output, torch.Tensor) and not output.is_nested and output.shape == shape:
            self.axes[output] = axes

    def _joined_queries(
        self, root: Axis | None, queries: Int[np.ndarray, "#N L"], k_root: Axis | None
    ) -> tuple[Axis | None, Int[np.ndarray, "#N L"]]:
        """``root`` and ``queries`` as those of what they were joined to: of the keys, where these are among it."""
        seen = {root}
        while root is not k_root and root in self.begins and self.begins[root][0] not in seen:
            root, begin = self.begins[root]
            seen.add(root)
            queries = np.where(queries < 0, -1, queries + begin)
        return root, queries

    def rows(
        self,
        q_root: Axis | None,
        queries: Int[np.ndarray, "#N L"] | None,
        k_root: Axis | None,
        keys: Int[np.ndarray, "#N S"] | None,
    ) -> Rows:
        """The Rows of a call whose queries and keys are these of their roots, all None where not known."""
        if queries is not None:
            q_root, queries = self._joined_queries(q_root, queries, k_root)
        q_family, k_family = (None if root is None else self.family(root) for root in (q_root, k_root))
        two = q_family is not None and k_family is not None and q_family is not k_family
        shifted = q_root is k_root and queries is not None and keys is not None and not np.array_equal(queries, keys)
        return Rows((q_root, k_root), (q_family, k_family), queries, keys, two, two or shifted)

    def look(self, name: str, args: Args, kwargs: Kwargs, output: object, viewed: Viewed) -> None:
        """``output`` came of these; ``viewed(axes)`` are its axes where the operator is a view of its first tensor, else None."""
        outputs = [t for t in (output if isinstance(output, tuple | list) else [output]) if isinstance(t, torch.Tensor)]
        if any(isinstance(t, torch.Tensor) and t.is_nested for t in (*outputs, *args)):  # which have no shape
            return
        if name == "index_copy":
            dim, index, source = (
                kwargs[kind] if kind in kwargs else args[min(i, len(args) - 1)]
                for i, kind in ((1, "dim"), (2, "index"), (3, "source"))
            )
            axes = list(self.of(args[0]))
            axes[dim] = take(axes[dim], places_in(index, args[0].shape[dim]))
            self._written(axes, source)
        elif name == "__setitem__":
            self._written(self.indexed(self.of(args[0]), args[1]), args[2])
        if not outputs or outputs[0] in self.axes or name.startswith("new_") or name.endswith("_like") or name in MOVED:
            return
        try:
            found = self._after(name, args, kwargs, outputs, viewed)
        except Unclear:
            return
        for tensor, axes in zip(outputs, found or (), strict=False):
            self.axes[tensor] = axes

    def _after(self, name: str, args: Args, kwargs: Kwargs, outputs: Sequence[Tensor], viewed: Viewed) -> list[Axes] | None:
        """The axes of each of ``outputs``; None where they are of something else."""
        values, output = [*args, *kwargs.values()], outputs[0]
        first: Any = args[0] if args else None
        if name in JOINED:
            parts = [t for t in values[0] if t.numel()]
            return [self._joined(parts, values[1] if len(values) > 1 else 0, output)] if parts else None
        if not isinstance(first, torch.Tensor) and name != "einsum":
            return None
        if name == "embedding":
            return [[(Axis(size),) for size in output.shape]]  # the same ids may be read twice, as source and as target
        if name == "linear":
            return [[*self.of(first)[:-1], (Axis(output.shape[-1]),)]]
        if name == "addmm":
            return [[self.of(values[1])[0], (Axis(output.shape[1]),)]]
        if name == "scaled_dot_product_attention":
            return [[*self.of(first)[:-1], (Axis(output.shape[-1]),)]]
        product = operands_of(name, args, kwargs) if name in ("matmul", "bmm", "mm", "einsum", "baddbmm") else None
        if product is not None:
            return [self._multiplied(*product[:2], output)]
        if name == "einsum":
            return None
        if name == "__getitem__":
            axes = self.indexed(self.of(first), args[1])
            return None if axes is None else [axes]
        if name in ("flip", "roll", "index_select") or name in PICKED:
            axes = self._moved(name, first, values, kwargs, output) if output.dim() == first.dim() else None
            return None if axes is None else [axes]
        if name in ("narrow", "select", "unbind") or name in PARTED:
            return self._parted(name, first, kwargs.get("dim", 0 if name == "unbind" else values[1]), values, outputs, kwargs)
        try:
            axes = viewed(self.of(first))
        except Unclear:  # another view parted an axis otherwise, as into windows where this one parts it into a grid
            axes = viewed([merge(axis) for axis in self.of(first)])
        if axes is not None:
            return [axes]
        if name in STRETCHED and output.dim() == first.dim():
            sizes = zip(self.of(first), first.shape, output.shape, strict=True)
            return [[axis if size == now else (Axis(now),) for axis, size, now in sizes]]
        alike = [t for t in values if isinstance(t, torch.Tensor) and t.shape == output.shape and not isinstance(t, Parameter)]
        if name == "add" and len(alike) == 1 and output.dim() == 3:
            self._ordered(alike[0], next((t for t in values if isinstance(t, torch.Tensor) and t is not alike[0]), None))
        return [self.of(alike[0])] if alike and output.dim() > 1 else None

    def _ordered(self, tensor: Tensor, table: Tensor | None) -> None:
        """``table`` was added to ``tensor`` [N, L, E] or [L, N, E]: of one that differs along one axis alone this is the sequence's."""
        if table is None or table.dim() < 2 or table.shape[-1] != tensor.shape[2]:
            return
        along = [dim for dim, size in enumerate((1,) * (3 - table.dim()) + table.shape) if size > 1 and dim < 2]
        if len(along) == 1:
            for leaf in leaves([self.of(tensor)[along[0]]]):
                leaf.ordered = True

    def is_ordered(self, tensor: Tensor, dim: int) -> bool:
        """True where this axis of ``tensor`` is one along which positions were added."""
        return any(leaf.ordered for leaf in leaves([self.of(tensor)[dim]]))

    def _joined(self, tensors: Sequence[Tensor], dim: int, output: Tensor) -> Axes:
        if len(tensors) == 1:
            return self.of(tensors[0])
        axes, joined = list(self.of(tensors[0])), Axis(output.shape[dim])
        parts = [leaves([self.of(tensor)[dim]]) for tensor in tensors]
        known = [own[0] for own in parts if len(own) == 1 and own[0].root is not own[0]]
        if known:  # blocks of a longer sequence
            root = known[0].root
            if self._goes_on(parts, known[0]):
                begin, added = int(known[0].numbers[-1]) + 1, parts[1][0]
                self.begins[added] = root, begin
                axes[dim] = (Axis(output.shape[dim], root, listed=np.append(known[0].numbers, begin + np.arange(added.size))),)
                return axes
            listed = [
                own[0].numbers if own[0] in known and own[0].root is root else [-1] * tensor.shape[dim]
                for own, tensor in zip(parts, tensors, strict=True)
            ]
            axes[dim] = (Axis(output.shape[dim], root, listed=np.concatenate(listed).astype(int)),)
            return axes
        begin = 0
        for tensor in tensors:
            own = leaves([self.of(tensor)[dim]])
            if len(own) == 1 and own[0].root is own[0]:
                self.begins[own[0]] = joined, begin
            begin += tensor.shape[dim]
            for leaf in own:
                self._join(leaf.root, joined)
        axes[dim] = (joined,)
        return axes

    def _moved(self, name: str, tensor: Tensor, values: list[Any], kwargs: Kwargs, output: Tensor) -> Axes | None:
        """The axes of ``output``, rows of ``tensor`` in another order, or some of them: which they are where that can be told."""
        axes = list(self.of(tensor))
        if name == "roll":
            shifts, dims = kwargs.get("shifts", values[1]), kwargs.get("dims", values[2] if len(values) > 2 else ())
            for shift, dim in zip(_several(shifts), _several(dims), strict=False):
                axes[dim] = take(axes[dim], np.roll(np.arange(tensor.shape[dim]), int(shift)))
            return axes if _several(dims) else None
        if name == "flip":
            flipped = kwargs["dims"] if "dims" in kwargs else values[1] if len(values) == 2 else values[1:]
            for dim in _several(flipped):
                axes[dim] = take(axes[dim], np.arange(tensor.shape[dim])[::-1])
            return axes
        if name == "index_select":
            dim, index = kwargs.get("dim", values[1]), kwargs.get("index", values[-1])
            axes[dim] = take(axes[dim], places_in(index, tensor.shape[dim]))
            return axes
        place = PICKED[name]
        dim = kwargs.get("dim", values[place] if len(values) > place else -1)
        if not isinstance(dim, int):  # of all numbers in a row
            return None
        axes[dim] = take(axes[dim], np.full(output.shape[dim], -1))
        return axes

    def _written(self, axes: Axes | None, source: object) -> None:
        """``source`` was written where a tensor has these ``axes``: its sequences go on there, as in a cache of fixed size."""
        if axes is None or not isinstance(source, torch.Tensor) or source.dim() != len(axes):
            return
        for axis, source_axis in zip(axes, self.of(source), strict=True):
            there, own = leaves([axis]), leaves([source_axis])
            if len(there) != 1 or len(own) != 1 or own[0].root is not own[0] or there[0].size != own[0].size:
                continue
            root, numbers = there[0].root, there[0].numbers
            if root is not own[0] and numbers[0] >= 0 and (np.diff(numbers) == 1).all():
                self.begins[own[0]] = root, int(numbers[0])
                self._join(own[0], root)

    def _goes_on(self, parts: Sequence[Sequence[Axis]], known: Axis) -> bool:
        """True where ``parts`` are what is left of a cache, ``known``, and the tokens of this step."""
        if len(parts) != 2 or parts[0] != [known] or len(parts[1]) != 1 or parts[1][0].root is not parts[1][0]:
            return False
        return known.root.born < self.began <= parts[1][0].born and known.numbers[-1] >= 0

    def _multiplied(self, operands: Sequence[Tensor], letters: Letters, output: Tensor) -> Axes:
        found: dict[str, TensorAxis] = {}
        for operand, own in zip(operands, letters, strict=False):
            if isinstance(operand, Parameter):
                continue
            for letter, axis, size in zip(own, self.of(operand), operand.shape, strict=True):
                if size > 1 or letter not in found:
                    found.setdefault(letter, axis)
        return [found.get(letter, (Axis(size),)) for letter, size in zip(letters[2], output.shape, strict=True)]

    def indexed(self, axes: Axes, index: Any) -> Axes | None:
        """``axes`` of a tensor after ``tensor[index]``; None where they cannot be told."""
        index = list(index) if isinstance(index, tuple) else [index]
        lists = [one for one in index if is_list(one)]
        if len(lists) > 1 or any(
            not (one is None or one is Ellipsis or (type(one) is int and not lists) or isinstance(one, slice) or is_list(one))
            for one in index
        ):
            return None
        if not any(one is Ellipsis for one in index):
            index.append(Ellipsis)
        place, taken = next(i for i, one in enumerate(index) if one is Ellipsis), sum(one is not None for one in index) - 1
        index[place : place + 1] = [slice(None)] * (len(axes) - taken)
        axes, dim = list(axes), 0
        for one in index:
            if one is None:
                axes.insert(dim, (Axis(1),))
            elif isinstance(one, slice):
                start, stop, step = one.indices(size_of(axes[dim]))
                axes[dim] = cut(axes[dim], start, max(len(range(start, stop, step)), 0), step)
            elif is_list(one):
                axes[dim] = take(axes[dim], places_in(one, size_of(axes[dim])))
            else:
                axes = select(axes, dim, one % size_of(axes[dim]))
                continue
            dim += 1
        return axes

    def _parted(
        self, name: str, tensor: Tensor, dim: int, values: Sequence[Any], outputs: Sequence[Tensor], kwargs: Kwargs
    ) -> list[Axes]:
        axes = self.of(tensor)
        if name == "unbind":
            dim = kwargs.get("dim", values[1] if len(values) > 1 else 0)
            return [select(list(axes), dim % tensor.dim(), i) for i in range(len(outputs))]
        if name == "select":
            return [select(list(axes), dim % tensor.dim(), kwargs.get("index", values[-1]) % tensor.shape[dim])]
        if name == "narrow":
            start = kwargs.get("start", values[2])
        else:
            start, dim = 0, kwargs.get("dim", values[2] if len(values) > 2 else 0)
        found = []
        for output in outputs:
            own = list(axes)
            own[dim] = cut(axes[dim], int(start), output.shape[dim], 1)
            start += output.shape[dim]
            found.append(own)
        return found


def _several(given: int | tuple[int, ...] | list[int]) -> tuple[int, ...]:
    return tuple(given) if isinstance(given, tuple | list) else (given,)
