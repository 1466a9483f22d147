"""Folders as models: which names mean one, and which of them the app may read for somebody who names them."""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mha_viz.core.rules import Wrong
from mha_viz.settings.environment import MODELS_FOLDERS

HUB = re.compile(r"(?!.*(--|\.\.))[A-Za-z0-9_]([\w.-]*\w)?(/[A-Za-z0-9_]([\w.-]*\w)?)?", re.ASCII)  # a name on the hub
LONGEST = 96  # letters of such a name


def names_folder(name: str) -> bool:
    """Whether a model's ``name`` means a folder: whatever cannot be a name on the hub. A folder here is ``./model``, never ``model``."""
    return len(name) > LONGEST or not HUB.fullmatch(name)


def served_folder(name: str) -> Path | None:
    """The folder of this ``name`` at or below one that whoever serves the app has named, None where there is none.

    Nothing outside of these is looked at: a name that leads out of them is compared as text.
    """
    for allowed in filter(None, os.environ.get(MODELS_FOLDERS, "").split(os.pathsep)):
        folder = os.path.abspath(os.path.join(allowed, name))
        if (folder == allowed or folder.startswith(os.path.join(allowed, ""))) and is_folder(folder):
            return Path(folder)
    return None


def own_folder(name: str) -> Path | None:
    """The folder of this ``name``, wherever it is; None where there is none."""
    folder = os.path.abspath(os.path.expanduser(name))
    return Path(folder) if is_folder(folder) else None


def is_folder(path: str | Path) -> bool:
    try:
        return Path(path).is_dir()
    except OSError:  # too long a name, or a folder above it that may not be looked into
        return False


@contextmanager
def reading(name: str) -> Iterator[None]:
    """What the system refuses while the folder of the model ``name`` is read is told as a Wrong."""
    try:
        yield
    except OSError as error:
        raise Wrong("name", name, f"cannot be read: {error.strerror or error}.") from error
