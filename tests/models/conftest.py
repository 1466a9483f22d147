"""Pretrained models: without transformers these tests are skipped, with the reason; MHA_REQUIRE_MODELS=1 makes that a failure."""

import os
import socket

import pytest

from mha_viz.sources.pretrained import shipped_models


def absent(reason):
    if os.environ.get("MHA_REQUIRE_MODELS") == "1":
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture(scope="session", autouse=True)
def transformers():
    try:
        import accelerate  # noqa: F401
        import gguf  # noqa: F401
        import transformers
    except ImportError as error:
        absent(f"{error.name} is not installed: make test-models installs what pretrained models need")
    transformers.logging.set_verbosity_error()
    return transformers


@pytest.fixture(autouse=True)
def no_network(monkeypatch):
    """Whoever asks for another machine is found."""

    def connect(*_):
        raise AssertionError("a connection was opened")

    monkeypatch.setattr(socket.socket, "connect", connect)
    monkeypatch.setattr(socket, "getaddrinfo", connect)


@pytest.fixture(scope="session")
def shipped():
    """``shipped(name)``: the folder of a model that a package ships."""

    def folder(name):
        if name not in shipped_models():
            absent(f"{name} is not installed: make test-models installs it")
        return shipped_models()[name]

    return folder


@pytest.fixture(scope="session")
def small(transformers):
    """What makes small models, which needs transformers itself."""
    from tests.models import small

    return small


@pytest.fixture(scope="session")
def saved(small, tmp_path_factory):
    """``saved(family)``: a folder with a small model of random weights and its tokenizer, the same one for each call."""
    made = {}

    def folder(family):
        if family not in made:
            made[family] = small.save(family, tmp_path_factory.mktemp(family))
        return str(made[family])

    return folder
