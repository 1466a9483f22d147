"""What editors and type checkers see of the package is what there is."""

import ast
import inspect
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest

import mha_viz as mv
from mha_viz.core.batch import Batch
from mha_viz.core.call import Call
from mha_viz.core.intervention import Intervention
from mha_viz.export.figure import Figure
from mha_viz.export.notebook import LOOKS
from mha_viz.views import VIEWS

PACKAGE = Path(mv.__file__).parent
STUB = ast.parse((PACKAGE / "__init__.pyi").read_text())
SCRIPT = """
import numpy as np
import torch

import mha_viz as mv

layer = mv.Layer.random(embed_dim=8, num_heads=2)
batch = mv.Batch(torch.zeros(1, 3, 8), key_padding_mask=[[False, False, True]], query_tokens=[["a", "b", "c"]])
trace = mv.attend(layer, batch)
reveal_type(mv.attend)
reveal_type(trace)
reveal_type(trace.weights)
reveal_type(trace.mask_bias)
reveal_type(batch.query)
reveal_type(batch.query_tokens)
reveal_type(layer.weights)
reveal_type(mv.heads)
reveal_type(mv.difference)
reveal_type(mv.synthetic)
reveal_type(mv.load("run.safetensors").traces)
reveal_type(mv.decode(layer, batch).steps)
reveal_type(mv.changed(trace, mv.Intervention(off={1: "zero"})))
reveal_type([found.largest for found in mv.pooled(trace, shape=(4, 4))])
reveal_type(mv.Settings().padding)
reveal_type(mv.View().order)
mv.pair(trace, head=1, theme="dark", scale="log")
mv.lines(np.zeros((1, 3, 3)), ["a", "b", "c"])
"""
MISTAKES = {
    'mv.View(order="size")': "arg-type",
    'mv.attend(mv.Layer.random(8, 2), mv.Batch([[[0.0] * 8]]), engine="jax")': "arg-type",
    "mv.Layer.random(8)": "call-arg",
    'mv.heads([[1.0]], colour="ink")': "call-arg",
    "mv.attention": "attr-defined",
}


def declared():
    """name → the module that the stub imports it from, None where it is declared in the stub itself."""
    found = {}
    for node in STUB.body:
        if isinstance(node, ast.ImportFrom):
            found |= {alias.asname: node.module for alias in node.names if alias.asname}
        elif isinstance(node, ast.AnnAssign) and not node.target.id.startswith("_"):
            found[node.target.id] = None
    return found


def class_of(name):
    return next(node for node in STUB.body if isinstance(node, ast.ClassDef) and node.name == name)


def checked(tmp_path, text):
    """What mypy says of a user's script."""
    script = tmp_path / "script.py"
    script.write_text(text)
    config = ("--config-file", PACKAGE.parent / "pyproject.toml")
    command = [sys.executable, "-m", "mypy", *config, script]
    return subprocess.run(command, capture_output=True, text=True, cwd=PACKAGE.parent).stdout


def test_the_stub_declares_what_the_package_holds():
    assert sorted(declared()) == sorted(mv.__all__)
    homes = {name: home for name, home in declared().items() if home is not None}
    assert homes == mv._HOMES


def test_the_stub_knows_which_pictures_take_two():
    kinds = {node.target.id: node.annotation.id for node in STUB.body if isinstance(node, ast.AnnAssign)}
    for view in VIEWS.values():
        if view.public:
            assert kinds[view.name] == ("_Comparison" if view.two else "_Picture")


def test_the_stub_has_the_options_of_pictures():
    options = [node.target.id for node in class_of("_How").body if isinstance(node, ast.AnnAssign)]
    assert set(options) == {*LOOKS, *(name for view in VIEWS.values() if view.public for name in view.reads)}
    taken = {field.name for kind in (mv.View, Figure) for field in fields(kind)}
    assert set(options) <= taken


@pytest.mark.parametrize(("declared", "name"), [("_Picture", "heads"), ("_Comparison", "difference")])
def test_the_stub_has_the_arguments_of_pictures(declared, name):
    call = class_of(declared).body[0].args
    names = [argument.arg for argument in (*call.args[1:], *call.kwonlyargs, call.kwarg)]
    defaults = [ast.literal_eval(default) for default in (*call.defaults, *call.kw_defaults)]
    there = inspect.signature(getattr(mv, name)).parameters.values()
    assert names == [parameter.name for parameter in there]
    assert defaults == [parameter.default for parameter in there if parameter.default is not parameter.empty]


@pytest.mark.parametrize("kind", [Batch, Call, Intervention])
def test_what_is_made_is_declared_as_its_fields_are(kind):
    """Where more kinds of values are taken than are kept, a constructor is written out for type checkers."""
    tree = ast.parse(inspect.getsource(kind)).body[0]
    (block,) = (node for node in tree.body if isinstance(node, ast.If))
    call = block.body[-1].args
    assert [argument.arg for argument in call.args[1:]] == [field.name for field in fields(kind)]
    known = [ast.literal_eval(default) for default in call.defaults]
    assert known == [parameter.default for parameter in inspect.signature(kind).parameters.values()][-len(known) :]


def test_editors_know_what_a_script_gets(tmp_path):
    said = checked(tmp_path, SCRIPT)
    assert "error" not in said, said
    revealed = [line.partition("Revealed type is ")[2] for line in said.splitlines() if "Revealed type" in line]
    assert len(revealed) == SCRIPT.count("reveal_type(")
    assert not [text for text in revealed if text.strip('"') == "Any"]
    assert "mha_viz.core.trace.Trace" in revealed[1] and "ndarray" in revealed[2] and "None" in revealed[3]


def test_mistakes_are_seen_before_a_script_runs(tmp_path):
    said = checked(tmp_path, "import mha_viz as mv\n\n" + "\n".join(MISTAKES))
    for number, (line, code) in enumerate(MISTAKES.items(), 3):
        assert f"script.py:{number}: error: " in said and f"[{code}]" in said, (line, said)
