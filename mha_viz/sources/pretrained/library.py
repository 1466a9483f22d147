"""The library that runs the models, imported when it is first asked for: it takes seconds, and not everybody has it."""

import gc
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, Literal, Protocol, TypeAlias, overload

from mha_viz.core.rules import Wrong
from mha_viz.settings.start import INSTALLED

NumbersOf: TypeAlias = Literal["input_ids", "token_type_ids", "attention_mask", "special_tokens_mask"]


class FromFolder(Protocol):
    """A class of the library that reads a folder: AutoConfig, AutoModel, AutoTokenizer."""

    def from_pretrained(self, folder: Path, **options: object) -> Any: ...


class Config(Protocol):
    """What every model's configuration has; what only some have is asked for with ``getattr``."""

    is_encoder_decoder: bool


class TokenizedText(Protocol):
    """What a fast tokenizer makes of one text, or of a pair of texts."""

    @overload
    def __getitem__(self, key: Literal["offset_mapping"]) -> list[tuple[int, int]]: ...
    @overload
    def __getitem__(self, key: NumbersOf) -> list[int]: ...
    def __contains__(self, key: object) -> bool: ...
    def tokens(self) -> list[str]: ...
    def word_ids(self) -> list[int | None]: ...
    def sequence_ids(self) -> list[int | None]: ...


class Backend(Protocol):
    """The tokenizer beneath a fast one."""

    @property
    def decoder(self) -> object: ...


class Tokenizer(Protocol):
    """A fast tokenizer."""

    is_fast: bool
    pad_token: str | None
    pad_token_id: int | None
    eos_token_id: int | None
    model_max_length: int
    added_tokens_encoder: dict[str, int]
    backend_tokenizer: Backend

    def __call__(self, *texts: str, return_offsets_mapping: bool, return_special_tokens_mask: bool) -> TokenizedText: ...
    def __len__(self) -> int: ...
    def num_special_tokens_to_add(self, pair: bool) -> int: ...


INSTALL = 'pip install "mha-viz[models]"' if INSTALLED else "pip install -r requirements-models.txt"


@cache
def transformers() -> ModuleType:
    """The module, without its advice on the server's terminal. Raises Wrong where it is not installed."""
    try:
        import transformers
    except ImportError as error:
        raise Wrong("name", error.name, f"is needed to run pretrained models and is not installed: {INSTALL}.") from None
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    module: ModuleType = transformers
    return module


@cache
def warm_up() -> None:
    """Import what pretrained models need and take it out of the garbage collector's walk, once per process.

    Raises Wrong where it is not installed.
    """
    library = transformers()
    library.AutoConfig, library.AutoModel, library.AutoTokenizer  # noqa: B018 (imported when they are first named)
    gc.collect()
    gc.freeze()
