"""Programs to paste, executed as they stand: they leave behind what is on screen, whatever is set, changed, chosen and looked at."""

import re
from dataclasses import replace
from urllib.parse import quote

import numpy as np
import pytest

from mha_viz import Settings, synthetic
from mha_viz.__main__ import main
from mha_viz.analysis import shown_trace
from mha_viz.core.attend import trace_of_call
from mha_viz.core.call import Call
from mha_viz.core.intervention import Intervention, changed
from mha_viz.core.maps import trace_of_maps
from mha_viz.core.mask import Mask
from mha_viz.core.rules import Wrong
from mha_viz.export.figure import Figure
from mha_viz.export.make import shown as of_address
from mha_viz.export.paste import PROGRAMS
from mha_viz.recording import Recording
from mha_viz.settings import View
from mha_viz.sources.base import Source, changed_by, layer_of
from mha_viz.sources.source import pinned_trace, source
from mha_viz.sources.trained import Trained
from mha_viz.views.shown import Shown
from tests.export.programs import CASES, SMALL, array, by_case, by_language, executed, ignored, same

WHAT_IF = {
    "a key hidden": "0:keys=1,3",
    "sharper": "0:temperature=0.5",
    "off: zero": "0:1=zero",
    "off: mean": "0:0=mean",
    "off: uniform": "0:2=uniform",
    "all at once": "0:0=uniform 0:1=mean 0:2=zero 0:keys=0 0:temperature=3.0",
}
CHANGED = {
    "small": SMALL,
    "one item without a key": SMALL | {"padding": (5,)},
    "nothing hidden": SMALL | {"padding": ()},
    "float mask": CASES["float mask, causal"],
    "extra keys": CASES["extra keys, added mask"],
    "cross": CASES["cross"] | {"padding": (1,)},
    "one other width": CASES["one other width"] | {"bias": False},
    "sequence first": CASES["sequence first"],
}


def shown(settings, view=None, heads=None):
    """What the page shows of these settings."""
    view = view or View()
    of = changed_by(source(settings), view)
    return Shown(of, shown_trace(layer_of(of, view.layer), view), view, heads)


def left(what, language):
    """What the program of a Shown leaves behind."""
    return executed(PROGRAMS[language](what))[0]


def same_as_shown(names, what):
    """To 1e-6 of the largest number: weights, average, the heads in the order on screen, and the output where that is known."""
    trace, c = what.trace, what.choice
    same(names["weights"], trace.weights)
    same(names["average"], trace.mean_weights)
    same(names["shown_heads"], trace.weights[c.item, list(c.order)])
    if trace.plain.has("output"):
        same(names["output"], trace.plain.output)


@ignored
@by_language
@by_case
def test_a_program_leaves_behind_what_is_shown(case, language):
    what = shown(Settings(**CASES[case]))
    same_as_shown(left(what, language), what)


@by_language
@pytest.mark.parametrize("what_if", WHAT_IF)
def test_what_is_changed_in_the_layer(what_if, language):
    what = shown(Settings(**SMALL), View(what_if=WHAT_IF[what_if]))
    same_as_shown(left(what, language), what)


@ignored
@by_language
@pytest.mark.parametrize("weighting", ["weights", "norms"])
@pytest.mark.parametrize("what_if", ["off: uniform", "all at once"])
@pytest.mark.parametrize("settings", CHANGED)
def test_what_is_changed_in_layers_of_every_kind(settings, what_if, weighting, language):
    what = shown(Settings(**CHANGED[settings]), View(what_if=WHAT_IF[what_if], weighting=weighting))
    same_as_shown(left(what, language), what)


@by_language
def test_a_program_leaves_the_softmax_behind_where_that_is_shown(language):
    what = shown(Settings(**SMALL, training=True, dropout=0.5), View(weighting="softmax"))
    assert what.trace.quantity == "softmax weight"
    same_as_shown(left(what, language), what)


@by_language
def test_dropout_stays_missing_by_norms(language):
    what = shown(Settings(**SMALL, training=True, dropout=0.5), View(weighting="norms"))
    same_as_shown(left(what, language), what)


