"""What is said of a source that is validated: the checks of its layers, those of its own, and the versions to pin."""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError
from typing import TYPE_CHECKING, Any

import numpy as np

from mha_viz import __version__
from mha_viz.analysis.causes import findings
from mha_viz.analysis.layout import module_of
from mha_viz.analysis.validation import CANNOT, FAIL, GROUPS, PASS, QUESTIONS, Check, Subject, checks
from mha_viz.analysis.validation.check import Cannot, Measured, gap, question, relative
from mha_viz.core.attend import attend
from mha_viz.core.batch import Batch
from mha_viz.core.decimals import prose
from mha_viz.core.intervention import Intervention
from mha_viz.core.versions import release
from mha_viz.sources import models
from mha_viz.sources.models import MODELS
from mha_viz.sources.tiny import TOKENS, tiny_layer

if TYPE_CHECKING:
    from torch import nn

    from mha_viz.core.arrays import Dtype
    from mha_viz.core.intervention import Way
    from mha_viz.core.layer import Layer
    from mha_viz.core.trace import Trace
    from mha_viz.sources.base import Source
    from mha_viz.sources.models import ModelName
    from mha_viz.sources.trained import HeldOut


# Query 0 of head 0, to three digits, by what multiplies the tokens: softmax of (2, 3, 3) / √2, and of (2000, 2001000, 1002000) / √2,
# where exp without a shift is ∞.
BY_HAND = {1: (0.198, 0.401, 0.401), 1000: (0.0, 1.0, 0.0)}
PACKAGES = ("torch", "numpy", "safetensors", "streamlit", "plotly", "transformers", "tokenizers", "gguf")


def validate(of: Source, layer: int | None = None) -> Iterator[Check]:
    """A generator of every Check of a source, each done when it is asked for; of one ``layer`` alone where that is a number."""
    yield tiny.ask(Tiny())
    for trace in of.traces if layer is None else of.traces[layer : layer + 1]:
        yield from checks(trace)
    held_out = of.kind.held_out(of.settings)
    if held_out is not None:
        for one in OF_HELD_OUT:
            yield one.ask(held_out)


def by_group(done: Iterable[Check]) -> dict[str, list[Check]]:
    """These Checks by the name of their group, in the order in which they are to be read."""
    groups: dict[str, list[Check]] = {"Held-out data": [], **{group: [] for group in GROUPS}}
    named = {question.name: group for group, questions in GROUPS.items() for question in questions} | {tiny.name: "Agreement"}
    for one in done:
        groups[named.get(one.name, "Held-out data")].append(one)
    return {group: found for group, found in groups.items() if found}


def count(of: Source) -> int:
    """How many Checks ``validate`` makes of one layer of this source."""
    return 1 + len(QUESTIONS) + (0 if of.kind.held_out(of.settings) is None else len(OF_HELD_OUT))


@dataclass(frozen=True)
class Tiny:
    """What runs the tiny case: this app's ``attend`` and PyTorch's ``module``, or what is to be checked in their place."""

    attend: Callable[..., Trace] = attend
    module: Callable[[Layer, Dtype, bool], nn.MultiheadAttention] = module_of
    name: str = "tiny case"


@question("numpy_tiny", "PyTorch and NumPy from scratch agree on a tiny case worked by hand")
def tiny(s: Tiny) -> Measured:
    off = 0.0
    for factor, by_hand in BY_HAND.items():
        layer, batch = tiny_layer(), Batch(factor * np.array(TOKENS, np.float64))
        right = attend(layer, batch, engine="numpy", dtype="float64")
        trace = s.attend(layer, batch, dtype="float64")
        output, weights = Subject(trace, module=s.module).run_module(dtype="float64")
        pairs = ((output, right.output), (weights, right.weights), (trace.output, right.output), (trace.weights, right.weights))
        off = max(off, *(relative(*pair) for pair in pairs), gap(right.weights[0, 0, 0].round(3), by_hand))
    good = (
        "They agree, and the first row of head 0 is 0.198, 0.401, 0.401, as worked by hand; of tokens times 1000 it is 0, 1, 0."
    )
    return Measured(
        "nn.MultiheadAttention and this app's engine against the NumPy reference, E 4, H 2, L 3, output and weights in float64; again "
        "with tokens so large that exp of a score overflows",
        off,
        good,
        "They differ on numbers that can be checked with a pencil.",
        tolerance=1e-12,
    )


