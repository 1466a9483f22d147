"""A Display that points beyond what there is, and a Profile whose heads do not divide."""

import pytest

from mha_viz.core.rules import Wrong
from mha_viz.settings import Caching, Display, View
from mha_viz.settings.profile import Profile


def test_a_token_beyond_the_last_is_told_with_the_last():
    (wrong,) = Display(caching=Caching(token=5)).misfits(1, 1, 5, 9)
    assert (wrong.argument, wrong.value, wrong.nearest) == ("token", 5, ({"token": 4},))
    assert wrong.rule == "points to 5, and there are 5, from 0 to 4."
    assert Display(caching=Caching(token=4)).misfits(1, 1, 5, 9) == Display().misfits(1, 1, 5, 9) == []


@pytest.mark.parametrize(
    ("view", "field", "shape"),
    [
        ({"item": 5}, "item", (5, 6, 6, 6)),
        ({"head": 5}, "head", (6, 5, 6, 6)),
        ({"cell": (5, 4)}, "cell", (6, 6, 5, 6)),
        ({"cell": (4, 5)}, "cell", (6, 6, 6, 5)),
    ],
)
def test_what_the_view_points_to_is_told_first(view, field, shape):
    assert not Display(View(**view)).misfits(6, 6, 6, 6)
    told = Display(View(**view), caching=Caching(token=6)).misfits(*shape)
    assert [wrong.argument for wrong in told] == [field, "token"]


def test_head_counts_that_do_not_divide_are_moved_down_or_up():
    with pytest.raises(Wrong) as refused:
        Profile(embed_dim=12, num_heads=(3, 5, 8))
    assert (refused.value.argument, refused.value.value) == ("num_heads", (3, 5, 8))
    assert refused.value.rule == "embed_dim must be divisible by num_heads, but 12 = 5 × 2 + 2."
    assert refused.value.nearest == ({"num_heads": (3, 4, 6)}, {"num_heads": (3, 6, 12)})
