"""What is profiled runs here, in a process of its own: ``python -m mha_viz.studies.profile_worker THREADS``.

A request is a JSON object in a line on stdin: what to "do", and for which call. Its answer is one on stdout. A point that takes too much
memory ends this process, or the one that it forks, and nothing else.
"""

import json
import os
import sys
import time
from copy import copy
from functools import cache

import psutil
import torch

CALIBRATION = 384  # rows and columns of the fixed product
SHORT = 16  # tokens of the call that brings in what libraries load when they are first used


@cache
def call(embed_dim, num_heads, seq_len, batch_size, dtype, need_weights, mask):
    """What runs one call, its layer and input made."""
    dtype, (N, L, E) = getattr(torch, dtype), (batch_size, seq_len, embed_dim)
    layer, x = copy(layer_of(E, dtype)), input_of(N, L, E, dtype)
    layer.num_heads, layer.head_dim = num_heads, E // num_heads  # of the same weights: they do not depend on it
    options = {"need_weights": need_weights, "average_attn_weights": False}
    if mask == "causal":
        options["attn_mask"] = causal(L)
    elif mask == "padding":
        options["key_padding_mask"] = (torch.arange(L) >= L - L // 4).expand(N, L)  # [N, L]
    return lambda: layer(x, x, x, **options)


@cache
def layer_of(E, dtype):
    return torch.nn.MultiheadAttention(E, 1, batch_first=True, dtype=dtype).eval()


@cache
def input_of(N, L, E, dtype):
    return torch.randn(N, L, E, dtype=dtype)  # [N, L, E]


@cache
def causal(L):
    return torch.ones(L, L, dtype=torch.bool).triu(1)  # [L, L]


def seconds(**point):
    run = call(**point)
    began = time.perf_counter()
    run()
    return time.perf_counter() - began


def calibration():
    """Seconds of a product whose work never changes: what it takes says how busy the machine is."""
    a = calibration_matrix()
    began = time.perf_counter()
    torch.mm(a, a)
    return time.perf_counter() - began


@cache
def calibration_matrix():
    return torch.ones(CALIBRATION, CALIBRATION)


def peak(**point):
    """Bytes that one call adds at its peak to what this process held before it."""
    call(**point | {"seq_len": SHORT, "batch_size": 1})()
    run = call(**point)
    before = psutil.Process().memory_info().rss
    run()
    return max(peak_so_far() - before, 0)


def peak_so_far():
    memory = psutil.Process().memory_info()
    if hasattr(memory, "peak_wset"):  # Windows
        return memory.peak_wset
    import resource

    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else 1024 * most


def forked(do, **point):
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


DO = {"seconds": seconds, "calibration": calibration, "peak": peak}


def answer(do, point):
    try:
        return {"value": DO[do](**point)}
    except (RuntimeError, MemoryError) as error:  # PyTorch says so where it cannot allocate
        return {"error": str(error).strip().splitlines()[0] if str(error) else type(error).__name__}


def main():
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
