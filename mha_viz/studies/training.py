"""Training the shipped models: from a seed to weights, with everything measured on the way."""

from __future__ import annotations

import json
import math
import platform
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from mha_viz.core.layer import Layer, seed_in_range
from mha_viz.core.rules import one_of, whole
from mha_viz.core.whole_file import check_folder, whole_file
from mha_viz.sources.models import DATA, HELD_OUT_COUNT, MODELS, Parameters, Scores, score
from mha_viz.sources.tasks import PAD, TASKS, TRAINING, UNASKED

if TYPE_CHECKING:
    from jaxtyping import Float, Int
    from torch import Tensor

    from mha_viz.sources.models import Model


REPORT = 10  # steps from one Progress to the next: whoever stops waits no longer


@dataclass(frozen=True)
class Recipe:
    """How a model is trained: AdamW with these settings, its rate rising over ``warmup`` steps and falling along a cosine to a
    tenth. ``embedding_std`` is that of the embeddings' first numbers; ``snapshots`` are the steps after which the model is kept.
    """

    seed: int
    steps: int
    batch_size: int
    learning_rate: float
    embedding_std: float
    snapshots: tuple[int, ...]
    warmup: int = 50
    betas: tuple[float, float] = (0.9, 0.98)
    weight_decay: float = 0.01
    largest_gradient: float = 1.0

    def rate(self, step: int) -> float:
        """What multiplies ``learning_rate`` at ``step``."""
        return min(1, (step + 1) / self.warmup) * (0.1 + 0.45 * (1 + math.cos(math.pi * step / self.steps)))


RECIPES = {
    "induction": Recipe(
        2, 1500, 32, 3e-3, 0.25, (0, 20, 40, 50, 60, 70, 80, 90, 100, 110, 120, 130, 140, 160, 200, 250, 300, 500, 800, 1500)
    ),
    "reverse-or-shift": Recipe(
        4,
        1500,
        64,
        3e-3,
        0.25,
        (0, 25, 50, 75, 100, 125, 150, 175, 200, 250, 300, 350, 400, 450, 500, 600, 700, 850, 1100, 1500),
    ),
}
RECIPES |= {
    f"look-both-ways-{heads}": Recipe(
        1, 800, 64, 5e-3, 0.5, (0, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100, 120, 150, 200, 250, 300, 400, 500, 650, 800)
    )
    for heads in (1, 2, 32)
}


@dataclass(frozen=True, eq=False)
class Progress:
    """Where training stands after ``step`` of ``steps``: ``loss`` the mean training loss since the last Progress, None before the
    first step. Where the recipe keeps a snapshot, ``scores`` on held-out sequences and the ``state``, arrays by name; else None.
    """

    step: int
    steps: int
    loss: float | None
    scores: Scores | None = None
    state: dict[str, Float[np.ndarray, ...]] | None = None


class AttentionOnly(nn.Module):
    """The module that is trained; ``mha_viz.sources.models.forward`` is the same pass with every tensor on the way."""

    def __init__(self, model: Model) -> None:
        super().__init__()
        task, E = TASKS[model.task], model.embed_dim
        self.task, self.residual = task, model.residual
        self.tokens, self.positions = nn.Embedding(len(task.vocabulary), E), nn.Embedding(task.length, E)
        self.layers = nn.ModuleList(
            nn.MultiheadAttention(E, model.num_heads, batch_first=True) for _ in range(model.num_layers)
        )
        self.norms = nn.ModuleList(nn.LayerNorm(E) for _ in range(model.num_layers + 1 if model.residual else 0))
        self.unembedding = nn.Linear(E, len(task.answers) * len(task.vocabulary), bias=False)

    def forward(self, tokens: Int[Tensor, "N L"]) -> Float[Tensor, "N L A V"]:
        """[N, L] → logits [N, L, A, V]."""
        L = tokens.shape[1]
        later = torch.ones(L, L, dtype=torch.bool).triu(1) if self.task.causal else None
        padding = tokens == self.task.vocabulary.index(PAD) if PAD in self.task.vocabulary else None
        x = self.tokens(tokens) + self.positions.weight[:L]  # [N, L, E]
        for i, layer in enumerate(self.layers):
            read = self.norms[i](x) if self.residual else x  # [N, L, E]
            written, _ = layer(read, read, read, key_padding_mask=padding, attn_mask=later, need_weights=False)  # [N, L, E]
            x = x + written if self.residual else written
        if self.residual:
            x = self.norms[-1](x)  # [N, L, E]
        logits: Float[Tensor, "N L A V"] = self.unembedding(x).unflatten(-1, (len(self.task.answers), -1))  # of [N, L, A·V]
        return logits


def untrained(model: Model, seed: int, embedding_std: float) -> AttentionOnly:
    """An AttentionOnly whose numbers all come from ``seed``: drawn on a generator of its own, since the global one is everybody's.

    Each part is drawn as PyTorch draws it, except for the standard deviation of the embeddings.
    """
    generator = torch.Generator().manual_seed(seed)
    with torch.device("meta"):  # nothing is drawn there
        module = AttentionOnly(model)
    state = {name: torch.zeros(tensor.shape) for name, tensor in module.state_dict().items()}
    for name in ("tokens.weight", "positions.weight"):
        state[name].normal_(0, embedding_std, generator=generator)
    for i in range(model.num_layers):
        layer = Layer.random(model.embed_dim, model.num_heads, generator=generator)
        state |= {f"layers.{i}.{name}": torch.tensor(array) for name, array in layer.weights.items()}
    for i in range(len(module.norms)):
        state[f"norms.{i}.weight"].fill_(1)
    nn.init.kaiming_uniform_(state["unembedding.weight"], a=math.sqrt(5), generator=generator)
    module.load_state_dict(state, assign=True)
    return module.requires_grad_()


