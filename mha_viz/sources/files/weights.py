"""Weights: the attention layers in a state dict, run on random input, on a person's words or on a person's input."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal, TypeAlias

import numpy as np

from mha_viz.core.layer import check_shapes
from mha_viz.core.rules import Wrong
from mha_viz.recording import Recording
from mha_viz.sources.files.checks import check_weights, tell
from mha_viz.sources.files.found import Question
from mha_viz.sources.files.layers import bias_lengths, trace_of_layer
from mha_viz.sources.files.recipes import IN_OUT, ORDERS, OUT_IN, PER_HEAD, convert, equal_thirds, head_counts, layouts
from mha_viz.sources.files.sites import MULTIHEAD, find_sites
from mha_viz.stored.stored import FLOATING, LARGEST, check_count

if TYPE_CHECKING:
    from mha_viz.core.arrays import Numbers
    from mha_viz.sources.files.found import Answers, AnyQuestion, TokenLists
    from mha_viz.sources.files.recipes import Shapes
    from mha_viz.sources.files.sites import Site
    from mha_viz.stored.stored import Stored

ALL = "all"
TOLD_BY = 4  # layers whose numbers are asked about a layout: more say the same
TOGETHER = LARGEST // 4  # bytes of weights that are opened at once: a layer is held up to three times while it is run
USUAL_HEAD = 64
NO_ANSWERS: Answers = {}
How: TypeAlias = tuple[str, str, int]  # a reading of weights: their layout, the order of q, k and v, num_heads


@dataclass(frozen=True, eq=False)
class Weights:
    """The content of a file with attention layers: ``sites`` by name, ``tensors`` by the names in the file."""

    tensors: Mapping[str, Stored]
    sites: dict[str, Site]
    left: tuple[str, ...]
    _layouts: dict[str, tuple[str, ...]] = field(default_factory=dict, repr=False)  # by the name of a site, once computed
    _told: dict[tuple[str, ...], str] = field(default_factory=dict, repr=False)  # by what was asked, and of which sites
    kind: ClassVar[Literal["weights"]] = "weights"

    @property
    def holds(self) -> tuple[str, ...]:
        """What the layers are, and what their numbers say by themselves (of a large file, when its layers are opened)."""
        kinds: dict[tuple[str, str], list[str]] = {}
        for site in self.sites.values():
            kinds.setdefault((site.recipe, self._sizes(site)), []).append(site.name)
        said = [f"{_layers(names)}: {recipe}, {sizes}." for (recipe, sizes), names in kinds.items()]
        if self._bytes(self.sites.values()) <= TOGETHER:
            said += self._checks
        return (*said, *self.left)

    @cached_property
    def _checks(self) -> list[str]:
        return self._checked(self.sites.values())

    def ask(self, answers: Mapping[str, object]) -> tuple[AnyQuestion, ...]:
        asked: list[AnyQuestion] = []
        layers = ALL
        if len(self.sites) > 1:
            together = self._bytes(self.sites.values()) <= TOGETHER and bool(self._heads(self.sites.values()))
            choices = (*((ALL,) if together else ()), *self.sites)
            which = Question("layers", "Which attention layers?", choices, choices[0])
            asked.append(which)
            layers = which.answered(answers)
        chosen = self.chosen(layers)
        layout: Answers = {}
        for question in self.ask_layout(chosen):
            asked.append(question)
            layout["layout"] = question.answered(answers)
        packed = [site for site in chosen if equal_thirds(site, self.shapes(site), self._layout(site, layout))]
        if packed:
            guess = PER_HEAD if any("query_key_value" in name for name in packed[0].names.values()) else ORDERS[0]
            text = "In which order does the packed matrix hold q, k and v? Its shape cannot tell. GPT-NeoX and BLOOM go head by head."
            asked.append(Question("packed", text, (*ORDERS, PER_HEAD), guess, self._tell_order(packed, layout)))
        heads = self._heads(chosen, layout)
        if not heads:
            raise Wrong("layers", answers.get("layers", ALL), "have no num_heads in common: open one of them.")
        if len(heads) > 1:
            asked.append(self._ask_heads(heads))
        return (
            *asked,
            Question(
                "causal",
                "Are later keys hidden (causal)? Weights do not say.",
                (False, True),
                any(site.causal for site in chosen),
            ),
            Question("seq_len", "How many random tokens go in, where no tokens and no input are given?", range(1, 4097), 20),
            Question("seed", "Which seed draws them?", range(2**31), 7),
        )

    def open(
        self,
        name: str,
        answers: Answers,
        tokens: TokenLists | None,
        key_tokens: TokenLists | None,
        query: Numbers | None = None,
    ) -> Recording:
        chosen = self.chosen(answers.get("layers", ALL))
        self._check_size(chosen)
        alone: Answers = {"num_heads": self._heads(chosen, answers)[0]}  # where there is one choice alone, nobody was asked
        given: Answers = {**alone, **answers}
        traces = tuple(
            trace_of_layer(
                site, self.arrays(site), self._layout(site, answers), given, Path(name).stem, tokens, key_tokens, query
            )
            for site in chosen
        )
        return Recording(traces, tuple(self._notes(chosen, given, tokens, query)))

    def chosen(self, layers: str) -> list[Site]:
        return list(self.sites.values()) if layers == ALL else [self.sites[layers]]

    def shapes(self, site: Site) -> dict[str, tuple[int, ...]]:
        return {role: self.tensors[name].shape for role, name in site.names.items()}

    def arrays(self, site: Site) -> dict[str, np.ndarray]:
        """The layer's arrays by role."""
        return {role: self.tensors[name].read() for role, name in site.names.items()}

    def layouts(self, site: Site) -> tuple[str, ...]:
        if site.name not in self._layouts:
            self._layouts[site.name] = layouts(site, self.shapes(site))
        return self._layouts[site.name]

    def _layout(self, site: Site, answers: Answers) -> str:
        """The layout that was answered, where this layer's shapes allow it; else the one that they tell."""
        fitting = self.layouts(site)
        return answers["layout"] if answers.get("layout") in fitting else fitting[0]

    def ask_layout(self, sites: Sequence[Site]) -> list[Question[str]]:
        """[the Question of the layout], [] where shapes or names tell it."""
        open_ = [site for site in sites if len(self.layouts(site)) > 1]
        if not open_:
            return []
        text = (
            f"How are the matrices kept? The shapes fit {OUT_IN} (PyTorch's nn.Linear, y = x Wᵀ + b) and {IN_OUT} (Flax, Keras, "
            "GPT-2's Conv1D, y = x W + b)."
        )
        return [Question("layout", text, (OUT_IN, IN_OUT), self.layouts(open_[0])[0], self._tell_layout(open_))]

    def _heads(self, sites: Iterable[Site], answers: Answers = NO_ANSWERS) -> list[int]:
        counts = [set(head_counts(site, self.shapes(site), self._layout(site, answers))) for site in sites]
        return sorted(set.intersection(*counts))

    def _ask_heads(self, heads: Sequence[int]) -> Question[int]:
        width = max(heads)
        guess = width // USUAL_HEAD if width % USUAL_HEAD == 0 and width > USUAL_HEAD and width // USUAL_HEAD in heads else None
        text = f"How many heads? A state_dict does not say; num_heads divides {width}."
        check = "Nothing in the weights tells. A known output for an input does."
        if guess:
            check += f" The guess is heads of {USUAL_HEAD}, as most models have."
        return Question("num_heads", text, tuple(heads), guess, check)

    def _tell_layout(self, sites: Sequence[Site]) -> str:
        return self._tell("layout", sites, lambda site: {layout: (layout, ORDERS[0], 1) for layout in self.layouts(site)})

    def _tell_order(self, sites: Sequence[Site], answers: Answers) -> str:
        def readings(site: Site) -> dict[str, How]:
            kept = self._layout(site, answers)
            orders = {f"{order}": (kept, order, 1) for order in ORDERS}
            heads = head_counts(site, self.shapes(site), kept)
            return orders | {f"{PER_HEAD}, {H} heads": (kept, PER_HEAD, H) for H in heads if 1 < H < max(heads)}

        return self._tell(f"order {answers}", sites, readings)

    def _tell(self, what: str, sites: Sequence[Site], readings: Callable[[Site], dict[str, How]]) -> str:
        some = sites[:: math.ceil(len(sites) / TOLD_BY)]
        key = what, *(site.name for site in some)
        if key not in self._told:
            self._check_size(some)
            layers = []
            for site in some:
                arrays = self.arrays(site)
                layers.append({name: convert(site, arrays, *how) for name, how in readings(site).items()})
            self._told[key] = tell(layers)
        return self._told[key]

    def _sizes(self, site: Site) -> str:
        return ", ".join(
            f"{role.removesuffix('.weight')} {list(shape)}" for role, shape in self.shapes(site).items() if len(shape) > 1
        )

    def _bytes(self, sites: Iterable[Site]) -> int:
        return sum(4 * math.prod(self.tensors[name].shape) for site in sites for name in site.names.values())

    def _check_size(self, sites: Collection[Site]) -> None:
        if self._bytes(sites) > TOGETHER:
            raise Wrong(
                "layers", len(sites), f"would take {self._bytes(sites):,} bytes; at most {TOGETHER:,} are opened at once."
            )

    def _checked(self, sites: Iterable[Site], answers: Answers = NO_ANSWERS) -> list[str]:
        """Sentences about the weights of these layers; what is true of several is said once."""
        said: dict[str, list[str]] = {}
        for site in sites:
            how = self._layout(site, answers), answers.get("packed", ORDERS[0]), answers.get("num_heads", 1)
            projections = convert(site, self.arrays(site), *how)
            for sentence in check_weights(projections, site.recipe == MULTIHEAD):
                said.setdefault(sentence, []).append(site.name)
        return [f"{_layers(names)}: {sentence}" if any(names) else sentence for sentence, names in said.items()]

    def _notes(
        self, chosen: Sequence[Site], answers: Answers, tokens: TokenLists | None, query: Numbers | None
    ) -> Iterator[str]:
        if query is not None:
            yield "Your weights, your input."
        elif tokens is not None:
            yield "Your weights; each token is a random vector, the same for the same text."
        else:
            yield f"Your weights, random input: {answers['seq_len']} tokens, drawn with seed {answers['seed']}."
        yield from self._checked(chosen, answers)
        for site in chosen:
            if site.unused:
                names = ", ".join(site.unused[:6]) + ("…" if len(site.unused) > 6 else "")
                yield f"{site.name}: {names} beside it {'is' if len(site.unused) == 1 else 'are'} not used."
        if any(site.recipe != MULTIHEAD for site in chosen):
            yield "Where the model rotates q and k by position, or adds a bias by position, that is missing here: weights do not hold it."


