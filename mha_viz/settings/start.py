"""Where the app starts: its script, and beside it .streamlit, which says what Streamlit is to be set to.

A checkout has both at its top, for ``streamlit run app.py``. A wheel holds these same two in ``mha_viz/start``: pyproject.toml puts them
there, so that there is one of each to edit.
"""

import sys
from pathlib import Path

_PACKAGE = Path(__file__).parents[1]
_OF_WHEEL = _PACKAGE / "start"
INSTALLED = _OF_WHEEL.is_dir()  # from a wheel, and no checkout
SCRIPT = (_OF_WHEEL if INSTALLED else _PACKAGE.parent) / "app.py"
_STREAMLIT = """
try:
    from streamlit.web.cli import main
    main(prog_name="streamlit")
except KeyboardInterrupt:  # while it is being imported: later it stops by itself
    raise SystemExit(130)
"""


def server_command(port: int) -> list[str]:
    """The command that serves the app on ``port`` from any folder. Modules of the folder it runs in (-P) are not imported."""
    return [sys.executable, "-P", "-c", _STREAMLIT, "run", str(SCRIPT), f"--server.port={port}"]
