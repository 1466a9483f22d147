"""How each kind of layer becomes plain projections, [out, in] each, and what its shapes leave open.

* nn.MultiheadAttention: as it is, y = x @ W.T + b.
* Separate q, k, v: nn.Linear keeps [out, in]; Flax, Keras and GPT-2's Conv1D keep [in, out] and are transposed. Kernels of three
  axes, [E, H, D] and on the way out [H, D, E], are flattened over H · D; they tell ``num_heads``. Where k and v have fewer rows
  than q, their heads are grouped: G = rows / D of them, and query head h reads group h // (H / G), as in Llama.
* Packed: one matrix for all three, split into q, k, v along its rows, in the order that is asked for; for each head in turn in
  GPT-NeoX and BLOOM. Where it has fewer than 3 times the rows of q, k and v are grouped and of one size, as in Phi-3.

A bias that is missing is 0. A bias of k changes no weight: it adds the same to a query's scores for every key.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from math import prod
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from mha_viz.core.rules import Shape, Wrong, divisors
from mha_viz.sources.files.sites import MULTIHEAD, PACKED

if TYPE_CHECKING:
    from mha_viz.sources.files.sites import Site

OUT_IN, IN_OUT = "[out, in]", "[in, out]"
ORDERS = tuple(", ".join(order) for order in permutations("qkv"))
PER_HEAD = "q, k, v of each head in turn"


Pair: TypeAlias = tuple[np.ndarray, np.ndarray | None]  # W [out, in], b [out] or None
Arrays: TypeAlias = Mapping[str, np.ndarray]  # by role
Shapes: TypeAlias = Mapping[str, tuple[int, ...]]


@dataclass(frozen=True, eq=False)
class Projections:
    """y = x @ W.T + b: q [H·D, E], k [G·D, kdim], v [G·Dv, vdim], o [E, H·Dv]; each a pair (W, b), b None where there is none.

    ``v`` and ``o`` are None where the file does not hold them.
    """

    q: Pair
    k: Pair
    v: Pair | None
    o: Pair | None


def layouts(site: Site, shapes: Shapes) -> tuple[str, ...]:
    """The layouts that the shapes of a layer's arrays allow, the one that is usual for their names first.

    ``shapes`` are by role. A layout in which q, k and v read vectors of one width is preferred, where names speak for it as well.
    Raises Wrong where the shapes fit each other in no layout: matrices, heads, or biases.
    """
    if site.recipe == MULTIHEAD:
        return (OUT_IN,)
    usual = OUT_IN if site.leaf == "weight" else IN_OUT
    first = "q.weight" if "q.weight" in shapes else "qkv.weight"
    kernels = len(shapes[first]) == 3
    for role, shape in shapes.items():
        if role.endswith("weight") and (len(shape) not in ((2, 3) if kernels else (2,)) or 0 in shape):
            axes = "a matrix, or a kernel of three axes as q's is" if kernels else "a matrix"
            raise Wrong(site.names[role], Shape(shape), f"must be {axes}, none of its axes empty.")
    if kernels and site.recipe != PACKED:
        _check_kernels(site, shapes)
    other = IN_OUT if usual == OUT_IN else OUT_IN
    turned = {layout: _turned(shapes, layout) for layout in ((IN_OUT,) if kernels else (usual, other))}
    fitting = tuple(layout for layout, matrices in turned.items() if _fits(site, matrices))
    if not fitting:
        held = ", ".join(f"{site.names[role]} {list(shape)}" for role, shape in shapes.items() if role.endswith("weight"))
        rule = f"holds projections that do not fit each other in any layout: {held}."
        raise Wrong(site.name or site.names[first], Shape(shapes[first]), rule)
    misfits = {layout: _bias_that_does_not_fit(site, shapes, turned[layout]) for layout in fitting}
    first_misfit = misfits[fitting[0]]
    if first_misfit is not None and all(misfits.values()):
        raise first_misfit
    fitting = tuple(layout for layout in fitting if not misfits[layout])
    if site.recipe != PACKED and len(fitting) == 2:
        one_width = [
            layout
            for layout in fitting
            if len({turned[layout][f"{x}.weight"][1] for x in "qkv" if f"{x}.weight" in shapes}) == 1
        ]
        if one_width == [usual]:
            return (usual,)
    return fitting


def _check_kernels(site: Site, shapes: Shapes) -> None:
    """Raises Wrong where kernels of three axes, [E, H, D] and on the way out [H, Dv, E], have heads of other sizes or numbers."""
    heads, D = shapes["q.weight"][1:]
    for role in ("k.weight", "v.weight"):
        shape = shapes.get(role)
        if shape is None:
            continue
        groups = shapes["k.weight"][1] if len(shapes["k.weight"]) == 3 else None
        fits = len(shape) == 3 and heads % shape[1] == 0 and (shape[2] == D if role == "k.weight" else shape[1] == groups)
        if not fits:
            of = (
                f"a head_dim of {D}, and heads that divide q's {heads}"
                if role == "k.weight"
                else f"as many heads as k, {groups}"
            )
            raise Wrong(
                site.names[role], Shape(shape), f"must be [E, heads, head_dim] with {of}: q is {list(shapes['q.weight'])}."
            )
    out, value = shapes.get("o.weight", ()), shapes.get("v.weight", shapes["k.weight"])
    if len(out) == 3 and out[:2] != (heads, value[2]):
        rule = f"must be [heads, head_dim, E] with {heads} heads and v's head_dim, {value[2]}."
        raise Wrong(site.names["o.weight"], Shape(out), rule)


def _bias_that_does_not_fit(site: Site, shapes: Shapes, turned: Shapes) -> Wrong | None:
    """A Wrong for a bias that has another number for each row of its matrix than one; None where all fit."""
    for role, shape in shapes.items():
        part, _, leaf = role.partition(".")
        if leaf == "bias" and f"{part}.weight" in shapes:  # v may be missing, but for its bias
            rows = turned[f"{part}.weight"][0]
            if prod(shape) != rows or len(shape) not in (1, len(shapes[f"{part}.weight"]) - 1):
                rule = f"must hold {rows} numbers, one for each of what {site.names[f'{part}.weight']} gives."
                return Wrong(site.names[role], Shape(shape), rule)
    return None


def head_counts(site: Site, shapes: Shapes, layout: str) -> list[int]:
    """Every ``num_heads`` that these shapes allow, ascending."""
    if site.recipe == MULTIHEAD:
        return divisors(shapes["out_proj.weight"][0])
    if len(shapes.get("q.weight", ())) == 3:
        return [shapes["q.weight"][1]]
    return _heads(*_rows(site, _turned(shapes, layout)))


def _heads(rows: int, keys: int, values: int) -> list[int]:
    """Every num_heads for q, k and v of so many rows: D = rows / H divides k's into G groups, G divides H, and v is as many groups."""
    found = []
    for H in divisors(rows):
        G, rest = divmod(keys, rows // H)
        if G and not rest and H % G == 0 and values % G == 0:
            found.append(H)
    return found


def equal_thirds(site: Site, shapes: Shapes, layout: str) -> bool:
    """True for a packed matrix whose q, k and v are of one size, so that their order cannot be told."""
    return site.recipe == PACKED and len(set(_rows(site, _turned(shapes, layout)))) == 1


def convert(site: Site, tensors: Arrays, layout: str = OUT_IN, order: str = "q, k, v", num_heads: int = 1) -> Projections:
    """The Projections of a layer; ``tensors`` are its arrays by role. ``num_heads`` tells PER_HEAD alone."""
    if site.recipe == MULTIHEAD:
        return _own(tensors)
    matrices = {}
    for role, array in tensors.items():
        part, _, leaf = role.partition(".")
        if leaf == "bias":
            matrices[role] = array.reshape(-1)
            continue
        if array.ndim == 3:
            array = array.reshape(-1, array.shape[2]) if part == "o" else array.reshape(array.shape[0], -1)  # [in, out]
        matrices[role] = array.T if layout == IN_OUT else array  # [out, in]
    v, o = (_pair(matrices, part) if f"{part}.weight" in matrices else None for part in "vo")
    if site.recipe != PACKED:
        return Projections(_pair(matrices, "q"), _pair(matrices, "k"), v, o)
    W, b = _pair(matrices, "qkv")
    parts = _split(W, _rows(site, {role: array.shape for role, array in matrices.items()}), order, num_heads)
    added = (None,) * 3 if b is None else _split(b, [len(part) for part in parts], order, num_heads)
    return Projections(*_pairs(parts, added), o)


def _own(tensors: Arrays) -> Projections:
    """nn.MultiheadAttention's, seen as four projections."""
    packed = "in_proj_weight" in tensors
    parts = np.split(tensors["in_proj_weight"], 3) if packed else [tensors[f"{x}_proj_weight"] for x in "qkv"]
    added = np.split(tensors["in_proj_bias"], 3) if "in_proj_bias" in tensors else (None,) * 3
    return Projections(*_pairs(parts, added), (tensors["out_proj.weight"], tensors.get("out_proj.bias")))


def _pair(matrices: Arrays, part: str) -> Pair:
    return matrices[f"{part}.weight"], matrices.get(f"{part}.bias")


def _pairs(weights: Sequence[np.ndarray], biases: Sequence[np.ndarray | None]) -> tuple[Pair, Pair, Pair]:
    """The pairs of q, k and v."""
    q, k, v = zip(weights, biases, strict=True)
    return q, k, v


def _split(array: np.ndarray, rows: Sequence[int], order: str, num_heads: int) -> list[np.ndarray]:
    """q, k, v of a packed array [3·H·D or less, …]."""
    if order == PER_HEAD:
        heads = array.reshape(num_heads, 3, -1, *array.shape[1:])  # [H, 3, D, …]
        return [heads[:, i].reshape(-1, *array.shape[1:]) for i in range(3)]  # [H·D, …] each
    letters = order.split(", ")
    ends = np.cumsum([rows["qkv".index(letter)] for letter in letters])
    parts = dict(zip(letters, np.split(array, ends[:-1]), strict=True))
    return [parts[letter] for letter in "qkv"]


def _turned(shapes: Shapes, layout: str) -> dict[str, tuple[int, ...]]:
    """The shapes of the matrices as [out, in]; kernels of three axes as they are flattened."""
    turned = {}
    for role, shape in shapes.items():
        if role.endswith("weight"):
            if len(shape) == 3:
                shape = (shape[0] * shape[1], shape[2]) if role == "o.weight" else (shape[0], shape[1] * shape[2])
            turned[role] = shape[::-1] if layout == IN_OUT else shape
    return turned


def _rows(site: Site, turned: Shapes) -> tuple[int, int, int]:
    """How many rows make q, k and v."""
    if site.recipe != PACKED:
        keys = turned["k.weight"][0]
        return turned["q.weight"][0], keys, turned.get("v.weight", (keys,))[0]
    rows, width = turned["qkv.weight"]
    queries = turned["o.weight"][1] if "o.weight" in turned else width
    return queries, (rows - queries) // 2, (rows - queries) // 2


def _fits(site: Site, turned: Shapes) -> bool:
    """True where some number of heads reads these matrices, [out, in] each."""
    queries, keys, values = _rows(site, turned)
    if keys < 1 or queries % keys:
        return False
    if site.recipe == PACKED:
        rows, width = turned["qkv.weight"]
        return rows == queries + 2 * keys and turned.get("o.weight", (width,))[0] == width
    if "o.weight" in turned and turned["o.weight"][1] * keys != values * queries:  # H · Dv, and H / G is queries / keys
        return False
    return bool(_heads(queries, keys, values))