def look_at_weights(file: str, tensors: Mapping[str, Stored]) -> Weights | None:
    """The Weights among the Stored ``tensors`` of a ``file``, None where no name is that of an attention layer.

    Raises Wrong where there are such names and no layer's shapes fit each other, or too many layers.
    """
    sites: dict[str, Site] = {}
    left: list[str] = []
    first: Wrong | None = None
    named = find_sites(tensors)
    check_count(file, len(named), "attention layers", "Save the state_dict of those to look at.")
    for site in named:
        shapes = {role: tensors[name].shape for role, name in site.names.items()}
        try:
            _check_types(site, tensors)
            _check_own(shapes) if site.recipe == MULTIHEAD else layouts(site, shapes)
        except Wrong as wrong:
            left.append(f"Left out: {wrong}")
            first = first or wrong
        else:
            sites[site.name] = site
    if first and not sites:
        raise first
    return Weights(tensors, sites, tuple(left)) if sites else None


def _check_types(site: Site, tensors: Mapping[str, Stored]) -> None:
    for name in site.names.values():
        if not tensors[name].floating:
            raise Wrong(
                name,
                tensors[name].dtype,
                f"must be of one of the types {', '.join(FLOATING)}: weights are numbers as they are.",
            )


def _check_own(shapes: Shapes) -> None:
    """Raises Wrong where nn.MultiheadAttention would not take these shapes."""
    if len(shapes.get("out_proj.weight", ())) == 2:
        shapes = {**{name: (length,) for name, length in bias_lengths(shapes).items()}, **shapes}
    check_shapes(shapes)


def _layers(names: Sequence[str]) -> str:
    """ "a", "a and 11 more"."""
    named = names[0] or "One layer"
    return named if len(names) == 1 else f"{named} and {len(names) - 1} more"
