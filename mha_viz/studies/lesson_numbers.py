"""What lessons are made of: their layers and inputs, the numbers in their answers, and the head and cell that each is about."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import urlencode

import numpy as np

from mha_viz.analysis.average import Hidden, what_average_hides
from mha_viz.analysis.difference import real_queries
from mha_viz.analysis.statistics import statistic
from mha_viz.core.attend import attend
from mha_viz.core.batch import Batch
from mha_viz.core.layer import Layer
from mha_viz.core.rules import one_of
from mha_viz.settings import Settings, View
from mha_viz.sources.models import MODELS, record
from mha_viz.sources.synthetic import synthetic
from mha_viz.sources.trained import Trained, accuracy, trained
from mha_viz.studies.relationships import MODEL, RELATIONSHIPS, read, relationship, sentences

if TYPE_CHECKING:
    from jaxtyping import Float

    from mha_viz.core.arrays import Dtype
    from mha_viz.core.trace import Trace


LessonNumbers: TypeAlias = dict[str, float]  # by the name of their place in an answer

# The layers and inputs of lessons


@cache
def opposite_heads() -> Trace:
    """E 2, H 2: tokens are ±1 in column 0; the heads want the opposite sign of each other, and hand the token's own sign on."""
    projections = np.zeros((6, 2), np.float32)
    projections[:, 0] = [2, -2, 1, 1, 1, 1]  # Wq, Wk, Wv, a row per head each
    state = {
        "in_proj_weight": projections,
        "in_proj_bias": np.zeros(6, np.float32),
        "out_proj.weight": np.eye(2, dtype=np.float32),
        "out_proj.bias": np.zeros(2, np.float32),
    }
    signs = np.array([1, -1, 1, 1, -1, -1, 1, -1], np.float32)
    query = np.zeros((1, 8, 2), np.float32)
    query[0, :, 0] = signs
    tokens = [["+" if sign > 0 else "−" for sign in signs]]
    return attend(Layer.from_state_dict(state, 2), Batch(query, query_tokens=tokens), name="opposite heads")


def pinned(**fields: str | int | float) -> str:
    """What A is, as an address has it."""
    return urlencode(fields)


@cache
def usual(**changes: Any) -> Trace:
    return synthetic(Settings(**changes))


def attended(trace: Trace) -> tuple[Layer, Batch]:
    """The layer of a lesson's Trace, and what went in."""
    assert trace.layer is not None and trace.batch is not None  # lessons make their own
    return trace.layer, trace.batch


@cache
def with_one_number_changed() -> tuple[Trace, Trace]:
    """(the defaults' Trace, the same with 1 added to number 100 of token 5 of item 1, a layer whose heads read slices on both)."""
    trace = usual(padding=())
    layer, batch = attended(trace)
    query = batch.query.copy()
    query[1, 5, 100] += 1
    return trace, attend(layer, Batch(query))


def sliced(query: Float[np.ndarray, "N L E"], layer: Layer) -> Float[np.ndarray, "N H L L"]:
    """[N, H, L, L]: the weights of a wrong layer whose head h reads numbers h·D to (h + 1)·D of each token and nothing else."""
    N, L, E = query.shape
    H, D = layer.num_heads, layer.head_dim
    slices = query.reshape(N, L, H, D).swapaxes(1, 2)  # [N, H, L, D]
    Wq, Wk, _ = (weight.reshape(H, D, E) for weight in layer.projections)  # [H, D, E]
    own = np.stack([np.stack([W[h, :, h * D : (h + 1) * D] for h in range(H)]) for W in (Wq, Wk)])  # [2, H, D, D]
    q, k = (np.einsum("nhld,hed->nhle", slices, W) for W in own)  # [N, H, L, D] each
    scores = q @ k.swapaxes(-1, -2) / np.sqrt(D)  # [N, H, L, L]
    exponentials = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights: Float[np.ndarray, "N H L L"] = exponentials / exponentials.sum(axis=-1, keepdims=True)
    return weights


