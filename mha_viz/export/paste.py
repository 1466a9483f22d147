"""What is shown as programs to paste: short, standalone, in PyTorch and NumPy, and as a test.

Each leaves ``weights`` [N, H, L, S] behind, as they are shown (of heads that are off, what was put there; by norms where the
View says so), their ``average`` [N, L, S], ``output`` [N, L, E] where it is known, and, unless the average alone is shown,
``shown_heads`` [heads, L, S] of the item: those that the view draws, in its order. Of a long sequence, of which a part or
blocks are on screen, all of that is whole, and the chosen cell is the one that the address names in its block, or the one in
the middle. Where another setting of the layer is pinned as A, programs compute that too, and leave ``change`` [N, H, L, S]
behind, B − A.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from textwrap import indent

from mha_viz.analysis.choice import Choice, place_of
from mha_viz.analysis.norms import SOFTMAX, by_norms
from mha_viz.core.memory import memory, readable_size
from mha_viz.core.rules import Wrong
from mha_viz.core.trace import Missing
from mha_viz.export.beginning import Language
from mha_viz.export.origins import WORDS, Need, NumPyOfSettings, OfFile, Origin, TorchOfSettings, Words
from mha_viz.export.pytest_case import case
from mha_viz.export.words import told_a
from mha_viz.sources.source import pinned
from mha_viz.views.base import view_of_attention
from mha_viz.views.shown import Shown


def program(shown: Shown, language: Language, view: str = "page") -> str:
    """The text of a program, "numpy" or "torch", of what the ``view`` of this name draws of a Shown.

    Raises Wrong of a long sequence that no seed draws.
    """
    if shown.sight is not None and not shown.source.kind.seeded:
        rule = "would read a file with every weight of a long sequence, and there is none: a recording holds what they are made of."
        raise Wrong("code", language, rule)
    origin, lines = computed(shown, language)
    words, a = WORDS[language], shown_a(shown)
    if a is None:
        return "\n".join([*opening(shown, origin, lines), *lines, "", *selected(shown, words, view), ""])
    origin_a, lines_a = computed(a, language)
    imports = used(together(origin_a.imports, origin.imports), [*lines_a, *lines])
    body = [f'"""The weights [N, H, L, S] of A, {told(shown.view.pinned or "")}."""', *lines_a, "return weights"]
    function = ["def compute_a():", indent("\n".join(body), "    ")]
    compared = [*selected(shown, words, view), *change(choice_of(shown), words)]
    before = [*size_told(shown), *imports, "", "", *function, "", "", "a_weights = compute_a()", ""]
    return "\n".join([*before, "# B, what is shown", *lines, "", *compared, ""])


def shown_a(shown: Shown) -> Shown | None:
    """The Shown of A where programs compute both: two settings of one layer of Explore whose weights are of one shape; else None."""
    if shown.a is None or shown.a.plain.shape != shown.trace.plain.shape:
        return None
    if shown.view.pinned is None or not shown.source.kind.seeded:
        return None
    source, view = pinned(shown.source, shown.view)
    return Shown(source, shown.a, replace(view, weighting=shown.view.weighting))


def change(c: Choice, words: Words) -> list[str]:
    """Lines that subtract A from B, and print that of the chosen cell and the largest."""
    cell = f"[{c.item}, {c.head}, {c.query}, {c.key}]"
    return [
        "change = weights - a_weights  # [N, H, L, S], B − A",
        f"largest = abs({words.xp}.nan_to_num(change[{c.item}])).max()  # of batch item {c.item}",
        f'print(f"in A: {{a_weights{cell}:.7f}}, B − A: {{change{cell}:+.7f}}, at most ±{{largest:.7f}}")',
    ]


def pytest_case(shown: Shown, view: str = "page") -> str:
    """The text of a test: the PyTorch program as its fixture, and what has to come out of it. Raises Wrong of a long sequence."""
    if shown.sight is not None:
        rule = "would hold a row of the whole maps and sums of all rows, and of a long sequence these are never made."
        raise Wrong("code", "pytest", rule, [{"code": "torch"}])
    origin, lines = computed(shown, "torch", with_hidden=True)
    return case(shown, choice_of(shown), opening(shown, origin, lines), lines, origin)


def choice_of(shown: Shown) -> Choice:
    """The Choice of what is shown, its cell by its place in the whole maps."""
    c = shown.choice
    query, key = place_of(shown.trace, shown.view, c)
    return replace(c, query=query, key=key)


def opening(shown: Shown, origin: Origin, lines: Sequence[str]) -> list[str]:
    """Comments and imports: of the latter those that the ``lines`` use."""
    compared = [f"# This is B of the comparison. {' '.join(told_a(shown).split())}".rstrip()] * (shown.a is not None)
    return [*compared, *size_told(shown), *origin.heading, *used(origin.imports, lines), ""]


def size_told(shown: Shown) -> list[str]:
    """A comment that says how much memory maps take of which a part or blocks are on screen."""
    if shown.sight is None:
        return []
    N, H, L, S = shown.trace.plain.shape
    size = readable_size(memory(N, H, L, S, H * shown.trace.plain.q.shape[3]))
    return [f"# Here the maps are whole, {L:,} × {S:,} in each head, and take {size}."]


def told(pinned: str) -> str:
    """What is pinned, as an address that stays in its line and its quotes."""
    return "?" + " ".join(pinned.replace("\\", "%5C").replace('"', "%22").split())


def used(imports: Sequence[str], lines: Sequence[str]) -> list[str]:
    """Of these ``imports`` those that the ``lines`` use."""
    body = "\n".join(lines)
    found = [line for line in imports if not line or f"{line.partition('  #')[0].split()[-1]}." in body]
    while found and not found[0]:
        del found[0]
    return found


def together(*imports: Sequence[str]) -> list[str]:
    """Several lists of imports as one, each line once, the standard library's first."""
    lines = sorted({line for some in imports for line in some if line}, key=lambda line: (line.startswith("from"), line))
    standard = [line for line in lines if line in ("import hashlib", "import math")]
    return [*standard, *[""] * bool(standard), *(line for line in lines if line not in standard)]


