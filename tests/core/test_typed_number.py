"""What is typed is one number everywhere, or refused with what was likely meant."""

from argparse import ArgumentParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mha_viz.commands import train
from mha_viz.core.rules import Wrong, fraction, whole
from mha_viz.core.typed_number import meant, read_number
from mha_viz.settings import Caching, Settings, View, read
from mha_viz.settings.profile import Profile
from mha_viz.sources.trained import Trained


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("12", 12),
        (" 12 ", 12),
        ("+12", 12),
        ("-3", -3),
        ("−3", -3),
        ("007", 7),
        ("1e3", 1000),
        ("1E+3", 1000),
        ("1.5e1", 15),
        ("12.0", 12),
        ("12.", 12),
        ("12.8", 12.8),
        (".5", 0.5),
        ("1e-1", 0.1),
        ("9007199254740993", 9007199254740993),
        ("1e22", 10**22),
    ],
)
def test_a_number_is_read(text, number):
    assert read_number(text) == number and type(read_number(text)) is type(number)


@pytest.mark.parametrize(
    ("text", "likely"),
    [
        ("1,5", 1.5),
        (",5", 0.5),
        ("1,000", 1000),
        ("1 000", 1000),
        ("1_000", 1000),
        ("12 345 678", 12_345_678),
        ("1\u202f000", 1000),
        ("0x10", 16),
        ("0b101", 5),
        ("0o17", 15),
        ("", None),
        ("many", None),
        ("12 apples", None),
        ("1 00", None),
        ("0b12", None),
        ("1e", None),
        ("--3", None),
        ("1 - 2", None),
        ("nan", None),
        ("inf", None),
        ("٣", None),
        ("1e400", float("inf")),
        ("1e99999", None),
    ],
)
def test_other_text_is_no_number_and_what_it_may_mean_is_known(text, likely):
    assert read_number(text) == text and meant(text) == likely


@given(st.integers(-(10**30), 10**30) | st.floats(-(2**53), 2**53))
def test_every_number_is_read_as_python_writes_it(number):
    assert read_number(repr(number)) == number


@given(st.text(max_size=12) | st.text("0123456789.,-+e_ x", max_size=12))
def test_any_text_is_read_or_refused(text):
    found = read_number(text)
    assert found == text or isinstance(found, int | float)
    for rule in (lambda: whole("seed", text, 1, 9), lambda: fraction("dropout", text)):
        try:
            rule()
        except Wrong as wrong:
            assert len(wrong.nearest) == 1


@pytest.mark.parametrize(
    ("text", "advised"), [("1,5", 2), ("1,000", 1000), ("0x10", 16), ("12.8", 13), ("many", 1), ("9" * 5000, 4096)]
)
def test_a_whole_number_that_cannot_be_read_is_advised_as_it_was_meant(text, advised):
    with pytest.raises(Wrong) as caught:
        whole("seq_len", read_number(text), 1, 4096)
    assert caught.value.nearest == ({"seq_len": advised},)


def test_a_share_with_a_comma_is_refused_and_advised_with_a_point():
    with pytest.raises(Wrong) as caught:
        fraction("dropout", "0,5")
    assert caught.value.nearest == ({"dropout": 0.5},)


@pytest.mark.parametrize(
    ("option", "text", "said"),
    [
        ("--steps", "1,5", "'1,5' is no whole number; nearest right: 2"),
        ("--steps", "1_000", "nearest right: 1000"),
        ("--steps", "0x10", "nearest right: 16"),
        ("--seed", "12.8", "nearest right: 13"),
        ("--seed", "many", "'many' is no whole number"),
    ],
)
def test_a_command_reads_numbers_as_fields_do(option, text, said, capsys):
    parser = ArgumentParser()
    train.options(parser)
    assert parser.parse_args(["induction", option, "1e3"]) == parser.parse_args(["induction", option, "1000"])
    with pytest.raises(SystemExit):
        parser.parse_args(["induction", option, text])
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("kind", "name", "text", "value"),
    [
        (Settings, "seq_len", "1e3", 1000),
        (Settings, "padding", "1e1, 2.0", (10, 2)),
        (Profile, "seq_len", "64, 1e3", (64, 1000)),
        (View, "limits", "0,5e-1", (0, 0.5)),
        (Trained, "seed", "1e2", 100),
        (View, "what_if", "1:keys=1e1 0:temperature=5e-1", None),
    ],
)
def test_an_address_reads_numbers_as_fields_do(kind, name, text, value):
    found = read(kind, name, text)
    assert found == ("0:temperature=0.5 1:keys=10" if value is None else value)


@pytest.mark.parametrize("text", ["1,5", "1 000", "1_000", "0x10", "12.8", "٣"])
def test_an_address_refuses_what_is_no_whole_number(text):
    for kind, name in ((Settings, "num_heads"), (Trained, "seed"), (Profile, "repeats"), (Caching, "prompt")):
        with pytest.raises(Wrong):
            read(kind, name, text)
