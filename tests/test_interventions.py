"""What is changed in a model's layers, as text."""

import pytest

from mha_viz.core.intervention import Intervention
from mha_viz.core.rules import Wrong
from mha_viz.settings import interventions
from mha_viz.settings.interventions import EXAMPLE, read_interventions, told, typed_interventions, write_interventions


def test_the_example():
    assert read_interventions(EXAMPLE) == (Intervention(temperature=0.5), Intervention({2: "zero"}, (3, 4)))


@pytest.mark.parametrize(
    "changes",
    [(), (Intervention(temperature=0.1 + 0.2),), (Intervention(), Intervention({0: "mean", 3: "uniform"}, (1, 9), 2.0))],
)
def test_what_is_written_reads_the_same(changes):
    assert read_interventions(write_interventions(changes)) == changes


def test_equal_changes_are_one_text():
    one = typed_interventions("interventions", "1:3=zero  1:0=mean 1:keys=4,2")
    assert one == typed_interventions("interventions", "1:keys=2,4 1:0=mean 1:3=zero") == "1:0=mean 1:3=zero 1:keys=2,4"
    assert typed_interventions("interventions", (Intervention(), Intervention({3: "zero"}))) == "1:3=zero"
    assert typed_interventions("interventions", (Intervention(),)) == typed_interventions("interventions", " ") == ""


@pytest.mark.parametrize(
    "part",
    [
        "zero",
        "1:2",
        "1:2=half",
        "1:-1=zero",
        "x:2=zero",
        "-1:2=zero",
        "9999:2=zero",
        "1:keys=a",
        "1:temperature=0",
        "1:2=zero=1",
    ],
)
def test_a_part_that_says_nothing_is_named(part):
    with pytest.raises(Wrong, match="must be written LAYER:WHAT") as caught:
        read_interventions(f"0:1=mean {part}")
    assert caught.value.value == part
    assert read_interventions(**dict(text=caught.value.nearest[0]["interventions"])) == (Intervention({1: "mean"}),)


@pytest.mark.parametrize("value", [3, None, (3,), ["1:2=zero"]])
def test_what_is_no_text(value):
    with pytest.raises(Wrong, match="must be text"):
        typed_interventions("interventions", value)


def test_in_words():
    assert told(read_interventions("0:temperature=2 1:0=zero 1:1=mean 1:2=uniform 1:keys=3 2:keys=1,2")) == (
        "Layer 0: the scores are divided by 2 before the softmax.",
        "Layer 1, head 0 is off: its output is 0.",
        "Layer 1, head 1 says the average of the batch, whatever is asked.",
        "Layer 1, head 2 does not choose: equal weight on every key that a query may see.",
        "Layer 1: no query reads key 3.",
        "Layer 2: no query reads keys 1, 2.",
    )


def test_every_part_is_looked_at_once(monkeypatch):
    """However many heads of one layer are named: work grows with the length of the text, and not with its square or cube."""
    seen = []
    checked = interventions.Intervention

    def counted(off=(), *rest, **more):
        seen.append(len(off))
        return checked(off, *rest, **more)

    monkeypatch.setattr(interventions, "Intervention", counted)
    (found,) = read_interventions(" ".join(f"0:{head}=zero" for head in range(1600)))
    assert len(found.off) == 1600 and sum(seen) == 2 * 1600, "each head by itself, and all of them once"


@pytest.mark.parametrize("text", ["0:1=zero 0:1=mean", "0:1=zero 0:2=mean 0:1=zero"])
def test_a_head_that_is_named_twice(text):
    with pytest.raises(Wrong, match="names head 1 more than once"):
        read_interventions(text)


def test_of_keys_and_temperature_the_last_counts():
    assert read_interventions("0:keys=1 0:temperature=2 0:keys=3 0:temperature=4") == (Intervention((), (3,), 4.0),)
