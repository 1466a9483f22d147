"""Nothing of a file or an address is Markdown: wherever a page says a name, a token, a note or a value, it says exactly that."""

import re

import numpy as np
import pytest
from torch import nn

import mha_viz as mv
from mha_viz import Settings
from mha_viz.app.session import OF_LAYER
from mha_viz.core.attend import attend
from mha_viz.core.batch import Batch
from mha_viz.core.layer import Layer
from mha_viz.settings.display import OWNERS
from mha_viz.settings.profile import Profile
from mha_viz.sources.pretrained import Pretrained
from mha_viz.sources.trained import Trained
from tests.app.panels.test_file import give, npz, opened_with, pt
from tests.app.screen import models, opened, press, to_page, whole

BAD = "![x](http://host.example/leak)www.host.example&amp;$a$**host**"
# What something would be made of, if there were no escapes.
MADE = re.compile(r"!\[|\]\(|https?://|www(?=\.)|&amp;|\$a|\*host", re.IGNORECASE)
TEXTS = ("body", "label", "help", "text", "caption")
ELSEWHERE = ("html", "code", "bidi_component", "plotly_chart", "arrow_data_frame", "json", "exception")


def said(at):
    """Every text that a page takes for Markdown."""
    waiting = [at._tree]
    while waiting:
        node = waiting.pop()
        waiting += getattr(node, "children", {}).values()
        proto = getattr(node, "proto", None)
        if proto is not None and getattr(node, "type", "") not in ELSEWHERE:
            yield from (text for name in TEXTS if isinstance(text := getattr(proto, name, None), str))


def says_it_plainly(at, anything=True):
    """Whether the page holds BAD, as ``anything`` says that it should, and never as more than text."""
    assert not at.exception
    texts = list(said(at))
    pieces = [piece for text in texts for piece in text.split(":color[]")]
    assert [piece for piece in pieces if MADE.search(re.sub(r"\\.", " ", piece))] == []
    return not anything or any("host" in text and "leak" in text for text in texts)


@pytest.fixture(scope="module")
def recording(tmp_path_factory):
    """Two layers whose names, notes and tokens are BAD."""
    layer = Layer.random(8, 2, seed=3)
    words = ((f"{BAD}0", f"{BAD}1", f"{BAD}2"),)
    batch = Batch(np.random.default_rng(0).standard_normal((1, 3, 8), np.float32), query_tokens=words)
    traces = [attend(layer, batch, name=f"{BAD}{i}") for i in range(2)]
    path = tmp_path_factory.mktemp("bad") / "bad.safetensors"
    mv.Recording(tuple(traces), (f"{BAD} is a note.",)).save(path)
    return path.read_bytes()


def test_a_recordings_names_notes_and_tokens_are_text_on_every_page(recording):
    at = opened_with(f"{BAD}.safetensors", recording)
    for key in ("head_panel", "table", "checks", "popover_heads", "popover_scale", "popover_save", "popover_what_if"):
        at.session_state[key] = True
    pinned = f"file={BAD}.safetensors".replace("&", "%26")
    at.session_state["places"]["layer"].content.change(opened=True, pinned=pinned, what_if="0:0=zero")
    assert says_it_plainly(whole(at.run()))
    for page in ("steps", "decode", "pitfalls", "validate"):
        assert says_it_plainly(to_page(at, page, source="file", file=f"{BAD}.safetensors"), anything=False)


def test_what_is_asked_of_weights_is_text():
    state = nn.MultiheadAttention(16, 4).state_dict()
    held = {f"{BAD}{i}.{name}": value for i in range(2) for name, value in state.items()}
    at = opened_with(f"{BAD}.pt", pt(held))
    assert says_it_plainly(at)
    query = np.random.default_rng(0).standard_normal((1, 3, 16), np.float32)
    layer = Layer.from_state_dict(state, num_heads=4)
    at = give(at, "known", f"{BAD}.npz", npz(query=query, output=attend(layer, Batch(query)).output))
    assert at.success and says_it_plainly(at)
    assert says_it_plainly(give(at, "known", f"{BAD}.npz", npz(query=query)))
    assert says_it_plainly(press(at, "Open"))


@pytest.mark.parametrize(
    "data",
    [b"\x80\x04", b"[1]", b"PK\x03\x04", pt({BAD: 1}), npz(**{BAD.replace("/", "_"): np.ones(2, np.float32)})],
    ids=range(5),
)
def test_what_is_wrong_with_a_file_is_text(data):
    assert says_it_plainly(opened_with(f"{BAD}.pt", data))


ASKED = {
    "explore": Settings.__dataclass_fields__.keys() | OWNERS.keys(),
    "profile": Profile.__dataclass_fields__.keys(),
    "lessons": ("lesson", "revealed", "presented"),
    "models": Trained.__dataclass_fields__.keys(),
}


@pytest.mark.parametrize("page", [*dict.fromkeys([*OF_LAYER, *ASKED])])
def test_what_is_wrong_with_an_address_is_text(page):
    fields = ASKED.get(page, ASKED["explore"]) - {"words", "source_words"} if page != "lessons" else ASKED[page]
    address = {name: BAD for name in fields} | {BAD: BAD}
    assert says_it_plainly(to_page(opened(), page, **address))


@pytest.mark.slow
@pytest.mark.parametrize("field", ["words", "source_words", "pinned", "what_if", "attn_mask", "pitfall", "symptom"])
def test_a_text_in_an_address_is_text(field):
    at = opened(**{field: BAD, "opened": "1"})
    assert says_it_plainly(at, anything=False)
    assert says_it_plainly(to_page(at, "pitfalls", **{field: BAD}), anything=False)


@pytest.mark.parametrize("field", Pretrained.__dataclass_fields__)
def test_a_pretrained_models_address_is_text(field):
    assert says_it_plainly(models(source="pretrained", **{field: BAD}), anything=field == "name")


def test_a_file_that_is_not_open_is_named_as_it_is():
    assert says_it_plainly(models(source="file", file=BAD))
    assert says_it_plainly(models(source=BAD))
