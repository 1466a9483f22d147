"""One query followed through a layer, step by step: every tensor that a step takes or makes, by name and with its axes named."""

from dataclasses import dataclass

import numpy as np

from mha_viz.settings.steps import STEPS


@dataclass(frozen=True, eq=False)
class Axis:
    """One axis of a Tensor: its ``letter`` in shapes ("S", "H·D"), and what a place on it ``stands_for`` ("key").

    ``names`` are the tokens along it, None where places are only numbered; ``block`` is the head_dim where heads stand side by side.
    """

    letter: str
    stands_for: str
    names: tuple[str, ...] | None = None
    block: int | None = None


@dataclass(frozen=True, eq=False)
class Tensor:
    """What is drawn of one tensor: ``values`` [rows, columns], with a row of 1 for a vector.

    ``symbol`` is what formulas and programs call it, ``words`` what it is. ``axes`` name rows and columns; of a vector the first is
    None. ``shape`` are the axes of the whole tensor that this is a part of, by letter, as they are in memory. ``kind`` is "signed" for
    numbers around zero and "weight" for those from zero up. ``hidden`` [rows, columns] is True where a mask hides, None where there
    is none. ``row`` and ``column`` are the places that are followed, ``columns`` a range of them.
    """

    symbol: str
    words: str
    values: np.ndarray
    axes: tuple[Axis | None, Axis]
    shape: dict
    kind: str = "signed"
    hidden: np.ndarray | None = None
    row: int | None = None
    column: int | None = None
    columns: tuple[int, int] | None = None


@dataclass(frozen=True, eq=False)
class Check:
    """Something that has to hold of the followed query: what was compared, the ``figure``, the ``limit`` that it keeps, and whether it
    does; ``holds`` is None where there is nothing to check, and ``words`` say why."""

    name: str
    words: str
    figure: float | None
    limit: float | None
    holds: bool | None


@dataclass(frozen=True, eq=False)
class Walk:
    """One query of one batch item on its way: ``tensors`` by step, the last of each step the one that it makes.

    ``head`` is followed, or all heads where it is None. ``key`` is the one that worked numbers are given for, and where all heads
    are followed they are head ``shown``'s.
    """

    item: int
    head: int | None
    query: int
    key: int
    shown: int
    tensors: dict
    checks: tuple[Check, ...]

    @property
    def steps(self):
        """The names of the steps that this call has, in order: dropout only where it falls."""
        return tuple(name for name in STEPS if name in self.tensors)


