"""What is changed in the layers of a model, as one line of text: for an address, a command and a person."""

from mha_viz.core.intervention import Intervention
from mha_viz.core.rules import Wrong, whole
from mha_viz.core.typed_number import read_number

EXAMPLE = "1:2=zero 1:keys=3,4 0:temperature=0.5"
MOST_LAYERS = 1000


def read_interventions(text, argument="interventions"):
    """One Intervention per layer, from the first to the last that is named.

    The text holds parts "LAYER:WHAT" between spaces, where WHAT is a head and the way to put it off, the hidden keys, or the
    temperature: "1:2=zero 1:keys=3,4 0:temperature=0.5". Raises Wrong with the part that is none of this.
    """
    if not isinstance(text, str):
        raise Wrong(argument, text, f"must be text, as in “{EXAMPLE}”.", [{argument: ""}])
    layers = {}  # layer → {"off": {head: way}, "hidden_keys": …, "temperature": …}, each part looked at once and by itself
    for part in text.split():
        try:
            layer, name, value = _read(part)
            held = layers.setdefault(layer, {})
            if name != "off":
                held[name] = value
                continue
            (head, way), off = value, held.setdefault("off", {})
            if head in off:
                Intervention(((head, off[head]), value))  # which says that a head is named twice
            off[head] = way
        except ValueError as error:
            rule = f"must be written LAYER:WHAT, as in “{EXAMPLE}”"
            rule = f"{rule}: {error}" if isinstance(error, Wrong) else f"{rule}."
            others = " ".join(other for other in text.split() if other != part)
            raise Wrong(argument, part, rule, [{argument: others}]) from None
    return tuple(Intervention(**layers.get(layer, {})) for layer in range(max(layers, default=-1) + 1))


def _read(part):
    """(layer, the field of Intervention that a part gives, its value)."""
    place, what = part.split(":")
    name, value = what.split("=")
    layer = whole("layer", read_number(place), 0, MOST_LAYERS - 1)
    if name == "keys":
        return layer, "hidden_keys", Intervention(hidden_keys=tuple(map(read_number, value.split(",")))).hidden_keys
    if name == "temperature":
        return layer, "temperature", Intervention(temperature=read_number(value)).temperature
    return layer, "off", Intervention(((read_number(name), value),)).off[0]


def write_interventions(interventions):
    """The text that ``read_interventions`` reads; equal interventions give equal texts, and those that change nothing none."""
    parts = []
    for layer, change in enumerate(interventions):
        parts += [f"{layer}:{head}={way}" for head, way in change.off]
        if change.hidden_keys:
            parts.append(f"{layer}:keys={','.join(map(str, change.hidden_keys))}")
        if change.temperature != 1:
            parts.append(f"{layer}:temperature={change.temperature!r}")
    return " ".join(parts)


def typed_interventions(argument, value):
    """The rule of interventions that are typed: brought into the form of ``write_interventions``. Takes Interventions as well."""
    given = value if isinstance(value, tuple | list) and all(isinstance(part, Intervention) for part in value) else None
    return write_interventions(read_interventions(value, argument) if given is None else given)


OFF = {
    "zero": "is off: its output is 0",
    "mean": "says the average of the batch, whatever is asked",
    "uniform": "does not choose: equal weight on every key that a query may see",
}


def told(interventions):
    """What is changed, a sentence for each change."""
    sentences = []
    for layer, change in enumerate(interventions):
        sentences += [f"Layer {layer}, head {head} {OFF[way]}." for head, way in change.off]
        if change.hidden_keys:
            keys = ", ".join(map(str, change.hidden_keys))
            sentences.append(f"Layer {layer}: no query reads key{'s' if len(change.hidden_keys) > 1 else ''} {keys}.")
        if change.temperature != 1:
            sentences.append(f"Layer {layer}: the scores are divided by {change.temperature:g} before the softmax.")
    return tuple(sentences)
