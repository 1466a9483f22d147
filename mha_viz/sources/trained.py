"""A shipped model on sequences of its task: what its heads do, what it answers, and what if one of them were off."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from mha_viz.core.rules import Wrong, of_kind
from mha_viz.recording import Recording
from mha_viz.settings.interventions import read_interventions, told, typed_interventions, write_interventions
from mha_viz.settings.rules import LARGEST_SEED, Ruled, choice, number, optional, ruled, split_words, typed_words
from mha_viz.sources.base import NOT_GENERATED, Curves, Kind, Source, digest
from mha_viz.sources.models import (
    DATA,
    HELD_OUT_COUNT,
    MODELS,
    Model,
    ModelName,
    Scores,
    forward,
    is_right,
    kept_step,
    log_softmax,
    parameters,
    record,
    score,
)
from mha_viz.sources.tasks import HELD_OUT, PAD, SHOWN, TASKS, TRAINING, UNASKED, Task

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int, Shaped

    from mha_viz.core.intervention import Intervention

MOST_ITEMS = 64
Line: TypeAlias = tuple[str, ...]  # the texts of the tokens of one sequence


@dataclass(frozen=True)
class Trained(Ruled):
    """Which shipped model reads which sequences, and what is changed in it.

    ``model`` is "induction", "reverse-or-shift", "look-both-ways-1", "look-both-ways-2" or "look-both-ways-32".
    ``snapshot`` is the training step after which the model is taken, one of ``steps(model)``; None takes the final weights.
    ``batch_size`` sequences are drawn from ``seed``, from a stream that training never draws from. ``words`` are a person's own in
    their place: a line per sequence, tokens split at white space, checked against the model's vocabulary; shorter lines are padded
    where the model knows padding. ``interventions`` say what is changed in which layer, as ``read_interventions`` reads it; a
    tuple of Interventions, one per layer, is taken too and kept as text.

    Raises Wrong for a value that breaks a rule.

    >>> import mha_viz as mv
    >>> settings = mv.Trained("induction", batch_size=2, interventions=(mv.Intervention(), mv.Intervention({0: "zero"})))
    >>> settings.interventions  # head 0 of layer 1
    '1:0=zero'
    >>> settings.tokens.shape  # [N, L]
    (2, 32)
    >>> mv.Trained("induction", snapshot=45)
    Traceback (most recent call last):
    mha_viz.core.rules.Wrong: snapshot = 45: is no step after which induction was kept; ... Nearest right: snapshot = 40 or snapshot = 50.
    """

    model: ModelName = ruled("induction", choice(*MODELS))
    snapshot: int | None = ruled(None, optional(number(0)))
    seed: int = ruled(0, number(0, LARGEST_SEED))
    batch_size: int = ruled(4, number(1, MOST_ITEMS))
    words: str | None = ruled(None, optional(typed_words))
    interventions: str = ruled("", typed_interventions)

    def check_together(self) -> None:
        if self.snapshot is not None:
            kept_step(self.model, self.snapshot)
        model, changes, length = MODELS[self.model], self.changes, self.tokens.shape[1]
        if len(changes) > model.num_layers:
            rule = f"names layer {len(changes) - 1}, and {self.model} has {model.num_layers}."
            right = write_interventions(changes[: model.num_layers])
            raise Wrong("interventions", self.interventions, rule, [{"interventions": right}])
        for layer, change in enumerate(changes):
            try:
                change.check(model.num_heads, length)
            except Wrong as wrong:
                nearest = replace(change, **wrong.nearest[0])
                right = write_interventions((*changes[:layer], nearest, *changes[layer + 1 :]))
                rule = f"in layer {layer} {wrong.rule}"
                raise Wrong("interventions", self.interventions, rule, [{"interventions": right}]) from None

    @property
    def changes(self) -> tuple[Intervention, ...]:
        """The Interventions, one per layer, up to the last layer that is changed."""
        return read_interventions(self.interventions)

    @property
    def tokens(self) -> Int[np.ndarray, "N L"]:
        """[N, L] ints, numbers into the vocabulary: the sequences, drawn or typed."""
        task = TASKS[MODELS[self.model].task]
        return task.examples(SHOWN, self.seed, self.batch_size) if self.words is None else read_tokens(task, self.words)


@dataclass(frozen=True, eq=False)
class Run:
    """What a model did: a ``recording`` with one Trace per layer, "layer 0" first, and what it answered.

    ``tokens`` [N, L] are numbers into the vocabulary; their texts are the Traces'. ``answers`` [A] names what is asked of each
    position, and for each of them, [N, L, A]: ``predictions`` and ``targets`` are texts, a target "" where nothing is asked;
    ``probability``, 0 to 1, is that of the prediction, NaN where it is undefined; ``asked`` and ``right`` are bool, and nothing is
    right that was not asked.
    """

    recording: Recording
    tokens: Int[np.ndarray, "N L"]
    answers: tuple[str, ...]
    predictions: Shaped[np.ndarray, "N L A"]
    targets: Shaped[np.ndarray, "N L A"]
    probability: Float[np.ndarray, "N L A"]
    asked: Bool[np.ndarray, "N L A"]
    right: Bool[np.ndarray, "N L A"]

    @property
    def accuracy(self) -> dict[str, float]:
        """By the name of the answer, the share of right ones among those asked here, 0 to 1; NaN where none is asked."""
        counts = zip(self.answers, self.right.sum(axis=(0, 1)), self.asked.sum(axis=(0, 1)), strict=True)
        return {name: float(right / asked) if asked else float("nan") for name, right, asked in counts}


def trained(settings: Trained | None = None) -> Run:
    """The Run of a shipped model: its heads, layer by layer, and what it answers.

    ``settings`` say which model reads what, the defaults where None. The Run holds a Trace per layer, [N, H, L, L] maps each, and
    answers [N, L, A]; the notes of its recording say what was changed.

    >>> import mha_viz as mv
    >>> run = mv.trained(mv.Trained("induction", words="<bos> m a r c h m a r c"))
    >>> run.predictions[0, -4:, 0].tolist(), run.targets[0, -4:, 0].tolist()  # after the second m, a, r and c
    (['a', 'r', 'c', 'h'], ['a', 'r', 'c', 'h'])
    >>> run.accuracy
    {'next': 1.0}
    >>> [(trace.name, trace.weights.shape) for trace in run.recording.traces]
    [('layer 0', (1, 4, 10, 10)), ('layer 1', (1, 4, 10, 10))]
    """
    s = Trained() if settings is None else of_kind("settings", settings, Trained)
    model, tokens, changes = MODELS[s.model], s.tokens, s.changes
    task = TASKS[model.task]
    traces, logits = forward(model, parameters(s.model, s.snapshot), tokens, changes)
    targets = task.targets(tokens)  # [N, L, A]
    asked = targets != UNASKED  # [N, L, A]
    texts = np.array((*task.vocabulary, ""))  # the last one, −1, is UNASKED's
    predictions, probability = texts[logits.argmax(axis=-1)], np.exp(log_softmax(logits).max(axis=-1))  # [N, L, A] each
    right = is_right(logits, targets)  # [N, L, A]; UNASKED is no token, and so never right
    return Run(Recording(traces, told(changes)), tokens, task.answers, predictions, texts[targets], probability, asked, right)


@lru_cache(maxsize=64)
def accuracy(settings: Trained) -> tuple[Scores, Scores]:
    """(Scores without, Scores with) the interventions of these Trained settings, both on the same held-out sequences."""
    s = settings
    about = record(s.model)
    kept = about["final"]
    if s.snapshot is not None:
        kept = next(snapshot for snapshot in about["snapshots"] if snapshot["step"] == s.snapshot)
    without = Scores(kept["loss"], kept["accuracy"], kept["roles"])
    changes = s.changes
    return without, score(MODELS[s.model], parameters(s.model, s.snapshot), changes) if changes else without


def training_curves(settings: Trained) -> Curves:
    """(steps, name → values, the step that is looked at): loss and held-out accuracy of a shipped model over its training."""
    kept = record(settings.model)["snapshots"]
    lines = {"loss": [one["loss"] for one in kept]}
    lines |= {accuracy_name(name): [one["accuracy"][name] for one in kept] for name in kept[0]["accuracy"]}
    steps = [one["step"] for one in kept]
    return steps, lines, steps[-1] if settings.snapshot is None else settings.snapshot


def accuracy_name(answer: str) -> str:
    """What the accuracy of an answer is called: where a model gives one only, just that."""
    return "accuracy" if answer in ("next", "answer") else f"accuracy: {answer}"


def read_tokens(task: Task, words: str) -> Int[np.ndarray, "N L"]:
    """[N, L] ints from lines of texts; raises Wrong for what the task cannot read, with the nearest that it can."""
    lines = split_words(words)
    fitting = [fitted(task, line) for line in lines]
    rule = next((rule for _, rule in fitting if rule), None)
    right = [line for line, _ in fitting][:MOST_ITEMS]
    lengths = sorted({len(line) for line in right})
    if PAD not in task.vocabulary and len(lengths) > 1:
        rule = (
            rule or f"must hold lines of one length, and these have {', '.join(map(str, lengths))}: the model knows no padding."
        )
        right = [line[: lengths[0]] for line in right]
    if len(lines) > MOST_ITEMS:
        rule = rule or f"holds {len(lines)} lines, and may hold {MOST_ITEMS}."
    if rule:
        raise Wrong("words", words, rule, [{"words": "\n".join(map(" ".join, right))}])
    padded = [line + (PAD,) * (lengths[-1] - len(line)) for line in right]
    return np.array([[task.vocabulary.index(text) for text in line] for line in padded])  # [N, L]


def fitted(task: Task, line: Line) -> tuple[Line, str | None]:
    """(the nearest line that the task can read, the first rule that ``line`` breaks, None where it breaks none)."""
    rules: list[str] = []
    opening: Line = ()
    body: Line = line
    padding: Line = ()
    if task.openings and line[0] in task.openings:
        opening, body = line[:1], line[1:]
    elif task.openings:
        opening = task.openings[:1]
        rules.append(f"must begin each line with {' or '.join(task.openings)}, and one begins with {line[0]!r}.")
    while PAD in task.vocabulary and body and body[-1] == PAD:
        body, padding = body[:-1], padding + (PAD,)
    strange = [text for text in body if text not in task.body]
    if strange:
        where = f"{' or '.join(task.openings)} at the beginning, " if task.openings else ""
        where += f"{task.body[0]} to {task.body[-1]}" + (f", {PAD} at the end" if PAD in task.vocabulary else "")
        rules.append(f"holds {strange[0]!r} where the model cannot read it. It reads {where}.")
    body = tuple(text.lower() for text in body if text.lower() in task.body)
    least = 1 if task.openings else 3
    if len(body) < least:
        rules.append(f"must hold at least {least} of {task.body[0]} to {task.body[-1]} in each line.")
        body += task.body[: least - len(body)]
    right = (opening + body + padding)[: task.length]
    if len(opening + body + padding) > task.length:
        rules.append(f"holds a line of {len(line)} tokens, and the model knows {task.length} positions.")
    return right, rules[0] if rules else None


@dataclass(frozen=True)
class HeldOut:
    """What the checks of a trained model are asked about: its ``settings``, and the sequences that it is scored on."""

    settings: Trained
    name: str = "model"

    @property
    def model(self) -> Model:
        return MODELS[self.settings.model]

    def scored(self, changes: Sequence[Intervention] | None = None) -> Scores:
        """The Scores of the model with these Interventions, one per layer; with those of its settings for None."""
        s = self.settings
        return score(self.model, parameters(s.model, s.snapshot), s.changes if changes is None else changes)

    @property
    def sequences(self) -> Int[np.ndarray, "count L"]:
        """[count, L] the sequences that it is scored on."""
        return TASKS[self.model.task].examples(HELD_OUT, 0, HELD_OUT_COUNT)

    @property
    def training(self) -> Int[np.ndarray, "count L"] | None:
        """[count, L] those that training drew, None where that is not on record."""
        return training_sequences(self.settings.model)


@lru_cache(maxsize=2)
def training_sequences(name: ModelName) -> Int[np.ndarray, "count L"]:
    """[count, L] every sequence that training the shipped model ``name`` drew, drawn again from its seed."""
    recipe, task = record(name)["recipe"], TASKS[MODELS[name].task]
    rng = np.random.default_rng((TRAINING, recipe["seed"]))
    return np.concatenate([task.draw(rng, recipe["batch_size"]) for _ in range(recipe["steps"])])


class Shipped(Kind[Trained]):
    """Models that come with the app, each trained on one small task."""

    name = "trained"
    title = "shipped model"
    settings = Trained

    def called(self, settings: Trained) -> str:
        return settings.model

    def open(self, settings: Trained) -> Source:
        recording = trained(settings).recording
        return Source(self.called(settings), recording.traces, settings, tuple(recording.notes))

    def unchanged(self, settings: Trained) -> Trained:
        return replace(settings, interventions="")

    def curves(self, settings: Trained) -> Curves:
        return training_curves(settings)

    def held_out(self, settings: Trained) -> HeldOut:
        return HeldOut(settings)

    def versions(self, settings: Trained) -> dict[str, str]:
        path, made = DATA / f"{settings.model}.safetensors", record(settings.model)
        kept = "final weights" if settings.snapshot is None else f"after {settings.snapshot} steps"
        return {
            "model": f"{settings.model}, {kept}, sha256 {digest(path)}, made by `{made['command']}`",
            "tokenizer": f"none: {len(MODELS[settings.model].vocabulary)} tokens, split at white space",
            "generation": NOT_GENERATED,
        }


SHIPPED = Shipped()
