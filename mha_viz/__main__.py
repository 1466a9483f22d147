"""``python -m mha_viz``: the app from a command line."""

import argparse
import os
import sys
from pathlib import Path

APP = Path(__file__).parents[1] / "app.py"


CLASS = "MHA_VIZ_CLASS"  # in the environment: set while a class is served
FILE = "MHA_VIZ_FILE"  # in the environment: the absolute path of the file to open, for the app


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="python -m mha_viz", description="MHA Explorer: open multi-head attention up.")
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run", help="serve the app on this machine and print its address")
    run.add_argument("file", nargs="?", type=Path, help="a recording, weights, attention maps or a list of tokens to open in it")
    run.add_argument("--port", type=int, default=8501, help="port to serve on (default: %(default)s)")
    about_class = "while serving a class: leave out what takes the processor from everybody, training"
    run.add_argument("--class", dest="serves_class", action="store_true", help=about_class)
    train = commands.add_parser("train", help="train a shipped model anew and write its weights and their record")
    train.add_argument("name", help="which model: induction, reverse-or-shift, look-both-ways-1, -2 or -32")
    train.add_argument("--seed", type=int, help="of its first numbers and its sequences (default: the shipped one's)")
    train.add_argument("--steps", type=int, help="how long (default: as long as the shipped one)")
    train.add_argument("--out", type=Path, help="folder to write into (default: where the shipped ones are)")
    validate = commands.add_parser("validate", help="check a layer and its input; the exit status is 1 if a check fails")
    about_file = "settings as JSON, a recording, weights or attention maps (default: the tutorial's layer)"
    validate.add_argument("file", nargs="?", type=Path, help=about_file)
    validate.add_argument("--address", metavar='"?…"', help="the address of a page, or its part from the ? on, in place of a file")
    validate.add_argument("--json", action="store_true", help='write {"of": …, "checks": […], "versions": {…}}')
    options = parser.parse_args(arguments)
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # before torch: its threads must not spin against other sessions'
    if options.command == "train":
        return train_model(options)
    if options.command == "validate":
        if options.file is not None and options.address is not None:
            validate.error("a file or an address, not both")
        return validate_source(options)
    if options.serves_class:
        os.environ[CLASS] = "1"
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


def train_model(options):
    """Train, print what is measured on the way, write what came out; the exit status."""
    import torch

    from mha_viz.core.rules import Wrong
    from mha_viz.sources.models import DATA
    from mha_viz.studies.training import train, write

    torch.set_num_threads(1)  # this process is the training's own, and its products are too small to share
    reports = []
    try:
        for report in train(options.name, options.seed, options.steps):
            reports.append(report)
            if report.scores is not None:
                print(line_of(report), flush=True)
    except Wrong as wrong:
        print(f"python -m mha_viz train: {wrong}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("stopped: nothing is written", file=sys.stderr)
        return 130
    out = options.out or DATA
    write(options.name, reports, out, options.seed, options.steps)
    print(f"written to {out}")
    return 0


def validate_source(options):
    """Run every check, print each as it is done, or all as JSON; 1 if one fails, 2 if there is nothing to check."""
    import json

    from mha_viz.core.rules import Wrong
    from mha_viz.settings import Settings
    from mha_viz.studies import validation

    try:
        if options.file is not None:
            of = validation.source_of_file(options.file)
        elif options.address is not None:
            of = validation.source_of_address(options.address)
        else:
            of = validation.source(Settings())
    except Wrong as wrong:
        print(f"python -m mha_viz validate: {wrong}", file=sys.stderr)
        return 2
    done = []
    for check in validation.validate(of):
        done.append(check)
        if not options.json:
            measured = f"{check.measured}: " if check.measured else ""
            print(f"{check.verdict:<10}  {check.title} · {check.of}\n{'':12}{measured}{check.words}", flush=True)
    failed = sum(check.verdict == "fail" for check in done)
    if options.json:
        print(json.dumps(validation.report(of, done), indent=1, ensure_ascii=False))
    else:
        print(f"\n{validation.summary(done)}")
        print("\n".join(f"{name}: {version}" for name, version in validation.versions(of).items()))
    return 1 if failed else 0


def line_of(report):
    """One line: step, losses, accuracies, and for each role the largest weight of a head in each layer."""
    loss = "" if report.loss is None else f"training loss {report.loss:.4f}, "
    accuracy = ", ".join(f"{name} {share:.3f}" for name, share in report.scores.accuracy.items())
    roles = "; ".join(
        f"{role} {', '.join(f'{max(heads):.2f}' for heads in layers)}" for role, layers in report.scores.roles.items()
    )
    measured = f"held-out loss {report.scores.loss:.4f}, right: {accuracy}; best heads by layer: {roles}"
    return f"step {report.step}/{report.steps}: {loss}{measured}"


if __name__ == "__main__":
    sys.exit(main())
