"""The library that runs the models, imported when it is first asked for: it takes seconds, and not everybody has it."""

import gc
from functools import cache

from mha_viz.core.rules import Wrong

INSTALL = "pip install -r requirements-models.txt"


@cache
def transformers():
    """The module, without its advice on the server's terminal. Raises Wrong where it is not installed."""
    try:
        import transformers
    except ImportError as error:
        raise Wrong("name", error.name, f"is needed to run pretrained models and is not installed: {INSTALL}.") from None
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    return transformers


@cache
def warm_up():
    """Import what pretrained models need and take it out of the garbage collector's walk, once per process.

    Raises Wrong where it is not installed.
    """
    library = transformers()
    library.AutoConfig, library.AutoModel, library.AutoTokenizer  # noqa: B018 (imported when they are first named)
    gc.collect()
    gc.freeze()
