"""``validate``: check a layer and its input."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from mha_viz.commands.options import whole_number
from mha_viz.core.rules import Wrong

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace


ABOUT = "check a layer and its input; the exit status is 1 if a check fails"


def options(parser: ArgumentParser) -> None:
    about_file = "settings as JSON, a recording, weights or attention maps (default: the tutorial's layer)"
    parser.add_argument("file", nargs="?", type=Path, help=about_file)
    parser.add_argument(
        "--address", metavar='"?…"', help="the address of a page, or its part from the ? on, in place of a file"
    )
    about_heads = "of weights in a file, where a state_dict does not say how many"
    parser.add_argument("--num-heads", type=whole_number, metavar="H", help=about_heads)
    parser.add_argument(
        "--json", action="store_true", help='write {"of": …, "checks": […], "notes": […], "findings": […], "versions": {…}}'
    )


def run(options: Namespace) -> int:
    """Run every check, print each as it is done and what else is to be known, or all as JSON; 1 if one fails."""
    from mha_viz.settings import Settings
    from mha_viz.sources.source import source, source_of_address, source_of_file
    from mha_viz.studies import validation

    if options.file is not None and options.address is not None:
        raise Wrong("address", options.address, "stands beside a file: give a file or an address, not both.")
    answers = {} if options.num_heads is None else {"num_heads": options.num_heads}
    if answers and options.file is None:
        raise Wrong("num_heads", options.num_heads, "is for a file of weights; an address says it itself.")
    if options.file is not None:
        of = source_of_file(options.file, **answers)
    elif options.address is not None:
        of, _ = source_of_address(options.address)
    else:
        of = source(Settings())
    done = []
    for check in validation.validate(of):
        done.append(check)
        if not options.json:
            measured = f"{check.measured}: " if check.measured else ""
            print(f"{check.verdict:<10}  {check.title} · {check.of}\n{'':12}{measured}{check.words}", flush=True)
    if options.json:
        print(json.dumps(validation.report(of, done), indent=1, ensure_ascii=False))
    else:
        for said in (*of.notes, *(f"{name}: {sentence}" for name, sentence in validation.found(of))):
            print(f"note        {said}")
        print(f"\n{validation.summary(done)}")
        print("\n".join(f"{name}: {version}" for name, version in validation.versions(of).items()))
    return int(any(check.verdict == "fail" for check in done))
