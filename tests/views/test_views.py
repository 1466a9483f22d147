"""A view is one thing: added in one place, it is known to commands, captions, notebooks, the page and the README."""

import ast
import importlib
import json
import pkgutil
import re
from pathlib import Path

import pytest

import mha_viz as mv
from mha_viz import views
from mha_viz.__main__ import main
from mha_viz.app.parts.save import OnScreen
from mha_viz.core.rules import Wrong
from mha_viz.export import notebook
from mha_viz.export.figure import Figure
from mha_viz.export.make import drawn, shown, spec_of
from mha_viz.figures.serial import to_json
from mha_viz.settings.display import OWNERS
from mha_viz.views import VIEWS
from mha_viz.views.base import NO_HEADS, PARTS, OfAttention, OfResults, ViewKind

README = (Path(__file__).parents[2] / "README.md").read_text()
SMALL = "?embed_dim=8&num_heads=4&batch_size=2&seq_len=5&padding=1&causal=1&step=softmax&token=4"
MODEL = "models?model=look-both-ways-2&batch_size=1"
PIECES = ("name", "public", "parts", "reads", "naming", "needs", "whole", "draw", "describe", "caption")


class Sum(OfAttention):
    """How much weight each key gets of all queries together, on average over heads."""

    name = "sum"
    public = True
    parts = ("title",)
    reads = ("item",)
    naming = NO_HEADS
    needs = ()
    whole = True

    def draw(self, shown, theme="light", width=1104, parts=None):
        sums = shown.trace.mean_weights[shown.item].sum(axis=0)  # [S]
        title = {"title": {"text": "sums"}} if parts is None or parts.title else {}
        layout = {"width": width, "height": 300, "paper_bgcolor": "#fff", "font": {"color": "#000"}, **title}
        return {"data": [{"type": "bar", "y": sums}], "layout": layout}

    def describe(self, shown):
        return f"What {shown.trace.shape[3]} keys get."

    def caption(self, shown):
        return "Weight by key"


def names_told(text, before, after):
    """The names that a text has in backticks between these two."""
    told = text[text.index(before) : text.index(after)]
    return set(re.findall(r"`(?:mv\.)?([a-z]+)`", told))


def not_in_readme():
    """Views that the README does not list, or lists without there being one, as options and as functions."""
    options = names_told(README, "`--view` is", "`--no-title`")
    functions = names_told(README, "`mv.heads`, `head`", "take the fields of")
    return options ^ VIEWS.keys() | functions ^ {view.name for view in VIEWS.values() if view.public}


@pytest.fixture
def added(monkeypatch):
    view = Sum()
    monkeypatch.setitem(VIEWS, view.name, view)
    yield view
    for module in (mv, notebook):
        vars(module).pop(view.name, None)


def test_the_readme_lists_every_view():
    assert not_in_readme() == set()


def test_a_new_view_is_missed_in_the_readme(added):
    assert not_in_readme() == {"sum"}


def test_a_new_view_is_exported_in_every_format(added, tmp_path, capsys):
    for ending in ("json", "md", "html"):
        assert main(["export", "--address", SMALL, "--view", "sum", "--out", str(tmp_path / f"a.{ending}")]) == 0
    spec = json.loads((tmp_path / "a.json").read_text())
    assert spec["layout"]["width"] == 1104 and spec["data"][0]["type"] == "bar"
    said = (tmp_path / "a.md").read_text()
    assert "Weight by key, batch item 0 of untrained layer, seed 7." in said and said.startswith("![What 5 keys get.]")
    assert main(["export", "--address", SMALL, "--view", "sum", "--out", str(tmp_path / "a.csv")]) == 2
    assert "view = 'sum': has no weights of its own" in capsys.readouterr().err
    with pytest.raises(Wrong, match="has no bar"):
        spec_of(Figure(address=SMALL, view="sum", bar=False))
    assert OnScreen(shown(Figure(address=SMALL)), "sum").parts == ["title"]
    with pytest.raises(SystemExit):
        main(["export", "--help"])
    assert "quality, screen, sum" in " ".join(capsys.readouterr().out.split())


def test_a_new_view_is_a_function_of_a_notebook_where_it_is_public(added):
    trace = mv.synthetic(mv.Settings(embed_dim=8, num_heads=2, batch_size=1, seq_len=4, padding=()))
    figure = mv.sum(trace, title=False)
    assert list(figure.data[0].y) == pytest.approx(trace.mean_weights[0].sum(axis=0)) and figure.layout.title.text is None
    assert mv.sum.__name__ == "sum" and "How much weight each key gets" in mv.sum.__doc__
    assert "sum" in mv.__all__ and "sum" in dir(mv)


def test_a_view_that_is_not_public_is_no_function():
    assert not VIEWS["steps"].public
    with pytest.raises(AttributeError, match="no attribute 'steps'"):
        _ = mv.steps


@pytest.mark.parametrize("piece", PIECES)
def test_a_view_without_one_of_its_pieces_cannot_be_made(piece):
    pieces = {name: vars(Sum)[name] for name in PIECES if name != piece}
    with pytest.raises(TypeError, match=piece):
        type("Unfinished", (OfAttention,), pieces)()


def test_every_view_of_the_folder_is_listed():
    found = set()
    for module in pkgutil.iter_modules(views.__path__, f"{views.__name__}."):
        found |= {one for one in vars(importlib.import_module(module.name)).values() if isinstance(one, ViewKind)}
    assert found == set(VIEWS.values())
    assert all(set(view.parts) <= set(PARTS) and set(view.reads) <= OWNERS.keys() for view in found)