def train(name: str, seed: int | None = None, steps: int | None = None) -> Iterator[Progress]:
    """Train the model ``name``: a generator of Progress, every REPORT steps and where a snapshot is kept, the last one included.

    ``seed`` and ``steps`` are the recipe's where None; with other ``steps`` the snapshots are spread as the recipe spreads them.
    The same seed gives the same weights on the same machine. Whoever stops asking stops the training. Raises Wrong for a name, seed
    or number of steps that there cannot be.
    """
    recipe = recipe_of(name, seed, steps)
    return train_model(MODELS[one_of("model", name, tuple(MODELS))], recipe)


def recipe_of(name: str, seed: int | None = None, steps: int | None = None) -> Recipe:
    """The Recipe of the model ``name`` with this seed and number of steps, the recipe's own where None."""
    recipe = RECIPES[one_of("model", name, tuple(RECIPES))]
    seed = recipe.seed if seed is None else seed_in_range(seed)
    steps = recipe.steps if steps is None else whole("steps", steps, 1)
    snapshots = tuple(sorted({round(step * steps / recipe.steps) for step in recipe.snapshots}))
    return Recipe(**vars(recipe) | {"seed": seed, "steps": steps, "snapshots": snapshots})


def train_model(model: Model, recipe: Recipe) -> Iterator[Progress]:
    """``train`` of any Model by any Recipe."""
    task = TASKS[model.task]
    rng = np.random.default_rng((TRAINING, recipe.seed))
    module = untrained(model, recipe.seed, recipe.embedding_std)
    optimizer = torch.optim.AdamW(
        module.parameters(), recipe.learning_rate, betas=recipe.betas, weight_decay=recipe.weight_decay
    )
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, recipe.rate)
    losses: list[float] = []
    for step in range(recipe.steps + 1):
        if step in recipe.snapshots or step % REPORT == 0:
            yield _report(step, model, recipe, module, losses)
            losses.clear()
        if step == recipe.steps:
            return
        tokens = task.draw(rng, recipe.batch_size)  # [N, L]
        targets = torch.tensor(task.targets(tokens))  # [N, L, A]
        logits = module(torch.tensor(tokens))  # [N, L, A, V]
        loss = F.cross_entropy(logits.flatten(0, 2), targets.flatten(), ignore_index=UNASKED)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(module.parameters(), recipe.largest_gradient)
        optimizer.step()
        schedule.step()
        losses.append(loss.item())


def _report(step: int, model: Model, recipe: Recipe, module: nn.Module, losses: list[float]) -> Progress:
    loss = float(np.mean(losses)) if losses else None
    if step not in recipe.snapshots:
        return Progress(step, recipe.steps, loss)
    state = {name: tensor.numpy(force=True).copy() for name, tensor in module.state_dict().items()}
    return Progress(step, recipe.steps, loss, score(model, Parameters.of(model, state)), state)


def write(
    name: str, progress: Iterable[Progress], out: str | Path = DATA, seed: int | None = None, steps: int | None = None
) -> None:
    """Write what a finished training of the model ``name`` gave, its ``progress`` in order, into the folder ``out``.

    NAME.safetensors holds the final weights in float32, NAME.snapshots.safetensors those of every snapshot in float16, stacked
    along a first axis, and NAME.json how they were made and the Scores, of each as it is kept.
    """
    from safetensors.numpy import save_file

    model, recipe = MODELS[one_of("model", name, tuple(MODELS))], recipe_of(name, seed, steps)
    kept = [(report, report.state) for report in progress if report.state is not None]
    final = kept[-1][1]
    stacked: dict[str, np.ndarray] = {  # [snapshots, …] each
        key: np.stack([state[key].astype(np.float16) for _, state in kept]) for key in final
    }
    snapshots = []
    for i, (report, _) in enumerate(kept):
        as_kept = Parameters.of(model, {key: array[i].astype(np.float32) for key, array in stacked.items()})
        snapshots.append({"step": report.step, "training_loss": report.loss} | asdict(score(model, as_kept)))
    about = {
        "model": name,
        "command": f"python -m mha_viz train {name} --seed {recipe.seed} --steps {recipe.steps}",
        "recipe": asdict(recipe),
        "sizes": {size: value for size, value in vars(model).items() if size not in ("title", "shows")},
        "parameters": sum(array.size for array in final.values()),
        "versions": {"python": platform.python_version(), "torch": torch.__version__, "numpy": np.__version__},
        "held_out": HELD_OUT_COUNT,
        "final": asdict(score(model, Parameters.of(model, final))),
        "snapshots": snapshots,
    }
    out = Path(out)
    check_folder(out)
    for arrays, ending in ((final, "safetensors"), (stacked, "snapshots.safetensors")):
        with whole_file(out / f"{name}.{ending}") as path:
            save_file(arrays, path)
    with whole_file(out / f"{name}.json") as path:
        path.write_text(in_lines(rounded(about)))


def rounded(value: Any) -> Any:
    """``value`` with every float in it at six decimals."""
    if isinstance(value, float):
        return round(value, 6)
    if isinstance(value, dict):
        return {key: rounded(part) for key, part in value.items()}
    return [rounded(part) for part in value] if isinstance(value, list | tuple) else value


def in_lines(about: Mapping[str, Any]) -> str:
    """``about`` as JSON that can be read and compared: a line per entry, and one per snapshot."""
    entries = [f'"{key}": {json.dumps(value)}' for key, value in about.items() if key != "snapshots"]
    snapshots = ",\n  ".join(map(json.dumps, about["snapshots"]))
    return "{\n " + ",\n ".join([*entries, f'"snapshots": [\n  {snapshots}\n ]']) + "\n}\n"
