"""What head counts do to quality: a shipped task trained with each at one ``embed_dim`` and one budget, from several seeds."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from mha_viz.core.intervention import Intervention
from mha_viz.core.json_text import parse_json
from mha_viz.core.rules import Wrong, head_dim, one_of, whole
from mha_viz.settings.profile import Profile
from mha_viz.settings.rules import Ruled, choice, number, ruled, several
from mha_viz.settings.spelling import from_values, spell
from mha_viz.sources.models import DATA, HELD_OUT_COUNT, MODELS, Parameters, score
from mha_viz.sources.tasks import TASKS
from mha_viz.studies.profile_results import (
    LARGEST,
    Results,
    as_json,
    machine,
    machine_of,
    of_values,
    reading_results,
    used_by_others,
)
from mha_viz.studies.profiling import measure
from mha_viz.studies.training import recipe_of, rounded, train_model

if TYPE_CHECKING:
    from pathlib import Path

    from mha_viz.core.intervention import Way
    from mha_viz.sources.models import Model, ModelName
    from mha_viz.studies.profiling import Event
    from mha_viz.studies.training import Progress, Recipe


BASE: dict[str, ModelName] = {
    "look-both-ways": "look-both-ways-2",
    "induction": "induction",
    "reverse-or-shift": "reverse-or-shift",
}  # sizes and recipe
TRAINING_SHARE = 0.9  # of the time
ASKED = {
    "look-both-ways": "A position must report the token before and the token after it.",
    "induction": "A letter that was there before must be followed by what followed it last time.",
    "reverse-or-shift": "The first token says what to do with the others: read them in reverse, or each the next one's.",
}
HEADS, SEEDS = (1, 2, 4, 8, 16, 32), (1, 2, 3, 4, 5)


@dataclass(frozen=True)
class Trial(Ruled):
    """Which ``task`` is trained, with which head counts, from which ``seeds``, for how many ``steps``. ``embed_dim``, layers and all else
    of the recipe are those of the shipped model of the task, so that every head count has as many parameters and the same sequences."""

    task: str = ruled("look-both-ways", choice(*BASE))
    num_heads: tuple[int, ...] = ruled(HEADS, several(1, 1024, HEADS))
    seeds: tuple[int, ...] = ruled(SEEDS, several(0, 2**31, SEEDS))
    steps: int = ruled(800, number(1))

    def check_together(self) -> None:
        for heads in self.num_heads:
            try:
                head_dim(self.model.embed_dim, heads)
            except Wrong as wrong:
                fitting = tuple(one for one in self.num_heads if self.model.embed_dim % one == 0)
                raise Wrong("num_heads", self.num_heads, wrong.rule, [{"num_heads": fitting or HEADS}]) from None

    @property
    def model(self) -> Model:
        return MODELS[BASE[self.task]]

    def recipe(self, seed: int) -> Recipe:
        """The Recipe of one training: only what it ends with is kept."""
        return replace(recipe_of(BASE[self.task], seed, self.steps), snapshots=(self.steps,))

    @property
    def profile(self) -> Profile:
        """What is measured of one layer at these head counts: the batches that it was trained on."""
        recipe, task = self.recipe(self.seeds[0]), TASKS[self.task]
        mask: Literal["causal", "none"] = "causal" if task.causal else "none"
        return Profile(self.model.embed_dim, self.num_heads, (task.length,), recipe.batch_size, mask=mask, repeats=25)


def short(task: str) -> Trial:
    """A Trial of this task that takes seconds where the shipped one takes minutes."""
    return Trial(task, num_heads=(1, 2, 8, 32), seeds=(1,), steps=200)


@dataclass(frozen=True)
class Outcome:
    """What one training came to on held-out sequences: mean ``accuracy`` of all answers, 0 to 1, and ``loss`` in nats; ``uniform``: the
    accuracy of the same weights with attention that is uniform in every head."""

    num_heads: int
    seed: int
    accuracy: float
    loss: float
    uniform: float


@dataclass(frozen=True)
class Step:
    """Where a Trial stands: ``done`` of 0 to 1, and the Outcome of a training that ends here."""

    done: float
    outcome: Outcome | None = None


def try_out(trial: Trial) -> Iterator[Step]:
    """Train every seed with every head count, seed by seed, so that a stop leaves all head counts with as many seeds, or one more."""
    count, number = len(trial.seeds) * len(trial.num_heads), 0
    for seed in trial.seeds:
        for heads in trial.num_heads:
            model = replace(trial.model, num_heads=heads)
            for progress in train_model(model, trial.recipe(seed)):
                yield Step((number + progress.step / progress.steps) / count)
            number += 1
            yield Step(number / count, outcome_of(model, seed, progress))


def outcome_of(model: Model, seed: int, progress: Progress) -> Outcome:
    """What a training came to, by the Progress after its last step."""
    assert progress.state is not None and progress.scores is not None  # the recipe keeps the last step
    everywhere: dict[int, Way] = {head: "uniform" for head in range(model.num_heads)}
    uniform = Intervention(everywhere)
    beside = score(model, Parameters.of(model, progress.state), (uniform,) * model.num_layers)
    mean, base = (float(np.mean(list(one.accuracy.values()))) for one in (progress.scores, beside))
    return Outcome(model.num_heads, seed, mean, progress.scores.loss, base)


def study(trial: Trial) -> Iterator[Step | Event]:
    """What ``try_out`` gives, and then what ``measure`` gives of the Trial's Profile."""
    yield from try_out(trial)
    yield from measure(trial.profile)


