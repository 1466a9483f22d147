"""What one call of ``nn.MultiheadAttention`` costs by formula: its work, and the memory that it holds at most beside layer and input.

Self-attention, heads as PyTorch's slow path computes them. Neither formula knows the machine: what libraries take for themselves, a few
MiB, and what caches and threads make of the work is for measuring.
"""

from mha_viz.core.decode import SIZES


def call_flops(N: int, L: int, E: int) -> int:
    """Floating-point operations of the products of one call, a multiply-add as two.

    Four projections of N·L tokens, E × E each, and q · k and weights · v, L × L × D in each of H heads. H · D = E: the number of heads is
    not in it, and a mask saves nothing, as masked scores are computed and thrown away.

    >>> call_flops(N=1, L=1024, E=512)
    4294967296
    """
    return 2 * N * (4 * L * E * E + 2 * L * L * E)


def call_memory(
    N: int, H: int, L: int, E: int, *, need_weights: bool = True, causal: bool = False, dtype: str = "float32"
) -> int:
    """Bytes that a call without gradients holds at its peak, layer and input not counted.

    With ``need_weights`` scores and weights [N, H, L, L] stand beside each other in the softmax, with q, k, v and the scaled q
    [N, L, E]. Without, ``scaled_dot_product_attention`` goes over the keys block by block and no map is ever whole. At short
    lengths the projections are more: q, k and v, twice while they are laid out one by one. A causal mask is [L, L] numbers.

    >>> call_memory(1, 8, 1024, 512) / 2**20, call_memory(1, 8, 1024, 512, need_weights=False) / 2**20
    (72.0, 12.0)
    """
    tokens, maps, mask = N * L * E, N * H * L * L, L * L if causal else 0
    held = max(2 * maps + 4 * tokens, 6 * tokens) if need_weights else 6 * tokens
    return (held + mask) * SIZES[dtype]
