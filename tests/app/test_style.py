"""Each rule of the app's style is about something that a page draws: a key that was renamed takes its look along."""

import ast
import re
from pathlib import Path

import mha_viz
from mha_viz.sources.base import SOURCES

HERE = Path(mha_viz.__file__).parent


def keys():
    """The keys of containers, rooms and components, and the fields of sources, whose widgets have theirs."""
    found = {name for kind in SOURCES.values() for name in kind.settings.__dataclass_fields__}
    for path in (*HERE.glob("app/**/*.py"), *HERE.glob("components/*.py")):
        for call in (node for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, ast.Call)):
            name = getattr(call.func, "attr", getattr(call.func, "id", ""))
            found |= {word.value.value for word in call.keywords if word.arg == "key" and isinstance(word.value, ast.Constant)}
            if name == "rooms":
                found |= {f"room_{one.value}" for one in call.args if isinstance(one, ast.Constant)}
    return found


def test_every_key_of_the_style_is_there():
    styled = set(re.findall(r"\.st-key-(\w+)", (HERE / "app/style.css").read_text("utf-8")))
    assert styled and styled <= keys(), styled - keys()
