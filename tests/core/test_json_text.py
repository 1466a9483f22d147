"""JSON text is a value or a Wrong that says what is wrong with it."""

import pytest

from mha_viz.core.json_text import parse_json
from mha_viz.core.rules import Wrong


def test_pairs_of_surrogates_are_one_character():
    assert parse_json("file", '["\\ud83d\\ude00"]') == ["😀"]


@pytest.mark.parametrize(
    ("text", "fragment"),
    [
        ("[1,", "must be JSON: "),
        ("[" * 100_000, "nested too deep"),
        ('"\\ud800"', "half a character"),
        ('"\\uDFFF"', "half a character"),
    ],
)
@pytest.mark.parametrize("shown", [None, "its head"])
def test_what_is_no_json_is_refused(text, fragment, shown):
    with pytest.raises(Wrong, match=fragment) as refused:
        parse_json("file", text, shown)
    assert (refused.value.argument, refused.value.value) == ("file", shown or text)
