"""How a program to paste comes to the weights: it computes the layer of Explore anew, or reads what was saved of any other source."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import Any, Generic, TypeVar
from urllib.parse import urlencode

import numpy as np

from mha_viz.core.intervention import Intervention
from mha_viz.core.trace import Missing
from mha_viz.export.beginning import Language, imports, start
from mha_viz.export.code import SOFTMAX, NumPyProgram, Program, TorchProgram
from mha_viz.export.words import address_of
from mha_viz.settings import Settings, View, to_address
from mha_viz.settings.interventions import read_interventions
from mha_viz.views.shown import Shown

FILE = "attention.npz"
P = TypeVar("P", bound=Program)


@dataclass(frozen=True)
class Words:
    """What the two languages call differently."""

    xp: str
    dim: str
    keepdim: str


WORDS: dict[Language, Words] = {"numpy": Words("np", "axis", "keepdims"), "torch": Words("torch", "dim", "keepdim")}


@dataclass(frozen=True)
class Need:
    """What a program leaves behind beside ``weights`` [N, H, L, S].

    ``values`` V [N, H, S, D]; ``hidden``, True where a query may not attend, of a shape that broadcasts to that of the weights;
    ``probabilities`` [N, H, L, S] before dropout.
    """

    values: bool
    hidden: bool
    probabilities: bool


class OfSettings(ABC, Generic[P]):
    """The layer of Explore, with what is hidden in it and its temperature: what both languages say of it.

    ``computes_output`` is True where ``lines`` leave the output of the layer behind; ``hides`` and ``drops`` say whether any key is
    hidden and any weight dropped; ``out`` are the expressions of the output projection's weight and bias, "" where there is none.
    """

    language: Language
    program: type[P]  # the steps in this language
    projection: tuple[str, str]
    computes_output: bool
    knows_values = True
    heading: tuple[str, ...] = ()
    out: tuple[str, str] | None
    maps_alone = False

    def __init__(self, shown: Shown) -> None:
        if not isinstance(shown.source.settings, Settings):
            raise TypeError(f"No seed draws {shown.source.name}.")
        self.settings = shown.source.settings
        asked, layer = read_interventions(shown.view.what_if), shown.view.layer
        self.change = asked[layer] if layer < len(asked) else Intervention()
        self.steps = self.program(self.settings, self.change.hidden_keys)
        self.drops, (weight, bias) = self.steps.drops, self.projection
        self.out = weight, bias if self.settings.bias else ""
        typed = self.steps.typed if self.steps.adds else None
        self.hides_by_adding = typed is not None and bool(np.isneginf(typed).any())
        self.hides = self.steps.hides or self.hides_by_adding

    @abstractmethod
    def lines(self, need: Need) -> list[str]:
        """Lines that leave ``weights`` behind, and what else there is ``need`` of."""

    @property
    def imports(self) -> list[str]:
        return imports(self.settings, self.language)

    def hidden(self, *parts: str) -> str:
        added = [f"{WORDS[self.language].xp}.isneginf(added)"] * self.hides_by_adding
        return f"hidden = {' | '.join([*parts, *added])}  # True: may not attend"

    def query_padding(self) -> list[str]:
        return self.steps.padding(WORDS[self.language].xp)


class NumPyOfSettings(OfSettings[NumPyProgram]):
    """From scratch."""

    language, program, computes_output = "numpy", NumPyProgram, False
    projection = 'W["out_proj.weight"]', 'W["out_proj.bias"]'

    def lines(self, need: Need) -> list[str]:
        steps, T = self.steps, self.change.temperature
        names = ["input", "sizes", "weights", "query", "keys", "dot", "scale"]
        lines = [*start(self.settings, "numpy"), *(line for name in names for line in steps.lines(name))]
        lines += [f"scores = scores / {T!r}  # what if: another temperature"] * (T != 1)
        lines += steps.mask()
        if need.hidden and self.hides_by_adding:
            lines.append(self.hidden(*["hidden"] * steps.hides))
        lines += [*steps.softmax(), *(steps.dropout() if self.drops else ())]
        return [*lines, *steps.projected_values()]


class TorchOfSettings(OfSettings[TorchProgram]):
    """By ``nn.MultiheadAttention`` itself."""

    language, program, computes_output = "torch", TorchProgram, True
    projection = "attention.out_proj.weight", "attention.out_proj.bias"

    def lines(self, need: Need) -> list[str]:
        steps, T = self.steps, self.change.temperature
        lines = [*start(self.settings, "torch"), *steps.mode()]
        if steps.hides or steps.adds or need.values or T != 1:
            lines += steps.input()
        lines += self.tempered() if T != 1 else []
        lines += [*steps.masks("torch"), *(self.hidden_lines() if need.hidden and self.hides else []), *steps.of_one_kind()]
        if need.probabilities and self.drops:
            lines += ["attention.eval()", *steps.call("_, probabilities"), "attention.train()"]
        lines += steps.call("output, weights")
        return [*lines, *([*steps.sizes(), *steps.weights(), *steps.projected_values()] if need.values else [])]

    def tempered(self) -> list[str]:
        """Every score is divided where its query is."""
        T = self.change.temperature
        rows = "in_proj_weight.data[:E]" if self.steps.packed else "q_proj_weight.data"
        lines = [f"attention.{rows} /= {T!r}  # what if: another temperature, which divides every q · k"]
        return [*lines, *[f"attention.in_proj_bias.data[:E] /= {T!r}"] * self.settings.bias]

    def hidden_lines(self) -> list[str]:
        steps = self.steps
        lines = [self.hidden(*["padding_mask[:, None, None]"] * steps.padded, *["attn_mask"] * steps.pairs)]
        return [*lines, *[f"hidden = F.pad(hidden, (0, {steps.extra}))  # the extra keys are seen"] * bool(steps.extra)]


class OfFile:
    """What was saved of a Trace: q, k, v and the mask, or the maps alone. As ``OfSettings``."""

    computes_output, hides = False, True
    out: tuple[str, str] | None

    def __init__(self, shown: Shown, language: Language) -> None:
        trace = shown.trace.plain
        self.language, self.scale = language, trace.scale
        self.maps_alone = not trace.has("q", "k")
        self.drops = trace.has("keep_scale") and trace.keep_scale is not None
        self.adds = trace.has("mask_bias") and trace.mask_bias is not None
        self.knows_values = trace.has("q", "k", "v")
        self.finite = not trace.nonfinite.any()
        weight, bias = trace.out_proj or (None, None)
        self.out = None if weight is None else (self.read("out_weight"), "" if bias is None else self.read("out_bias"))
        self.heading = (f"# {FILE}, in the folder where this is run, is", f"# {how_it_is_had(shown, self.maps_alone)}")
        self.imports = ["import numpy as np", *["import torch"] * (language == "torch")]

    def read(self, name: str) -> str:
        return f'file["{name}"]' if self.language == "numpy" else f'torch.tensor(file["{name}"])'

    def query_padding(self) -> list[str]:
        return [f"query_padding = {self.read('query_padding')}  # [N, L]"]

    def lines(self, need: Need) -> list[str]:
        lines = [f'file = np.load("{FILE}")']
        if self.maps_alone:
            lines += [f"weights = {self.read('weights')}  # [N, H, L, S]", *[f"hidden = {self.read('mask')}"] * need.hidden]
            return lines
        if self.scale is None:
            raise Missing("Scores are made of q · k and a scale, and the source does not know it.")
        names = ("q", "k", *["v"] * self.knows_values, "mask")
        left = ", ".join("hidden" if name == "mask" else name.upper() for name in names)
        read = "file[name]" if self.language == "numpy" else "torch.tensor(file[name])"
        quoted = ", ".join(f'"{name}"' for name in names)
        lines += [
            f"{left} = ({read} for name in ({quoted}))  # [N, H, L or S, D]; [N, H, L, S], True: may not attend",
            "N, H, L, _ = Q.shape",
            f"scores = Q @ K.swapaxes(-1, -2) * {float(self.scale)!r}  # [N, H, L, S]",
            f"masked = {self.masked(WORDS[self.language])}",
            *SOFTMAX[self.language],
        ]
        dropped = f" * {self.read('keep_scale')}  # dropout's draw" if self.drops else ""
        return [*lines, f"weights = probabilities{dropped}"]

    def masked(self, words: Words) -> str:
        """The expression of the scores with −∞ where hidden; where one is NaN it is added, as the engine does: a mask hides no NaN."""
        scores = f"scores{' + ' + self.read('mask_bias') if self.adds else ''}"
        if self.finite:
            return f"{words.xp}.where(hidden, -{words.xp}.inf, {scores})"
        return f"{scores} + {words.xp}.where(hidden, -{words.xp}.inf, 0.0)  # NaN − ∞ is NaN"


Origin = OfSettings[Any] | OfFile


def how_it_is_had(shown: Shown, maps_alone: bool) -> str:
    """The command that saves what is shown; maps alone are saved as they were before heads were put off."""
    view = View(layer=shown.view.layer, what_if="" if maps_alone else shown.view.what_if)
    name = " ".join(shown.source.name.split())  # a comment ends where its line does
    if shown.source.kind.in_address:
        told = f'--address "{address_of(type(shown)(shown.source, shown.trace, view))}"'
    elif Path(name).suffix[1:].isalnum():  # the name of a file, and not the title of a lesson
        address = urlencode(to_address(**vars(view)))
        told = f"--recording {quote(name)}" + (f' --address "?{address}"' if address else "")
    else:
        return f"{name}, saved as NPZ"
    return f"written by: python -m mha_viz export {told} --out {FILE}"
