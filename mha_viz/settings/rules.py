"""The rule of each field by itself: a field carries its own, and is checked by it wherever its value comes from."""

from collections.abc import Callable
from dataclasses import Field, dataclass, field, fields
from functools import cache
from types import NoneType, UnionType
from typing import Any, ClassVar, Generic, Literal, TypeAlias, TypeVar, Union, get_args, get_origin, get_type_hints, overload

from mha_viz.core.rules import Change, Wrong, fraction, listed, one_of, whole

LONGEST = 100_000  # tokens, numbers, heads that may be named; what fits into memory is checked apart
MOST_TRIED = 24  # changes that are looked at for one that can be advised
LARGEST_SEED = 2**53 - 1  # the largest whole number that a browser holds exactly

T = TypeVar("T")
Texts: TypeAlias = tuple[tuple[str, ...], ...]  # the words of each batch item


@dataclass(frozen=True)
class Rule(Generic[T]):
    """What is called with a field's name and a value, and brings that into form or raises Wrong.

    A page knows from it the ``choices`` where they are a few, and whether a text has several ``lines``.
    """

    form: Callable[[str, Any], T]
    choices: tuple[T, ...] | None = None
    lines: bool = False

    def __call__(self, argument: str, value: object) -> T:
        return self.form(argument, value)


def ruled(default: T, rule: Callable[[str, Any], T]) -> T:
    """A dataclass field with this default whose values ``rule(name, value)`` brings into form, or refuses by raising Wrong."""
    return field(default=default, metadata={"rule": rule})


def ruled_value(kind: "type[Ruled]", name: str, value: object) -> Any:
    """``value`` brought into form by the rule of the field ``name`` of ``kind``; raises Wrong where it breaks it."""
    return _rule(kind, name)(name, value)


def _rule(kind: "type[Ruled]", name: str) -> Callable[[str, Any], Any]:
    rule: Callable[[str, Any], Any] = kind.__dataclass_fields__[name].metadata["rule"]
    return rule


def check(instance: "Ruled") -> None:
    """Bring every field of a frozen dataclass through its rule."""
    for f in fields(instance):
        object.__setattr__(instance, f.name, ruled_value(type(instance), f.name, getattr(instance, f.name)))


class Ruled:
    """What a frozen dataclass whose fields are ``ruled`` inherits: as it is made, each field is checked, then ``check_together``.

    Raises Wrong, and what that advises breaks no rule in its turn: where one field does not do, those that have to change with it are
    advised along. ``check_advised`` keeps advice from values that no rule forbids and nobody would want.
    """

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    def __post_init__(self) -> None:
        given = dict(vars(self))
        try:
            _check_all(self)
        except Wrong as wrong:
            found = [change for one in wrong.nearest if (change := _completed(type(self), given, one))]
            nearest = [change for i, change in enumerate(found) if change not in found[:i]]
            if wrong.nearest and not nearest and wrong.argument in self.__dataclass_fields__:
                default = {wrong.argument: self.__dataclass_fields__[wrong.argument].default}
                nearest = [change for change in [_completed(type(self), given, default)] if change]
            raise Wrong(wrong.argument, wrong.value, wrong.rule, nearest) from None

    def check_together(self) -> None:
        """Raises Wrong where fields that are right by themselves do not go together."""

    def check_advised(self, given: dict[str, Any]) -> None:
        """Raises Wrong if these fields keep every rule and still should not be advised to a person who set ``given``."""


def _check_all(instance: Ruled) -> None:
    check(instance)
    instance.check_together()


def _completed(kind: type[Ruled], given: dict[str, Any], change: Change) -> Change | None:
    """``change``, with what has to change besides so that the fields ``given`` make one of ``kind``; None where few steps find nothing.

    What changes no other field comes before what does.
    """
    waiting, seen = [change], list[Change]()
    while waiting and len(seen) < MOST_TRIED:
        tried = waiting.pop(0)
        if tried in seen:
            continue
        seen.append(tried)
        instance = object.__new__(kind)  # not made in full, or its own advice would be completed in turn
        vars(instance).update(given | tried)
        try:
            _check_all(instance)
            instance.check_advised(given)
        except Wrong as wrong:
            waiting += [tried | one for one in sorted(wrong.nearest, key=lambda one: not one.keys() <= change.keys())]
        else:
            return tried
    return None


def number(least: int, most: int = LONGEST) -> Rule[int]:
    """The rule of a whole number from ``least`` to ``most``."""
    return Rule(lambda argument, value: whole(argument, value, least, most))


def choice(*choices: T) -> Rule[T]:
    """The rule of a value that is one of these."""
    return Rule(lambda argument, value: one_of(argument, value, choices), choices)


def choices_of(kind: type[Ruled], name: str) -> tuple[Any, ...] | None:
    """The values that the field ``name`` of ``kind`` may have, where they are a few; else None."""
    rule = _rule(kind, name)
    return rule.choices if isinstance(rule, Rule) else None


