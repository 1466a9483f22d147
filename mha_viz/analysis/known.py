"""What has to be known of a call so that its layer can be run again: its weights, and what went in."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mha_viz.core.trace import Trace


ALONE = "The attention weights alone are known here, and nothing can be computed again from them."
PROJECTED = "What went into the layer and its input projections are not known here: only q, k and what follows from them."
OFF = "A head is off in this recording: what is left of it is no multi-head attention."


def why_not_run(trace: Trace) -> str | None:
    """Why the layer of this Trace cannot be run again, as a sentence; None where it can."""
    if trace.off:
        return OFF
    if trace.layer is not None and trace.batch is not None:
        return None
    return PROJECTED if trace.has("q", "k") else ALONE


def why_not_alone(trace: Trace) -> str | None:
    """Why the layer of this Trace cannot be run on tokens that read each other, as a sentence; None where it can."""
    crossed = trace.batch is not None and trace.batch.key is not None
    return why_not_run(trace) or (
        "Its keys are a sequence of their own, and tokens that read each other are needed." if crossed else None
    )
