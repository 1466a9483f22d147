"""Weights from a file: layers found by name, converted by their recipe, and compared with the modules that they came from."""

import io

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from torch import nn
from torch.nn import functional as F

from mha_viz.core.rules import Wrong
from mha_viz.sources.files import agreeing, fits, look, open_found
from mha_viz.sources.files.recipes import IN_OUT, ORDERS, OUT_IN, PER_HEAD

E, H, L = 24, 4, 6
CLOSE = {"rtol": 0, "atol": 1e-6}


def seeded(make, *arguments, **options):
    """A module of float32 whose every number, biases too, is drawn from one seed."""
    module = make(*arguments, **options)
    generator = torch.Generator().manual_seed(0)
    for parameter in module.parameters():
        parameter.data = torch.randn(parameter.shape, generator=generator) * 0.3
    return module.eval()


def file_of(state_dict):
    file = io.BytesIO()
    torch.save(dict(state_dict), file)
    return file.getvalue()


def query(N=2, width=E):
    return torch.randn(N, L, width, generator=torch.Generator().manual_seed(1))


def eager(q, k, v, causal=False):
    """Attention of q [N, H, L, D], k and v [N, G, S, D] as models write it: (weights, output [N, L, H·D])."""
    k, v = (x.repeat_interleave(q.shape[1] // x.shape[1], 1) for x in (k, v))
    scores = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5
    if causal:
        scores = scores.masked_fill(torch.ones(scores.shape[-2:]).triu(1).bool(), -torch.inf)
    weights = scores.softmax(-1)
    return weights, (weights @ v).transpose(1, 2).flatten(2)


def heads(x, count=H):
    return x.unflatten(-1, (count, -1)).transpose(1, 2)  # [N, L, H·D] → [N, H, L, D]


class BertLike(nn.Module):
    """Queries, keys and values in ``self``, the output projection beside it, as BERT names them."""

    def __init__(self):
        super().__init__()
        self.self = nn.Module()
        self.self.query, self.self.key, self.self.value = (nn.Linear(E, E) for _ in range(3))
        self.output = nn.Module()
        self.output.dense, self.output.LayerNorm = nn.Linear(E, E), nn.LayerNorm(E)

    def forward(self, x):
        weights, concat = eager(*(heads(part(x)) for part in (self.self.query, self.self.key, self.self.value)))
        return weights, self.output.dense(concat)


class Conv1D(nn.Module):
    """GPT-2's linear layer: y = x W + b, W [in, out]."""

    def __init__(self, out, width):
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.empty(width, out)), nn.Parameter(torch.empty(out))

    def forward(self, x):
        return x @ self.weight + self.bias


class Gpt2Like(nn.Module):
    def __init__(self):
        super().__init__()
        self.c_attn, self.c_proj = Conv1D(3 * E, E), Conv1D(E, E)
        self.register_buffer("bias", torch.ones(1, 1, 32, 32).tril().bool())

    def forward(self, x):
        weights, concat = eager(*map(heads, self.c_attn(x).chunk(3, -1)), causal=True)
        return weights, self.c_proj(concat)


class LlamaLike(nn.Module):
    """Grouped key and value heads, heads of a size of their own, no biases; without rotary positions."""

    def __init__(self, groups=2, head_dim=8):
        super().__init__()
        self.groups = groups
        for name, out, width in (
            ("q", H * head_dim, E),
            ("k", groups * head_dim, E),
            ("v", groups * head_dim, E),
            ("o", E, H * head_dim),
        ):
            setattr(self, f"{name}_proj", nn.Linear(width, out, bias=False))

    def forward(self, x):
        weights, concat = eager(
            heads(self.q_proj(x)), heads(self.k_proj(x), self.groups), heads(self.v_proj(x), self.groups), causal=True
        )
        return weights, self.o_proj(concat)


class NeoxLike(nn.Module):
    """q, k and v of each head in turn in one matrix."""

    def __init__(self):
        super().__init__()
        self.query_key_value, self.dense = nn.Linear(E, 3 * E), nn.Linear(E, E)

    def forward(self, x):
        q, k, v = self.query_key_value(x).unflatten(-1, (H, 3, -1)).permute(3, 0, 2, 1, 4)  # [3, N, H, L, D]
        weights, concat = eager(q, k, v)
        return weights, self.dense(concat)


def opened(module, prefix, **answers):
    """(the module's weights and output, the Trace of its file), on the same input."""
    weights, output = (t.detach() for t in module(query()))
    found = look("model.pt", file_of({f"{prefix}{name}": value for name, value in module.state_dict().items()}))
    assert found.kind == "weights"
    (trace,) = open_found(found, query=query(), **answers).traces
    return weights, output, trace


@pytest.mark.parametrize(
    ("make", "prefix", "answers", "name"),
    [
        (BertLike, "encoder.layer.0.attention.", {}, "encoder.layer.0.attention.self"),
        (Gpt2Like, "h.0.attn.", {}, "h.0.attn"),
        (LlamaLike, "model.layers.0.self_attn.", {"causal": True}, "model.layers.0.self_attn"),
        (NeoxLike, "layers.0.attention.", {}, "layers.0.attention"),
        (NeoxLike, "", {}, "model"),
    ],
)
def test_a_converted_layer_is_the_module(make, prefix, answers, name):
    weights, output, trace = opened(seeded(make), prefix, num_heads=H, **answers)
    assert trace.name == name
    np.testing.assert_allclose(trace.weights, weights, **CLOSE)
    np.testing.assert_allclose(trace.output, output, rtol=0, atol=5e-6)


@pytest.mark.parametrize("options", [{}, {"bias": False}, {"add_bias_kv": True}, {"kdim": 10, "vdim": 12}])
def test_multihead_attention_is_the_module(options):
    module = seeded(nn.MultiheadAttention, E, H, batch_first=True, **options)
    found = look("model.pt", file_of({f"encoder.self_attn.{name}": value for name, value in module.state_dict().items()}))
    (trace,) = open_found(found, num_heads=H, query=query()).traces
    key, value = (query() if array is None else torch.tensor(array) for array in (trace.batch.key, trace.batch.value))
    with torch.no_grad():
        output, weights = module(query(), key, value, average_attn_weights=False)
    np.testing.assert_allclose(trace.weights, weights, **CLOSE)
    np.testing.assert_allclose(trace.output, output, rtol=0, atol=5e-6)


def test_grouped_heads_stay_grouped():
    _, _, trace = opened(seeded(LlamaLike), "attn.", num_heads=H, causal=True)
    assert trace.call.k.shape == (2, 2, L, 8)
    assert trace.k.shape == (2, H, L, 8)


def test_flax_kernels_tell_the_heads():
    """query/kernel [E, H, D], out/kernel [H, D, E]: the recipe, against the same numbers as nn.Linear's."""
    module = seeded(BertLike)
    state = module.state_dict()
    held = {f"attention/{part}/kernel": state[f"self.{part}.weight"].T.reshape(E, H, -1) for part in ("query", "key", "value")}
    held |= {f"attention/{part}/bias": state[f"self.{part}.bias"].reshape(H, -1) for part in ("query", "key", "value")}
    held |= {
        "attention/out/kernel": state["output.dense.weight"].T.reshape(H, -1, E),
        "attention/out/bias": state["output.dense.bias"],
    }
    found = look("flax.pt", file_of(held))
    assert [question.field for question in found.questions] == ["causal", "seq_len", "seed"]
    (trace,) = open_found(found, query=query()).traces
    np.testing.assert_allclose(trace.weights, module(query())[0].detach(), **CLOSE)
    np.testing.assert_allclose(trace.output, module(query())[1].detach(), rtol=0, atol=5e-6)


def test_grouped_packed_rows(tmp_path):
    """qkv_proj of q's rows, then k's and v's fewer, as in Phi-3."""
    module = seeded(LlamaLike, 2, E // H)
    state = module.state_dict()
    held = {"qkv_proj.weight": torch.cat([state[f"{x}_proj.weight"] for x in "qkv"]), "o_proj.weight": state["o_proj.weight"]}
    save_file(held, tmp_path / "phi.safetensors")
    found = look("phi.safetensors", tmp_path / "phi.safetensors")
    assert "packed" not in [question.field for question in found.questions], "rows of another number tell the order"
    (trace,) = open_found(found, num_heads=H, causal=True, query=query()).traces
    np.testing.assert_allclose(trace.weights, module(query())[0].detach(), **CLOSE)


@pytest.mark.parametrize("order", [*ORDERS, PER_HEAD])
def test_any_packed_order_can_be_said(order):
    module = seeded(NeoxLike)
    state = module.state_dict()
    parts = {}
    for leaf in ("weight", "bias"):
        kept = state[f"query_key_value.{leaf}"].unflatten(0, (H, 3, -1))  # [H, 3, D, …]
        third = dict(zip("qkv", (kept[:, i].flatten(0, 1) for i in range(3)), strict=True))
        packed = kept.flatten(0, 2) if order == PER_HEAD else torch.cat([third[letter] for letter in order.split(", ")])
        parts[f"attn.qkv.{leaf}"], parts[f"attn.proj.{leaf}"] = packed, state[f"dense.{leaf}"]
    found = look("timm.pt", file_of(parts))
    assert next(question.guess for question in found.questions if question.field == "packed") == "q, k, v"
    (trace,) = open_found(found, num_heads=H, packed=order, query=query()).traces
    np.testing.assert_allclose(trace.weights, module(query())[0].detach(), **CLOSE)


def test_square_matrices_are_asked_about_only_where_nothing_tells():
    def asked(held):
        return {question.field: question for question in look("w.pt", file_of(held)).questions}

    square = {f"attn.{x}_proj.kernel": torch.rand(E, E) for x in "qkvo"}
    assert asked(square)["layout"].guess == IN_OUT
    linear = {name.replace("kernel", "weight"): value for name, value in square.items()}
    assert asked(linear)["layout"].guess == OUT_IN
    assert "layout" not in asked(
        {name: value.new_zeros(E // 2, E) if "k_" in name or "v_" in name else value for name, value in linear.items()}
    )
    turned = {f"attn.{x}.weight": torch.rand(E, 3 * E) if x == "c_attn" else torch.rand(E, E) for x in ("c_attn", "c_proj")}
    assert "layout" not in asked(turned), "the packed matrix tells"


def test_the_layout_that_is_said_is_the_one_that_is_used():
    module = seeded(BertLike)
    turned = {name: value.T if value.ndim == 2 else value for name, value in module.state_dict().items()}
    found = look("turned.pt", file_of({f"attention.{name}": value for name, value in turned.items()}))
    (trace,) = open_found(found, num_heads=H, layout=IN_OUT, query=query()).traces
    np.testing.assert_allclose(trace.weights, module(query())[0].detach(), **CLOSE)
    (trace,) = open_found(found, num_heads=H, layout=OUT_IN, query=query()).traces
    assert np.abs(trace.weights - module(query())[0].detach().numpy()).max() > 0.01


# What is asked


def transformer(layers=2, **options):
    encoder = nn.TransformerEncoder(
        nn.TransformerEncoderLayer(E, H, 2 * E, batch_first=True, **options), layers, enable_nested_tensor=False
    )
    return encoder.eval()


def test_every_layer_of_a_model_is_found_in_a_checkpoint():
    model = transformer(11)
    found = look("checkpoint.pt", file_of({"epoch": 3, "model": model.state_dict(), "optimizer": {"state": {}}}))
    layers, heads, causal, length, seed = found.questions
    assert [len(layers.choices), layers.guess] == [12, "all"]
    assert layers.choices[11] == "model.layers.10.self_attn", "in their natural order"
    assert (heads.choices, heads.guess) == ((1, 2, 3, 4, 6, 8, 12, 24), None)
    assert (causal.guess, length.guess, seed.guess) == (False, 20, 7)
    assert "11 attention layers" in found.holds[0] or "10 more" in found.holds[0]
    recording = open_found(found, num_heads=H)
    assert [trace.name for trace in recording.traces] == list(layers.choices[1:])
    assert recording.traces[0].weights.shape == (1, H, 20, 20)
    assert recording.notes[0] == "Your weights, random input: 20 tokens, drawn with seed 7."
    (one,) = open_found(found, layers="model.layers.3.self_attn", num_heads=2, causal=True, seq_len=5, seed=1).traces
    assert one.mask[0, 0].tolist() == np.triu(np.ones((5, 5), bool), 1).tolist()
    assert one.weights.shape == (1, 2, 5, 5)


def test_the_same_seed_is_the_same_input():
    found = look("w.pt", file_of(transformer().state_dict()))
    one, same, other = (open_found(found, num_heads=H, seed=seed).traces[0].batch.query for seed in (3, 3, 4))
    np.testing.assert_array_equal(one, same)
    assert not np.array_equal(one, other)


def test_heads_of_64_are_guessed():
    found = look("w.pt", file_of(nn.MultiheadAttention(768, 12).state_dict()))
    assert found.questions[0].guess == 12
    assert "guess" in found.questions[0].check


def test_tokens_are_read_as_random_vectors():
    found = look("w.pt", file_of(transformer().state_dict()))
    recording = open_found(found, num_heads=H, tokens=[["the", "cat", "the"], ["a"]])
    trace = recording.traces[1]
    assert trace.query_tokens == (("the", "cat", "the"), ("a", "<pad>", "<pad>"))
    np.testing.assert_allclose(trace.weights[0, :, 0], trace.weights[0, :, 2], **CLOSE)
    assert trace.query_padding.tolist() == [[False] * 3, [False, True, True]]
    assert "same text" in recording.notes[0]


def test_a_layer_of_a_safetensors_file_is_read_alone(tmp_path, monkeypatch):
    from mha_viz.stored.stored import Stored

    seen, read = [], Stored.read
    monkeypatch.setattr(Stored, "read", lambda self: (seen.append(self.name), read(self))[1])
    monkeypatch.setattr("mha_viz.sources.files.weights.TOGETHER", 4 * 4 * E * (E + 1))
    save_file(transformer(3).state_dict(), tmp_path / "model.safetensors")
    found = look("model.safetensors", tmp_path / "model.safetensors")
    assert found.questions[0].choices == tuple(f"layers.{i}.self_attn" for i in range(3)), "together they would be too large"
    open_found(found, layers="layers.1.self_attn", num_heads=H)
    assert {name.split(".")[1] for name in seen} == {"1"}


@pytest.mark.parametrize(
    ("answers", "said"),
    [
        ({}, "num_heads = None"),
        ({"num_heads": 5}, "num_heads = 5"),
        ({"num_heads": H, "layers": "layers.7"}, "layers = 'layers.7'"),
        ({"num_heads": H, "seq_len": 0}, "seq_len = 0"),
        ({"num_heads": H, "axes": "N H L S"}, "is not asked"),
        ({"num_heads": H, "query": np.zeros((1, 5, 7), np.float32)}, "where E is the layer's, 24"),
        ({"num_heads": H, "query": np.zeros((1, 5, E), int)}, "floating type"),
        ({"num_heads": H, "tokens": [["a"] * 3], "query": np.zeros((1, 5, E), np.float32)}, "5 tokens"),
    ],
)
def test_answers_that_do_not_fit_are_refused(answers, said):
    found = look("w.pt", file_of(transformer().state_dict()))
    with pytest.raises(Wrong) as caught:
        open_found(found, **answers)
    assert said in str(caught.value)


def test_an_input_is_for_weights():
    with pytest.raises(Wrong, match="this file holds maps"):
        open_found(look("a.pt", file_of({"a": torch.full((2, 2), 0.5)})), query=query())


# What the weights say by themselves


def state(**changes):
    kept = nn.MultiheadAttention(E, H).state_dict()
    for name, change in changes.items():
        change(kept[name.replace("__", ".")])
    return kept


def said(held, **answers):
    """Everything that is said of weights: when they are found, and when they are opened."""
    found = look("w.pt", file_of(held))
    notes = open_found(found, num_heads=H, **answers).notes
    assert all(any(sentence in note for note in notes) for sentence in found.holds[1:]), (
        "what is found is kept in the recording"
    )
    return " ".join((*found.holds, *notes))


def test_weights_are_checked_by_themselves():
    assert "looks untrained: q, k and v are spread as nn.MultiheadAttention draws it" in said(state())
    assert "untrained" not in said(state(in_proj_weight=lambda W: W.mul_(1.2)))
    assert "untrained" not in said(state(in_proj_weight=lambda W: W[:E].mul_(0.5)))
    assert "weights of k hold 1 NaN of 576 numbers, the first at [1, 2]" in said(
        state(in_proj_weight=lambda W: W[E + 1, 2].fill_(torch.nan))
    )
    assert "bias of v hold 2 infinite" in said(state(in_proj_bias=lambda b: b[-2:].fill_(torch.inf)))
    assert "weights of o are all 0: nothing comes out" in said(state(out_proj__weight=torch.Tensor.zero_))
    assert "weights of q are all 0: every query reads all keys alike" in said(state(in_proj_weight=lambda W: W[:E].zero_()))


@pytest.mark.parametrize("draw", ["nn.Linear", "0.02"])
def test_other_ways_to_draw_weights_are_known(draw):
    held = dict(BertLike().state_dict())
    if draw == "0.02":
        generator = torch.Generator().manual_seed(0)
        held = {
            n: torch.randn(v.shape, generator=generator) * 0.02 if v.ndim == 2 else torch.zeros(v.shape)
            for n, v in held.items()
        }
    assert draw in said({f"attention.{name}": value for name, value in held.items()}).split("untrained")[1]


def test_what_is_said_of_several_layers_is_said_once():
    found = look("w.pt", file_of(transformer(3).state_dict()))
    assert sum("untrained" in sentence for sentence in found.holds) == 1


def test_what_is_beside_a_layer_and_not_used_is_named():
    held = {f"attn.{name}": value for name, value in seeded(LlamaLike).state_dict().items()} | {
        "attn.q_norm.weight": torch.ones(8)
    }
    assert "attn.q_norm.weight beside it is not used" in said(held)


# Layouts that shapes cannot tell


@pytest.fixture(scope="module")
def trained():
    """A small causal layer with biases, trained to say which token came before: {part: nn.Linear}, with biases that began at 0."""
    torch.manual_seed(0)  # the modules' own initial values
    size, vocabulary, length = 64, 16, 16
    generator = torch.Generator().manual_seed(0)
    model = nn.ModuleDict({x: nn.Linear(size, size) for x in "qkvo"})
    model.update(
        {"token": nn.Embedding(vocabulary, size), "place": nn.Embedding(length, size), "out": nn.Linear(size, vocabulary)}
    )
    for x in "qkvo":
        nn.init.normal_(model[x].weight, std=0.02)
        nn.init.zeros_(model[x].bias)
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    for _ in range(300):
        tokens = torch.randint(vocabulary, (32, length), generator=generator)
        x = model["token"](tokens) + model["place"].weight
        q, k, v = (heads(model[part](x)) for part in "qkv")
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2)
        loss = F.cross_entropy(model["out"](x + model["o"](y))[:, 1:].flatten(0, 1), tokens[:, :-1].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert loss < 0.2
    return {x: (model[x].weight.detach(), model[x].bias.detach()) for x in "qkvo"}


def question(held, field):
    return next(question for question in look("w.pt", file_of(held)).questions if question.field == field)


def test_trained_weights_tell_whether_they_are_transposed(trained):
    linear = {f"attn.{x}_proj.weight": W for x, (W, _) in trained.items()}
    assert question(linear, "layout").check.startswith("The weights speak for “[out, in]”")
    turned = {name: W.T for name, W in linear.items()}
    assert question(turned, "layout").check.startswith("The weights speak for “[in, out]”")
    drawn = {name: torch.randn(64, 64, generator=torch.Generator().manual_seed(i)) for i, name in enumerate(linear)}
    assert question(drawn, "layout").check.startswith("The weights speak for none")


@pytest.mark.parametrize("order", ORDERS)
def test_trained_weights_tell_the_packed_order(trained, order):
    held = {
        "attn.qkv.weight": torch.cat([trained[x][0] for x in order.split(", ")]),
        "attn.qkv.bias": torch.cat([trained[x][1] for x in order.split(", ")]),
        "attn.proj.weight": trained["o"][0],
    }
    check = question(held, "packed").check
    assert check.startswith(f"The weights speak for “{order}”"), check
    assert "gets no gradient" in check
    del held["attn.qkv.bias"]
    swapped = order.translate(str.maketrans("qk", "kq"))
    assert (
        f"“{min(order, swapped, key=ORDERS.index)}” or “{max(order, swapped, key=ORDERS.index)}”"
        in question(held, "packed").check
    )


def test_trained_weights_tell_that_heads_come_in_turn(trained):
    held = {
        f"attn.query_key_value.{leaf}": torch.stack([trained[x][i].unflatten(0, (H, -1)) for x in "qkv"], 1).flatten(0, 2)
        for i, leaf in enumerate(("weight", "bias"))
    }
    check = question(held | {"attn.dense.weight": trained["o"][0]}, "packed").check
    assert check.startswith("The weights speak for “q, k, v of each head in turn, 4 heads”"), check


# A known output


@pytest.mark.parametrize(
    ("make", "right"),
    [
        (BertLike, {"layout": OUT_IN, "num_heads": H, "causal": False}),
        (Gpt2Like, {"packed": "q, k, v", "num_heads": H, "causal": True}),
        (NeoxLike, {"packed": PER_HEAD, "num_heads": H, "causal": False}),
        (LlamaLike, {"num_heads": H, "causal": True}),
    ],
)
def test_a_known_output_tells_everything_that_is_asked(make, right):
    module = seeded(make)
    held = {f"{i}.attn.{name}": value * (1 + i) for i in range(2) for name, value in module.state_dict().items()}
    found = look("w.pt", file_of(held))
    tried = fits(found, query(), module(query())[1].detach())
    best, second, *_ = tried
    assert agreeing(tried) is best
    layer = found.questions[0].choices[1]
    assert best.answers == {"layers": layer} | right
    assert best.error < 1e-5
    assert second.error > 1e-3
    (trace,) = open_found(found, query=query(), **best.answers).traces
    np.testing.assert_allclose(trace.weights, module(query())[0].detach(), **CLOSE)


class Rotated(LlamaLike):
    """With rotary positions, as most Llama-like models have; ``interleaved`` turns neighbours, as GPT-J and the first Llama do."""

    def __init__(self, interleaved):
        super().__init__()
        self.interleaved = interleaved

    def turned(self, x):
        """``x`` [N, H, L, D], each pair of its numbers turned by an angle that grows with the place."""
        place, pairs = torch.arange(x.shape[2])[:, None], x.shape[3] // 2
        angle = place / 10000 ** (torch.arange(pairs) / pairs)  # [L, D / 2]
        a, b = (x[..., 0::2], x[..., 1::2]) if self.interleaved else x.chunk(2, -1)
        both = a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos()  # [N, H, L, D / 2] each
        return torch.stack(both, -1).flatten(-2) if self.interleaved else torch.cat(both, -1)

    def forward(self, x):
        q, k = self.turned(heads(self.q_proj(x))), self.turned(heads(self.k_proj(x), self.groups))
        weights, concat = eager(q, k, heads(self.v_proj(x), self.groups), causal=True)
        return weights, self.o_proj(concat)


@pytest.mark.parametrize("interleaved", [True, False])
@pytest.mark.parametrize("scale", [1, 4])
def test_an_output_that_nothing_gives_is_said_to_be_none_and_what_may_be_missing(interleaved, scale):
    module = seeded(Rotated, interleaved)
    found = look("w.pt", file_of({f"attn.{name}": value for name, value in module.state_dict().items()}))
    output = module(query() * scale)[1].detach()
    tried = fits(found, query() * scale, output)
    assert not any(fit.agrees for fit in tried) and tried[0].error > 0.1 * output.abs().max()
    with pytest.raises(Wrong, match=rf"none of the {len(tried)} .* off by up to {tried[0].error:.3g}, .* rotation of q and k"):
        agreeing(tried)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_an_output_agrees_within_the_rounding_of_its_type(dtype):
    module = seeded(LlamaLike).to(dtype)
    found = look("w.pt", file_of({f"attn.{name}": value for name, value in module.state_dict().items()}))
    tried = fits(found, query().to(dtype), module(query().to(dtype))[1].detach())
    assert agreeing(tried).answers == {"num_heads": H, "causal": True}
    assert [fit.agrees for fit in tried] == [True] + [False] * (len(tried) - 1)


def test_an_output_that_is_not_finite_tells_nothing():
    module = seeded(LlamaLike)
    found = look("w.pt", file_of({f"attn.{name}": value for name, value in module.state_dict().items()}))
    with pytest.raises(Wrong, match="must hold finite numbers"):
        fits(found, query(), torch.full_like(query(), torch.nan))


def test_what_is_answered_is_not_tried():
    module = seeded(BertLike)
    found = look("w.pt", file_of({f"attn.{name}": value for name, value in module.state_dict().items()}))
    tried = fits(found, query()[0], module(query())[1].detach()[0], num_heads=2, layout=OUT_IN)
    assert [fit.answers["causal"] for fit in tried] in ([False, True], [True, False])
    assert tried[0].error > 1e-3, "none of them fits: it has 4 heads"


@pytest.mark.parametrize(
    ("q", "output", "said"),
    [
        (query(), query()[:, :3], "the same axes but for the last"),
        (query(width=7), query(), "where E is the layer's, 24"),
        (query(), query(width=7), "as wide as the layer's output, 24"),
    ],
)
def test_a_known_output_that_does_not_fit_is_refused(q, output, said):
    found = look("w.pt", file_of(transformer(1).state_dict()))
    with pytest.raises(Wrong, match=said):
        fits(found, q, output)


def test_too_many_combinations_are_refused(monkeypatch):
    monkeypatch.setattr("mha_viz.sources.files.known.MOST", 10)
    with pytest.raises(Wrong, match="leave 32 combinations"):
        fits(look("w.pt", file_of(transformer(2).state_dict())), query(), query())
    with pytest.raises(Wrong, match="this file holds maps"):
        fits(look("a.pt", file_of({"a": torch.full((2, 2), 0.5)})), query(), query())


def test_kernels_of_grouped_heads_and_of_values_of_another_size_are_opened():
    held = flax_like(q=(16, 4, 4), k=(16, 2, 4), v=(16, 2, 3), out=(4, 3, 16), q_bias=(4, 4))
    (trace,) = open_found(look("w.pt", file_of(held)), query=query(width=16)).traces
    assert (trace.q.shape[1:], trace.call.k.shape[1:], trace.call.v.shape[1:]) == ((4, L, 4), (2, L, 4), (2, L, 3))


# Bad weights


def flax_like(out=None, q_bias=None, **shapes):
    held = {f"{x}.kernel": torch.ones(shape) for x, shape in shapes.items()}
    held |= {} if out is None else {"out.kernel": torch.ones(out)}
    return held if q_bias is None else held | {"q.bias": torch.ones(q_bias)}


@pytest.mark.parametrize(
    ("held", "said"),
    [
        ({"a.in_proj_weight": torch.zeros(3 * E, E), "a.out_proj.weight": torch.zeros(E + 1, E + 1)}, "must have shape"),
        ({"a.in_proj_weight": torch.zeros(3 * E, E), "a.out_proj.weight": torch.zeros(E)}, "out_proj.weight"),
        ({f"a.{x}_proj.weight": torch.zeros(E, n) for x, n in (("q", E), ("k", 7), ("o", 5))}, "in any layout"),
        ({f"a.{x}_proj.weight": torch.zeros(E, E, 1, 1) for x in "qk"}, "must be a matrix"),
        ({"a.c_attn.weight": torch.zeros(E, 5 * E), "a.c_proj.weight": torch.zeros(E, E)}, "in any layout"),
        (
            flax_like(q=(16, 4, 4), k=(16, 4, 3), v=(16, 4, 4), out=(4, 4, 16)),
            "k.kernel of shape (16, 4, 3): must be [E, heads",
        ),
        (flax_like(q=(16, 4, 2), k=(16, 2, 4), v=(16, 2, 4)), "a head_dim of 2"),
        (flax_like(q=(16, 4, 4), k=(16, 3, 4), v=(16, 3, 4)), "heads that divide q's 4"),
        (flax_like(q=(16, 4, 4), k=(16, 2, 4), v=(16, 4, 4)), "as many heads as k, 2"),
        (flax_like(q=(16, 4, 4), k=(16, 4, 4), v=(16, 4, 4), out=(4, 3, 16)), "4 heads and v's head_dim, 4"),
        (flax_like(q=(16, 4, 4), k=(16, 16), v=(16, 4, 4)), "a head_dim of 4"),
        (flax_like(q=(16, 4, 4), k=(16, 4, 4), v=(16, 4, 4), q_bias=(4, 3)), "q.bias of shape (4, 3): must hold 16 numbers"),
        (flax_like(q=(16, 4, 4), k=(16, 4, 4), v=(16, 4, 4), q_bias=(2, 2, 4)), "must hold 16 numbers"),
        ({"a.c_attn.weight": torch.zeros(E, 3 * E), "a.c_attn.bias": torch.zeros(3 * E - 1)}, f"must hold {3 * E} numbers"),
        (
            {"a.c_attn.weight": torch.zeros(E, 3 * E), "a.c_proj.weight": torch.zeros(E, E), "a.c_proj.bias": torch.zeros(1)},
            f"must hold {E}",
        ),
        (
            {f"a.{x}_proj.{leaf}": torch.zeros(E, *[E] * (leaf == "weight")) for x in "qk" for leaf in ("weight", "bias")}
            | {"a.k_proj.bias": torch.zeros(E + 1)},
            f"a.k_proj.bias of shape ({E + 1},)",
        ),
        ({f"a.{x}_proj.weight": torch.tensor(1.0) for x in "qkvo"}, "must be a matrix"),
        ({"a.q_proj.weight": torch.zeros(E, E), "a.k_proj.weight": torch.tensor(1.0)}, "a.k_proj.weight of shape ()"),
        ({"a.in_proj_weight": torch.tensor(1.0), "a.out_proj.weight": torch.tensor(1.0)}, "out_proj.weight"),
        ({"a.in_proj_weight": torch.zeros(0, 0), "a.out_proj.weight": torch.zeros(0, 0)}, "no empty axis"),
        (
            {
                "a.in_proj_weight": torch.zeros(3 * E, E),
                "a.out_proj.weight": torch.zeros(E, E),
                "a.in_proj_bias": torch.zeros(E),
            },
            "in_proj_bias",
        ),
        ({f"a.{x}_proj.weight": torch.zeros(E, E, dtype=torch.int8) for x in "qk"}, "int8"),
        ({f"a.{x}_proj.weight": torch.zeros(E, E).to(torch.float8_e4m3fn) for x in "qk"}, "float8_e4m3fn"),
    ],
)
def test_layers_whose_shapes_do_not_fit_are_refused(held, said):
    with pytest.raises(Wrong) as caught:
        look("w.pt", file_of(held))
    assert said in str(caught.value)


def test_one_bad_layer_does_not_hide_the_others():
    found = look("w.pt", file_of(transformer(2).state_dict() | {"layers.1.self_attn.out_proj.weight": torch.zeros(E, E + 1)}))
    assert "Left out" in found.holds[-1]
    assert len(open_found(found, num_heads=H).traces) == 1


def test_a_state_dict_without_attention_is_refused():
    with pytest.raises(Wrong):
        look("w.pt", file_of(nn.Linear(4, 4).state_dict()))


def test_weights_that_are_damaged_are_refused_or_read_but_never_break(tmp_path):
    random = np.random.default_rng(0)
    save_file(seeded(BertLike).state_dict(), tmp_path / "w.safetensors")
    for data in (file_of(transformer(1).state_dict()), (tmp_path / "w.safetensors").read_bytes()):
        for _ in range(40):
            damaged = bytearray(data)
            for place in random.integers(0, 1500, 3):
                damaged[place] = random.integers(256)
            try:
                open_found(look("w", bytes(damaged)), num_heads=H).traces[0].weights.sum()
            except Wrong as wrong:
                str(wrong).encode()


def test_an_opened_layer_can_be_saved_and_opened_again(tmp_path):
    recording = open_found(look("w.pt", file_of(transformer(2).state_dict())), num_heads=H, causal=True)
    recording.save(tmp_path / "run.safetensors")
    again = open_found(look("run.safetensors", tmp_path / "run.safetensors"))
    assert again.notes == recording.notes
    for one, other in zip(recording.traces, again.traces, strict=True):
        assert one.name == other.name
        np.testing.assert_allclose(one.output, other.output, rtol=0, atol=1e-6)
