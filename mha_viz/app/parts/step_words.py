"""What each step is called, what happens in it, its formula in the tutorial's notation, and what the symbols stand for."""

import math

from mha_viz.analysis.walkthrough import by_root, dropout_of
from mha_viz.core.cells import word
from mha_viz.settings import STEPS

OF_KEY = ("keys", "dot", "scale", "mask", "softmax", "dropout")  # their numbers are a key's as well
OF_HEAD = ("query", "values", *OF_KEY)
SHORT = {
    "input": "X",
    "configure": "W",
    "query": "q",
    "keys": "k",
    "dot": "q · k",
    "scale": "/ √D",
    "mask": "mask",
    "softmax": "softmax",
    "dropout": "dropout",
    "values": "Σ v",
    "concat": "Concat",
    "project": "project",
    "output": "output",
    "validate": "checks",
}
STAGES = tuple(dict.fromkeys(stage for stage, _ in STEPS.values()))  # the tutorial's five


def told(step, walked, trace):
    """A sentence or two: what happens in this step, on this input."""
    D, E, H = head_dim(trace), embed_dim(trace), trace.weights.shape[1]
    hidden = trace.mask[walked.item, walked.shown, walked.query]
    names = trace.key_tokens[walked.item][trace.num_positions :]
    by = f"A sum of {D} products grows with √{D}; divided by it, scores keep their spread whatever the head's size."
    if trace.scale is not None and not by_root(trace):
        by = f"This model multiplies by {trace.scale:.4g}, and not by 1 / √{D}."
    projected = (
        "" if trace.layer is not None else " As the model made it: after its projection, and turned where it turns by position."
    )
    extra = f" The last of them, {' and '.join(names)}, are made of no token and always seen." if names else ""
    return {
        "input": "Token representations shared across all heads: every head reads the whole row, none reads a slice of it.",
        "configure": f"E has to be divisible by H: {E} = {H} × {D}. A head owns D columns of each projection, and reads all E numbers of a "
        "token through them. Below: what was drawn or loaded, before any token is read.",
        "query": "The followed token is projected: what it asks. Each head has a projection of its own, and so asks something else."
        f"{projected}",
        "keys": f"Every token is projected another way: what it offers. Nothing is compared yet.{extra}{projected}",
        "dot": "One number for each key: the products of q and k, dimension by dimension, summed. Large where both point the same way.",
        "scale": by,
        "mask": f"{hidden.sum()} of {len(hidden)} keys are hidden from this query: −∞ takes the place of their score."
        if hidden.any()
        else "Nothing is hidden from this query: its scores stay as they are. Set padding or causal in the sidebar to see it.",
        "softmax": "The weights as they were given: their row for this query, in this head and on average over all. A head may look where "
        "the average does not."
        if not trace.has("q")
        else "No key is left: −∞ − (−∞) is undefined, and so is everything after it."
        if hidden.all()
        else "A score of this row is not finite. No mask made that, and it makes the whole row NaN."
        if trace.nonfinite[walked.item, walked.shown, walked.query]
        else "The largest score is subtracted, so that no exponential overflows; then each is divided by their sum.",
        "dropout": f"In training, each weight is set to 0 with probability p = {dropout_of(trace):g}, the others are divided by 1 − p.",
        "values": "Every token is projected a third way: what it gives. The weights say how much of it the query takes.",
        "concat": "The heads' rows side by side, head 0 first. Nothing is mixed yet: the numbers are those of the step before.",
        "project": "Each head meets its own D rows of the output projection, and the results are added: to concatenate and mix is to sum "
        "over heads. "
        "An average of the weights, put in place of the heads, would not give this row.",
        "output": "A representation combining what all heads found: as wide as the token that came in, at the same place.",
        "validate": "What has to hold of this query, whatever the numbers are.",
    }[step]


