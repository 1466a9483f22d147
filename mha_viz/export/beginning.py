"""How a program begins: its imports, its layer, and the vectors that go in, drawn as the page's are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from mha_viz.export.kept import Kept
from mha_viz.settings import Settings
from mha_viz.sources.synthetic import PAD
from mha_viz.sources.tiny import TOKENS, tiny_layer

if TYPE_CHECKING:
    from jaxtyping import Float


Language = Literal["numpy", "torch"]


def drops(settings: Settings | Kept) -> bool:
    """True where dropout falls on the weights."""
    return settings.training and settings.dropout > 0


def _needs_torch(s: Settings | Kept) -> bool:
    """Whether PyTorch has to draw something: the numbers of the tiny case stand in the program, those of a kept layer in a file."""
    return s.case == "random" or drops(s)


def imports(s: Settings | Kept, language: Language) -> list[str]:
    """Lines that import what the program of these Settings needs, and no more."""
    lines = []
    if s.texts or s.source_texts:
        lines.append("import hashlib")
    if language == "torch":
        lines.append("import math")
    lines += [""] * bool(lines)
    if language == "numpy" or s.texts or s.source_texts or isinstance(s, Kept) or s.positions:
        lines.append("import numpy as np")
    if language == "numpy" and not _needs_torch(s):
        return lines
    lines.append("import torch" + ("  # draws the numbers; what is done with them is NumPy" if language == "numpy" else ""))
    return [*lines, *(["import torch.nn.functional as F"] if language == "torch" else []), "from torch import nn"]


def start(s: Settings | Kept, language: Language) -> list[str]:
    """Lines that make the layer, and query, key and value."""
    E, H = s.embed_dim, s.num_heads
    options = [f"{E}, {H}"]
    options += [f"{name}={getattr(s, name)!r}" for name in ("dropout", "kdim", "vdim") if getattr(s, name)]
    options += ["bias=False"] * (not s.bias)
    options += [f"{name}=True" for name in ("add_bias_kv", "add_zero_attn", "batch_first") if getattr(s, name)]
    layer = f"attention = nn.MultiheadAttention({', '.join(options)})"
    if isinstance(s, Kept):
        return _start_kept(s, language, layer)
    if s.case == "tiny":
        return _start_tiny(s, language, layer)
    seed = f"torch.manual_seed({s.seed})"
    drawn = s.texts is None or (s.cross and s.source_texts is None) or drops(s)
    lines = [seed, layer]
    if drawn and not (s.bias and not s.add_bias_kv and not s.add_zero_attn and s.kdim is None and s.vdim is None):
        lines += [
            seed,
            f"nn.MultiheadAttention({E}, {H})  # tokens are drawn after a layer without options: no option changes them",
        ]
    if s.texts or s.source_texts:
        lines += _EMBEDDING
    if s.positions:
        lines += _POSITIONS
    lines += _tokens(s, "query" if s.cross else "tokens", s.texts, s.L, E)
    if not s.cross:
        return [*lines, "query = key = value = tokens", ""]
    kdim, vdim = s.kdim or E, s.vdim or E
    lines += _tokens(s, "key", s.source_texts, s.S, kdim)
    return [*lines, *(["value = key"] if kdim == vdim else _tokens(s, "value", s.source_texts, s.S, vdim)), ""]


def _start_tiny(s: Settings, language: Language, layer: str) -> list[str]:
    """The layer and the tokens that were worked by hand. Dropout falls as it does after a layer was drawn."""
    lines = [f"torch.manual_seed({s.seed})"] if drops(s) else []
    if language == "torch":
        lines.append(layer)
    elif drops(s):
        lines.append(f"nn.MultiheadAttention({s.embed_dim}, {s.num_heads})  # drawn first: dropout comes after it")
    lines.append("W = {")
    for name, weight in tiny_layer().weights.items():
        rows = _whole(weight)
        lines += (
            [f'    "{name}": [', *(f"        {row}," for row in rows), "    ],"]
            if weight.ndim == 2
            else [f'    "{name}": {rows},']
        )
    lines.append("}")
    tokens = _whole(np.array(TOKENS))
    if language == "torch":
        lines += [
            "attention.load_state_dict({name: torch.tensor(array, dtype=torch.float32) for name, array in W.items()})",
            f"query = key = value = torch.tensor({tokens}, dtype=torch.float32)",
        ]
    else:
        lines += [
            "W = {name: np.array(array, dtype=np.float32) for name, array in W.items()}",
            f"query = key = value = np.array({tokens}, dtype=np.float32)",
        ]
    return [*lines, ""]


def _start_kept(s: Kept, language: Language, layer: str) -> list[str]:
    """Numbers from a file that stands beside the program."""
    wrap = "torch.from_numpy({})" if language == "torch" else "{}"

    def given(name: str) -> str:
        return wrap.format(f'given["{name}"]')

    lines = [f'given = np.load("{s.file}")  # the layer and its input, saved from the page']
    state = f"{{name: {wrap.format('given[name]')} for name in {list(s.weights)!r}}}"
    lines += [f"W = {state}"] if language == "numpy" else [layer, f"attention.load_state_dict({state})"]
    if not s.cross:
        return [*lines, f"query = key = value = {given('query')}", ""]
    value = given("value") if s.own_value else "key"
    return [*lines, f"query, key = {given('query')}, {given('key')}", f"value = {value}", ""]


def _whole(array: Float[np.ndarray, ...]) -> list[Any]:
    rows: list[Any] = array.astype(int).tolist()
    return rows


_EMBEDDING = [
    "",
    "def embedding(word, width):  # depends on the word alone",
    '    seed = int.from_bytes(hashlib.sha256(word.encode()).digest()[:8], "big")',
    "    return np.random.default_rng(seed).standard_normal(width, dtype=np.float32)",
    "",
]
_POSITIONS = [
    "",
    "def positions(length, width):  # Vaswani et al. 2017, section 3.5",
    "    angle = np.arange(length)[:, None] / 10000 ** (np.arange(0, width, 2) / width)",
    "    encoding = np.empty((length, width), np.float32)",
    "    encoding[:, 0::2], encoding[:, 1::2] = np.sin(angle), np.cos(angle[:, : width // 2])",
    "    return torch.tensor(encoding)",
    "",
]


def _tokens(s: Settings, name: str, texts: Sequence[Sequence[str]] | None, length: int, width: int) -> list[str]:
    """Lines that make one sequence of vectors [N, length, width] per batch item."""
    if texts is None:
        lines = [f"{name} = torch.randn({s.N}, {length}, {width})"]
    else:
        padded = [
            [*[PAD] * (length - len(text)), *text] if s.padding_side == "left" else [*text, *[PAD] * (length - len(text))]
            for text in texts
        ]
        lines = ["texts = [", *(f"    {text!r}," for text in padded), "]"]
        lines.append(f"{name} = torch.tensor(np.array([[embedding(word, {width}) for word in text] for text in texts]))")
    return [*lines, *([f"{name} = {name} + positions({length}, {width})"] if s.positions else [])]
