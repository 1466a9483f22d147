"""The rule of each field by itself: a field carries its own, and is checked by it wherever its value comes from."""

from dataclasses import field, fields

from mha_viz.core.rules import Wrong, fraction, listed, one_of, whole

LONGEST = 100_000  # tokens, numbers, heads that may be named; what fits into memory is checked apart
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


def number(least, most=LONGEST):
    return lambda argument, value: whole(argument, value, least, most)


def choice(*choices):
    return lambda argument, value: one_of(argument, value, choices)


def optional(rule):
    return lambda argument, value: None if value is None else rule(argument, value)


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
    try:
        return [whole(argument, number, least, most) for number in value]
    except Wrong as wrong:
        right = tuple(wrong.nearest[0][argument] if number is wrong.value else number for number in value)
        bounds = f"from {least} to {most}" if wrong.nearest[0][argument] == most else f"{least} or more"
        rule = f"must be whole numbers, {bounds}, {meant}, and {wrong.value!r} is not."
        raise Wrong(argument, tuple(value), rule, [{argument: right}]) from None


def split_words(text):
    """One tuple of words per line that holds any, split at white space; None for None."""
    return None if text is None else tuple(tuple(line.split()) for line in text.splitlines() if line.split())


def typed_words(argument, value):
    if not isinstance(value, str) or not split_words(value):
        raise Wrong(argument, value, "must hold at least one word; each line is one batch item.")
    most = max(len(line) for line in split_words(value))
    if most > LONGEST:
        raise Wrong(argument, f"{most} words in a line", f"may hold {LONGEST} words a line.")
    return value
