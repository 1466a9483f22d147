"""A pretrained model reads a person's text, and is recorded while it does."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NoReturn, TypeAlias

import numpy as np

from mha_viz.core.attend import call_of, trace_of_call
from mha_viz.core.budget import BUDGET
from mha_viz.core.maps import CLOSE, trace_of_maps
from mha_viz.core.memory import SHARE, largest, memory, readable_size
from mha_viz.core.rules import Wrong, of_kind
from mha_viz.core.tokens import Tokens
from mha_viz.core.trace import Trace
from mha_viz.recording import Recording
from mha_viz.sources.pretrained.encode import Encoded, encode
from mha_viz.sources.pretrained.load import ALONE, load, others
from mha_viz.sources.pretrained.settings import Pretrained
from mha_viz.sources.pretrained.shape import joined, taken, with_extra

if TYPE_CHECKING:
    from jaxtyping import Int

    Places: TypeAlias = Int[np.ndarray, " P"]  # of the tokens of one item, ascending

    from mha_viz.sources.pretrained.load import Loaded

SET_ASIDE = (
    "Special tokens are set aside: each row shares among the others what they got, as if they had been hidden; all that follows "
    "from the weights is as it would be then."
)
JOINED = "Sub-words are joined: a word's row is the average of its tokens' rows, its column the sum of their columns."


@dataclass(frozen=True, eq=False)
class Reading:
    """What a model did with a text: a Trace per layer, on the tokens of ``encoded``, and sentences about it."""

    traces: tuple[Trace, ...]
    encoded: Encoded
    notes: tuple[str, ...]


def pretrained(settings: Pretrained | None = None) -> Recording:
    """The Recording of a pretrained model that reads a text: one Trace per layer that attends, "layer 0" first.

    ``settings`` say which model reads what, the defaults where None. Maps are [N, H, L, L], an item per line of text; S has a column
    more where the model has a sink.

    The model runs with ``attn_implementation="eager"``: the attention that its authors wrote, in the order in which they wrote it.
    q and k are those after rotation, grouped key and value heads stay grouped; what the model adds to its scores, as ALiBi and
    relative positions do, is the mask's bias. Where weights do not follow from q, k, scale and mask, a layer has its maps alone.

    Raises Wrong where transformers is not installed, where there is no such model on this machine, where it cannot read the text, or
    none of its layers attends.

    >>> import mha_viz as mv
    >>> settings = mv.Pretrained("all-MiniLM-L6-v2", "The fox jumped.\\nNobody saw it.", special="set aside")
    >>> recording = mv.pretrained(settings)  # doctest: +SKIP
    >>> len(recording.traces), recording.traces[0].weights.shape  # doctest: +SKIP
    (6, (2, 12, 4, 4))
    >>> recording.traces[0].query_tokens  # doctest: +SKIP
    (('the', 'fox', 'jumped', '.'), ('nobody', 'saw', 'it', '.'))
    """
    s = Pretrained() if settings is None else of_kind("settings", settings, Pretrained)
    reading = read(s.name, s.lines, s.pairs)
    encoded, traces, notes = reading.encoded, tuple(map(_afresh, reading.traces)), reading.notes
    items = range(len(s.lines)) if s.crop is None else [s.crop]
    keep = ~(encoded.special & (s.special == "set aside"))  # [N, L]
    if s.crop is not None:
        keep = keep & ~encoded.padding
    elif not s.join:
        keep = keep & (np.arange(keep.shape[1]) < (~encoded.padding).sum(axis=1).max())
    places = [np.flatnonzero(keep[n]) for n in items]  # as many for each: the tokenizer adds the same to every item
    if len(items) < len(keep) or not keep.all():
        traces = tuple(taken(trace, items, places) for trace in traces)
    if s.special == "set aside":
        notes = (*notes, SET_ASIDE)
    if s.join:
        starts, texts = word_starts(encoded, items, places)
        traces = tuple(joined(trace, starts, texts) for trace in traces)
        notes = (*notes, JOINED)
    return Recording(traces, notes)


def read(name: str, lines: tuple[str, ...], pairs: tuple[str, ...]) -> Reading:
    """The Reading of these lines; the last four stay, so that another way to show one does not run the model again."""
    loaded, encoded = _encoded(name, lines, pairs)

    def make() -> Reading:
        with ALONE:
            return _read(loaded, encoded, lines)

    def refuse(available: int) -> NoReturn:
        raise _does_not_fit(_reading_size, loaded, encoded, lines, available)

    size = _reading_size(loaded, *encoded.ids.shape)
    return BUDGET.kept(("reading", name, lines, pairs), make, size, refuse, most=4)


def peak_of(settings: Pretrained) -> tuple[int, Callable[[int], NoReturn]]:
    """(bytes that a Recording of these settings takes when all of its layers are looked at, what raises Wrong where these are not free)."""
    loaded, encoded = _encoded(settings.name, settings.lines, settings.pairs)

    def refuse(available: int) -> NoReturn:
        raise _does_not_fit(_looked_at_size, loaded, encoded, settings.lines, available)

    return _looked_at_size(loaded, *encoded.ids.shape), refuse


def _encoded(name: str, lines: tuple[str, ...], pairs: tuple[str, ...]) -> tuple[Loaded, Encoded]:
    loaded = load(name)
    with ALONE:
        return loaded, encode(loaded, lines, pairs)


def _read(loaded: Loaded, encoded: Encoded, lines: Sequence[str]) -> Reading:
    import torch

    from mha_viz.sources.recorded import record

    given = {"input_ids": torch.tensor(encoded.ids), "attention_mask": torch.tensor(~encoded.padding).long()}
    if encoded.types is not None and "token_type_ids" in inspect.signature(loaded.model.forward).parameters:
        given["token_type_ids"] = torch.tensor(encoded.types)
    name, kind = loaded.name, type(loaded.model).__name__
    try:
        with torch.no_grad(), record(loaded.model) as recording:
            loaded.model(**given)
    except Wrong as wrong:
        if wrong.argument == "model":
            rule = (
                f"is a {kind}, in which no attention can be seen. If it has any, save the maps that it returns with "
                "output_attentions=True to a file, and open that."
            )
            raise Wrong("name", name, rule, others(name)) from wrong
        raise _too_long(wrong, encoded, lines) from wrong
    except Exception as error:  # a model may ask for anything: pictures, a decoder's tokens
        said = str(error).strip().splitlines() or [repr(error)]
        rule = f"is a {kind}, and does not run on text alone: {said[0][:300]}"
        raise Wrong("name", name, rule, others(name)) from error
    of_text = [trace for trace in recording.traces if _shape(trace) == (len(lines), *encoded.ids.shape[1:] * 2)]
    rest = len(recording.traces) - len(of_text)
    if not of_text:
        raise Wrong("name", name, f"is a {kind}, and attends between other things than the text's tokens.", others(name))
    calls = f"{rest} call{' is' if rest == 1 else 's are'}"
    left = [f"{calls} left out: the text's tokens are not what is attended between there."] if rest else []
    traces = tuple(_named(trace, f"layer {i}", encoded) for i, trace in enumerate(of_text))
    return Reading(traces, encoded, (_about(loaded, traces), *loaded.notes, *left, *recording.notes))


def word_starts(
    encoded: Encoded, items: Sequence[int], places: Sequence[Places]
) -> tuple[list[Int[np.ndarray, " _"]], list[list[str]]]:
    """(first positions, texts) of the words of each item among its ``places``: as many texts for each, padding where one has fewer.

    There may be more positions than texts: padding that is not needed. Raises Wrong where there is not enough.
    """
    starts, texts, most = [], [], 0
    for n, kept in zip(items, places, strict=True):
        words = [(place, text) for place, text in encoded.words[n] if place in set(kept)]
        starts.append(np.searchsorted(kept, [place for place, _ in words]))
        texts.append([text for _, text in words])
        most = max(most, sum(not encoded.padding[n, place] for place, _ in words))
    if min(map(len, texts)) < most:
        rule = "has to pad the texts that have fewer words, and the model has no positions left for that."
        raise Wrong("join", True, rule, [{"join": False}, {"crop": 0}])
    return starts, [item[:most] for item in texts]


def _afresh(trace: Trace) -> Trace:
    """The same with nothing computed yet, so that a Reading that is kept stays small."""
    return trace if trace.call is None else trace_of_call(trace.call)


def _shape(trace: Trace) -> tuple[int, int, int]:
    N, _, L = trace.undefined.shape
    return N, L, trace.num_positions


def _named(trace: Trace, name: str, encoded: Encoded) -> Trace:
    """``trace`` with its place among the layers for a name, and the text's tokens on rows and columns."""
    N, L = encoded.ids.shape
    tokens = with_extra(Tokens.of(N, L, L, encoded.texts, encoded.texts, encoded.padding), trace)
    if not trace.has("q", "k"):
        return trace_of_maps(trace.probabilities, tokens, name, max(CLOSE.values()), trace.dtype)
    return trace_of_call(replace(call_of(trace), tokens=tokens, name=name))


