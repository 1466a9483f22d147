"""``export``: figures, numbers and code for documents."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mha_viz.commands.options import whole_number
from mha_viz.core.rules import Wrong
from mha_viz.views import VIEWS
from mha_viz.views.base import PARTS

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from mha_viz.export.figure import Figure


ABOUT = "write a figure, its numbers or its code to a file; or all the figures of a document"


def options(parser: ArgumentParser) -> None:
    what = parser.add_argument_group("of what (default: the tutorial's layer)")
    what.add_argument("--settings", metavar="FILE", help="settings as JSON")
    what.add_argument("--address", metavar='"?…"', help="the address of a page; beside a file, how that is shown")
    what.add_argument("--recording", metavar="FILE", help="a recording, weights or attention maps")
    what.add_argument("--layer", type=whole_number, help="which one of several")
    what.add_argument("--against", metavar='"?…"|FILE', help="A of a difference: an address, or a file")
    what.add_argument(
        "--results", metavar="FILE|TASK", help="what profile --json or quality wrote, or a task whose quality ships"
    )
    what.add_argument("--at-length", type=whole_number, help="of a profile: where head counts stand beside each other")
    look = parser.add_argument_group("showing what")
    look.add_argument("--view", help=f"{', '.join(VIEWS)} (default: {next(iter(VIEWS))})")
    look.add_argument("--heads", help='by number, "mean" for their average: 2,5,mean (default: all)')
    look.add_argument("--limits", help="where colours begin and end: 0,0.5")
    dress = parser.add_argument_group("dressed how")
    dress.add_argument("--theme", help="light, dark or print")
    dress.add_argument("--transparent", action="store_const", const=True, help="without a ground")
    for part in PARTS:
        dress.add_argument(f"--no-{part}", dest=part, action="store_const", const=False, help=f"without {part}")
    dress.add_argument("--width", help='"1104 px", "160 mm" or "6.3 in"; the height follows')
    dress.add_argument("--font", help="a font family")
    dress.add_argument("--font-size", help='of ordinary text: "8 pt" or "14 px"')
    dress.add_argument("--scale", type=whole_number, help="pixels of a PNG to a px: 1, 2 or 4")
    parser.add_argument("--code", help="of a .py: torch, numpy or pytest")
    parser.add_argument(
        "--out", metavar="FILE", help="its ending is the format: png, svg, pdf, html, json, csv, npz, safetensors, md, py"
    )
    parser.add_argument("--batch", metavar="figures.toml", help="all the figures of a document; nothing else beside it")
    parser.add_argument("--check", action="store_true", help="of a batch: make nothing, and say which files are out of date")


def run(given: Namespace) -> int:
    """Write each file and say so; or say which files of a batch are out of date, and then 1."""
    from mha_viz.export.figure import figure_of, read_figures

    values = {
        name: value for name, value in vars(given).items() if value is not None and name not in ("command", "batch", "check")
    }
    if given.batch and values:
        name, value = next(iter(values.items()))
        raise Wrong(name, value, "stands beside a batch, which says all itself: put it there.")
    if given.batch:
        figures = read_figures(given.batch)
        return check(given.batch, figures) if given.check else make(figures, given.batch)
    if given.check:
        raise Wrong("check", True, "is for a batch: --batch figures.toml --check.")
    if not given.out:
        raise Wrong("out", None, "is needed: the file to write, whose ending is the format, as in --out figure.svg.")
    return make([figure_of(values)])


def make(figures: Sequence[Figure], batch: str | None = None) -> int:
    from mha_viz.export.lock import kept_lock, recorded, write_lock
    from mha_viz.export.make import write

    folder = Path(batch).parent if batch else Path()
    records, began = kept_lock(batch, figures) if batch else {}, time.perf_counter()
    try:
        for figure, spec in write(figures, folder):
            size, now = Path(folder, figure.out).stat().st_size, time.perf_counter()
            print(f"{figure.out}  {size:,} bytes  {now - began:.1f} s", flush=True)
            records[figure.out], began = recorded(figure, spec, folder), now
    finally:
        if batch:  # those that were made, also where a later one cannot be; those that were not keep theirs
            write_lock(batch, records)
    return 0


def check(batch: str, figures: Sequence[Figure]) -> int:
    from mha_viz.export.lock import read_lock, stale
    from mha_viz.export.make import spec_of

    folder, records, count = Path(batch).parent, read_lock(batch), 0
    for figure in figures:
        try:
            why = stale(figure, spec_of(figure.named(folder)), records.get(figure.out), folder)
        except Wrong as wrong:
            why = f"cannot be told: {wrong}"
        if why:
            print(f"{figure.out} {why}")
        count += why is not None
    print(f"{count} of {len(figures)} figures are out of date" if count else f"all {len(figures)} figures are as they say")
    return int(count > 0)