def computed(shown: Shown, language: Language, with_hidden: bool = False) -> tuple[Origin, list[str]]:
    """(the origin of the weights, the lines that compute what is shown); ``with_hidden`` leaves ``hidden`` behind where any key is."""
    of_settings = NumPyOfSettings if language == "numpy" else TorchOfSettings
    origin = of_settings(shown) if shown.source.kind.seeded else OfFile(shown, language)
    trace, words = shown.trace, WORDS[language]
    weighted, softmaxed = by_norms(trace), trace.quantity == SOFTMAX
    ways = {way: [head for head, how in trace.off if how == way] for way in ("mean", "uniform", "zero")}
    heads = origin.knows_values and (bool(trace.off) or not origin.computes_output)
    need = Need(values=heads or weighted, hidden=with_hidden or bool(ways["uniform"]), probabilities=weighted or softmaxed)
    lines = [*origin.lines(need), *["heads = weights @ V  # [N, H, L, D]"] * heads]
    lines += mean_lines(shown, ways["mean"], origin, words, heads) + uniform_lines(shown, ways["uniform"], origin, words, heads)
    lines += norm_lines(origin, words) if weighted else []
    if ways["zero"]:
        lines.append(
            f"weights[:, {ways['zero']}] *= 0  # what if: nothing of these heads arrives; NaN stays where no key is left"
        )
        lines += [f"heads[:, {ways['zero']}] *= 0"] * heads
    if heads and origin.out:
        lines += output_lines(*origin.out)
    lines += softmax_lines(origin) if softmaxed else []
    return origin, lines


def softmax_lines(origin: Origin) -> list[str]:
    """Lines that let ``weights`` be what the softmax gave; of maps alone, that is in the file beside them."""
    if isinstance(origin, OfFile) and origin.maps_alone:
        return [f"weights = {origin.read('probabilities')}  # [N, H, L, S], before they were changed"]
    return ["weights = probabilities  # [N, H, L, S], before dropout"]


