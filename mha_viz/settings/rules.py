"""The rule of each field by itself: a field carries its own, and is checked by it wherever its value comes from."""

from dataclasses import field, fields

from mha_viz.core.rules import Wrong, fraction, listed, one_of, whole

LONGEST = 100_000  # tokens, numbers, heads that may be named; what fits into memory is checked apart
MOST_TRIED = 24  # changes that are looked at for one that can be advised
LARGEST_SEED = 2**53 - 1  # the largest whole number that a browser holds exactly


def ruled(default, rule):
    """A dataclass field with this default whose values ``rule(name, value)`` brings into form, or refuses by raising Wrong."""
    return field(default=default, metadata={"rule": rule})


def ruled_value(kind, name, value):
    """``value`` brought into form by the rule of the field ``name`` of ``kind``; raises Wrong where it breaks it."""
    return kind.__dataclass_fields__[name].metadata["rule"](name, value)


def check(instance):
    """Bring every field of a frozen dataclass through its rule."""
    for f in fields(instance):
        object.__setattr__(instance, f.name, ruled_value(type(instance), f.name, getattr(instance, f.name)))


class Ruled:
    """What a frozen dataclass whose fields are ``ruled`` inherits: as it is made, each field is checked, then ``check_together``.

    Raises Wrong, and what that advises breaks no rule in its turn: where one field does not do, those that have to change with it are
    advised along. ``check_advised`` keeps advice from values that no rule forbids and nobody would want.
    """

    def __post_init__(self):
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

    def check_together(self):
        """Raises Wrong where fields that are right by themselves do not go together."""

    def check_advised(self, given):
        """Raises Wrong if these fields keep every rule and still should not be advised to a person who set ``given``."""


def _check_all(instance):
    check(instance)
    instance.check_together()


def _completed(kind, given, change):
    """``change``, with what has to change besides so that the fields ``given`` make one of ``kind``; None where few steps find nothing.

    What changes no other field comes before what does.
    """
    waiting, seen = [change], []
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


def number(least, most=LONGEST):
    return lambda argument, value: whole(argument, value, least, most)


def choice(*choices):
    def rule(argument, value):
        return one_of(argument, value, choices)

    rule.choices = choices
    return rule


def choices_of(kind, name):
    """The values that the field ``name`` of ``kind`` may have, where they are a few; else None."""
    return getattr(kind.__dataclass_fields__[name].metadata["rule"], "choices", None)


def has_lines(kind, name):
    """Whether the field ``name`` of ``kind`` is text of several lines."""
    return getattr(kind.__dataclass_fields__[name].metadata["rule"], "lines", False)


def is_optional(kind, name):
    """Whether None is a value of the field ``name`` of ``kind``."""
    return "None" in str(kind.__dataclass_fields__[name].type)


def optional(rule):
    """The same ``rule``, by which None is right as well."""

    def this_or_none(argument, value):
        return None if value is None else rule(argument, value)

    vars(this_or_none).update(vars(rule))  # its choices, and whether its text has lines
    return this_or_none


def flag(argument, value):
    if not isinstance(value, bool):
        raise Wrong(argument, value, "must be true or false, in an address 1 or 0.", [{argument: True}, {argument: False}])
    return value


def probability(argument, value):
    return fraction(argument, value)


def counts(argument, value):
    """Whole numbers, one per batch item. Trailing zeros say nothing and go: (3, 0, 0) and (3,) are one setting."""
    checked = each_whole(argument, value, 0, LONGEST, "one per batch item", (3, 0, 0), ())
    while checked and checked[-1] == 0:
        checked.pop()
    return tuple(checked)


def several(least, most, default):
    """The rule of one whole number or more, each from ``least`` to ``most``: ascending, none twice."""

    def rule(argument, value):
        checked = each_whole(argument, value, least, most, "one or more", default, default)
        if not checked:
            raise Wrong(argument, tuple(value), "must hold at least one number.", [{argument: default}])
        return tuple(sorted(set(checked)))

    return rule


def each_whole(argument, value, least, most, meant, like, default):
    """The whole numbers of ``value`` as a list; so many are ``meant``, ``like`` these, and ``default`` is right where there are none."""
    rule = f'must be whole numbers, {meant}, as in "{", ".join(map(str, like))}".'
    value = listed(argument, value, rule, [{argument: default}])
    right, first = [], None
    for one in value:
        try:
            right.append(whole(argument, one, least, most))
        except Wrong as wrong:
            right.append(wrong.nearest[0][argument])
            first = first or wrong
    if first is not None:
        bounds = f"from {least} to {most}" if first.nearest[0][argument] == most else f"{least} or more"
        rule = f"must be whole numbers, {bounds}, {meant}, and {first.value!r} is not."
        raise Wrong(argument, tuple(value), rule, [{argument: tuple(right)}])
    return right


def split_words(text):
    """One tuple of words per line that holds any, split at white space; None for None."""
    return None if text is None else tuple(tuple(line.split()) for line in text.splitlines() if line.split())


def typed_words(argument, value):
    if not isinstance(value, str) or not split_words(value):
        raise Wrong(argument, value, "must hold at least one word; each line is one batch item.", [{argument: None}])
    lines = split_words(value)
    most = max(map(len, lines))
    if most > LONGEST:
        right = "\n".join(" ".join(line[:LONGEST]) for line in lines)
        raise Wrong(argument, f"{most} words in a line", f"may hold {LONGEST} words a line.", [{argument: right}])
    return value


typed_words.lines = True
