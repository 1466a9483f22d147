"""A file is written whole or not at all."""

import pytest

from mha_viz.core.rules import Wrong
from mha_viz.core.whole_file import check_folder, whole_file


def test_a_file_is_there_when_it_is_whole(tmp_path):
    path = tmp_path / "map.bin"
    path.write_bytes(b"before")
    with whole_file(path) as part:
        part.write_bytes(b"after")
        assert path.read_bytes() == b"before"
    assert path.read_bytes() == b"after" and [*tmp_path.iterdir()] == [path]


def test_what_ends_half_way_leaves_the_file_as_it_was(tmp_path):
    path = tmp_path / "map.bin"
    path.write_bytes(b"before")
    with pytest.raises(KeyError), whole_file(path) as part:
        part.write_bytes(b"half")
        raise KeyError
    assert path.read_bytes() == b"before" and [*tmp_path.iterdir()] == [path]


@pytest.mark.parametrize(("argument", "named"), [((), "out"), (("--out",), "--out")])
def test_where_nothing_can_be_written_the_argument_is_named(tmp_path, argument, named):
    path = tmp_path / "none" / "map.bin"
    with pytest.raises(Wrong) as refused, whole_file(path, *argument) as part:
        part.write_bytes(b"")
    assert (refused.value.argument, refused.value.value) == (named, str(path))
    assert refused.value.rule == "cannot be written: No such file or directory."


def test_an_error_without_a_reason_of_the_system_is_quoted(tmp_path):
    with pytest.raises(Wrong, match=r"cannot be written: no room\."), whole_file(tmp_path / "map.bin"):
        raise OSError("no room")


def test_a_folder_is_made_with_those_above_it(tmp_path):
    folder = tmp_path / "a" / "b"
    for _ in range(2):  # a folder that is there is right as well
        check_folder(folder)
        assert folder.is_dir() and not [*folder.iterdir()]


def test_a_folder_that_cannot_be_is_refused_before_work_begins(tmp_path):
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(Wrong) as refused:
        check_folder(tmp_path / "file" / "folder", "--folder")
    assert (refused.value.argument, refused.value.value) == ("--folder", str(tmp_path / "file" / "folder"))
    assert refused.value.rule == "cannot be written: Not a directory."


def test_a_folder_is_tried_with_a_file():
    with pytest.raises(Wrong, match="cannot be written"):
        check_folder("/proc")  # which is there, and where nobody may write
