"""Fixtures for tests of the app without a browser."""

from functools import cache

import pytest
from streamlit.components.v2 import manifest_scanner


@pytest.fixture(scope="session", autouse=True)
def one_scan():
    """Streamlit looks through every installed package for components as it starts, and each AppTest starts it anew: once is enough.

    It takes a quarter of a second, more than a page does.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(manifest_scanner, "scan_component_manifests", cache(manifest_scanner.scan_component_manifests))
        yield
