"""Wrong values: each is refused before PyTorch meets it, by an error that names the argument, the value, the rule and what would
be right; and what it says would be right is."""

import pickle

import numpy as np
import pytest
import torch

from mha_viz.core.attend import attend
from mha_viz.core.batch import Batch
from mha_viz.core.layer import Layer
from mha_viz.core.rules import FARTHEST, Shape, Wrong, divisors, fraction, head_dim, one_of, whole

N, L, S, E, H = 2, 3, 5, 4, 2
LAYER = {"embed_dim": E, "num_heads": H}
ZEROS, MASK = (lambda *shape: np.zeros(shape, np.float32)), (lambda *shape: np.zeros(shape, bool))


def layer(**given):
    return Layer.random(**LAYER | given)


def state(**given):
    """A layer from a state dict; ``out_proj_weight`` stands for "out_proj.weight", and None takes a name out."""
    weights = {name.replace(".", "_"): array for name, array in Layer.random(E, H).weights.items()} | given
    options = {name: weights.pop(name) for name in ("num_heads", "dropout") if name in weights}
    weights = {name.replace("out_proj_", "out_proj."): array for name, array in weights.items() if array is not None}
    return Layer.from_state_dict(weights, **{"num_heads": H} | options)


def attention(**given):
    """attend() of a random layer and a batch, from the arguments of all three."""
    of_batch = {name: given.pop(name) for name in list(given) if name in Batch.__dataclass_fields__}
    of_layer = {name: given.pop(name) for name in list(given) if name in ("num_heads", "kdim", "vdim")}
    return attend(layer(**of_layer), Batch(**{"query": ZEROS(N, L, E)} | of_batch), **given)


def cross(**given):
    return attention(**{"key": ZEROS(N, S, E), "value": ZEROS(N, S, E)} | given)


def unbatched(**given):
    return attention(**{"query": ZEROS(L, E)} | given)