def formulas(step, walked, trace):
    """LaTeX: the formula of the step; and where there is one, the same with numbers: those of the followed query and, where a key is
    meant, key, in the head that is followed, or of all of them the chosen one. Of a long vector the first and the last are told."""
    i, j, h, D, E = walked.query, walked.key, walked.shown, head_dim(trace), embed_dim(trace)
    made = trace.layer is not None
    bias = made and "in_proj_bias" in trace.layer.weights
    y = "y" if is_cross(trace) else "x"
    own = r"h" if walked.head is None else str(h)
    plus = {letter: rf" + b^{letter}_{{{own}}}" if bias else "" for letter in "QKV"}
    weight = _at(walked, "softmax", -1)
    if not trace.has("q"):
        average = _tex(_at(walked, "softmax", 0))
        known = [
            r"a_{ij} \qquad \bar{a}_{ij} = \frac{1}{H} \sum_h a^{(h)}_{ij}",
            rf"a_{{{i},{j}}} = {_tex(weight)} \qquad \bar{{a}}_{{{i},{j}}} = {average}",
        ]
        return {"softmax": known, "validate": [r"\sum_j a_{ij} = 1", ""]}[step]
    gone = bool(trace.undefined[walked.item, walked.shown, walked.query])
    lost = bool(trace.undefined[walked.item, :, walked.query].any())
    dot, score, masked, raised = (_at(walked, *place) for place in (("dot", -1), ("scale", -1), ("mask", -1), ("softmax", 1)))
    root = by_root(trace)
    k_named = rf"k_{{{j}}}"
    return {
        "input": [
            r"X = \begin{pmatrix} x_0 \\ \vdots \\ x_{L-1} \end{pmatrix} \in \mathbb{R}^{L \times E}",
            _vector(rf"x_{{{i}}}", walked, "input", 0),
        ],
        "configure": [
            r"\mathrm{MHA}(X) = \mathrm{Concat}(\mathrm{head}_0, \ldots, \mathrm{head}_{H-1})\, W^O \qquad E = H \cdot D",
            rf"{E} = {trace.weights.shape[1]} \cdot {D} \qquad W^Q_h, W^K_h, W^V_h \in \mathbb{{R}}^{{E \times D}}",
        ],
        "query": [
            rf"q_i = x_i\, W^Q_{{{own}}}{plus['Q']}" if made else r"q_i \in \mathbb{R}^D",
            _vector(rf"q_{{{i}}}", walked, "query", -1),
        ],
        "keys": [
            (rf"k_j = {y}_j\, W^K_{{{own}}}{plus['K']}" if made else r"k_j \in \mathbb{R}^D") + r" \qquad j = 0, \ldots, S - 1",
            _key_vector(k_named, walked, trace),
        ],
        "dot": [r"q_i \cdot k_j = \sum_{d=0}^{D-1} q_{i,d}\, k_{j,d}", _products(walked, trace, dot)],
        "scale": [
            r"s_{ij} = \frac{q_i \cdot k_j}{\sqrt{D}}" if root else r"s_{ij} = c \; q_i \cdot k_j",
            rf"s_{{{i},{j}}} = \frac{{{_tex(dot)}}}{{\sqrt{{{D}}}}} = {_tex(score)}"
            if root
            else rf"s_{{{i},{j}}} = {_tex(trace.scale)} \cdot {_bracketed(dot)} = {_tex(score)}",
        ],
        "mask": [
            r"s_{ij} + m_{ij} \qquad m_{ij} = -\infty \text{ where query } i \text{ may not attend to key } j",
            _mask(walked, score, masked),
        ],
        "softmax": [
            r"a_{ij} = \frac{e^{\,s_{ij} - \max_{j'} s_{ij'}}}{\sum_{j'} e^{\,s_{ij'} - \max s_i}}",
            rf"a_{{{i},{j}}} = \frac{{{_tex(raised, gone)}}}{{{_tex(_sum(walked), gone)}}} = {_tex(weight, gone)}",
        ],
        "dropout": [
            r"a'_{ij} = \begin{cases} 0 & \text{with probability } p \\ a_{ij} / (1 - p) & \text{else} \end{cases}",
            rf"a'_{{{i},{j}}} = {_tex(_at(walked, 'dropout', -1), gone)}" if "dropout" in walked.steps else "",
        ],
        "values": [
            (rf"v_j = {y}_j\, W^V_{{{own}}}{plus['V']} \qquad " if made else "")
            + rf"\mathrm{{head}}_{{{own}}} = \sum_j a_{{ij}}\, v_j",
            _vector(rf"\mathrm{{head}}_{{{h}}}", walked, "values", -1, gone),
        ],
        "concat": [r"\mathrm{Concat}(\mathrm{head}_0, \ldots, \mathrm{head}_{H-1}) \in \mathbb{R}^{H \cdot D}", ""],
        "project": [
            r"\mathrm{Concat}(\mathrm{head}_0, \ldots, \mathrm{head}_{H-1})\, W^O + b^O = \sum_h \mathrm{head}_h\, W^O_h + b^O",
            _sum_of_parts(walked, trace),
        ],
        "output": [
            r"\mathrm{MHA}(X)_i = \mathrm{Concat}(\mathrm{head}_0, \ldots, \mathrm{head}_{H-1})\, W^O + b^O",
            _vector(rf"\mathrm{{MHA}}(X)_{{{i}}}", walked, "output", -1, lost),
        ],
        "validate": [
            r"\sum_j a_{ij} = 1 \qquad a_{ij} = 0 \text{ where hidden} \qquad \mathrm{MHA}(X) \in \mathbb{R}^{L \times E}",
            "",
        ],
    }[step]


