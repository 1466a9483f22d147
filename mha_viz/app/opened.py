"""What a session has open: its files, and the models that were trained in it. The server counts them until they are closed."""

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

from mha_viz.app.visitor import visitor
from mha_viz.core.budget import BUDGET
from mha_viz.core.memory import readable_size
from mha_viz.core.rules import Wrong
from mha_viz.core.trace import bytes_held
from mha_viz.stored.stored import room_to_read


def reading(name, size):
    """Within it a file of ``size`` bytes can be read and opened. Raises Wrong, with what is open, where there is no room for that."""
    return room_to_read(name, size, no_room, visitor())


def keep_open(name, found, answers, recording, size=0):
    """Have this Recording open as ``name``, of ``size`` bytes at least; raises Wrong, with what is open, where there is no room for it.

    ``found`` and ``answers`` are what it was made of, see ``mha_viz.sources.files``.
    """
    opened = st.session_state.setdefault("opened", {})
    count(name, max(size, bytes_held(recording.traces)))
    opened[name] = found, answers, recording
    hold()


def hold():
    """Have the visitor hold all that is open: the maps that were made of it go with the connection, the files when nobody comes back."""
    opened = st.session_state.get("opened", {})
    visitor().holds["opened"] = tuple(trace for _, _, one in opened.values() for trace in one.traces)


def count(name, size, argument="file"):
    """Let ``size`` bytes be counted for what this session calls ``name``; raises Wrong, with what is open, where that is too much."""

    def refuse(room):
        raise no_room(name, size, room, argument)

    BUDGET.open(session(), name, size, refuse)


def close(name):
    """Let go of what is open as ``name``."""
    st.session_state.get("opened", {}).pop(name, None)
    hold()
    BUDGET.close(session(), name)


def no_room(name, size, room, argument="file"):
    """The Wrong for a file that there is no room for, with what could be closed."""
    mine = {other: held for other, held in BUDGET.opened_by(session()).items() if other != name}
    rule = f"would take {readable_size(size)}, and {readable_size(max(room, 0))} may be used."
    if mine:
        listed = ", ".join(
            f"{other} ({readable_size(held)})" for other, held in sorted(mine.items(), key=lambda one: -one[1])[:4]
        )
        rule = f"{rule} You have {readable_size(sum(mine.values()))} open: {listed}. Close what you no longer need."
    elif BUDGET.opened:
        rule = f"{rule} Others have {readable_size(BUDGET.opened)} open on this server: try again once they have left."
    return Wrong(argument, name, rule)


def session():
    return get_script_run_ctx().session_id