@by_language
def test_the_selection_is_that_on_screen(language):
    """Heads in the order of the strip, of the item that is looked at; the chosen cell is printed beside the average's."""
    what = shown(Settings(**SMALL), View(item=1, order="entropy", cell=(2, 4), head=0), heads=(2, 1, "mean"))
    names, printed = executed(PROGRAMS[language](what))
    same_as_shown(names, what)
    assert array(names["shown_heads"]).shape == (2, 5, 5)
    number, average = what.trace.weights[1, 2, 2, 4], what.trace.mean_weights[1, 2, 4]
    assert printed == f"head 2: {number:.7f}, average: {average:.7f}\n"


def test_of_the_average_alone_no_head_is_shown():
    names = left(shown(Settings(**SMALL), heads=("mean",)), "numpy")
    assert "average" in names and "shown_heads" not in names


def test_a_program_imports_what_it_uses_and_no_more():
    told = PROGRAMS["torch"](shown(Settings()))
    assert told.startswith("import torch\nfrom torch import nn\n\n")
    assert "import" not in told.split("\n\n", 1)[1]
    assert PROGRAMS["numpy"](shown(Settings(**CASES["tiny"]))).startswith("import numpy as np\n\n")


PINNED = "embed_dim=12&num_heads=3&batch_size=2&seq_len=5&seed=8"
AS = {
    "another seed": PINNED,
    "words, heads off, a key hidden": PINNED
    + "&padding=0&words=a%20%22b%22%20c%20d%20e%0Af%20g%20h&what_if=0%3A1%3Dzero%200%3Akeys%3D0",
    "rows without a key": PINNED + "&padding=5",
}


def compared(pinned, **view):
    """What the page shows of SMALL where this is pinned as A."""
    what = shown(Settings(**SMALL), View(pinned=pinned, **view))
    return replace(what, a=shown_trace(pinned_trace(what.source, what.view), what.view))


@ignored
@by_language
@pytest.mark.parametrize("weighting", ["weights", "norms"])
@pytest.mark.parametrize("a", AS)
def test_a_comparison_is_computed_on_both_sides(a, weighting, language):
    what = compared(AS[a], weighting=weighting, cell=(1, 0))
    names, printed = executed(PROGRAMS[language](what))
    same_as_shown(names, what)
    change, c = what.trace.weights - what.a.weights, what.choice
    same(names["change"], change)
    before = what.a.weights[c.item, c.head, 1, 0]
    assert f"in A: {before:.6f}"[:-1] in printed
    assert float(printed.rpartition("±")[2]) == pytest.approx(np.abs(np.nan_to_num(change[c.item])).max(), abs=1e-5)


@by_language
def test_a_comparison_of_other_shapes_says_that_it_is_of_b(language):
    other = compared("embed_dim=12&num_heads=2&batch_size=2&seq_len=5")
    assert "B of the comparison. A: ?embed_dim=12&num_heads=2" in PROGRAMS[language](other)
    assert "change" not in left(other, language)


def test_a_test_is_of_b():
    assert "B of the comparison. A: ?embed_dim=12" in PROGRAMS["pytest"](compared(PINNED))


def recorded(*, v=True, bias=True):
    """A call with grouped heads, a scale of its own, and what is added to the scores."""
    rng = np.random.default_rng(4)
    q, k, values = (rng.standard_normal(shape, dtype=np.float32) for shape in ((2, 4, 5, 3), (2, 2, 6, 3), (2, 2, 6, 2)))
    added = rng.standard_normal((1, 4, 5, 6), dtype=np.float32) if bias else None
    mask = Mask(5, 6, causal=True, padded=np.arange(6) >= np.array([[6], [4]]), bias=added)
    out = rng.standard_normal((7, 8), dtype=np.float32)
    return trace_of_call(Call(q, k, values if v else None, mask, 0.31, out if v else None, name="decoder.0"))


def dropped():
    return synthetic(Settings(**SMALL, training=True, dropout=0.5))


def spoilt(name):
    """The same call with a NaN in one of its vectors, of batch item 0: a query's, or those of a key that some queries may not see."""
    call = recorded().call
    array = getattr(call, name).copy()
    array[0, 1, 3, 0] = np.nan
    return trace_of_call(replace(call, **{name: array}))


def spoilt_maps():
    weights = recorded().probabilities.copy()
    weights[0, 1, 3, 0], weights[0, 2, 2, 1], weights[1, 0, 4, 0] = np.nan, np.inf, -np.inf
    return trace_of_maps(weights)