def symbols(step, trace):
    """(symbol as LaTeX, what it is, its shape) of what the formula of this step says."""
    N, H, L, S = trace.weights.shape
    D, E, made = head_dim(trace), embed_dim(trace), trace.layer is not None
    kdim, vdim = (trace.layer.kdim, trace.layer.vdim) if made else (E, E)
    key = {
        "X": ("X", "token representations of a batch item; $x_i$ is one row", f"[L {L}, E {E}]"),
        "Y": ("y_j", "token j of the source: cross-attention", f"[kdim {kdim}]"),
        "E": ("E", "numbers per token, embed_dim", str(E)),
        "H": ("H", "heads, num_heads; counted from 0, where the paper counts from 1", str(H)),
        "D": ("D", "numbers per head, head_dim = E / H" if made else "numbers per head, head_dim", str(D)),
        "L": ("L,\\, S", "queries and keys", f"{L}, {S}"),
        "i": ("i,\\, j", "the followed query, and a key", ""),
        "W": ("W^Q_h, W^K_h, W^V_h", "projections of head h: D columns of each", f"[E {E}, D {D}]"),
        "WQ": ("W^Q_h", "query projection of head h", f"[E {E}, D {D}]"),
        "WK": ("W^K_h", "key projection of head h", f"[kdim {kdim}, D {D}]"),
        "WV": ("W^V_h", "value projection of head h", f"[vdim {vdim}, D {D}]"),
        "b": ("b", "bias of a projection", f"[D {D}]"),
        "q": ("q_i", "query: what token i asks", f"[D {D}]"),
        "k": ("k_j", "key: what token j offers", f"[D {D}]"),
        "v": ("v_j", "value: what token j gives", f"[D {D}]"),
        "s": ("s_{ij}", "score", f"[N {N}, H {H}, L {L}, S {S}]"),
        "m": ("m_{ij}", "mask: 0 where j may be read", f"[L {L}, S {S}]"),
        "a": ("a_{ij}", "attention weight", f"[N {N}, H {H}, L {L}, S {S}]"),
        "average": ("\\bar{a}_{ij}", "the heads' average", f"[N {N}, L {L}, S {S}]"),
        "head": ("\\mathrm{head}_h", "what head h makes of query i", f"[D {D}]"),
        "WO": ("W^O", "output projection", f"[H·D {H * (D or 0)}, E {E}]"),
        "WOh": ("W^O_h", "the D rows of it that meet head h", f"[D {D}, E {E}]"),
        "bO": ("b^O", "its bias", f"[E {E}]"),
        "MHA": ("\\mathrm{MHA}(X)", "the layer's output", f"[L {L}, E {E}]"),
        "p": ("p", "dropout", f"{dropout_of(trace):g}"),
    }
    wanted = {
        "input": "X L E",
        "configure": "E H D W WO",
        "query": "q X WQ b D",
        "keys": "k Y WK b D",
        "dot": "q k D i",
        "scale": "s q k D",
        "mask": "s m i",
        "softmax": "a s i",
        "dropout": "a p",
        "values": "head a v Y WV",
        "concat": "head H D",
        "project": "head WO WOh bO",
        "output": "MHA WO bO",
        "validate": "a MHA i",
    }[step].split()
    absent = set() if is_cross(trace) else {"Y"}
    absent |= set() if trace.out_proj is not None and trace.out_proj[1] is not None else {"b", "bO"}
    absent |= set() if made else {"X", "WQ", "WK", "WV", "b"}
    if not trace.has("q"):
        return [key[name] for name in ("a", "average", "i")]
    return [key[name] for name in wanted if name not in absent]


