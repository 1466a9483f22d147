"""Attention written by hand: scores, a product of two tensors, are followed to softmax, to the product with values, to a projection."""

from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import torch
from torch.nn.parameter import Parameter
from torch.overrides import TorchFunctionMode
from torch.utils.weak import WeakTensorKeyDictionary

from mha_viz.core.mask import Mask
from mha_viz.core.rules import Wrong
from mha_viz.sources.capture import modules
from mha_viz.sources.capture.axes import Axis, Unclear, arranged, leaves, regroup
from mha_viz.sources.capture.masks import split, symbolic, together

LOW = -1e4  # a score that is set to this or less is hidden: its weight is 0 but where nothing else is left
ROWS = 64  # queries, spread over all, in which the mask that was seen is held against the model's own weights
CLOSE = {torch.float16: 3e-2, torch.bfloat16: 3e-2}  # how far weights may be off there; 1e-4 in other dtypes

PRODUCTS = {"matmul", "bmm", "mm", "einsum", "baddbmm"}
SAME = {
    "to", "float", "half", "bfloat16", "double", "type", "type_as", "contiguous", "clone", "detach", "cpu", "cuda", "alias",
    "requires_grad_", "dropout", "feature_dropout", "alpha_dropout", "retain_grad",
}  # fmt: skip
VIEWS = {"view", "reshape", "flatten", "unflatten", "squeeze", "unsqueeze", "view_as", "reshape_as"}
SWAPS = {"transpose", "swapaxes", "swapdims", "permute", "movedim", "moveaxis", "t"}
MIRRORED = tuple(getattr(torch.Tensor, name).__get__ for name in ("mT", "T"))
DATA = torch.Tensor.data.__get__


@dataclass(eq=False)
class Product:
    """The product of two tensors along ``inner``, in a ``module``: each tensor with its axes."""

    module: object
    sides: tuple  # ((tensor, axes), (tensor, axes))
    inner: Axis


@dataclass(eq=False)
class Scores:
    """What became of a Product: its ``axes``, its ``scale``, what was hidden and added, tensors with axes.

    ``changed`` names an operator whose effect is not followed, ``axes`` is None after one that they cannot be followed through.
    """

    product: Product
    axes: list | None
    scale: float = 1.0
    hidden: list = field(default_factory=list)
    bias: list = field(default_factory=list)
    rules: list = field(default_factory=list)
    changed: str | None = None
    least: bool = False


@dataclass(eq=False)
class Weights:
    """Scores after softmax over ``keys``; ``tensor`` with ``first_axes`` as it came from there, ``axes`` as it is now."""

    scores: Scores
    keys: Axis
    tensor: torch.Tensor
    first_axes: list
    axes: list


@dataclass(eq=False)
class Attended:
    """Weights times values: one call of attention, waiting for what becomes of its result, which tells its heads."""

    module: object
    order: int
    scores: Scores
    q: tuple  # (tensor, axes)
    k: tuple
    v: tuple
    keys: Axis
    weights: Weights | None
    result: torch.Tensor
    axes: list
    one_sequence: bool | None = None
    heads: tuple | None = None  # what joins with the values' numbers side by side
    out: tuple | None = None
    kept: object = None
    versions: tuple = ()

    def __post_init__(self):
        self.versions = tuple(t._version if not t.is_inference() else 0 for t in (self.q[0], self.k[0], self.v[0]))


@dataclass(eq=False)
class Result:
    """What an Attended gave, with its axes as they are now."""

    attended: Attended
    axes: list