class Quality:
    """The Outcomes of a ``trial`` so far, and the Results of its Profile, None before that is measured."""

    def __init__(self, trial: Trial, outcomes: Iterable[Outcome] = (), results: Results | None = None) -> None:
        self.trial, self.outcomes, self.results, self.machine, self.trained = trial, list(outcomes), results, machine(), 0.0

    def add(self, event: Step | Event) -> None:
        """Take in what ``study`` gives."""
        if isinstance(event, Step):
            self.trained = event.done
            self.outcomes += [event.outcome] if event.outcome else []
            return
        if self.results is None:
            self.results = Results(self.trial.profile, used_by_others())
        self.results.add(event)

    @property
    def share(self) -> float:
        """How much is done, 0 to 1: nearly all of it is training."""
        return TRAINING_SHARE * self.trained + (1 - TRAINING_SHARE) * (self.results.share if self.results else 0)

    def of(self, name: str) -> dict[int, list[float]]:
        """{heads: values of every seed} of a field of Outcome, heads ascending."""
        return {
            heads: found
            for heads in self.trial.num_heads
            if (found := [getattr(one, name) for one in self.outcomes if one.num_heads == heads])
        }

    @property
    def summary(self) -> str:
        """In words, what head counts came to, beside uniform attention."""
        if not self.outcomes:
            return "No training is done yet."
        told = ", ".join(
            f"{heads} head{'' if heads == 1 else 's'} {statistics.median(values):.3f}"
            for heads, values in self.of("accuracy").items()
        )
        uniform = statistics.median(one.uniform for one in self.outcomes)
        return f"Right answers on held-out sequences: {told}; with uniform attention in their place {uniform:.3f}."


def quality_json(quality: Quality) -> str:
    """A Quality as a JSON text, with its recipe, that ``read_quality`` reads."""
    trial, results = quality.trial, quality.results
    about = {
        "trial": asdict(trial),
        "command": command_of(trial),
        "recipe": asdict(trial.recipe(trial.seeds[0])),
        "sizes": {name: value for name, value in vars(trial.model).items() if name not in ("title", "shows", "num_heads")},
        "held_out": HELD_OUT_COUNT,
        "machine": quality.machine,
        "summary": quality.summary,
    }
    lines = [f'"{name}": {json.dumps(rounded(value), ensure_ascii=False)}' for name, value in about.items()]
    outcomes = ",\n  ".join(json.dumps(rounded(asdict(one))) for one in quality.outcomes)
    profile = "null" if results is None else json.dumps(json.loads(as_json(results)))
    return "{\n " + ",\n ".join([*lines, f'"outcomes": [\n  {outcomes}\n ]', f'"profile": {profile}']) + "\n}\n"


def command_of(trial: Trial) -> str:
    """What trains and measures the same again."""
    return f"python -m mha_viz quality {trial.task} --num-heads {spell(trial.num_heads)} --seeds {spell(trial.seeds)} --steps {trial.steps}"


def read_quality(text: str) -> Quality:
    """The Quality that ``quality_json`` wrote. Raises Wrong where it did not, or where a value in it breaks a rule."""
    return _quality(parse_json("results", text))


def _quality(told: Any) -> Quality:
    with reading_results(told, "quality"):
        trial = from_values(told["trial"], Trial)
        results = None if told["profile"] is None else of_values(told["profile"])
        quality = Quality(trial, [_outcome(one) for one in told["outcomes"]], results)
        quality.machine = machine_of(told)
    return quality


def _outcome(told: Any) -> Outcome:
    one = Outcome(**told)
    shares = one.accuracy, one.uniform
    whole("num_heads", one.num_heads, 1), whole("seed", one.seed, 0)
    if not (all(0 <= share <= 1 for share in shares) and 0 <= one.loss <= LARGEST):
        raise ValueError(f"{told} is no outcome")
    return one


def read_measured(text: str) -> Quality | Results:
    """The Quality or the Results of a Profile that a file holds. Raises Wrong where it holds neither."""
    told = parse_json("results", text)
    return _quality(told) if isinstance(told, dict) and "trial" in told else of_values(told)


def shipped(task: str) -> Quality | None:
    """The Quality that comes with the app; None where there is none of this task."""
    path = path_of(one_of("task", task, tuple(BASE)))
    return read_quality(path.read_text()) if path.is_file() else None


def shipped_tasks() -> tuple[str, ...]:
    return tuple(task for task in BASE if path_of(task).is_file())


def path_of(task: str, folder: Path = DATA) -> Path:
    return folder / f"quality-{task}.json"
