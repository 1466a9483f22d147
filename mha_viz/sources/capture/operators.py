"""Attention written by hand: scores, a product of two tensors, are followed to softmax, to the product with values, to a projection."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

import torch
from torch._higher_order_ops.flex_attention import flex_attention
from torch.overrides import TorchFunctionMode
from torch.utils.weak import WeakTensorKeyDictionary

from mha_viz.core.mask import Mask
from mha_viz.sources.capture import flex, modules
from mha_viz.sources.capture.attended import Attended, keep
from mha_viz.sources.capture.axes import Axis, leaves
from mha_viz.sources.capture.beneath import NoNumbers, alone, has_numbers, plain, repeated
from mha_viz.sources.capture.calls import (
    ATTENDING,
    DATA,
    DROPOUTS,
    PRODUCTS,
    SAME,
    SCALED,
    STARTS,
    UNSEEN,
    WHOLE,
    Operator,
    argument,
    axes_of_view,
    name_of,
    tensors_in,
)
from mha_viz.sources.capture.places import Places
from mha_viz.sources.capture.products import Product, operands_of, product_of
from mha_viz.sources.capture.scores import Scores, Weights
from mha_viz.sources.capture.tags import Projected, Result, Tag

if TYPE_CHECKING:
    from torch import Tensor, nn

    from mha_viz.sources.capture.axes import Axes, Side, TensorAxis
    from mha_viz.sources.capture.beneath import Args, Kwargs
    from mha_viz.sources.capture.products import Letters
    from mha_viz.sources.capture.run import Run

UNNAMED = "which tokens its rows are could not be followed past one operator, so labels after it may be others"


class Known(TypedDict, total=False):
    """What is known of an Attended besides, by the names of its fields."""

    weights: Weights | None
    used: Side | None
    heads: TensorAxis | None
    dropped: bool


class Operators(TorchFunctionMode):
    """Sees every operator that a recorded model calls, in this thread, while it is entered."""

    def __init__(self, run: Run, layout: str | None) -> None:
        super().__init__()
        self.run, self.layout = run, layout
        self.tags = WeakTensorKeyDictionary()  # tensor → Scores, Weights, Result or Projected
        self.waiting: list[Attended] = []  # Attended of modules that still run
        self.places = Places()
        self.pauses = 0

    def __torch_function__(
        self, function: Operator, types: Sequence[type], args: Args = (), kwargs: Kwargs | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if torch.compiler.is_compiling():  # what stands here is compiled with the model
            if function is flex_attention:
                self.run.traced_flex = True
            elif function in ATTENDING:
                self.run.traced = True
            return function(*args, **kwargs)
        module = None if self.pauses else self.run.here
        if module is None:
            return function(*args, **kwargs)
        tagged = next((tensor for tensor in tensors_in(args, kwargs) if tensor in self.tags), None) if len(self.tags) else None
        before = None if tagged is None else self.tags[tagged]  # an operator in place gives back the tensor itself
        output = function(*args, **kwargs)
        name = name_of(function)
        if tagged is not None or name in STARTS:
            with self.run.aside(module):
                self._look(module, function, name, args, kwargs, output, tagged, before)
        if tagged is not None or name not in UNSEEN:
            with self.run.aside(module, UNNAMED):
                self._follow(function, name, args, kwargs, output)
        return output

    def _follow(self, function: Operator, name: str, args: Args, kwargs: Kwargs, output: object) -> None:
        """Keep in mind which tokens the rows of ``output`` came from."""

        def viewed(axes: Axes) -> Axes | None:
            return axes_of_view(function, name, args, kwargs, args[0], axes, output)

        self.places.look(name, args, kwargs, output, viewed)

    @contextmanager
    def paused(self) -> Iterator[None]:
        """While it lasts nothing is seen, and PyTorch's fast paths are as free as without recording."""
        stack = torch.overrides._get_current_function_mode_stack()
        entered = bool(stack) and stack[-1] is self
        self.pauses += 1
        if entered:
            TorchFunctionMode.__exit__(self, None, None, None)
        try:
            yield
        finally:
            if entered:
                TorchFunctionMode.__enter__(self)
            self.pauses -= 1

    def finish(self, module: nn.Module) -> None:
        """``module`` ends: keep what it attended."""
        for attended in [attended for attended in self.waiting if attended.module is module]:
            with self.run.aside(module):
                keep(self.run, attended, self.layout)

    def forget(self, module: nn.Module) -> None:
        """``module`` ended, maybe by an exception: what it attended until then is not waited for."""
        self.waiting = [attended for attended in self.waiting if attended.module is not module]

    def _look(
        self,
        module: nn.Module,
        function: Operator,
        name: str,
        args: Args,
        kwargs: Kwargs,
        output: Any,
        tensor: Tensor | None,
        tag: Tag | None,
    ) -> None:
        """Something was computed; ``tensor`` is the first of what went in that has a ``tag``."""
        if isinstance(output, torch.Tensor) and not has_numbers(output):
            self._look_at_shapes(name, args, kwargs, output, tag)
        elif name in PRODUCTS:
            self._product(module, name, args, kwargs, output)
        elif name == "scaled_dot_product_attention":
            self._sdpa(module, args, kwargs, output)
        elif name == "flex_attention":
            self._flex(module, args, output[0])
        elif name == "multi_head_attention_forward":
            modules.from_function(self.run, module, args, kwargs, output)
        elif tag is None or tensor is None:
            return
        elif name == "__setitem__":
            if tensor is args[0] and isinstance(tag, Scores):
                self.tags[tensor] = tag.assigned(*args)
            elif tensor is args[0] and isinstance(tag, Weights):
                self.tags[tensor] = tag.after("an assignment", tensor)
        elif name == "softmax":
            if isinstance(tag, Scores):
                self._softmax(module, tag, args, kwargs, output)
        elif name in ("linear", "addmm") and isinstance(tag, Result):
            self._project(tag, name, args, kwargs, tensor)
        elif isinstance(tag, Projected):
            others, out = [x for x in tensors_in(args, kwargs) if x is not tensor], tag.attended.out
            if name == "add" and out is not None and len(others) == 1 and others[0].shape == output.shape[-1:]:
                self._projected(tag.attended, out[0], others[0])
        elif isinstance(output, torch.Tensor):
            after = self._after(module, function, name, args, kwargs, output, tensor, tag)
            if after is not None:
                self.tags[output] = after

    def _look_at_shapes(self, name: str, args: Args, kwargs: Kwargs, output: Tensor, tag: Tag | None) -> None:
        """Follow scores that are shapes only, as far as a softmax: then there is attention, and no number to keep of it."""
        if name in WHOLE or (name == "softmax" and isinstance(tag, Scores)):
            raise NoNumbers
        if name in PRODUCTS:
            found = operands_of(name, args, kwargs)
            product = None if found is None else product_of(*found[:2])
            if product is not None:
                self.tags[output] = Scores(*product)
        elif isinstance(tag, Scores):
            self.tags[output] = tag

    def _after(
        self,
        module: nn.Module,
        function: Operator,
        name: str,
        args: Args,
        kwargs: Kwargs,
        output: Tensor,
        tensor: Tensor,
        tag: Tag,
    ) -> Tag | None:
        """The tag of ``output``, into which ``tensor`` with its ``tag`` went; None where it is something else."""
        if tag.axes is None:
            return tag if output.dim() == tensor.dim() else None
        axes = axes_of_view(function, name, args, kwargs, tensor, tag.axes, output)
        if axes is not None:
            if isinstance(tag, Result):
                tag.attended.joined(axes)
            return replace(tag, axes=axes)
        if name in SAME or (name == "__get__" and function == DATA):
            return tag
        if name in DROPOUTS:
            return self._dropped(module, tag, name, args, kwargs)
        if isinstance(tag, Result):
            return replace(tag, changed=True) if name in SCALED and output.shape == tensor.shape else None
        if output.dim() != tensor.dim() or not output.is_floating_point():
            return None
        if name == "__getitem__" and isinstance(tag, Weights) and tag.scores.sink is not None:
            axes = self.places.indexed(tag.axes, args[1])
            return None if axes is None else tag.without_sink(axes)
        if isinstance(tag, Scores):
            return tag.after(name, args, kwargs, tensor, output.shape)
        if output.shape != tensor.shape:
            return None
        return tag.after(name, output)

    def _dropped(self, module: nn.Module, tag: Scores | Weights | Result, name: str, args: Args, kwargs: Kwargs) -> Tag:
        if not (argument(args, kwargs, 2, "training", True) and argument(args, kwargs, 1, "p", 0.5) > 0):
            return tag
        if isinstance(tag, Scores):
            return replace(tag, changed=name)
        if isinstance(tag, Weights):
            self.run.note("dropout is on (train mode); weights are those before it.", self.run.names[module])
            return replace(tag, dropped=True)
        return replace(tag, changed=True)

    def _softmax(self, module: nn.Module, tag: Scores, args: Args, kwargs: Kwargs, output: Tensor) -> None:
        if tag.axes is None:
            self._unfollowed(module, tag.changed)
            return
        self.run.softmaxes.append(self.run.names[module])
        dim = argument(args, kwargs, 1, "dim", None)
        axis = [] if dim is None else leaves([tag.axes[dim]])
        if len(axis) == 1:
            self.tags[output] = Weights(tag, axis[0], plain(output, tag.axes), tag.axes)

    def _unfollowed(self, module: nn.Module, changed: str | None) -> None:
        if self.run.wants(self.run.names[module]):
            sentence = f"scores went through {changed} before softmax and cannot be followed; they are not recorded."
            self.run.note(sentence, self.run.names[module])

    def _product(self, module: nn.Module, name: str, args: Args, kwargs: Kwargs, output: Tensor) -> None:
        found = operands_of(name, args, kwargs)
        if found is None:
            return
        operands, letters, factor, added = found
        places = [i for i, operand in enumerate(operands) if isinstance(self.tags.get(operand), Weights)]
        results = [i for i, operand in enumerate(operands) if isinstance(self.tags.get(operand), Result)]
        if len(places) == 1:
            self._attend(module, places[0], operands, letters, output)
        elif len(results) == 1 and factor == 1 and self._multiplied(results[0], operands, letters):
            self.tags[output] = Projected(self.tags[operands[results[0]]].attended)
        elif not places:
            product = product_of(operands, letters)
            if product is not None:
                product[0].places = self.places.of(operands[0]), self.places.of(operands[1])
                scores = Scores(*product, scale=factor)
                self.tags[output] = scores if added is None else scores.added(*added)

    def _attend(self, module: nn.Module, place: int, operands: Sequence[Tensor], letters: Letters, output: Tensor) -> None:
        """The operand at ``place``, Weights, is multiplied with the other, values."""
        weights: Weights = self.tags[operands[place]]
        values = operands[1 - place]
        if weights.scores.sink is not None and weights.keys is weights.scores.sink.wide:  # which multiplies a value of its own
            self._unfollowed(module, "cat")
            return
        own, others, out = letters[place], letters[1 - place], letters[2]
        axes = {letter: tuple(leaves([axis])) for letter, axis in zip(own, weights.axes, strict=True)}
        inner = [letter for letter in own if letter in others and letter not in out]
        numbers = [letter for letter in others if letter not in own and letter in out]
        if len(inner) != 1 or axes[inner[0]] != (weights.keys,) or len(numbers) != 1 or not {*others} <= {*own, *numbers}:
            return
        axes[numbers[0]] = (Axis(values.shape[others.index(numbers[0])]),)
        v = plain(values, [axes[letter] for letter in others])
        used = weights.last if weights.dropped else plain(operands[place], weights.axes)
        self._wait(
            module,
            weights.scores,
            *weights.sides,
            v,
            output,
            [axes[letter] for letter in out],
            weights.keys,
            weights=weights,
            used=used,
        )

    def _sdpa(self, module: nn.Module, args: Args, kwargs: Kwargs, output: Tensor) -> None:
        query, key, value = (argument(args, kwargs, i, name, None) for i, name in enumerate(("query", "key", "value")))
        mask, dropout = argument(args, kwargs, 3, "attn_mask", None), argument(args, kwargs, 4, "dropout_p", 0.0)
        scale = kwargs.get("scale")
        name = self.run.names[module]
        if query.is_nested or not query.dim() == key.dim() == value.dim():
            self.run.note("scaled_dot_product_attention of nested tensors, or of unequal axes, is not recorded.", name)
            return
        heads = query.shape[-3] if kwargs.get("enable_gqa", False) else None
        L, S = query.shape[-2], key.shape[-2]
        batch = [(Axis(max(sizes)),) for sizes in zip(*(t.shape[:-2] for t in (query, key, value)), strict=True)]
        rows, keys, inner, numbers = (Axis(size) for size in (L, S, query.shape[-1], value.shape[-1]))
        q, k = plain(query, [*batch, (rows,), (inner,)]), repeated(key, [*batch, (keys,), (inner,)], heads)
        product = Product((q, k), inner, (self.places.of(query), self.places.of(key)))
        scores = Scores(product, [*batch, (rows,), (keys,)], query.shape[-1] ** -0.5 if scale is None else scale)
        if argument(args, kwargs, 5, "is_causal", False):
            if L == S:
                scores.rules.append(Mask(L, S, causal=True))
            else:  # from the top left: the first query sees the first key alone
                hides = torch.ones(L, S, dtype=torch.bool, device=query.device).triu(1)
                scores = scores.filled(hides, float("-inf")) or scores
        if mask is not None:
            added = scores.filled(mask, float("-inf"), shown=True) if mask.dtype == torch.bool else scores.added(mask)
            scores = added or replace(scores, changed="attn_mask")
        if dropout:
            self.run.note(f"dropout is on (p = {dropout:g}); weights are those before it.", name)
        v = repeated(value, [*batch, (keys,), (numbers,)], heads)
        self._wait(module, scores, q, k, v, output, [*batch, (rows,), (numbers,)], keys, dropped=bool(dropout))

    def _flex(self, module: nn.Module, args: Args, output: Tensor) -> None:
        self.run.seen_flex = True
        query, key, value = args[:3]
        N, H, L, _ = query.shape
        batch: Axes = [(Axis(N),), (Axis(H),)]
        rows, keys, inner, numbers = map(Axis, (L, key.shape[2], query.shape[3], value.shape[3]))
        q, k = plain(query, [*batch, (rows,), (inner,)]), repeated(key, [*batch, (keys,), (inner,)], H)
        axes = [*batch, (rows,), (keys,)]
        product = Product((q, k), inner, (self.places.of(query), self.places.of(key)))
        scores, weights = flex.followed(Scores(product, axes, args[5]), keys, axes, args)
        v = repeated(value, [*batch, (keys,), (numbers,)], H)
        axes, heads = [*batch, (rows,), (numbers,)], batch[1] if H > 1 else None  # which its arguments tell
        self._wait(module, scores, q, k, v, output, axes, keys, weights=weights, heads=heads)

    def _wait(
        self,
        module: nn.Module,
        scores: Scores,
        q: Side,
        k: Side,
        v: Side,
        output: Tensor,
        axes: Axes,
        keys: Axis,
        **more: Unpack[Known],
    ) -> None:
        """Attention gave ``output`` with these ``axes``: wait for what becomes of it."""
        beneath_it, all_axes = plain(output, axes)
        result = beneath_it.detach(), all_axes  # a tensor of our own: unsqueeze_ changes the model's in place
        levels = result[1][: len(result[1]) - len(axes)]
        scores = replace(scores, axes=[*levels, *scores.known_axes])
        attended = Attended(module, self.run.next_order(), scores, q, k, v, result, keys, len(axes), **more)
        self.waiting.append(attended)
        self.tags[output] = Result(attended, axes)
        if self.run.watch:
            self.run.watch.result(attended.order, output)

    def _project(self, tag: Result, name: str, args: Args, kwargs: Kwargs, tensor: Tensor) -> None:
        """x @ Wᵀ + b of all heads side by side is the output projection."""
        attended = tag.attended
        if tag.changed or attended.out is not None or not attended.holds_heads([tag.axes[-1]]):
            return
        if name == "linear":
            weight, bias = alone(argument(args, kwargs, 1, "weight", None)), argument(args, kwargs, 2, "bias", None)
        else:
            bias, x, weight = (argument(args, kwargs, i, part, None) for i, part in enumerate(("input", "mat1", "mat2")))
            if x is not tensor:
                return
            weight = alone(weight).t()  # as GPT-2 keeps it, [H·D, E]
        self._projected(attended, weight, bias)

    def _multiplied(self, place: int, operands: Sequence[Tensor], letters: Letters) -> bool:
        """True where the operand at ``place``, a Result, is multiplied with an output projection, which is then known."""
        tag: Result = self.tags[operands[place]]
        weight = operands[1 - place]
        own, others, out = letters[place], letters[1 - place], letters[2]
        axes = dict(zip(own, tag.axes, strict=True))
        inner = [letter for letter in others if letter in own and letter not in out]
        free = [letter for letter in others if letter not in own]
        if tag.changed or tag.attended.out is not None or len(free) != 1 or {*others} != {*inner, *free} or not inner:
            return False
        if not tag.attended.holds_heads([axes[letter] for letter in inner]):
            return False
        weight = alone(weight).permute([others.index(letter) for letter in (*free, *inner)]).flatten(1)  # [E, H·D]
        self._projected(tag.attended, weight, None)
        return True

    def _projected(self, attended: Attended, weight: Tensor, bias: Tensor | None) -> None:
        attended.out = weight, alone(bias)
        if attended.kept is not None:
            self.run.store.add_projection(attended.kept, weight, bias)
