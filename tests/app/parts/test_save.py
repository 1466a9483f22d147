"""The popover Save by itself: what it offers, what it gives to paste, and what it says where something is wrong."""

import shlex

import pytest
from streamlit.testing.v1 import AppTest

from mha_viz.__main__ import main
from mha_viz.core.rules import Wrong
from mha_viz.export.browser import Browser
from tests.app.screen import unescaped

SMALL = "?embed_dim=8&num_heads=4&batch_size=2&seq_len=5&padding=1&head=2"


def popover(address):
    from mha_viz.app.parts.save import OnScreen, keep_for_saving, save
    from mha_viz.export.figure import Figure
    from mha_viz.export.make import shown

    keep_for_saving(OnScreen(shown(Figure(address=address)), name="attention-item0", live=True))
    save()


@pytest.fixture
def save():
    return AppTest.from_function(popover, args=(SMALL,), default_timeout=60).run()


def choose(at, **values):
    for name, value in values.items():
        next(
            widget
            for kind in ("button_group", "selectbox", "text_input", "checkbox")
            for widget in at.get(kind)
            if widget.key == f"save_{name}"
        ).set_value(value)
    at.run()
    assert not at.exception
    return at


def labels(at):
    return [
        unescaped(button.label) for kind in ("button", "download_button") for button in at.get(kind) if hasattr(button, "label")
    ]


def pasted(at, what):
    return choose(at, paste=what).code[0].value


def test_at_first_the_picture_is_saved_as_it_is_on_screen(save):
    assert any("attention-item0.png (as on screen)" in label for label in labels(save))


def test_another_dress_is_told_and_outlives_the_popover(save):
    at = choose(save, theme="print", width="160 mm", title=False)
    assert any("(160 mm wide, print)" in label for label in labels(at))
    assert at.session_state.dress["width"] == "160 mm" and not at.session_state.dress["title"]


@pytest.mark.parametrize(
    ("values", "said", "button"),
    [
        ({"width": "huge"}, "must be a length", "width = 160 mm"),
        ({"width": "160,5 mm"}, "must be a length", "width = 160.5 mm"),
        ({"width": "20 mm"}, "320 to 3840", "width = 64.6 mm"),
        ({"font_size": "8 em"}, "pt or px", "font_size = 8 pt"),
    ],
)
def test_a_wrong_size_says_what_is_right_and_stays_to_be_mended(save, values, said, button):
    at = choose(save, **values)
    assert said in unescaped(at.error[0].value) and len(at.error) == 1
    assert not any("Save attention" in label for label in labels(at))
    assert [at.session_state.dress[name] for name in values] == list(values.values())
    at = next(one for one in at.button if unescaped(one.label) == button).click().run()
    assert not at.error and not at.exception and any("Save attention" in label for label in labels(at))


def test_what_is_pasted_runs_or_reads(save):
    assert "batch item 0 of untrained layer" in pasted(save, "caption")
    assert "Attention maps" in pasted(save, "alternative text")
    assert pasted(save, "Markdown image").startswith("![")
    for language in ("PyTorch", "NumPy", "pytest"):
        compile(pasted(save, language), language, "exec")


def test_the_command_that_is_pasted_makes_the_same_figure(save, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    at = choose(save, format="HTML", theme="dark", bar=False)
    command = shlex.split(pasted(at, "command"))
    assert command[:3] == ["python", "-m", "mha_viz"] and {"--no-bar", "--theme", SMALL} <= set(command)
    assert main(command[3:]) == 0
    assert "#0e1117" in (tmp_path / "attention-item0.html").read_text()


def test_a_pdf_without_chromium_says_what_to_install(save, monkeypatch):
    def missing(*_, **__):
        raise Wrong("format", "pdf", "needs Chromium and playwright: apt-get install chromium.")

    monkeypatch.setattr(Browser, "picture", missing)
    at = choose(save, format="PDF")
    at.button(key="save_pdf").click().run()
    assert "apt-get install chromium" in unescaped(at.error[0].value) and not at.exception