def loss_and_gradients(settings: Settings) -> tuple[float, int, int]:
    """(mean square of the real outputs, how many in-projection and out-projection weight gradients are NaN) of PyTorch's own layer."""
    import torch
    from torch import nn

    trace = synthetic(settings)
    own, batch = attended(trace)
    layer = nn.MultiheadAttention(settings.embed_dim, settings.num_heads, batch_first=True)
    layer.load_state_dict({name: torch.tensor(array) for name, array in own.weights.items()})
    x = torch.tensor(batch.query)
    real = torch.tensor(~trace.query_padding)  # [N, L]
    later = torch.ones(settings.L, settings.L, dtype=torch.bool).triu(1)
    output, _ = layer(x, x, x, key_padding_mask=~real, attn_mask=later)
    loss = output[real].square().mean()
    loss.backward()
    into, out = layer.in_proj_weight.grad, layer.out_proj.weight.grad
    assert into is not None and out is not None
    return loss.item(), int(into.isnan().sum()), int(out.isnan().sum())


# What the lessons measure


def opposite_numbers() -> LessonNumbers:
    trace = opposite_heads()
    high, low = trace.weights.max(), trace.weights.min()
    from_average = np.abs(trace.mean_weights @ trace.v[:, 0]).max()
    return {
        "high": high,
        "low": low,
        "average": trace.mean_weights[0, 0, 0],
        "spread": np.ptp(trace.mean_weights),
        "output": np.abs(trace.output).max(),
        "from_average": from_average,
    }


def both_ways(heads: int) -> Trace:
    model = one_of("model", f"look-both-ways-{heads}", tuple(MODELS))
    return trained(Trained(model)).recording.traces[0]


def both_ways_numbers() -> LessonNumbers:
    found: LessonNumbers = {}
    for heads in (1, 2, 32):
        scores = record(f"look-both-ways-{heads}")["final"]["accuracy"]
        found |= {f"before{heads}": scores["before"], f"after{heads}": scores["after"]}
    gap = np.abs(both_ways(1).mean_weights - both_ways(2).mean_weights)[:, 1:-1].mean()
    return found | {"gap": gap, "parameters": record("look-both-ways-1")["parameters"]}


def dead_numbers() -> LessonNumbers:
    right, left = (Settings(causal=True, padding_side=side) for side in ("right", "left"))
    loss_right, *fine = loss_and_gradients(right)
    loss_left, in_nan, out_nan = loss_and_gradients(left)
    undefined = synthetic(left).undefined
    return {
        "right": loss_right,
        "left": loss_left,
        "rows": int(undefined.sum()),
        "none": int(synthetic(right).undefined.sum()),
        "in_nan": in_nan,
        "out_nan": out_nan,
        "fine": sum(fine),
    }


def slice_numbers() -> LessonNumbers:
    before, after = with_one_number_changed()
    moved = np.abs(after.weights - before.weights)[1].max(axis=(1, 2))  # [H]
    (layer, first), (_, second) = attended(before), attended(after)
    wrong = np.abs(sliced(first.query, layer) - sliced(second.query, layer))[1].max(axis=(1, 2))  # [H]
    only = np.flatnonzero(wrong > 1e-6)
    return {"moved": int((moved > 1e-6).sum()), "least": moved.min(), "most": moved.max(), "only": only[0], "count": len(only)}


WORDS, (OBJECT,), (VERB,) = sentences("syntactic", 2)[0]
READ_ALOUD, OBJECT_AND_VERB = " ".join(WORDS), (OBJECT, VERB)
SAME = "the cat saw the cat and the cat ran"


def same_words_numbers() -> LessonNumbers:
    without, having = (usual(words=SAME, padding=(), positions=positions) for positions in (False, True))
    rows = [i for i, word in enumerate(without.query_tokens[0]) if word == "cat"]
    apart = [np.ptp(trace.weights[0][:, rows], axis=1).max() for trace in (without, having)]
    return {"count": len(rows), "without": apart[0], "having": apart[1]}


