"""The page of what tests do not notice names changes that there are."""

import pytest

from tests.mutants.changes import Module
from tests.mutants.page import explained


@pytest.mark.parametrize("path", sorted({path for path, _ in explained()}))
def test_a_change_that_the_page_explains_can_be_made(path):
    """Where it cannot: make mutants ARGS=<the module>, and correct docs/mutants.md."""
    assert {name for module, name in explained() if module == path} <= {change.name for change in Module(path).changes}
