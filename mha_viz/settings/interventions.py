"""What is changed in the layers of a model, as one line of text: for an address, a command and a person."""

from collections.abc import Iterable
from typing import Any, TypedDict

from mha_viz.core.intervention import WAYS, Intervention, Way
from mha_viz.core.rules import Wrong, one_of, whole
from mha_viz.core.typed_number import read_number

EXAMPLE = "1:2=zero 1:keys=3,4 0:temperature=0.5"
MOST_LAYERS = 1000


class Given(TypedDict, total=False):
    """What is given of an Intervention."""

    off: dict[int, Way]
    hidden_keys: tuple[int, ...]
    temperature: float


def read_interventions(text: str, argument: str = "interventions") -> tuple[Intervention, ...]:
    """One Intervention per layer, from the first to the last that is named.

    The text holds parts "LAYER:WHAT" between spaces, where WHAT is a head and the way to put it off, the hidden keys, or the
    temperature: "1:2=zero 1:keys=3,4 0:temperature=0.5". Raises Wrong with the part that is none of this.

    >>> read_interventions("1:2=zero")
    (Intervention(off=(), hidden_keys=(), temperature=1.0), Intervention(off=((2, 'zero'),), hidden_keys=(), temperature=1.0))
    """
    if not isinstance(text, str):
        raise Wrong(argument, text, f"must be text, as in “{EXAMPLE}”.", [{argument: ""}])
    layers: dict[int, Given] = {}
    for part in text.split():  # each looked at once and by itself
        try:
            layer, given = _read(part)
            held = layers.setdefault(layer, {})
            if "off" not in given:
                held.update(given)
                continue
            off = held.setdefault("off", {})
            for head, way in given["off"].items():
                if head in off:
                    Intervention(((head, off[head]), (head, way)))  # which says that a head is named twice
                off[head] = way
        except ValueError as error:
            rule = f"must be written LAYER:WHAT, as in “{EXAMPLE}”"
            rule = f"{rule}: {error}" if isinstance(error, Wrong) else f"{rule}."
            others = " ".join(other for other in text.split() if other != part)
            raise Wrong(argument, part, rule, [{argument: others}]) from None
    return tuple(Intervention(**layers.get(layer, {})) for layer in range(max(layers, default=-1) + 1))


def _read(part: str) -> tuple[int, Given]:
    """The layer that a part names, and what it gives of its Intervention."""
    place, what = part.split(":")
    name, value = what.split("=")
    layer = whole("layer", read_number(place), 0, MOST_LAYERS - 1)
    if name == "keys":
        keys: list[Any] = [read_number(key) for key in value.split(",")]  # Intervention refuses what is no number
        return layer, {"hidden_keys": Intervention(hidden_keys=keys).hidden_keys}
    if name == "temperature":
        temperature: Any = read_number(value)
        return layer, {"temperature": Intervention(temperature=temperature).temperature}
    return layer, {"off": dict(Intervention(((whole("off", read_number(name), 0), one_of("off", value, WAYS)),)).off)}


def write_interventions(interventions: Iterable[Intervention]) -> str:
    """The text that ``read_interventions`` reads; equal interventions give equal texts, and those that change nothing none."""
    parts = []
    for layer, change in enumerate(interventions):
        parts += [f"{layer}:{head}={way}" for head, way in change.off]
        if change.hidden_keys:
            parts.append(f"{layer}:keys={','.join(map(str, change.hidden_keys))}")
        if change.temperature != 1:
            parts.append(f"{layer}:temperature={change.temperature!r}")
    return " ".join(parts)


def typed_interventions(argument: str, value: Any) -> str:
    """The rule of interventions that are typed: brought into the form of ``write_interventions``. Takes Interventions as well."""
    given = value if isinstance(value, tuple | list) and all(isinstance(part, Intervention) for part in value) else None
    return write_interventions(read_interventions(value, argument) if given is None else given)


OFF: dict[Way, str] = {
    "zero": "is off: its output is 0",
    "mean": "says the average of the batch, whatever is asked",
    "uniform": "does not choose: equal weight on every key that a query may see",
}


def told(interventions: Iterable[Intervention]) -> tuple[str, ...]:
    """What is changed, a sentence for each change.

    >>> told(read_interventions("1:2=zero 0:temperature=0.5"))
    ('Layer 0: the scores are divided by 0.5 before the softmax.', 'Layer 1, head 2 is off: its output is 0.')
    """
    sentences = []
    for layer, change in enumerate(interventions):
        sentences += [f"Layer {layer}, head {head} {OFF[way]}." for head, way in change.off]
        if change.hidden_keys:
            keys = ", ".join(map(str, change.hidden_keys))
            sentences.append(f"Layer {layer}: no query reads key{'s' if len(change.hidden_keys) > 1 else ''} {keys}.")
        if change.temperature != 1:
            sentences.append(f"Layer {layer}: the scores are divided by {change.temperature:g} before the softmax.")
    return tuple(sentences)
