"""Thirty addresses, one of every kind of page, source and state, open the pictures that they have always opened.

``python -m tests.app.test_addresses`` writes down anew what they open, into addresses.json.
"""

import json
import os
from pathlib import Path
from urllib.parse import parse_qsl

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from mha_viz import Settings, synthetic
from mha_viz.recording import Recording
from mha_viz.settings.environment import FILE
from tests.app.screen import APP, decoded, errors, read, to_page

KEPT = Path(__file__).with_name("addresses.json")
ADDRESSES = (
    "?",
    "?embed_dim=64&num_heads=4&seed=3&padding=2%2C1&head=2&cell=3%2C4",
    "?num_heads=7",
    "?case=tiny&embed_dim=4&num_heads=2&batch_size=1&seq_len=3&padding=",
    "?words=the+cat+sat%0Aa+dog&padding=&positions=1&order=entropy&scale=log",
    "?source_len=5&source_padding=1&seq_len=4&padding=&arrangement=all",
    "?causal=1&window=3&padding_side=left&picture=lines&item=1",
    "?training=1&dropout=0.3&weighting=softmax&padding=",
    "?attn_mask=0+1%2F0+0&seq_len=2&padding=&add_zero_attn=1&bias=0&batch_first=0",
    "?pinned=seed%3D8&heads=2%2C5&limits=0%2C0.2",
    "?what_if=0%3A3%3Dzero&weighting=norms&seq_len=6&batch_size=1&padding=",
    "?seq_len=3000&batch_size=1&num_heads=2&embed_dim=8&padding=&rows=0%2C64&columns=0%2C64",
    "?seed=x&nonsense=1&head=12",
    "models?",
    "models?layer=1&head=2&cell=9%2C5",
    "models?snapshot=100&seed=3&batch_size=2&item=1",
    "models?model=look-both-ways-2&order=induction&arrangement=one",
    "models?model=reverse-or-shift&interventions=0%3A1%3Dmean&pinned=model%3Dreverse-or-shift",
    "models?words=%3Cbos%3E+m+a+r+c+h+m+a&pinned=snapshot%3D0%26layer%3D1&layer=1",
    "models?source=file&file=kept.npz&head=1",
    "models?source=file&file=elsewhere.npz",
    "steps?step=softmax&head=3&cell=2%2C7&language=numpy",
    "steps?source=trained&layer=1&step=scores&together=1",
    "decode?seq_len=6&batch_size=1&padding=&prompt=2&token=4&kv_heads=2",
    "decode?source=trained&layer=1",
    "pitfalls?pitfall=softmax-twice&seed=2",
    "pitfalls?source=trained&symptom=NaN",
    "validate?num_heads=4&embed_dim=16&seq_len=5&batch_size=2&padding=1",
    "validate?source=trained&layer=1",
    "lessons?lesson=5",
    "profile?embed_dim=32&num_heads=1%2C2&seq_len=16%2C32",
    "about?",
)


def shown(address):
    """What the page of an address shows: of each picture its key and, of every array drawn, shape, sum and a weighted sum; the chosen
    number, and what is called wrong."""
    page, _, query = address.partition("?")
    at = to_page(
        AppTest.from_file(str(APP), default_timeout=60), page or "explore", **dict(parse_qsl(query, keep_blank_values=True))
    )
    assert not at.exception
    live = [
        (element.key, json.loads(element.proto.bytes)["figure"]) for element in at.get("bidi_component") if element.proto.bytes
    ]
    charts = [(chart.key, json.loads(chart.proto.spec)) for chart in at.get("plotly_chart")]
    pictures = [[key, [sums(array) for trace in figure["data"] for array in arrays(trace)]] for key, figure in live + charts]
    pictures.sort(key=lambda picture: picture[0])  # a page may put them elsewhere
    return {"pictures": pictures, "chosen": read(at, "chosen"), "errors": errors(at)}


def arrays(trace):
    for name in ("z", "x", "y"):
        held = trace.get(name)
        if isinstance(held, dict) and "bdata" in held:
            yield decoded(held)
        elif held and name == "z":
            yield np.array(held, float)


def sums(array):
    finite = np.nan_to_num(np.asarray(array, float), nan=-1, posinf=-2, neginf=-3)
    return [list(finite.shape), float(finite.sum()), float(finite.ravel() @ np.cos(np.arange(finite.size)))]


def keep_file(folder):
    path = Path(folder) / "kept.npz"
    Recording((synthetic(Settings(embed_dim=8, num_heads=2, batch_size=1, seq_len=5, padding=(1,))),)).save(path)
    return str(path)


@pytest.mark.slow
@pytest.mark.parametrize("address", ADDRESSES)
def test_an_address_opens_what_it_has_always_opened(address, tmp_path, monkeypatch):
    if "source=file" in address:
        monkeypatch.setenv(FILE, keep_file(tmp_path))
    now, kept = shown(address), json.loads(KEPT.read_text())[address]
    assert (now["chosen"], now["errors"]) == (kept["chosen"], kept["errors"])
    assert [key for key, _ in now["pictures"]] == [key for key, _ in kept["pictures"]]
    for (key, drawn), (_, before) in zip(now["pictures"], kept["pictures"], strict=True):
        assert [one[0] for one in drawn] == [one[0] for one in before], key
        for one, other in zip(drawn, before, strict=True):
            np.testing.assert_allclose(one[1:], other[1:], rtol=1e-4, atol=1e-4, err_msg=key)


def test_every_page_is_among_the_addresses():
    pages = {address.partition("?")[0] or "explore" for address in ADDRESSES}
    assert pages >= {"explore", "models", "steps", "decode", "pitfalls", "validate", "lessons", "profile", "about"}
    assert len(ADDRESSES) >= 30


if __name__ == "__main__":
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        found = {}
        for address in ADDRESSES:
            os.environ.pop(FILE, None)
            if "source=file" in address:
                os.environ[FILE] = keep_file(folder)
            found[address] = shown(address)
    KEPT.write_text(json.dumps(found, indent=None, ensure_ascii=False).replace('}, "', '},\n"') + "\n")
