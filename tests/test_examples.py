"""The examples in docstrings: each is run, and each public name has one."""

import doctest
import inspect
import re
from functools import cached_property
from importlib import import_module
from pathlib import Path
from types import FunctionType

import pytest

import mha_viz as mv

PACKAGE = Path(mv.__file__).parent


def module_names():
    """The modules in which some docstring has an example."""
    paths = [path for path in PACKAGE.rglob("*.py") if re.search(r"^ +>>> ", path.read_text(), re.MULTILINE)]
    return sorted(".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts) for path in paths)


def examples_of(found, name):
    """The examples of a public name: of a class those of its methods too."""
    finder = doctest.DocTestFinder(recurse=inspect.isclass(found))
    return [test for test in finder.find(found, name, globs={}) if test.examples]


def failures(tests):
    runner = doctest.DocTestRunner(verbose=False, optionflags=doctest.ELLIPSIS)
    said = []
    for test in tests:
        runner.run(test, out=said.append, clear_globs=False)
    return "".join(said)


@pytest.mark.parametrize("name", module_names())
def test_every_example_gives_what_it_says(name):
    tests = [test for test in doctest.DocTestFinder().find(import_module(name), name) if test.examples]
    assert tests and not failures(tests)


@pytest.mark.parametrize("name", sorted(mv.__all__))
def test_a_public_name_has_an_example_that_stands_alone(name):
    tests = examples_of(getattr(mv, name), name)
    assert tests, f"mv.{name} has no example in its docstring"
    assert not failures(tests)


def first_paragraph(found):
    return (inspect.getdoc(found) or "").partition("\n\n")[0]


@pytest.mark.parametrize("name", mv.__all__)
def test_a_public_name_says_in_a_line_what_it_is(name):
    first = first_paragraph(getattr(mv, name))
    assert first.endswith((".", ":")) and "\n" not in first, first


def parts_of(module):
    """(name, function, class or property) of what a module defines and does not keep to itself, methods among them."""
    for name, found in vars(module).items():
        if name.startswith("_") or getattr(found, "__module__", None) != module.__name__:
            continue
        if inspect.isfunction(found):
            yield name, found
        elif inspect.isclass(found):
            yield name, found
            for part, value in vars(found).items():
                if not part.startswith("_") and isinstance(value, FunctionType | classmethod | property | cached_property):
                    yield f"{name}.{part}", getattr(found, part)


def modules_of(*rooms):
    paths = [path for room in rooms for path in PACKAGE.glob(room) if path.name != "__init__.py"]
    return sorted(".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts) for path in paths)


@pytest.mark.parametrize("name", modules_of("core/*.py", "settings/*.py", "stored/*.py", "recording.py", "__main__.py"))
def test_whatever_others_call_says_in_a_line_what_it_is(name):
    first = {part: first_paragraph(found) for part, found in parts_of(import_module(name))}
    assert not {part: text for part, text in first.items() if "\n" in text or not text.endswith((".", ":", '."'))}