SAVED = {
    "grouped heads": recorded,
    "no values": lambda: recorded(v=False),
    "nothing added": lambda: recorded(bias=False),
    "dropout": dropped,
    "maps alone": lambda: trace_of_maps(recorded().probabilities),
    "maps, heads off": lambda: trace_of_maps(recorded().probabilities),
    "heads off": recorded,
    "off by mean, no values": lambda: recorded(v=False),
    "norms": recorded,
    "norms, dropout": dropped,
    "a query is NaN": lambda: spoilt("q"),
    "a key is NaN, heads off": lambda: spoilt("k"),
    "maps with NaN, ∞ and −∞": spoilt_maps,
}


@pytest.fixture
def in_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def of_file(kind):
    """A Shown of a Trace that has no settings, saved as the export saves it."""
    trace = SAVED[kind]()
    Recording((trace,)).save("attention.npz")
    if "off" in kind:
        trace = changed(trace, Intervention({0: "mean", 1: "zero", 3: "uniform"}))
        if trace.has("q"):
            Recording((trace,)).save("attention.npz")
    view = View(weighting="norms" if "norms" in kind else "weights")
    return Shown(Source("my run.safetensors", (trace,)), shown_trace(trace, view), view)


@by_language
@pytest.mark.parametrize("kind", SAVED)
def test_what_was_saved_of_any_other_source(kind, language, in_folder):
    what = of_file(kind)
    same_as_shown(left(what, language), what)


@pytest.mark.parametrize(
    ("settings", "view", "name", "command"),
    [
        (None, View(), "my run.pt", "--recording 'my run.pt' --out"),
        (
            None,
            View(layer=2, what_if="2:0=zero", head=1),
            "run.pt",
            '--recording run.pt --address "?layer=2&what_if=2%3A0%3Dzero" --out',
        ),
        (Trained(seed=4), View(layer=1, scale="log"), "induction", '--address "?source=trained&seed=4&layer=1" --out'),
        (None, View(), "the lesson “Masks. Why?”\nimport os", "# the lesson “Masks. Why?” import os, saved as NPZ"),
    ],
)
def test_the_first_comment_says_how_the_file_is_had(settings, view, name, command):
    told = PROGRAMS["numpy"](Shown(Source(name, (recorded(),), settings), recorded(), view))
    assert told.startswith("# attention.npz") and command in "".join(told.splitlines()[:2])


def test_a_shipped_model_with_heads_off(in_folder):
    what = shown(Trained(interventions="0:0=zero 1:1=mean"), View(layer=1, weighting="norms"))
    Recording((what.trace.plain,)).save("attention.npz")
    for language in ("numpy", "torch"):
        same_as_shown(left(what, language), what)


def functions(told):
    """(what the fixture of a pytest case gives, its tests by name)."""
    names, _ = executed(told.replace('@pytest.fixture(scope="module")\n', ""))
    return names["attended"](), {name: one for name, one in names.items() if name.startswith("test_")}


PASTED = {
    "the tutorial's program": ({}, View()),
    "undefined rows": (CASES["undefined rows"], View(item=0, cell=(1, 1))),
    "float mask": (CASES["float mask, causal"], View()),
    "extra keys": (CASES["extra keys"], View(item=1)),
    "nothing hidden": (SMALL | {"padding": ()}, View(cell=(0, 0))),
    "dropped": (CASES["extra keys, no bias, dropped"], View()),
    "all at once": (SMALL | {"causal": True}, View(what_if=WHAT_IF["all at once"], weighting="norms")),
    "words": (CASES["words, positions, left"], View()),
}


@pytest.mark.parametrize("case", PASTED)
def test_every_test_of_a_pasted_case_passes(case):
    settings, view = PASTED[case]
    given, tests = functions(PROGRAMS["pytest"](shown(Settings(**settings), view)))
    assert len(tests) >= 4
    for test in tests.values():
        test(given)


@pytest.mark.parametrize("kind", SAVED)
def test_every_test_of_a_pasted_case_of_a_file_passes(kind, in_folder):
    given, tests = functions(PROGRAMS["pytest"](of_file(kind)))
    for test in tests.values():
        test(given)


def failing(told):
    """The names of the tests that fail."""
    given, tests = functions(told)
    found = []
    for name, test in tests.items():
        try:
            test(given)
        except AssertionError:
            found.append(name)
    return found


