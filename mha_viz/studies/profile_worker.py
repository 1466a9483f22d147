"""What is profiled runs here, in a process of its own: ``python -m mha_viz.studies.profile_worker THREADS``.

A request is a JSON object in a line on stdin: what to "do", and for which call. Its answer is one on stdout. A point that takes too much
memory ends this process, or the one that it forks, and nothing else.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from copy import copy
from functools import cache
from typing import TYPE_CHECKING, Any

import psutil
import torch

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Unpack

    from jaxtyping import Bool, Float
    from torch import Tensor

    from mha_viz.studies.profile_process import Answer, Request


CALIBRATION = 384  # rows and columns of the fixed product
SHORT = 16  # tokens of the call that brings in what libraries load when they are first used


@cache
def call(
    embed_dim: int, num_heads: int, seq_len: int, batch_size: int, dtype: str, need_weights: bool, mask: str
) -> Callable[[], object]:
    """What runs one call, its layer and input made."""
    dtype, (N, L, E) = getattr(torch, dtype), (batch_size, seq_len, embed_dim)
    layer, x = copy(layer_of(E, dtype)), input_of(N, L, E, dtype)
    layer.num_heads, layer.head_dim = num_heads, E // num_heads  # of the same weights: they do not depend on it
    options: dict[str, bool | Tensor] = {"need_weights": need_weights, "average_attn_weights": False}
    if mask == "causal":
        options["attn_mask"] = causal(L)
    elif mask == "padding":
        options["key_padding_mask"] = (torch.arange(L) >= L - L // 4).expand(N, L)  # [N, L]
    return lambda: layer(x, x, x, **options)


@cache
def layer_of(E: int, dtype: torch.dtype) -> torch.nn.MultiheadAttention:
    return torch.nn.MultiheadAttention(E, 1, batch_first=True, dtype=dtype).eval()


@cache
def input_of(N: int, L: int, E: int, dtype: torch.dtype) -> Float[Tensor, "N L E"]:
    return torch.randn(N, L, E, dtype=dtype)  # [N, L, E]


@cache
def causal(L: int) -> Bool[Tensor, "L L"]:
    return torch.ones(L, L, dtype=torch.bool).triu(1)  # [L, L]


def seconds(**point: Unpack[Request]) -> float:
    run = call(**point)
    began = time.perf_counter()
    run()
    return time.perf_counter() - began


def calibration() -> float:
    """Seconds of a product whose work never changes: what it takes says how busy the machine is."""
    a = calibration_matrix()
    began = time.perf_counter()
    torch.mm(a, a)
    return time.perf_counter() - began


@cache
def calibration_matrix() -> Tensor:
    return torch.ones(CALIBRATION, CALIBRATION)


def peak(**point: Unpack[Request]) -> int:
    """Bytes that one call adds at its peak to what this process held before it."""
    call(**point | {"seq_len": SHORT, "batch_size": 1})()
    run = call(**point)
    before = psutil.Process().memory_info().rss
    run()
    return max(peak_so_far() - int(before), 0)


def peak_so_far() -> int:
    memory = psutil.Process().memory_info()
    if hasattr(memory, "peak_wset"):  # Windows
        return int(memory.peak_wset)
    import resource

    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else 1024 * most


def forked(do: str, **point: Any) -> Answer:
    """What ``do`` answers in a process that has done nothing before: this one has imported PyTorch and computed nothing."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writing, json.dumps(answer(do, point)).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        said = pipe.read()
    os.waitpid(child, 0)
    return json.loads(said) if said else {"died": True}


DO: dict[str, Callable[..., float]] = {"seconds": seconds, "calibration": calibration, "peak": peak}


def answer(do: str, point: Mapping[str, Any]) -> Answer:
    try:
        return {"value": DO[do](**point)}
    except (RuntimeError, MemoryError) as error:  # PyTorch says so where it cannot allocate
        return {"error": str(error).strip().splitlines()[0] if str(error) else type(error).__name__}


def main() -> None:
    torch.set_num_threads(int(sys.argv[1]))
    torch.set_grad_enabled(False)
    torch.backends.mha.set_fastpath_enabled(False)  # the path of training and of every call with gradients
    torch.manual_seed(0)
    for line in sys.stdin:
        request = json.loads(line)
        do = request.pop("do")
        said = forked(do, **request) if do == "peak" and hasattr(os, "fork") else answer(do, request)
        print(json.dumps(said), flush=True)


if __name__ == "__main__":
    main()
