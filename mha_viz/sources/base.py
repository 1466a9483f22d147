"""Where attention comes from: what every kind of source can do, and SOURCES, the registry of the kinds that there are.

A new kind is one module: a frozen dataclass of ruled fields, and an instance of a subclass of ``Kind``, which ``mha_viz.sources`` lists.
A subclass that leaves a needed piece out cannot be made an instance.
The sidebar, addresses, settings files, the command line, captions and checks know it from then on.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar

from mha_viz.core.intervention import changed
from mha_viz.core.rules import Wrong
from mha_viz.settings import to_address
from mha_viz.settings.display import DISPLAYED, owners
from mha_viz.settings.interventions import read_interventions
from mha_viz.settings.rules import Ruled

if TYPE_CHECKING:
    from mha_viz.core.trace import Trace
    from mha_viz.recording import Cause
    from mha_viz.settings import View
    from mha_viz.sources.trained import HeldOut

NOTHING: Mapping[str, Any] = MappingProxyType({})
NOT_GENERATED = "none: nothing is generated here"  # what a kind says of the settings of generation where it has none

S = TypeVar("S", bound=Ruled)
Curves: TypeAlias = tuple[list[int], dict[str, list[float]], int]  # (steps, values by name, the step that is looked at)


class Kind(ABC, Generic[S]):
    """A kind of source: how it is named, which settings it has, and how they are opened.

    ``name`` is its spelling in addresses and settings files, ``title`` its place in the choice of a source. ``settings`` is a frozen
    dataclass of ruled fields. ``fixed`` are the fields that tell this kind from others with the same dataclass, and ``first`` what
    others hold at first where that is not their default. ``stand_ins`` are fields that a switch puts aside, with what their
    widgets hold at first, and ``spellings`` functions from the value of a field to the text that is typed.

    ``in_address`` says whether the settings alone open it again; those of a file name it and do not hold it. ``seeded`` says whether a
    short program draws the same weights and tokens from a seed.

    An address spells the source, its settings and a Display: no field may have a name of the others'. That is checked where the kind is
    defined, with TypeError.
    """

    name: str = ""
    title: str = ""
    settings: type[S]
    fixed: Mapping[str, object] = NOTHING
    first: Mapping[str, object] = NOTHING
    stand_ins: Mapping[str, object] = NOTHING
    spellings: Mapping[str, Callable[[str], str]] = NOTHING
    in_address: bool = True
    seeded: bool = False

    def __init_subclass__(cls) -> None:
        settings = getattr(cls, "settings", None)
        if settings is not None and "source" in owners(settings, *DISPLAYED):
            raise TypeError(f"{settings.__name__} has a field source, which names the kind in an address.")

    @abstractmethod
    def open(self, settings: S) -> Source:
        """The Source of these settings. Raises Wrong where it cannot be had."""

    @abstractmethod
    def called(self, settings: S) -> str:
        """What the source of these settings is called."""

    def made(self, **fields: object) -> S:
        """The settings of these ``fields``, the others as they are at first. Raises Wrong where they break a rule."""
        return self.settings(**{**self.fixed, **self.first, **fields})

    @property
    def spelling(self) -> dict[str, str]:
        """What an address says besides the fields, by name: the source, unless its own fields tell the kind."""
        return {} if self.fixed else {"source": self.name}

    def is_of(self, settings: object) -> bool:
        """Whether these settings are of this kind."""
        return type(settings) is self.settings and self.fixed.items() <= vars(settings).items()

    def peak(self, settings: S) -> int:
        """Bytes that opening these settings takes at most, 0 where that is little."""
        return 0

    def among(self, fields: Mapping[str, object]) -> AnyKind:
        """The Kind of the same dataclass that these ``fields`` tell, this one where they tell none."""
        alike = (kind for kind in SOURCES.values() if kind.settings is self.settings and kind.fixed.items() <= fields.items())
        return self if not self.fixed or self.fixed.items() <= fields.items() else next(alike, self)

    def unchanged(self, settings: S) -> S:
        """The settings without the interventions that they hold."""
        return settings

    def bare(self, settings: S) -> S:
        """The settings without interventions, masks and padding, for experiments that bring their own. Raises Wrong where the layer is
        too large for them."""
        return self.unchanged(settings)

    def masks(self, settings: S) -> list[str]:
        """What these settings hide from the queries, a few words each."""
        return []

    def to_decode(self, settings: S) -> tuple[S, dict[str, int]] | None:
        """(the settings under which tokens are decoded one by one, what else decoding has to be told), None where the layer is decoded as
        it is. Raises Wrong where these settings cannot be decoded."""
        return None

    def curves(self, settings: S) -> Curves | None:
        """(steps, values by name, the step that is looked at) of the training that made the source, None where none is on record."""
        return None

    def held_out(self, settings: S) -> HeldOut | None:
        """What scores the model on sequences that it was not trained on, None where there are none."""
        return None

    @abstractmethod
    def versions(self, settings: S) -> dict[str, str]:
        """What to pin of the model, its tokenizer and its generation, a text each by these names."""


AnyKind: TypeAlias = Kind[Any]  # one of SOURCES: which settings are its own is told as the program runs
SOURCES: dict[str, AnyKind] = {}  # by name, the default first: ``mha_viz.sources`` lists them


@dataclass(frozen=True, eq=False)
class Source:
    """What is looked at: its ``name``, its layers as ``traces``, the ``settings`` that it was made from, None for what was recorded,
    ``notes``, sentences without which it should not be read, and the Cause of what is not finite in it, None where that is not known."""

    name: str
    traces: tuple[Trace, ...]
    settings: Ruled | None = None
    notes: tuple[str, ...] = ()
    cause: Cause | None = None

    @property
    def kind(self) -> AnyKind:
        """The Kind that it is of."""
        return kind_of(self.settings)

    @property
    def address(self) -> dict[str, str] | None:
        """Its settings as the query part of an address, by name; None where an address does not hold what is looked at."""
        return address_of(self.settings) if self.settings is not None and self.kind.in_address else None


def kind_of(settings: object) -> AnyKind:
    """The Kind of these settings; what has none comes from a file. Raises Wrong for anything else."""
    if settings is None:
        return next(kind for kind in SOURCES.values() if not kind.in_address)
    found = next((kind for kind in SOURCES.values() if kind.is_of(settings)), None)
    if found is None:
        names = ", ".join(dict.fromkeys(kind.settings.__name__ for kind in SOURCES.values()))
        raise Wrong("settings", type(settings).__name__, f"must be settings of a source: {names}.")
    return found


def kind_named(name: object) -> AnyKind:
    """The Kind of this name, the first for None. Raises Wrong for a name that none has, and for a file: no address or settings hold it."""
    if name is None:
        return next(iter(SOURCES.values()))
    kind = SOURCES.get(name) if isinstance(name, str) else None
    if kind is None:
        right = [kind.name for kind in SOURCES.values() if kind.in_address]
        raise Wrong("source", name, f"must be one of {', '.join(right)}.", [{"source": other} for other in right])
    return kind


def address_of(settings: Ruled) -> dict[str, str]:
    """The query part of the address that opens a source of these settings, by name."""
    return kind_of(settings).spelling | to_address(type(settings), **vars(settings))


def layer_of(of: Source, layer: int) -> Trace:
    """The Trace of one ``layer``; raises Wrong where the Source has none of that number."""
    count = len(of.traces)
    if not count:
        raise Wrong(
            "attention", of.name, "holds no attention: nothing was recorded, or the block that records has not ended yet."
        )
    if layer >= count:
        there = "is 1, layer 0" if count == 1 else f"are {count}, from 0 to {count - 1}"
        raise Wrong("layer", layer, f"points to no layer of {of.name}: there {there}.", [{"layer": count - 1}])
    return of.traces[layer]


def changed_by(of: Source, view: View) -> Source:
    """The same Source with what this View changes in one layer of it."""
    asked = read_interventions(view.what_if)
    if view.layer >= len(asked) or view.layer >= len(of.traces):
        return of
    traces = list(of.traces)
    traces[view.layer] = changed(traces[view.layer], asked[view.layer])
    return replace(of, traces=tuple(traces))


def digest(path: str | Path) -> str:
    """The first 16 digits of a file's SHA-256."""
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:16]