def has_lines(kind: type[Ruled], name: str) -> bool:
    """Whether the field ``name`` of ``kind`` is text of several lines."""
    rule = _rule(kind, name)
    return isinstance(rule, Rule) and rule.lines


@cache
def _hints(kind: type[Ruled]) -> dict[str, Any]:
    return get_type_hints(kind)


def _types(kind: type[Ruled], name: str) -> tuple[Any, ...]:
    """The types, one of which a value of the field ``name`` of ``kind`` has."""
    hint = _hints(kind)[name]  # type: ignore[arg-type]  # mypy takes no class for hashable
    return get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)


def is_optional(kind: type[Ruled], name: str) -> bool:
    """Whether None is a value of the field ``name`` of ``kind``."""
    return NoneType in _types(kind, name)


def type_of(kind: type[Ruled], name: str) -> type:
    """What a value of the field ``name`` of ``kind`` is where it is not None: a bool, an int, a float, a str or a tuple."""
    hint = next(hint for hint in _types(kind, name) if hint is not NoneType)
    origin = get_origin(hint)
    found: type = type(get_args(hint)[0]) if origin is Literal else origin or hint
    return found


def holds_texts(kind: type[Ruled], name: str) -> bool:
    """Whether the field ``name`` of ``kind`` is a tuple with texts in it."""
    return any(get_origin(hint) is tuple and str in get_args(hint) for hint in _types(kind, name))


def optional(rule: Callable[[str, Any], T]) -> Rule[T | None]:
    """The same ``rule``, by which None is right as well."""

    def this_or_none(argument: str, value: object) -> T | None:
        return None if value is None else rule(argument, value)

    return Rule(this_or_none, rule.choices, rule.lines) if isinstance(rule, Rule) else Rule(this_or_none)


def flag(argument: str, value: object) -> bool:
    """The rule of what is true or false."""
    if not isinstance(value, bool):
        raise Wrong(argument, value, "must be true or false, in an address 1 or 0.", [{argument: True}, {argument: False}])
    return value


def anything(argument: str, value: T) -> T:
    """The rule that every value keeps."""
    return value


def probability(argument: str, value: object) -> float:
    """The rule of a number from 0 to 1."""
    return fraction(argument, value)


def counts(argument: str, value: object) -> tuple[int, ...]:
    """Whole numbers, one per batch item. Trailing zeros say nothing and go: (3, 0, 0) and (3,) are one setting."""
    checked = each_whole(argument, value, 0, LONGEST, "one per batch item", (3, 0, 0), ())
    while checked and checked[-1] == 0:
        checked.pop()
    return tuple(checked)


def several(least: int, most: int, default: tuple[int, ...]) -> Rule[tuple[int, ...]]:
    """The rule of one whole number or more, each from ``least`` to ``most``: ascending, none twice."""

    def form(argument: str, value: Any) -> tuple[int, ...]:
        checked = each_whole(argument, value, least, most, "one or more", default, default)
        if not checked:
            raise Wrong(argument, tuple(value), "must hold at least one number.", [{argument: default}])
        return tuple(sorted(set(checked)))

    return Rule(form)


def each_whole(
    argument: str, value: object, least: int, most: int, meant: str, like: tuple[int, ...], default: tuple[int, ...] | None
) -> list[int]:
    """The whole numbers of ``value`` as a list; so many are ``meant``, ``like`` these, and ``default`` is right where there are none."""
    rule = f'must be whole numbers, {meant}, as in "{", ".join(map(str, like))}".'
    ones = listed(argument, value, rule, [{argument: default}])
    right: list[int] = []
    first = None
    for one in ones:
        try:
            right.append(whole(argument, one, least, most))
        except Wrong as wrong:
            right.append(wrong.nearest[0][argument])
            first = first or wrong
    if first is not None:
        bounds = f"from {least} to {most}" if first.nearest[0][argument] == most else f"{least} or more"
        rule = f"must be whole numbers, {bounds}, {meant}, and {first.value!r} is not."
        raise Wrong(argument, ones, rule, [{argument: tuple(right)}])
    return right


@overload
def split_words(text: str) -> Texts: ...
@overload
def split_words(text: str | None) -> Texts | None: ...
def split_words(text: str | None) -> Texts | None:
    """One tuple of words per line that holds any, split at white space; None for None."""
    return None if text is None else tuple(tuple(line.split()) for line in text.splitlines() if line.split())


def _words(argument: str, value: object) -> str:
    if not isinstance(value, str) or not (lines := split_words(value)):
        raise Wrong(argument, value, "must hold at least one word; each line is one batch item.", [{argument: None}])
    most = max(map(len, lines))
    if most > LONGEST:
        right = "\n".join(" ".join(line[:LONGEST]) for line in lines)
        raise Wrong(argument, f"{most} words in a line", f"may hold {LONGEST} words a line.", [{argument: right}])
    return value


typed_words = Rule(_words, lines=True)  # the rule of words, a batch item a line