DIVISIBLE = "num_heads = 3: embed_dim must be divisible by num_heads, but 10 = 3 × 3 + 1. "
WRONG = [
    # the layer
    (
        layer,
        {"embed_dim": 10, "num_heads": 3},
        DIVISIBLE + "Nearest right: num_heads = 2 or num_heads = 5 or embed_dim = 9 or embed_dim = 12.",
    ),
    (
        layer,
        {"num_heads": 8},
        "num_heads = 8: embed_dim must be divisible by num_heads, but 4 = 8 × 0 + 4. Nearest right: num_heads = 4 or embed_dim = 8.",
    ),
    (layer, {"embed_dim": 0}, "embed_dim = 0: must be a whole number, 1 or more. Nearest right: embed_dim = 1."),
    (layer, {"num_heads": 0}, "num_heads = 0: must be a whole number, 1 or more. Nearest right: num_heads = 1."),
    (layer, {"num_heads": -2}, "num_heads = -2: must be a whole number"),
    (layer, {"embed_dim": 4.0}, "embed_dim = 4.0: must be a whole number, 1 or more. Nearest right: embed_dim = 4."),
    (layer, {"num_heads": 2.0}, "num_heads = 2.0: must be a whole number"),
    (layer, {"num_heads": "2"}, "num_heads = '2': must be a whole number, 1 or more. Nearest right: num_heads = 2."),
    (layer, {"num_heads": True}, "num_heads = True: must be a whole number"),
    (layer, {"num_heads": np.float64(2)}, "num_heads = 2.0: must be a whole number"),
    (layer, {"num_heads": None}, "num_heads = None: must be a whole number"),
    (layer, {"num_heads": float("nan")}, "num_heads = nan: must be a whole number"),
    (layer, {"embed_dim": float("inf")}, "embed_dim = inf: must be a whole number"),
    (layer, {"dropout": 1.5}, "dropout = 1.5: must be a probability, from 0 to 1. Nearest right: dropout = 1.0."),
    (layer, {"dropout": -0.1}, "dropout = -0.1: must be a probability, from 0 to 1. Nearest right: dropout = 0.0."),
    (layer, {"dropout": float("nan")}, "dropout = nan: must be a probability"),
    (layer, {"dropout": "some"}, "dropout = 'some': must be a probability"),
    (layer, {"dropout": True}, "dropout = True: must be a probability"),
    (layer, {"kdim": 0}, "kdim = 0: must be a whole number, 1 or more. Nearest right: kdim = 1."),
    (layer, {"vdim": 2.5}, "vdim = 2.5: must be a whole number, 1 or more. Nearest right: vdim = 2."),
    (layer, {"seed": -1}, "seed = -1: must be a whole number from 0 to 9223372036854775807. Nearest right: seed = 0."),
    (layer, {"seed": 2**63}, "Nearest right: seed = 9223372036854775807."),
    (layer, {"seed": 7.5}, "seed = 7.5: must be a whole number"),
    # a state dict
    (
        state,
        {"num_heads": 3},
        "num_heads = 3: embed_dim must be divisible by num_heads, but 4 = 3 × 1 + 1. Nearest right: num_heads = 2 or num_heads = 4.",
    ),
    (state, {"num_heads": 2.0}, "num_heads = 2.0: must be a whole number"),
    (state, {"num_heads": True}, "num_heads = True: must be a whole number"),
    (state, {"dropout": 2}, "dropout = 2: must be a probability"),
    (
        state,
        {"in_proj_weight": ZEROS(12, 5)},
        "in_proj_weight of shape (12, 5): must have shape (12, 4) where embed_dim is 4. Nearest right: in_proj_weight of shape (12, 4).",
    ),
    (
        state,
        {"in_proj_weight": ZEROS(4, 12)},
        "in_proj_weight of shape (4, 12): must have shape (12, 4) where embed_dim is 4. It looks transposed: y = x @ W.T + b.",
    ),
    (
        state,
        {"in_proj_weight": np.zeros((12, 4), int)},
        "in_proj_weight of type int64: must be of floating type. Nearest right: in_proj_weight of type float32.",
    ),
    (state, {"in_proj_weight": MASK(12, 4)}, "in_proj_weight of type bool: must be of floating type."),
    (state, {"in_proj_weight": "w"}, "in_proj_weight of type <U1: must be of floating type."),
    (state, {"in_proj_weight": None}, "it lacks ['in_proj_weight']."),
    (state, {"q_proj_weight": ZEROS(4, 4)}, "it holds ['q_proj_weight'] besides."),
    (
        state,
        {"in_proj_bias": None},
        "must hold both 'in_proj_bias' and 'out_proj.bias' or neither; for a layer without 'in_proj_bias' add zeros.",
    ),
    (state, {"bias_k": ZEROS(1, 1, 4)}, "must hold both 'bias_k' and 'bias_v' or neither"),
    (state, {"out_proj_weight": None}, "must hold 'out_proj.weight' [E, E]"),
    (state, {"out_proj_weight": np.float32(1)}, "must hold 'out_proj.weight' [E, E]"),
    (
        state,
        {"out_proj_weight": ZEROS(0, 0), "in_proj_weight": ZEROS(0, 0), "in_proj_bias": ZEROS(0), "out_proj_bias": ZEROS(0)},
        "out_proj.weight of shape (0, 0): must have no empty axis",
    ),
    # query, key, value
    (
        attention,
        {"query": ZEROS(N, L, 5)},
        "query of shape (2, 3, 5): must have the layer's embed_dim, 4, as its last axis. Nearest right: query of shape (2, 3, 4).",
    ),
    (attention, {"query": ZEROS(E)}, "query of shape (4,): must be [N, L, E], or [L, E] for one item: 3 or 2 axes."),
    (attention, {"query": ZEROS(1, N, L, E)}, "query of shape (1, 2, 3, 4): must be [N, L, E]"),
    (attention, {"query": ZEROS(0, L, E)}, "query of shape (0, 3, 4): must hold at least one item"),
    (attention, {"query": ZEROS(N, 0, E)}, "query of shape (2, 0, 4): must hold at least one item"),
    (
        attention,
        {"query": np.zeros((N, L, E), int)},
        "query of type int64: must be of floating type. Nearest right: query of type float32.",
    ),
    (attention, {"query": MASK(N, L, E)}, "query of type bool: must be of floating type."),
    (attention, {"query": np.zeros((N, L, E), complex)}, "query of type complex128: must be of floating type."),
    (attention, {"query": [[[1.0, 2.0], [3.0]]]}, "query = [[[1.0, 2.0], [3.0]]]: cannot be read as an array"),
    (attention, {"query": None}, "query = None: must be an array."),
    (
        cross,
        {"key": ZEROS(N, S, 5), "value": ZEROS(N, S, 5)},
        "key of shape (2, 5, 5): must have the layer's kdim, 4, as its last axis. Nearest right: key of shape (2, 5, 4).",
    ),
    (
        cross,
        {"kdim": 6},
        "key of shape (2, 5, 4): must have the layer's kdim, 6, as its last axis. Nearest right: key of shape (2, 5, 6).",
    ),
    (
        cross,
        {"vdim": 7, "value": None},
        "value = None: is needed: the key, which would serve, is 4 wide and the layer's vdim is 7.",
    ),
    (
        attention,
        {"kdim": 6},
        "key = None: is needed: the query, which would serve, is 4 wide and the layer's kdim is 6. Nearest right: key of shape (2, 3, 6).",
    ),
    (attention, {"vdim": 7}, "the layer's vdim is 7. Nearest right: key of shape (2, 3, 4), value of shape (2, 3, 7)."),
    (
        cross,
        {"key": ZEROS(S, E), "value": ZEROS(S, E)},
        "key of shape (5, 4): must have 3 axes, as the query of shape (2, 3, 4) has.",
    ),
    (
        unbatched,
        {"key": ZEROS(N, S, E), "value": ZEROS(N, S, E)},
        "key of shape (2, 5, 4): must have 2 axes, as the query of shape (3, 4) has.",
    ),
    (
        cross,
        {"value": ZEROS(N, 4, E)},
        "value of shape (2, 4, 4): must have the key's length, 5. Nearest right: value of shape (2, 5, 4).",
    ),
    (
        cross,
        {"kdim": 6, "vdim": 7, "key": ZEROS(N, S, 6), "value": ZEROS(N, 4, 7)},
        "value of shape (2, 4, 7): must have the key's length, 5.",
    ),
    (
        cross,
        {"key": ZEROS(3, S, E), "value": ZEROS(3, S, E)},
        "key of shape (3, 5, 4): must have the query's batch size, 2, as its first axis (batch first).",
    ),
    (cross, {"key": ZEROS(N, 0, E), "value": ZEROS(N, 0, E)}, "key of shape (2, 0, 4): must hold at least one token"),
    (attention, {"value": ZEROS(N, L, E)}, "value of shape (2, 3, 4): needs a key beside it"),
    # masks
    (
        cross,
        {"key_padding_mask": np.zeros((N, S), np.int64)},
        "key_padding_mask of type int64: must be bool, True = may not attend, or floats to add to the scaled scores.",
    ),
    (cross, {"key_padding_mask": torch.zeros(N, S, dtype=torch.uint8)}, "key_padding_mask of type uint8: must be bool"),
    (cross, {"key_padding_mask": [[0] * S] * N}, "key_padding_mask of type int64: must be bool"),
    (cross, {"attn_mask": np.zeros((L, S), np.int32)}, "attn_mask of type int32: must be bool"),
    (
        cross,
        {"key_padding_mask": MASK(S, N)},
        "must be [N, S] = (2, 5), batch first whatever the layout of the input. It looks transposed.",
    ),
    (cross, {"key_padding_mask": MASK(N, S + 1)}, "key_padding_mask of shape (2, 6): must be [N, S] = (2, 5), batch first"),
    (cross, {"key_padding_mask": MASK(S)}, "key_padding_mask of shape (5,): must be [N, S] = (2, 5)"),
    (unbatched, {"key_padding_mask": MASK(N, L)}, "key_padding_mask of shape (2, 3): must be [N, S] = (1, 3)"),
    (cross, {"query_padding_mask": MASK(N, S)}, "query_padding_mask of shape (2, 5): must be [N, L] = (2, 3)"),
    (
        cross,
        {"query_padding_mask": ZEROS(N, L)},
        "query_padding_mask of type float32: must be bool: a query is padding or it is not.",
    ),
    (
        cross,
        {"attn_mask": MASK(S, L)},
        "attn_mask of shape (5, 3): must end in [L, S] = (3, 5). It looks transposed: rows are queries, columns are keys.",
    ),
    (
        cross,
        {"attn_mask": MASK(N, L, S)},
        "(4, 3, 5) for 2 heads. One mask per item: repeat it for the heads, attn_mask.repeat_interleave(2, 0), never .repeat.",
    ),
    (
        cross,
        {"num_heads": 4, "attn_mask": MASK(4, L, S)},
        "must be [N·H, L, S] = (8, 3, 5) for 4 heads. One mask per head: tile it over the items, attn_mask.repeat(2, 1, 1).",
    ),
    (cross, {"attn_mask": MASK(7, L, S)}, "must be [N·H, L, S] = (4, 3, 5) for 2 heads. Item n, head h stands at row n·H + h."),
    (
        cross,
        {"attn_mask": MASK(N, H, L, S)},
        "attn_mask of shape (2, 2, 3, 5): must be [L, S] = (3, 5) or [N·H, L, S]. Reshape it: attn_mask.reshape(4, 3, 5).",
    ),
    (cross, {"attn_mask": MASK(S)}, "attn_mask of shape (5,): must be [L, S] = (3, 5)"),
    (unbatched, {"attn_mask": MASK(1, L, L)}, "attn_mask of shape (1, 3, 3): must be [N·H, L, S] = (2, 3, 3) for 2 heads."),
    (
        cross,
        {"attn_mask": np.full((L, S), np.nan)},
        "attn_mask = nan: may hold −inf and finite numbers of float64 only: anything else makes its whole row NaN",
    ),
    (
        cross,
        {"key_padding_mask": np.full((N, S), np.inf)},
        "key_padding_mask = inf: may hold −inf and finite numbers of float64 only",
    ),
    (
        cross,
        {"attn_mask": np.full((L, S), 1e5), "dtype": "float16"},
        "attn_mask = inf: may hold −inf and finite numbers of float16 only",
    ),
    (attention, {"window": 0}, "window = 0: must be a whole number, 1 or more. Nearest right: window = 1."),
    (attention, {"window": 1.5}, "window = 1.5: must be a whole number"),
    # names of tokens
    (attention, {"query_tokens": (("a", "b", "c"),)}, "query_tokens = (3,): must name 3 tokens for each of 2 batch items"),
    (attention, {"query_tokens": (("a", "b"),) * N}, "query_tokens = (2, 2): must name 3 tokens for each of 2 batch items"),
    (
        attention,
        {"query_tokens": ("a", "b", "c")},
        "query_tokens = ('a', 'b', 'c'): must be one sequence of texts per batch item",
    ),
    (cross, {"key_tokens": (("a", "b", "c"),) * N}, "key_tokens = (3, 3): must name 5 tokens for each of 2 batch items"),
    # how it is computed
    (
        attention,
        {"engine": "jax"},
        "engine = 'jax': must be one of torch, numpy. Nearest right: engine = 'torch' or engine = 'numpy'.",
    ),
    (attention, {"dtype": "int8"}, "dtype = 'int8': must be one of float32, float64, float16, bfloat16."),
    (attention, {"dtype": "float16", "engine": "numpy"}, "dtype = 'float16': must be one of float32, float64."),
    (attention, {"dtype": torch.float32}, "dtype = torch.float32: must be one of float32"),
]