class Operators(TorchFunctionMode):
    """Sees every operator that a recorded model calls, in this thread, while it is entered."""

    def __init__(self, run, layout):
        super().__init__()
        self.run, self.layout = run, layout
        self.tags = WeakTensorKeyDictionary()  # tensor → Scores, Weights or Result
        self.waiting = []  # Attended of modules that still run
        self.pauses = 0

    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        module = None if self.pauses else self.run.here
        if module is None:
            return function(*args, **kwargs)
        name = getattr(function, "__name__", "")
        tagged = next((tensor for tensor in _flat(args, kwargs) if tensor in self.tags), None) if len(self.tags) else None
        output = function(*args, **kwargs)
        try:
            with torch.no_grad():
                self._look(module, function, name, args, kwargs, output, tagged)
        except Unclear:
            pass
        return output

    @contextmanager
    def paused(self):
        """While it lasts nothing is seen, and PyTorch's fast paths are as free as without recording."""
        stack = torch.overrides._get_current_function_mode_stack()
        entered = bool(stack) and stack[-1] is self
        self.pauses += 1
        if entered:
            self.__exit__(None, None, None)
        try:
            yield
        finally:
            if entered:
                self.__enter__()
            self.pauses -= 1

    def finish(self, module):
        """``module`` ends: keep what it attended."""
        for attended in [a for a in self.waiting if a.module is module]:
            self.waiting.remove(attended)
            with self.paused(), torch.no_grad():
                self._keep(attended)

    def _look(self, module, function, name, args, kwargs, output, tagged):
        plain = name if name.startswith("__") else name.rstrip("_")
        if plain in PRODUCTS:
            self._product(module, plain, args, kwargs, output)
        elif name == "scaled_dot_product_attention":
            self._sdpa(module, args, kwargs, output)
        elif name == "multi_head_attention_forward":
            modules.from_function(self.run, module, args, kwargs, output)
        elif name == "__setitem__" and args[0] in self.tags:
            self._set_item(*args)
        elif tagged is not None:
            self._follow(module, function, plain, args, kwargs, output, tagged)

    # from one operator to the next

    def _follow(self, module, function, name, args, kwargs, output, tensor):
        tag = self.tags[tensor]
        if name in ("linear", "addmm") and isinstance(tag, Result):
            self._project(tag, name, args, kwargs, tensor)
            return
        if not isinstance(output, torch.Tensor):
            return
        if name == "softmax":
            if isinstance(tag, Scores):
                self._softmax(module, tag, args, kwargs, output)
            return
        if tag.axes is None:
            if output.dim() == tensor.dim():
                self.tags[output] = tag
            return
        axes = self._viewed(function, name, args, kwargs, tensor, tag.axes, output)
        if axes is not None:
            self.tags[output] = replace(tag, axes=axes)
            if isinstance(tag, Result):
                self._joined(tag.attended, axes)
            return
        if (name in SAME or (name == "__get__" and function == DATA)) and output.shape == tensor.shape:
            trained = name.endswith("dropout") and _argument(args, kwargs, 2, "training", True) and output is not tensor
            if trained and _argument(args, kwargs, 1, "p", 0.5) > 0:
                self._dropout(module, tag)
            self.tags[output] = tag if not (trained and isinstance(tag, Scores)) else replace(tag, changed="dropout")
        elif isinstance(tag, Scores):
            self._changed(tag, name, args, kwargs, tensor, output)
        elif isinstance(tag, Weights) and output.shape == tensor.shape and output.is_floating_point():
            name_of = self.run.names[module]
            self.run.note(f"{name_of}: weights are changed by {name} after softmax; they are kept as softmax gave them.")
            self.tags[output] = tag

    def _viewed(self, function, name, args, kwargs, tensor, axes, output):
        """The axes of ``output`` where the operator is a view of ``tensor``; None where it is none."""
        if name in VIEWS:
            return regroup(axes, output.shape)
        if name in SWAPS or (name == "__get__" and function in MIRRORED):
            strides = [2**i for i in range(tensor.dim())]
            probe = torch.empty_strided(tensor.shape, strides, device="meta")  # its strides tell where each axis went
            args = [probe if value is tensor else value for value in args]
            kwargs = {key: probe if value is tensor else value for key, value in kwargs.items()}
            return [axes[strides.index(stride)] for stride in function(*args, **kwargs).stride()]
        return None

    def _changed(self, tag, name, args, kwargs, tensor, output):
        """Scores after an operator that is no view: scaled, masked, added to; or changed by what is not followed."""
        values = [*args, *kwargs.values()]
        others = [value for value in values if value is not tensor]
        other, first, new = others[0] if others else None, values[0] is tensor, None
        if output.shape != tensor.shape:
            if output.dim() == tensor.dim() and output.is_floating_point():
                self.tags[output] = replace(tag, axes=None, changed=name)
            return
        if name in ("mul", "multiply", "div", "divide", "true_divide"):
            if _number(other) is not None and (name.startswith("mul") or first):
                factor = _number(other) if name.startswith("mul") else 1 / _number(other)
                new = replace(tag, scale=tag.scale * factor, bias=[(t * factor, axes) for t, axes in tag.bias])
        elif name in ("add", "sub", "subtract") and (name == "add" or first):
            if _number(other) is not None:
                new = tag  # softmax does not see what is added to a whole row
            elif isinstance(other, torch.Tensor):
                sign = kwargs.get("alpha", 1) * (1 if name == "add" else -1)
                new = self._added(tag, other * sign if sign != 1 else other)
        elif name == "masked_fill":
            mask, value = others[:2]
            if _number(value) is not None and _number(value) <= LOW:
                new = self._hidden(tag, mask, tensor.dtype, _number(value))
        elif name == "where" and len(values) == 3:
            condition = values[0] if values[0] is not tensor else values[1]
            kept_where_true = values[1] is tensor or values[0] is tensor
            filled = values[2] if kept_where_true else values[1]
            low = _number(filled) if _number(filled) is not None else None if isinstance(filled, bool) else float(filled.max())
            if low is not None and low <= LOW:
                new = self._hidden(tag, ~condition if kept_where_true else condition, tensor.dtype, low)
        self.tags[output] = new or replace(tag, changed=name)

    def _hidden(self, tag, mask, dtype, value):
        return replace(tag, hidden=[*tag.hidden, (mask, _last(tag.axes, mask))], least=tag.least or value > float("-inf"))

    def _added(self, tag, other):
        if not other.is_floating_point():
            return replace(tag, changed="add")
        axes = _last(tag.axes, other)
        hidden, bias = split(other)
        new = replace(tag, least=tag.least or bool((hidden & ~other.isneginf()).any()))
        if hidden.any():
            new = replace(new, hidden=[*new.hidden, (hidden, axes)])
        return new if bias is None else replace(new, bias=[*new.bias, (bias.detach(), axes)])

    def _set_item(self, tensor, index, value):
        """scores[mask] = −∞, in place."""
        tag = self.tags[tensor]
        if not isinstance(tag, Scores) or tag.axes is None:
            return
        low = _number(value)
        is_mask = isinstance(index, torch.Tensor) and index.dtype == torch.bool and index.shape == tensor.shape
        if is_mask and low is not None and low <= LOW:
            self.tags[tensor] = self._hidden(tag, index.clone(), tensor.dtype, low)
        else:
            self.tags[tensor] = replace(tag, changed="an assignment")

    def _dropout(self, module, tag):
        if isinstance(tag, Weights):
            self.run.note(f"{self.run.names[module]}: dropout is on (train mode); weights are those before it.")

    # softmax, products

    def _softmax(self, module, tag, args, kwargs, output):
        if tag.axes is None:
            name = self.run.names[module]
            self.run.note(f"{name}: scores went through {tag.changed} before softmax and cannot be followed; not recorded.")
            return
        dim = _argument(args, kwargs, 1, "dim", None)
        axis = [] if dim is None else leaves([tag.axes[dim]])
        if len(axis) == 1:
            (keys,) = axis
            self.tags[output] = Weights(tag, keys, output.detach(), tag.axes, tag.axes)

    def _product(self, module, name, args, kwargs, output):
        values = [*args, *kwargs.values()]
        scale, added = 1.0, None
        if name == "einsum":
            equation, *operands = values
            operands = list(operands[0]) if len(operands) == 1 and isinstance(operands[0], list | tuple) else operands
            if not isinstance(equation, str) or len(operands) != 2:
                return
            letters = _letters(equation, operands)
        else:
            if name == "baddbmm":
                added, *values = values
                scale, beta = kwargs.get("alpha", 1), kwargs.get("beta", 1)
                added = None if beta == 0 else added * beta
            operands = values[:2]
            letters = _matmul_letters(*operands)
        if letters is None:
            return
        tags = [self.tags.get(operand) for operand in operands]
        weights = [i for i, tag in enumerate(tags) if isinstance(tag, Weights)]
        if len(weights) == 1:
            self._attend(module, tags[weights[0]], weights[0], operands, letters, output)
        elif not weights:
            product = _scores(module, operands, letters)
            if product is not None:
                tag = Scores(*product, scale=scale)
                self.tags[output] = tag if added is None else self._added(tag, added)

    def _attend(self, module, weights, place, operands, letters, output):
        """Weights, at ``place`` of the operands, are multiplied with values."""
        values = operands[1 - place]
        own, others, out = letters[place], letters[1 - place], letters[2]
        known = {letter: leaves([axis]) for letter, axis in zip(own, weights.axes, strict=True)}
        inner = [letter for letter in own if letter in others and letter not in out]
        if len(inner) != 1 or known[inner[0]] != [weights.keys]:
            return
        new = [letter for letter in others if letter not in own]
        if len(new) != 1 or new[0] not in out:
            return
        axes = {letter: tuple(known[letter]) for letter in known} | {new[0]: (Axis(values.shape[others.index(new[0])]),)}
        q, k = self._sides(weights)
        attended = Attended(
            module, self.run.next_order(), weights.scores, q, k, (values.detach(), [axes[letter] for letter in others]), weights.keys,
            weights, output.detach(), [axes[letter] for letter in out],
        )  # fmt: skip
        self._wait(attended, output)

    def _sides(self, weights):
        """((q, its axes), (k, its axes)) of Weights: k is the side that softmax runs over."""
        one, other = weights.scores.product.sides
        if weights.keys in leaves(one[1]):
            one, other = other, one
        return one, other

    def _sdpa(self, module, args, kwargs, output):
        query, key, value = (_argument(args, kwargs, i, n, None) for i, n in enumerate(("query", "key", "value")))
        mask, causal = _argument(args, kwargs, 3, "attn_mask", None), _argument(args, kwargs, 5, "is_causal", False)
        scale, grouped = kwargs.get("scale"), kwargs.get("enable_gqa", False)
        dropout = _argument(args, kwargs, 4, "dropout_p", 0.0)
        if query.is_nested:
            self.run.note(f"{self.run.names[module]}: nested tensors in scaled_dot_product_attention are not recorded.")
            return
        if grouped:
            key, value = (t.repeat_interleave(query.shape[-3] // t.shape[-3], dim=-3) for t in (key, value))
        *batch, L, D = query.shape
        S, Dv = value.shape[-2:]
        batch = [(Axis(max(sizes)),) for sizes in zip(batch, key.shape[:-2], value.shape[:-2], strict=True)]
        rows, keys, inner, values = (Axis(L),), (Axis(S),), (Axis(D),), (Axis(Dv),)
        scores = Scores(
            Product(module, ((query.detach(), [*batch, rows, inner]), (key.detach(), [*batch, keys, inner])), inner[0]),
            [*batch, rows, keys], D**-0.5 if scale is None else float(scale),
        )  # fmt: skip
        if causal:
            if L == S:
                scores.rules.append(Mask(L, S, causal=True))
            else:  # from the top left: the first query sees the first key alone
                hides = torch.ones(L, S, dtype=torch.bool, device=query.device).triu(1)
                scores.hidden.append((hides, _last(scores.axes, hides)))
        if mask is not None:
            if mask.dtype == torch.bool:
                scores.hidden.append((~mask, _last(scores.axes, mask)))
            else:
                scores = self._added(scores, mask)
        if dropout:
            self.run.note(f"{self.run.names[module]}: dropout is on (p = {dropout:g}); weights are those before it.")
        attended = Attended(
            module, self.run.next_order(), scores, *scores.product.sides, (value.detach(), [*batch, keys, values]), keys[0], None,
            output.detach(), [*batch, rows, values],
        )  # fmt: skip
        self._wait(attended, output)

    def _wait(self, attended, output):
        self.waiting.append(attended)
        self.tags[output] = Result(attended, attended.axes)
        if self.run.watch:
            self.run.watch.result(attended.order, output)
        self._joined(attended, attended.axes)

    # what the result tells

    def _joined(self, attended, axes):
        """Heads are what stands side by side with the numbers of the values."""
        numbers = self._numbers(attended)
        free = [leaf for leaf in leaves(attended.axes) if leaf not in leaves(attended.k[1])]
        for axis in axes:
            joined = leaves([axis])
            if len(joined) > 1 and joined[-len(numbers) :] == numbers:
                heads = tuple(leaf for leaf in joined[: -len(numbers)] if leaf.size > 1)
                if not [leaf for leaf in free if leaf.size > 1] or any(leaf not in heads for leaf in free if leaf.size > 1):
                    attended.heads = heads

    def _numbers(self, attended):
        known = leaves(attended.scores.axes)
        return [leaf for leaf in leaves(attended.v[1]) if leaf not in known]

    def _project(self, tag, name, args, kwargs, tensor):
        """x @ Wᵀ + b of all heads side by side is the output projection."""
        attended, last = tag.attended, leaves([tag.axes[-1]])
        heads, numbers = list(attended.heads or ()), self._numbers(attended)
        if attended.heads is None and len([leaf for leaf in leaves(attended.axes) if leaf in leaves(attended.k[1])]) > 1:
            return  # of one head, maybe
        if [leaf for leaf in last if leaf.size > 1 or leaf in numbers] != heads + numbers or attended.out is not None:
            return
        if name == "linear":
            weight, bias = _argument(args, kwargs, 1, "weight", None), _argument(args, kwargs, 2, "bias", None)
        else:
            bias, x, weight = (_argument(args, kwargs, i, n, None) for i, n in enumerate(("input", "mat1", "mat2")))
            if x is not tensor:
                return
            weight = weight.t()  # as GPT-2 keeps it, [H·D, E]
        attended.out = weight, bias
        if attended.kept is not None:
            self.run.keep_projection(attended.kept, weight, bias)

    # keeping

    def _keep(self, attended):
        run, module = self.run, attended.module
        name = run.names[module]
        if not run.wants(name):
            return
        try:
            q, k, v, groups = self._canonical(attended)
        except Unclear:
            run.note(f'{name}: the axes of its attention cannot be told; pass layout, such as layout="NHLD".')
            return
        tensors = attended.q[0], attended.k[0], attended.v[0]
        if attended.versions != tuple(t._version if not t.is_inference() else 0 for t in tensors):
            run.note(f"{name}: q, k or v were changed in place after they were used; they are kept as they are now.")
        N, _H, L, _ = q.shape
        S = k.shape[2]
        mask = self._mask(attended.scores, groups, L, S)
        weights = attended.weights and arranged(attended.weights.tensor, attended.weights.first_axes, groups["weights"])
        maps = None
        if weights is not None:
            maps = self._held_against(weights, q, k, mask, attended, name)
        k, v = _grouped(k, v)
        padding = mask.padded
        one = run.one_sequence(module, L, S, mask.causal or L == S)
        attended.kept = run.keep(
            module, q, k, v, mask, scale=attended.scores.scale, one_sequence=one,
            query_padding=torch.from_numpy(padding).expand(N, L) if one and L == S and padding is not None and maps is None else None,
            out=attended.out, weights=weights, maps=maps, order=attended.order, result=self._result(attended, groups),
        )  # fmt: skip
        if attended.weights is None and not mask.empty and _row_without_key(mask):
            run.note(
                f"{name}: scaled_dot_product_attention gives 0 to a query that has no key left; its row is shown as undefined."
            )

    def _canonical(self, attended):
        """q [N, H, L, D], k [N, H, S, D], v [N, H, S, Dv], and the leaves that these axes stand for."""
        (q, q_axes), (k, k_axes), (v, v_axes) = attended.q, attended.k, attended.v
        inner = list(attended.scores.product.inner.leaves)
        keys = list(attended.keys.leaves)
        numbers = self._numbers(attended)
        rows = [
            leaf
            for leaf in leaves(attended.weights.first_axes if attended.weights else attended.scores.axes)
            if leaf not in keys
        ]
        if self.layout is not None:
            items, heads, queries = self._told(q, q_axes, inner, leaves(k_axes))
        else:
            heads = list(attended.heads or ())
            free = [leaf for leaf in rows if leaf not in leaves(k_axes) and leaf not in heads]
            queries = free[-1:]
            if not queries:
                raise Unclear
            items = [leaf for leaf in rows if leaf not in heads and leaf not in queries]
            if attended.heads is None and len(items) > 1:
                heads, items = items[-1:], items[:-1]
                self.run.note(
                    f"{self.run.names[attended.module]}: heads are taken to be the axis before the queries' in q of shape "
                    f'{tuple(q.shape)}; where they are not, pass layout, such as layout="NHLD".'
                )
        groups = {
            "q": [items, heads, queries, inner], "k": [items, heads, keys, inner], "v": [items, heads, keys, numbers],
            "weights": [items, heads, queries, keys],
        }  # fmt: skip
        count, head_count = _product_of(items), _product_of(heads)
        q, k, v = (arranged(t, axes, groups[kind]) for kind, t, axes in (("q", q, q_axes), ("k", k, k_axes), ("v", v, v_axes)))
        q, k, v = (t.expand(count, head_count, -1, -1) for t in (q, k, v))
        return q, k, v, groups

    def _result(self, attended, groups):
        """[N, L, H, Dv]: what the model itself got, where somebody looks at it."""
        if self.run.watch is None:
            return None
        return arranged(attended.result, attended.axes, [*groups["q"][:3], groups["v"][3]]).transpose(1, 2)

    def _told(self, q, axes, inner, shared):
        """(items, heads, queries), each a list of leaves, as ``layout`` tells them of q; k has ``shared`` as well."""
        if len(self.layout) != q.dim():
            raise Wrong(
                "layout", self.layout, f"must have a letter for each of the {q.dim()} axes of q of shape {tuple(q.shape)}."
            )
        told = {letter: leaves([axis]) for letter, axis in zip(self.layout, axes, strict=True)}
        if told["D"] != inner or any(leaf in shared for leaf in told["L"]):
            rule = f"does not fit a q of shape {tuple(q.shape)}: its product with k adds up along D and has no other axis L in common."
            raise Wrong("layout", self.layout, rule)
        return told.get("N", []), told.get("H", []), told["L"]

    def _mask(self, scores, groups, L, S):
        rules = [symbolic(L, S), *scores.rules]
        for mask, axes in scores.hidden:
            rules.append(symbolic(L, S, arranged(mask.bool(), axes, groups["weights"])))
        for bias, axes in scores.bias:
            bias = arranged(bias, axes, groups["weights"])
            if bias.shape[3] == S or (bias.shape[3] == 1 and S == 1):  # what is the same for all keys changes no weight
                rules.append(symbolic(L, S, None, bias))
        return together(rules)

    def _held_against(self, weights, q, k, mask, attended, name):
        """None where q, k and the mask give the model's own ``weights``; else these, which are then kept in their place."""
        scores = attended.scores
        L = weights.shape[2]
        rows = torch.linspace(0, L - 1, min(L, ROWS)).round().long()
        if scores.changed is None:
            exact = torch.float64 if q.dtype == torch.float64 else torch.float32
            logits = (q[:, :, rows].to(exact) * scores.scale) @ k.to(exact).transpose(-2, -1)  # [N, H, rows, S]
            hidden, added = torch.from_numpy(mask.hidden()), mask.added()
            if added is not None:
                logits = logits + _rows(torch.from_numpy(added), rows).to(logits)
            hidden = _rows(hidden, rows).to(logits.device)
            again = logits.masked_fill(hidden, -torch.inf).softmax(dim=-1)
            own = weights[:, :, rows].to(exact)
            left = ~hidden.all(dim=-1).expand(own.shape[:3])  # a row without keys is whatever the model makes of it
            finite = left & own.isfinite().all(dim=-1)
            off = (again - own).abs()[finite]
            if off.numel() == 0 or off.max() <= CLOSE.get(q.dtype, 1e-4):
                if scores.least and not left.all():
                    self.run.minimum(name)
                return None
        what = f"scores are changed by {scores.changed}" if scores.changed else "what happens to the scores cannot be told"
        self.run.note(f"{name}: {what} between their product and softmax, so its maps are kept, without q, k and v.")
        return weights.half() if weights.dtype == torch.bfloat16 else weights  # its sums are as rough as those of 16 bits


def _flat(args, kwargs):
    for value in (*args, *kwargs.values()):
        if isinstance(value, torch.Tensor):
            yield value
        elif isinstance(value, list | tuple):
            yield from (part for part in value if isinstance(part, torch.Tensor))


def _argument(args, kwargs, index, name, default):
    return args[index] if len(args) > index else kwargs.get(name, default)


def _number(value):
    """A number, or a tensor of one, as a float; None for anything else."""
    if isinstance(value, torch.Tensor):
        return float(value) if value.numel() == 1 else None
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _last(axes, tensor):
    """The axes that ``tensor`` has where it is broadcast to one with ``axes``."""
    if tensor.dim() > len(axes):
        if any(size > 1 for size in tensor.shape[: tensor.dim() - len(axes)]):
            raise Unclear
        return [()] * (tensor.dim() - len(axes)) + list(axes)
    return list(axes[len(axes) - tensor.dim() :])


def _letters(equation, operands):
    """The axes of two operands and the result of einsum, one letter (any text) each; None where an axis is met twice in one."""
    left, arrow, out = equation.replace(" ", "").partition("->")
    parts = left.split(",")
    if len(parts) != 2:
        return None
    dots = [operand.dim() - len(part.replace("...", "")) for operand, part in zip(operands, parts, strict=True)]
    if not arrow:
        once = sorted(letter for letter in set(left) - set(".,") if left.count(letter) == 1)
        out = ("..." if "..." in left else "") + "".join(once)
    spelled = []
    for part, count in zip([*parts, out], [*dots, max(dots)], strict=True):
        before, ellipsis, after = part.partition("...")
        spelled.append([*before, *([f".{i}" for i in range(max(dots) - count, max(dots))] if ellipsis else []), *after])
    if any(len(set(part)) < len(part) for part in spelled):
        return None
    return spelled


def _matmul_letters(one, other):
    if one.dim() < 2 or other.dim() < 2:
        return None
    count = max(one.dim(), other.dim()) - 2
    batch = [f".{i}" for i in range(count)]
    return (
        [*batch[count - one.dim() + 2 :], "row", "in"],
        [*batch[count - other.dim() + 2 :], "in", "column"],
        [*batch, "row", "column"],
    )


def _scores(module, operands, letters):
    """(Product, axes of its result) where two tensors are multiplied as queries and keys may be; None where not."""
    one, other, out = letters
    inner = [letter for letter in one if letter in other and letter not in out]
    free = [
        [letter for letter in side if letter not in against and letter in out] for side, against in ((one, other), (other, one))
    ]
    if len(inner) != 1 or not all(free) or set(one) | set(other) != {*out, *inner}:
        return None
    if any(isinstance(operand, Parameter) and operand.dim() == 2 for operand in operands):  # a projection
        return None
    sizes = {}
    for operand, side in zip(operands, (one, other), strict=True):
        for letter, size in zip(side, operand.shape, strict=True):
            sizes[letter] = max(sizes.get(letter, 1), size)
    axes = {letter: (Axis(size),) for letter, size in sizes.items()}
    sides = tuple(
        (operand.detach(), [axes[letter] for letter in side]) for operand, side in zip(operands, (one, other), strict=True)
    )
    return Product(module, sides, axes[inner[0]][0]), [axes[letter] for letter in out]


def _grouped(k, v):
    """k and v [N, G, S, …] with heads that share them kept once, where neighbours do."""
    H = k.shape[1]
    for size in sorted((n for n in range(2, H + 1) if H % n == 0), reverse=True):
        groups = [t.unflatten(1, (H // size, size)) for t in (k, v)]  # [N, G, H / G, S, …]
        if all(bool((t == t[:, :, :1]).all()) for t in groups):
            return tuple(t[:, :, 0] for t in groups)
    return k, v


def _row_without_key(mask):
    return bool(mask.hidden().all(axis=-1).any())


def _rows(tensor, rows):
    return tensor if tensor.shape[2] == 1 else tensor[:, :, rows]


def _product_of(axes):
    product = 1
    for leaf in axes:
        product *= leaf.size
    return product
