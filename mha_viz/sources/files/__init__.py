"""Files that a person has: ``look`` says what one holds and what has to be asked, ``open_found`` makes a Recording of it.

What weights do not say, ``fits`` finds where an output is known for an input.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mha_viz.core.rules import Shape, Wrong
from mha_viz.recording import Recording
from mha_viz.sources.files.found import Found, Question, TokenLists
from mha_viz.sources.files.known import Fit, agreeing, fits, read_input
from mha_viz.sources.files.maps import look_at_maps
from mha_viz.sources.files.read import Data, read_file, shape_of
from mha_viz.sources.files.runs import Run
from mha_viz.sources.files.texts import look_at_text
from mha_viz.sources.files.weights import Weights, look_at_weights

if TYPE_CHECKING:
    from mha_viz.core.arrays import Numbers

__all__ = ["Fit", "Found", "Question", "agreeing", "fits", "look", "open_found", "read_input"]


def look(name: str, data: Data) -> Found:
    """What a file holds, as a Found; nothing is drawn or computed yet, and no code in the file is ever run.

    ``data`` are its bytes, or its path: what is on a disk is read as far as it is needed. Its kind is told by its content: a
    recording, weights of attention layers (``.safetensors``, ``.pt``), attention maps (those and ``.npy``, ``.npz``), or token
    lists (text, JSON). Raises Wrong for any other file, and where one is damaged, empty or larger than ``mha_viz.stored.stored.LARGEST``.
    """
    content = read_file(name, data)
    name = str(name).encode("utf-8", "replace").decode()  # a file's name may hold bytes that no page can show
    if isinstance(content, Recording):
        return Found(name, Run(content))
    if isinstance(content, str):
        return Found(name, look_at_text(name, content))
    weights = look_at_weights(name, content)
    if weights is not None:
        return Found(name, weights)
    if any(key.endswith((".weight", ".bias")) for key in content):
        held = ", ".join(f"{key} {shape_of(stored)}" for key, stored in list(content.items())[:4])
        rule = (
            f"holds {held}{', …' if len(content) > 4 else ''}, and no attention layer by a name that is known: in_proj_weight, q_proj and "
            "k_proj and v_proj, query and key and value, c_attn, query_key_value."
        )
        raise Wrong("file", name, rule)
    return Found(name, look_at_maps(name, content))


def open_found(
    found: Found,
    *,
    tokens: TokenLists | None = None,
    key_tokens: TokenLists | None = None,
    query: Numbers | None = None,
    **answers: object,
) -> Recording:
    """The Recording in a file that was looked at. ``answers`` answer ``found.questions`` by their ``field``; the rest is guessed.

    ``tokens`` and ``key_tokens`` name the rows and the columns, one sequence of texts per batch item; ``key_tokens`` are the
    ``tokens`` where queries and keys are equally many. Weights read them as random vectors, the same for the same text, or
    ``query`` [N, L, E] or [L, E]; without either, random tokens. Raises Wrong for an answer that does not fit, for a question that
    is neither answered nor guessed, and for tokens of another number.
    """
    checked = found.answered(**answers)
    if isinstance(found.content, Weights):
        return found.content.open(found.name, checked, tokens, key_tokens, query)
    if query is not None:
        raise Wrong("query", Shape(np.shape(query)), f"is read by weights; this file holds {found.kind}.")
    return found.content.open(found.name, checked, tokens, key_tokens)