def _id(part):
    return part.__name__ if callable(part) else "-".join(part) if isinstance(part, dict) else ""


@pytest.mark.parametrize("call, given, message", WRONG, ids=_id)
def test_wrong_value(call, given, message):
    with pytest.raises(Wrong) as caught:
        call(**given)
    assert message in str(caught.value)
    wrong = caught.value
    assert wrong.argument.replace(".", "_") in given or wrong.argument in (
        "state_dict",
        "key",
        "value",
        "embed_dim",
        "num_heads",
    )
    assert wrong.rule[-1] == "." or wrong.rule.startswith("cannot be read")


def taken(change, given):
    """The arguments after this advice: an array of the shape or the type that it names, or the value itself."""
    made = {}
    for name, value in change.items():
        if isinstance(value, Shape):
            value = MASK(*value) if name.endswith("mask") else ZEROS(*value)
        elif isinstance(value, np.dtype):
            value = np.asarray(given[name]).astype(value)
        made[name] = value
    return given | made


def follow(call, given, steps):
    """Takes every advice by itself, and the advice that follows where one thing more is wrong; whatever is left in the end raises."""
    try:
        call(**given)
    except Wrong as wrong:
        if not steps:
            raise
        for change in wrong.nearest:
            follow(call, taken(change, given), steps - 1)


