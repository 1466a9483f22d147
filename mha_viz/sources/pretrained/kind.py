"""Pretrained models as a kind of source."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mha_viz.sources.base import NOT_GENERATED, Kind, Source, digest
from mha_viz.sources.pretrained.load import folder_of, load
from mha_viz.sources.pretrained.run import pretrained
from mha_viz.sources.pretrained.settings import Pretrained

if TYPE_CHECKING:
    from pathlib import Path

    from mha_viz.sources.pretrained.library import Tokenizer


class Reading(Kind[Pretrained]):
    """Models that others have trained, reading a person's text."""

    name = "pretrained"
    title = "pretrained model"
    settings = Pretrained

    def called(self, settings: Pretrained) -> str:
        return settings.name

    def open(self, settings: Pretrained) -> Source:
        recording = pretrained(settings)
        return Source(self.called(settings), recording.traces, settings, tuple(recording.notes))

    def versions(self, settings: Pretrained) -> dict[str, str]:
        loaded, folder = load(settings.name), folder_of(settings.name)
        files = sorted(path for pattern in ("*.safetensors", "*.gguf", "*.bin") for path in folder.glob(pattern))
        hashes = ", ".join(f"{path.name} sha256 {digest(path)}" for path in files)
        generation = getattr(loaded.model, "generation_config", None)
        return {
            "model": f"{settings.name}: {type(loaded.model).__name__}, float32, eager attention; {hashes}",
            "tokenizer": tokenizer_told(loaded.tokenizer, folder / "tokenizer.json"),
            "generation": NOT_GENERATED if generation is None else str(generation.to_diff_dict()),
        }


def tokenizer_told(tokenizer: Tokenizer | None, vocabulary: Path) -> str:
    """Which tokenizer it is, with the digest of its ``vocabulary`` where it has that file."""
    if tokenizer is None:
        return "none: tokens are numbers"
    kept = f", tokenizer.json sha256 {digest(vocabulary)}" if vocabulary.is_file() else ""
    return f"{type(tokenizer).__name__}, {len(tokenizer)} tokens{kept}"


PRETRAINED = Reading()
