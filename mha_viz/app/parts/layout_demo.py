"""The wrong layout, tried: what comes back when a batch-first tensor is fed to a layer that believes sequence first."""

import streamlit as st

from mha_viz.core.decimals import prose


def layout_demo(trace):
    """The button that opens the demonstration."""
    if st.button(
        "Wrong layout?", help="Give this batch-first tensor to a layer with batch_first=False, and see what comes back."
    ):
        demonstration(trace)


@st.dialog("The wrong layout", width="large")
def demonstration(trace):
    from mha_viz.analysis.layout import wrong_layout

    tried = wrong_layout(trace.layer, trace.batch)
    N, L = tried.given[:2]
    st.markdown(
        f"The tensor {shape(tried.given)} is batch first: N {N}, L {L}. A layer with `batch_first=False` takes it for L {N}, N {L}."
    )
    if tried.error:
        st.markdown("**PyTorch notices**, since a mask no longer fits:")
        st.code(tried.error, language=None, wrap_lines=True)
        st.markdown("Without the masks nothing is said, and this comes back:" if tried.output else "")
    if tried.output is None:
        return
    st.markdown(
        "| | wrong layout | right layout |\n|---|---|---|\n"
        f"| output | {shape(tried.output)} | {shape(tried.right_output)} |\n"
        f"| averaged weights | {shape(tried.weights)} | {shape(tried.right_weights)} |"
    )
    if tried.weights == tried.right_weights:
        st.markdown(
            f"**N = L: the shapes are the same and give nothing away.** The answer is wrong all the same: {size_of_error(tried)}."
        )
    else:
        st.markdown(
            f"**The weights give it away**: their shape is not [N, L, S]. The numbers are wrong too: {size_of_error(tried)}."
        )
    st.markdown(leaks_in_words(tried.leaks))
    st.markdown(leak_table(tried.leaks))
    st.caption(
        "How far each item's output moves (largest absolute change) when 1 is added to every number of one item. "
        "In the right layout only its own does."
    )


def shape(sizes):
    return "`[" + ", ".join(map(str, sizes)) + "]`"


def size_of_error(tried):
    return (
        f"off by up to {prose(tried.largest_error, '.3g')}, where the right output reaches {prose(tried.largest_output, '.3g')}"
    )


def leaks_in_words(leaks):
    """Which batch items leak into which, as measured."""
    pairs = [f"{j} → {', '.join(str(i) for i in range(len(leaks)) if i != j and leaks[j, i] > 0)}" for j in range(len(leaks))]
    leaking = [pair for pair in pairs if not pair.endswith("→ ")]
    return (
        f"**Batch items leak into each other**: {'; '.join(leaking)}." if leaking else "No batch item leaks into another here."
    )


def leak_table(leaks):
    """How far each item moves when one is changed, as a Markdown table: a row per changed item."""
    items = range(len(leaks))
    lines = ["|" + "".join(f" | moves item {i}" for i in items) + " |", "|---" * (len(leaks) + 1) + "|"]
    lines += [
        f"| change item {j} | " + " | ".join(f"**{moved:.4f}**" if moved else "0" for moved in leaks[j]) + " |" for j in items
    ]
    return "\n".join(lines)
