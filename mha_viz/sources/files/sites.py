"""Where in a file's tensors an attention layer is, told by their names: PyTorch's own module, separate projections, packed ones."""

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from mha_viz.sources.files.maps import natural

MULTIHEAD, SEPARATE, PACKED = "nn.MultiheadAttention", "separate q, k, v", "packed q, k, v"
OWN = (
    "in_proj_weight",
    "q_proj_weight",
    "k_proj_weight",
    "v_proj_weight",
    "in_proj_bias",
    "bias_k",
    "bias_v",
    "out_proj.weight",
    "out_proj.bias",
)
APART = (
    ("query", "key", "value"),  # BERT, ViT, Flax, Keras
    ("q_proj", "k_proj", "v_proj"),  # Llama, BART, OPT, CLIP
    ("q_lin", "k_lin", "v_lin"),  # DistilBERT
    ("to_q", "to_k", "to_v"),  # diffusers
    ("wq", "wk", "wv"),  # Llama as Meta wrote it
    ("q", "k", "v"),  # T5
    ("linear_q", "linear_k", "linear_v"),  # ESPnet
    ("query_proj", "key_proj", "value_proj"),  # DeBERTa
)
TOGETHER = ("c_attn", "qkv", "qkv_proj", "query_key_value", "Wqkv", "W_pack", "to_qkv", "in_proj")
AFTER = (
    "o_proj",
    "out_proj",
    "out_lin",
    "to_out.0",
    "to_out",
    "wo",
    "o",
    "out",
    "c_proj",
    "proj",
    "dense",
    "linear_out",
    "attention_output",
    "output.dense",
    "output",
)
LEAVES = {"weight": "bias", "kernel": "bias", "w": "b"}  # PyTorch; Flax and Keras; Haiku
CAUSAL = ("c_attn",)  # GPT-2's name, and that of those written after it


@dataclass(frozen=True)
class Site:
    """One attention layer: ``name`` is what its tensors' names have in common, ``names`` are those by what each tensor is.

    Under MULTIHEAD the module's own names; else "q", "k", "v" or "qkv", and "o" where it is there, each followed by ".weight" or
    ".bias". ``unused`` names the tensors beside them that nothing here reads. ``leaf`` is "weight", "kernel" or "w".
    """

    name: str
    recipe: str
    names: Mapping[str, str]
    unused: tuple[str, ...]
    leaf: str = "weight"

    @property
    def causal(self) -> bool:
        """True where names speak for a causal layer."""
        return any(part in name for part in CAUSAL for name in self.names.values())


def find_sites(names: Iterable[str]) -> tuple[Site, ...]:
    """Every Site among these tensors' names, in their natural order."""
    dotted = {name.replace("/", "."): name for name in names}
    ordered = sorted(dotted)
    found: dict[str, Site] = {}
    for path in sorted(dotted, key=natural):
        stem, _, last = path.rpartition(".")
        if last in ("in_proj_weight", "q_proj_weight") and _join(stem, "out_proj.weight") in dotted:
            roles = {own: _join(stem, own) for own in OWN}
            found.setdefault(stem, _site(stem, MULTIHEAD, roles, (), dotted, ordered))
        elif last in LEAVES:
            above, _, part = stem.rpartition(".")
            for triple in APART:
                if part == triple[0] and all(_join(above, f"{other}.{last}") in dotted for other in triple[1:2]):
                    found.setdefault(
                        above,
                        _site(
                            above, SEPARATE, *_roles(above, dict(zip("qkv", triple, strict=True)), last), dotted, ordered, last
                        ),
                    )
            if part in TOGETHER:
                found.setdefault(above, _site(above, PACKED, *_roles(above, {"qkv": part}, last), dotted, ordered, last))
    return tuple(found.values())


def _roles(stem: str, parts: Mapping[str, str], leaf: str) -> tuple[dict[str, str], tuple[str, ...]]:
    """({role: path} of a layer's tensors, the places where its output projection may be)."""
    roles = {}
    for role, part in parts.items():
        roles[f"{role}.weight"], roles[f"{role}.bias"] = _join(stem, f"{part}.{leaf}"), _join(stem, f"{part}.{LEAVES[leaf]}")
    above = stem.rpartition(".")[0]
    after = [_join(stem, part) for part in AFTER] + [_join(above, "output.dense")]  # BERT's stands beside what it follows
    return roles, tuple(f"{path}.{leaf}" for path in after)


def _site(
    stem: str,
    recipe: str,
    roles: dict[str, str],
    after: Sequence[str],
    dotted: Mapping[str, str],
    ordered: Sequence[str],
    leaf: str = "weight",
) -> Site:
    place = next((path for path in after if path in dotted), None)
    if place is not None:
        roles = roles | {"o.weight": place, "o.bias": place.removesuffix(leaf) + LEAVES[leaf]}
    used = {role: path for role, path in roles.items() if path in dotted}
    below = ordered[bisect_left(ordered, f"{stem}.") : bisect_left(ordered, f"{stem}/")] if stem else ()  # "/" follows "."
    taken = set(used.values())
    unused = tuple(dotted[path] for path in below if path not in taken)
    return Site(stem, recipe, {role: dotted[path] for role, path in used.items()}, unused, leaf)


def _join(stem: str, rest: str) -> str:
    return f"{stem}.{rest}" if stem else rest
