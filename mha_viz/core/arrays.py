"""Arrays on their way in and out of the core: whatever a person has comes in as NumPy, and leaves as NumPy that nobody can change."""

import numpy as np

from mha_viz.core.rules import Wrong


def as_array(argument, value):
    """``value``, an array, nested list or torch tensor, as a NumPy array of bool or floating type (bfloat16 as float32)."""
    if hasattr(value, "detach"):  # a torch tensor, told without importing torch
        value = value.detach().cpu()
        value = (value.float() if str(value.dtype) == "torch.bfloat16" else value).numpy()
    array = np.asarray(value)
    if array.dtype != bool and not np.issubdtype(array.dtype, np.floating):
        raise Wrong(
            argument,
            f"an array of {array.dtype}",
            "must be of bool or floating type; convert it, so that what is meant is said.",
        )
    return array


def read_only(array):
    """A view of ``array`` that cannot be written to."""
    view = array.view()
    view.flags.writeable = False
    return view
