"""``run``: serve the app."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import TYPE_CHECKING

from mha_viz.commands.options import whole_number
from mha_viz.core.rules import Wrong
from mha_viz.settings.environment import CLASS, FILE, MODELS_FOLDERS
from mha_viz.settings.start import server_command

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from typing import NoReturn


PORT, MOST = 8501, 65_535
ABOUT = "serve the app on this machine and print its address"


def options(parser: ArgumentParser) -> None:
    parser.add_argument(
        "file", nargs="?", type=Path, help="a recording, weights, attention maps or a list of tokens to open in it"
    )
    parser.add_argument("--port", type=whole_number, default=PORT, help="port to serve on (default: %(default)s)")
    parser.add_argument(
        "--models-folder",
        type=Path,
        action="append",
        default=[],
        metavar="DIR",
        help="a folder in which addresses may name pretrained models; may be given again. Without, an address opens no folder",
    )
    about_class = "while serving a class: leave out what takes the processor from everybody, training and measuring"
    parser.add_argument("--class", dest="serves_class", action="store_true", help=about_class)


def run(options: Namespace) -> NoReturn:
    """Becomes the server; raises Wrong where the file cannot be opened, a folder is none or the port cannot be had, before one is
    started for it."""
    check_port(options.port)
    if options.serves_class:
        os.environ[CLASS] = "1"
    folders = [str(folder.expanduser().resolve()) for folder in options.models_folder]
    for folder in folders:
        if not Path(folder).is_dir() or os.pathsep in folder:
            raise Wrong("models-folder", folder, "must be a folder that exists.")
    if folders:
        os.environ[MODELS_FOLDERS] = os.pathsep.join(folders)
    if options.file is not None:
        from mha_viz.sources.files import look

        look(options.file.name, options.file)
        os.environ[FILE] = str(options.file.absolute())
    command = server_command(options.port)
    os.execv(command[0], command)


def check_port(port: int) -> None:
    """Raises Wrong for a number that is no port, and for one that cannot be served on, with the next that can."""
    if not 1 <= port <= MOST:
        raise Wrong("port", port, f"must be a whole number from 1 to {MOST}.", [{"port": PORT}])
    refused = why_refused(port)
    if refused:
        free = next((other for other in range(max(port, 1024) + 1, min(port + 100, MOST + 1)) if not why_refused(other)), None)
        raise Wrong("port", port, f"cannot be served on: {refused}.", [{"port": free}] if free else [])


def why_refused(port: int) -> str | None:
    try:
        socket.create_server(("localhost", port)).close()
    except OSError as error:
        return os.strerror(error.errno) if error.errno else str(error)
    return None
