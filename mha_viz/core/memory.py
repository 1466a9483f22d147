"""What fits into memory: how much is free, what a layer and its maps take at their peak, and what to say where that is too much."""

from __future__ import annotations

import bisect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

from mha_viz.core.rules import Wrong

if TYPE_CHECKING:
    from mha_viz.core.trace import Trace

WHOLE = 2**30  # bytes of a Trace up to which its maps are kept whole, and looked at at once
ALWAYS_FREE = 2**26  # bytes; a Trace that takes less is not worth asking the system, which takes as long as a small one
PART = 2**21  # cells that numbers are read from at a time, so that reading a map takes no memory of the map's size
WORKING = 16  # bytes a cell while they are
LOOKS = 10  # bytes a cell of one map, while what is masked and padded in it is drawn
SHARE = 0.5  # of what is free


def memory(N: int, H: int, L: int, S: int, E: int, *, dtype: str = "float32", dropout: bool = False) -> int:
    """Bytes that a Trace of this size holds once every field has been read, the input not counted.

    Maps [N, H, L, S]: scores and probabilities, with dropout also the draw, the weights and what was dropped; at most a byte a
    cell for the mask. Then the average [N, L, S] and seven tensors of tokens. bfloat16 is kept and leaves as float32 besides.

    >>> memory(N=1, H=8, L=1024, S=1024, E=512) / 2**20
    90.0
    """
    size = {"float64": 8, "bfloat16": 6, "float16": 2}.get(dtype, 4)
    a_cell = 4 * size + 2 if dropout else 2 * size + 1
    return N * H * L * S * a_cell + N * L * S * size + 7 * N * max(L, S) * E * size


def peak(N: int, H: int, L: int, S: int, E: int, *, dtype: str = "float32", dropout: bool = False) -> int:
    """Bytes that such a Trace takes at most while it is made and a page reads all its numbers and draws it."""
    return memory(N, H, L, S, E, dtype=dtype, dropout=dropout) + WORKING * min(N * H * L * S, PART) + LOOKS * L * S


def layer_memory(embed_dim: int, kdim: int | None = None, vdim: int | None = None) -> int:
    """Bytes of a layer's weights; the engine computes with the same ones.

    >>> layer_memory(512) / 2**20
    4.0
    """
    return 4 * embed_dim * (2 * embed_dim + (kdim or embed_dim) + (vdim or embed_dim))


def too_long(trace: Trace) -> bool:
    """True for a Trace whose maps are better not read, as they take more than WHOLE: see ``mha_viz.core.long``."""
    if trace.call is None:
        return False
    N, H, L, S = trace.shape
    return beyond_whole(N, H, L, S, H * trace.call.q.shape[3])


def beyond_whole(N: int, H: int, L: int, S: int, E: int) -> bool:
    """True for maps that take more than WHOLE, and so are looked at in blocks and parts."""
    return memory(N, H, L, S, E) > WHOLE


# What does not fit


def check_memory(
    N: int, H: int, L: int, S: int, E: int, *, dtype: str = "float32", dropout: bool = False, available: int | None = None
) -> None:
    """Raises Wrong where the Trace would take more than half of the memory that is free.

    It advises the longest ``seq_len``, the longest ``source_len`` (where the keys are a sequence of their own) and the largest
    ``batch_size`` that would fit, each with everything else unchanged. ``available`` is in bytes, what is free now where None.
    """

    def needed(N: int = N, L: int = L, S: int = S) -> int:
        return peak(N, H, L, S, E, dtype=dtype, dropout=dropout)

    if available is None and needed() <= ALWAYS_FREE:
        return
    available, fits = _free(available)
    if fits(needed()):
        return
    extra = S - L  # columns of add_bias_kv and add_zero_attn, which stay when a sequence that attends to itself is shortened
    if 0 <= extra <= 2:
        most = {"seq_len": largest(L, lambda length: fits(needed(L=length, S=length + extra)))}
    else:
        most = {
            "seq_len": largest(L, lambda length: fits(needed(L=length))),
            "source_len": largest(S, lambda length: fits(needed(S=length))),
        }
    most["batch_size"] = largest(N, lambda count: fits(needed(N=count)))
    rule = (
        f"[N, H, L, S] = [{N}, {H}, {L}, {S}] would take {readable_size(needed())} with every intermediate, {_limit(available)}"
    )
    raise Wrong("seq_len", L, rule, [{name: value} for name, value in most.items() if value])


def check_projected_memory(N: int, L: int, S: int, E: int, *, dtype: str = "float32", available: int | None = None) -> None:
    """Raises Wrong where q, k and v, with all that is made on the way to them, would take more than half of the memory that is free."""
    available, fits = _free(available)

    def needed(N: int) -> int:
        return projected_memory(N, L, S, E, dtype=dtype)

    if not fits(needed(N)):
        rule = f"q, k and v of {N} × {max(L, S)} tokens would take {readable_size(needed(N))}, {_limit(available)}"
        most = largest(N, lambda count: fits(needed(count)))
        raise Wrong("batch_size", N, rule, [{"batch_size": most}] if most else [])


def projected_memory(N: int, L: int, S: int, E: int, *, dtype: str = "float32") -> int:
    """Bytes of q, k and v at their peak: the input, twice while it is laid out, three projections, and as many again that a Call owns."""
    return 9 * N * max(L, S) * E * (8 if dtype == "float64" else 4)


