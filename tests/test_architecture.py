"""Imports run one way, and the parts that need no screen know of none."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "mha_viz"
LEVEL = {
    "core": 0,
    "settings": 1,
    "stored": 1,
    "recording": 2,
    "analysis": 2,
    "sources": 3,
    "studies": 4,
    "figures": 5,
    "views": 6,
    "export": 7,
    "components": 7,
    "app": 8,
    "commands": 8,
}


def room(path):
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported(path):
    """The full names of modules that a file imports, wherever in it."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports name their module in full"
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def modules():
    return [path for path in sorted(PACKAGE.rglob("*.py")) if room(path) in LEVEL]


def test_every_module_has_a_room():
    strays = {room(path) for path in PACKAGE.rglob("*.py")} - LEVEL.keys()
    assert strays <= {"__init__", "__main__"}


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_run_one_way(path):
    own = room(path)
    for name in imported(path):
        parts = name.split(".")
        if parts[0] == "mha_viz" and len(parts) > 1 and parts[1] in LEVEL:
            assert parts[1] == own or LEVEL[parts[1]] < LEVEL[own], f"{path.name} ({own}) imports {name}"


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_only_the_front_knows_streamlit_and_plotly(path):
    outside = {name.split(".")[0] for name in imported(path)}
    assert "streamlit" not in outside or room(path) in ("app", "components")
    assert "plotly" not in outside or room(path) in ("figures", "export")


def test_importing_the_package_is_cheap():
    code = "import sys, mha_viz, mha_viz.settings; print([m for m in ('torch', 'plotly', 'streamlit') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=PACKAGE.parent).stdout == "[]\n"