def walk(trace, item, head, query, key, shown=0):
    """The Walk of ``query`` to the output, through one ``head`` or, where that is None, all of them.

    Everything that the Trace holds is shown as it holds it; what lies between (q · k before the scale, exponentials, what each key and
    each head brings) is made of it in float64. Vaswani et al., Attention Is All You Need, 2017, equation 1 and section 3.2.2. The
    Trace must know its layer and batch, and no head be off. IndexError beyond the Trace.
    """
    if head is not None:
        shown = head
    N, H, L, S = trace.weights.shape
    layer, batch, tensors = trace.layer, trace.batch, {}
    D, E = layer.head_dim, layer.embed_dim
    own = slice(shown * D, (shown + 1) * D)
    heads = slice(None) if head is None else slice(head, head + 1)  # H of them, or one
    rows = Axis("H", "head") if head is None else None
    keys, queries = (Axis("S", "key", trace.key_tokens[item]), Axis("L", "query", trace.query_tokens[item]))
    per_head, wide = Axis("D", "dimension"), Axis("H·D", "dimension", block=D)
    embed = Axis("E", "dimension")
    hidden = trace.mask[item, heads, query]  # [H|1, S]
    maps = {"axes": (rows, keys), "column": key, "row": shown if head is None else None}
    of_query = {"N": N, "H": H, "L": L, "D": D}
    of_key = {"N": N, "H": H, "S": S, "D": D}
    of_map = {"N": N, "H": H, "L": L, "S": S}

    def wide_or_one(array, letters, words, symbol, **more):
        """[S, D] of one head, or [S, H·D] with all heads side by side."""
        if head is not None:
            return Tensor(symbol, words, array[item, head], (keys, per_head), letters, row=key, **more)
        flat = array[item].swapaxes(0, 1).reshape(S, H * D)  # [S, H·D]
        return Tensor(symbol, f"{words}, heads side by side", flat, (keys, wide), letters, row=key, **more)

    x = batch.query[item]  # [L, E]
    tokens = Tensor("X", "the tokens of this batch item, one a row", x, (queries, embed), {"N": N, "L": L, "E": E}, row=query)
    one_token = Tensor("xᵢ", "the token that is followed", x[[query]], (None, embed), {"N": N, "L": L, "E": E})
    source = ()
    if batch.key is not None:
        read = Axis("S", "key", trace.key_tokens[item][: trace.num_positions])  # without the extra columns, which are no tokens
        width = Axis("kdim", "dimension")
        shape = {"N": N, "S": trace.num_positions, "kdim": layer.kdim}
        source = (Tensor("Y", "the source: keys are made of it", batch.key[item], (read, width), shape),)
    tensors["input"] = (one_token, *source, tokens)

    Wq, Wk, Wv = layer.projections  # [H·D, E|kdim|vdim] each
    columns = wide if head is None else per_head
    part = slice(None) if head is None else own
    whose = "of all heads" if head is None else f"of head {head}"
    tensors["configure"] = tuple(
        Tensor(
            f"W{letter}", f"{word} projection {whose}", weight[part].T, (Axis(name, "dimension"), columns),
            {name: weight.shape[1], columns.letter: weight[part].shape[0]},
        )
        for letter, word, weight, name in (
            ("ᵏ", "key", Wk, "E" if layer.kdim == E else "kdim"), ("ᵛ", "value", Wv, "E" if layer.vdim == E else "vdim"),
            ("ᑫ", "query", Wq, "E"),
        )
    )  # fmt: skip

    q = Tensor("q", "what this token asks", trace.q[item, heads, query], (rows, per_head), of_query, row=maps["row"])
    tensors["query"] = (one_token, q)
    tensors["keys"] = (wide_or_one(trace.k, of_key, "what each token offers", "K"),)
    dots = np.einsum("hd,hsd->hs", trace.q[item, heads, query].astype(np.float64), trace.k[item, heads].astype(np.float64))
    dot = Tensor("q · k", "how well each key answers", dots, shape=of_map, **maps)  # [H|1, S]
    tensors["dot"] = (q, wide_or_one(trace.k, of_key, "what each token offers", "K"), dot)
    score = Tensor("score", "q · k / √D", trace.scores[item, heads, query], shape=of_map, **maps)
    tensors["scale"] = (dot, score)

    added = None if trace.mask_bias is None else trace.mask_bias[item, heads, query].astype(np.float64)  # [H|1, S]
    summed = trace.scores[item, heads, query].astype(np.float64) + (0 if added is None else added)
    masked_values = np.where(hidden, -np.inf, summed)  # [H|1, S]
    masked = Tensor("score + mask", "−∞ where hidden", masked_values, shape=of_map, hidden=hidden, **maps)
    biases = () if added is None else (Tensor("mask", "what is added", added, shape=of_map, hidden=hidden, **maps),)
    tensors["mask"] = (score, *biases, masked)

    with np.errstate(invalid="ignore"):  # −∞ − (−∞), in a row without keys
        exponentials = np.exp(masked_values - masked_values.max(axis=1, keepdims=True))  # [H|1, S]
    weighs = {"shape": of_map, "kind": "weight", "hidden": hidden, **maps}
    raised = Tensor("exp(score − largest)", "before they are divided by their sum", exponentials, **weighs)
    probabilities = Tensor("weights", "they sum to 1", trace.probabilities[item, heads, query], **weighs)
    tensors["softmax"] = (masked, raised, probabilities)
    weights = probabilities
    if trace.dropped is not None:
        weights = Tensor("weights", "after dropout: they need not sum to 1", trace.weights[item, heads, query], **weighs)
        tensors["dropout"] = (probabilities, weights)

    V = wide_or_one(trace.v, of_key, "what each token gives", "V")
    outputs = trace.head_outputs[item, heads, query]  # [H|1, D]
    brought = Tensor("head", "weights @ V", outputs, (rows, per_head), of_query, row=maps["row"])
    tensors["values"] = (weights, V, brought)
    if head is not None:
        each = trace.weights[item, head, query].astype(np.float64)[:, None] * trace.v[item, head]  # [S, D]
        bring = Tensor(
            "weight × v", "what each key brings; its columns sum to the head", each, (keys, per_head), of_key, row=key
        )
        tensors["values"] = (weights, V, bring, brought)

    every = trace.head_outputs[item, :, query]  # [H, D]
    stacked = Tensor("head₁ … headₕ", "what each head made", every, (Axis("H", "head"), per_head), of_query, row=shown)
    place = None if head is None else (own.start, own.stop)
    beside = {"N": N, "L": L, "H·D": H * D}
    side_by_side = Tensor(
        "Concat", "the same numbers in one row", trace.concat[item, [query]], (None, wide), beside, columns=place
    )
    tensors["concat"] = (stacked, side_by_side)

    parts = head_parts(trace, item, query)  # [H + 1, E]
    names = (*(f"head {h}" for h in range(H)), *(["bias"] * (len(parts) - H)))
    of_output = {"N": N, "L": L, "E": E}
    sum_of = Tensor(
        "headₕ Wᴼₕ", "what each head brings, and the bias", parts, (Axis("H", "part", names), embed), of_output, row=head
    )
    output = Tensor("output", "their sum", trace.output[item, [query]], (None, embed), of_output)
    tensors["project"] = (sum_of, output)
    whole = Tensor("MHA(X)", "the output of this batch item", trace.output[item], (queries, embed), of_output, row=query)
    tensors["output"] = (one_token, whole, output)
    tensors["validate"] = ()
    order = {name: tensors[name] for name in STEPS if name in tensors}
    return Walk(item, head, query, key, shown, order, _checks(trace, item, query, parts))