def _about(loaded: Loaded, traces: Sequence[Trace]) -> str:
    heads = sorted({trace.undefined.shape[1] for trace in traces})
    groups = {trace.call.k.shape[1] for trace in traces if trace.call is not None}
    shared = f", which share {min(groups)} key and value heads" if groups and min(groups) < heads[0] else ""
    count = f"{len(traces)} layer{'' if len(traces) == 1 else 's'}"
    return f"{loaded.name}: {type(loaded.model).__name__}, {count} of {' or '.join(map(str, heads))} heads{shared}, in float32."


def _sizes(loaded: Loaded) -> tuple[int, int, int]:
    """(layers, heads, numbers a token) of a model, as its configuration has them: the most, where it has a number for each layer."""
    config = loaded.model.config
    layers, heads, width = (
        int(np.max(getattr(config, name, 1))) for name in ("num_hidden_layers", "num_attention_heads", "hidden_size")
    )
    return layers, heads, width


def _reading_size(loaded: Loaded, N: int, L: int) -> int:
    """Bytes of a Reading of N texts of L tokens: q, k, v and the output of each layer, and the maps of the one that is recorded."""
    layers, heads, width = _sizes(loaded)
    return layers * 16 * N * L * width + memory(N, heads, L, L, width)


def _looked_at_size(loaded: Loaded, N: int, L: int) -> int:
    """Bytes of it once the maps of all layers have been looked at."""
    layers, heads, width = _sizes(loaded)
    return layers * memory(N, heads, L, L, width)


def _does_not_fit(
    size: Callable[[Loaded, int, int], int], loaded: Loaded, encoded: Encoded, lines: Sequence[str], available: int
) -> Wrong:
    """The Wrong for a text whose ``size`` is more than half of the ``available`` bytes: it says how many tokens a line would fit."""
    N, L = encoded.ids.shape
    most = largest(L, lambda length: size(loaded, N, length) <= SHARE * available)
    rule = (
        f"would take {readable_size(size(loaded, N, L))}, and {readable_size(SHARE * available)} may be used, half of what is free: "
        f"{f'lines of {most:,} tokens fit' if most else 'not one token fits'}."
    )
    first = [{"text": lines[0]}] if N > 1 and size(loaded, 1, L) <= SHARE * available else []
    return Wrong("text", _told(N, L), rule, first)


def _too_long(wrong: Wrong, encoded: Encoded, lines: Sequence[str]) -> Wrong:
    N, L = encoded.ids.shape
    return Wrong("text", _told(N, L), wrong.rule, [{"text": lines[0]}] if N > 1 else [])


def _told(N: int, L: int) -> str:
    return f"{N} lines of {L} tokens" if N > 1 else f"{L} tokens"
