"""Arrays are read as they are, or refused with a right type."""

import numpy as np
import pytest

from mha_viz.core.arrays import as_array, as_mask, dtype_of
from mha_viz.core.rules import Wrong


@pytest.mark.parametrize(
    ("read", "right", "near"), [(as_array, "float32", (bool, int, "uint8")), (as_mask, "bool", (int, "uint8"))]
)
def test_a_type_that_can_be_meant_comes_with_the_right_one(read, right, near):
    for kind in near:
        with pytest.raises(Wrong) as refused:
            read("mask", np.ones(2, kind))
        assert (refused.value.argument, refused.value.nearest) == ("mask", ({"mask": np.dtype(right)},))
    for strange in (np.ones(2, complex), np.array(["a"])):
        with pytest.raises(Wrong) as refused:
            read("mask", strange)
        assert (refused.value.argument, refused.value.nearest) == ("mask", ())


@pytest.mark.parametrize("read", [as_array, as_mask])
def test_what_is_no_array_is_refused_by_its_name(read):
    with pytest.raises(Wrong) as refused:
        read("mask", None)
    assert refused.value.argument == "mask"


def test_a_type_is_told_by_its_name():
    assert dtype_of(np.zeros(2, "float32")) == "float32"
    with pytest.raises(Wrong) as refused:
        dtype_of(np.zeros(2, int))
    assert (refused.value.argument, refused.value.value) == ("dtype", "int64")
    assert {"dtype": "float64"} in refused.value.nearest
