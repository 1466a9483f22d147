"""An editor, ``help`` and a notebook see what each picture can be told: as its view heeds it, no more and no less."""

from inspect import Parameter, signature
from typing import get_type_hints

import pytest

from mha_viz.export import keywords, notebook
from mha_viz.export.figure import Figure
from mha_viz.settings import View
from mha_viz.views import VIEWS
from mha_viz.views.base import NO_HEADS

PUBLIC = [view.name for view in VIEWS.values() if view.public]
OF_ALL = {"attention", "a", "b", "tokens", "key_tokens", "axes", "layer", "view", "width"}
TYPED = {"page": keywords.OfPage, "lines": keywords.OfLines, "average": keywords.OfAverage, "layers": keywords.OfLayers}


def typed(name):
    return TYPED.get(name, keywords.OfMaps)


@pytest.mark.parametrize("name", PUBLIC)
def test_keywords_are_those_that_the_view_heeds(name):
    view = VIEWS[name]
    looks = set(keywords.LOOKS) - ({"heads"} if view.naming == NO_HEADS else set())
    assert get_type_hints(typed(name)).keys() == set(view.reads) | looks
    assert signature(vars(notebook)[name]).parameters.keys() - OF_ALL == set(view.reads) | looks


@pytest.mark.parametrize("name", PUBLIC)
def test_keywords_are_told_to_checkers_and_to_notebooks_alike(name):
    """What a checker reads, ``Unpack`` of a TypedDict, is what the signature spells out, with the defaults of View and Figure."""
    draw = vars(notebook)[name]
    assert draw.__annotations__["how"] == f"Unpack[{typed(name).__name__}]"
    for key, told in signature(draw).parameters.items():
        if key not in OF_ALL:
            assert told.kind is Parameter.KEYWORD_ONLY and told.annotation == get_type_hints(typed(name))[key]
            assert told.default == getattr(Figure() if key in keywords.LOOKS else View(), key)


@pytest.mark.parametrize("kind", [keywords.OfPage, keywords.OfLayers], ids=lambda kind: kind.__name__)
def test_choices_are_those_of_the_settings(kind):
    hints, fields = get_type_hints(kind), get_type_hints(Figure) | get_type_hints(View)
    loose = {"cell", "limits", "rows", "columns", "heads"}  # these may be lists too
    assert {name: told for name, told in hints.items() if name not in loose} == {
        name: fields[name] for name in hints.keys() - loose
    }
