"""The shipped models: what each is, its weights at the end and on the way, and its forward pass over ``attend``."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias, TypedDict

import numpy as np

from mha_viz.core.attend import attend
from mha_viz.core.batch import Batch
from mha_viz.core.intervention import changed
from mha_viz.core.layer import Layer
from mha_viz.core.rules import Wrong, one_of
from mha_viz.sources.tasks import HELD_OUT, TASKS, UNASKED

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int

    Logits: TypeAlias = Float[np.ndarray, "N L A V"]
    Hidden: TypeAlias = Float[np.ndarray, "N L E"]
    Norm: TypeAlias = Float[np.ndarray, " E"]  # the weight or the bias of a LayerNorm

    from mha_viz.core.intervention import Intervention
    from mha_viz.core.trace import Trace

DATA = Path(__file__).parents[1] / "data"
HELD_OUT_COUNT = 512  # sequences that a score is measured on


class ScoresOnRecord(TypedDict):
    """Scores, as a record keeps them."""

    loss: float
    accuracy: dict[str, float]
    roles: dict[str, list[list[float]]]


class SnapshotOnRecord(ScoresOnRecord):
    """Scores of the weights after ``step`` steps of training."""

    step: int


class RecipeOnRecord(TypedDict):
    """What is needed to draw again what training drew."""

    seed: int
    steps: int
    batch_size: int


class Record(TypedDict):
    """What is read of the JSON object beside a model's weights: the ``command`` that made them, how many they are, and their Scores."""

    command: str
    recipe: RecipeOnRecord
    parameters: int
    final: ScoresOnRecord
    snapshots: list[SnapshotOnRecord]


@dataclass(frozen=True)
class Model:
    """An attention-only transformer: ``title``, what it ``shows`` in one line, the name of its ``task`` in TASKS, and its sizes.

    Where ``residual``, each layer reads LayerNorm(x) and adds to x, and a last LayerNorm stands before the unembedding; where not,
    the answers are read from what the layer puts out, and from nothing else.
    """

    title: str
    shows: str
    task: str
    embed_dim: int
    num_heads: int
    num_layers: int
    residual: bool = True

    @property
    def vocabulary(self) -> tuple[str, ...]:
        """The tokens as texts, by number."""
        return TASKS[self.task].vocabulary


ModelName: TypeAlias = Literal["induction", "reverse-or-shift", "look-both-ways-1", "look-both-ways-2", "look-both-ways-32"]
LOOK = "A position must report the token before and the token after it. "
MODELS: dict[ModelName, Model] = {
    "induction": Model(
        "Induction",
        "It goes on with what followed last time: heads of layer 0 carry each token's predecessor, heads of layer 1 find it again.",
        "induction",
        64,
        4,
        2,
    ),
    "reverse-or-shift": Model(
        "Reverse or shift",
        "The first token says what to do with the others, and the heads of layer 1 change their pattern with it.",
        "reverse-or-shift",
        64,
        4,
        2,
    ),
    "look-both-ways-1": Model(
        "Look both ways: 1 head",
        LOOK + "One head reads both and cannot say which is which: the heavier one wins both answers.",
        "look-both-ways",
        32,
        1,
        1,
        residual=False,
    ),
    "look-both-ways-2": Model(
        "Look both ways: 2 heads",
        LOOK + "Two heads with as many parameters do it: one looks back, one ahead.",
        "look-both-ways",
        32,
        2,
        1,
        residual=False,
    ),
    "look-both-ways-32": Model(
        "Look both ways: 32 heads",
        LOOK
        + "With one number a head, 32 heads come to 0.93 of both: many heads, and none with room to tell twelve positions apart.",
        "look-both-ways",
        32,
        32,
        1,
        residual=False,
    ),
}


@dataclass(frozen=True, eq=False)
class Parameters:
    """A model's numbers: embeddings of ``tokens`` and ``positions``, the attention ``layers``, ``norms`` (weight, bias) before each
    of them and before the unembedding, or none at all, and the ``unembedding``."""

    tokens: Float[np.ndarray, "V E"]
    positions: Float[np.ndarray, "length E"]
    layers: tuple[Layer, ...]
    norms: tuple[tuple[Norm, Norm], ...]
    unembedding: Float[np.ndarray, "A*V E"]

    @classmethod
    def of(cls, model: Model, state: Mapping[str, np.ndarray]) -> Parameters:
        """From arrays by name, as the module that is trained names them."""
        layers = tuple(Layer.from_state_dict(_under(f"layers.{i}.", state), model.num_heads) for i in range(model.num_layers))
        count = model.num_layers + 1 if model.residual else 0
        norms = tuple((state[f"norms.{i}.weight"], state[f"norms.{i}.bias"]) for i in range(count))
        return cls(state["tokens.weight"], state["positions.weight"], layers, norms, state["unembedding.weight"])


@dataclass(frozen=True)
class Scores:
    """How well a model does, and what its heads do, on held-out sequences.

    ``loss`` is the mean cross-entropy in nats over all that is asked; ``accuracy`` the share of right answers, 0 to 1, by the name
    of the answer; ``roles`` the weight, 0 to 1, that each head puts where the role reads, mean over the role's rows: a list of
    heads per layer, by the name of the role.
    """

    loss: float
    accuracy: dict[str, float]
    roles: dict[str, list[list[float]]]


@lru_cache(maxsize=8)
def record(name: str) -> Record:
    """How the shipped weights of the model ``name`` were made, and their Scores: the JSON object that training wrote beside them."""
    found: Record = json.loads((DATA / f"{one_of('model', name, tuple(MODELS))}.json").read_text())
    return found


def steps(name: str) -> tuple[int, ...]:
    """The training steps after which the model was kept, ascending."""
    return tuple(snapshot["step"] for snapshot in record(name)["snapshots"])


