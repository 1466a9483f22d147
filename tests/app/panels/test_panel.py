"""A kind of source that no panel was written for: its fields are set in the sidebar of every page of a layer, whatever their types."""

import zlib
from dataclasses import dataclass

import numpy as np
import pytest

from mha_viz.app.parts.messages import spelled_change
from mha_viz.app.session import OF_LAYER
from mha_viz.app.state import Form
from mha_viz.core.maps import trace_of_maps
from mha_viz.core.rules import Wrong, fraction
from mha_viz.settings.rules import Ruled, choice, counts, flag, number, optional, ruled, several, typed_words
from mha_viz.sources.base import SOURCES, Kind, Source
from tests.app.screen import errors, figure, held, opened, press, set_to, to_page, widgets
from tests.app.test_controls import defaults, wire

SHAPES = ("flat", "peaked", "striped", "checked", "random")


def shares(argument, value):
    try:
        low, high = (fraction(argument, one) for one in value)
    except (TypeError, ValueError):
        raise Wrong(argument, value, 'must be two shares, as in "0.1, 0.9".', [{argument: (0.1, 0.9)}]) from None
    return low, high


def anything(argument, value):
    return value


def words(argument, value):
    if not all(isinstance(word, str) and word.isalpha() for word in value):
        raise Wrong(argument, value, "must be words, with commas between.", [{argument: ("one", "two")}])
    return tuple(value)


@dataclass(frozen=True)
class Every(Ruled):
    """A field of every type."""

    whole: int = ruled(4, number(2, 64))
    part: float = ruled(0.25, fraction)
    tick: bool = ruled(False, flag)
    few: str = ruled("left", choice("left", "right"))
    many: str = ruled("flat", choice(*SHAPES))
    digits: int = ruled(1, choice(1, 2, 4))
    name: str = ruled("", anything)
    poem: str = ruled("a b", typed_words)
    list: tuple[int, ...] = ruled((1, 2), several(1, 9, (1, 2)))
    ends: tuple[float, float] = ruled((0.1, 0.9), shares)
    names: tuple[str, ...] = ruled(("one", "two"), words)
    counted: tuple[int, ...] = ruled((), counts)
    whole_or_none: int | None = ruled(None, optional(number(1, 8)))
    none_or_whole: int | None = ruled(5, optional(number(1, 8)))
    part_or_none: float | None = ruled(None, optional(fraction))
    tick_or_none: bool | None = ruled(None, optional(flag))
    few_or_none: str | None = ruled(None, optional(choice("left", "right")))
    many_or_none: str | None = ruled(None, optional(choice(*SHAPES)))
    none_or_many: str | None = ruled("flat", optional(choice(*SHAPES)))
    name_or_none: str | None = ruled(None, optional(anything))
    poem_or_none: str | None = ruled(None, optional(typed_words))
    list_or_none: tuple[int, ...] | None = ruled(None, optional(several(1, 9, (1, 2))))
    ends_or_none: tuple[float, float] | None = ruled((0.1, 0.9), optional(shares))


class EveryKind(Kind):
    name = "every"
    title = "a field of every type"
    settings = Every

    def called(self, settings):
        return f"every field, {settings.whole} tokens"

    def open(self, settings):
        rng = np.random.default_rng(zlib.crc32(repr(settings).encode()))  # another picture for any other setting
        weights = rng.dirichlet(np.ones(settings.whole), (1, 2, settings.whole))  # [1, 2, L, L]
        return Source(self.called(settings), (trace_of_maps(np.float32(weights)),), settings)

    def versions(self, settings):
        return {"model": "none: chance", "tokenizer": "none", "generation": "none"}


@pytest.fixture(autouse=True)
def every(monkeypatch):
    monkeypatch.setitem(SOURCES, "every", EveryKind())


def drawn(at):
    return [trace["z"] for trace in figure(at)["data"] if trace["type"] == "heatmap"]


@pytest.mark.parametrize("page", OF_LAYER)
def test_every_page_of_a_layer_offers_it_and_has_a_widget_for_each_field(page):
    at = to_page(opened(), page)
    (choice_of_source,) = (widget for widget in widgets(at) if widget.key == "view_source")
    assert "a field of every type" in choice_of_source.options
    at = set_to(at, "view_source", "every")
    assert not at.exception and not at.error and at.query_params["source"] == "every"
    fields = Every.__dataclass_fields__
    assert fields.keys() <= held(at).keys()
    assert all(defaults(widget) == wire(widget) for widget in widgets(at) if widget.key in fields)
    assert (held(at)["whole"], held(at)["part"], held(at)["tick"], held(at)["poem"]) == (4, 0.25, False, "a b")


