"""Lessons: one point each. What to look at, a question to answer before looking, the answer, and the numbers that prove it.

Nothing here is written down that can be computed: an answer is a text with places for numbers, and each lesson computes its own.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache

import numpy as np

from mha_viz.analysis.average import what_average_hides
from mha_viz.analysis.difference import real_queries
from mha_viz.analysis.statistics import statistic
from mha_viz.core.attend import attend
from mha_viz.core.batch import Batch
from mha_viz.core.layer import Layer
from mha_viz.core.trace import Trace
from mha_viz.settings import Settings, View
from mha_viz.sources.models import record
from mha_viz.sources.synthetic import synthetic
from mha_viz.sources.trained import Trained, accuracy, trained
from mha_viz.studies.relationships import RELATIONSHIPS, read, relationship


@dataclass(frozen=True)
class Lesson:
    """One point. ``look`` says what to look at, ``question`` what to answer first, ``answer`` is a text with places for ``numbers()``.

    ``traces()`` gives the picture: one Trace, or two that are compared, A and B, as ``view`` shows them. ``page`` and ``address`` lead
    to where a person goes on by hand, None where the layer is made for this lesson alone.
    """

    title: str
    look: str
    question: str
    answer: str
    numbers: Callable[[], dict]
    traces: Callable[[], tuple[Trace, ...]]
    view: View = field(default_factory=View)
    page: str | None = None
    address: tuple[tuple[str, str], ...] = ()

    def answered(self):
        """The answer with its numbers."""
        return self.answer.format(**self.numbers())


# The layers and inputs of lessons


@cache
def opposite_heads():
    """E 2, H 2: tokens are ±1 in column 0; the heads want the opposite sign of each other, and hand the token's own sign on."""
    projections = np.zeros((6, 2), np.float32)
    projections[:, 0] = [2, -2, 1, 1, 1, 1]  # Wq, Wk, Wv, a row per head each
    state = {
        "in_proj_weight": projections, "in_proj_bias": np.zeros(6, np.float32),
        "out_proj.weight": np.eye(2, dtype=np.float32), "out_proj.bias": np.zeros(2, np.float32),
    }  # fmt: skip
    signs = np.array([1, -1, 1, 1, -1, -1, 1, -1], np.float32)
    query = np.zeros((1, 8, 2), np.float32)
    query[0, :, 0] = signs
    tokens = [["+" if sign > 0 else "−" for sign in signs]]
    return attend(Layer.from_state_dict(state, 2), Batch(query, query_tokens=tokens), name="opposite heads")


@cache
def usual(**changes):
    return synthetic(Settings(**changes))


@cache
def with_one_number_changed():
    """(the defaults' Trace, the same with 1 added to number 100 of token 5 of item 1, a layer whose heads read slices on both)."""
    trace = usual(padding=())
    query = trace.batch.query.copy()
    query[1, 5, 100] += 1
    return trace, attend(trace.layer, Batch(query))


def sliced(query, layer):
    """[N, H, L, L]: the weights of a wrong layer whose head h reads numbers h·D to (h + 1)·D of each token and nothing else."""
    N, L, E = query.shape
    H, D = layer.num_heads, layer.head_dim
    slices = query.reshape(N, L, H, D).swapaxes(1, 2)  # [N, H, L, D]
    Wq, Wk, _ = (weight.reshape(H, D, E) for weight in layer.projections)  # [H, D, E]
    own = np.stack([np.stack([W[h, :, h * D : (h + 1) * D] for h in range(H)]) for W in (Wq, Wk)])  # [2, H, D, D]
    q, k = (np.einsum("nhld,hed->nhle", slices, W) for W in own)  # [N, H, L, D] each
    scores = q @ k.swapaxes(-1, -2) / np.sqrt(D)  # [N, H, L, L]
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)