def mean_lines(shown: Shown, off: list[int], origin: Origin, words: Words, heads: bool) -> list[str]:
    """Lines that put heads off by their average over the real queries of the whole batch."""
    plain = shown.trace.plain
    off = [head for head in off if (~(plain.undefined | plain.nonfinite)[:, head] & ~plain.query_padding).any()]
    if not off:
        return []
    names = ("weights", *["heads"] * heads)
    return [
        *origin.query_padding(),
        f"given = ~{words.xp}.isnan(weights).any({words.dim}=-1)  # [N, H, L], the rows that have a key",
        "real = given & ~query_padding[:, None]  # [N, H, L]",
        f"for h in {off}:  # what if: these heads say their average, whatever is asked",
        *(f"    {name}[:, h][given[:, h]] = {name}[:, h][real[:, h]].mean({words.dim}=0)" for name in names),
    ]


def uniform_lines(shown: Shown, off: list[int], origin: Origin, words: Words, heads: bool) -> list[str]:
    """Lines that put heads off by equal weights on every key that a query may see; rows that are not finite stay so."""
    if not off:
        return []
    hides, xp = origin.hides, words.xp
    alike = f"seen[:, h] / seen[:, h].sum({words.dim}=-1, {words.keepdim}=True)"
    if shown.trace.plain.nonfinite.any():
        alike = f"{xp}.where({xp}.isnan(weights[:, h]), weights[:, h], {alike})  # NaN stays"
    return [
        f"seen = {f'{xp}.broadcast_to(~hidden, weights.shape)' if hides else f'{xp}.isfinite(weights)'}  # [N, H, L, S]",
        f"for h in {off}:  # what if: these heads do not choose among the keys that they see",
        f"    weights[:, h] = {alike}",
        *["    heads[:, h] = weights[:, h] @ V[:, h]"] * heads,
    ]


def norm_lines(origin: Origin, words: Words) -> list[str]:
    """Lines that make of the weights those by norms, each row a distribution."""
    if origin.out is None:
        raise Missing("Weights by norms need the output projection, and the source does not know it.")
    whole = "(probabilities * lengths)" if origin.drops else "weights"
    return [
        f"Wo = {origin.out[0]}.reshape(-1, H, V.shape[-1])  # [E, H, D]",
        f'added = {words.xp}.einsum("nhsd,ehd->nhse", V, Wo)  # [N, H, S, E], what each value adds to the output at a weight of 1',
        f"lengths = {words.xp}.linalg.norm(added, {words.dim}=-1)[:, :, None]  # [N, H, 1, S]",
        "weights = weights * lengths  # Kobayashi et al. 2020, equation 5",
        f"weights = weights / {whole}.sum({words.dim}=-1, {words.keepdim}=True)  # each row a distribution again",
    ]


def output_lines(weight: str, bias: str) -> list[str]:
    return [
        "concat = heads.swapaxes(1, 2).reshape(N, L, -1)  # [N, L, H·D]",
        f"output = concat @ {weight}.T{f' + {bias}' * bool(bias)}  # [N, L, E]",
    ]


def selected(shown: Shown, words: Words, view: str) -> list[str]:
    """Lines that take the heads that the ``view`` draws, and print the chosen number beside the average's."""
    c = choice_of(shown)
    drawn = [head for head in view_of_attention(view).heads(shown) if head is not None]
    every = drawn == list(range(shown.trace.weights.shape[1]))
    heads = f"weights[{c.item}]" if every else f"weights[{c.item}, {drawn}]"
    cell = f"head {c.head}: {{weights[{c.item}, {c.head}, {c.query}, {c.key}]:.7f}}, average: {{average[{c.item}, {c.query}, {c.key}]:.7f}}"
    return [
        f"average = weights.mean({words.dim}=1)  # [N, L, S]",
        *[f"shown_heads = {heads}  # [heads, L, S] of batch item {c.item}"] * bool(drawn),
        f'print(f"{cell}")  # query {c.query}, key {c.key}',
    ]


PROGRAMS: dict[str, Callable[..., str]] = {
    "torch": lambda shown, view="page": program(shown, "torch", view),
    "numpy": lambda shown, view="page": program(shown, "numpy", view),
    "pytest": pytest_case,
}