def check_layer_memory(
    embed_dim: int, kdim: int | None = None, vdim: int | None = None, num_heads: int = 1, *, available: int | None = None
) -> None:
    """Raises Wrong where the weights of such a layer would take more than half of the memory that is free."""

    def needed(E: int) -> int:
        return layer_memory(E, kdim, vdim)

    if needed(embed_dim) <= ALWAYS_FREE:
        return
    available, fits = _free(available)
    if not fits(needed(embed_dim)):
        right = num_heads * largest(embed_dim // num_heads, lambda size: fits(needed(size * num_heads)))
        rule = f"the weights would take {readable_size(needed(embed_dim))}, {_limit(available)}"
        raise Wrong("embed_dim", embed_dim, rule, [{"embed_dim": right}] if right else [])


def largest(most: int, fits: Callable[[int], bool]) -> int:
    """The largest whole number up to ``most`` that fits, 0 where none does; what fits must go on fitting below.

    >>> largest(100, lambda number: number * number < 50)
    7
    """
    return bisect.bisect_left(range(1, min(most, 2**62) + 1), True, key=lambda number: not fits(number))


def readable_size(count: float) -> str:
    """So many bytes as a person reads them, in four digits.

    >>> readable_size(1000), readable_size(3 * 2**19)
    ('1000 bytes', '1.5 MiB')
    """
    units = ["bytes", "KiB", "MiB", "GiB", "TiB"]
    while count >= 1024 and len(units) > 1:
        count /= 1024
        units.pop(0)
    return f"{count:.4g} {units[0]}"


def _free(available: int | None) -> tuple[int, Callable[[float], bool]]:
    """(bytes that are free, whether a number of bytes is at most half of them)."""
    available = free() if available is None else available
    return available, lambda size: size <= SHARE * available


def _limit(available: float) -> str:
    return f"and {readable_size(SHARE * available)} may be used, half of what is free."


# Where memory ran out all the same


def ran_out(error: BaseException) -> bool:
    """True for an exception that says that memory could not be had: Python's own, NumPy's and PyTorch's."""
    return isinstance(error, MemoryError) or (
        isinstance(error, RuntimeError)
        and any(words in str(error) for words in ("can't allocate memory", "bad_alloc", "bad alloc"))
    )


@contextmanager
def in_memory(N: int, H: int, L: int, S: int, E: int, *, dtype: str = "float32") -> Iterator[None]:
    """Within it, memory that runs out is Wrong, with the sizes that would fit in what is free then."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        if not ran_out(error):
            raise
        raise out_of_memory(N, H, L, S, E, dtype=dtype) from error


def out_of_memory(N: int, H: int, L: int, S: int, E: int, *, dtype: str = "float32", available: int | None = None) -> Wrong:
    """The Wrong for a Trace of this size that memory ran out for: less than that size is right."""
    need = peak(N, H, L, S, E, dtype=dtype)
    try:
        check_layer_memory(E, available=available)
        check_memory(N, H, L, S, E, dtype=dtype, available=min(free() if available is None else available, 2 * need - 1))
    except Wrong as wrong:
        return Wrong(wrong.argument, wrong.value, f"memory ran out: {wrong.rule}", wrong.nearest)
    return Wrong("seq_len", L, "memory ran out while this was computed: others may be using it. Try again, or a shorter one.")


# What is free


def free() -> int:
    """Bytes that this process may still take: what the machine has, and what limits on the process and on its group leave of it."""
    left: tuple[int, ...] = (psutil.virtual_memory().available, *_left_by_limits(), *_left_by_groups(Path("/")))
    return max(0, min(left))


def _left_by_limits() -> Iterator[int]:
    """Bytes that limits of the process (``ulimit -v``, ``ulimit -d``) leave."""
    try:
        import resource
    except ImportError:  # Windows has no such limits
        return
    for limit in (resource.RLIMIT_AS, resource.RLIMIT_DATA):
        most, _ = resource.getrlimit(limit)
        if most != resource.RLIM_INFINITY:
            yield most - psutil.Process().memory_info().vms


def _left_by_groups(root: Path) -> Iterator[int]:
    """Bytes that the control groups of the process, a container's among them, leave; nothing where there are none."""
    try:
        listed = (root / "proc/self/cgroup").read_text().splitlines()
    except OSError:
        return
    for line in listed:
        _, kinds, path = line.split(":", 2)
        if kinds == "":
            base, names = root / "sys/fs/cgroup", ("memory.max", "memory.current", "inactive_file ")
        elif "memory" in kinds.split(","):
            base = root / "sys/fs/cgroup/memory"
            names = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file ")
        else:
            continue
        group = base / path.lstrip("/")
        for place in dict.fromkeys((group, *(parent for parent in group.parents if parent.is_relative_to(base)), base)):
            try:  # a container often sees its own group where the whole machine's would be
                most, used, stat = ((place / name).read_text() for name in (*names[:2], "memory.stat"))
            except OSError:
                continue
            if most.strip().isdigit() and int(most) < 2**60:  # v1 writes no limit as a number beyond all memory
                cached = next((int(line.split()[1]) for line in stat.splitlines() if line.startswith(names[2])), 0)
                yield int(most) - int(used) + cached  # files in memory give way
