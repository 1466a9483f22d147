"""``mha-viz``, or ``python -m mha_viz``: the app, and what it can do, from a command line."""

from __future__ import annotations

import _thread
import argparse
import os
import signal
import sys
import threading
import time
from collections.abc import Sequence
from traceback import walk_stack
from types import FrameType

from mha_viz import __version__

STOPPED, UNREAD = 130, 141  # what a shell calls the end by Ctrl-C, and that of a program whose output nobody reads any more


def console() -> int:
    """``mha-viz``, where the package is installed."""
    return listening("mha-viz")


def listening(program: str) -> int:
    """The exit status of ``program``, run with the arguments of this process, which hears every Ctrl-C.

    One that falls into an import in C code comes out of it as an ImportError: whatever is raised after a Ctrl-C is its end.
    """
    sys.unraisablehook = hear_again
    heard: list[int] = []

    def hear(number: int, frame: FrameType | None) -> None:
        heard.append(number)
        signal.default_int_handler(number, frame)

    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # else whoever started this wants it to go on
        signal.signal(signal.SIGINT, hear)
    try:
        return main(program=program)
    except Exception:
        if not heard:
            raise
        print(f"{program}: stopped", file=sys.stderr)
        return STOPPED


def main(arguments: Sequence[str] | None = None, program: str = "python -m mha_viz") -> int:
    """The exit status of the command that ``arguments`` name, those of this process where None.

    It is 0 where all went well, 1 where a check fails, 2 where something given is wrong, which is said; 130 where somebody stopped it, and
    141 where whoever read its output has gone, as `head` does. What is said begins with ``program``.
    """
    command = program
    try:
        parser = parser_of_commands(program)
        given = parser.parse_args(arguments)
        command = f"{program} {given.command}"
        try:
            return status_of(given, command)
        finally:
            sys.stdout.flush()  # here, where it can be said that it cannot be written
    except KeyboardInterrupt:
        print(f"{command}: stopped", file=sys.stderr)
        return STOPPED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # Python flushes once more at its end
        return UNREAD
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        print(f"{command}: {where}{error.strerror or error}", file=sys.stderr)
        if not error.filename:  # what is printed
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 2


def parser_of_commands(program: str) -> argparse.ArgumentParser:
    """The parser of what ``program`` is told: a command, and the options of each."""
    from mha_viz.commands import COMMANDS

    parser = argparse.ArgumentParser(prog=program, description="MHA Explorer: open multi-head attention up.")
    parser.add_argument("--version", action="version", version=f"mha-viz {__version__}")
    commands = parser.add_subparsers(dest="command", required=True)
    for name, command in COMMANDS.items():
        command.options(commands.add_parser(name, help=command.ABOUT))
    return parser


def status_of(given: argparse.Namespace, command: str) -> int:
    """The exit status of what is ``given``; what is said begins with ``command``."""
    from mha_viz.commands import COMMANDS
    from mha_viz.core.memory import ran_out
    from mha_viz.core.rules import Wrong

    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # before torch: its threads must not spin against other sessions'
    try:
        status: int = COMMANDS[given.command].run(given)
        return status
    except Wrong as wrong:
        print(f"{command}: {wrong}", file=sys.stderr)
        return 2
    except (MemoryError, RuntimeError) as error:
        if not ran_out(error):
            raise
        about = "memory ran out. Shorter sequences, fewer heads, items or numbers of a token (embed_dim) need less."
        print(f"{command}: {about}", file=sys.stderr)
        return 2


def hear_again(unraisable: sys.UnraisableHookArgs) -> None:
    """Ctrl-C that falls into a callback of Python's own, as in imports, is printed and lost there: it is sent again."""
    if issubclass(unraisable.exc_type, KeyboardInterrupt):
        threading.Thread(target=_interrupt_once_left, args=(threading.get_ident(),), daemon=True).start()
    else:
        sys.__unraisablehook__(unraisable)


def _interrupt_once_left(thread: int) -> None:
    """Interrupt the main thread once this thread has left ``hear_again``: within it, it would be lost again."""
    while any(frame.f_code is hear_again.__code__ for frame, _ in walk_stack(sys._current_frames()[thread])):
        time.sleep(0.001)
    _thread.interrupt_main()


if __name__ == "__main__":
    sys.exit(listening("python -m mha_viz"))
