"""What if: heads off, tokens masked, another temperature. The same controls for every source."""

import streamlit as st

from mha_viz.app.drawing import field, heard
from mha_viz.app.number_field import number_field, typed, written
from mha_viz.app.parts.messages import say_with_mends
from mha_viz.core.intervention import WAYS, Intervention
from mha_viz.core.rules import Wrong
from mha_viz.core.typed_number import read_number
from mha_viz.settings.interventions import read_interventions, write_interventions

WAY_WORDS = {"zero": "zero: says nothing", "mean": "mean: always says the same", "uniform": "uniform: reads all alike"}


def what_if(text, num_heads, change, about):
    """Draw the controls of what ``text`` says is changed; ``change(text)`` is called with what a person makes of it, as long as ``about()``
    is the same.

    ``num_heads`` is the number of heads of each layer that can be changed, by the number of the layer.
    """
    state, of = st.session_state, (text, *num_heads.items())
    given, waiting = dict(enumerate(read_interventions(text))), state.get("typed_what_if", {})
    if waiting.get("of") != of:  # another model, or another address
        waiting, state.wrong_what_if = {}, None
    first = next((given[layer] for layer in num_heads if layer in given and given[layer] != Intervention()), Intervention())
    off = {(layer, head): way for layer, one in given.items() for head, way in one.off}

    def put(name, widget, label, value, **options):
        return field(
            widget, label, f"what_if_{name}", waiting.get(name, value), take, (num_heads, change, text), about, **options
        )

    several = len(num_heads) > 1
    heads = [(layer, head) for layer, count in num_heads.items() for head in range(count)]
    put(
        "off",
        st.pills,
        "heads off",
        [at for at in off if at in heads],
        options=heads,
        selection_mode="multi",
        format_func=lambda at: f"{at[0]}·{at[1]}" if several else str(at[1]),
        help="layer · head" if several else None,
    )
    put("way", st.selectbox, "put off by", next(iter(off.values()), WAYS[0]), options=list(WAYS), format_func=WAY_WORDS.get)
    keys = ", ".join(map(str, first.hidden_keys))
    where = "in any layer" if several else "in this layer"
    put(
        "keys",
        st.text_input,
        "tokens masked",
        keys,
        placeholder="none",
        help=f"Positions that no query may read {where}: “3, 4”.",
    )
    put(
        "temperature",
        number_field,
        "temperature",
        first.temperature,
        help="Divides the scores before the softmax: below 1 sharper, above 1 flatter.",
    )
    if state.get("wrong_what_if") is not None:
        say_with_mends(state.wrong_what_if, lambda right: mend(right, num_heads, change, text), key="wrong_what_if", of=about)
    if text:
        st.button("Undo all", on_click=heard(undo, of=about), args=(change,))
        st.caption("Pin the model as it is as A first, and see A, B and B − A.")


def take(_, num_heads, change, text):
    """Make the interventions that the widgets say; what is wrong stays in them to be mended."""
    state = st.session_state
    off, way, keys, temperature = (state[f"what_if_{name}"] for name in ("off", "way", "keys", "temperature"))
    temperature = typed(temperature)
    try:
        hidden = tuple(map(read_number, keys.replace(",", " ").split()))
        layers = [Intervention()] * (max(num_heads) + 1)
        for layer in num_heads:
            layers[layer] = Intervention(tuple((head, way) for at, head in off if at == layer), hidden, temperature)
        made = write_interventions(layers)
        state.typed_what_if = {"of": (made, *num_heads.items()), "way": way}  # which says nothing while no head is off
        state.wrong_what_if = None
        change(made)
    except Wrong as wrong:
        state.wrong_what_if = named(wrong, keys)
        of = text, *num_heads.items()
        state.typed_what_if = {"of": of, "off": off, "way": way, "keys": keys, "temperature": temperature}


def named(wrong, keys):
    """The Wrong by the label of its control."""
    if wrong.argument == "interventions" and "names key" in wrong.rule:
        return Wrong("tokens masked", keys, wrong.rule, wrong.nearest)
    if wrong.argument == "hidden_keys":
        right = [{"tokens masked": ", ".join(map(str, change["hidden_keys"]))} for change in wrong.nearest]
        return Wrong("tokens masked", keys, wrong.rule, right)
    return wrong


def mend(right, num_heads, change, text):
    """Let the controls hold what was offered, and take that."""
    state = st.session_state
    if "interventions" in right:
        state.wrong_what_if, state.typed_what_if = None, {}
        change(right["interventions"])
        return
    if "tokens masked" in right:
        state.what_if_keys = right["tokens masked"]
    if "temperature" in right:
        state.what_if_temperature = written(right["temperature"])
    if "off" in right:
        state.what_if_off = [(layer, head) for head, _ in right["off"] for layer in num_heads]
    take(None, num_heads, change, text)


def undo(change):
    st.session_state.wrong_what_if, st.session_state.typed_what_if = None, {}
    change("")