def asked_for_by_name(code):
    """The lines of this code that compare a view's name with a text."""

    def is_view(node):
        return getattr(node, "attr", getattr(node, "id", None)) == "view"

    def is_text(node):
        whole = node.elts if isinstance(node, ast.Tuple | ast.List | ast.Set) else [node]
        return all(isinstance(one, ast.Constant) and isinstance(one.value, str) for one in whole)

    compared = [node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Compare)]
    return [
        node.lineno
        for node in compared
        if any(map(is_view, (sides := [node.left, *node.comparators]))) and any(map(is_text, sides))
    ]


def test_nobody_asks_for_a_view_by_name():
    assert asked_for_by_name('if figure.view == "head":\n    a = 1\nb = view in ("head", "pair")') == [1, 3]
    for path in Path(mv.__file__).parent.rglob("*.py"):
        assert asked_for_by_name(path.read_text()) == [], path


# Each of them


def address_for(view):
    return MODEL if view in (views.CURVES, views.LAYERS) else SMALL


def asked(view, **more):
    """A Figure of this view."""
    if isinstance(view, OfResults):
        return Figure(results="induction", **more)
    against = f"{SMALL}&seed=8" if view.two else None
    return Figure(address=address_for(view), view=view.name, against=against, **more)


DRAWN = [view for view in VIEWS.values() if view not in (views.WINDOW, views.PROFILE)]  # of a long sequence, and of a file


@pytest.mark.parametrize("view", DRAWN, ids=lambda view: view.name)
def test_every_view_is_drawn_as_wide_as_asked_and_told_in_words(view):
    figure = asked(view, width=700)
    spec, alt = drawn(figure, shown(figure))
    assert spec["layout"]["width"] == 700 and spec["data"] and len(alt) > 20


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("view", DRAWN, ids=lambda view: view.name)
def test_each_part_can_be_left_out_where_a_view_has_it_and_only_there(view, part):
    bare = asked(view, **{part: False})
    if part not in view.parts:
        with pytest.raises(Wrong, match=f"has no {part} that could be left out"):
            spec_of(bare)
        return
    assert to_json(spec_of(bare)) != to_json(spec_of(asked(view)))


@pytest.mark.parametrize("view", [view for view in DRAWN if view.parts], ids=lambda view: view.name)
def test_without_all_its_parts_a_view_is_lower(view):
    bare = spec_of(asked(view, **dict.fromkeys(view.parts, False)))
    assert bare["layout"]["height"] != spec_of(asked(view))["layout"]["height"]
    assert not any("attention" in str(note.get("text", "")).lower() for note in bare["layout"].get("annotations", []))


# What each reads of a View

SET = {  # a field of View, and another value of it than the usual, as an address has it
    "item": "1",
    "order": "index",
    "head": "2",
    "cell": "3,1",
    "arrangement": "all",
    "picture": "lines",
    "weighting": "norms",
    "pooling": "mean",
    "rows": "8,20",
    "columns": "8,20",
    "scale": "log",
    "limits": "0,0.5",
    "colors": "viridis",
    "opened": "1",
    "divisors": "1",
    "verbatim": "1",
    "pitfall": "scale",
    "symptom": "NaN",
    "step": "mask",
    "language": "numpy",
    "together": "1",
    "token": "4",
    "prompt": "3",
    "kv_heads": "2",
    "cache_dtype": "float16",
    "cache_layers": "2",
    "cache_length": "64",
}
ELSEWHERE = {"layer", "heads", "what_if", "pinned"}  # what is looked at, which heads are named, and what both are compared with
OF_LONG = {"pooling", "rows", "columns"}
LONG = "?embed_dim=4&num_heads=2&batch_size=1&seq_len=1100&padding=&causal=1&rows=0,1100&columns=0,1100"


def seen(view, address):
    figure = Figure(address=address, view=view.name, against=f"{address}&seed=8" if view.two else None)
    spec, alt = drawn(figure, shown(figure))
    return to_json(spec) + alt


@pytest.mark.parametrize("view", [view for view in DRAWN if not isinstance(view, OfResults)], ids=lambda view: view.name)
def test_a_view_reads_the_fields_that_it_names_and_no_others(view):
    assert SET.keys() | ELSEWHERE == OWNERS.keys()
    address = "models?model=look-both-ways-32&batch_size=2" if view is views.CURVES else SMALL.replace("&token=4", "&seed=10")
    plain = seen(view, address)
    read = {name for name in SET.keys() - OF_LONG if seen(view, f"{address}&{name}={SET[name]}") != plain}
    if view is views.AVERAGE:
        read -= {"order", "head"}  # they move the mark of a cell that nobody chose, and nothing else
    assert read == set(view.reads) - OF_LONG


@pytest.mark.parametrize("view", [view for view in VIEWS.values() if OF_LONG & set(view.reads)], ids=lambda view: view.name)
def test_of_a_long_sequence_a_view_also_reads_which_part_is_in_sight(view, monkeypatch):
    monkeypatch.setattr("mha_viz.core.memory.WHOLE", 2**14)
    usual = LONG.replace("0,1100", "0,200") if view is views.WINDOW else LONG
    plain = seen(view, usual)
    assert {name for name in OF_LONG if seen(view, f"{usual}&{name}={SET[name]}") != plain} == OF_LONG & set(view.reads)
