"""One call of attention written by hand, when its module ends: its axes put in order, its mask told, held against its own weights."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import torch
from torch.nn import functional as F

from mha_viz.core.rules import Wrong
from mha_viz.sources.capture.agreement import alike, close, gap, gives_zero, rows_of, some_rows, weights_of, zeroed
from mha_viz.sources.capture.axes import Axis, Unclear, arranged, leaves
from mha_viz.sources.capture.beneath import NoTokens
from mha_viz.sources.capture.masks import row_without_key, version, with_sink
from mha_viz.sources.capture.rows import tokens_of
from mha_viz.sources.capture.scores import Groups, Scores, Sink, Weights, mask_of
from mha_viz.sources.capture.windows import windows_of

if TYPE_CHECKING:
    from torch import Tensor, nn

    from mha_viz.core.mask import Mask
    from mha_viz.sources.capture.axes import Axes, Side, TensorAxis
    from mha_viz.sources.capture.kept import Kept, Projection
    from mha_viz.sources.capture.rows import Rows
    from mha_viz.sources.capture.run import Run


@dataclass(eq=False)
class Attended:
    """Weights times values, waiting for what becomes of its ``result``, which tells heads and output projection.

    ``q``, ``k``, ``v`` and ``result`` are (tensor, axes). ``weights`` is None where one operator did it all. ``used`` is what
    multiplied the values, None where that is the softmax, or was before dropout.
    """

    module: nn.Module
    order: int
    scores: Scores
    q: Side
    k: Side
    v: Side
    result: Side
    keys: Axis
    rank: int  # how many axes the model sees in the result
    weights: Weights | None = None
    used: Side | None = None
    dropped: bool = False  # in the one operator that did it all
    heads: tuple[Axis, ...] | None = None  # what stands side by side with the numbers of the values
    folded: bool = False  # heads that share keys were folded into the axis of queries, as the result tells
    doubt: bool = False  # all queries were joined with the numbers: they may be folded heads, and queries as well
    beside: bool = False  # the queries were joined with one axis that k has, and with nothing else: as folded heads are
    out: Projection | None = None
    kept: Kept | None = None

    def __post_init__(self) -> None:
        self.versions = self._versions()

    @property
    def changed_in_place(self) -> bool:
        """True where q, k or v are not what they were."""
        return self.versions != self._versions()

    @property
    def numbers(self) -> list[Axis]:
        """The leaves that the values alone have."""
        known = leaves(self.scores.known_axes)
        return [leaf for leaf in leaves(self.v[1]) if leaf not in known]

    def joined(self, axes: Axes) -> None:
        """The result has these ``axes`` now: heads are what stands side by side with the numbers of the values."""
        self._unfolded(axes)
        if not self.folded and self._beside_queries(axes):
            self.doubt = self.beside = True
        for axis in axes:
            if len(leaves([axis])) > len(self.numbers):
                self.heads = self._heads([axis], of_one_query=len(axes) > 2 and not _counts(axes[-2])) or self.heads

    def holds_heads(self, axes: Axes) -> bool:
        """True where ``axes`` of the result, along which a product adds up, are the numbers of all heads, as a projection takes them."""
        heads, others = self._heads(axes), [leaf for leaf in leaves(self.result[1]) if leaf in leaves(self.k[1])]
        if heads == () and self.folded and not any(leaf in others for leaf in self.heads or ()):
            self.heads, self.folded = None, False  # one projection for each of them: they were queries
        if heads is None or self.heads not in (None, heads) or (self.heads is None and not heads and len(others) > 1):
            return False  # of one head, maybe
        self.heads = heads
        return True

    def _unfolded(self, axes: Axes) -> None:
        """Where ``axes`` are […, heads, queries, numbers] and the heads are some that k has and others that it has not, all is told.

        So grouped heads are put side by side again: q [N, G, H / G · L, D] gave a result that becomes [N, H, L, D].
        """
        if len(axes) < max(self.rank, 3):
            return
        heads, queries, numbers = (leaves([axis]) for axis in axes[-3:])
        rows, shared = self._rows(), leaves(self.k[1])
        own = [leaf for leaf in heads if leaf in rows]
        told = own and heads[0] in shared and {*rows} <= {*heads, *queries} and {*_counts(axes[-2])} <= {*rows}
        if told and numbers == self.numbers:
            self.heads, self.folded, self.doubt = _counts(axes[-3]), True, False

    def _beside_queries(self, axes: Axes) -> bool:
        """True where the last of ``axes`` are one that k has joined with all queries, and the numbers: so heads stand that were folded."""
        if len(axes) < 2 or leaves([axes[-1]]) != self.numbers:
            return False
        together, rows = _counts(axes[-2]), tuple(self._rows())
        return bool(rows) and together[1:] == rows and together[0] in leaves(self.k[1])

    def _heads(self, axes: Axes, of_one_query: bool = False) -> tuple[Axis, ...] | None:
        """The leaves of ``axes`` before the numbers; None where these are not there, or all queries are among them.

        Those may be grouped heads ``of_one_query``, where k has some of them.
        """
        together, numbers = leaves(axes), self.numbers
        heads = tuple(leaf for leaf in together[: -len(numbers)] if leaf.size > 1)
        rows = self._rows()
        if together[-len(numbers) :] != numbers:
            return None
        if rows and all(leaf in heads for leaf in rows) and not self.folded:
            self.folded = of_one_query and heads[0] in leaves(self.k[1])
            self.doubt = not self.folded
        return None if self.doubt else heads

    def _rows(self) -> list[Axis]:
        """The leaves of the result that neither k nor the numbers have: queries, and heads that were folded into them."""
        known = (*leaves(self.k[1]), *self.numbers)
        return [leaf for leaf in leaves(self.result[1]) if leaf not in known and leaf.size > 1]

    def _versions(self) -> tuple[int | None, ...]:
        return tuple(version(tensor) for tensor, _ in (self.q, self.k, self.v))


def keep(run: Run, attended: Attended, layout: str | None = None) -> None:
    """Keep this call; ``layout`` tells the axes of q, where the person does."""
    module, name = attended.module, run.names[attended.module]
    if not run.wants(name):
        return
    if not all(side[0].numel() for side in (attended.q, attended.k, attended.v)):
        raise NoTokens
    try:
        items, heads, queries = _told(attended, layout) if layout else _found(run, attended)
        q, k, v, weights, used, result = _arranged(attended, items, heads, queries)
        groups = [items, heads, queries, list(attended.keys.leaves)]
        mask = mask_of(run.memory, attended.scores, groups, absorbs=weights is not None)
        extra: tuple[str, ...] = ()
        if attended.scores.sink is not None:
            extra = ("sink",)
            mask, k, v = _sunk(attended.scores.sink, mask, k, v, groups)
            run.note(
                'a sink stands beside the keys in its softmax: the column "sink", which multiplies no value. Without it the weights of a '
                "query sum to less than 1.",
                name,
            )
        q = _times(q, attended.scores, groups)
    except Unclear:
        run.note('the axes of its attention cannot be told; pass layout, such as layout="NHLD".', name)
        return
    if attended.changed_in_place:
        run.note("q, k or v were changed in place after they were used; they are kept as they are now.", name)
    N, _, L, _ = q.shape
    S = mask.num_keys
    scale, zero = attended.scores.scale, False
    softmax = attended.weights
    if weights is None or softmax is None:
        maps = None
        if not attended.dropped:
            zero = gives_zero(mask, result.transpose(1, 2))
            run.compare(name, gap(q, k, v, mask, scale, zero, result), q.dtype)
        zero = zero or attended.dropped
    else:
        if softmax.version != version(softmax.given[0]) and attended.scores.changed is None:
            weights = weights_of(q, k, mask, scale, [(0, L)]).to(
                weights.dtype
            )  # as they were before they were changed in place
        shown = weights.masked_fill((weights == 0).all(dim=-1, keepdim=True), torch.nan)  # flex_attention gives 0 to such rows
        zero = used is not None and not extra and zeroed(shown, used)
        used = None if used is None or zero else _beside(used, len(extra))
        used = None if used is None or alike(_beside(shown[..., : mask.num_keys], len(extra)), used) else used
        maps = shown if used is not None or not _tells(run, attended.scores, q, k, mask, shown, name) else None
        if used is not None:
            _say_changed(run, softmax, name)
    if maps is None and row_without_key(mask):
        if mask.may_spare:
            run.minimum(name)
        elif zero:
            run.zero(name)
    if maps is not None and maps.dtype == torch.bfloat16:
        maps, used = maps.half(), used if used is None else used.half()  # whose sums may be as rough
    k, v = _grouped(k, v)
    places = _rows(run, attended, items, heads, queries, N)
    _say_parts(run, attended, N, L, places)
    one = run.one_sequence(module, L, S, mask.causal or (L == S and not places.apart))
    padding = torch.from_numpy(mask.padded).expand(N, L) if one and L == S and mask.padded is not None else None
    attended.kept = run.keep(
        module,
        q,
        k,
        v,
        mask,
        scale=scale,
        one_sequence=one,
        query_padding=padding,
        out=attended.out,
        weights=weights,
        maps=maps,
        used=used,
        order=attended.order,
        result=result.transpose(1, 2),
        without_key="zero" if zero else "nan",
        places=places,
        extra=extra,
    )


def _sunk(sink: Sink, mask: Mask, k: Tensor, v: Tensor, groups: Groups) -> tuple[Mask, Tensor, Tensor]:
    """(mask, k, v) with one key more, which is 0 and whose value is 0: the sink is what the mask adds to its score."""
    tensor = arranged(sink.tensor, sink.axes, [*groups[:3], []])  # [1|N, 1|H, 1|L, 1]
    return with_sink(mask, tensor), F.pad(k, (0, 0, 0, 1)), F.pad(v, (0, 0, 0, 1))  # [N, H, S + 1, D|Dv]


def _beside(weights: Tensor, columns: int) -> Tensor:
    """``weights`` with 0 in so many ``columns`` more: what a sink takes multiplies no value."""
    return F.pad(weights, (0, columns))


def _say_parts(run: Run, attended: Attended, N: int, L: int, places: Rows) -> None:
    """Say that batch items are parts of the model's own, such as windows: where they are named, or are several times as many."""
    name, plural = run.names[attended.module], "s" if L > 1 else ""
    if places.parts is not None:
        within = "" if places.numbers(0) is not None else " Tokens are numbered within each."
        run.note(
            f"its {N} items are {places.parts.kind}s of {L} token{plural}: item 0 is {places.parts.name(0)}.{within}", name
        )
        return
    given = run.inputs[0] if run.inputs else ()
    mapped = len(attended.result[1]) > attended.rank  # by torch.vmap, whose items are the caller's
    own = given[0] if len(given) > 1 and not mapped else 0
    if own and own < N and N % own == 0 and N not in given[:2] and attended.heads is not None:
        each, items = N // own, "item" if own == 1 else "items"
        run.note(
            f"its {N} items are {each} parts of {L} tokens, such as windows, of each of {own} batch {items}: item i is part i mod {each} "
            f"of batch item i // {each}, and its tokens are numbered within the part.",
            name,
        )


