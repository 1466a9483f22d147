"""A pitfall and the values of its knobs as one text, for an address: ``window-off-by-one&window=4``."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, urlencode

from mha_viz.analysis.pitfalls import PITFALLS, Pitfall
from mha_viz.core.rules import Wrong
from mha_viz.core.typed_number import read_number

if TYPE_CHECKING:
    from mha_viz.analysis.pitfalls.pitfall import Value


def spelled(name: str, values: Mapping[str, Value]) -> str:
    """The pitfall ``name`` with those ``values`` of its knobs that are not the defaults."""
    changed = {
        knob.name: values[knob.name] for knob in PITFALLS[name].knobs if values.get(knob.name, knob.default) != knob.default
    }
    return f"{name}&{urlencode(changed)}" if changed else name


def read_pitfall(text: str) -> tuple[Pitfall, dict[str, Value]]:
    """(Pitfall, the values of all its knobs by name) that ``spelled`` wrote; the first one for "".

    Raises Wrong where there is no such pitfall or knob, or a value breaks its rule.
    """
    name, _, rest = text.partition("&")
    name = name or next(iter(PITFALLS))
    if name not in PITFALLS:
        close = difflib.get_close_matches(name, PITFALLS, 1)
        raise Wrong("pitfall", name, f"is none of the {len(PITFALLS)}.", [{"pitfall": one} for one in close])
    pitfall = PITFALLS[name]
    knobs = {knob.name: knob for knob in pitfall.knobs}
    values = {knob: one.default for knob, one in knobs.items()}
    for knob, value in parse_qsl(rest, keep_blank_values=True):
        if knob not in knobs:
            raise Wrong(knob, value, f"is nothing that {name} has; it has {', '.join(knobs) or 'nothing to set'}.")
        values[knob] = knobs[knob].check(value if knobs[knob].choices else read_number(value))
    return pitfall, values
