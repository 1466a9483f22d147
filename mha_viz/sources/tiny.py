"""One attention layer whose every number fits on a blackboard: E 4, H 2, L 3, small whole numbers, worked by hand."""

import numpy as np

from mha_viz.core.layer import Layer

TOKENS = [[[1, 0, 1, 0], [0, 2, 0, 1], [1, 1, 0, 0]]]  # [1, L 3, E 4]
Wq = [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]  # y = x @ W.T + b, as in PyTorch
Wk = [[0, 1, 0, 0], [1, 0, 0, 0], [0, 0, 0, 1], [0, 0, 1, 0]]
Wv = [[1, 1, 0, 0], [0, 1, 1, 0], [0, 0, 1, 1], [1, 0, 0, 1]]
Wo = [[1, 0, 1, 0], [0, 1, 0, 1], [1, -1, 0, 0], [0, 0, 1, -1]]
bq, bk, bv, bo = [0, 1, 0, 0], [1, 0, 0, 1], [0, 0, 1, 0], [1, 0, 0, -1]


def tiny_layer(dropout: float = 0.0) -> Layer:
    """The layer; query 0 of head 0 scores (2, 3, 3) / √2 and weighs 0.198, 0.401, 0.401."""
    weights = {
        "in_proj_weight": np.array(Wq + Wk + Wv, np.float32),
        "in_proj_bias": np.array(bq + bk + bv, np.float32),
        "out_proj.weight": np.array(Wo, np.float32),
        "out_proj.bias": np.array(bo, np.float32),
    }
    return Layer.from_state_dict(weights, num_heads=2, dropout=dropout)