def unmasked() -> Trace:
    layer, batch = attended(usual())
    return attend(layer, replace(batch, key_padding_mask=None, query_padding_mask=batch.query_padding_mask))


def leak_numbers() -> LessonNumbers:
    masked, leaking = usual(), unmasked()
    pads, real = masked.query_padding[0], real_queries(masked, 0)
    return {
        "leak": leaking.weights[0][:, real][:, :, pads].sum(axis=-1).mean(),
        "masked": masked.weights[0][:, real][:, :, pads].sum(),
        "pads": int(pads.sum()),
        "length": len(pads),
        "moved": np.abs(leaking.output[0][real] - masked.output[0][real]).max(),
    }


def dropout_numbers() -> LessonNumbers:
    trace = usual(training=True, padding=())
    sums, dropped = trace.weights.sum(axis=-1, dtype=np.float64), trace.dropped  # [N, H, L], [N, H, L, S]
    assert dropped is not None  # in train mode
    return {
        "off": int((np.abs(sums - 1) > 1e-5).sum()),
        "rows": sums.size,
        "least": sums.min(),
        "most": sums.max(),
        "dropped": dropped.mean(),
        "eval": np.abs(usual(padding=()).weights.sum(axis=-1) - 1).max(),
    }


def induction(snapshot: int | None = None) -> Trace:
    return trained(Trained("induction", snapshot)).recording.traces[1]


def forming_numbers() -> LessonNumbers:
    snapshots = record("induction")["snapshots"]
    learns = next(one for one in snapshots if one["accuracy"]["next"] > 0.5)
    before = [one for one in snapshots if one["step"] < learns["step"]][-1]
    role = {name: max(one["roles"]["induction"][1]) for name, one in (("first", snapshots[0]), ("last", snapshots[-1]))}
    without, off = accuracy(Trained("induction", interventions="0:1=zero"))
    return {
        "step": learns["step"],
        "before": before["step"],
        "accuracy": learns["accuracy"]["next"],
        "was": before["accuracy"]["next"],
        **role,
        "whole": without.accuracy["next"],
        "off": off.accuracy["next"],
    }


def order_traces() -> tuple[Trace, ...]:
    return trained(Trained("reverse-or-shift", batch_size=16)).recording.traces


def first_token_numbers() -> LessonNumbers:
    first = np.stack([statistic(order_traces()[0], item, "first") for item in range(16)]).mean(axis=0)  # [H]
    without, off = accuracy(Trained("reverse-or-shift", interventions="0:keys=0"))
    chance = 1 / (order_traces()[0].weights.shape[3])
    return {
        "head": int(first.argmax()),
        "weight": first.max(),
        "even": chance,
        "whole": without.accuracy["answer"],
        "masked": off.accuracy["answer"],
    }


def decimal_numbers() -> LessonNumbers:
    layer, batch = attended(usual(padding=()))
    right = attend(layer, batch, dtype="float64").weights
    dtypes: tuple[Dtype, ...] = ("float32", "float16", "bfloat16")
    off: LessonNumbers = {dtype: np.abs(attend(layer, batch, dtype=dtype).weights - right).max() for dtype in dtypes}
    return off | {"largest": right.max()}


def many_heads_numbers() -> LessonNumbers:
    found = {f"h{H}": statistic(usual(num_heads=H, padding=()), 0, "difference").mean() for H in (2, 8, 64)}
    return {name: 100 * value for name, value in found.items()} | {
        "d2": 128 // 2,
        "d8": 128 // 8,
        "d64": 128 // 64,
        "both32": record("look-both-ways-32")["final"]["accuracy"]["before"],
    }


def causal_numbers() -> LessonNumbers:
    free, causal = usual(padding=()), usual(padding=(), causal=True)
    later = np.triu(np.ones((20, 20)), 1)
    return {
        "later": (free.weights * later).sum(axis=-1).mean(),
        "causal": (causal.weights * later).sum(),
        "first": causal.weights[0, :, 0, 0].min(),
        "last": np.abs(causal.weights[0, :, -1] - free.weights[0, :, -1]).max(),
    }


