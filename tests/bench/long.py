"""Maps of long sequences: pooled ones against PyTorch's attention without weights, exact windows, memory."""

import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

import torch
from torch.nn import functional as F

from mha_viz.analysis.streamed import STREAMED, Apart, Streamed
from mha_viz.core.attend import trace_of_call
from mha_viz.core.call import Call
from mha_viz.core.long import averaging, pooled
from mha_viz.core.mask import Mask
from mha_viz.recording import Recording, load
from tests.bench.clock import Row, interleaved

H, D, P = 12, 64, 256
LENGTHS = {4096: 5, 16384: 3}  # so many rounds
FULL, CAUSAL, PEAK, WINDOW, OPENED = 1.6, 0.65, 64, 0.1, 2
METHOD = f"H {H}, D {D}, float32, one item; CPU seconds of the whole process; medians of interleaved rounds on the same tensors"


def rows():
    for length, rounds in LENGTHS.items():
        yield from against_pytorch(length, rounds)
    yield with_statistics(4096)
    yield from at_length(32768)
    for length in (4096, 32768, 131072):
        peak = float(subprocess.check_output([sys.executable, "-m", "tests.bench.long", str(length)], text=True))
        yield Row(
            f"memory of a pooled map, L {length:,}",
            f"{peak:.0f} MiB",
            f"≤ {PEAK} MiB",
            "one head, causal, 512 × 512; highest resident set above that before, in a process of its own",
        )


def against_pytorch(length, rounds):
    q, k, v = drawn(H, length)
    full, causal = call_of(q, k), call_of(q, k, causal=True)
    calls = {
        "attention": lambda: F.scaled_dot_product_attention(q, k, v),
        "full": lambda: list(pooled(full, shape=(P, P))),
        "causal": lambda: list(pooled(causal, shape=(P, P))),
        "fine": lambda: list(pooled(full, shape=(2 * P, 2 * P))),
        "average": lambda: list(averaging(full, shape=(P, P))),
        "apart": lambda: list(averaging(full, shape=(P, P), read=Apart(trace_of_call(full, later=True), 0).read)),
    }
    taken = dict(zip(calls, interleaved(list(calls.values()), rounds, time.process_time, before=1), strict=True))

    def row(what, ours, theirs, target=""):
        ratio = f"{taken[ours] / taken[theirs]:.2f}× ({taken[ours]:.3g} s : {taken[theirs]:.3g} s)"
        return Row(f"{what}, L {length:,}", ratio, target, METHOD)

    yield row(f"max and mean at {P} × {P} : attention without weights", "full", "attention", f"≤ {FULL}×")
    yield row("the same of causal : of full attention", "causal", "full", f"≤ {CAUSAL}×")
    yield row(f"max and mean at {2 * P} × {2 * P} : attention without weights", "fine", "attention")
    yield row("the average of all heads, pooled : attention without weights", "average", "attention")
    yield row("with how far each head is from it : attention without weights", "apart", "attention")


def with_statistics(length):
    q, k, _ = drawn(1, length)
    call = call_of(q, k)
    trace = trace_of_call(call, later=True)
    seconds, alone = interleaved(
        [lambda: list(pooled(call, read=Streamed(trace, 0).read)), lambda: list(pooled(call))], 3, time.process_time
    )
    measured = f"{seconds / alone:.2f}× ({seconds:.3g} s : {alone:.3g} s)"
    return Row(
        f"the same with {len(STREAMED)} statistics in the same pass : without, L {length:,}",
        measured,
        "",
        f"one head; {METHOD}",
    )


def at_length(length):
    """One head: a window, and a saved recording opened."""
    q, k, v = drawn(H, length)
    call = Call(*(t.numpy() for t in (q, k, v)))
    middle = length // 2, length // 2 + 128
    (seconds,) = interleaved([lambda: next(pooled(call, [0], rows=middle, columns=middle))], 7, time.process_time)
    yield Row(f"exact window of 128 × 128, L {length:,}", f"{seconds:.2g} s", f"≤ {WINDOW} s", f"one head; {METHOD}")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "long.safetensors")
        Recording((trace_of_call(call, later=True),)).save(path)
        computed = partial(lambda: next(pooled(call)))
        opened, alone = interleaved([lambda: next(pooled(load(path).traces[0])), computed], 2, time.process_time, before=1)
    measured = f"{opened / alone:.2f}× ({opened:.3g} s : {alone:.3g} s)"
    yield Row(f"saved recording opened to its first pooled head : that head, L {length:,}", measured, f"≤ {OPENED}×", METHOD)


def drawn(heads, length):
    """q, k, v [1, heads, length, D]: what a trained layer's rows may look like, sharper than random ones."""
    generator = torch.Generator().manual_seed(0)
    q, k, v = (torch.randn(1, heads, length, D, generator=generator) for _ in range(3))
    return 2 * q, k, v


def call_of(q, k, **rules):
    return Call(q.numpy(), k.numpy(), mask=Mask(q.shape[2], k.shape[2], **rules))


def peak(length):
    """MiB of memory that a head takes at most beyond what was there before."""
    q, k, _ = drawn(1, length)
    call = call_of(q, k, causal=True)
    list(pooled(Call(call.q[:, :, :64], call.k[:, :, :64])))  # what is made once
    before = resident("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
    list(pooled(call, shape=(512, 512)))
    return (resident("VmHWM") - before) / 1024


def resident(what):
    lines = dict(line.split(":") for line in Path("/proc/self/status").read_text().splitlines())
    return int(lines[what].split()[0])


if __name__ == "__main__":
    print(peak(int(sys.argv[1])))
