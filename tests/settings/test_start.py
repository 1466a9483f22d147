"""The command that serves the app."""

import sys

from mha_viz.settings.start import SCRIPT, server_command


def test_the_app_is_served_from_any_folder_and_imports_nothing_of_it():
    python, safe, option, program, *rest = server_command(8600)
    assert (python, safe, option) == (sys.executable, "-P", "-c")
    assert 'main(prog_name="streamlit")' in program and rest == ["run", str(SCRIPT), "--server.port=8600"]
