"""Fixtures for tests of the app without a browser."""

from functools import cache

import pytest
from streamlit.components.v2 import manifest_scanner
from streamlit.runtime.scriptrunner.script_cache import ScriptCache


@pytest.fixture(scope="session", autouse=True)
def one_start():
    """Streamlit looks through every installed package for components as it starts, and compiles the app's scripts.

    Each AppTest starts it anew: once is enough. The search takes a quarter of a second, more than a page does.
    """
    once = ScriptCache()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(manifest_scanner, "scan_component_manifests", cache(manifest_scanner.scan_component_manifests))
        patch.setattr(ScriptCache, "get_bytecode", once.get_bytecode)
        yield
