"""Whatever is asked of a figure changes the file that comes out, or is refused: nothing is ignored in silence."""

import itertools

import numpy as np
import pytest

import mha_viz as mv
from mha_viz.__main__ import main
from mha_viz.core.rules import Wrong
from mha_viz.export import notebook
from mha_viz.export.figure import FORMATS, PICTURES, Figure, figure_of, read_figures
from mha_viz.export.make import made, shown
from mha_viz.export.words import caption
from mha_viz.settings.display import OWNERS
from mha_viz.views import DIFFERENCE, PAGE, VIEWS
from mha_viz.views.base import PARTS, OfResults

SMALL = "?embed_dim=8&num_heads=4&batch_size=2&seq_len=5&padding=1&causal=1&step=softmax&token=4"
MODEL = "?source=trained&model=look-both-ways-2&batch_size=1"
ASKED = {
    "heads": "2",
    "limits": (0.0, 0.3),
    "against": f"{SMALL}&seed=9",
    "theme": "dark",
    "transparent": True,
    "font": "monospace",
    "font_size": "20 px",
    "width": "700 px",
    "scale": 4,
    "code": "numpy",
    "layer": 1,
} | dict.fromkeys(PARTS, False)


OF_ATTENTION = [view.name for view in VIEWS.values() if not isinstance(view, OfResults) and not view.pictured]


class Drawing:
    """A browser that says what it would draw."""

    def picture(self, *asked, **how):
        return repr((asked, how)).encode()


def made_of(view, ending, **asked):
    address = MODEL if view == "curves" else SMALL
    given = {"view": view, "address": address} | ({"against": f"{SMALL}&seed=8"} if view == "difference" else {}) | asked
    out = f"a.{ending}" if view != "window" else "a.png"
    return made(figure_of(given | {"out": out}), Drawing())[0]


# Every view as the figure itself, and in every format one of each kind: of maps, of one number, of two Traces.
@pytest.mark.slow
@pytest.mark.parametrize(
    ("view", "ending"),
    sorted(
        {(view, "json") for view in {*OF_ATTENTION} - {"window"}}
        | {*itertools.product(("page", "terms", "difference"), FORMATS)}
    ),
)
def test_what_is_asked_changes_the_file_or_is_refused(view, ending):
    try:
        plain = made_of(view, ending)
    except Wrong as wrong:  # a view that a kind of file cannot hold
        assert "does nothing to" in str(wrong) or "has no weights of its own" in str(wrong)
        assert ending in ("csv", "py", "npz", "safetensors")
        return
    for name, value in ASKED.items():
        try:
            assert made_of(view, ending, **{name: value}) != plain, f"{name} = {value!r} is ignored by {view} as {ending}"
        except Wrong:
            continue


def test_a_figure_that_does_not_compare_takes_no_a():
    for view in {*OF_ATTENTION} - {"page", "difference"}:
        with pytest.raises(
            Wrong, match=r"against = .*does nothing to the view .*page and difference heed it.*view = 'difference'"
        ):
            figure_of({"view": view, "against": "?seed=8"})
    for view in ("page", "difference"):
        assert shown(figure_of({"view": view, "address": SMALL, "against": f"{SMALL}&seed=8"})).a is not None


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"view": "heads", "out": "a.npz"}, "view = 'heads': does nothing to a file of npz"),
        ({"view": "decode", "out": "a.csv"}, "has no weights of its own that csv could hold"),
        ({"scale": 4, "out": "a.svg"}, "scale = 4: does nothing to a file of svg: png heeds it.*'a.png'"),
        ({"code": "numpy", "out": "a.svg"}, "code = 'numpy': does nothing to a file of svg: py heeds it"),
        ({"theme": "dark", "out": "a.csv"}, "theme = 'dark': does nothing to a file of csv"),
        ({"title": False, "out": "a.md"}, "title = False: does nothing to a file of md"),
        ({"limits": "0,1", "view": "terms"}, "limits = '0.0,1.0': does nothing to the view terms"),
        ({"heads": "2,5", "view": "head"}, "must name one head for the view head.*heads = '2'"),
        ({"heads": "2,5,mean", "view": "pair"}, "must name one head for the view pair"),
        ({"heads": "mean", "view": "pair"}, "must name one head for the view pair"),
        ({"heads": "2,mean", "view": "difference"}, "names the average, which the view difference does not draw"),
        ({"heads": "2", "view": "average"}, "does nothing to the view average"),
        ({"heads": "2", "view": "layers"}, "heads = '2': does nothing to the view layers"),
        ({"layer": 1, "view": "curves"}, "is not asked of curves"),
        ({"font": "serif", "view": "screen", "out": "a.png"}, "does nothing to the page itself"),
        ({"theme": "print", "view": "screen", "out": "a.png"}, "does nothing to the page itself"),
        ({"width": "160 mm", "view": "screen", "out": "a.png"}, "must be in px for the page itself"),
    ],
)
def test_what_would_be_ignored_is_named_with_what_heeds_it(asked, said):
    with pytest.raises(Wrong, match=said):
        figure_of(asked)