def loss_and_gradients(settings):
    """(mean square of the real outputs, how many in-projection and out-projection weight gradients are NaN) of PyTorch's own layer."""
    import torch
    from torch import nn

    trace = synthetic(settings)
    layer = nn.MultiheadAttention(settings.embed_dim, settings.num_heads, batch_first=True)
    layer.load_state_dict({name: torch.tensor(array) for name, array in trace.layer.weights.items()})
    x = torch.tensor(trace.batch.query)
    real = torch.tensor(~trace.query_padding)  # [N, L]
    later = torch.ones(settings.L, settings.L, dtype=torch.bool).triu(1)
    output, _ = layer(x, x, x, key_padding_mask=~real, attn_mask=later)
    loss = output[real].square().mean()
    loss.backward()
    return loss.item(), *(int(weight.grad.isnan().sum()) for weight in (layer.in_proj_weight, layer.out_proj.weight))


# What the lessons measure


def opposite_numbers():
    trace = opposite_heads()
    high, low = trace.weights.max(), trace.weights.min()
    from_average = np.abs(trace.mean_weights @ trace.v[:, 0]).max()
    return {
        "high": high, "low": low, "average": trace.mean_weights[0, 0, 0], "spread": np.ptp(trace.mean_weights),
        "output": np.abs(trace.output).max(), "from_average": from_average,
    }  # fmt: skip


def both_ways(heads):
    return trained(Trained(f"look-both-ways-{heads}")).recording.traces[0]


def both_ways_numbers():
    found = {}
    for heads in (1, 2, 32):
        scores = record(f"look-both-ways-{heads}")["final"]["accuracy"]
        found |= {f"before{heads}": scores["before"], f"after{heads}": scores["after"]}
    gap = np.abs(both_ways(1).mean_weights - both_ways(2).mean_weights)[:, 1:-1].mean()
    return found | {"gap": gap, "parameters": record("look-both-ways-1")["parameters"]}


def dead_numbers():
    right, left = (Settings(causal=True, padding_side=side) for side in ("right", "left"))
    loss_right, *fine = loss_and_gradients(right)
    loss_left, in_nan, out_nan = loss_and_gradients(left)
    undefined = synthetic(left).undefined
    return {
        "right": loss_right, "left": loss_left, "rows": int(undefined.sum()), "none": int(synthetic(right).undefined.sum()),
        "in_nan": in_nan, "out_nan": out_nan, "fine": sum(fine),
    }  # fmt: skip


def slice_numbers():
    before, after = with_one_number_changed()
    moved = np.abs(after.weights - before.weights)[1].max(axis=(1, 2))  # [H]
    queries = before.batch.query, after.batch.query
    wrong = np.abs(np.subtract(*(sliced(query, before.layer) for query in queries)))[1].max(axis=(1, 2))  # [H]
    only = np.flatnonzero(wrong > 1e-6)
    return {"moved": int((moved > 1e-6).sum()), "least": moved.min(), "most": moved.max(), "only": only[0], "count": len(only)}


SAME = "the cat saw the cat and the cat ran"


def same_words_numbers():
    without, having = (usual(words=SAME, padding=(), positions=positions) for positions in (False, True))
    rows = [i for i, word in enumerate(without.query_tokens[0]) if word == "cat"]
    apart = [np.ptp(trace.weights[0][:, rows], axis=1).max() for trace in (without, having)]
    return {"count": len(rows), "without": apart[0], "having": apart[1]}


def unmasked():
    trace = usual()
    return attend(trace.layer, replace(trace.batch, key_padding_mask=None, query_padding_mask=trace.batch.query_padding_mask))


def leak_numbers():
    masked, leaking = usual(), unmasked()
    pads, real = masked.query_padding[0], real_queries(masked, 0)
    return {
        "leak": leaking.weights[0][:, real][:, :, pads].sum(axis=-1).mean(), "masked": masked.weights[0][:, real][:, :, pads].sum(),
        "pads": int(pads.sum()), "length": len(pads), "moved": np.abs(leaking.output[0][real] - masked.output[0][real]).max(),
    }  # fmt: skip


