"""Profile: what is measured of a layer's time and memory."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from mha_viz.core.arrays import DTYPES, Dtype
from mha_viz.core.rules import Wrong, divisors, head_dim
from mha_viz.settings.rules import Ruled, choice, number, ruled, several

HEADS, LENGTHS = (1, 2, 4, 8), (64, 128, 256, 512, 1024)
Returned: TypeAlias = Literal["both", "on", "off"]  # the weights
Hidden: TypeAlias = Literal["none", "causal", "padding"]
BOTH: Returned = "both"
RETURNED: tuple[Returned, ...] = get_args(Returned)
HIDDEN: tuple[Hidden, ...] = get_args(Hidden)


@dataclass(frozen=True)
class Profile(Ruled):
    """Self-attention of random tokens, eval mode, no gradients, for each of ``num_heads`` and of ``seq_len``, ascending.

    ``need_weights`` "both" measures every point with the weights returned and without. ``padding`` hides the last quarter of the keys.
    ``threads`` are those that PyTorch may use. Each point is timed ``repeats`` times, in turn with all others.
    """

    embed_dim: int = ruled(128, number(1, 16_384))
    num_heads: tuple[int, ...] = ruled(HEADS, several(1, 16_384, HEADS))
    seq_len: tuple[int, ...] = ruled(LENGTHS, several(2, 131_072, LENGTHS))
    batch_size: int = ruled(1, number(1, 4096))
    dtype: Dtype = ruled("float32", choice(*DTYPES))
    need_weights: Returned = ruled(BOTH, choice(*RETURNED))
    mask: Hidden = ruled("none", choice(*HIDDEN))
    threads: int = ruled(1, number(1, 256))
    repeats: int = ruled(9, number(1, 1000))

    def check_together(self) -> None:
        """Raises Wrong where a head count does not divide ``embed_dim``."""
        for heads in self.num_heads:
            try:
                head_dim(self.embed_dim, heads)
            except Wrong as wrong:
                raise Wrong(
                    "num_heads", self.num_heads, wrong.rule, [{"num_heads": these} for these in self._that_divide()]
                ) from None

    def _that_divide(self) -> Iterable[tuple[int, ...]]:
        """The head counts, each that does not divide the embed_dim moved to the next lower one that does, and to the next higher."""
        lower = [max(one for one in divisors(self.embed_dim) if one <= heads) for heads in self.num_heads]
        higher = [
            min((one for one in divisors(self.embed_dim) if one >= heads), default=self.embed_dim) for heads in self.num_heads
        ]
        return dict.fromkeys(tuple(sorted(set(these))) for these in (lower, higher))
