"""``profile``: time, memory and work of attention by length and head count."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING

from mha_viz.core.rules import Wrong

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from mha_viz.studies.profile_results import Results
    from mha_viz.studies.profiling import Point


ABOUT = "measure time, peak memory and work of attention by length and head count, on this machine"


def options(parser: ArgumentParser) -> None:
    from mha_viz.settings import spell
    from mha_viz.settings.profile import Profile

    for field in fields(Profile):
        parser.add_argument(f"--{field.name.replace('_', '-')}", metavar="…", help=f"(default: {spell(field.default)})")
    parser.add_argument("--load", type=Path, metavar="FILE", help="show what --json wrote, and measure nothing")
    parser.add_argument("--json", action="store_true", help="write all numbers, with profile, machine, versions and command")


def run(options: Namespace) -> int:
    """Measure, say how far it is on stderr, print a table or JSON; what was measured is kept where somebody stops (status 130)."""
    from mha_viz.settings import parsed
    from mha_viz.settings.profile import Profile
    from mha_viz.studies.profile_results import Results, as_json, of_json, used_by_others

    given = {f.name: getattr(options, f.name) for f in fields(Profile) if getattr(options, f.name) is not None}
    status = 0
    if options.load is not None:
        if given:
            raise Wrong(*next(iter(given.items())), "stands beside --load, which measures nothing: give one of them.")
        results = of_json(text_of(options.load))
    else:
        results = Results(Profile(**{name: parsed(Profile, name, text) for name, text in given.items()}), used_by_others())
        status = follow(results)
    print(as_json(results) if options.json else "\n".join(told(results)))
    return status


def text_of(path: Path) -> str:
    try:
        return path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise Wrong("load", str(path), f"cannot be read: {error}.") from None


def follow(results: Results) -> int:
    """Measure until all is done, or somebody stops."""
    from mha_viz.studies.profiling import SKIPPED, Pace, in_words, measure

    pace, shown, events = Pace(), 0.0, measure(results.profile)
    try:
        for event in events:
            results.add(event)
            if event.kind == SKIPPED and event.point is not None:
                print(f"skipped: {point_of(event.point)}: {event.value}", file=sys.stderr, flush=True)
            left = pace.left(results.share)
            if left is not None and time.monotonic() - shown > 2:
                shown = time.monotonic()
                print(f"{results.share:.0%}, {in_words(left)}", file=sys.stderr, flush=True)
    except KeyboardInterrupt:
        print("stopped: what was measured follows", file=sys.stderr)
        return 130
    finally:
        events.close()
    return 0


def heads_in_words(count: int) -> str:
    return f"{count} head{'s' if count > 1 else ''}"


def point_of(point: Point) -> str:
    return f"need_weights={point.need_weights}, {heads_in_words(point.num_heads)}, length {point.seq_len:,}"


def told(results: Results) -> Iterator[str]:
    """The lines of the table, of the exponents, and of what to think of them."""
    from mha_viz.core.memory import readable_size
    from mha_viz.studies.profile_results import exponent

    yield f"{'weights':<8}{'heads':>6}{'length':>8}{'median':>12}{'quartiles':>19}{'peak':>12}{'formula':>12}{'GFLOP/s':>9}"
    for row in results.rows:
        point = row.point
        name = f"{'yes' if point.need_weights else 'no':<8}{point.num_heads:>6}{point.seq_len:>8}"
        if row.skipped:
            yield f"{name}  skipped: {row.skipped}"
            continue
        seconds, ends, rate = row.median, row.spread, results.rate(row)
        median = "–" if seconds is None else f"{seconds * 1e3:.3f} ms"
        spread = "–" if ends is None else f"{ends[0] * 1e3:.3f}–{ends[1] * 1e3:.3f}"
        gigaflops = "–" if rate is None else f"{rate / 1e9:.1f}"
        peak = "–" if row.peak is None else readable_size(row.peak)
        yield f"{name}{median:>12}{spread:>19}{peak:>12}{readable_size(results.predicted(row)):>12}{gigaflops:>9}"
    yield ""
    for (weights, heads), line in results.lines(lambda row: row.median).items():
        power = exponent(line)
        if power is not None:
            way = f"need_weights={weights}, {heads_in_words(heads)}"
            yield f"{way}: seconds grow as length to the power {power:.2f}, over the longest lengths"
    yield f"\n{results.trust}\n{results.machine['processor']}, torch {results.machine['torch']}: {results.command}"