def dropout_numbers():
    trace = usual(training=True, padding=())
    sums = trace.weights.sum(axis=-1, dtype=np.float64)  # [N, H, L]
    return {
        "off": int((np.abs(sums - 1) > 1e-5).sum()), "rows": sums.size, "least": sums.min(), "most": sums.max(),
        "dropped": trace.dropped.mean(), "eval": np.abs(usual(padding=()).weights.sum(axis=-1) - 1).max(),
    }  # fmt: skip


def induction(snapshot=None):
    return trained(Trained("induction", snapshot)).recording.traces[1]


def forming_numbers():
    snapshots = record("induction")["snapshots"]
    learns = next(one for one in snapshots if one["accuracy"]["next"] > 0.5)
    before = [one for one in snapshots if one["step"] < learns["step"]][-1]
    role = {name: max(one["roles"]["induction"][1]) for name, one in (("first", snapshots[0]), ("last", snapshots[-1]))}
    without, off = accuracy(Trained("induction", interventions="0:1=zero"))
    return {
        "step": learns["step"], "before": before["step"], "accuracy": learns["accuracy"]["next"], "was": before["accuracy"]["next"],
        **role, "whole": without.accuracy["next"], "off": off.accuracy["next"],
    }  # fmt: skip


def order_traces():
    return trained(Trained("reverse-or-shift", batch_size=16)).recording.traces


def first_token_numbers():
    first = np.stack([statistic(order_traces()[0], item, "first") for item in range(16)]).mean(axis=0)  # [H]
    without, off = accuracy(Trained("reverse-or-shift", interventions="0:keys=0"))
    chance = 1 / (order_traces()[0].weights.shape[3])
    return {
        "head": int(first.argmax()), "weight": first.max(), "even": chance, "whole": without.accuracy["answer"],
        "masked": off.accuracy["answer"],
    }  # fmt: skip


def decimal_numbers():
    trace = usual(padding=())
    right = attend(trace.layer, trace.batch, dtype="float64").weights
    off = {
        dtype: np.abs(attend(trace.layer, trace.batch, dtype=dtype).weights - right).max()
        for dtype in ("float32", "float16", "bfloat16")
    }
    return off | {"largest": right.max()}


def many_heads_numbers():
    found = {f"h{H}": statistic(usual(num_heads=H, padding=()), 0, "difference").mean() for H in (2, 8, 64)}
    return {name: 100 * value for name, value in found.items()} | {
        "d2": 128 // 2, "d8": 128 // 8, "d64": 128 // 64, "both32": record("look-both-ways-32")["final"]["accuracy"]["before"],
    }  # fmt: skip


def causal_numbers():
    free, causal = usual(padding=()), usual(padding=(), causal=True)
    later = np.triu(np.ones((20, 20)), 1)
    return {
        "later": (free.weights * later).sum(axis=-1).mean(), "causal": (causal.weights * later).sum(),
        "first": causal.weights[0, :, 0, 0].min(), "last": np.abs(causal.weights[0, :, -1] - free.weights[0, :, -1]).max(),
    }  # fmt: skip


def kinds_numbers():
    found = {name: relationship(name) for name in RELATIONSHIPS}
    numbers = {f"{name}_{what}": value for name, one in found.items() for what, value in vars(one).items()}
    return numbers | {"count": next(iter(found.values())).count}


def kinds_traces():
    return (read("syntactic", 2).traces[relationship("syntactic").layer],)


def hides_numbers():
    hidden = what_average_hides(usual(), 0)
    return {"head": hidden.head, "query": hidden.query, "key": hidden.key, "weight": hidden.weight, "average": hidden.average}


def place(**fields):
    return tuple(fields.items())