def _rows(run: Run, attended: Attended, items: list[Axis], heads: list[Axis], queries: list[Axis], N: int) -> Rows:
    """The Rows of q and k, and what the N items are called."""

    def places(side: Side) -> Sequence[TensorAxis]:
        product = attended.scores.product
        return next((known for own, known in zip(product.sides, product.places, strict=True) if own[0] is side[0]), ())

    of_q, of_k = places(attended.q), places(attended.k)
    found = run.operators.places.rows(
        *tokens_of(of_q, *attended.q, items, heads, queries),
        *tokens_of(of_k, *attended.k, items, heads, list(attended.keys.leaves)),
    )
    return replace(found, parts=windows_of(of_q, attended.q[1], items, heads, queries, N))


def _say_changed(run: Run, weights: Weights, name: str) -> None:
    how = " and ".join(weights.changed) or "something that was not seen, such as another dtype in between,"
    run.note(
        f"weights are changed by {how} after softmax. The maps show what multiplied the values; the softmax is beside it "
        "(probabilities).",
        name,
    )


def _found(run: Run, attended: Attended) -> tuple[list[Axis], list[Axis], list[Axis]]:
    """(items, heads, queries), each a list of leaves, as far as the result told them."""
    heads = list(attended.heads or ())
    rows = [leaf for leaf in leaves(attended.scores.known_axes) if leaf not in attended.keys.leaves]
    queries = [leaf for leaf in rows if leaf not in leaves(attended.k[1]) and leaf not in heads]
    known = attended.heads is not None  # then a view may have parted queries, as into the rows and columns of a grid
    queries = [leaf for leaf in queries if leaf.root is queries[-1].root] if known else queries[-1:]
    if not queries and not attended.folded:
        raise Unclear
    items = [leaf for leaf in rows if leaf not in heads and leaf not in queries]
    if attended.heads is None and len(items) > 1:
        heads, items, open_to_doubt = items[-1:], items[:-1], sum(leaf.size > 1 for leaf in items) > 1
        if attended.doubt and (attended.beside or not open_to_doubt):
            run.note(
                f"the axis of {math.prod(leaf.size for leaf in queries)} in q of shape {tuple(attended.q[0].shape)} is read as queries. "
                "If it holds heads that share keys, reshape the result to (N, H, 1, D) before its heads are joined, and it is seen.",
                run.names[attended.module],
            )
        elif open_to_doubt:
            run.note(
                'heads are taken to be the axis before the queries\'; where they are not, pass layout, such as layout="NHLD".',
                run.names[attended.module],
            )
    elif len(items) == 1 and not heads and run.inputs and items[0].size not in (1, *run.inputs[-1][:-1]):
        run.note(
            f"q of shape {tuple(attended.q[0].shape)} is read as items of one head each. Where its first axis holds items and heads "
            "together, open the result with .view(N, H, L, D) and it is seen.",
            run.names[attended.module],
        )
    return items, heads, queries


