"""Attention recorded from a person's own PyTorch model while it runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from mha_viz.core.attend import trace_of_call
from mha_viz.core.call import Call
from mha_viz.core.maps import trace_of_maps
from mha_viz.core.rules import Wrong, listed, one_of
from mha_viz.core.tokens import Tokens, texts
from mha_viz.recording import Recording
from mha_viz.sources.capture.kept import Filters
from mha_viz.sources.capture.nonfinite import cause_of
from mha_viz.sources.capture.run import Run

if TYPE_CHECKING:
    from jaxtyping import Int
    from torch import nn

    from mha_viz.core.trace import Trace
    from mha_viz.sources.capture.axes import Axis
    from mha_viz.sources.capture.kept import Kept


Given: TypeAlias = tuple[str | tuple[Any, ...], ...]  # texts as a person gave them, one sequence per batch item
Texts: TypeAlias = Sequence[Sequence[str]]
Names: TypeAlias = tuple[
    Texts | None, Texts | None
]  # of the queries and of the keys of a call, None for a side that they do not fit


@contextmanager
def record(
    model: nn.Module,
    *,
    layers: str | Iterable[str] | None = None,
    items: int | Iterable[int] | None = None,
    steps: int | Iterable[int] | None = None,
    max_length: int | None = None,
    tokens: Iterable[str | Iterable[str]] | None = None,
    until: Literal["nonfinite"] | None = None,
    limit: int | None = None,
    layout: str | None = None,
) -> Iterator[Recording]:
    """Record every attention that runs inside ``model``, an ``nn.Module``, without changing what it computes.

    >>> import torch, mha_viz as mv
    >>> layer = torch.nn.TransformerEncoderLayer(8, 2, batch_first=True)
    >>> model = torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).eval()
    >>> with mv.record(model, layers="layers.1.*", tokens=["the cat sat".split()]) as recording:
    ...     _ = model(torch.zeros(1, 3, 8))
    >>> [(trace.name, trace.weights.shape) for trace in recording.traces]  # [N, H, L, S]
    [('layers.1.self_attn', (1, 2, 3, 3))]
    >>> recording.traces[0].query_tokens
    (('the', 'cat', 'sat'),)

    The Recording is filled when the block ends, also by an exception; by then the model is as it was. ``nn.MultiheadAttention`` is
    recorded wherever it is used, on the fast path too, and attention written by hand where it is
    ``F.scaled_dot_product_attention``, ``F.multi_head_attention_forward`` or a softmax between two products. q, k and v are kept
    in the dtype of the run (bfloat16, which NumPy has not, as float32), masks as rules where they are such, dropout never: weights
    are those before it. Attention that runs on its own, outside a call of ``model`` or of its modules, is not the model's.

    ``layers`` is the name of a module, or several, "*" standing for any text. ``items`` are batch items, ``steps`` forward passes
    of ``model``, each a number or several, from 0. ``max_length`` keeps the first so many queries of each call, with all keys that
    they may see. ``tokens`` are texts, one sequence per batch item, that name the rows and columns they fit. ``limit`` is in
    bytes, half of the free memory where None. ``until="nonfinite"`` keeps only the step, forward and backward, in which something
    first became NaN or infinite, and says in ``recording.cause`` why. ``layout`` tells the axes of q in attention written by hand
    as it goes into the product, such as "NHLD" or "NLHD", where they cannot be told.

    Nothing is ever raised inside ``model``. What of its attention cannot be recorded, as while it is traced or compiled, is said in
    ``recording.notes``. Raises Wrong when the block ends: where the recording would have been over its limit, and stopped there,
    for filters that nothing fits, and where no attention was seen.
    """
    if until is not None:
        one_of("until", until, ("nonfinite",))
    if layout is not None and sorted(layout) not in (sorted("NHLD"), sorted("NLD"), sorted("HLD"), sorted("LD")):
        raise Wrong(
            "layout", layout, "must name each axis of q once: N items, H heads, L queries, D numbers.", [{"layout": "NHLD"}]
        )
    if tokens is not None:
        tokens = _texts(tokens)
    run = Run(
        model, Filters.checked(layers, items, steps, max_length), limit=limit, until_nonfinite=until is not None, layout=layout
    )
    recording = Recording(())
    finished = False
    try:
        with run.watched():
            yield recording
        finished = True
    finally:
        _fill(recording, run, tokens, finished)


def _texts(tokens: object) -> Given:
    """Texts as they were given, one sequence per batch item; raises Wrong where they are none, before the model runs."""
    rule = "must be texts, one sequence of them per batch item."
    return tuple(one if isinstance(one, str) else listed("tokens", one, rule) for one in listed("tokens", tokens, rule))


def _fill(recording: Recording, run: Run, tokens: Given | None, finished: bool) -> None:
    """Make Traces of what was kept; where the block ended by itself, say what is wrong with it."""
    if run.watch and not run.watch.found:
        steps = max(run.watch.steps, 1)
        run.note(f"Nothing became NaN or infinite in {steps} step{'' if steps == 1 else 's'}.")
        run.store.clear()
    elif finished and not (run.store.calls or run.watch or run.lost or run.wrong):
        raise _nothing_recorded(run)
    kept = sorted(run.store.calls, key=lambda call: call.order)
    named = None if tokens is None else _names(tokens, kept, strict=finished)
    traces, several = [], len({call.step for call in kept}) > 1
    for call in kept:
        traces.append(_trace(call, None if named is None else named.get(call), run.filters, call.step if several else None))
    recording.traces = tuple(traces)
    if run.watch and run.watch.found:
        recording.cause = cause_of(run.watch.found, kept, recording.traces)
    recording.notes = run.notes
    if finished and run.wrong:
        raise run.wrong


def _trace(call: Kept, names: Names | None, filters: Filters, step: int | None) -> Trace:
    weights = call.arrays.get("weights")
    N, _, L, _ = (weights if weights is not None else call.arrays["q"]).shape
    S = call.mask.num_keys
    queries, keys = names or (None, None)
    if filters.items is not None:
        queries, keys = ([side[item] for item in filters.items] if side else None for side in (queries, keys))
    queries, keys = ([item[:length] for item in side] if side else None for side, length in ((queries, L), (keys, S)))
    if queries is None and not (keys and call.one_sequence):  # whose queries are named as the keys
        queries = _numbers(call.places.numbers(0), N)
    keys = keys if keys is not None else _numbers(call.places.numbers(1), N)
    tokens = Tokens.of(N, L, S, queries, keys, call.query_padding, one_sequence=call.one_sequence)
    if tokens.positions is None:
        tokens = replace(tokens, positions=call.places.positions())
    extended = tuple(item + call.extra for item in tokens.keys)
    tokens = replace(tokens, keys=extended, extra=len(call.extra), parts=call.places.parts)
    if weights is not None:
        dtype = str(call.dtype).removeprefix("torch.")
        return trace_of_maps(weights, tokens, call.name, dtype=dtype, used=call.arrays.get("used"), step=step)
    out_weight, out_bias = call.out
    made = Call(
        **call.arrays,
        mask=call.mask,
        scale=call.scale,
        out_weight=out_weight,
        out_bias=out_bias,
        tokens=tokens,
        name=call.name,
        without_key=call.without_key,
        step=step,
    )
    return trace_of_call(made, later=True)


def _numbers(numbers: Int[np.ndarray, "#N rows"] | None, N: int) -> list[list[str]] | None:
    """The texts of these numbers [1|N, L] for N items, "?" for what is not known; None of None, and where nothing is known."""
    if numbers is None or (numbers < 0).all():
        return None
    return [["?" if i < 0 else str(i) for i in item] for item in np.broadcast_to(numbers, (N, numbers.shape[1])).tolist()]


def _names(tokens: Given, kept: Sequence[Kept], strict: bool) -> dict[Kept, Names]:
    """{call: (texts of its queries, of its keys)}, None for a side that ``tokens`` do not fit.

    They fit a side of their number. Where keys are gathered step by step, as with a cache, the first of them name the earlier
    steps of a module whose last they fit.
    """
    count = len(tokens)
    given = texts("tokens", tokens, count, len(tokens[0]) if count and not isinstance(tokens[0], str) else 0)
    length = len(given[0]) if given else 0
    longest: dict[str, int] = {}
    for call in kept:
        longest[call.name] = max(longest.get(call.name, 0), call.full[2])
    named: dict[Kept, Names] = {}
    family: Axis | None = None
    several = any(call.places.two for call in kept)
    for call in kept:
        N, L, S = call.full
        if count != N:
            continue
        grows = call.one_sequence and L <= S < length == longest[call.name]
        keys: Texts | None = [item[:S] for item in given] if length == S or grows else None
        queries: Texts | None = given if length == L and keys is None else None
        places = call.places
        whole = [root is not None and root.size == length for root in places.roots]
        if whole[1] and places.keys is not None and places.numbers(1) is not None:
            keys = _taken(given, places.keys)
        if whole[0] and places.queries is not None:
            if queries and places.numbers(0) is not None:
                queries = _taken(given, places.queries)
            if queries is None and not call.one_sequence and not places.two:
                queries = _taken(given, places.queries)
        if several and (keys or queries):  # no word on the rows of another sequence that is as long
            family = family or places.families[keys is not None]
            queries, keys = (
                side if own is family else None for side, own in zip((queries, keys), places.families, strict=True)
            )
        if keys or queries:
            named[call] = (queries, keys)
    if strict and not named and kept:
        sizes = sorted({(N, n) for N, L, S in (call.full for call in kept) for n in (L, S)})
        rule = f"must fit a call: {', '.join(f'{N} items of {n} tokens' for N, n in sizes[:4])} were recorded."
        if (length, count) in sizes:
            rule += " Items and tokens are swapped: does batch_first of the layer fit its input?"
        raise Wrong("tokens", (count, length), rule)
    return named


def _taken(given: Sequence[Sequence[str]], numbers: Int[np.ndarray, "#N rows"]) -> list[list[str]]:
    """The texts that stand at these numbers [1|N, L] of each item: numbers of rows where none is known."""
    if (numbers < 0).all():
        return [[str(i) for i in range(numbers.shape[1])]] * len(given)
    rows = np.broadcast_to(numbers, (len(given), numbers.shape[1])).tolist()
    return [
        ["?" if i < 0 else item[i] if i < len(item) else str(i) for i in row] for item, row in zip(given, rows, strict=True)
    ]


def _nothing_recorded(run: Run) -> Wrong:
    seen = tuple(run.outside)
    if seen and run.filters.layers is not None and not any(map(run.filters.takes, seen)):
        rule = "fits no module that attends; these do."
        return Wrong("layers", run.filters.layers, rule, [{"layers": name} for name in seen[:4]])
    if seen and run.filters.steps is not None:
        return Wrong("steps", run.filters.steps, f"were never run: there were {run.step + 1} forward passes, numbered from 0.")
    about = " ".join(run.notes)
    if seen:  # modules that attended, of which nothing could be kept
        rule = f"none of its attention could be recorded. {about} Where it can return its weights, pass those to an upload."
        return Wrong("model", type(run.model).__name__, rule)
    if run.softmaxes:
        rule = (
            f"a softmax over scores ran in {run.softmaxes[0]}, and its weights were not followed to a product with values, so nothing is "
            "recorded. Where the model can return its weights, pass those to an upload."
        )
        return Wrong("model", type(run.model).__name__, rule)
    rule = (
        "no attention was seen inside it while it was recorded. Call the model, or one of its modules, within the block, in this thread. "
        "nn.MultiheadAttention, F.scaled_dot_product_attention and a softmax over scores between two products are recorded; where "
        f"attention is made otherwise, pass its maps to an upload. {about}".rstrip()
    )
    return Wrong("model", type(run.model).__name__, rule)
