"""The full Trace against the bare layer: what it costs to see everything."""

import torch
from torch import nn

from mha_viz.core.attend import attend
from mha_viz.core.batch import Batch
from mha_viz.core.layer import Layer
from mha_viz.core.trace import Trace
from tests.bench.clock import Row, interleaved, milliseconds

SIZES = {(3, 20, 128, 8): (1.3, 1000), (8, 512, 768, 12): (1.15, 15)}  # N, L, E, H: at most this ratio, in so many rounds


def rows():
    """Both from what is ready: Layer and Batch here, module and tensors there, with a padding mask, in eval mode. Ours ends with every
    field of the Trace read as NumPy; theirs is one call with the weights of each head and gradients on: PyTorch's slow path.
    A second row for each size makes the Batch, checks and copies and all, inside the clock as well.
    """
    return [row for size, (at_most, turns) in SIZES.items() for row in _rows(size, at_most, turns)]


def _rows(size, at_most, turns):
    N, L, E, H = size
    torch.manual_seed(7)
    attention = nn.MultiheadAttention(E, H, dropout=0.1, batch_first=True).eval()
    tokens = torch.randn(N, L, E)
    padding = torch.zeros(N, L, dtype=torch.bool)
    padding[0, -3:] = True
    layer, batch = Layer.from_state_dict(attention.state_dict(), H), Batch(tokens, key_padding_mask=padding)

    def bare():
        return attention(tokens, tokens, tokens, padding, average_attn_weights=False)

    def full():
        trace = attend(layer, batch)
        return [getattr(trace, name) for name in Trace.fields()]

    def with_batch():
        trace = attend(layer, Batch(tokens, key_padding_mask=padding))
        return [getattr(trace, name) for name in Trace.fields()]

    for call, what, target in ((full, "full Trace", f"≤ {at_most}×"), (with_batch, "Batch and full Trace", "")):
        ours, theirs = interleaved((call, bare), turns)
        yield Row(
            f"{what} : nn.MultiheadAttention, N{N} L{L} E{E} H{H}",
            f"{ours / theirs:.2f}× ({milliseconds(ours)} : {milliseconds(theirs)})",
            target,
            f"every field as NumPy : one call, weights per head, gradients on; medians of {turns} turns",
        )
