"""A build of torch (2.13.0+cpu, 2.13.0+cu130) is the release 2.13.0 to whoever pins it, and its own name where bits are compared."""

from importlib import metadata

import pytest
import torch

from mha_viz.core.versions import release
from mha_viz.export.words import made_by
from mha_viz.settings import Settings
from mha_viz.sources.source import source
from mha_viz.studies.profile_results import machine
from mha_viz.studies.validation import versions

BUILDS = ("2.13.0", "2.13.0+cpu", "2.13.0+cu130")


@pytest.mark.parametrize("installed", BUILDS)
@pytest.mark.parametrize("loaded", BUILDS)
def test_every_build_is_named_by_its_release(installed, loaded, monkeypatch):
    """An index may leave the build out of the distribution's version; torch itself names it."""
    usual = metadata.version
    monkeypatch.setattr(metadata, "version", lambda name: installed if name == "torch" else usual(name))
    monkeypatch.setattr(torch, "__version__", loaded)
    found = versions(source(Settings()))
    assert (found["torch"], found["torch_build"]) == ("2.13.0", loaded)
    assert machine()["torch"] == "2.13.0"
    assert "with torch 2.13.0, numpy " in made_by()


def test_a_package_that_is_not_there_has_no_release():
    with pytest.raises(metadata.PackageNotFoundError):
        release("no-such-package")
