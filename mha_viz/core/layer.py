"""One attention layer's weights, named and shaped as ``nn.MultiheadAttention``'s own."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from mha_viz.core.arrays import as_array, own
from mha_viz.core.memory import check_layer_memory
from mha_viz.core.rules import Shape, Wrong, fraction, head_dim, whole, yes_or_no

if TYPE_CHECKING:
    import torch
    from jaxtyping import Float

    from mha_viz.core.arrays import Numbers


@dataclass(frozen=True, eq=False)
class Layer:
    """The weights of one multi-head attention layer: what ``nn.MultiheadAttention`` holds, as read-only NumPy arrays.

    ``weights`` keeps PyTorch's names: ``in_proj_weight`` [3E, E] (rows 0:E make q, E:2E k, 2E:3E v) or, where kdim or vdim
    differ from E, ``q_proj_weight`` [E, E], ``k_proj_weight`` [E, kdim], ``v_proj_weight`` [E, vdim]; ``in_proj_bias`` [3E];
    ``bias_k``, ``bias_v`` [1, 1, E]; ``out_proj.weight`` [E, E]; ``out_proj.bias`` [E]. y = x @ W.T + b. Head h owns rows
    h·D:(h+1)·D of each input projection and the same *columns* of ``out_proj.weight``. ``seed`` is None for weights that
    were not drawn here.

    >>> import mha_viz as mv
    >>> layer = mv.Layer.random(embed_dim=8, num_heads=2, kdim=6)
    >>> layer.embed_dim, layer.head_dim, layer.kdim
    (8, 4, 6)
    >>> {name: array.shape for name, array in layer.weights.items() if name.startswith("k")}
    {'k_proj_weight': (8, 6)}
    """

    weights: Mapping[str, np.ndarray]
    num_heads: int
    head_dim: int
    dropout: float = 0.0
    add_zero_attn: bool = False
    seed: int | None = None

    @classmethod
    def random(
        cls,
        embed_dim: int,
        num_heads: int,
        *,
        seed: int = 7,
        dropout: float = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
        generator: torch.Generator | None = None,
    ) -> Layer:
        """A layer with the numbers that ``torch.manual_seed(seed); nn.MultiheadAttention(...)`` gives, bit for bit.

        The draws are replayed in PyTorch's order on a generator of our own, since the global one is shared by every thread.
        A ``generator`` that is passed in is used in place of ``seed`` and left in the state that PyTorch would leave.
        Raises Wrong where PyTorch would refuse the arguments, now or in the first forward pass.

        >>> import torch, mha_viz as mv
        >>> layer, _ = mv.Layer.random(8, 2, seed=7), torch.manual_seed(7)
        >>> bool((layer.weights["out_proj.weight"] == torch.nn.MultiheadAttention(8, 2).out_proj.weight.detach().numpy()).all())
        True
        """
        import torch
        from torch.nn.init import kaiming_uniform_, xavier_normal_, xavier_uniform_

        size = head_dim(embed_dim, num_heads)
        bias, add_bias_kv, add_zero_attn = (
            yes_or_no(name, value)
            for name, value in (("bias", bias), ("add_bias_kv", add_bias_kv), ("add_zero_attn", add_zero_attn))
        )
        check_generator(generator)
        E, kdim, vdim = embed_dim, *(whole(n, embed_dim if d is None else d, 1) for n, d in (("kdim", kdim), ("vdim", vdim)))
        check_layer_memory(E, kdim, vdim, num_heads)
        dropout = fraction("dropout", dropout)
        if generator is None:
            generator = torch.Generator().manual_seed(seed_in_range(seed))
        drawn = {"out_proj.weight": kaiming_uniform_(torch.empty(E, E), a=math.sqrt(5), generator=generator)}
        if bias:
            torch.empty(E).uniform_(generator=generator)  # nn.Linear draws its bias, nn.MultiheadAttention then zeroes it
            drawn |= {"in_proj_bias": torch.zeros(3 * E), "out_proj.bias": torch.zeros(E)}
        if kdim == vdim == E:
            drawn["in_proj_weight"] = xavier_uniform_(torch.empty(3 * E, E), generator=generator)
        else:
            for name, width in (("q", E), ("k", kdim), ("v", vdim)):
                drawn[f"{name}_proj_weight"] = xavier_uniform_(torch.empty(E, width), generator=generator)
        if add_bias_kv:
            drawn |= {name: xavier_normal_(torch.empty(1, 1, E), generator=generator) for name in ("bias_k", "bias_v")}
        weights = {name: tensor.numpy() for name, tensor in drawn.items()}  # nobody else has these tensors: no copy
        for array in weights.values():
            array.flags.writeable = False
        return cls(MappingProxyType(weights), num_heads, size, dropout, bool(add_zero_attn), seed)

    @classmethod
    def from_state_dict(
        cls, state_dict: Mapping[str, Numbers], num_heads: int, *, add_zero_attn: bool = False, dropout: float = 0.0
    ) -> Layer:
        """A layer from arrays or tensors named as in ``nn.MultiheadAttention.state_dict()``.

        ``num_heads``, ``add_zero_attn`` and ``dropout`` are not in a state dict and have to be said. Raises Wrong for a name
        that is missing or unknown, or a shape that does not fit.
        """
        if not isinstance(state_dict, Mapping):
            raise Wrong("state_dict", state_dict, "must map names to arrays, as a module's .state_dict() does.")
        strange = next((name for name in state_dict if not isinstance(name, str)), None)
        if strange is not None:
            raise Wrong("state_dict", strange, "must have names for keys, such as 'out_proj.weight'.")
        add_zero_attn = yes_or_no("add_zero_attn", add_zero_attn)
        weights = _frozen(state_dict)
        check_shapes({name: array.shape for name, array in weights.items()})
        E = weights["out_proj.weight"].shape[0]
        try:
            size = head_dim(E, num_heads)
        except Wrong as wrong:  # embed_dim is the weights' own: only num_heads can change
            nearest = [change for change in wrong.nearest if "num_heads" in change]
            raise Wrong(wrong.argument, wrong.value, wrong.rule, nearest) from None
        return cls(weights, num_heads, size, fraction("dropout", dropout), bool(add_zero_attn))

    @property
    def embed_dim(self) -> int:
        """How many numbers a query has, and each token of the output."""
        return len(self.weights["out_proj.weight"])

    @property
    def packed(self) -> bool:
        """True where q, k and v come from one ``in_proj_weight``, as they do when kdim = vdim = embed_dim."""
        return "in_proj_weight" in self.weights

    @property
    def projections(self) -> tuple[Float[np.ndarray, "E E"], Float[np.ndarray, "E kdim"], Float[np.ndarray, "E vdim"]]:
        """The three input projections Wq, Wk and Wv, as views."""
        if self.packed:
            Wq, Wk, Wv = np.split(self.weights["in_proj_weight"], 3)
        else:
            Wq, Wk, Wv = (self.weights[f"{name}_proj_weight"] for name in "qkv")
        return Wq, Wk, Wv

    @property
    def kdim(self) -> int:
        """How many numbers a key has before it is projected."""
        return int(self.weights["in_proj_weight" if self.packed else "k_proj_weight"].shape[1])

    @property
    def vdim(self) -> int:
        """How many numbers a value has before it is projected."""
        return int(self.weights["in_proj_weight" if self.packed else "v_proj_weight"].shape[1])

    @property
    def extra_keys(self) -> tuple[str, ...]:
        """Labels of the columns that come after the real keys: ``add_bias_kv``'s first, then ``add_zero_attn``'s."""
        return ("bias_k",) * ("bias_k" in self.weights) + ("zero",) * self.add_zero_attn


def check_shapes(shapes: Mapping[str, tuple[int, ...]]) -> None:
    """Raises Wrong where arrays of these ``shapes`` by name are no ``nn.MultiheadAttention``'s state dict.

    >>> check_shapes({"in_proj_weight": (8, 24), "out_proj.weight": (8, 8)})
    Traceback (most recent call last):
    mha_viz.core.rules.Wrong: in_proj_weight of shape (8, 24): must have shape (24, 8) where embed_dim is 8. It looks transposed: ...
    """
    if len(shapes.get("out_proj.weight", ())) != 2:
        raise Wrong("state_dict", sorted(shapes), "must hold 'out_proj.weight' [E, E], as nn.MultiheadAttention's does.")
    E = shapes["out_proj.weight"][0]
    expected: dict[str, tuple[int, ...]] = {"out_proj.weight": (E, E)}
    if "q_proj_weight" in shapes and "in_proj_weight" not in shapes:
        for name in ("k_proj_weight", "v_proj_weight"):
            found = shapes.get(name, ())
            expected[name] = (E, found[1] if len(found) == 2 else E)
        expected["q_proj_weight"] = (E, E)
    else:
        expected["in_proj_weight"] = (3 * E, E)
    optional = {"in_proj_bias": (3 * E,), "out_proj.bias": (E,), "bias_k": (1, 1, E), "bias_v": (1, 1, E)}
    expected |= {name: shape for name, shape in optional.items() if name in shapes}
    for pair in (("in_proj_bias", "out_proj.bias"), ("bias_k", "bias_v")):
        if (pair[0] in shapes) != (pair[1] in shapes):
            absent = pair[pair[0] in shapes]
            rule = f"must hold both {pair[0]!r} and {pair[1]!r} or neither; for a layer without {absent!r} add zeros."
            raise Wrong("state_dict", sorted(shapes), rule)
    missing, unknown = sorted(expected.keys() - shapes.keys()), sorted(shapes.keys() - expected.keys())
    if missing or unknown:
        which = " and ".join([f"lacks {missing}"] * bool(missing) + [f"holds {unknown} besides"] * bool(unknown))
        raise Wrong("state_dict", sorted(shapes), f"must hold exactly {sorted(expected)}; it {which}.")
    for name, shape in expected.items():
        if tuple(shapes[name]) != shape:
            hint = " It looks transposed: y = x @ W.T + b." if tuple(shapes[name]) == shape[::-1] else ""
            rule = f"must have shape {shape} where embed_dim is {E}.{hint}"
            raise Wrong(name, Shape(shapes[name]), rule, [{name: Shape(shape)}])
        if 0 in shape:
            raise Wrong(name, Shape(shape), "must have no empty axis.")


def check_generator(generator: torch.Generator | None) -> None:
    """Raises Wrong for a generator that is not PyTorch's; None stands for one of its own choice."""
    import torch

    if generator is not None and not isinstance(generator, torch.Generator):
        raise Wrong("generator", type(generator).__name__, "must be a torch.Generator.", [{"generator": None}])


def seed_in_range(seed: int) -> int:
    """``seed`` as PyTorch takes it, 0 to 2⁶³ − 1."""
    return whole("seed", seed, 0, 2**63 - 1)


def _frozen(weights: Mapping[str, Numbers]) -> Mapping[str, np.ndarray]:
    """Copies, since a model that goes on training changes its own weights in place."""
    return MappingProxyType({name: own(as_array(name, value)) for name, value in weights.items()})
