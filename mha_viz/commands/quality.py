"""``quality``: a shipped task trained with several head counts, and what a layer of each costs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from mha_viz.commands.options import folder_to_write

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from mha_viz.studies.quality import Outcome


ABOUT = "train a shipped task with several head counts and seeds, and measure what each costs"


def options(parser: ArgumentParser) -> None:
    parser.add_argument("task", nargs="?", help="look-both-ways (the default), induction or reverse-or-shift")
    parser.add_argument(
        "--num-heads", metavar="1,2,…", help="head counts, each of which divides the embed_dim of the task's model"
    )
    parser.add_argument("--seeds", metavar="1,2,…", help="each trains every head count once")
    parser.add_argument("--steps", help="of each training")
    parser.add_argument("--out", type=Path, help="folder to write into (default in a checkout: where the shipped ones are)")


def run(options: Namespace) -> int:
    """Train, print each outcome as it comes, measure, write; where somebody stops, what is done is written to --out (status 130)."""
    import torch

    from mha_viz.core.whole_file import whole_file
    from mha_viz.settings import parsed
    from mha_viz.studies.profiling import Pace, in_words
    from mha_viz.studies.quality import Quality, Step, Trial, path_of, quality_json, study

    given = {name: getattr(options, name) for name in ("task", "num_heads", "seeds", "steps")}
    trial = Trial(**{name: parsed(Trial, name, text) for name, text in given.items() if text is not None})
    out = folder_to_write(options.out)  # before minutes of training, and not after them
    torch.set_num_threads(1)  # the products are too small to share
    quality, pace, status = Quality(trial), Pace(), 0
    try:
        for event in study(trial):
            quality.add(event)
            left = pace.left(quality.share)
            if isinstance(event, Step) and event.outcome is not None:
                when = "" if left is None else f", {in_words(left)}"
                print(f"{quality.share:.0%}{when}: {line_of(event.outcome)}", flush=True)
    except KeyboardInterrupt:
        print("stopped: what is done is kept", file=sys.stderr)
        status = 130
    if status and options.out is None:
        print("nothing is written over what ships; name a folder with --out", file=sys.stderr)
        return status
    with whole_file(path_of(trial.task, out)) as path:
        path.write_text(quality_json(quality))
    print(f"{quality.summary}\nwritten to {path_of(trial.task, out)}")
    return status


def line_of(outcome: Outcome) -> str:
    return (
        f"{outcome.num_heads} head{'' if outcome.num_heads == 1 else 's'}, seed {outcome.seed}: "
        f"right {outcome.accuracy:.3f}, loss {outcome.loss:.4f}, with uniform attention {outcome.uniform:.3f}"
    )