@pytest.mark.parametrize(
    ("right", "wrong", "name"),
    [
        (r"== \(2, 3, 5, 5\)", "== (2, 3, 5, 6)", "there_is_a_weight"),
        (r"(row = \[\n        )[^,]+", r"\g<1>0.1234567", "query_"),
        (r"approx\(0\.\d\d", "approx(0.99", "average"),
        (r"return weights\.detach\(\), hidden", "return weights.detach() * 1.1, hidden", "rows_sum_to_1"),
        (r"return weights\.detach\(\), hidden", "return weights.detach(), ~hidden", "nothing_that_is_hidden"),
        (r"undefined\[1, :, .*\] = True", "", "rows_without_a_key"),
    ],
)
def test_a_pasted_case_fails_when_something_changes(right, wrong, name):
    told = PROGRAMS["pytest"](
        shown(Settings(**SMALL | {"padding": (1, 2), "padding_side": "left", "causal": True}), View(item=0))
    )
    assert failing(told) == []
    broken = re.sub(right, wrong, told)
    assert broken != told
    assert any(name in one for one in failing(broken))


def test_pytest_itself_runs_a_pasted_case(in_folder, capsys, monkeypatch):
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    told = PROGRAMS["pytest"](shown(Settings(**SMALL)))
    (in_folder / "test_pasted.py").write_text(told, encoding="utf-8")
    (in_folder / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    assert pytest.main(["-q", "-p", "no:cacheprovider", "test_pasted.py"]) == 0
    assert "6 passed" in capsys.readouterr().out


LONG = "?embed_dim=8&num_heads=2&batch_size=1&seq_len=300&padding=&causal=1&cell=25,12&head=1"


def long(monkeypatch, address):
    """(what is in sight of a layer as if its maps were too long to be whole, the same layer whole)."""
    whole = of_address(Figure(address=LONG)).trace
    monkeypatch.setattr("mha_viz.core.memory.WHOLE", 2**14)
    return of_address(Figure(address=address)), whole


@by_language
@pytest.mark.parametrize(
    ("part", "query", "key"), [("&rows=20,60&columns=0,60", 25, 12), ("", 25, 12)]
)  # a cell; one of a block of 2 × 2
def test_a_program_of_a_long_sequence_computes_the_whole_and_names_the_cell_in_it(part, query, key, language, monkeypatch):
    what, whole = long(monkeypatch, LONG + part)
    told = PROGRAMS[language](what)
    names, printed = executed(told)
    same(names["weights"], whole.weights)
    assert f"# query {query}, key {key}" in told and f"head 1: {whole.weights[0, 1, query, key]:.6f}" in printed
    assert "# Here the maps are whole, 300 × 300 in each head" in told


@by_language
def test_a_comparison_of_long_sequences_is_of_the_whole_on_both_sides(language, monkeypatch):
    what, whole = long(monkeypatch, f"{LONG}&rows=20,60&columns=0,60&pinned={quote(LONG[1:] + '&seed=9')}")
    names, printed = executed(PROGRAMS[language](what))
    a = synthetic(Settings(embed_dim=8, num_heads=2, batch_size=1, seq_len=300, padding=(), causal=True, seed=9))
    same(names["change"], whole.weights - a.weights)
    assert f"in A: {a.weights[0, 1, 25, 12]:.6f}" in printed


@by_language
def test_a_program_of_a_long_recording_is_refused(language, monkeypatch, tmp_path):
    whole = long(monkeypatch, LONG)[1]
    Recording((whole,)).save(tmp_path / "long.safetensors")
    with pytest.raises(Wrong, match="a recording holds what they are made of"):
        PROGRAMS[language](of_address(Figure(recording=str(tmp_path / "long.safetensors"))))


def test_a_test_of_a_long_sequence_is_refused(monkeypatch):
    with pytest.raises(Wrong, match="of a long sequence these are never made") as caught:
        PROGRAMS["pytest"](long(monkeypatch, LONG)[0])
    assert caught.value.nearest == ({"code": "torch"},)


@by_language
def test_the_command_writes_a_program(language, in_folder):
    address = "?embed_dim=12&num_heads=3&seq_len=5&padding=2&what_if=0:1=mean"
    assert main(["export", "--address", address, "--code", language, "--out", "weights.py"]) == 0
    names, _ = executed((in_folder / "weights.py").read_text(encoding="utf-8"))
    settings = Settings(embed_dim=12, num_heads=3, seq_len=5, padding=(2,))
    same_as_shown(names, shown(settings, View(what_if="0:1=mean")))
