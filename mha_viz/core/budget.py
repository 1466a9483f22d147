"""What the process spends of its memory: large work reserves it before it begins, and all that is kept of it shares one limit."""

from __future__ import annotations

import ctypes
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias, TypeVar, runtime_checkable
from weakref import WeakKeyDictionary

from mha_viz.core.memory import ALWAYS_FREE, SHARE, free

WAIT = 10.0  # seconds that work waits for memory which other work will give back
IN_USE = 15.0  # seconds that a value is taken to be looked at after somebody asked for it
LOOK = 0.2  # seconds after which it looks again whether memory is free
MOST = 1000  # values that are kept, however small
VISITOR: ContextVar[Hashable] = ContextVar("visitor", default=None)  # who asks, where whoever keeps something is not told

T = TypeVar("T")
Refuse: TypeAlias = Callable[[int], object]  # has to raise, and is told the bytes that there are


@runtime_checkable
class Forgetful(Protocol):
    """What lets go of all that it can make again."""

    def forget(self) -> None:
        """Let go of it."""


@dataclass(eq=False)
class Entry:
    """A ``value`` that is kept, the bytes that are counted for it, and the ``visitors`` who asked for it."""

    value: Any  # what the ``make`` of its key gave
    size: int
    visitors: set[Hashable] = field(default_factory=set)
    used: float = field(default_factory=time.monotonic)  # when somebody asked for it last


