"""Small models with random weights, a family each, and tokenizers whose whole vocabulary can be read here."""

import string

import torch
import transformers
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
PIECES = ("the", "un", "##believ", "##able", "fox", "##es", "jump", "don", "'", "t", ".", "?", "so", "it")
MERGES = (("t", "h"), ("th", "e"), ("Ġ", "the"), ("o", "x"), ("f", "ox"), ("Ġ", "fox"))
SENTENCE_MERGES = (("▁", "t"), ("h", "e"), ("▁t", "he"), ("o", "x"), ("▁", "f"), ("▁f", "ox"))
POSITIONS = 24

WIDE = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "max_position_embeddings": POSITIONS,
}
STRONG = {"initializer_range": 0.4}  # so that weights are far from even
FAMILIES = {  # family → (its model, configuration, tokenizer)
    "bert": ("BertModel", WIDE | STRONG, "pieces"),
    "albert": ("AlbertModel", WIDE | STRONG | {"embedding_size": 16}, "pieces"),
    "roberta": ("RobertaModel", WIDE | STRONG | {"max_position_embeddings": POSITIONS + 2, "pad_token_id": 1}, "bytes"),
    "deberta": ("DebertaV2Model", WIDE | STRONG | {"relative_attention": True, "pos_att_type": ["p2c", "c2p"]}, "pieces"),
    "gpt2": ("GPT2Model", STRONG | {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": POSITIONS}, "bytes"),
    "llama": ("LlamaModel", WIDE | STRONG | {"num_key_value_heads": 2}, "sentence"),
    "mistral": ("MistralModel", WIDE | STRONG | {"num_key_value_heads": 2, "sliding_window": 4}, "sentence"),
    "gemma2": ("Gemma2Model", WIDE | STRONG | {"num_key_value_heads": 2, "head_dim": 8}, "sentence"),
    "bloom": ("BloomModel", STRONG | {"hidden_size": 32, "n_layer": 2, "n_head": 4}, "bytes"),
    "falcon": ("FalconModel", WIDE | STRONG | {"alibi": True}, "bytes"),
    "t5": (
        "T5Model",
        {"d_model": 32, "d_kv": 8, "d_ff": 64, "num_layers": 2, "num_heads": 4, "initializer_factor": 2.0},
        "pieces",
    ),
    "funnel": ("FunnelModel", {"block_sizes": [1, 1], "d_model": 32, "n_head": 4, "d_head": 8, "d_inner": 64}, "pieces"),
    "mamba": ("MambaModel", {"hidden_size": 32, "num_hidden_layers": 2}, "bytes"),
}


def save(family, folder):
    """Write the model of this family and its tokenizer to ``folder``; the same numbers each time."""
    kind, options, tokenizer = FAMILIES[family]
    made = TOKENIZERS[tokenizer]()
    config = getattr(transformers, kind).config_class(vocab_size=len(made), **options)
    torch.manual_seed(0)
    model = getattr(transformers, kind)(config)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() == 1:
                parameter.add_(0.1 * torch.randn(parameter.shape))  # biases begin as zeros
    model.save_pretrained(folder)
    made.save_pretrained(folder)
    return folder


def pieces():
    """WordPiece between [CLS] and [SEP], in lower case, as BERT has it."""
    vocabulary = {token: i for i, token in enumerate((*SPECIAL, *PIECES, *string.ascii_lowercase))}
    made = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    made.normalizer = normalizers.BertNormalizer()
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    made.decoder = decoders.WordPiece()
    ends = [("[CLS]", 2), ("[SEP]", 3)]
    made.post_processor = processors.TemplateProcessing("[CLS] $A [SEP]", "[CLS] $A [SEP] $B:1 [SEP]:1", ends)
    names = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]", "mask_token": "[MASK]"}
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=made, model_input_names=["input_ids", "token_type_ids", "attention_mask"], **names
    )


def in_bytes():
    """Byte-level BPE, as GPT-2 has it: nothing is added, and there is no padding token."""
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    made = Tokenizer(models.BPE({token: i for i, token in enumerate([*letters, *map("".join, MERGES)])}, list(MERGES)))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    return transformers.PreTrainedTokenizerFast(tokenizer_object=made, eos_token="<|endoftext|>")


def sentence():
    """SentencePiece's BPE after <s>, as Llama has it: spaces are ▁, and no word is cut off before the merges."""
    vocabulary = [
        "<unk>",
        "<s>",
        "</s>",
        *(f"<0x{byte:02X}>" for byte in range(256)),
        "▁",
        *string.ascii_letters,
        ".",
        "?",
        "'",
    ]
    vocabulary += [token for token in map("".join, SENTENCE_MERGES)]
    made = Tokenizer(
        models.BPE(
            {token: i for i, token in enumerate(vocabulary)}, list(SENTENCE_MERGES), unk_token="<unk>", byte_fallback=True
        )
    )
    made.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    made.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    made.post_processor = processors.TemplateProcessing("<s> $A", "<s> $A <s>:1 $B:1", [("<s>", 1)])
    return transformers.PreTrainedTokenizerFast(tokenizer_object=made, bos_token="<s>", eos_token="</s>", unk_token="<unk>")


TOKENIZERS = {"pieces": pieces, "bytes": in_bytes, "sentence": sentence}
