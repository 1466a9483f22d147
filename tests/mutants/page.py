"""docs/mutants.md: the changes that no test tells from what is there, each with the kind that says why."""

import re

from tests.mutants.changes import ROOT

PAGE = ROOT / "docs" / "mutants.md"


def explained():
    """(module, name) of each change that the page names."""
    return set(re.findall(r"^- `([^`]+)` `([^`]+)`$", PAGE.read_text(), re.MULTILINE))