SET = [
    ("whole", 6, "6"),
    ("part", 0.5, "0.5"),
    ("tick", True, "1"),
    ("few", "right", "right"),
    ("many", "random", "random"),
    ("digits", 4, "4"),
    ("name", "a name", "a name"),
    ("poem", "a b\nc", "a b\nc"),
    ("list", "4, 3", "3,4"),
    ("ends", "0.125, 0.12345678", "0.125,0.12345678"),
    ("names", "three, four", "three,four"),
    ("counted", "1, 0, 2", "1,0,2"),
    ("whole_or_none", 3, "3"),
    ("none_or_whole", None, ""),
    ("part_or_none", 0.5, "0.5"),
    ("tick_or_none", False, "0"),
    ("few_or_none", "left", "left"),
    ("many_or_none", "peaked", "peaked"),
    ("none_or_many", "—", ""),
    ("name_or_none", "a name", "a name"),
    ("poem_or_none", "a b\nc", "a b\nc"),
    ("list_or_none", "4, 3", "3,4"),
    ("ends_or_none", "", ""),
]
BY_WIDGET = (
    "whole",
    "tick",
    "few",
    "many",
    "name",
    "poem",
    "list",
    "none_or_whole",
    "tick_or_none",
    "few_or_none",
    "none_or_many",
)


@pytest.mark.parametrize(("field", "put", "spelled"), SET)
def test_each_type_goes_through_the_address(field, put, spelled):
    form, again = Form(Every), Form(Every)
    form.put(field, None if put == "—" else put)
    assert form.address() == {field: spelled} and form.settings() != Every()
    assert again.read(form.address()) == []
    assert again.settings() == form.settings()
    form.reset(field)
    assert form.address() == {} and form.settings() == Every()


@pytest.mark.slow
@pytest.mark.parametrize(("field", "put", "spelled"), [one for one in SET if one[0] in BY_WIDGET])
def test_each_field_changes_the_address_and_the_picture_and_comes_back(field, put, spelled):
    at = opened(source="every")
    before, first = drawn(at), held(at)[field]
    at = set_to(at, field, put)
    assert not at.exception and not at.error
    assert at.query_params == {"source": "every", field: spelled}
    assert drawn(at) != before
    again = opened(**at.query_params)
    assert held(again)[field] == (put if field not in ("list", "list_or_none") else "3, 4")
    assert drawn(again) == drawn(at) and not again.warning
    at = set_to(at, field, first)
    assert at.query_params == {"source": "every"} and drawn(at) == before


WRONG = [
    ("whole", 1, "a whole number from 2 to 64", "whole = 2"),
    ("whole", None, "a whole number from 2 to 64", "whole = 4"),
    ("whole", "1,5", "a whole number from 2 to 64", "whole = 2"),
    ("part", 1.5, "a probability, from 0 to 1", "part = 1"),
    ("poem", "", "at least one word", "poem = a b"),
    ("list", "0, 3", "1 or more", "list = 1,3"),
    ("ends", "0.1", "two shares", "ends = 0.1,0.9"),
    ("names", "1, 2", "must be words", "names = one,two"),
    ("counted", "-1", "0 or more", "counted = 0"),
    ("whole_or_none", 9, "from 1 to 8", "whole_or_none = 8"),
    ("part_or_none", -1, "from 0 to 1", "part_or_none = 0"),
    ("list_or_none", "a", "whole numbers", "list_or_none = 1"),
]


@pytest.mark.parametrize(("field", "put", "rule", "offered"), [one for one in WRONG if one[1] is not None])
def test_a_wrong_value_of_each_type_has_its_rule_and_a_right_one_near(field, put, rule, offered):
    form = Form(Every)
    form.put(field, put)
    with pytest.raises(Wrong, match=rule) as caught:
        form.settings()
    right = next(right for right in caught.value.nearest if spelled_change(right).replace("\\", "").startswith(offered))
    form.change(**right)
    assert isinstance(form.settings(), Every)


@pytest.mark.parametrize(
    ("field", "put", "rule", "offered"), [one for one in WRONG if one[:2] in (("whole", None), ("part", 1.5), ("list", "0, 3"))]
)
def test_a_wrong_value_is_told_and_a_button_mends_it(field, put, rule, offered):
    at = opened(source="every", tick="1")
    before = drawn(at)
    at = set_to(at, field, put)
    assert not at.exception and rule in errors(at)[0]
    assert drawn(at) == before and at.query_params["tick"] == "1"  # the last right settings stay
    at = press(at, offered)
    assert not at.exception and not at.error


@pytest.mark.parametrize(
    ("field", "text"), [("whole", "1"), ("many", "round"), ("part_or_none", "much"), ("few_or_none", "up")]
)
def test_a_wrong_value_of_an_address_falls_back_alone_and_is_told(field, text):
    at = opened(source="every", tick="1", **{field: text})
    assert not at.exception and held(at)["tick"] is True
    assert f"{field} = {text}" in at.warning[0].value.replace("\\", "")
