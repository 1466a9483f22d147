"""What a person has set, right or wrong, without a page: fields, switches, addresses, Back."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mha_viz import Settings, Trained, View, Wrong
from mha_viz.app.session import OF_LAYER, named, unnamed
from mha_viz.app.state import Form, Looking, Place
from mha_viz.settings import Display, to_address
from mha_viz.settings.display import DISPLAYED, OWNERS
from mha_viz.settings.profile import Profile
from mha_viz.settings.settings import TINY
from mha_viz.sources.base import SOURCES
from mha_viz.sources.synthetic import STAND_INS


@pytest.fixture
def looking():
    return Looking()


@pytest.fixture
def form(looking):
    return looking.form


RIGHT = {
    "embed_dim": 64,
    "num_heads": 4,
    "padding": (2, 0, 1),
    "causal": True,
    "window": 3,
    "attn_mask": "01/00",
    "words": "a b\nc",
    "source_len": 5,
    "source_padding": (1,),
    "dropout": 0.3,
    "kdim": 12,
    "seed": 2**53 - 1,
    "batch_first": False,
}


def test_at_first_it_holds_the_defaults(form):
    assert form.settings() == Settings() and form.address() == {}
    assert form.aside == set(STAND_INS)


@pytest.mark.parametrize("name", RIGHT)
def test_a_field_goes_through_the_address_as_it_is(form, name):
    value, whole = RIGHT[name], {}
    if name == "source_padding":
        whole = {"source_len": 5}
    form.change(**whole, **{name: value})
    again = Looking()
    assert again.read(form.address()) == []
    assert again.form.values() == form.values() and again.form.value(name) == form.value(name)
    assert again.form.held() == form.held()


def test_a_switch_puts_aside_and_brings_back_what_was_typed(form):
    form.put("window", "7")
    form.switch(False, "window")
    assert form.settings().window is None and form.raw["window"] == "7" and "window" not in form.address()
    form.switch(True, "window")
    assert form.settings().window == 7


def test_switched_on_and_left_empty_is_wrong_and_not_off(form):
    for empty in ("", None):
        form.put("window", empty)
        with pytest.raises(Wrong, match="window"):
            form.settings()


def test_an_empty_field_without_a_switch_means_none(form):
    form.put("kdim", " ")
    assert form.settings().kdim is None


def test_what_is_emptied_breaks_the_rule_of_its_field(form):
    for empty in ("", None):
        form.put("num_heads", empty)
        with pytest.raises(Wrong, match="num_heads"):
            form.settings()
        assert form.address() == {}


def test_a_wrong_pair_is_spelled_and_a_wrong_value_is_not(form):
    form.put("num_heads", "7")
    form.put("seed", "x")
    assert form.address() == {"num_heads": "7"}
    with pytest.raises(Wrong) as caught:
        form.settings()
    form.put("seed", "3")
    with pytest.raises(Wrong) as caught:
        form.settings()
    form.change(**caught.value.nearest[0])
    assert form.settings().embed_dim % form.settings().num_heads == 0


def test_a_mask_is_typed_in_lines(form):
    form.change(seq_len=2, padding=(), attn_mask="0 1/0 0")
    assert form.raw["attn_mask"] == "0 1\n0 0"
    assert form.settings() == Settings(seq_len=2, padding=(), attn_mask="0 1/0 0")


def test_sources_are_kept_as_they_were_left(looking):
    looking.form.put("embed_dim", "wrong")
    looking.choose("trained")
    looking.form.change(seed=5)
    looking.choose("random")
    assert looking.form.raw["embed_dim"] == "wrong"
    looking.choose("trained")
    assert looking.form.settings() == Trained(seed=5)


def test_another_source_keeps_only_how_colours_are_chosen(looking):
    looking.change(head=3, colors="grey", scale="log", step="softmax", opened=True)
    looking.choose("tiny")
    assert looking.view.head == 3 and looking.display.walk.step == "softmax", "the same settings, and so the same controls"
    looking.choose("trained")
    assert looking.display == Display(View(colors="grey", scale="log"))


def test_the_tiny_case_is_a_source_that_its_own_field_tells(looking):
    looking.choose("tiny")
    assert looking.form.settings() == Settings(case="tiny", **TINY)
    address = looking.address()
    assert "source" not in address and address["case"] == "tiny"
    again = Looking()
    again.read(address)
    assert again.kind is SOURCES["tiny"] and again.form.settings() == looking.form.settings()


@pytest.mark.parametrize("page", OF_LAYER)
@pytest.mark.parametrize("name", [name for name, kind in SOURCES.items() if kind.in_address])
def test_an_address_leads_back_to_its_source(name, page):
    """Also at the former address of models, where a bare one means a shipped model."""
    looking, again = Looking(), Looking()
    looking.choose(name)
    address = unnamed(looking.address(), page)
    assert again.read(named(address, page)) == []
    assert again.kind is looking.kind and again.form.settings() == looking.form.settings()
    assert (address == {}) == (name == (OF_LAYER[page] or "random"))


def test_an_address_of_no_source_falls_back_and_says_so(looking):
    (wrong,) = looking.read({"source": "x", "seed": "3"})
    assert wrong.argument == "source" and looking.kind.name == "random" and looking.form.settings().seed == 3
    wrongs = looking.read({"seed": "x", "nonsense": "1", "head": "-1"})
    assert {wrong.argument for wrong in wrongs} == {"seed", "nonsense", "head"} and looking.form.settings() == Settings()


def test_names_in_an_address_mean_one_thing():
    assert len(OWNERS) == sum(len(kind.__dataclass_fields__) for kind in DISPLAYED)
    for kind in SOURCES.values():
        assert not {*OWNERS, "source"} & set(kind.settings.__dataclass_fields__), kind.name


def test_what_each_page_needs_goes_through_the_address(looking):
    asked = {"head": 2, "step": "mask", "together": True, "token": 4, "prompt": 3, "pitfall": "wrong-scale", "divisors": True}
    looking.change(**asked)
    again = Looking()
    assert again.read(looking.address()) == [] and again.display == looking.display
    assert {name: again.display.values[name] for name in asked} == asked
    with pytest.raises(Wrong, match="prompt"):
        looking.change(head=1, prompt=0)
    assert again.display == looking.display, "nothing is changed where one value breaks its rule"


# The address


class Browser:
    """What a browser shows of a Place: the address that it was told, some steps late."""

    def __init__(self, content):
        self.place = Place(content)
        self.place.arrive({}, False)
        self.history, self.told = [{}], []

    def write(self):
        spelled = self.place.spell()
        if spelled is not None:
            self.told.append(spelled)

    def hear(self):
        self.history += self.told
        self.told = []


def test_a_second_change_before_the_address_of_the_first_is_not_lost(form):
    browser = Browser(form)
    form.put("seed", "1")
    browser.write()
    form.put("embed_dim", "64")
    assert not browser.place.arrive({}, with_change=True), "the browser still shows the address from before"
    browser.write()
    assert not browser.place.arrive({"seed": "1"}, with_change=True)
    assert form.settings() == Settings(seed=1, embed_dim=64)


def test_two_quick_changes_and_then_back_to_the_bare_address():
    """The same machine keeps Profile's fields."""
    form = Form(Profile)
    browser = Browser(form)
    for value in ("64", "32"):
        form.put("embed_dim", value)
        browser.write()
        assert not browser.place.arrive({}, with_change=True)
    assert form.settings().embed_dim == 32
    browser.hear()
    assert not browser.place.arrive({"embed_dim": "32"}, with_change=False)
    assert browser.place.arrive({}, with_change=False), "Back"
    assert form.settings() == Profile()