class Budget:
    """Memory shared out among the sessions of a process.

    ``free()`` tells the bytes that are free now. Work reserves its peak with ``reserved``; what is kept, by ``kept``, takes at most
    ``limit`` bytes, half of what was free at first where None, and gives way to work that would not fit beside it.
    """

    def __init__(self, free: Callable[[], int] = free, limit: int | None = None, wait: float = WAIT) -> None:
        self.free, self.wait, self._limit = free, wait, limit
        self.in_work = 0  # bytes that are reserved now
        self._entries: OrderedDict[Hashable, Entry] = OrderedDict()  # by key, used longest ago first
        self._making: set[Hashable] = set()  # keys whose values are being made
        self._away: WeakKeyDictionary[Forgetful, set[Hashable]] = WeakKeyDictionary()  # who may still look at what gave way
        self._refused: dict[tuple[Hashable, int], float] = {}  # (visitor, size) → when it was refused
        self._open: dict[Hashable, dict[str, int]] = {}  # session → bytes of what it has open, which nobody can make again
        self._changed = threading.Condition()

    @property
    def limit(self) -> int:
        """Bytes that all kept values may take together."""
        if self._limit is None:
            self._limit = int(SHARE * self.free())
        return self._limit

    @property
    def size(self) -> int:
        """Bytes that are counted for what is kept."""
        return sum(entry.size for entry in self._entries.values())

    @property
    def opened(self) -> int:
        """Bytes that are counted for what all sessions have open."""
        return sum(sum(held.values()) for held in self._open.values())

    def opened_by(self, session: Hashable) -> dict[str, int]:
        """Bytes of what a session has open, by name."""
        return dict(self._open.get(session, {}))

    def open(self, session: Hashable, name: str, size: int, refuse: Refuse) -> None:
        """Count ``size`` bytes for what a ``session`` has open as ``name``, in place of what it had so before, until ``close``.

        What is kept gives way to it. Where all that is open would take more than ``limit``, ``refuse(room)`` has to raise, with the bytes
        that there is room for.
        """
        with self._changed:
            room = self.limit - self.opened + self._open.get(session, {}).get(name, 0)
            if size > room:
                refuse(room)
                raise AssertionError("who refuses has to raise")
            self._open.setdefault(session, {})[name] = size
            while self._entries and self.size + self.opened > self.limit:
                self._let_go(next(iter(self._entries)))

    def close(self, session: Hashable, name: str | None = None) -> None:
        """Count what a session has open as ``name`` no longer; all that it has open where None."""
        with self._changed:
            held = self._open.get(session, {})
            if name is not None:
                held.pop(name, None)
            if name is None or not held:
                self._open.pop(session, None)
            self._changed.notify_all()

    @contextmanager
    def reserved(self, size: int, refuse: Refuse, visitor: Hashable = None) -> Iterator[None]:
        """Within it ``size`` bytes belong to whoever asked: concurrent work together stays within half of what is free.

        What is kept is let go for it, used longest ago first, but not what others just asked for. Where that is not enough it waits for
        other work to end, for ``wait`` seconds at most; then ``refuse(available)`` has to raise, with the bytes of which half may be used.
        What would not fit even then is refused at once, and nothing is let go for it.
        """
        self._take(size, refuse, visitor)
        try:
            yield
        finally:
            with self._changed:
                self.in_work -= size
                self._changed.notify_all()

    def _take(self, size: int, refuse: Refuse, visitor: Hashable) -> None:
        begun, hopeful = time.monotonic(), False
        again = begun - self._refused.get((visitor, size), -IN_USE) < IN_USE  # each part of a page asks; one wait is enough
        until = begun + (0 if again else self.wait)
        with self._changed:
            while size > ALWAYS_FREE and size > SHARE * (available := self.free() - self.in_work):
                ever = SHARE * (self.free() + self.size + self.in_work) >= size  # once all of it is given back
                hopeful |= bool(self._entries) or self.in_work > 0  # what is looked at now may be let go in a moment
                idle = next((key for key, entry in self._entries.items() if self._is_idle(entry, visitor)), None)
                if ever and idle is not None:
                    self._let_go(idle)
                elif ever and hopeful and time.monotonic() < until:
                    self._changed.wait(LOOK)
                else:
                    self._refused = {asked: when for asked, when in self._refused.items() if begun - when < IN_USE}
                    self._refused[visitor, size] = time.monotonic()
                    refuse(max(available, 0))
                    raise AssertionError("who refuses has to raise")
            self.in_work += size

    def _is_idle(self, entry: Entry, visitor: Hashable) -> bool:
        return entry.visitors <= {visitor} or time.monotonic() - entry.used > IN_USE

    def kept(
        self, key: Hashable, make: Callable[[], T], size: int, refuse: Refuse, visitor: Hashable = None, most: int = MOST
    ) -> T:
        """The value that is kept by this ``key``; ``make()`` makes it where there is none, within a reservation of ``size`` bytes.

        Who asks while it is made waits for it. ``visitor``, VISITOR's where None, has it until they leave. Of keys that are tuples with
        the same first part ``most`` are kept. Where the reservation fails, ``refuse`` raises, as in ``reserved``.
        """
        visitor = VISITOR.get() if visitor is None else visitor
        with self._changed:
            while key in self._making:
                self._changed.wait()
            if key in self._entries:
                self._entries.move_to_end(key)
                entry = self._entries[key]
                entry.visitors.add(visitor)
                entry.used = time.monotonic()
                value: T = entry.value
                return value
            self._making.add(key)
        try:
            with self.reserved(size, refuse, visitor):
                value = make()
            with self._changed:
                self._entries[key] = Entry(value, size, {visitor})
                if most < MOST and isinstance(key, tuple):
                    alike = [other for other in self._entries if isinstance(other, tuple) and other[0] == key[0]]
                    for other in alike[:-most]:
                        self._let_go(other)
                while len(self._entries) > 1 and (self.size + self.opened > self.limit or len(self._entries) > MOST):
                    self._let_go(next(iter(self._entries)))
            return value
        finally:
            with self._changed:
                self._making.discard(key)
                self._changed.notify_all()

    def holds(self, key: Hashable) -> bool:
        """Whether a value is kept by this key, and need not be made."""
        return key in self._entries

    def leave(self, visitor: Hashable) -> None:
        """Forget a visitor, and all that is large and only they had asked for."""
        with self._changed:
            for key, entry in list(self._entries.items()):
                entry.visitors.discard(visitor)
                if not entry.visitors and entry.size > ALWAYS_FREE:
                    self._let_go(key)
            for value, visitors in list(self._away.items()):  # what they read again after it gave way
                visitors.discard(visitor)
                if not visitors:
                    value.forget()
                    del self._away[value]
        give_back()

    def clear(self) -> None:
        """Let go of all that is kept."""
        with self._changed:
            self._entries.clear()
        give_back()

    def _let_go(self, key: Hashable) -> None:
        """What is let go of may still be looked at: a value that can ``forget`` what it can make again does so."""
        entry = self._entries.pop(key)
        if entry.size > ALWAYS_FREE:
            if isinstance(entry.value, Forgetful):
                entry.value.forget()
                self._away[entry.value] = set(entry.visitors)
            give_back()


def give_back() -> None:
    """Give memory that was freed back to the system, where the C library would keep it for itself (glibc)."""
    try:
        trim = ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):  # another C library, or Windows
        return
    trim(0)


BUDGET = Budget()