def head_dim(trace):
    """Numbers per head; None where only the weights are known."""
    return trace.q.shape[3] if trace.has("q") else None


def embed_dim(trace):
    """Numbers per token; None where neither the layer nor its output projection is known."""
    return None if trace.out_proj is None else len(trace.out_proj[0])


def is_cross(trace):
    return trace.batch is not None and trace.batch.key is not None


def _at(walked, step, which):
    """The number at the followed key in the ``which``-th tensor of a step, in the head that worked numbers are given for."""
    one = walked.tensors[step][which]
    return float(one.values[one.row or 0, walked.key])


def _sum(walked):
    one = walked.tensors["softmax"][1]
    return float(one.values[one.row or 0].sum())


def _tex(value, undefined=False):
    """A number: three decimals, four digits where it is small or large; whole ones without. NaN is "undefined" where no key is left."""
    if math.isnan(value):
        return rf"\text{{{word(value, undefined)}}}"
    if math.isinf(value):
        return r"\infty" if value > 0 else r"-\infty"
    if value == round(value) and abs(value) < 1e4:
        return str(round(value))
    if 0.1 <= abs(value) < 1e4:
        return f"{value:.3f}"
    if 1e-4 <= abs(value) < 0.1:
        return f"{value:.5f}"
    digits, power = f"{value:.3e}".split("e")
    return rf"{digits} \cdot 10^{{{int(power)}}}"


def _vector(name, walked, step, which, undefined=False):
    if step not in walked.steps:
        return ""
    one = walked.tensors[step][which]
    return _numbers(name, one.values[one.row or 0], undefined)


def _key_vector(name, walked, trace):
    return _numbers(name, trace.k[walked.item, walked.shown, walked.key])


def _numbers(name, row, undefined=False):
    """The vector with its first numbers, all of a short one."""
    values = [_tex(float(value), undefined) for value in (row if len(row) <= 5 else row[:3])]
    rest = [] if len(row) <= 5 else [r"\ldots", _tex(float(row[-1]), undefined)]
    listed = r",\; ".join([*values, *rest])
    return f"{name} = ({listed})"


def _products(walked, trace, dot):
    q, k = trace.q[walked.item, walked.shown, walked.query], trace.k[walked.item, walked.shown, walked.key]
    pairs = [rf"{_bracketed(a)} \cdot {_bracketed(b)}" for a, b in zip(q, k, strict=True)]
    shown = pairs if len(pairs) <= 4 else [pairs[0], r"\ldots", pairs[-1]]
    return rf"q_{{{walked.query}}} \cdot k_{{{walked.key}}} = {' + '.join(shown)} = {_tex(dot)}"


def _bracketed(value, undefined=False):
    return f"({_tex(float(value))})" if value < 0 else _tex(float(value), undefined)


def _mask(walked, score, masked):
    added = rf"{_tex(score)} + ({_tex(masked - score)})" if masked != score else rf"{_tex(score)} + 0"
    return rf"s_{{{walked.query},{walked.key}}} + m_{{{walked.query},{walked.key}}} = {added} = {_tex(masked)}"


def _sum_of_parts(walked, trace):
    """The first number of the output, as a sum over the heads and the bias."""
    if "project" not in walked.steps:
        return ""
    parts, output = walked.tensors["project"]
    values = [_bracketed(value, parts.alone(row)) for row, value in enumerate(parts.values[:, 0])]
    shown = values if len(values) <= 4 else [*values[:2], r"\ldots", values[-1]]
    return (
        rf"\mathrm{{output}}_{{{walked.query}, 0}} = {' + '.join(shown)} = {_tex(float(output.values[0, 0]), output.alone(0))}"
    )
