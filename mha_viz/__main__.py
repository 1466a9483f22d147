"""``python -m mha_viz``: the app from a command line."""

import argparse
import os
import sys
from pathlib import Path

APP = Path(__file__).parents[1] / "app.py"


FILE = "MHA_VIZ_FILE"  # in the environment: the absolute path of the file to open, for the app


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="python -m mha_viz", description="MHA Explorer: open multi-head attention up.")
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run", help="serve the app on this machine and print its address")
    run.add_argument("file", nargs="?", type=Path, help="a recording, weights, attention maps or a list of tokens to open in it")
    run.add_argument("--port", type=int, default=8501, help="port to serve on (default: %(default)s)")
    options = parser.parse_args(arguments)
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # before torch: its threads must not spin against other sessions'
    if options.file is not None:
        check_file(run, options.file)
        os.environ[FILE] = str(options.file.absolute())
    os.chdir(APP.parent)  # where Streamlit finds .streamlit/config.toml: local address, no usage statistics
    command = [sys.executable, "-m", "streamlit", "run", str(APP), f"--server.port={options.port}"]
    os.execv(sys.executable, command)


def check_file(parser, path):
    """Ends with status 2 and the reason where the file cannot be opened, before a server is started for it."""
    from mha_viz.core.rules import Wrong
    from mha_viz.sources.files import look

    try:
        look(path.name, path)
    except Wrong as wrong:
        parser.exit(2, f"{parser.prog}: {wrong}\n")


if __name__ == "__main__":
    main()