def test_what_goes_together_of_an_address_is_good(form):
    form.read({"num_heads": "7", "seed": "3", "source_padding": "1"})
    assert form.good == Settings(seed=3)
    form.read({"embed_dim": "130", "causal": "1"})
    assert form.good == Settings(causal=True)
    with pytest.raises(Wrong):
        form.settings()


def test_a_wrong_value_that_no_widget_shows_is_forgotten(form):
    form.put("batch_size", "x")
    form.put("seed", "4")
    form.forget_wrong("batch_size", "seed")
    assert form.settings() == Settings(seed=4)


def test_notes_hold_until_something_is_changed(form):
    place = Place(form)
    place.arrive({"seed": "x"}, False)
    assert place.notes and place.untouched
    form.put("embed_dim", "64")
    assert not place.untouched


def fields_of(kind):
    values = {
        "embed_dim": st.integers(1, 300),
        "num_heads": st.integers(1, 20),
        "seed": st.integers(0, 99),
        "causal": st.booleans(),
        "window": st.none() | st.integers(1, 9),
        "padding": st.lists(st.integers(0, 5), max_size=3).map(tuple),
        "words": st.none() | st.text("ab \n", min_size=1).filter(str.strip),
    }
    return st.fixed_dictionaries({}, optional={name: one for name, one in values.items() if name in kind.__dataclass_fields__})


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(fields_of(Settings))
def test_whatever_is_set_its_address_sets_again(values):
    looking, again = Looking(), Looking()
    looking.form.change(**values)
    address = looking.address()
    again.read(address)
    assert again.address() == address
    try:
        found = looking.form.settings()
    except Wrong:
        return
    assert again.form.settings() == found and address == to_address(**vars(found))