def test_what_a_document_says_of_all_its_figures_need_not_concern_each(tmp_path):
    (tmp_path / "figures.toml").write_text(
        '[defaults]\nwidth = "160 mm"\nscale = 4\nlimits = [0, 0.5]\n[[figure]]\nout = "a.csv"\n[[figure]]\nout = "a.svg"\nview = "terms"\n'
    )
    assert [figure.out for figure in read_figures(tmp_path / "figures.toml")] == ["a.csv", "a.svg"]
    (tmp_path / "figures.toml").write_text('[[figure]]\nout = "a.csv"\ntheme = "dark"\n')
    with pytest.raises(Wrong, match=r"figure 1 of figures.toml. does nothing to a file of csv"):
        read_figures(tmp_path / "figures.toml")


def test_an_address_beside_a_file_says_how_it_is_shown_and_not_what(tmp_path, capsys):
    path = str(tmp_path / "run.safetensors")
    mv.Recording((mv.synthetic(mv.Settings(embed_dim=8, num_heads=2, seq_len=4, batch_size=1, padding=())),)).save(path)
    assert main(["export", "--recording", path, "--address", "?seed=9&head=1", "--out", str(tmp_path / "a.json")]) == 2
    assert "says seed, and stands beside a file" in capsys.readouterr().err
    address = "?source=file&file=run.safetensors&head=1"
    assert main(["export", "--recording", path, "--address", address, "--out", str(tmp_path / "a.json")]) == 0


@pytest.mark.parametrize(
    ("asked", "a"),
    [
        ({"address": "?seed=8", "against": "?seed=9"}, "A: ?seed=9. "),
        ({"address": "?seed=8", "against": "?"}, "A: as the app starts. "),
        ({"address": "?seed=8", "against": "http://localhost:8501/explore?seed=9&head=3"}, "A: ?seed=9. "),
        (
            {"address": MODEL, "against": "models?model=look-both-ways-1&batch_size=1"},
            "A: ?model=look-both-ways-1&batch_size=1. ",
        ),
        ({"address": "?seed=8", "against": MODEL}, f"A: {MODEL}. "),
        (
            {"address": "lessons?lesson=slice"},
            "A and B are the same layer. In B, 1 was added to one of the 128 numbers of token 5",
        ),
    ],
)
def test_a_caption_says_what_a_is_wherever_it_comes_from(asked, a):
    assert a in caption(shown(Figure(**asked, view="difference")), DIFFERENCE)


def test_a_caption_names_the_file_that_is_a(tmp_path):
    settings = {"embed_dim": 8, "num_heads": 2, "seq_len": 4, "batch_size": 1, "padding": ()}
    for name, seeds in (("one", (1,)), ("two", (1, 2))):
        mv.Recording(tuple(mv.synthetic(mv.Settings(**settings, seed=seed)) for seed in seeds)).save(tmp_path / f"{name}.npz")
    address = "?embed_dim=8&num_heads=2&seq_len=4&batch_size=1&padding="
    for name, said in (("one", "A: one.npz. "), ("two", "A: two.npz, ")):
        what = shown(Figure(address=address, against=str(tmp_path / f"{name}.npz"), view="difference"))
        assert said in caption(what, DIFFERENCE)
    pinned = shown(Figure(recording=str(tmp_path / "two.npz"), address="?layer=1&pinned=layer%3D0", view="difference"))
    assert "A: ?layer=0 of the same file. " in caption(pinned, DIFFERENCE)


