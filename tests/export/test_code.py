"""Programs as a person would run them: each is executed as it stands, and what it computes is what the page shows, step for step."""

import pytest

from mha_viz import Settings, synthetic
from mha_viz.analysis.walkthrough import walk
from mha_viz.core.trace import Trace
from mha_viz.export.beginning import drops
from mha_viz.export.code import program, shown_expression, step_lines
from mha_viz.settings import STEPS
from tests.export.programs import CASES, SMALL, array, by_case, by_language, executed, ignored, same

NAMES = {
    "Q": "q",
    "K": "k",
    "V": "v",
    "scores": "scores",
    "probabilities": "probabilities",
    "weights": "weights",
    "heads": "head_outputs",
    "concat": "concat",
    "multi_head_output": "output",
}


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
