"""The table of all heads: each cell is the statistic of its head, and what is left out is said."""

import numpy as np
import pytest

from mha_viz import Recording, Settings, Wrong, synthetic
from mha_viz.analysis import STATISTICS, head_table, statistic
from tests.analysis.kinds import KINDS, of_kind

CHOSEN = Settings(embed_dim=12, num_heads=3, words="a b a b\nc a", positions=True, causal=True)


def test_a_row_for_every_head_of_every_layer():
    """Layers of any kind and size side by side, each cell as ``statistic`` has it."""
    traces = [of_kind(kind, synthetic(CHOSEN)) for kind in KINDS] + [synthetic(Settings(num_heads=2))]
    table = head_table(traces, 1)
    assert table.notes == ()
    assert [(row.trace, row.head) for row in table.rows] == [(i, h) for i in range(3) for h in range(3)] + [(3, 0), (3, 1)]
    for row in table.rows:
        assert row.name == traces[row.trace].name and row.values.keys() == STATISTICS.keys()
        for name, value in row.values.items():
            assert type(value) is float
            np.testing.assert_equal(value, statistic(traces[row.trace], 1, name)[row.head])


def test_a_recording_is_taken_as_it_is():
    traces = (synthetic(CHOSEN), synthetic(CHOSEN))
    found, expected = head_table(Recording(traces), 0), head_table(traces, 0)
    assert repr(found) == repr(expected) and len(found.rows) == 6  # NaN is itself in writing only


def test_a_trace_without_the_item_is_passed_over_with_the_reason():
    traces = [synthetic(CHOSEN), synthetic(Settings(batch_size=3)), synthetic(Settings(batch_size=1))]
    table = head_table(traces, 2)
    assert {row.trace for row in table.rows} == {1}
    assert table.notes == (
        "attention (0) has no batch item 2: its 2 are item 0 to 1.",
        "attention (2) has no batch item 2: item 0 alone.",
    )
    with pytest.raises(Wrong, match="item"):
        head_table(traces, -1)


def test_no_statistic_is_computed_twice(monkeypatch):
    traces = [synthetic(CHOSEN)]
    first = head_table(traces, 0)
    for name in STATISTICS:
        monkeypatch.setitem(STATISTICS, name, None)
    assert repr(head_table(traces, 0)) == repr(first)


def test_an_item_of_padding_alone_has_no_numbers():
    table = head_table([synthetic(Settings(padding=(20,)))], 0)
    assert len(table.rows) == 8 and all(np.isnan(list(row.values.values())).all() for row in table.rows)
