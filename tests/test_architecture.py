"""Imports run one way, and the parts that need no screen know of none."""

import ast
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

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
APP_LEVEL = {"state": 0, "fields": 2, "parts": 3, "panels": 4, "looked_at": 5, "heads": 6, "pages": 7}
SCRIPTS = PACKAGE.parent / "js" / "src"
SCRIPT_LEVEL = {"pure": 0, "painting": 1, "picture": 1, "page": 2}
BETWEEN = 1  # every other module of the app: what fields, parts and pages are drawn with


def room(path):
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


@cache
def tree(path):
    return ast.parse(path.read_text())


@cache
def imported(path):
    """The full names of modules that a file imports, wherever in it."""
    names = []
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports name their module in full"
            names += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    return names


def modules():
    return [path for path in sorted(PACKAGE.rglob("*.py")) if room(path) in LEVEL]


def test_every_module_has_a_room():
    strays = {room(path) for path in PACKAGE.rglob("*.py")} - LEVEL.keys()
    assert strays <= {"__init__", "__main__"}


def test_imports_run_one_way():
    for path in modules():
        own = room(path)
        for name in imported(path):
            package, other, *_ = [*name.split("."), ""]
            if package == "mha_viz" and other in LEVEL:
                assert other == own or LEVEL[other] < LEVEL[own], f"{path} ({own}) imports {name}"


def test_imports_in_the_app_run_one_way():
    for path in (PACKAGE / "app").rglob("*.py"):
        own = path.relative_to(PACKAGE / "app").parts[0].removesuffix(".py")
        for name in imported(path):
            if name.startswith("mha_viz.app."):
                other = name.split(".")[2]
                assert APP_LEVEL.get(other, BETWEEN) <= APP_LEVEL.get(own, BETWEEN), f"{path} ({own}) imports {name}"
                assert other != "pages", f"{path} imports a page, which runs as it is imported: {name}"


def test_imports_of_scripts_run_one_way():
    for path in SCRIPTS.rglob("*.js"):
        own = path.relative_to(SCRIPTS).parts[0]
        for name in re.findall(r'^(?:import|export)\b[^"]*?from "([^"]+)";$', path.read_text("utf-8"), re.M):
            other = (path.parent / name).resolve()
            assert other.is_file() and other.is_relative_to(SCRIPTS), f"{path.name} imports {name}"
            room = other.relative_to(SCRIPTS).parts[0]
            assert room == own or SCRIPT_LEVEL[room] < SCRIPT_LEVEL[own], f"{path.name} ({own}) imports {name}"


def module_name(path):
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def test_no_imports_go_in_a_circle():
    """Nor those within functions: they are there because torch, plotly and transformers take seconds, and not to hide a circle."""
    paths = {module_name(path): path for path in PACKAGE.rglob("*.py") if path != PACKAGE / "__init__.py"}
    edges = {(name, other) for name, path in paths.items() for other in modules_imported(path, paths) if other != name}
    while edges:
        waiting, awaited = {name for name, _ in edges}, {other for _, other in edges}
        left = {(name, other) for name, other in edges if name in awaited and other in waiting}
        assert left != edges, f"in a circle: {sorted(waiting & awaited)}"
        edges = left


def modules_imported(path, known):
    """The names among those ``known`` that a file imports. ``from package import module`` is of the module, and not of the package.

    What is imported for types alone may go in a circle: nothing runs it.
    """
    for_types = {
        node
        for guard in tree(path).body
        if isinstance(guard, ast.If) and isinstance(guard.test, ast.Name) and guard.test.id == "TYPE_CHECKING"
        for node in ast.walk(guard)
    }
    for node in (node for node in ast.walk(tree(path)) if node not in for_types):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in known)
        elif isinstance(node, ast.ImportFrom):
            named = {f"{node.module}.{alias.name}" for alias in node.names}
            yield from named & known.keys() or {node.module} & known.keys()


def test_only_the_front_knows_streamlit_and_plotly():
    for path in modules():
        outside = {name.split(".")[0] for name in imported(path)}
        assert "streamlit" not in outside or room(path) in ("app", "components"), path
        assert "plotly" not in outside or room(path) in ("figures", "export"), path


def test_importing_the_package_is_cheap():
    code = "import sys, mha_viz, mha_viz.settings; print([m for m in ('torch', 'plotly', 'streamlit') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=PACKAGE.parent).stdout == "[]\n"
