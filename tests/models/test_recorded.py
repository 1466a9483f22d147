"""Models of transformers, recorded while they run and while they generate."""

import numpy as np
import pytest
import torch

import mha_viz

transformers = pytest.importorskip("transformers")

WIDE = {
    "vocab_size": 50,
    "hidden_size": 16,
    "intermediate_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "head_dim": 4,
    "max_position_embeddings": 64,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 49,
    "initializer_range": 0.4,
}
IDS = torch.tensor([[0, 0, 5, 6], [7, 8, 9, 10]])  # padded on the left
LONG = torch.tensor([[5, 6, 7, 8, 9, 3]])
STEPS = 3
CASES = {  # family, of its configuration, prompt, of generate()
    "Llama": ("Llama", {}, IDS, {}),
    "Llama, one item": ("Llama", {}, IDS[:1], {}),
    "Qwen2": ("Qwen2", {}, IDS, {}),
    "Mistral": ("Mistral", {"sliding_window": 16}, IDS, {}),
    "Mistral, full window": ("Mistral", {"sliding_window": 4}, LONG, {}),
    "Mistral, full window, padded": ("Mistral", {"sliding_window": 4}, IDS, {}),
    "static cache": ("Llama", {}, LONG, {"cache_implementation": "static", "disable_compile": True}),
    "static cache, padded": ("Llama", {}, IDS, {"cache_implementation": "static", "disable_compile": True}),
}


def model_of(family, attention, **config):
    torch.manual_seed(0)
    config = getattr(transformers, f"{family}Config")(**WIDE, **config)
    return transformers.AutoModelForCausalLM.from_config(config, attn_implementation=attention).eval()


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("case", CASES)
@torch.no_grad()
def test_each_step_of_generate_has_all_heads_and_one_query(case, groups):
    """Its weights are those that the model itself returns where attention is written by hand, and what is generated is the same."""
    family, config, ids, how = CASES[case]
    how = how | {"attention_mask": (ids != 0).long(), "max_new_tokens": STEPS, "do_sample": False}
    config = config | {"num_key_value_heads": groups}
    model, by_hand = (model_of(family, attention, **config) for attention in ("sdpa", "eager"))
    alone = model.generate(ids, **how)
    with mha_viz.record(model) as recording:
        assert torch.equal(model.generate(ids, **how), alone)
    expected = by_hand.generate(ids, output_attentions=True, return_dict_in_generate=True, **how)
    layers = [layer for step in expected.attentions for layer in step]
    assert len(recording.traces) == len(layers) == STEPS * WIDE["num_hidden_layers"]
    padded = (ids == 0).numpy()
    for i, (trace, layer) in enumerate(zip(recording.traces, layers, strict=True)):
        S = trace.shape[3]
        assert trace.shape == (len(ids), 4, len(ids[0]) if i < 2 else 1, S) and trace.call.k.shape[1] == groups
        weights, shown = trace.weights, layer[..., :S].numpy()
        if i < 2:  # a query that is padding sees no key
            weights, shown = (w.transpose(0, 2, 1, 3)[~padded] for w in (weights, shown))
        assert np.allclose(weights, shown, atol=1e-5)
        assert trace.call.out_weight is not None


@torch.no_grad()
def test_flex_attention_runs_as_it_runs_alone_and_its_layers_are_named():
    model = model_of("Llama", "flex_attention", num_key_value_heads=2)
    inputs = {"input_ids": IDS, "attention_mask": (IDS != 0).long()}
    alone = model(**inputs).logits
    with mha_viz.record(model) as recording:
        assert torch.equal(model(**inputs).logits, alone)
    (note,) = recording.notes
    assert recording.traces == () and note.startswith("model.layers.0.self_attn and model.layers.1.self_attn: ")


def test_the_sinks_of_gpt_oss():
    config = transformers.GptOssConfig(
        vocab_size=50,
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=4,
        sliding_window=4,
        intermediate_size=16,
        num_local_experts=2,
        num_experts_per_tok=1,
        layer_types=["sliding_attention", "full_attention"],
        attn_implementation="eager",
    )
    model = transformers.GptOssForCausalLM(config).eval()
    for layer in model.model.layers:
        torch.nn.init.normal_(layer.self_attn.sinks)
    ids, mask = torch.randint(5, 50, (2, 8)), torch.ones(2, 8, dtype=torch.long)
    mask[0, :3] = 0
    with torch.no_grad(), mha_viz.record(model) as recording:
        own = model(ids, attention_mask=mask, output_attentions=True).attentions
    assert [(trace.rules.causal, trace.rules.window) for trace in recording.traces] == [(True, 4), (True, None)]
    for trace, weights in zip(recording.traces, own, strict=True):
        assert trace.shape == (2, 4, 8, 9) and trace.key_tokens[0][-1] == "sink"
        assert torch.equal(torch.tensor(trace.weights[..., :-1]), weights)
