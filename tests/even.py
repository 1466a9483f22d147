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


class EvenKind(Kind[Even]):
    name = "even"
    title = "even maps"
    settings = Even

    def called(self, settings: Even) -> str:
        return f"even maps of {settings.length}"

    def open(self, settings: Even) -> Source:
        seen = np.ones((settings.length,) * 2, np.float32)
        seen = np.tril(seen) if settings.sees == "past" else seen
        weights = (seen / seen.sum(axis=1, keepdims=True))[None, None]  # [1, 1, L, L]
        return Source(self.called(settings), (trace_of_maps(weights),), settings)

    def masks(self, settings: Even) -> list[str]:
        return ["only the past"] if settings.sees == "past" else []

    def versions(self, settings: Even) -> dict[str, str]:
        return {"model": "none: even maps", "tokenizer": "none", "generation": NOT_GENERATED}


EVEN = EvenKind()
