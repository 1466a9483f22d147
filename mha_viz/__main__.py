"""``python -m mha_viz``: the app from a command line."""

import argparse
import os
import sys
from pathlib import Path

APP = Path(__file__).parents[1] / "app.py"


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="python -m mha_viz", description="MHA Explorer: open multi-head attention up.")
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run", help="serve the app on this machine and print its address")
    run.add_argument("--port", type=int, default=8501, help="port to serve on (default: %(default)s)")
    options = parser.parse_args(arguments)
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # before torch: its threads must not spin against other sessions'
    os.chdir(APP.parent)  # where Streamlit finds .streamlit/config.toml: local address, no usage statistics
    command = [sys.executable, "-m", "streamlit", "run", str(APP), f"--server.port={options.port}"]
    os.execv(sys.executable, command)


if __name__ == "__main__":
    main()
