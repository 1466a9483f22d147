"""What a document may ask for: each value by its rule, sizes on paper and on screen, and the file that lists all figures."""

import pytest

from mha_viz.core.rules import Wrong
from mha_viz.export.figure import Figure, figure_of, read_figures, specification
from mha_viz.export.make import spec_of


@pytest.mark.parametrize(
    ("values", "drawn"),
    [
        ({}, 1104),
        ({"width": "800"}, 800),  # px
        ({"width": 800}, 800),
        (
            {"width": "160 mm"},
            round(160 / 25.4 * 96 * 14 / (8 * 96 / 72)),
        ),  # 605 px of 10.67 px text, as many as 794 px of 14 px text
        ({"width": "6.3in", "font_size": "9 pt"}, round(6.3 * 96 * 14 / 12)),
        ({"width": "1104 px", "font_size": "28 px"}, 552),
    ],
)
def test_a_figure_is_drawn_so_wide_that_its_text_has_the_size_asked_for(values, drawn):
    assert Figure(**values).drawn_width == drawn


def test_the_ending_names_the_format():
    assert Figure(out="a/b.PDF").format == "pdf"
    with pytest.raises(Wrong, match=r"format = 'gif'.*png, svg, pdf"):
        Figure(out="a.gif")


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"view": "heatmap"}, "must be one of page, heads"),
        ({"heads": "2,five"}, '"mean" among them'),
        ({"heads": "-1"}, "numbers of heads"),
        ({"heads": ""}, "numbers of heads"),
        ({"limits": "0.5,0.1"}, "the lower first"),
        ({"theme": "sepia"}, "light, dark, print"),
        ({"width": "wide"}, "must be a length in px or mm or in"),
        ({"width": "16 cm"}, "must be a length"),
        ({"width": "0 px"}, "must be a length"),
        ({"width": "40 mm"}, "320 to 3840.*Nearest right: width = '64.6 mm'"),
        ({"font_size": "8 em"}, "length in pt or px"),
        ({"scale": 3}, "one of 1, 2, 4"),
        ({"limits": 5}, "must be two numbers"),
        ({"address": 5}, "must be an address"),
        ({"layer": -1}, "0 or more|from 0"),
        ({"title": "no"}, "true or false"),
        ({"code": "jax"}, "torch, numpy, pytest"),
        ({"out": ""}, "must be a text"),
        ({"settings": "a.json", "recording": "b.npz"}, "one of them"),
        ({"out": "a.json", "font_size": "9 pt"}, "json is in px"),
        ({"colour": "red"}, "is no setting"),
        ({"head": 3}, "is heads meant"),
    ],
)
def test_what_breaks_a_rule_is_named(values, said):
    with pytest.raises(Wrong, match=said):
        figure_of(values)


def test_heads_are_numbers_and_the_mean_each_once():
    assert Figure(heads="2, 5,mean,2").heads == (2, 5, "mean") == figure_of({"heads": [2, 5, "mean"]}).heads


def batch(tmp_path, text):
    (tmp_path / "figures.toml").write_text(text)
    return read_figures(tmp_path / "figures.toml")


def test_a_document_lists_its_figures(tmp_path):
    one, two = batch(
        tmp_path,
        """
        [defaults]
        width = "160 mm"
        limits = [0, 0.5]

        [[figure]]
        out = "one.svg"
        address = "?causal=1"

        [[figure]]
        out = "pictures/two.png"
        recording = "run.safetensors"
        view = "pair"
        heads = [2, "mean"]
        width = "84 mm"
        """,
    )
    assert (one.width, one.limits, one.address) == ((160.0, "mm"), (0.0, 0.5), "?causal=1")
    assert two.heads == (2, "mean") and two.width == (84.0, "mm")
    assert (two.recording, two.out) == ("run.safetensors", "pictures/two.png")
    seen = two.named("docs")
    assert (seen.recording, seen.out, seen.against) == ("docs/run.safetensors", "docs/pictures/two.png", None)
    assert (
        Figure(against="a.npz").named("docs").against == "docs/a.npz"
        and Figure(against="?seed=8").named("docs").against == "?seed=8"
    )
    assert specification(one) == {"address": "?causal=1", "limits": (0.0, 0.5), "width": (160.0, "mm")}


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("[[figure]", "must be TOML"),
        ("", r"has no \[\[figure\]\]"),
        ("[figure]\nout = 'a.svg'", r"has no \[\[figure\]\]"),
        ("[default]\n[[figure]]", "has default"),
        ("defaults = 3\n[[figure]]\nout = 'a.svg'", "defaults. that are none"),
        ("figure = [1]", r"has no \[\[figure\]\]"),
        ("[[figure]]\nout = 'a.svg'\n[[figure]]\nout = 'a.svg'", "figure 2 of figures.toml.*earlier figure"),
        ("[[figure]]\nout = 'a.svg'\nviews = 'pair'", "figure 1 of figures.toml.*is view meant"),
    ],
)
def test_a_list_that_is_none_is_told_where(tmp_path, content, said):
    with pytest.raises(Wrong, match=said):
        batch(tmp_path, content)


def test_a_list_that_is_not_there(tmp_path):
    with pytest.raises(Wrong, match="cannot be read: No such file"):
        read_figures(tmp_path / "gone.toml")


@pytest.mark.parametrize("view", ["heads", "lines"])
@pytest.mark.parametrize("heads", ["2,5,mean", "5,2", "mean,2,5", "5,mean,2"])
def test_heads_are_drawn_in_the_order_in_which_they_are_named(view, heads):
    spec = spec_of(Figure(view=view, heads=heads))
    meta = spec["layout"]["meta"]
    drawn = [one["head"] for one in meta["panels" if view == "lines" else "tiles"]]
    assert drawn == [None if name == "mean" else int(name) for name in heads.split(",")]