@pytest.mark.parametrize("call, given, message", WRONG, ids=_id)
def test_advice_is_right(call, given, message):
    """What a Wrong says would be right is accepted, or leads on to the next thing that is wrong, and so to the end in two steps."""
    follow(call, given, 2)


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_a_nested_tensor_is_no_array():
    with pytest.raises(Wrong, match="cannot be read as an array"):
        attention(query=torch.nested.nested_tensor([torch.zeros(2, E), torch.zeros(3, E)]))


def test_not_a_state_dict():
    with pytest.raises(Wrong, match=r"state_dict = Linear.*must map names to arrays, as a module's \.state_dict"):
        Layer.from_state_dict(torch.nn.Linear(2, 2), 1)


@pytest.mark.parametrize(
    "given",
    [
        {"query": ZEROS(N, L, E).astype(np.float64)},
        {"query": torch.zeros(N, L, E, dtype=torch.bfloat16)},
        {"key_padding_mask": MASK(N, L), "attn_mask": ZEROS(L, L)},
        {"key_padding_mask": [[False] * L] * N},
        {"attn_mask": ZEROS(L, L).astype(np.float64)},
        {"attn_mask": [[0.0, -np.inf, -np.inf]] * L},
        {"window": np.int64(2)},
        {"num_heads": np.int32(4)},
        {"dtype": np.dtype("float64")},
        {"query_tokens": [["a", "b", "c"]] * N},
        {"query_tokens": ((1, 2, 3), (4, 5, 6))},
    ],
    ids=lambda given: "-".join(given),
)
def test_what_pytorch_refuses_and_we_need_not(given):
    """Other float types, NumPy masks, masks of two kinds, NumPy integers: one meaning, so they are taken."""
    assert attention(**given).output.shape == (N, L, E)


