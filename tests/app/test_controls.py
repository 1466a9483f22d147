"""Every control says by itself what it holds: a browser that hears of two runs at a time draws the later one alone."""

from urllib.parse import parse_qsl

import pytest
from streamlit.testing.v1 import AppTest

from tests.app.screen import APP, to_page, widgets

INDEXED = ("selectbox", "radio")
ADDRESSES = (
    "explore?embed_dim=64&num_heads=4&seed=3&padding=2%2C1&item=1&order=entropy&arrangement=all&divisors=1",
    "explore?words=the+cat+sat%0Aa+dog&padding=&source_words=a+b%0Ac&window=3&attn_mask=0+1&kdim=7&what_if=0%3A1%3Dmean",
    "models?model=reverse-or-shift&snapshot=0&seed=5&batch_size=2&layer=1&interventions=0%3A1%3Dmean",
    "models?words=%3Cbos%3E+m+a+r+c+h+m+a",
    "models?source=pretrained&text=a+b%0Ac&pair=d%0Ae&join=1&special=set+aside&crop=1",
    "steps?source=trained&head=1&cell=3%2C2&layer=1",
    "decode?seq_len=6&batch_size=2&padding=&prompt=2&item=1",
    "pitfalls?pitfall=softmax-twice&symptom=NaN",
    "profile?embed_dim=32&num_heads=1%2C2&mask=causal&dtype=float64",
)


@pytest.mark.parametrize("address", ADDRESSES)
def test_the_default_of_every_control_is_what_it_holds(address):
    page, _, query = address.partition("?")
    at = AppTest.from_file(str(APP), default_timeout=60)
    for key in ("rare_open", "popover_heads", "popover_scale", "popover_what_if", "what_if_here"):
        at.session_state[key] = True
    at = to_page(at, page, **dict(parse_qsl(query, keep_blank_values=True)))
    drawn = [widget for widget in widgets(at) if widget.key != "paint"]
    assert drawn
    for widget in drawn:
        assert defaults(widget) == wire(widget), widget.key


def defaults(widget):
    """What a browser shows of a control that is given no value."""
    if widget.type in INDEXED and not widget.proto.HasField("default"):
        return None
    default = widget.proto.default
    return list(default) if hasattr(default, "__len__") and not isinstance(default, str) else default


def wire(widget):
    """What the session holds of the control, as its default is sent."""
    value = widget.value
    if widget.type in INDEXED:
        return widget.index
    if widget.type == "button_group":
        return [*getattr(widget, "indices", [])]
    if widget.type == "select_slider":
        return [widget.options.index(str(value))]
    return value or type(widget.proto.default)()
