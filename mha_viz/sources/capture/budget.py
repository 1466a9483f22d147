"""What a recording takes, told before it fills the memory, with the filters that would make it fit."""

from collections.abc import Callable, Sequence

from mha_viz.core.memory import free, largest, readable_size
from mha_viz.core.rules import Wrong


def default_limit() -> int:
    """Half of the memory that is free now, in bytes."""
    return free() // 2


def size_of_call(N: int, H: int, G: int, L: int, S: int, D: int, Dv: int, itemsize: int) -> int:
    """Bytes of q [N, H, L, D], k [N, G, S, D] and v [N, G, S, Dv]: what is kept of a call whose mask is made of rules."""
    return N * (H * L * D + G * S * (D + Dv)) * itemsize


def check(limit: int, used: int, expected: int, names: Sequence[str], N: int, L: int, size: Callable[[int, int], int]) -> None:
    """Raises Wrong where ``used`` bytes and ``expected`` more calls like this one are over ``limit`` bytes.

    ``names`` are those of the modules that these calls come from; ``size(n, m)`` is what a call takes with n batch items and m
    queries, of N and L. It advises fewer ``items``, a smaller ``max_length`` and fewer ``layers``, each by itself.
    """
    one = size(N, L)
    if used + expected * one <= limit:
        return
    left = max(limit - used, 0)
    nearest: list[dict[str, range | int | str | tuple[str, ...]]] = []
    items = largest(N, lambda n: expected * size(n, L) <= left)
    if items:
        nearest.append({"items": range(items)})
    length = largest(L, lambda m: expected * size(N, m) <= left)
    if length:
        nearest.append({"max_length": length})
    layers = names[: left // one]
    if layers and len(names) > 1:
        nearest.append({"layers": layers[0] if len(layers) == 1 else tuple(layers)})
    already = f" beside {readable_size(used)} of calls before" if used else ""
    calls = "this call" if expected == 1 else f"{expected} calls like this one, of {readable_size(one)} each,"
    rule = f"{calls} would take {readable_size(expected * one)}{already}. Keep fewer, or raise limit, in bytes."
    raise Wrong("limit", limit, rule, nearest)
