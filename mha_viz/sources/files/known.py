"""What a file cannot tell, told by an output that is known for an input: every choice is tried."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from mha_viz.core.arrays import as_array
from mha_viz.core.decimals import fill, prose
from mha_viz.core.rules import Shape, Wrong
from mha_viz.sources.files.read import read_file
from mha_viz.sources.files.weights import ALL, Weights

if TYPE_CHECKING:
    from mha_viz.core.arrays import Numbers
    from mha_viz.sources.files.found import Found
    from mha_viz.sources.files.read import Data

DECIDED = ("layers", "layout", "packed", "num_heads", "causal")  # questions that an output can answer
MOST = 1000  # combinations that are tried
CLOSE = {"float64": 1e-3, "float32": 1e-3}  # of the output's largest number: a GPU's float32 may round to ten bits
HALF = 2e-2  # the same where weights or output are of any shorter type
ABSENT = (
    "Weights do not hold all that a layer does: rotation of q and k (RoPE, interleaved or by halves), a norm of q and k, ALiBi or "
    "another position bias, padding, a window or a scale of the model's own may be missing here. Record the model with mv.record: "
    "that keeps what ran."
)


@dataclass(frozen=True)
class Fit:
    """One combination of ``answers``, and the largest absolute difference between its output and the known one, whose largest
    number is ``size``. It ``agrees`` where the difference is rounding: at most ``close`` of that."""

    answers: dict[str, object]
    error: float
    size: float
    close: float

    @property
    def agrees(self) -> bool:
        return self.error <= self.close * self.size


def agreeing(found_fits: Sequence[Fit]) -> Fit:
    """The first of the Fits, which is the best; raises Wrong where it does not agree, and says what may be missing."""
    best = found_fits[0]
    if not best.agrees:
        nearest = fill(
            "the nearest is off by up to {:.3g}, and the largest number of the output is {:.3g}", best.error, best.size
        )
        close = prose(best.close, "g")
        rule = f"comes of none of the {len(found_fits)} combinations: {nearest}; to agree is to be off by {close} of that or less. {ABSENT}"
        raise Wrong("output", "what is known", rule)
    return best


def read_input(name: str, data: Data) -> tuple[np.ndarray, np.ndarray | None]:
    """(query, output or None) in a file: one array, or arrays named "query" and "output". Raises Wrong where there is no query."""
    content = read_file(name, data)
    if not isinstance(content, dict):
        raise Wrong("file", name, "must hold an array, or arrays named query and output, as .npy, .npz, .safetensors or .pt.")
    names = {key.rpartition("/")[2]: key for key in content}
    query = names.get("query", next(iter(content)) if len(content) == 1 else None)
    if query is None:
        rule = (
            f"holds {', '.join(sorted(content))}: which is the input cannot be told. Name it query, and what came out output."
        )
        raise Wrong("file", name, rule)
    return content[query].read(), content[names["output"]].read() if "output" in names else None


def fits(found: Found, query: Numbers, output: Numbers, **answers: object) -> tuple[Fit, ...]:
    """A tuple of Fits, the best first: every combination of what is not answered, run on ``query``.

    ``query`` is what one attention layer of the model was given, [N, L, E] or [L, E], and ``output`` what it gave, after the output
    projection. Right answers fit to about 1e-6 of the output's size in float32; where several do, they are the same function.
    Raises Wrong where the file holds no weights with an output, arrays do not fit, or more than ``MOST`` combinations are left.
    """
    if not isinstance(found.content, Weights):
        raise Wrong("query", Shape(np.shape(query)), f"is read by weights; this file holds {found.kind}.")
    x, y = as_array("query", query), as_array("output", output)
    if y.shape[:-1] != x.shape[:-1]:
        rule = f"must be what came out for a query of shape {x.shape}: the same axes but for the last."
        raise Wrong("output", Shape(y.shape), rule)
    if not (y.size and np.isfinite(y).all() and np.isfinite(x).all()):
        raise Wrong("output", Shape(y.shape), "must hold finite numbers, as query must: nothing can be compared with others.")
    size, close = float(np.abs(y).max()), _close(found.content, y)
    tried = list(_combinations(found, answers))
    if len(tried) > MOST:
        raise Wrong(
            "answers", answers, f"leave {len(tried)} combinations; at most {MOST} are tried: answer layers or num_heads."
        )
    found_fits: list[Fit] = []
    refused: Wrong | None = None
    for combination in tried:
        try:
            error = _error(found, found.content, x, y, combination)
        except Wrong as wrong:  # another layer may be of the query's width
            refused = wrong
        else:
            found_fits.append(Fit(combination, error, size, close))
    if refused is not None and not found_fits:
        raise refused
    return tuple(sorted(found_fits, key=lambda fit: fit.error))


def _close(weights: Weights, output: np.ndarray) -> float:
    """How near is near enough, by the shortest type among the output and the weights."""
    names = {name for site in weights.sites.values() for name in site.names.values()}
    types = {output.dtype.name, *(weights.tensors[name].dtype for name in names)}
    return max(CLOSE.get(dtype, HALF) for dtype in types)


def _combinations(found: Found, answers: dict[str, object]) -> Iterator[dict[str, object]]:
    asked = [question for question in found.ask(**answers) if question.field in DECIDED and question.field not in answers]
    if not asked:
        yield answers
        return
    for choice in asked[0].choices:
        if choice != ALL:
            yield from _combinations(found, answers | {asked[0].field: choice})


def _error(found: Found, weights: Weights, query: np.ndarray, output: np.ndarray, answers: Mapping[str, object]) -> float:
    (trace,) = weights.open(found.name, found.answered(**answers), None, None, query).traces
    if not trace.has("output"):
        raise Wrong("output", Shape(output.shape), f"is not known of {trace.name}: the file holds no output projection for it.")
    given = trace.output.reshape(-1, trace.output.shape[-1])  # [N·L, E]
    if given.shape[-1] != output.shape[-1]:
        raise Wrong("output", Shape(output.shape), f"must be as wide as the layer's output, {given.shape[-1]}.")
    error = float(np.abs(given - output.reshape(given.shape)).max())
    return np.inf if np.isnan(error) else error
