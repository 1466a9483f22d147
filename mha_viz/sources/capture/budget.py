"""What a recording takes, told before it fills the memory, with the filters that would make it fit."""

import psutil

from mha_viz.core.attend import readable_size
from mha_viz.core.rules import Wrong


def default_limit():
    """Half of the memory that is free now, in bytes."""
    return psutil.virtual_memory().available // 2


def size_of_call(N, H, G, L, S, D, Dv, itemsize):
    """Bytes of q [N, H, L, D], k [N, G, S, D] and v [N, G, S, Dv]: what is kept of a call whose mask is made of rules."""
    return N * (H * L * D + G * S * (D + Dv)) * itemsize


def check(limit, used, size, expected, names, N, L, by_length):
    """Raises Wrong where ``used`` bytes and ``expected`` more calls of ``size`` bytes each are over ``limit`` bytes.

    ``names`` are those of the modules that these calls come from. It advises fewer ``items`` of N, a smaller ``max_length`` than L
    and fewer ``layers``, each by itself; ``by_length(m)`` is what a call takes with m queries.
    """
    if used + expected * size <= limit:
        return
    left = max(limit - used, 0)
    nearest = []
    items = int(left * N // (expected * size))
    if items:
        nearest.append({"items": range(items)})
    length = _longest(L, lambda m: expected * by_length(m) <= left)
    if length:
        nearest.append({"max_length": length})
    layers = names[: left // size]
    if layers and len(names) > 1:
        nearest.append({"layers": layers[0] if len(layers) == 1 else tuple(layers)})
    already = f" beside {readable_size(used)} of calls before" if used else ""
    calls = "this call" if expected == 1 else f"{expected} calls like this one, of {readable_size(size)} each,"
    rule = f"{calls} would take {readable_size(expected * size)}{already}. Keep fewer, or raise limit, in bytes."
    raise Wrong("limit", limit, rule, nearest)


def _longest(most, fits):
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(middle) else (low, middle - 1)
    return low
