"""CONTRIBUTING.md names every file that a walk touches: each walk is taken in a copy of the project, with these files and no others."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.walks import WALKS, take

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "CONTRIBUTING.md").read_text()
SEEN = """
from pathlib import Path

import numpy as np
from streamlit.testing.v1 import AppTest

import mha_viz as mv
from mha_viz.__main__ import main
from mha_viz.export.code import program

assert Path(mv.__file__).parents[1] == Path.cwd()


def page(name, **address):
    at = AppTest.from_file("app.py", default_timeout=60).run()
    at.switch_page(f"mha_viz/app/pages/{name}.py")
    at.query_params = address
    at.run()
    assert not at.exception, at.exception
    return at


def widget(at, key):
    return next(one for kind in ("selectbox", "checkbox", "text_input") for one in at.get(kind) if one.key == key)


def said(*command):
    assert main([*command, "--out", "said.md"]) == 0
    return Path("said.md").read_text().replace("\\\\", "")


at = page("explore")
assert "even maps" in widget(at, "view_source").options
assert widget(at, "batch_size").label == "sequences N"
widget(at, "backwards").check().run()
assert at.query_params == {"backwards": "1"}
assert "Glossary" in [link.proto.label for link in at.get("page_link")]

at = page("explore", source="even", length="6", sees="past")
assert widget(at, "length").value == "6"
assert any("Each query attends alike" in caption.value for caption in at.caption)
assert any("query" in text.value for text in page("glossary").markdown)

even = said("export", "--address", "?source=even&length=6&sees=past")
assert "even maps of 6" in even and "only the past" in even and "source=even&length=6&sees=past" in even
assert main(["validate", "--address", "?source=even&length=6"]) == 0
assert "the average of all heads for a wall" in said("export", "--address", "?seed=8", "--view", "poster")
assert mv.poster(mv.synthetic()).data

settings = mv.Settings(backwards=True, causal=True)
trace, forwards = mv.synthetic(settings), mv.synthetic(mv.Settings(causal=True))
assert np.array_equal(trace.batch.query, forwards.batch.query[:, ::-1])
names = {}
exec(program(settings, "torch"), names)
assert np.array_equal(names["weights"].detach().numpy(), trace.weights)
print("all is seen")
"""


def files_of(walk):
    """The files that CONTRIBUTING.md names for a walk, in its numbered lines."""
    section = TEXT.split(f"### {walk}")[1].split("\n##")[0]
    return re.findall(r"^\d\. `([^`]+)`", section, re.MULTILINE)


@pytest.mark.parametrize(("walk", "most"), [*zip(WALKS, (3, 2, 2, 5, 1), strict=True)])
def test_a_walk_names_every_file_that_it_touches(walk, most):
    named = files_of(walk)
    changed = list(WALKS[walk])
    assert [name for name in named if not name.startswith("tests/")] == changed
    assert len(named) <= most


def test_every_path_that_is_named_is_there():
    new = {path for walk in WALKS.values() for path, change in walk.items() if isinstance(change, str)}
    named = set(re.findall(r"`((?:mha_viz|tests|docs)[\w/.]*)`", TEXT))
    assert named
    assert [path for path in sorted(named - new) if not (ROOT / path).exists()] == []


def test_the_walks_end_where_they_say(tmp_path):
    """In a copy in which all of them were taken: the sidebar, links, addresses, commands, captions and programs."""
    shutil.copytree(ROOT / "mha_viz", tmp_path / "mha_viz", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "app.py", tmp_path)
    shutil.copytree(ROOT / ".streamlit", tmp_path / ".streamlit", dirs_exist_ok=True)
    for walk in WALKS:
        take(walk, tmp_path)
    done = subprocess.run([sys.executable, "-c", SEEN], capture_output=True, text=True, cwd=tmp_path)
    assert done.stdout.endswith("all is seen\n"), done.stdout + done.stderr
