"""``train``: a shipped model anew."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from mha_viz.commands.options import folder_to_write, whole_number

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from mha_viz.sources.models import Scores
    from mha_viz.studies.training import Progress


ABOUT = "train a shipped model anew and write its weights and their record"


def options(parser: ArgumentParser) -> None:
    parser.add_argument("name", help="which model: induction, reverse-or-shift, look-both-ways-1, -2 or -32")
    parser.add_argument("--seed", type=whole_number, help="of its first numbers and its sequences (default: the shipped one's)")
    parser.add_argument("--steps", type=whole_number, help="how long (default: as long as the shipped one)")
    parser.add_argument("--out", type=Path, help="folder to write into (default in a checkout: where the shipped ones are)")


def run(options: Namespace) -> int:
    """Train, print what is measured on the way, write what came out."""
    import torch

    from mha_viz.studies.training import train, write

    out = folder_to_write(options.out)  # before minutes of training, and not after them
    torch.set_num_threads(1)  # this process is the training's own, and its products are too small to share
    reports = []
    try:
        for report in train(options.name, options.seed, options.steps):
            reports.append(report)
            if report.scores is not None:
                print(line_of(report, report.scores), flush=True)
    except KeyboardInterrupt:
        print("stopped: nothing is written", file=sys.stderr)
        return 130
    write(options.name, reports, out, options.seed, options.steps)
    print(f"written to {out}")
    return 0


def line_of(report: Progress, scores: Scores) -> str:
    """One line: step, losses, accuracies, and for each role the largest weight of a head in each layer."""
    loss = "" if report.loss is None else f"training loss {report.loss:.4f}, "
    accuracy = ", ".join(f"{name} {share:.3f}" for name, share in scores.accuracy.items())
    roles = "; ".join(f"{role} {', '.join(f'{max(heads):.2f}' for heads in layers)}" for role, layers in scores.roles.items())
    measured = f"held-out loss {scores.loss:.4f}, right: {accuracy}; best heads by layer: {roles}"
    return f"step {report.step}/{report.steps}: {loss}{measured}"