def head_parts(trace, item, query):
    """[H, E], or [H + 1, E] with the bias of the output projection last: what each head brings to the output row of ``query``, in
    float64. Concat(head₁, …, headₕ) Wᴼ = Σ headₕ Wᴼₕ, with Wᴼₕ the D rows of Wᴼ that meet head h: to concatenate and mix is to sum."""
    weight, bias = trace.out_proj  # [E, H·D], [E] or None
    H, D = trace.head_outputs.shape[1], trace.head_outputs.shape[3]
    by_head = weight.astype(np.float64).reshape(len(weight), H, D)  # [E, H, D]
    parts = np.einsum("hd,ehd->he", trace.head_outputs[item, :, query].astype(np.float64), by_head)  # [H, E]
    return parts if bias is None else np.vstack([parts, bias])  # [H + 1, E]


def _checks(trace, item, query, parts):
    """What has to hold of this query: the tutorial's list, as far as one row shows it."""
    N, _, L, _ = trace.weights.shape
    found, wanted = trace.output.shape, (N, L, trace.layer.embed_dim)
    checks = [Check("shape", f"output {list(found)}, wanted [N, L, E] = {list(wanted)}", None, None, found == wanted)]
    finite = np.isfinite(trace.batch.query[item]).all()
    said = "no missing and no infinite value in X" if finite else "X holds missing or infinite values"
    checks.append(Check("input", said, None, None, bool(finite)))
    undefined = trace.undefined[item, :, query]  # [H]
    if undefined.any():
        words = f"no key is left in {undefined.sum()} heads: the row has no distribution and the output is undefined"
        return (*checks, Check("keys left", words, None, None, False))
    rows = trace.probabilities[item, :, query].astype(np.float64)  # [H, S]
    limit = 1e-5  # float32 over a few thousand keys
    off = float(np.abs(rows.sum(axis=1) - 1).max())
    words = "the weights before dropout and 1: how far their sum is from it, in the head where it is farthest"
    checks.append(Check("row sums", words, off, limit, off <= limit))
    hidden = trace.mask[item, :, query]
    if hidden.any():
        most = float(rows[hidden].max())
        checks.append(
            Check("padding and masks", f"the largest weight of {hidden.sum()} hidden cells, exactly 0", most, 0.0, most == 0)
        )
    else:
        checks.append(Check("padding and masks", "no key is hidden from this query: nothing to check", None, None, None))
    made, output = parts.sum(axis=0), trace.output[item, query]  # [E] each
    scale = max(float(np.abs(parts).max()), 1.0)
    gap = float(np.abs(made - output).max())
    words = "sum over heads + bias, made in float64, and the output: the largest difference of a number"
    checks.append(Check("output is a sum", words, gap, limit * scale, gap <= limit * scale))
    return tuple(checks)