@lru_cache(maxsize=32)
def parameters(name: str, snapshot: int | None = None) -> Parameters:
    """The shipped Parameters of the model ``name``: the final ones, or those after ``snapshot`` steps.

    Raises Wrong for a name that there is not, or a step that was not kept.
    """
    from safetensors import safe_open

    model = MODELS[one_of("model", name, tuple(MODELS))]
    part: slice | int
    if snapshot is None:
        path, part = DATA / f"{name}.safetensors", slice(None)
    else:
        path, part = DATA / f"{name}.snapshots.safetensors", steps(name).index(kept_step(name, snapshot))
    with safe_open(path, "numpy") as file:
        state = {key: np.asarray(file.get_slice(key)[part], np.float32) for key in file.keys()}  # noqa: SIM118 (not a dict)
    return Parameters.of(model, state)


def kept_step(name: str, snapshot: int) -> int:
    """``snapshot`` if the model was kept after so many steps; raises Wrong with the nearest steps otherwise."""
    kept = steps(name)
    if snapshot not in kept:
        near = sorted(sorted(kept, key=lambda step: abs(step - snapshot))[:2])
        rule = f"is no step after which {name} was kept; these are {', '.join(map(str, kept))}."
        raise Wrong("snapshot", snapshot, rule, [{"snapshot": step} for step in near])
    return snapshot


def forward(
    model: Model, parameters: Parameters, tokens: Int[np.ndarray, "N L"], interventions: Sequence[Intervention] = ()
) -> tuple[tuple[Trace, ...], Logits]:
    """(traces, logits [N, L, A, V]) of ``tokens`` [N, L]: a Trace per layer, named "layer 0" and so on.

    ``interventions`` are applied layer by layer, the first to layer 0; layers after the last are left alone. What a changed layer
    puts out is what the next one reads.
    """
    task = TASKS[model.task]
    texts = [[task.vocabulary[token] for token in item] for item in tokens]
    x = parameters.tokens[tokens] + parameters.positions[: tokens.shape[1]]  # [N, L, E]
    traces = []
    for i, layer in enumerate(parameters.layers):
        read = layer_norm(x, *parameters.norms[i]) if model.residual else x  # [N, L, E]
        batch = Batch(read, key_padding_mask=task.padding(tokens), causal=task.causal, query_tokens=texts)
        trace = attend(layer, batch, name=f"layer {i}")
        if i < len(interventions):
            trace = changed(trace, interventions[i])
        traces.append(trace)
        x = x + trace.output if model.residual else trace.output  # [N, L, E]
    if model.residual:
        x = layer_norm(x, *parameters.norms[-1])  # [N, L, E]
    logits = x @ parameters.unembedding.T  # [N, L, A·V]
    return tuple(traces), logits.reshape(*tokens.shape, len(task.answers), len(task.vocabulary))  # [N, L, A, V]


def layer_norm(x: Hidden, weight: Norm, bias: Norm, eps: float = 1e-5) -> Hidden:
    """As ``nn.LayerNorm`` over the last axis."""
    centred = x - x.mean(axis=-1, keepdims=True)
    normed: Hidden = centred / np.sqrt((centred**2).mean(axis=-1, keepdims=True) + eps) * weight + bias
    return normed


def log_softmax(logits: Float[np.ndarray, "*axes V"]) -> Float[np.ndarray, "*axes V"]:
    shifted = logits - logits.max(axis=-1, keepdims=True)
    logs: Float[np.ndarray, "*axes V"] = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    return logs


def score(model: Model, parameters: Parameters, interventions: Sequence[Intervention] = ()) -> Scores:
    """The Scores on HELD_OUT_COUNT sequences of a stream that training never draws from.

    Where an intervention leaves a position nothing to read, its answer is wrong and the loss NaN.
    """
    task = TASKS[model.task]
    tokens = task.examples(HELD_OUT, 0, HELD_OUT_COUNT)  # [N, L]
    traces, logits = forward(model, parameters, tokens, interventions)
    targets = task.targets(tokens)  # [N, L, A]
    asked = targets != UNASKED  # [N, L, A]
    right = is_right(logits, targets)  # [N, L, A]
    chance = np.take_along_axis(log_softmax(logits), np.maximum(targets, 0)[..., None], axis=-1)[..., 0]  # [N, L, A]
    accuracy = {name: float(right[..., a][asked[..., a]].mean()) for a, name in enumerate(task.answers)}
    roles = {name: [_on_role(trace, keys) for trace in traces] for name, keys in task.roles(tokens).items()}
    return Scores(float(-chance[asked].mean(dtype=np.float64)), accuracy, roles)


def is_right(logits: Float[np.ndarray, "N L A V"], targets: Int[np.ndarray, "N L A"]) -> Bool[np.ndarray, "N L A"]:
    """[N, L, A] bool: True where the likeliest answer is the right one; an undefined one never is."""
    right: Bool[np.ndarray, "N L A"] = (logits.argmax(axis=-1) == targets) & np.isfinite(logits).all(axis=-1)
    return right


def _on_role(trace: Trace, keys: Bool[np.ndarray, "N L S"]) -> list[float]:
    """[H] floats: the weight on ``keys`` [N, L, S], mean over the rows that have any."""
    rows = keys.any(axis=-1)  # [N, L]
    on_keys = np.einsum("nhls,nls->nhl", trace.weights, keys.astype(trace.weights.dtype))  # [N, H, L]
    return [float(head[rows].mean(dtype=np.float64)) for head in on_keys.swapaxes(0, 1)]


def _under(prefix: str, state: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {name.removeprefix(prefix): array for name, array in state.items() if name.startswith(prefix)}
