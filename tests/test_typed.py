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

PACKAGE = Path(mv.__file__).parent
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
    """name → the module that the stub imports it from."""
    stub = ast.parse((PACKAGE / "__init__.pyi").read_text())
    return {alias.asname: node.module for node in stub.body if isinstance(node, ast.ImportFrom) for alias in node.names}


def checked(tmp_path, text):
    """What mypy says of a user's script."""
    script = tmp_path / "script.py"
    script.write_text(text)
    config = ("--config-file", PACKAGE.parent / "pyproject.toml")
    command = [sys.executable, "-m", "mypy", *config, script]
    return subprocess.run(command, capture_output=True, text=True, cwd=PACKAGE.parent).stdout


def test_the_stub_imports_what_the_package_holds():
    assert declared() == {name: mv._HOMES.get(name, mv._PICTURES) for name in mv.__all__}


@pytest.mark.parametrize("kind", [Batch, Call, Intervention])
def test_what_is_made_is_declared_as_its_fields_are(kind):
    """Where more kinds of values are taken than are kept, a constructor is written out for type checkers."""
    tree = ast.parse(inspect.getsource(kind)).body[0]
    (block,) = (node for node in tree.body if isinstance(node, ast.If))
    call = block.body[-1].args
    assert [argument.arg for argument in call.args[1:]] == [field.name for field in fields(kind)]
    known = [ast.literal_eval(default) for default in call.defaults]
    assert known == [parameter.default for parameter in inspect.signature(kind).parameters.values()][-len(known) :]


@pytest.mark.slow
def test_editors_know_what_a_script_gets(tmp_path):
    said = checked(tmp_path, SCRIPT)
    assert "error" not in said, said
    revealed = [line.partition("Revealed type is ")[2] for line in said.splitlines() if "Revealed type" in line]
    assert len(revealed) == SCRIPT.count("reveal_type(")
    assert not [text for text in revealed if text.strip('"') == "Any"]
    assert "mha_viz.core.trace.Trace" in revealed[1] and "ndarray" in revealed[2] and "None" in revealed[3]


@pytest.mark.slow
def test_mistakes_are_seen_before_a_script_runs(tmp_path):
    said = checked(tmp_path, "import mha_viz as mv\n\n" + "\n".join(MISTAKES))
    for number, (line, code) in enumerate(MISTAKES.items(), 3):
        assert f"script.py:{number}: error: " in said and f"[{code}]" in said, (line, said)