@question("held_out_score", "On held-out data the model beats uniform attention")
def held_out_score(s: HeldOut) -> Measured:
    model, found = s.model, s.scored()
    everywhere: dict[int, Way] = {head: "uniform" for head in range(model.num_heads)}
    uniform = Intervention(everywhere)
    beside = s.scored((uniform,) * model.num_layers)
    mean, base = (float(np.mean(list(one.accuracy.values()))) for one in (found, beside))
    said = ", ".join(f"{name} {share:.3f}" for name, share in found.accuracy.items())
    other = ", ".join(f"{name} {share:.3f}" for name, share in beside.accuracy.items())
    losses = [prose(one.loss, ".4g") for one in (found, beside)]
    said = f"Right: {said}, loss {losses[0]}; with uniform attention in every head: {other}, loss {losses[1]}."
    return Measured(
        f"mean share of right answers on {models.HELD_OUT_COUNT} held-out sequences, against the same model with uniform attention "
        f"({base:.3f})",
        mean,
        said,
        said,
        least=base,
    )


@question("held_out_one_head", "On held-out data several heads beat one")
def held_out_one_head(s: HeldOut) -> Measured:
    model = s.model
    single: ModelName = "look-both-ways-1"
    if model.num_heads == 1:
        raise Cannot("The model has one head.")
    if model.task != MODELS[single].task:
        raise Cannot("No model with one head was trained on this task: there is nothing to stand beside it.")
    both = s.scored().accuracy, models.record(single)["final"]["accuracy"]
    mean, base = (float(np.mean(list(one.values()))) for one in both)
    said = f"{mean:.3f} of the answers are right; with one head and as many parameters {base:.3f}."
    return Measured(
        f"mean share of right answers on {models.HELD_OUT_COUNT} held-out sequences, against the model that was trained with one head",
        mean,
        said,
        said,
        least=base,
    )


@question("held_out_disjoint", "The held-out data was never trained on")
def held_out_disjoint(s: HeldOut) -> Measured:
    seen, held = s.training, s.sequences
    if seen is None:
        raise Cannot("How this model was trained is not on record here.")
    both = len({row.tobytes() for row in held} & {row.tobytes() for row in seen})
    return Measured(
        f"{len(held):,} held-out sequences among the {len(seen):,} that training drew, drawn again from its seed",
        both,
        "None of them is among them.",
        "Sequences were trained on and scored on.",
        tolerance=0,
    )


OF_HELD_OUT = (held_out_score, held_out_one_head, held_out_disjoint)


def versions(of: Source) -> dict[str, str]:
    """What to pin, by name: Python, releases of packages, and the model, tokenizer and generation settings where there are any.

    "torch_build" is the build of that release that ran, which decides the last bit.
    """
    import torch

    found = {"python": platform.python_version(), "platform": platform.platform(), "mha_viz": __version__}
    for package in PACKAGES:
        try:
            found[package] = release(package)
        except PackageNotFoundError:
            continue
    return found | {"torch_build": torch.__version__} | of.kind.versions(of.settings)


def summary(done: Sequence[Check]) -> str:
    """How many of these Checks pass, fail and cannot run, in a sentence."""
    counts = {verdict: sum(one.verdict == verdict for one in done) for verdict in (PASS, FAIL, CANNOT)}
    seconds = sum(one.seconds for one in done)
    return f"{counts[PASS]} pass, {counts[FAIL]} fail, {counts[CANNOT]} cannot run and count as neither, in {prose(seconds, '.2g')} s."


def report(of: Source, done: Iterable[Check]) -> dict[str, Any]:
    """{"of": …, "checks": […], "notes": […], "findings": […], "versions": {…}} as JSON takes it: a figure that is no finite number is
    text."""
    return {
        "of": of.name,
        "checks": [as_json(one) for one in done],
        "notes": list(of.notes),
        "findings": [{"of": name, "sentence": sentence} for name, sentence in found(of)],
        "versions": versions(of),
    }


def found(of: Source) -> list[tuple[str, str]]:
    """(the name of the layer, a sentence) for everything odd about a layer of this source that the pages say beside its picture."""
    return [(trace.name, finding.sentence) for trace in of.traces for finding in findings(trace, sizes_chosen=of.kind.seeded)]


def as_json(check: Check) -> dict[str, Any]:
    return {name: _plain(value) for name, value in vars(check).items()}


def _plain(value: object) -> Any:
    """A value as JSON takes it: JSON has no NaN and no infinite number."""
    if isinstance(value, tuple):
        return [_plain(one) for one in value]
    return str(value) if isinstance(value, float) and not np.isfinite(value) else value
