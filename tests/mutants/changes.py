"""The changes that mutation testing makes to the functions of a module, one at a time, by the operators of mutmut.

Left alone: annotations, decorators, docstrings and defaults of parameters, and prose: text with a space between words, which readers
judge and tests quote where it matters. A text that is no prose is changed once. No argument without a name is dropped: Python itself
refuses most such calls.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import libcst as cst
from libcst.metadata import MetadataWrapper
from mutmut.mutation.mutators import mutation_operators

ROOT = Path(__file__).parents[2]
WORDS = re.compile(r"\w[,.:;]? \w")


def module_paths() -> list[str]:
    """The modules whose functions are changed."""
    folder = ROOT / "mha_viz"
    return [str(path.relative_to(folder)) for room in ("core", "settings") for path in sorted((folder / room).glob("*.py"))]


@dataclass(frozen=True)
class Change:
    """One node of a module for another; ``name`` tells it from all others of the module, whatever line it stands in."""

    module: Module
    function: str
    name: str
    line: int
    old: cst.CSTNode
    new: cst.CSTNode

    def source(self, names_kept: bool = False) -> str:
        """The module with this change; with ``names_kept`` the old expression stands beside the new one and is never computed.

        A living function can have the code of another only where both take as many names from around them.
        """
        new = self.new
        if names_kept and isinstance(self.old, cst.BaseExpression):
            both = cst.IfExp(test=cst.Name("True"), body=new, orelse=self.old)
            new = both.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
        return self.module.tree.visit(_Replace(self.old, new)).code


class Module:
    """A module of the package and every change to its functions; ``path`` as in "core/cells.py"."""

    def __init__(self, path: str) -> None:
        self.path, self.file = path, ROOT / "mha_viz" / path

    @cached_property
    def tree(self) -> cst.Module:
        return self._wrapper.module

    @cached_property
    def _wrapper(self) -> MetadataWrapper:
        return MetadataWrapper(cst.parse_module(self.file.read_text()), unsafe_skip_copy=True)

    @cached_property
    def changes(self) -> list[Change]:
        visitor = _Changes(self)
        self._wrapper.visit(visitor)
        return visitor.found


class _Replace(cst.CSTTransformer):
    def __init__(self, old, new):
        self.old, self.new = old, new

    def on_visit(self, node):
        return node is not self.old

    def on_leave(self, original, updated):
        return self.new if original is self.old else updated


class _Changes(cst.CSTVisitor):
    METADATA_DEPENDENCIES = (cst.metadata.PositionProvider, cst.metadata.ParentNodeProvider)

    def __init__(self, module):
        super().__init__()
        self.module, self.found, self.within, self.seen = module, [], [], Counter()

    def on_visit(self, node):
        if isinstance(node, cst.Annotation | cst.Decorator | cst.Parameters) or _is_docstring(node):
            return False
        if isinstance(node, cst.FunctionDef | cst.ClassDef):
            self.within.append(node)
        if any(isinstance(outer, cst.FunctionDef) for outer in self.within):
            for new in _changed(node):
                self.add(node, new)
        return True

    def on_leave(self, node):
        if self.within and self.within[-1] is node:
            self.within.pop()

    def add(self, old, new):
        function = ".".join(outer.name.value for outer in self.within)
        whole = old  # an operator alone says little
        while isinstance(whole, cst.BaseCompOp | cst.ComparisonTarget):
            whole = self.get_metadata(cst.metadata.ParentNodeProvider, whole)
        name = f"{function}: {self.text(whole)} → {self.text(whole.visit(_Replace(old, new)))}"
        self.seen[name] += 1
        if self.seen[name] > 1:
            name += f" ({self.seen[name]})"
        line = self.get_metadata(cst.metadata.PositionProvider, old).start.line
        self.found.append(Change(self.module, function, name, line, old, new))

    def text(self, node):
        return re.sub(r"\s+", " ", self.module.tree.code_for_node(node)).strip()


def _changed(node):
    if isinstance(node, cst.SimpleString) and WORDS.search(node.value):
        return
    for kind, operator in mutation_operators:
        if isinstance(node, kind):
            for number, new in enumerate(operator(node)):
                if isinstance(node, cst.BaseString) and number:  # the same text in other letters
                    continue
                if operator.__name__ == "operator_arg_removal" and not _is_told(node, new):
                    continue
                yield new


def _is_told(node, new):
    """Whether the change of the arguments of a call is one for tests: prose for None, or one without a name dropped, is not."""
    if len(new.args) < len(node.args):
        dropped = next(old for old in node.args if not any(old is kept for kept in new.args))
        return dropped.keyword is not None
    (changed,) = (old for old, given in zip(node.args, new.args, strict=True) if old is not given)
    return not _is_prose(changed.value)


def _is_prose(node):
    if isinstance(node, cst.ConcatenatedString):
        return True
    if isinstance(node, cst.FormattedString):
        return any(isinstance(part, cst.FormattedStringText) and WORDS.search(part.value) for part in node.parts)
    return isinstance(node, cst.SimpleString) and bool(WORDS.search(node.value))


def _is_docstring(node):
    return isinstance(node, cst.Expr) and isinstance(node.value, cst.BaseString)