def kinds_numbers() -> LessonNumbers:
    found = {name: relationship(name) for name in RELATIONSHIPS}
    numbers = {f"{name}_{what}": value for name, one in found.items() for what, value in vars(one).items()}
    return numbers | {"count": next(iter(found.values())).count}


def read_alone() -> dict[str, str]:
    """How MiniLM is asked for the one sentence that is shown."""
    return {"name": MODEL, "text": READ_ALOUD, "join": "1"}


def kinds_traces() -> tuple[Trace, ...]:
    return (read([READ_ALOUD]).traces[relationship("syntactic").layer],)


def what_is_hidden() -> Hidden:
    hidden = what_average_hides(usual(), 0)
    assert hidden is not None  # its heads differ
    return hidden


def hides_numbers() -> LessonNumbers:
    hidden = what_is_hidden()
    return {"head": hidden.head, "query": hidden.query, "key": hidden.key, "weight": hidden.weight, "average": hidden.average}


# What the lessons mark


def largest(array: Float[np.ndarray, ...]) -> tuple[int, ...]:
    """The place of the largest number, as whole numbers; NaN gives way."""
    return tuple(int(i) for i in np.unravel_index(np.nanargmax(array), array.shape))


def view_hides() -> View:
    hidden = what_is_hidden()
    return View(head=hidden.head, cell=(hidden.query, hidden.key))


def view_slice() -> View:
    """The head that alone would notice in a layer of slices, where its row for the changed token moved most."""
    before, after = with_one_number_changed()
    head = int(slice_numbers()["only"])
    (key,) = largest(np.abs(after.weights - before.weights)[1, head, 5])
    return View(item=1, head=head, cell=(5, key))


def view_positions() -> View:
    """The row of the second “cat” where positions set the three rows most apart."""
    trace = usual(words=SAME, padding=(), positions=True)
    rows = [i for i, word in enumerate(trace.query_tokens[0]) if word == "cat"]
    head, key = largest(np.ptp(trace.weights[0][:, rows], axis=1))  # [H, S]
    return View(head=head, cell=(rows[1], key))


def view_leak() -> View:
    """The padded key that takes most from a real query where nobody masks it."""
    leaking, real = unmasked(), real_queries(usual(), 0)
    leaks = leaking.weights[0] * real[:, None] * usual().query_padding[0]  # [H, L, S]
    head, query, key = largest(leaks)
    return View(head=head, cell=(query, key))


def view_dropout() -> View:
    """The largest weight that dropout took away."""
    trace = usual(training=True, padding=())
    assert trace.dropped is not None  # in train mode
    head, query, key = largest(trace.probabilities[0] * trace.dropped[0])
    return View(head=head, cell=(query, key))


def view_forming() -> View:
    """The best induction head, where it gives most to what followed the same token before."""
    trace = induction()
    head = int(np.argmax(statistic(trace, 0, "induction")))
    tokens = trace.query_tokens[0]
    stripe = [(query, key + 1) for query in range(len(tokens)) for key in range(query) if tokens[key] == tokens[query]]
    return View(layer=1, head=head, cell=max(stripe, key=lambda cell: trace.weights[0, head][cell]))


def view_first() -> View:
    trace, head = order_traces()[0], int(first_token_numbers()["head"])
    (query,) = largest(trace.weights[0, head, 1:, 0])
    return View(head=head, cell=(query + 1, 0))


def view_decimal() -> View:
    item, head, query, key = largest(usual(padding=()).weights)
    return View(item=item, head=head, cell=(query, key))


def view_kinds() -> View:
    """The head that finds the verb, on the object of the sentence and its verb; [CLS] stands before both."""
    found, (query, key) = relationship("syntactic"), OBJECT_AND_VERB
    return View(layer=found.layer, head=found.head, cell=(query + 1, key + 1))