def _told(attended: Attended, layout: str) -> tuple[list[Axis], list[Axis], list[Axis]]:
    """(items, heads, queries), each a list of leaves, as ``layout`` tells them of q."""
    q, axes = attended.q
    levels = attended.result[1][: len(attended.result[1]) - attended.rank]  # of torch.vmap: they are items
    shape = tuple(q.shape[sum(axis in levels for axis in axes) :])  # as the model sees it
    axes = axes[len(axes) - len(shape) :]
    if len(layout) != len(shape):
        raise Wrong("layout", layout, f"must have a letter for each of the {len(shape)} axes of q of shape {shape}.")
    told = {letter: leaves([axis]) for letter, axis in zip(layout, axes, strict=True)}
    inner, shared = attended.scores.product.inner.leaves, leaves(attended.k[1])
    if told["D"] != list(inner) or any(leaf in shared for leaf in told["L"]):
        rule = f"does not fit a q of shape {shape}: its product with k adds up along D and has no other axis L in common."
        raise Wrong("layout", layout, rule)
    return [*leaves(levels), *told.get("N", [])], told.get("H", []), told["L"]


def _arranged(
    attended: Attended, items: list[Axis], heads: list[Axis], queries: list[Axis]
) -> tuple[Tensor, Tensor, Tensor, Tensor | None, Tensor | None, Tensor]:
    """q [N, H, L, D], k [N, H, S, D], v [N, H, S, Dv], the model's own softmax [N, H, L, S] and what multiplied v, or None each, and
    result [N, H, L, Dv]."""
    keys, inner, numbers = list(attended.keys.leaves), list(attended.scores.product.inner.leaves), attended.numbers
    counts = [math.prod(leaf.size for leaf in group) for group in (items, heads)]
    q, k, v, result = (
        arranged(*tensor, [items, heads, rows, columns]).expand(*counts, -1, -1)
        for tensor, rows, columns in (
            (attended.q, queries, inner),
            (attended.k, keys, inner),
            (attended.v, keys, numbers),
            (attended.result, queries, numbers),
        )
    )
    sink = attended.scores.sink
    given = None if attended.weights is None else attended.weights.given
    softmax, used = (
        None if pair is None else arranged(*pair, [items, heads, queries, columns]).expand(*counts, -1, -1)
        for pair, columns in ((given, keys if sink is None else [sink.wide]), (attended.used, keys))
    )
    if softmax is not None and sink is not None and sink.start:
        softmax = softmax.roll(-1, -1)  # a sink is the last column here
    return q, k, v, softmax, used, result


