"""A class at work: many sessions of the page at once, over Streamlit's own protocol, without a browser."""

import asyncio

from tests.bench.clock import Row, milliseconds
from tests.bench.serving import serving
from tests.protocol import Session

COUNTS, CLASS, AT_MOST = (10, 30, 60), 30, 0.1
MORE = (70, 80, 90, 100, 120, 150)
HELD = 0.5  # seconds that a session waits at most, at the 95th percentile
METHOD = (
    "libraries frozen and garbage collected when Python sees fit : nothing frozen, all collected after every change; "
    "server on the same two cores as the clients; each session waits 1 to 3 s and changes seed, head and padding in turn; from the "
    "change sent to the script's end, 95th percentile of all changes; no session failed"
)


def rows():
    """With and without what keeps the garbage collector away, and then as many sessions as stay below half a second."""
    waits = {}
    for variant in ("", "unfrozen"):
        with serving(variant) as url:
            asyncio.run(measure(url, 2, 1))  # imports
            for count in COUNTS:
                waits[variant, count] = percentile(asyncio.run(measure(url, count, 6 if variant == "" else 3)), 95)
    for count in COUNTS:
        frozen, without = waits["", count], waits["unfrozen", count]
        target = f"≤ {AT_MOST}×" if count == CLASS else ""
        measured = f"{frozen / without:.3f}× ({milliseconds(frozen)} against {milliseconds(without)})"
        yield Row(f"{count} sessions, garbage frozen, against Streamlit's own habit", measured, target, METHOD)
    held = max((count for count in COUNTS if waits["", count] < HELD), default=0)
    if held == COUNTS[-1]:
        with serving() as url:
            asyncio.run(measure(url, 2, 1))
            for count in MORE:
                if percentile(asyncio.run(measure(url, count, 3)), 95) > HELD:
                    break
                held = count
    yield Row(f"sessions that wait below {HELD} s", f"{held}", "", METHOD)


def percentile(waits, share):
    return sorted(waits)[min(int(len(waits) * share / 100), len(waits) - 1)]


async def measure(url, count, changes):
    """Seconds that each change of ``count`` sessions waited, once all of them have opened."""
    opened, everybody = asyncio.Semaphore(0), asyncio.Event()
    sessions = [asyncio.create_task(Session(number).live(url, changes, opened, everybody)) for number in range(count)]
    for _ in range(count):
        await opened.acquire()
    everybody.set()
    return [wait for waits in await asyncio.gather(*sessions) for wait in waits]