def test_programs_compute_the_a_that_a_figure_is_against():
    program = made(figure_of({"out": "a.py", "address": SMALL, "against": f"{SMALL}&seed=8", "view": "difference"}), None)[
        0
    ].decode()
    assert "a_weights = compute_a()" in program and "seed=8" in program


@pytest.mark.parametrize(
    ("heads", "address", "drawn", "said"),
    [
        ("2,5", "?arrangement=all", [2, 5], "Attention of heads 2 and 5,"),
        ("2,5,mean", "?arrangement=all", [2, 5, None], "Attention of heads 2 and 5 and the average of all 8 heads,"),
        ("5,mean,2", "?arrangement=all", [5, None, 2], "Attention of heads 5 and 2 and the average of all 8 heads,"),
        ("mean", "?", [None], "Attention of the average of all 8 heads,"),
        ("2,5", "?", [2, 5, None], "Attention of heads 2 and 5 and the average of all 8 heads,"),
    ],
)
def test_the_page_draws_the_heads_that_its_caption_names(heads, address, drawn, said):
    what = shown(Figure(address=address, heads=heads))
    spec, _ = PAGE.drawn(what)
    found = [tile["head"] for tile in spec["layout"]["meta"]["tiles"]]
    assert list(dict.fromkeys(found)) == drawn
    assert caption(what, PAGE).startswith(said)


MAPS = np.full((4, 5, 5), 0.2, np.float32)
OTHER = {
    "item": 1,
    "heads": [1],
    "order": "index",
    "head": 2,
    "cell": (4, 1),
    "arrangement": "all",
    "picture": "lines",
    "weighting": "norms",
    "pooling": "mean",
    "rows": (1, 3),
    "columns": (1, 3),
    "scale": "log",
    "limits": (0, 0.5),
    "colors": "viridis",
    "what_if": "0:1=zero",
    "pinned": "seed=8",
    "opened": True,
    "divisors": True,
    "verbatim": True,
    "pitfall": "scale",
    "symptom": "NaN",
    "step": "softmax",
    "language": "numpy",
    "together": True,
    "token": 2,
    "prompt": 2,
    "kv_heads": 2,
    "cache_dtype": "float64",
    "cache_layers": 2,
    "cache_length": 64,
}


@pytest.mark.parametrize("picture", ["heads", "head", "average", "pair", "lines", "layers", "page"])
def test_a_field_changes_the_picture_or_is_refused(picture):
    """The fields of a Display by name, each of another value than the usual."""
    assert set(OTHER) == set(OWNERS) - {"layer"}
    trace = mv.synthetic(mv.Settings(embed_dim=8, num_heads=4, batch_size=2, seq_len=5, padding=(1,), causal=True))
    draw = getattr(notebook, picture)
    plain = draw(trace).to_json()
    for name, value in OTHER.items():
        try:
            assert draw(trace, **{name: value}).to_json() != plain, f"{picture} ignores {name}"
        except Wrong as wrong:
            assert name in str(wrong)


def test_a_field_that_a_picture_does_not_have_is_named():
    for name, value, said in (
        ("symptom", "NaN", "does nothing to the picture heads, which heeds item, order, head"),
        ("arrangement", "one", "page and lines do"),
        ("what_if", "0:1=zero", "pass mv.changed"),
        ("rows", (1, 3), "too long to be drawn whole"),
    ):
        with pytest.raises(Wrong, match=said):
            mv.heads(MAPS, **{name: value})


def test_the_table_names_formats_that_there_are():
    assert set(PICTURES) <= set(FORMATS)
