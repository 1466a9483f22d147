"""Recordings: nothing has to be asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Literal

from mha_viz.core.attend import trace_of_call
from mha_viz.core.maps import trace_of_maps
from mha_viz.core.tokens import texts
from mha_viz.recording import Recording

if TYPE_CHECKING:
    from mha_viz.core.trace import Trace
    from mha_viz.sources.files.found import Answers, TokenLists


@dataclass(frozen=True, eq=False)
class Run:
    """The content of a file that ``Recording.save`` wrote."""

    recording: Recording
    kind: ClassVar[Literal["recording"]] = "recording"

    @property
    def holds(self) -> tuple[str, ...]:
        traces = self.recording.traces
        return (f"A recording of {len(traces)} attention call{'' if len(traces) == 1 else 's'}.", *self.recording.notes)

    def ask(self, answers: Mapping[str, object]) -> tuple[()]:
        return ()

    def open(self, name: str, answers: Answers, tokens: TokenLists | None, key_tokens: TokenLists | None) -> Recording:
        if tokens is None and key_tokens is None:
            return self.recording
        return replace(self.recording, traces=tuple(named(trace, tokens, key_tokens) for trace in self.recording.traces))


def named(trace: Trace, queries: TokenLists | None, keys: TokenLists | None) -> Trace:
    """The same call with other texts for its rows and columns; the extra columns keep theirs."""
    N, L, S = trace.tokens.query_padding.shape + (trace.num_positions,)
    keys = queries if keys is None and L == S else keys
    old = trace.tokens
    extra = [item[S:] for item in old.keys]
    queries = old.queries if queries is None else texts("tokens", queries, N, L)
    keys = [item[:S] for item in old.keys] if keys is None else texts("key_tokens", keys, N, S)
    tokens = replace(old, queries=queries, keys=tuple((*a, *b) for a, b in zip(keys, extra, strict=True)))
    if trace.call is not None:
        return trace_of_call(replace(trace.call, tokens=tokens))
    return trace_of_maps(trace.probabilities, tokens, trace.name, dtype=trace.dtype)
