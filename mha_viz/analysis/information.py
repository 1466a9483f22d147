"""Entropy of rows, and the Jensen–Shannon divergence between them: what distances between heads are made of."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from jaxtyping import Float


def entropy_of(p: Float[np.ndarray, "... S"]) -> Float[np.ndarray, ...]:
    """Entropy in nats of rows of probabilities ``p``: −Σ p log p over the last axis, with 0 · log 0 = 0."""
    p = _single(p)
    logarithm = np.zeros_like(p)
    np.log(p, out=logarithm, where=p > 0)
    entropy: Float[np.ndarray, ...] = -(p * logarithm).sum(axis=-1)
    return entropy


def jensen_shannon(p: Float[np.ndarray, "... S"], q: Float[np.ndarray, "... S"]) -> Float[np.ndarray, ...]:
    """The Jensen–Shannon divergence of rows of ``p`` and ``q``, in parts of its upper bound ln 2: 0 (equal) to 1 (no key in common).

    In nats it is H((p + q) / 2) − (H(p) + H(q)) / 2 with entropy H. J. Lin, Divergence measures based on the Shannon entropy, IEEE
    Transactions on Information Theory 37 (1991), equations 4.1 and 4.2 and theorem 3 with equal weights. Rounding may leave it below
    0 or above 1 by as much as the type of p rounds: whoever averages clips afterwards, or the rounding adds up.
    """
    p, q = _single(p), _single(q)
    divergence: Float[np.ndarray, ...] = entropy_of((p + q) / 2) - (entropy_of(p) + entropy_of(q)) / 2  # in nats
    in_parts: Float[np.ndarray, ...] = divergence / p.dtype.type(np.log(2))
    return in_parts


def _single(p: Float[np.ndarray, "... S"]) -> Float[np.ndarray, "... S"]:
    """``p`` in float32 at least: in float16 a sum over many keys has two digits."""
    return p.astype(np.promote_types(p.dtype, np.float32), copy=False)
