"""Maps in which each query attends alike to all it may see."""

from dataclasses import dataclass

import numpy as np

from mha_viz.core.maps import trace_of_maps
from mha_viz.settings.rules import Ruled, choice, number, ruled
from mha_viz.sources.base import NOT_GENERATED, Kind, Source


@dataclass(frozen=True)
class Even(Ruled):
    length: int = ruled(4, number(2, 64))
    sees: str = ruled("all", choice("all", "past"))


class EvenKind(Kind):
    name = "even"
    title = "even maps"
    settings = Even

    def called(self, settings):
        return f"even maps of {settings.length}"

    def open(self, settings):
        seen = np.ones((settings.length,) * 2)
        seen = np.tril(seen) if settings.sees == "past" else seen
        weights = (seen / seen.sum(axis=1, keepdims=True))[None, None]  # [1, 1, L, L]
        return Source(self.called(settings), (trace_of_maps(np.float32(weights)),), settings)

    def masks(self, settings):
        return ["only the past"] if settings.sees == "past" else []

    def versions(self, settings):
        return {"model": "none: even maps", "tokenizer": "none", "generation": NOT_GENERATED}


EVEN = EvenKind()
