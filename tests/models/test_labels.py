"""Hugging Face models whose rows are easily named wrongly: source and target as long, blocks, windows, steps."""

import pytest
import torch

import mha_viz

hf = pytest.importorskip("transformers")

WORDS = [list("abcdef")]
NUMBERS = tuple("012345")
SMALL = {"vocab_size": 80, "num_hidden_layers": 1, "num_attention_heads": 2, "hidden_size": 16, "intermediate_size": 16}


def run(model, *inputs, **filters):
    torch.manual_seed(0)
    with torch.no_grad(), mha_viz.record(model.eval(), **filters) as recording:
        model(*inputs)
    return recording


@pytest.mark.parametrize("attention", ("eager", "sdpa"))
@pytest.mark.parametrize("with_target", (False, True))
def test_bart(attention, with_target):
    config = hf.BartConfig(
        vocab_size=80,
        d_model=16,
        encoder_layers=2,
        decoder_layers=2,
        encoder_attention_heads=2,
        decoder_attention_heads=2,
        encoder_ffn_dim=16,
        decoder_ffn_dim=16,
        max_position_embeddings=32,
        attn_implementation=attention,
    )
    ids = torch.randint(4, 80, (1, 6))
    given = (ids, None, torch.randint(4, 80, (1, 6))) if with_target else (ids,)
    recording = run(hf.BartModel(config), *given, tokens=WORDS)
    assert len(recording.traces) == 6
    for trace in recording.traces:
        queries, keys = trace.query_tokens[0], trace.key_tokens[0]
        assert queries == (tuple(WORDS[0]) if "decoder" not in trace.name else NUMBERS)
        assert keys == (NUMBERS if "decoder" in trace.name and "self_attn" in trace.name else tuple(WORDS[0]))
        assert (trace.tokens.positions is None) == ("encoder_attn" in trace.name)


def test_t5_that_reads_the_same_ids_twice():
    config = hf.T5Config(vocab_size=80, d_model=16, d_kv=8, d_ff=16, num_layers=1, num_heads=2)
    ids = torch.randint(4, 80, (1, 6))
    recording = run(hf.T5Model(config), ids, None, ids, tokens=WORDS)
    assert [trace.query_tokens[0] == NUMBERS for trace in recording.traces] == [False, True, True]


def test_bigbird():
    config = hf.BigBirdConfig(**SMALL, block_size=4, num_random_blocks=1, max_position_embeddings=64)
    recording = run(hf.BigBirdModel(config), torch.randint(4, 80, (1, 32)))
    rows = [[int(text) for text in trace.query_tokens[0]] for trace in recording.traces]
    assert rows == [list(range(start, start + 4)) for start in (0, 4, 24, 28)]
    middle, gathered = recording.traces[1], range(4)  # evaluation mode gathers the first block
    assert middle.key_tokens[0] == tuple(map(str, (*range(12), *range(28, 32), *gathered)))
    assert (middle.k[0][:, 16:20] == middle.k[0][:, 0:4]).all()


@pytest.mark.parametrize("family", ("Swin", "Swinv2"))
def test_swin(family):
    config = getattr(hf, f"{family}Config")(
        image_size=32, patch_size=2, embed_dim=8, depths=[2, 2], num_heads=[2, 4], window_size=4
    )
    recording = run(getattr(hf, f"{family}Model")(config), torch.randn(2, 3, 32, 32))
    traces = recording.traces
    assert [trace.shape for trace in traces] == [(32, 2, 16, 16)] * 2 + [(8, 4, 16, 16)] * 2
    assert [trace.tokens.item_name(6) for trace in traces] == [
        "window (1, 2) of image 0",
        "shifted window (1, 2) of image 0",
        "window (1, 0) of image 1",
        "shifted window (1, 0) of image 1",
    ]
    assert any(
        "its 32 items are shifted windows of 16 tokens: item 0 is shifted window (0, 0)" in note for note in recording.notes
    )


def test_the_windowed_encoder_of_sam():
    config = hf.SamVisionConfig(
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        image_size=96,
        patch_size=16,
        window_size=4,
        mlp_dim=16,
        global_attn_indexes=[1],
        output_channels=8,
    )
    windowed, whole = run(hf.SamVisionModel(config), torch.randn(2, 3, 96, 96)).traces
    assert (windowed.shape, whole.shape) == ((8, 2, 16, 16), (2, 2, 36, 36))
    assert windowed.tokens.item_name(6) == "window (1, 0) of image 1" and whole.tokens.item_name(1) == "batch item 1"


def test_steps_of_generate_are_of_one_sequence():
    model = hf.LlamaForCausalLM(hf.LlamaConfig(**SMALL, num_key_value_heads=1, eos_token_id=None, pad_token_id=0)).eval()
    with torch.no_grad(), mha_viz.record(model, tokens=[list("abcdefgh")]) as recording:
        model.generate(torch.randint(4, 80, (1, 6)), max_new_tokens=3, do_sample=False)
    assert [trace.query_tokens[0] for trace in recording.traces] == [tuple("abcdef"), ("g",), ("h",)]
    assert [trace.step for trace in recording.traces] == [0, 1, 2]