LESSONS = {
    "nothing": Lesson(
        "The average that does nothing",
        "Two heads over tokens that are + or −. Each head's map is striped; look at the average beside them.",
        "The average of the two heads is the same everywhere. Does this layer do nothing?",
        "No. A head weighs tokens {high:.6f} or {low:.6f}, the other the reverse; their average is {average:.3f} in every cell (it "
        "varies by {spread:.1g}). The layer's output reaches ±{output:.4f}. From the average it would be {from_average:.1g}: nothing.",
        opposite_numbers, lambda: (opposite_heads(),),
    ),
    "hides": Lesson(
        "What the average hides",
        "Eight heads of the tutorial's layer, and their average at the right. Look for the darkest cell of the chosen head.",
        "How much of that weight is left in the average?",
        "Head {head} gives key {key} a weight of {weight:.2f} when query {query} asks; the average says {average:.2f}. Seven others dilute it.",
        hides_numbers, lambda: (usual(),), page="explore",
    ),
    "both-ways": Lesson(
        "One head cannot look both ways",
        "Two trained models that must report the token before and the token after. A has one head, B two; below, their averages.",
        "The averages are nearly alike. Which one belongs to the model that fails?",
        "They differ by {gap:.4f} a cell, and tell nothing. One head answers {before1:.2f} and {after1:.2f} right; two heads {before2:.2f} "
        "and {after2:.2f}; 32 heads of one number each {before32:.2f} and {after32:.2f}. All three have {parameters:,} parameters.",
        both_ways_numbers, lambda: (both_ways(1), both_ways(2)), page="models", address=place(model="look-both-ways-2"),
    ),
    "dead": Lesson(
        "Loss 0.0357, model dead",
        "Causal attention, and the first three tokens of item 0 are padding. Their rows are undefined.",
        "The loss over the real tokens is finite and looks as before. May training go on?",
        "No. Padded right, nothing is undefined ({none} rows), the loss is {right:.4f} and {fine} gradients are NaN. Padded left, {rows} rows "
        "are undefined, the loss is {left:.4f}, and {in_nan:,} in-projection and {out_nan:,} out-projection gradients are NaN: all of them.",
        dead_numbers, lambda: (usual(causal=True, padding_side="left"),), page="explore",
        address=place(causal="1", padding_side="left"),
    ),
    "slice": Lesson(
        "A head does not read a slice",
        "A and B are the same layer; in B, 1 was added to number 100 of one token (of 128). B − A shows which maps moved.",
        "128 = 8 heads × 16. Which of the eight heads notice?",
        "All {moved}: each head projects the whole token (changes from {least:.4f} to {most:.4f}). In a layer that wrongly gave each head its "
        "own 16 numbers, {count} head would: head {only}.",
        slice_numbers, with_one_number_changed, View(item=1),
    ),
    "positions": Lesson(
        "The same word twice",
        "“cat” stands three times in the sentence. A has no positions, B has. Compare the rows of “cat”.",
        "Without positions, in what do the three rows of “cat” differ?",
        "In nothing: the {count} rows are equal to {without:.1g}. With positions they differ by up to {having:.3f}.",
        same_words_numbers, lambda: tuple(usual(words=SAME, padding=(), positions=p) for p in (False, True)),
        page="explore", address=place(words=SAME, padding="", positions="1"),
    ),
    "leak": Lesson(
        "Padding that leaks",
        "A is without a padding mask, B with one. The last three tokens are padding.",
        "How much of its weight does a real token spend on padding when nobody masks it?",
        "{leak:.1%} on average: {pads} of {length} tokens get their share. Masked it is exactly {masked:g}. The outputs of real tokens differ "
        "by up to {moved:.3f}: pad length changes answers.",
        leak_numbers, lambda: (unmasked(), usual()), page="explore",
    ),
    "dropout": Lesson(
        "Dropout in the weights",
        "The layer in train mode. Some cells that should hold weight are 0.",
        "Do the rows still sum to 1?",
        "{off} of {rows} rows do not: they sum to between {least:.2f} and {most:.2f}, since {dropped:.0%} of the weights are dropped and the "
        "others grow. In eval mode all do, to {eval:.1g}. Read weights in eval mode.",
        dropout_numbers, lambda: (usual(training=True, padding=()),), page="explore", address=place(training="1", padding=""),
    ),
    "forming": Lesson(
        "An induction head forming",
        "Layer 1 of a trained model: A before it had learnt anything, B at the end. Look for the stripe.",
        "Does the model get better step by step, or at once?",
        "Nearly at once: after {before} steps {was:.2f} of its answers are right, after {step} steps {accuracy:.2f}. The best head's weight where it "
        "should read goes from {first:.2f} to {last:.2f}. It needs a head in the layer below: with head 0·1 off, {whole:.2f} becomes {off:.2f}.",
        forming_numbers, lambda: (induction(0), induction()), page="models", address=place(layer="1"),
    ),
    "first": Lesson(
        "A sink, or an order",
        "Layer 0 of the model that reverses or shifts. Look at the first column.",
        "Heads rest on the first token. Is that weight that has nowhere else to go?",
        "Not here. Head {head} puts {weight:.0%} on it, where all alike would be {even:.0%}: the first token says what to do. Mask it in layer "
        "0, and accuracy goes from {whole:.2f} to {masked:.2f}. A map alone does not say why a head looks somewhere: change it and see.",
        first_token_numbers, lambda: order_traces()[:1], page="models", address=place(model="reverse-or-shift"),
    ),
    "decimal": Lesson(
        "What the fourth decimal is for",
        "The tutorial's layer. Point at a cell: six decimals.",
        "How many of them mean anything in float32, in float16, in bfloat16?",
        "The largest weight is {largest:.3f}. Against float64, float32 is off by {float32:.1g}, float16 by {float16:.1g}, bfloat16 by "
        "{bfloat16:.1g}: six decimals, three, two. Compare to the tolerance of the type.",
        decimal_numbers, lambda: (usual(padding=()),), page="explore", address=place(padding=""),
    ),
    "many": Lesson(
        "Many heads, few dimensions",
        "64 heads of two numbers each, untrained. Are they more different from each other than eight heads of sixteen?",
        "Does a layer with more heads see more?",
        "Not by itself. Untrained heads differ from their average by {h2:.1f} % with 2 heads of {d2}, {h8:.1f} % with 8 of {d8}, {h64:.1f} % "
        "with 64 of {d64}: by chance, and hardly more. Trained on a task that needs sharp looks, 32 heads of one number reach {both32:.2f}.",
        many_heads_numbers, lambda: (usual(num_heads=64, padding=()),), page="explore", address=place(num_heads="64", padding=""),
    ),
    "causal": Lesson(
        "Causal, and not",
        "A sees all, B its past only. Compare the first row and the last.",
        "Which row does the causal mask leave as it was?",
        "The last: it differs by {last:.1g}. Without the mask {later:.0%} of the weight lies on later tokens, with it {causal:g}. The first row "
        "sees itself alone: weight {first:g}, whatever was learnt.",
        causal_numbers, lambda: (usual(padding=()), usual(padding=(), causal=True)), page="explore",
        address=place(padding="", causal="1"),
    ),
    "kinds": Lesson(
        "Three kinds of relationship",
        "MiniLM, a model of real text, reads “the … dog chased the … cat”. One head of this layer goes from the object to its verb.",
        "Heads are said to learn position, syntax and meaning. Do these?",
        "Over {count} sentences that had no part in the choice: position, layer {positional_layer} head {positional_head} puts {positional_score:.2f} on the word "
        "before (on another word {positional_shuffled:.2f}). Syntax, layer {syntactic_layer} head {syntactic_head} puts {syntactic_score:.2f} on the verb whose object asks "
        "({syntactic_shuffled:.2f}). Meaning, layer {semantic_layer} head {semantic_head} puts {semantic_score:.2f} on the noun of the same kind ({semantic_shuffled:.2f}). "
        "These are sentences from a template: try text of your own.",
        kinds_numbers, kinds_traces, page="models", address=place(source="pretrained"),
    ),
}  # fmt: skip
