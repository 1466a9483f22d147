"""How long decoding takes with a KV cache and without one, on this machine."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from mha_viz.core.decode import Decoder
from mha_viz.core.mask import Mask

if TYPE_CHECKING:
    from collections.abc import Callable

    from jaxtyping import Float
    from torch import Tensor

    from mha_viz.core.arrays import Dtype
    from mha_viz.core.layer import Layer


Run: TypeAlias = "Callable[[Decoder, Tensor, Tensor], Tensor]"  # tokens and what is added to their scores → outputs

LENGTHS = (16, 32, 64, 128, 256, 512, 1024)


@dataclass(frozen=True)
class Timing:
    """Seconds in which ``length`` tokens were decoded one by one: ``cached`` with the cache, ``again`` with all tokens run at each step."""

    length: int
    cached: float
    again: float


def time_decoding(
    layer: Layer,
    *,
    num_kv_heads: int | None = None,
    dtype: Dtype = "float32",
    lengths: Iterable[int] = LENGTHS,
    seconds: float = 3.0,
    seed: int = 0,
) -> Iterator[Timing]:
    """A Timing for each of ``lengths``, shortest first, of one sequence of random tokens; no longer ones once ``seconds`` were spent.

    Whoever asks may wait between two, or stop. Each is the faster of two runs, the first of which also warms up. Without the cache a
    step runs the layer on all tokens so far and keeps the last output alone, as generating without a cache does.
    """
    import torch

    spent = last = 0.0
    for length in lengths:
        if spent + 4 * last > seconds:  # twice the length is four times the work without the cache
            return
        start = time.perf_counter()
        decoder = Decoder(
            layer, Mask(length, length, len(layer.extra_keys), causal=True), 1, num_kv_heads=num_kv_heads, dtype=dtype
        )
        x = torch.randn(1, length, layer.embed_dim, generator=torch.Generator().manual_seed(seed)).to(
            decoder.dtype
        )  # [1, L, E]
        cached, again = (min(_run(run, decoder, x) for _ in range(2)) for run in (with_cache, without_cache))
        last = time.perf_counter() - start
        spent += last
        yield Timing(length, cached, again)


def with_cache(decoder: Decoder, x: Float[Tensor, "1 L E"], added: Float[Tensor, "1 1 L L+extra"]) -> Float[Tensor, "1 L E"]:
    """The output [1, L, E] of tokens x [1, L, E], each step reading the cache; ``added`` [1, 1, L, L + extra] as ``Decoder.added``."""
    import torch

    decoder.forget()
    steps = range(x.shape[1])
    return torch.cat([decoder.run(x[:, t : t + 1], _rows(added, t, t + 1))[-1] for t in steps], dim=1)


def without_cache(decoder: Decoder, x: Float[Tensor, "1 L E"], added: Float[Tensor, "1 1 L L+extra"]) -> Float[Tensor, "1 L E"]:
    """The same output, each step running all tokens so far."""
    import torch

    outputs = []
    for t in range(x.shape[1]):
        decoder.forget()
        outputs.append(decoder.run(x[:, : t + 1], _rows(added, 0, t + 1))[-1][:, -1:])
    return torch.cat(outputs, dim=1)


def _rows(added: Float[Tensor, "1 1 L L+extra"], start: int, stop: int) -> Float[Tensor, "1 1 n stop+extra"]:
    """Rows ``start`` to ``stop`` − 1 and the columns that are there by then: [1, 1, n, stop + extra]."""
    import torch

    rows, length = added[:, :, start:stop], added.shape[2]
    if rows.shape[3] == length:
        return rows[..., :stop]
    return torch.cat([rows[..., :stop], rows[..., length:]], dim=-1)


def _run(run: Run, decoder: Decoder, x: Float[Tensor, "1 L E"]) -> float:
    added = decoder.added(0, x.shape[1])
    began = time.perf_counter()
    run(decoder, x, added)
    return time.perf_counter() - began