# The rules themselves


@pytest.mark.parametrize(
    "embed_dim, num_heads", [(embed_dim, heads) for embed_dim in (1, 7, 30, 128, 997) for heads in range(1, 135)]
)
def test_nearest_divisors_and_multiples(embed_dim, num_heads):
    """The head counts and dimensions on either side, and none that is nearer is left out."""
    if embed_dim % num_heads == 0:
        assert head_dim(embed_dim, num_heads) == embed_dim // num_heads
        return
    with pytest.raises(Wrong) as caught:
        head_dim(embed_dim, num_heads)
    heads = [change["num_heads"] for change in caught.value.nearest if "num_heads" in change]
    dims = [change["embed_dim"] for change in caught.value.nearest if "embed_dim" in change]
    right = [count for count in range(1, embed_dim + 1) if embed_dim % count == 0]
    below, above = [count for count in right if count < num_heads], [count for count in right if count > num_heads]
    assert heads == below[-1:] + above[:1]
    assert divisors(embed_dim) == right
    assert all(dim % num_heads == 0 and 0 < abs(dim - embed_dim) < num_heads for dim in dims)
    assert len(dims) == (1 if embed_dim < num_heads else 2)


def test_values_come_back_plain():
    """What passes a rule is the plain Python value, so that nothing after it meets NumPy's integers or PyTorch's."""
    assert [type(value) for value in (whole("n", np.int64(3), 1), whole("n", torch.tensor(3), 1))] == [int, int]
    assert type(fraction("p", np.float32(0.5))) is float and type(fraction("p", 1)) is float
    assert one_of("flag", 1, (True, False)) is True


def test_long_values_are_cut():
    assert len(str(Wrong("words", "x" * 1000, "is long."))) < 100


def test_wrong_survives_pickling():
    wrong = Wrong("query", Shape((2, 3)), "is wrong.", [{"query": Shape((3, 2))}])
    again = pickle.loads(pickle.dumps(wrong))
    assert str(again) == str(wrong) == "query of shape (2, 3): is wrong. Nearest right: query of shape (3, 2)."
    assert again.nearest == wrong.nearest


@pytest.mark.parametrize(("embed_dim", "num_heads"), [(2**53 - 1, 8), (10**12 + 39, 10**9)])
def test_numbers_that_nobody_can_factor_by_trial_are_answered_at_once(embed_dim, num_heads):
    """The nearest head counts are looked for up to FARTHEST: all divisors of such a number would take seconds, or hours."""
    with pytest.raises(Wrong) as caught:
        head_dim(embed_dim, num_heads)
    heads = [change["num_heads"] for change in caught.value.nearest if "num_heads" in change]
    assert heads and all(embed_dim % count == 0 and count <= FARTHEST for count in heads)
