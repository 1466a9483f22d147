"""Settings, or a Kept layer, as programs in NumPy from scratch and in PyTorch, that run as they stand and compute what the page shows.

A program is told in the steps of the walkthrough. Random weights and tokens are PyTorch's, drawn in the order in which the tutorial's
program draws them, so that they are those of the page; everything after that is written out.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence

import numpy as np

from mha_viz.export.beginning import Language, drops, imports, start
from mha_viz.export.kept import Kept
from mha_viz.settings import Settings, read_mask
from mha_viz.settings.steps import STEPS


def program(
    settings: Settings | Kept,
    language: Language,
    step: str = "validate",
    *,
    item: int = 0,
    head: int = 0,
    query: int = 0,
    together: bool = False,
) -> str:
    """The whole program up to ``step`` in this ``language``, "numpy" or "torch": it prints what the page draws of that step.

    ``settings`` are Settings, or the Kept of a layer that no seed draws, which the program reads from its file.

    ``item``, ``head`` and ``query`` are those that are followed; ``together`` prints all heads. It leaves Q, K, V, scores, weights,
    heads [N, H, …], concat and multi_head_output behind, with the values of the Trace of the same name.
    """
    names = [name for name in STEPS if name != "dropout" or drops(settings)]
    upto = names[: names.index(step) + 1]
    body = [line for name in upto for line in ("", f"# {STEPS[name][1]}", *step_lines(settings, language, name))]
    place = f"n, h, i = {item}, {head}, {query}  # batch item, head and query that are followed"
    shown = [] if step == "validate" else ["", f"print({shown_expression(settings, language, step, together)})"]
    return "\n".join([*imports(settings, language), "", *start(settings, language), place, *body, *shown, ""])


def step_lines(settings: Settings | Kept, language: Language, step: str) -> list[str]:
    """The lines of one step alone, as ``program`` has them."""
    return NumPyProgram(settings).lines(step) if language == "numpy" else TorchProgram(settings).lines(step)


def shown_expression(settings: Settings | Kept, language: Language, step: str, together: bool = False) -> str:
    """The expression that ``program`` prints after ``step``: what the page draws last of it."""
    head = ":" if together else "h"
    columns = "" if together else "[h * D : (h + 1) * D]"
    keys = "K[n, h]"
    if together:
        keys = "K[n].swapaxes(0, 1).reshape(-1, H * D)"
    return {
        "input": "query[n]",
        "configure": f"Wq{columns}.T",
        "query": f"Q[n, {head}, i]",
        "keys": keys,
        "dot": f"dots[n, {head}, i]",
        "scale": f"scores[n, {head}, i]",
        "mask": f"masked[n, {head}, i]",
        "softmax": f"probabilities[n, {head}, i]",
        "dropout": f"weights[n, {head}, i]",
        "values": f"heads[n, {head}, i]",
        "concat": "concat[n, i]",
        "project": "multi_head_output[n, i]",
        "output": "multi_head_output[n, i]",
    }[step]


class Program(ABC):
    """What both languages say of the same Settings; no query reads the ``hidden_keys``."""

    def __init__(self, settings: Settings | Kept, hidden_keys: Iterable[int] = ()) -> None:
        self.settings, self.drops, self.hidden_keys = settings, drops(settings), list(hidden_keys)
        self.extra = settings.add_bias_kv + settings.add_zero_attn
        E = settings.embed_dim
        self.packed = {settings.kdim or E, settings.vdim or E} == {E}
        self.typed = None if settings.attn_mask is None else read_mask(settings.attn_mask)
        if isinstance(settings, Kept):
            self.finite, padded = settings.finite, settings.padded
        else:
            self.finite, padded = True, any(_counts(settings)[1])  # what a seed draws is finite
        self.padded = padded or bool(self.hidden_keys)
        self.adds = self.typed is not None and self.typed.dtype != bool
        self.pairs = bool(settings.causal or settings.window or (self.typed is not None and not self.adds))
        self.hides = self.padded or self.pairs

    def lines(self, step: str) -> list[str]:
        """The lines of one ``step``, by its name in STEPS."""
        lines: list[str] = getattr(self, step)()
        return lines

    @abstractmethod
    def _project(self, name: str, source: str, letter: str) -> str:
        """The expression of q, k or v by ``name`` of all heads, made of the vectors ``source``, [N, H, ``letter``, D]."""

    @abstractmethod
    def _with_extra(self, name: str) -> list[str]:
        """Lines that put the keys or values, by ``name``, that ``add_bias_kv`` and ``add_zero_attn`` bring after those there are."""

    def rules(self, xp: str) -> list[str]:
        """Lines that make the ``masks``, and ``hidden`` of the bool ones, True where a query may not attend."""
        parts = ["padding_mask[:, None, None]"] * self.padded + ["attn_mask"] * self.pairs
        axes = f"[{'N' if self.padded else ''}{', 1, ' if self.padded else ''}{'L' if self.pairs else '1'}, S]"
        return [*self.masks(xp), *[f"hidden = {' | '.join(parts)}  # {axes}, True: may not attend"] * self.hides]

    def query(self) -> list[str]:
        return [f"Q = {self._project('q', 'query', 'L')}"]

    def keys(self) -> list[str]:
        return [f"K = {self._project('k', 'key', 'S')}", *self._with_extra("k")]

    def projected_values(self) -> list[str]:
        return [f"V = {self._project('v', 'value', 'S')}", *self._with_extra("v")]

    def values(self) -> list[str]:
        return [*self.projected_values(), "heads = weights @ V  # [N, H, L, D]"]

    def padding(self, xp: str, name: str = "query_padding", of: int = 0) -> list[str]:
        """Lines that make the padding of the queries [N, L], or ``of`` 1, the keys [N, S]: True for tokens that are padding."""
        if isinstance(self.settings, Kept):
            read = 'given["padding_mask"]'
            return [f"{name} = {f'torch.from_numpy({read})' if xp == 'torch' else read}  # True: nobody may attend to it"]
        lines = [f"{name} = {xp}.zeros((N, {'LS'[of]}), dtype={'torch.bool' if xp == 'torch' else 'bool'})"]
        for item, count in enumerate(_counts(self.settings)[of]):
            if count:
                where = f":{count}" if self.settings.padding_side == "left" else f"-{count}:"
                lines.append(f"{name}[{item}, {where}] = True{'  # nobody may attend to these' * of}")
        return lines

    def masks(self, xp: str) -> list[str]:
        """Lines that make the masks that the Settings have.

        padding_mask [N, S] and attn_mask [L, S], as nn.MultiheadAttention takes them, and ``added``, which is added to the scores.
        """
        lines: list[str] = []
        s, make = self.settings, "torch.tensor" if xp == "torch" else "np.array"
        if self.padded:
            lines += self.padding(xp, "padding_mask", of=1)
        if self.hidden_keys:
            lines.append(f"padding_mask[:, {self.hidden_keys}] = True  # what if: no query reads these")
        if s.causal or s.window is not None:
            queries = f"{xp}.arange(L)[:, None] + S - L"
            lines.append(f"ahead = {xp}.arange(S) - ({queries})  # [L, S], the last query at the last key")
        if s.causal:
            lines.append("attn_mask = ahead > 0  # causal: no key after the query")
        if s.window is not None:
            lines.append(f"attn_mask = {'attn_mask | ' * s.causal}(abs(ahead) >= {s.window})  # window")
        if self.typed is not None and self.adds:
            rows = [f"    [{', '.join(_number(x) for x in row)}]," for row in self.typed.tolist()]
            lines += ['inf = float("inf")', f"added = {make}([", *rows]
            lines.append(f"], dtype={xp}.float32)  # [L, S], added to the scores; −inf hides")
        elif self.typed is not None:
            lines += [
                "own_mask = [",
                *(f'    "{"".join("01"[int(x)] for x in row)}",' for row in self.typed),
                "]  # 1: may not attend",
            ]
            before = "attn_mask | " if s.causal or s.window is not None else ""
            lines.append(f'attn_mask = {before}{make}([[entry == "1" for entry in row] for row in own_mask])  # [L, S]')
        return lines


class NumPyProgram(Program):
    def input(self) -> list[str]:
        lines = ["query, key, value = (array.numpy() for array in (query, key, value))"] * (self.settings.case == "random")
        return [*lines, "(N, L, E), S = query.shape, key.shape[1]"]

    def configure(self) -> list[str]:
        return [*self.sizes(), f"assert H * D == E{' and np.isfinite(query).all()' * self.finite}", *self.weights()]

    def sizes(self) -> list[str]:
        return [f"H = {self.settings.num_heads}", "D = E // H  # E has to be divisible by H"]

    def weights(self) -> list[str]:
        s, lines = self.settings, []
        if s.case == "random":
            lines.append("W = {name: weight.detach().numpy() for name, weight in attention.named_parameters()}")
        if self.packed:
            lines.append('Wq, Wk, Wv = np.split(W["in_proj_weight"], 3)  # [H·D, E] each; head h owns rows h·D to (h + 1)·D')
        else:
            lines.append('Wq, Wk, Wv = (W[f"{name}_proj_weight"] for name in "qkv")  # [H·D, E], [H·D, kdim], [H·D, vdim]')
        if s.bias:
            lines.append('bq, bk, bv = np.split(W["in_proj_bias"], 3)  # [H·D] each')
        return lines

    def _project(self, name: str, source: str, letter: str) -> str:
        bias = f" + b{name}" if self.settings.bias else ""
        return f"({source} @ W{name}.T{bias}).reshape(N, -1, H, D).swapaxes(1, 2)  # [N, H, {letter}, D]"

    def _with_extra(self, name: str) -> list[str]:
        s, lines, upper = self.settings, [], name.upper()
        if s.add_bias_kv:
            lines.append(f'bias_{name} = np.broadcast_to(W["bias_{name}"].reshape(1, H, 1, D), (N, H, 1, D))')
            lines.append(f"{upper} = np.concatenate([{upper}, bias_{name}], axis=2)  # [N, H, S + 1, D]")
        if s.add_zero_attn:
            lines.append(f"{upper} = np.pad({upper}, [(0, 0), (0, 0), (0, 1), (0, 0)])  # a key of zeros at the end")
        return lines

    def dot(self) -> list[str]:
        return ["dots = Q @ K.swapaxes(-1, -2)  # [N, H, L, S]"]

    def scale(self) -> list[str]:
        return ["scores = dots / np.sqrt(np.float32(D))  # [N, H, L, S]"]

    def mask(self) -> list[str]:
        lines, terms = self.rules("np"), "scores"
        if self.extra:
            lines += [f"{name} = np.pad({name}, [(0, 0)] * ({name}.ndim - 1) + [(0, {self.extra})])" for name in self._masks()]
        if self.adds:
            terms = "scores + added"
        if self.hides:
            terms = f"np.where(hidden, -np.inf, {terms})" if self.finite else f"{terms} + np.where(hidden, -np.inf, 0)"
        note = "  # [N, H, L, S]" if self.hides or self.adds else "  # nothing is hidden"
        return [*lines, f"masked = {terms}{note}"]

    def _masks(self) -> list[str]:
        return ["hidden"] * self.hides + ["added"] * self.adds

    def softmax(self) -> list[str]:
        return [*SOFTMAX["numpy"], *["weights = probabilities"] * (not self.drops)]

    def dropout(self) -> list[str]:
        p = self.settings.dropout
        kept = f"torch.empty({_DRAWN}).bernoulli_({1 - p!r}).numpy().reshape(N, H, L, -1)"
        return [f"kept = {kept}  # 1: kept", "weights = probabilities * kept" + (f" / {_kept(p)}" if p < 1 else "")]

    def concat(self) -> list[str]:
        return ["concat = heads.swapaxes(1, 2).reshape(N, L, H * D)  # [N, L, H·D]"]

    def project(self) -> list[str]:
        s = self.settings
        bias = ' + W["out_proj.bias"]' if s.bias else ""
        return [
            'Wo = W["out_proj.weight"].T  # [H·D, E]; head h meets rows h·D to (h + 1)·D',
            "parts = [heads[:, j] @ Wo[j * D : (j + 1) * D] for j in range(H)]  # H × [N, L, E]",
            f"multi_head_output = sum(parts){bias}  # [N, L, E]",
        ]

    def output(self) -> list[str]:
        bias = ' + W["out_proj.bias"]' if self.settings.bias else ""
        return [
            f"at_once = concat @ Wo{bias}  # the same in one product",
            "assert np.allclose(multi_head_output, at_once, atol=1e-5, equal_nan=True)",
        ]

    def validate(self) -> list[str]:
        lines = ["assert multi_head_output.shape == query.shape"]
        lines += ["given = ~np.isnan(probabilities).any(axis=-1)  # a row without a key has no distribution"]
        lines += ["assert np.allclose(probabilities.sum(axis=-1)[given], 1, atol=1e-5)"]
        if self.hides:
            lines.append("assert not probabilities[np.broadcast_to(hidden, probabilities.shape) & given[..., None]].any()")
        return [*lines, 'print("holds for", given.sum(), "of", given.size, "rows of weights")']


class TorchProgram(Program):
    def input(self) -> list[str]:
        return ["(N, L, E), S = query.shape, key.shape[1]"]

    def configure(self) -> list[str]:
        return [*self.sizes(), f"assert H * D == E{' and query.isfinite().all()' * self.finite}", *self.mode(), *self.weights()]

    def sizes(self) -> list[str]:
        return ["H, D = attention.num_heads, attention.head_dim"]

    def mode(self) -> list[str]:
        return [] if self.settings.training else ["attention.eval()  # dropout off"]

    def weights(self) -> list[str]:
        if self.packed:
            lines = ["Wq, Wk, Wv = attention.in_proj_weight.chunk(3)  # [H·D, E] each; head h owns rows h·D to (h + 1)·D"]
        else:
            lines = ["Wq, Wk, Wv = attention.q_proj_weight, attention.k_proj_weight, attention.v_proj_weight"]
        biases = "bq, bk, bv = attention.in_proj_bias.chunk(3)  # [H·D] each"
        return [*lines, biases if self.settings.bias else "bq = bk = bv = None  # bias=False"]

    def _project(self, name: str, source: str, letter: str) -> str:
        return f"F.linear({source}, W{name}, b{name}).view(N, -1, H, D).transpose(1, 2)  # [N, H, {letter}, D]"

    def _with_extra(self, name: str) -> list[str]:
        s, lines, upper = self.settings, [], name.upper()
        if s.add_bias_kv:
            lines.append(f"bias_{name} = attention.bias_{name}.view(1, H, 1, D).expand(N, H, 1, D)")
            lines.append(f"{upper} = torch.cat([{upper}, bias_{name}], dim=2)  # [N, H, S + 1, D]")
        if s.add_zero_attn:
            lines.append(f"{upper} = F.pad({upper}, (0, 0, 0, 1))  # a key of zeros at the end")
        return lines

    def dot(self) -> list[str]:
        return ["dots = Q @ K.transpose(-2, -1)  # [N, H, L, S]"]

    def scale(self) -> list[str]:
        return ["scores = dots / math.sqrt(D)  # [N, H, L, S]"]

    def mask(self) -> list[str]:
        lines, terms = self.rules("torch"), "scores"
        names = ["hidden"] * self.hides + ["added"] * self.adds
        if self.extra:
            lines += [f"{name}_and_extra = F.pad({name}, (0, {self.extra}))  # the extra keys are seen" for name in names]
            names = [f"{name}_and_extra" for name in names]
        if self.adds:
            terms = f"scores + {names[-1]}"
        if self.hides and not self.finite:  # PyTorch adds −∞, which hides no NaN
            terms = f"{terms} + torch.where({names[0]}, -math.inf, 0.0)"
        elif self.hides:
            terms = f"{f'({terms})' if self.adds else terms}.masked_fill({names[0]}, -math.inf)"
        note = "  # [N, H, L, S]" if names else "  # nothing is hidden"
        return [*lines, f"masked = {terms}{note}"]

    def softmax(self) -> list[str]:
        return [*SOFTMAX["torch"], *["weights = probabilities"] * (not self.drops)]

    def dropout(self) -> list[str]:
        p = self.settings.dropout
        return [
            "before_dropout = torch.get_rng_state()  # so that the module can draw the same",
            f"weights = F.dropout(probabilities.flatten(0, 1), {p!r}).view_as(probabilities)  # [N, H, L, S]",
        ]

    def concat(self) -> list[str]:
        return ["concat = heads.transpose(1, 2).reshape(N, L, H * D)  # [N, L, H·D]"]

    def project(self) -> list[str]:
        bias = " + attention.out_proj.bias" if self.settings.bias else ""
        return [
            "Wo = attention.out_proj.weight.T  # [H·D, E]; head h meets rows h·D to (h + 1)·D",
            "parts = [heads[:, j] @ Wo[j * D : (j + 1) * D] for j in range(H)]  # H × [N, L, E]",
            f"multi_head_output = sum(parts){bias}  # [N, L, E]",
        ]

    def output(self) -> list[str]:
        return [
            "at_once = attention.out_proj(concat)  # the same in one product",
            "near = dict(atol=1e-5, rtol=1e-5, equal_nan=True)",
            "torch.testing.assert_close(multi_head_output, at_once, **near)",
        ]

    def validate(self) -> list[str]:
        """The module itself, called with the same masks, gives the same; gradients are finite where every row has a key."""
        lines = [*self.of_one_kind(), *["torch.set_rng_state(before_dropout)"] * self.drops, *self.call("output, its_weights")]
        lines += [
            f"torch.testing.assert_close({ours}, {its}, **near)"
            for ours, its in (("weights", "its_weights"), ("multi_head_output", "output"))
        ]
        return [
            *lines,
            "output.sum().backward()",
            "gradients = [weight.grad for weight in attention.parameters()]",
            "finite = all(gradient.isfinite().all() for gradient in gradients if gradient is not None)",
            'print("as nn.MultiheadAttention; all gradients finite:", bool(finite))',
        ]

    def of_one_kind(self) -> list[str]:
        """Lines that make both masks one of numbers where one is: PyTorch wants them so."""
        lines = ["padding_mask = torch.zeros(N, S).masked_fill(padding_mask, -math.inf)"] * (self.adds and self.padded)
        return [*lines, *["added = added.masked_fill(attn_mask, -math.inf)"] * (self.adds and self.pairs)]

    def call(self, names: str) -> list[str]:
        """Lines that call the module with its masks; what it returns gets these ``names``, "output" the first where it is kept."""
        first = self.settings.batch_first
        inputs = ", ".join(f"{name}{'' if first else '.transpose(0, 1)'}" for name in ("query", "key", "value"))
        masks = ", key_padding_mask=padding_mask" * self.padded
        masks += ", attn_mask=added" if self.adds else ", attn_mask=attn_mask" * self.pairs
        lines = [f"{names} = attention(", f"    {inputs}{masks},", "    average_attn_weights=False,  # [N, H, L, S]", ")"]
        turned = not first and names.startswith("output")
        return [*lines, *["output = output.transpose(0, 1)  # [L, N, E] → [N, L, E]"] * turned]


SOFTMAX = {
    "numpy": (
        "exponentials = np.exp(masked - masked.max(axis=-1, keepdims=True))  # no overflow",
        "probabilities = exponentials / exponentials.sum(axis=-1, keepdims=True)  # [N, H, L, S]",
    ),
    "torch": ("probabilities = torch.softmax(masked, dim=-1)  # [N, H, L, S]",),
}
_DRAWN = "N * H, L, probabilities.shape[-1]"


def _kept(p: float) -> str:
    return f"np.float32({1 - p!r})"


def _number(value: float) -> str:
    return "-inf" if value == -np.inf else repr(value)


def _counts(s: Settings) -> tuple[list[int], list[int]]:
    """Padded tokens per batch item, of the queries and of the keys."""

    def of(texts: Sequence[Sequence[str]] | None, padding: Sequence[int], length: int) -> list[int]:
        return [length - len(text) for text in texts] if texts else [*padding, *[0] * (s.N - len(padding))]

    queries = of(s.texts, s.padding, s.L)
    return queries, of(s.source_texts, s.source_padding, s.S) if s.cross else queries
