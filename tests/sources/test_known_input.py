"""What is read beside a file of weights, and names of files and axes."""

import numpy as np
import pytest

from mha_viz.core.rules import Wrong
from mha_viz.sources.axes import letters_of
from mha_viz.sources.files.kind import Opened
from mha_viz.sources.files.known import read_input
from mha_viz.sources.source import source


def saved(tmp_path, **arrays):
    np.savez(tmp_path / "known.npz", **arrays)
    return read_input("known.npz", (tmp_path / "known.npz").read_bytes())


def test_arrays_are_told_by_their_names(tmp_path):
    query, output = saved(tmp_path, query=np.ones((2, 3)), output=np.zeros((2, 4)))
    assert (query.shape, output.shape) == ((2, 3), (2, 4))


def test_one_array_is_the_query(tmp_path):
    query, output = saved(tmp_path, x=np.ones((2, 3)))
    assert query.shape == (2, 3) and output is None


def test_several_arrays_of_other_names_are_refused(tmp_path):
    with pytest.raises(Wrong, match="holds x, y: which is the input cannot be told"):
        saved(tmp_path, x=np.ones(2), y=np.ones(2))


def test_a_file_without_arrays_is_refused():
    with pytest.raises(Wrong):
        read_input("known.json", b"[1]")


def test_a_file_is_named_by_text_and_a_name_opens_nothing():
    assert Opened(file="map.npy").file == "map.npy"
    with pytest.raises(Wrong) as refused:
        Opened(file=3)
    assert refused.value.nearest == ({"file": ""},)
    with pytest.raises(Wrong, match="is not open here"):
        source(Opened(file="map.npy"))


def test_axes_are_spelled_with_or_without_spaces():
    assert letters_of("NHLS", (1, 2, 3, 4)) == letters_of("N H L S", (1, 2, 3, 4)) == ("N", "H", "L", "S")
    for axes in ("NHL", "NNLS", "NHLX", 4):
        with pytest.raises(Wrong, match="must name each of the 4 axes"):
            letters_of(axes, (1, 2, 3, 4))
