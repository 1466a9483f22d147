"""What the tests of programs share: Settings of every kind, and how a program is run and compared."""

import contextlib
import io

import numpy as np
import pytest

from mha_viz.settings.settings import TINY

SMALL = {"embed_dim": 12, "num_heads": 3, "batch_size": 2, "seq_len": 5, "padding": (2,), "seed": 3}
WORDS = {"words": 'the cat sat down\nit "slept" \\\'', "padding": (1,)}
CASES = {
    "the tutorial's program": {},
    "small": SMALL,
    "trained": {"training": True},
    "all dropped": SMALL | {"training": True, "dropout": 1.0},
    "no dropout": SMALL | {"training": True, "dropout": 0.0},
    "sequence first": SMALL | {"batch_first": False, "causal": True},
    "no bias": SMALL | {"bias": False, "training": True},
    "one head": SMALL | {"num_heads": 1},
    "left padding": SMALL | {"padding": (1, 3), "padding_side": "left", "causal": True},
    "undefined rows": SMALL | {"padding": (5,)},
    "window": SMALL | {"window": 2},
    "causal window": SMALL | {"window": 2, "causal": True, "padding": ()},
    "bool mask": SMALL | {"attn_mask": "01000/00100/00010/00001/00000"},
    "bool mask, causal": SMALL | {"attn_mask": "01000/00100/00010/00001/00000", "causal": True},
    "float mask": SMALL | {"attn_mask": "0.5,0,0,0,-inf/0,0,-1,0,0/0,0,0,0,0/0,0,0,0,0/0,0,2,0,0"},
    "float mask, causal": SMALL | {"attn_mask": "0.5,0,0,0,-inf/0,0,-1,0,0/0,0,0,0,0/0,0,0,0,0/0,0,2,0,0", "causal": True},
    "extra keys": SMALL | {"add_bias_kv": True, "add_zero_attn": True, "causal": True},
    "extra keys, added mask": SMALL
    | {"add_bias_kv": True, "add_zero_attn": True, "attn_mask": "1.5,0,0,0,-inf/0,0,0,0,0/0,0,0,0,0/0,0,0,0,0/0,0,2,0,0"},
    "extra keys, no bias, dropped": SMALL | {"add_bias_kv": True, "bias": False, "training": True, "dropout": 0.5},
    "cross": SMALL | {"source_len": 7, "source_padding": (0, 2), "causal": True},
    "cross, fewer keys": SMALL | {"source_len": 3, "window": 1},
    "other widths": SMALL | {"kdim": 5, "vdim": 7, "source_len": 6, "training": True},
    "one other width": SMALL | {"kdim": 5, "add_bias_kv": True, "positions": True},
    "same other width": SMALL | {"kdim": 7, "vdim": 7, "bias": False},
    "words": SMALL | WORDS,
    "words, positions, left": SMALL | WORDS | {"positions": True, "padding_side": "left", "causal": True, "training": True},
    "words across": SMALL
    | WORDS
    | {"source_words": "die Katze\nschlief tief und fest", "kdim": 4, "training": True, "bias": False},
    "words, random source": SMALL | WORDS | {"source_len": 4},
    "positions": SMALL | {"positions": True},
    "tiny": TINY | {"case": "tiny"},
    "tiny, dropped": TINY | {"case": "tiny", "training": True, "dropout": 0.5, "seed": 4},
    "tiny, masked": TINY | {"case": "tiny", "causal": True, "attn_mask": "0,0.25,0/0,0,0/0,-1,0"},
}
by_case = pytest.mark.parametrize("case", CASES)
by_language = pytest.mark.parametrize("language", ["numpy", "torch"])
ignored = pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")  # NumPy says so of rows without a key


def executed(text):
    """What a program leaves behind, and what it printed."""
    import torch

    names, printed, before = {}, io.StringIO(), torch.get_rng_state()
    with contextlib.redirect_stdout(printed):
        exec(compile(text, "program", "exec"), names)
    torch.set_rng_state(before)
    return names, printed.getvalue()


def array(value):
    return value.detach().numpy() if hasattr(value, "detach") else np.asarray(value)


def same(ours, theirs):
    theirs = np.asarray(theirs)
    size = max(np.abs(theirs[np.isfinite(theirs)]).max(initial=0), 1)
    np.testing.assert_allclose(array(ours), theirs, rtol=0, atol=1e-6 * size, equal_nan=True)
