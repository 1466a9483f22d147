"""Programs as a person would run them: each is executed as it stands, and what it computes is what the page shows, step for step."""

import contextlib
import io

import numpy as np
import pytest

from mha_viz import Settings, synthetic
from mha_viz.analysis.walkthrough import walk
from mha_viz.core.trace import Trace
from mha_viz.export.beginning import drops
from mha_viz.export.code import program, shown_expression, step_lines
from mha_viz.settings import STEPS
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
    "words across": SMALL | WORDS | {"source_words": "die Katze\nschlief tief und fest", "kdim": 4, "training": True, "bias": False},
    "words, random source": SMALL | WORDS | {"source_len": 4},
    "positions": SMALL | {"positions": True},
    "tiny": TINY | {"case": "tiny"},
    "tiny, dropped": TINY | {"case": "tiny", "training": True, "dropout": 0.5, "seed": 4},
    "tiny, masked": TINY | {"case": "tiny", "causal": True, "attn_mask": "0,0.25,0/0,0,0/0,-1,0"},
}  # fmt: skip
NAMES = {"Q": "q", "K": "k", "V": "v", "scores": "scores", "probabilities": "probabilities", "weights": "weights",
         "heads": "head_outputs", "concat": "concat", "multi_head_output": "output"}  # fmt: skip
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


@ignored
@by_language
@by_case
def test_a_program_computes_what_is_shown(case, language):
    """To 1e-6 of the largest number: every tensor of the Trace, and of every step what the page draws last."""
    settings = Settings(**CASES[case])
    trace = synthetic(settings)
    names, printed = executed(program(settings, language))
    for ours, theirs in NAMES.items():
        assert theirs in Trace.fields()
        same(names[ours], getattr(trace, theirs))
    assert "all gradients finite: True" in printed or "holds for" in printed or trace.undefined.any()
    item, head, query = trace.q.shape[0] - 1, trace.q.shape[1] - 1, 1
    names |= {"n": item, "h": head, "i": query}
    for together in (False, True):
        followed = walk(trace, item, None if together else head, query, 0)
        for step in followed.steps[:-1]:
            shown = array(eval(shown_expression(settings, language, step, together), names))
            drawn = followed.tensors[step][-1].values
            same(shown.reshape(drawn.shape), drawn)


@ignored
@by_language
@pytest.mark.parametrize("step", STEPS)
def test_the_program_up_to_a_step_runs_alone_and_prints_what_is_shown(step, language):
    settings = Settings(**SMALL, training=True)
    told = program(settings, language, step, item=1, head=2, query=3)
    names, printed = executed(told)
    assert told.count("print(") == 1
    lines = step_lines(settings, language, step)
    assert "\n".join(lines) in told
    if step != "validate":
        assert printed.strip() == str(eval(shown_expression(settings, language, step), names))


def test_dropout_is_a_step_only_where_it_falls():
    assert drops(Settings(training=True)) and not drops(Settings()) and not drops(Settings(training=True, dropout=0.0))
    assert "dropout on the weights" not in program(Settings(), "numpy")


def test_what_was_worked_by_hand_needs_numpy_alone():
    told = program(Settings(**CASES["tiny"]), "numpy")
    assert "torch" not in told
    assert "import torch" in program(Settings(**CASES["tiny, dropped"]), "numpy")


@ignored
def test_a_program_that_is_wrong_is_found_out():
    """The comparison above sees the classic mistakes."""
    settings = Settings(**SMALL)
    trace = synthetic(settings)
    told = program(settings, "numpy")
    for right, wrong in (
        ("/ np.sqrt(np.float32(D))", "/ np.sqrt(np.float32(E))"),
        (".reshape(N, -1, H, D).swapaxes(1, 2)", ".reshape(N, H, -1, D)"),
        ("np.where(hidden, -np.inf, scores)", "np.where(hidden, scores, -np.inf)"),
    ):
        assert right in told
        with pytest.raises(AssertionError):
            same(executed(told.replace(right, wrong))[0]["multi_head_output"], trace.output)


def test_the_layer_in_pytorch_is_the_one_that_is_compared_with():
    """The last step calls the module itself: an output that is not its own ends the program."""
    told = program(Settings(**SMALL), "torch")
    with pytest.raises(AssertionError, match="not close"):
        executed(told.replace("heads = weights @ V", "heads = weights.mean(dim=1, keepdim=True).expand_as(weights) @ V"))
