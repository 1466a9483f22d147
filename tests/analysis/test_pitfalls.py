"""Pitfalls: every check fails for the mistake and passes for the right way, and every number is one that a naive formula gives."""

import ast
import math
import re

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from mha_viz import Layer, Settings, Trained, attend, synthetic, trained
from mha_viz.analysis.known import ALONE, PROJECTED
from mha_viz.analysis.pitfalls import PITFALLS, SYMPTOMS, Bench, pasted, why_no_bench
from mha_viz.analysis.pitfalls.pitfall import ITEMS, TOKENS, verdict
from mha_viz.core.rules import Wrong
from tests.analysis.kinds import of_kind

BENCHES = {
    "defaults": Settings(),
    "tiny": Settings(case="tiny", embed_dim=4, num_heads=2, batch_size=1, seq_len=3, padding=()),
    "odd heads": Settings(embed_dim=6, num_heads=3, batch_size=2, seq_len=4, padding=(), seed=1),
    "one of each": Settings(embed_dim=3, num_heads=1, batch_size=1, seq_len=1, padding=()),
    "many heads": Settings(embed_dim=64, num_heads=32, batch_size=9, seq_len=30, padding=(), seed=3),
    "no bias": Settings(embed_dim=8, num_heads=4, batch_size=2, seq_len=3, padding=(), bias=False),
    "words": Settings(words="a b a <b>\nc d", padding=()),
}
ends = {  # what a person may choose: all choices, and of numbers the ends
    (name, knob.name, value)
    for name, pitfall in PITFALLS.items()
    for knob in pitfall.knobs
    for value in (knob.choices or (knob.least, knob.most))
}


def bench(settings=None):
    return Bench.of(synthetic(settings or Settings()))


def run(name, settings=None, **values):
    return PITFALLS[name].run(bench(settings), **values)


def numbers(experiment):
    return {number.what: (number.wrong, number.right) for number in experiment.numbers}


def run_as_text(check):
    """The pasted check as somebody has it who owns PyTorch and nothing of ours."""
    namespace = {}
    exec(pasted(check), namespace)
    return namespace[check.__name__]


# All of them


@pytest.mark.parametrize("name", PITFALLS)
def test_the_pasted_check_fails_for_the_mistake_and_passes_for_the_right_way(name):
    experiment = run(name)
    check = run_as_text(experiment.check)
    assert verdict(check, *experiment.wrong.tried) is not None
    assert verdict(check, *experiment.right.tried) is None
    if name != "dropout-in-the-weights":  # whose mistake is another one each time it is made
        assert experiment.caught == verdict(check, *experiment.wrong.tried)
    assert experiment.objection is None


