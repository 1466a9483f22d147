"""``run``: serve the app."""

import os
import sys
from pathlib import Path

from mha_viz.core.rules import Wrong
from mha_viz.settings.environment import CLASS, FILE, MODELS_FOLDERS

APP = Path(__file__).parents[2] / "app.py"
ABOUT = "serve the app on this machine and print its address"


def options(parser):
    parser.add_argument(
        "file", nargs="?", type=Path, help="a recording, weights, attention maps or a list of tokens to open in it"
    )
    parser.add_argument("--port", type=int, default=8501, help="port to serve on (default: %(default)s)")
    parser.add_argument(
        "--models-folder", type=Path, action="append", default=[], metavar="DIR",
        help="a folder in which addresses may name pretrained models; may be given again. Without, an address opens no folder",
    )  # fmt: skip
    about_class = "while serving a class: leave out what takes the processor from everybody, training"
    parser.add_argument("--class", dest="serves_class", action="store_true", help=about_class)


def run(options):
    """Becomes the server; raises Wrong where the file cannot be opened, or a folder is none, before one is started for it."""
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
    os.chdir(APP.parent)  # where Streamlit finds .streamlit/config.toml: local address, no usage statistics
    command = [sys.executable, "-m", "streamlit", "run", str(APP), f"--server.port={options.port}"]
    os.execv(sys.executable, command)
