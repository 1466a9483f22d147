"""The rule of each field by itself: a field carries its own, and is checked by it wherever its value comes from."""

from dataclasses import field, fields

from mha_viz.core.rules import Wrong, fraction, one_of, whole

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
    if isinstance(value, str) or not hasattr(value, "__iter__"):
        raise Wrong(argument, value, 'must be whole numbers, one per batch item, as in "3, 0, 0".', [{argument: ()}])
    try:
        checked = [whole(argument, count, 0, LONGEST) for count in value]
    except Wrong as wrong:
        right = tuple(wrong.nearest[0][argument] if count == wrong.value else count for count in value)
        rule = f"must be whole numbers, 0 or more, one per batch item, and {wrong.value!r} is not."
        raise Wrong(argument, tuple(value), rule, [{argument: right}]) from None
    while checked and checked[-1] == 0:
        checked.pop()
    return tuple(checked)


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