def _times(q: Tensor, scores: Scores, groups: Groups) -> Tensor:
    """q [N, H, L, D] times what multiplies the scores beside their scale, such as one number per head."""
    for tensor, axes in scores.factors:
        factor = arranged(tensor, axes, groups)  # [1|N, 1|H, 1|L, 1|S]
        if factor.shape[3] > 1:
            scores.changed = "a factor of its own for each key"
            return q
        q = (q * factor).to(q.dtype)
    return q


def _tells(run: Run, scores: Scores, q: Tensor, k: Tensor, mask: Mask, weights: Tensor, name: str) -> bool:
    """True where q, k and the mask give the model's own ``weights``; else a note says what was not followed."""
    if scores.changed is None:
        runs = some_rows(weights.shape[2])
        made = weights_of(q, k, mask, scores.scale, runs)  # [N, H, rows, S]
        own = rows_of(weights, runs).to(made.dtype)
        finite = own.isfinite().all(dim=-1)  # [N, H, rows]
        off = (made - own).abs()[finite]
        if off.numel() == 0 or off.max() <= close(q.dtype):
            return True
    what = f"scores are changed by {scores.changed}" if scores.changed else "what happens to the scores cannot be told"
    run.note(f"{what} between their product and softmax, so its maps are kept, without q, k and v.", name)
    return False


def _grouped(k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    """k and v [N, G, S, …] with heads that share them kept once, where neighbours do."""
    H = k.shape[1]
    if H == 1 or not torch.equal(k[:, 0], k[:, 1]):
        return k, v
    for size in sorted((n for n in range(2, H + 1) if H % n == 0), reverse=True):
        groups = [t.unflatten(1, (H // size, size)) for t in (k, v)]  # [N, G, H / G, S, …]
        if all(bool((t == t[:, :, :1]).all()) for t in groups):
            return tuple(t[:, :, 0] for t in groups)
    return k, v


def _counts(axis: TensorAxis) -> tuple[Axis, ...]:
    """The leaves of ``axis`` that count more than one."""
    return tuple(leaf for leaf in leaves([axis]) if leaf.size > 1)
