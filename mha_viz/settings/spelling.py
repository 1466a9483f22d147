"""How fields are spelled in an address and in a file."""

import difflib
import json
from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any, TypeVar, overload

from mha_viz.core.json_text import parse_json
from mha_viz.core.rules import Wrong
from mha_viz.core.typed_number import read_number
from mha_viz.settings.display import DISPLAYED, Display, owners
from mha_viz.settings.rules import Ruled, holds_texts, is_optional, ruled_value, type_of
from mha_viz.settings.settings import Settings

LONGEST_ADDRESS = 2**15  # characters that are read of an address, so that no link costs a server minutes
MOST_UNKNOWN = 8  # names that are told one by one, each with the name that was likely meant
R = TypeVar("R", bound=Ruled)
LONGEST_NAME = 40  # characters of a name for which that is looked for


def spell(value: object) -> str:
    """A field's value as an address writes it: true as 1, (3, 0) as "3,0", (None, 9) as ",9", None as nothing.

    >>> spell(True), spell((3, 0)), spell((None, 9)), spell(0.5)
    ('1', '3,0', ',9', '0.5')
    """
    if isinstance(value, tuple):
        return ",".join(_part(part) for part in value)
    return "" if value is None else str(int(value)) if isinstance(value, bool) else str(value)


def _part(part: object) -> str:
    """One of several numbers or words, as short as still means the same."""
    if not isinstance(part, float):
        return spell(part)
    short = f"{part:g}"
    return short if float(short) == part else repr(part)


def read(kind: type[Ruled], name: str, text: str) -> Any:
    """The value that ``text`` spells for the field ``name`` of ``kind``; raises Wrong with the field's rule where it spells none."""
    return ruled_value(kind, name, parsed(kind, name, text))


def parsed(kind: type[Ruled], name: str, text: str) -> Any:
    """The value that ``text`` spells for the field ``name`` of ``kind``, as far as it spells one: its rule is still to be kept."""
    default, of = kind.__dataclass_fields__[name].default, type_of(kind, name)
    if not text.strip() and default is not None and is_optional(kind, name):
        return None  # where None is the default, nothing has to spell it
    if of is tuple:
        pieces = [piece.strip() for piece in text.split(",")] if text.strip() else []
        return tuple(pieces if holds_texts(kind, name) else map(read_number, pieces))
    if of is bool:
        return {"1": True, "true": True, "0": False, "false": False}.get(text.lower(), text)
    return read_number(text) if of in (int, float) else text


def to_address(kind: type[Ruled] = Settings, **values: Any) -> dict[str, str]:
    """The query part of an address, as a dict of texts: what differs from the defaults among these fields.

    They are fields of Settings, or another ``kind``, and of a Display.

    >>> to_address(num_heads=4, padding=(3,), causal=True, cell=(None, 9))
    {'num_heads': '4', 'causal': '1', 'cell': ',9'}
    """
    defaults = {f.name: f.default for one in (kind, *DISPLAYED) for f in fields(one)}
    return {name: spell(value) for name, value in values.items() if value != defaults[name]}


def from_address(query: Mapping[str, str], *kinds: type[Ruled]) -> tuple[*tuple[dict[str, Any], ...], list[Wrong]]:
    """What ``query`` (name → text) spells: the fields of each of these ``kinds``, a dict each, and last a Wrong for each bad value.

    A bad value, or a name that none has, falls back alone: the others stand. Rules between fields are not checked here.
    """
    found: dict[type[Ruled], dict[str, Any]] = {kind: {} for kind in kinds}
    owner, strange = owners(*kinds), list[str]()
    query, notes = short(query)
    for name, text in query.items():
        if name not in owner:
            strange.append(name)
            continue
        try:
            found[owner[name]][name] = read(owner[name], name, text)
        except Wrong as wrong:
            notes.append(wrong)
    notes += [unknown(name, query[name], *kinds) for name in strange[:MOST_UNKNOWN]]
    if len(strange) > MOST_UNKNOWN:
        notes.append(
            Wrong("address", f"{len(strange)} unknown names", f"{len(strange) - MOST_UNKNOWN} more names are no settings.")
        )
    return *found.values(), notes


@overload
def display_from_address(query: Mapping[str, str]) -> tuple[Display, list[Wrong]]: ...
@overload
def display_from_address(query: Mapping[str, str], kind: type[Ruled], /) -> tuple[dict[str, Any], Display, list[Wrong]]: ...
def display_from_address(
    query: Mapping[str, str], *kinds: type[Ruled]
) -> tuple[*tuple[dict[str, Any], ...], Display, list[Wrong]]:
    """What ``query`` spells of these ``kinds``, a dict each, then the Display, and a Wrong for each value that is bad.

    See ``from_address``.
    """
    *found, notes = from_address(query, *kinds, *DISPLAYED)
    values = {name: value for own in found[len(kinds) :] for name, value in own.items()}
    return *found[: len(kinds)], Display().changed(**values), notes


def short(query: Mapping[str, str]) -> tuple[dict[str, str], list[Wrong]]:
    """(what is read of ``query``, a Wrong for each text that is left out): the longest ones go where it is longer than LONGEST_ADDRESS."""
    left, notes = dict(query), list[Wrong]()
    length = sum(len(name) + len(text) for name, text in query.items())
    for name, text in sorted(query.items(), key=lambda pair: -len(pair[0]) - len(pair[1])):
        if length <= LONGEST_ADDRESS:
            break
        del left[name]
        length -= len(name) + len(text)
        rule = f"makes the address too long: up to {LONGEST_ADDRESS:,} characters of one are read. Type long text on the page instead."
        notes.append(Wrong(name if len(name) <= LONGEST_NAME else "address", f"{len(text):,} characters", rule))
    return left, notes[:MOST_UNKNOWN]


def unknown(name: str, value: object, *kinds: type[Ruled]) -> Wrong:
    """A Wrong for a ``name`` that none of these dataclasses has, with the name that was likely meant."""
    names = [f.name for kind in kinds for f in fields(kind)]
    close = difflib.get_close_matches(name, names, 1) if len(name) <= LONGEST_NAME else []
    return Wrong(name, value, f"is no setting; is {close[0]} meant?" if close else "is no setting.")


def to_json(settings: Ruled) -> str:
    """Every field, so that a file still means the same when a default changes."""
    return json.dumps(asdict(settings), indent=2, ensure_ascii=False)


@overload
def from_json(text: str) -> Settings: ...
@overload
def from_json(text: str, kind: type[R]) -> R: ...
def from_json(text: str, kind: type[Ruled] = Settings) -> Ruled:
    """The Settings (or View) that ``to_json`` wrote; raises Wrong for a field that is unknown or breaks its rule."""
    return from_values(parse_json("settings", text), kind)


@overload
def from_values(values: object) -> Settings: ...
@overload
def from_values(values: object, kind: type[R]) -> R: ...
def from_values(values: object, kind: type[Ruled] = Settings) -> Ruled:
    """Settings, or another ``kind``, of values as JSON gives them; raises Wrong for a field that is unknown or breaks its rule."""
    if not isinstance(values, dict):
        raise Wrong("settings", values, "must be a JSON object of settings by name.")
    for name, value in values.items():
        if name not in kind.__dataclass_fields__:
            raise unknown(name, value, kind)
    return kind(**{name: tuple(value) if isinstance(value, list) else value for name, value in values.items()})