@pytest.mark.parametrize("name", PITFALLS)
def test_what_is_pasted_and_shown_needs_pytorch_alone(name):
    experiment = run(name)
    assert "mha_viz" not in pasted(experiment.check)
    assert not re.search(r"torch\.manual_seed|print\(", pasted(experiment.check))
    for version in (experiment.wrong, experiment.right):
        tree = ast.parse(version.source)
        used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
        own = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
        own |= {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
        assert used - own <= {"torch", "F", "math", "range", "len", "float", "ValueError", "divmod"}


@pytest.mark.parametrize("name", PITFALLS)
def test_every_pitfall_says_what_it_is_and_is_found_by_a_symptom(name):
    pitfall = PITFALLS[name]
    assert pitfall.symptoms and set(pitfall.symptoms) <= set(SYMPTOMS)
    assert all(text.endswith(".") for text in (pitfall.why, pitfall.avoid, *(knob.help for knob in pitfall.knobs)))


def test_every_symptom_leads_to_a_pitfall():
    assert {symptom for pitfall in PITFALLS.values() for symptom in pitfall.symptoms} == set(SYMPTOMS)


@pytest.mark.parametrize("settings", BENCHES.values(), ids=BENCHES)
@pytest.mark.parametrize("name", PITFALLS)
def test_runs_on_any_layer_or_says_what_it_needs(name, settings):
    try:
        experiment = run(name, settings)
    except Wrong as wrong:
        assert wrong.argument in ("batch_size", "seq_len", "num_heads")
        assert wrong.nearest
        return
    assert experiment.objection is None
    assert all(number.what and number.wrong and number.right for number in experiment.numbers)
    for one in experiment.maps:
        assert one.values.shape == (len(one.row_names), len(one.column_names))
        assert one.hidden is None or one.hidden.shape == one.values.shape


@pytest.mark.parametrize(("name", "knob", "value"), sorted(ends, key=str))
def test_every_value_of_a_knob_runs_and_the_right_way_stays_right(name, knob, value):
    assert run(name, **{knob: value}).objection is None


@pytest.mark.parametrize("name", PITFALLS)
def test_what_is_needed_is_needed_and_is_enough(name):
    """The nearest right value that a Wrong offers is one with which the experiment runs."""
    settings = Settings(embed_dim=4, num_heads=1, batch_size=1, seq_len=1, padding=())
    for _ in range(4):
        try:
            run(name, settings)
        except Wrong as wrong:
            settings = Settings(**vars(settings) | wrong.nearest[0])
        else:
            return
    pytest.fail(f"{name} never runs")


def test_needed_heads_come_with_a_dimension_that_they_divide():
    with pytest.raises(Wrong) as raised:
        run("averaged-heads", Settings(embed_dim=3, num_heads=1, batch_size=1, seq_len=2, padding=()))
    assert raised.value.nearest == ({"num_heads": 2, "embed_dim": 6},)


def test_a_bad_knob_is_named():
    for values, argument in (({"window": 9}, "window"), ({"window": "3"}, "window"), ({"widow": 3}, "widow")):
        with pytest.raises(Wrong) as raised:
            run("window-off-by-one", **values)
        assert raised.value.argument == argument
    with pytest.raises(Wrong):
        run("wrong-scale", scale="1/2")


def test_a_bench_is_the_layer_and_the_first_tokens_of_a_trace():
    trace = synthetic(Settings(batch_size=9, seq_len=30, padding=(2,), causal=True))
    small = Bench.of(trace)
    np.testing.assert_array_equal(small.tokens, trace.batch.query[:ITEMS, :TOKENS])
    module, x = small.module(), small.x
    output, weights = module(x, x, x, average_attn_weights=False)
    alone = synthetic(Settings(batch_size=9, seq_len=30, padding=()))
    full = small.module()(*[torch.tensor(alone.batch.query)] * 3)[0]
    torch.testing.assert_close(torch.tensor(alone.output), full.detach(), atol=1e-6, rtol=0)
    assert weights.shape == (ITEMS, 8, TOKENS, TOKENS) and not module.training
    assert output.requires_grad, "the slow path, on which nothing is fused"
    x += 1
    np.testing.assert_array_equal(small.tokens, trace.batch.query[:ITEMS, :TOKENS])


@pytest.mark.parametrize("name", PITFALLS)
def test_an_experiment_comes_out_the_same_each_time_and_draws_nothing(name):
    torch.manual_seed(5)
    before = torch.random.get_rng_state()
    first, second = run(name), run(name)
    assert torch.random.get_rng_state().equal(before)
    assert (first.numbers, first.sentence, first.caught) == (second.numbers, second.sentence, second.caught)
    for one, other in zip(first.maps, second.maps, strict=True):
        np.testing.assert_array_equal(one.values, other.values)


# Each by itself


def test_heads_that_do_not_divide():
    found = numbers(run("heads-that-do-not-divide", embed_dim=10, num_heads=3))
    assert found["head_dim"] == ("10 // 3 = 3", "10 / 3 = 3.33333")
    assert found["columns that a head owns"][0] == "9 of 10"
    assert found["nn.MultiheadAttention says"][1] == "AssertionError: embed_dim must be divisible by num_heads"
    assert (
        "num_heads 2 or num_heads 5 or embed_dim 9 or embed_dim 12"
        in run("heads-that-do-not-divide", embed_dim=10, num_heads=3).sentence
    )
    fits = run("heads-that-do-not-divide", embed_dim=12, num_heads=3)
    assert fits.caught is None and "nothing is wrong here" in fits.sentence
    assert run("heads-that-do-not-divide", embed_dim=2, num_heads=5).caught is not None


def test_batch_first_or_sequence_first():
    experiment = run("batch-first-or-sequence-first", Settings(embed_dim=4, num_heads=2, batch_size=2, seq_len=5, padding=()))
    assert numbers(experiment)["shape of the averaged weights"] == ("[5, 2, 2]", "[2, 5, 5]")
    wrong, right = (one.values for one in experiment.maps)
    assert (wrong > 0).all() and (right > 0).tolist() == [[True, False], [False, True]]
    square = run("batch-first-or-sequence-first", Settings(batch_size=3, seq_len=3, padding=()))
    assert "every shape is as expected" in square.sentence and square.caught is not None


def test_two_heads_that_cancel_out():
    """The two heads weigh the same sign and the other; their average is 1/8 everywhere, and makes an output of zeros."""
    experiment = run("averaged-heads", heads="two heads that cancel out")
    average, head = (one.values for one in experiment.maps)
    same, other = math.e**2 / (4 * math.e**2 + 4 * math.e**-2), math.e**-2 / (4 * math.e**2 + 4 * math.e**-2)
    assert sorted({round(float(w), 6) for w in head.ravel()}) == [round(other, 6), round(same, 6)] == [0.004497, 0.245503]
    np.testing.assert_allclose(average, 0.125, atol=1e-7)
    found = numbers(experiment)
    assert found["largest output made with these weights"] == ("0.0000", f"{math.tanh(2):.4f}") == ("0.0000", "0.9640")


def test_the_average_is_what_the_default_call_returns():
    experiment, small = run("averaged-heads"), bench()
    module, x = small.module(), small.x
    np.testing.assert_allclose(experiment.maps[0].values, module(x, x, x)[1][0].detach(), atol=1e-7)
    each = module(x, x, x, average_attn_weights=False)[1][0].detach()
    head = int(experiment.maps[1].title.split()[1])
    furthest = (each - each.mean(dim=0)).abs().amax(dim=(1, 2))
    assert head == int(furthest.argmax())
    np.testing.assert_allclose(experiment.maps[1].values, each[head], atol=1e-7)


def test_true_means_the_opposite():
    experiment = run("true-means-the-opposite")
    wrong, right = (one.values for one in experiment.maps)
    future = np.triu(np.ones((TOKENS, TOKENS), bool), 1)
    assert not np.nan_to_num(wrong)[~future].any() and np.isnan(wrong[-1]).all(), "each sees the future alone, the last nothing"
    assert not right[future].any()
    np.testing.assert_allclose(right.sum(axis=1), 1, atol=1e-6)
    itself = run("true-means-the-opposite", mask="triu(0): the diagonal too").maps[0].values
    assert np.isnan(itself[0]).all() and itself[1, 0] == 1
    assert numbers(experiment)["rows without a key (NaN)"] == ("24 of 192", "0 of 192"), "3 items × 8 heads"


@pytest.mark.parametrize("one", [1, 5])
def test_a_float_mask_of_equal_tokens_is_the_formula(one):
    settings = Settings(words="a a a a", padding=())
    experiment = run("float-mask-of-zeros-and-ones", settings, one=one)
    row = [math.exp(one)] + [1.0] * 3
    np.testing.assert_allclose(experiment.maps[0].values[0], np.array(row) / sum(row), atol=1e-6)
    np.testing.assert_allclose(experiment.maps[0].values[3], 0.25, atol=1e-6)
    share = numbers(experiment)["query 0 of head 0 reads from the future"][0]
    assert share == f"{3 / (math.exp(one) + 3):.1%}" and share in experiment.sentence


def test_ones_for_keep():
    experiment = run("ones-for-keep", padded=2)
    wrong, right = (one.values for one in experiment.maps)
    assert not wrong[:, :-2].any() and not right[:, -2:].any()
    np.testing.assert_allclose(wrong.sum(axis=1), 1, atol=1e-6)
    small = bench()
    x, mask = small.x[:1], torch.tensor([[1.0] * 6 + [0.0] * 2])
    added = small.module()(x, x, x, key_padding_mask=mask, average_attn_weights=False)[1][0, 0].detach()
    np.testing.assert_allclose(run("ones-for-keep", conversion=".float()").maps[0].values, added, atol=1e-7)
    assert numbers(experiment)["of a row's weight, padding gets on average"] == ("100.0%", "0.0%")


def test_head_masks_in_wrong_order():
    """N = 2, H = 2: item 1 masks; repeat gives its mask to head 1 of both items."""
    settings = Settings(embed_dim=4, num_heads=2, batch_size=2, seq_len=2, padding=())
    experiment = run("head-masks-in-wrong-order", settings)
    assert (experiment.maps[0].values > 0).tolist() == [[False, False], [True, False]]
    assert not experiment.maps[1].values.any()
    found = numbers(experiment)
    assert found["heads that read hidden keys"] == ("1 of 4", "0 of 4")
    assert found["heads that lose keys they may read"] == ("1 of 4", "0 of 4")


def test_every_key_masked_has_the_answers_that_pytorch_gives():
    experiment = run("every-key-masked")
    small = bench()
    module, x = small.module(), small.x
    padding = torch.zeros(3, TOKENS, dtype=torch.bool)
    padding[0] = True
    assert module(x, x, x, key_padding_mask=padding)[0][0].isnan().all()
    assert torch.equal(module(x, x, x, key_padding_mask=padding, need_weights=False)[0][0], module.out_proj.bias.expand(8, -1))
    found = numbers(experiment)
    assert found["need_weights=True"][0] == "NaN"
    assert found["need_weights=False"][0] == "the bias of out_proj, here zeros"
    assert np.isnan(experiment.maps[0].values).all() and not experiment.maps[1].values.any()
    partly = run("every-key-masked", padded=3)
    assert {wrong for wrong, _ in numbers(partly).values()} == {numbers(partly)["need_weights=True"][1]}, "all agree"


def test_every_key_masked_tells_a_bias_that_is_not_zero():
    small = bench()
    layer = small.layer
    weights = dict(layer.weights) | {"out_proj.bias": np.ones(128, np.float32)}
    biased = Bench(type(layer).from_state_dict(weights, 8), small.tokens, small.names)
    assert numbers(PITFALLS["every-key-masked"].run(biased))["need_weights=False"][0] == "the bias of out_proj"


@pytest.mark.parametrize("padded", [1, 3, 7])
def test_causal_with_left_padding_loses_a_row_per_padded_query_and_head(padded):
    experiment = run("causal-with-left-padding", padded=padded)
    assert numbers(experiment)["undefined rows of item 0"] == (f"{8 * padded} of 64", "0 of 64")
    left, right = (one.values for one in experiment.maps)
    assert np.isnan(left).all(axis=1).tolist() == [i < padded for i in range(TOKENS)]
    assert not np.isnan(right).any()
    assert float(numbers(experiment)["real rows differ from those without padding by"][0].replace("−", "-")) < 1e-6
    small = bench()
    module, x, keys = small.module(), small.x, torch.zeros(3, TOKENS, dtype=torch.bool)
    keys[0, :padded] = True
    masks = {"key_padding_mask": keys, "attn_mask": torch.ones(TOKENS, TOKENS, dtype=torch.bool).triu(1)}
    assert module(x, x, x, **masks)[0][0, :padded].isnan().all()
    assert torch.equal(module(x, x, x, **masks, need_weights=False)[0][0, :padded], module.out_proj.bias.expand(padded, -1))
    assert numbers(experiment)["an undefined row comes out, need_weights=True"][0] == "NaN"
    assert numbers(experiment)["need_weights=False"][0].startswith("the bias of out_proj")
    with torch.no_grad():
        fused = module(x, x, x, **masks, need_weights=False)[0][0, :padded]
    assert (numbers(experiment)["need_weights=False, eval, no gradients"][0] == "NaN") == bool(fused.isnan().all())


def test_one_bad_row_and_all_gradients():
    found = numbers(run("one-bad-row-and-all-gradients"))
    wrong, right = found["loss over real rows"]
    assert wrong == right and float(wrong) > 0, "the loss says nothing"
    weights = 3 * 128 * 128 + 3 * 128 + 128 * 128 + 128
    assert found["gradients that are not finite"] == (f"{weights - 128:,} of {weights:,}", f"0 of {weights:,}")
    healthy = run("one-bad-row-and-all-gradients", padded=0)
    assert healthy.caught is None and numbers(healthy)["gradients that are not finite"][0] == f"0 of {weights:,}"


def test_dropout_in_the_weights_is_what_the_module_returns():
    small = bench()
    experiment = PITFALLS["dropout-in-the-weights"].run(small, dropout="0.5", draw=3)
    module, x = small.module(), small.x
    module.dropout = 0.5
    with torch.random.fork_rng():
        torch.manual_seed(3)
        weights = experiment.wrong.code(module, x)
    np.testing.assert_allclose(experiment.maps[0].values, weights[0, 0].detach(), atol=1e-7)
    np.testing.assert_allclose(experiment.maps[1].values, experiment.right.code(module, x)[0, 0].detach(), atol=1e-7)
    assert f"{int((weights == 0).sum())} of {weights.numel()}" in experiment.sentence
    off = run("dropout-in-the-weights", dropout="0")
    assert off.caught is None


def test_the_causal_hint():
    experiment, small = run("causal-hint-without-mask"), bench()
    module, x = small.module(), small.x
    np.testing.assert_allclose(
        experiment.maps[0].values, module(x, x, x, average_attn_weights=False)[1][0, 0].detach(), atol=1e-6
    )
    assert "equals the one without any mask" in experiment.sentence
    training = run("causal-hint-without-mask", path="with gradients, as in training")
    assert "RuntimeError: Need attn_mask" in training.sentence and "RuntimeError: Need attn_mask" in training.caught
    odd = run("causal-hint-without-mask", Settings(embed_dim=6, num_heads=3))
    assert "Need attn_mask" in odd.sentence, "an odd number of heads takes no fused path"


@pytest.mark.parametrize("queries", [1, 2, 5, 8])
def test_top_left_and_bottom_right(queries):
    experiment = run("top-left-and-bottom-right", queries=queries)
    top, bottom = (one.values > 0 for one in experiment.maps)
    np.testing.assert_array_equal(top, np.tri(queries, TOKENS, dtype=bool))
    np.testing.assert_array_equal(bottom, np.tri(queries, TOKENS, TOKENS - queries, dtype=bool))
    assert experiment.maps[0].row_names == tuple(map(str, range(TOKENS - queries, TOKENS)))


@pytest.mark.parametrize("window", [1, 2, 5])
def test_window_off_by_one(window):
    found = numbers(run("window-off-by-one", window=window))["keys seen by each query"]
    assert found[0] == str([min(i + 1, window + 1) for i in range(TOKENS)])
    assert found[1] == str([min(i + 1, window) for i in range(TOKENS)])


def test_a_window_that_reaches_everything_does_no_harm():
    experiment = run("window-off-by-one", window=8)
    assert experiment.caught is None and "no harm" in experiment.sentence


def test_softmax_over_the_wrong_axis():
    experiment = run("softmax-over-the-wrong-axis")
    wrong, right = (one.values for one in experiment.maps)
    np.testing.assert_allclose(wrong.sum(axis=0), 1, atol=1e-6)
    np.testing.assert_allclose(right.sum(axis=1), 1, atol=1e-6)
    scores = torch.tensor([[0, math.log(2)], [math.log(3), 0]])
    torch.testing.assert_close(experiment.wrong.code(scores), torch.tensor([[0.25, 2 / 3], [0.75, 1 / 3]]))
    torch.testing.assert_close(experiment.right.code(scores), torch.tensor([[1 / 3, 2 / 3], [0.75, 0.25]]))


def test_softmax_twice():
    experiment = run("softmax-twice", sharpness=100)
    assert float(numbers(experiment)["largest weight"][0]) == pytest.approx(math.e / (math.e + 7), abs=1e-4)
    twice, once = (float(text.split()[0]) for text in numbers(experiment)["mean entropy of a row"])
    assert once < 0.5 < 1.9 < twice < math.log(8)
    once = torch.tensor([0.97, 0.01, 0.01, 0.01])
    torch.testing.assert_close(
        experiment.wrong.code(once.log()), torch.tensor([0.465402, 0.178199, 0.178199, 0.178199]), atol=1e-6, rtol=0
    )


def test_softmax_without_its_shift():
    experiment = run("softmax-without-its-shift", raised=100)
    assert numbers(experiment)["rows with NaN"] == ("192 of 192", "0 of 192")
    scores = torch.tensor([1000.0, 1001, 1002])
    assert experiment.wrong.code(scores).isnan().all()
    torch.testing.assert_close(experiment.right.code(scores), torch.tensor([0.090031, 0.244728, 0.665241]), atol=1e-6, rtol=0)
    assert numbers(run("softmax-without-its-shift", raised=50))["rows with NaN"][0] == "0 of 192"


@pytest.mark.parametrize(("scale", "used"), [("1/√embed_dim", 128**-0.5), ("none", 1.0), ("1/head_dim", 1 / 16)])
def test_wrong_scale(scale, used):
    experiment, trace = run("wrong-scale", scale=scale), synthetic(Settings())
    q, k = trace.q[0, 0, :TOKENS].astype(float), trace.k[0, 0, :TOKENS].astype(float)
    for one, factor in zip(experiment.maps, (used, 0.25), strict=True):
        exponentials = np.exp(factor * q @ k.T)
        np.testing.assert_allclose(one.values, exponentials / exponentials.sum(axis=1, keepdims=True), atol=1e-6)


def test_one_head_has_the_same_scale_either_way():
    experiment = run("wrong-scale", Settings(embed_dim=8, num_heads=1, batch_size=1, seq_len=3, padding=()))
    assert experiment.caught is None and "no harm" in experiment.sentence


def test_heads_split_by_reshape():
    experiment, trace = run("heads-split-by-reshape"), synthetic(Settings())
    np.testing.assert_allclose(
        experiment.maps[1].values, torch.softmax(torch.tensor(trace.scores[0, 0, :TOKENS, :TOKENS]), dim=-1), atol=1e-6
    )
    x = torch.arange(8.0).reshape(1, 2, 4)
    assert experiment.wrong.code(x, 2).tolist() == [[[[0, 1], [2, 3]], [[4, 5], [6, 7]]]]
    assert experiment.right.code(x, 2).tolist() == [[[[0, 1], [4, 5]], [[2, 3], [6, 7]]]]


def test_half_precision_fill():
    experiment = run("half-precision-fill", fill="-1e4", lowest=20000)
    assert experiment.maps[0].values[0].tolist() == [0, 0, 1], "the hidden key wins"
    assert run("half-precision-fill", fill="-1e4", lowest=0).maps[0].values[0, 2] == 0
    lowest = run("half-precision-fill", fill="finfo.min").maps[0].values
    np.testing.assert_allclose(lowest[2], 1 / 3, atol=1e-3)
    assert not lowest[0, 2]
    refused = run("half-precision-fill", fill="-1e9")
    assert "RuntimeError: value cannot be converted" in refused.sentence and len(refused.maps) == 1
    assert np.isnan(refused.maps[0].values[2]).all()


def test_padded_queries_in_a_mean():
    experiment, small = run("padded-queries-in-a-mean", padded=3), bench()
    module, x = small.module(), small.x[:1, :5]
    alone = module(x, x, x)[0].mean(dim=1).detach()
    output, keep = experiment.right.tried[1:]
    torch.testing.assert_close(experiment.right.code(output, keep), alone, atol=1e-6, rtol=0)
    off = (output.mean(dim=1) - alone).abs().max().item()
    assert numbers(experiment)["off from the mean without padding by"][0] == f"{off:.4f}"
    np.testing.assert_allclose(experiment.maps[0].values.sum(axis=1), 1, atol=1e-6)
    assert run("padded-queries-in-a-mean", padded=0).caught is None


def test_attention_is_not_explanation():
    experiment = run("attention-is-not-explanation", moved=60)
    assert numbers(experiment)["output"] == ("(1.8, 1.6) before", "(1.8, 1.6) after")
    assert experiment.sentence.startswith("60%")
    assert run("attention-is-not-explanation", moved=0).caught is None, "key 0 holds the largest weight, and counts most"
    assert run("attention-is-not-explanation", moved=30).caught is not None


# The checks catch more than the one mistake that is shown


def test_checks_accept_what_pytorch_does():
    from mha_viz.analysis.pitfalls import checks

    torch.manual_seed(0)
    attention, x = nn.MultiheadAttention(8, 2, batch_first=True).eval(), torch.randn(3, 5, 8)
    mask, padding = torch.ones(5, 5, dtype=torch.bool).triu(1), torch.zeros(3, 5, dtype=torch.bool)
    padding[0, 3:] = True
    q, k, v = torch.randn(3, 2, 2, 5, 4)
    checks.check_items_are_independent(lambda x: attention(x, x, x)[0], x)
    checks.check_weights_make_the_output(lambda x: attention(x, x, x, average_attn_weights=False), attention, x)
    checks.check_future_moves_nothing(lambda x: attention(x, x, x, attn_mask=mask)[0], x)
    checks.check_padding_is_not_read(lambda x, keep: attention(x, x, x, key_padding_mask=~keep)[0], x, ~padding)
    checks.check_every_query_sees_a_key(mask, padding)
    checks.check_gradients_are_finite(lambda: attention(x, x, x, attn_mask=mask)[0].sum(), attention)
    checks.check_rows_sum_to_one(lambda x: attention(x, x, x)[1], x)
    checks.check_last_query_alone(lambda q, k, v: F.scaled_dot_product_attention(q, k, v), q, k, v)
    checks.check_window_sees(mask | torch.ones(5, 5, dtype=torch.bool).tril(-2), 2)
    checks.check_sharp_scores_make_sharp_weights(lambda scores: scores.softmax(dim=-1))
    checks.check_large_scores_stay_finite(lambda scores: scores.softmax(dim=-1))
    checks.check_scale(lambda q, k: F.scaled_dot_product_attention(q, k, torch.eye(5).expand(2, 2, 5, 5)), q, k)


# The layer of a model


@pytest.mark.parametrize("name", PITFALLS)
def test_every_pitfall_can_be_tried_on_a_trained_layer(name):
    trace = trained(Trained("induction", batch_size=2)).recording.traces[1]
    assert why_no_bench(trace) is None
    found = PITFALLS[name].run(Bench.of(trace))
    assert found.objection is None, "the right way passes"


def test_weights_of_half_precision_are_tried_in_float32():
    trace = synthetic(Settings())
    half = Layer.from_state_dict({name: np.float16(array) for name, array in trace.layer.weights.items()}, 8)
    assert Bench.of(attend(half, trace.batch)).module()(*[torch.tensor(np.float32(trace.batch.query))] * 3)[0].isfinite().all()


def test_why_pitfalls_are_not_tried():
    assert why_no_bench(of_kind("call", synthetic(Settings()))) == PROJECTED
    assert why_no_bench(of_kind("maps", synthetic(Settings()))) == ALONE
    assert "sequence of their own" in why_no_bench(synthetic(Settings(source_len=4)))
    assert "no tokens (bias_k, zero)" in why_no_bench(synthetic(Settings(add_bias_kv=True, add_zero_attn=True)))
