"""The page that says what the app is for, and what it is not."""

from streamlit.testing.v1 import AppTest

from tests.app.screen import APP, page_text


def test_it_says_when_to_use_it_what_is_related_and_that_it_is_no_substitute():
    at = AppTest.from_file(str(APP), default_timeout=60).switch_page("mha_viz/app/pages/about.py").run()
    said = page_text(at)
    assert not at.exception
    for part in ("Use it", "Know before", "Byte pair encoding", "Token embeddings", "Positional encoding", "no substitute"):
        assert part in said
