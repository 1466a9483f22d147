"""Files that are written whole or not at all, and folders that are tried before work begins whose outcome they are to hold."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from mha_viz.core.rules import Wrong


@contextmanager
def whole_file(path: str | os.PathLike[str], argument: str = "out") -> Iterator[Path]:
    """The path to write to in place of ``path``, whose file it becomes when the block has ended.

    Nothing half-written is ever found under the name itself.

    Raises Wrong for ``argument`` where it cannot be written: a folder that is not there, one that is full, or a name that is a folder's.
    """
    from safetensors import SafetensorError

    temporary = Path(f"{path}.part")
    try:
        yield temporary
        temporary.replace(path)
    except (OSError, SafetensorError) as error:
        raise _cannot(argument, path, error) from None
    finally:
        with suppress(OSError):
            temporary.unlink()


def check_folder(path: str | os.PathLike[str], argument: str = "out") -> None:
    """Make the folder ``path`` where it is not there; raises Wrong for ``argument`` where no file can be written into it."""
    try:
        Path(path).mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path) as file:
            file.write(bytes(4096))
    except OSError as error:
        raise _cannot(argument, path, error) from None


def _cannot(argument: str, path: str | os.PathLike[str], error: Exception) -> Wrong:
    return Wrong(argument, str(path), f"cannot be written: {getattr(error, 'strerror', None) or error}.")
