"""``python -m mha_viz``: the app, and what it can do, from a command line."""

import argparse
import os
import sys

from mha_viz.commands import export, profile, quality, serve, train, validate
from mha_viz.core.rules import Wrong

COMMANDS = {"run": serve, "train": train, "validate": validate, "profile": profile, "quality": quality, "export": export}


def main(arguments=None):
    """The exit status: 0 where all went well, 2 where something given is wrong, which is said."""
    parser = argparse.ArgumentParser(prog="python -m mha_viz", description="MHA Explorer: open multi-head attention up.")
    commands = parser.add_subparsers(dest="command", required=True)
    for name, command in COMMANDS.items():
        command.options(commands.add_parser(name, help=command.ABOUT))
    given = parser.parse_args(arguments)
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # before torch: its threads must not spin against other sessions'
    try:
        return COMMANDS[given.command].run(given)
    except Wrong as wrong:
        print(f"{parser.prog} {given.command}: {wrong}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
