"""What the process spends of its memory: large work reserves it before it begins, and all that is kept of it shares one limit."""

import ctypes
import threading
import time
from collections import OrderedDict
from contextlib import contextmanager
from dataclasses import dataclass, field

from mha_viz.core.memory import ALWAYS_FREE, SHARE, free

WAIT = 10.0  # seconds that work waits for memory which other work will give back
LOOK = 0.2  # seconds after which it looks again whether memory is free
MOST = 1000  # values that are kept, however small


@dataclass(eq=False)
class Entry:
    """A ``value`` that is kept, the bytes that are counted for it, and the ``visitors`` who asked for it."""

    value: object
    size: int
    visitors: set = field(default_factory=set)


class Budget:
    """Memory shared out among the sessions of a process.

    ``free()`` tells the bytes that are free now. Work reserves its peak with ``reserved``; what is kept, by ``kept``, takes at most
    ``limit`` bytes, half of what was free at first where None, and gives way to work that would not fit beside it.
    """

    def __init__(self, free=free, limit=None, wait=WAIT):
        self.free, self.wait, self._limit = free, wait, limit
        self.in_work = 0  # bytes that are reserved now
        self._entries, self._making = OrderedDict(), set()  # key → Entry, used longest ago first; keys that are being made
        self._changed = threading.Condition()

    @property
    def limit(self):
        """Bytes that all kept values may take together."""
        if self._limit is None:
            self._limit = int(SHARE * self.free())
        return self._limit

    @property
    def size(self):
        """Bytes that are counted for what is kept."""
        return sum(entry.size for entry in self._entries.values())

    @contextmanager
    def reserved(self, size, refuse):
        """Within it ``size`` bytes belong to whoever asked: concurrent work together stays within half of what is free.

        What is kept is let go for it, used longest ago first. Where that is not enough it waits for other work to end, for ``wait``
        seconds at most; then ``refuse(available)`` has to raise, with the bytes of which half may be used.
        """
        self._take(size, refuse)
        try:
            yield
        finally:
            with self._changed:
                self.in_work -= size
                self._changed.notify_all()

    def _take(self, size, refuse):
        until, hopeful = time.monotonic() + self.wait, False
        with self._changed:
            while size > ALWAYS_FREE and size > SHARE * (available := self.free() - self.in_work):
                hopeful |= bool(self._entries) or self.in_work > 0  # what was let go may be on somebody's screen for a moment
                if self._entries:
                    self._let_go(next(iter(self._entries)))
                elif hopeful and time.monotonic() < until:
                    self._changed.wait(LOOK)
                else:
                    refuse(max(available, 0))
                    raise AssertionError("who refuses has to raise")
            self.in_work += size

    def kept(self, key, make, size, refuse, visitor=None):
        """The value that is kept by this ``key``; ``make()`` makes it where there is none, within a reservation of ``size`` bytes. Who
        asks while it is made waits for it. ``visitor`` has it until they leave."""
        with self._changed:
            while key in self._making:
                self._changed.wait()
            if key in self._entries:
                self._entries.move_to_end(key)
                self._entries[key].visitors.add(visitor)
                return self._entries[key].value
            self._making.add(key)
        try:
            with self.reserved(size, refuse):
                value = make()
            with self._changed:
                self._entries[key] = Entry(value, size, {visitor})
                while len(self._entries) > 1 and (self.size > self.limit or len(self._entries) > MOST):
                    self._let_go(next(iter(self._entries)))
            return value
        finally:
            with self._changed:
                self._making.discard(key)
                self._changed.notify_all()

    def holds(self, key):
        """Whether a value is kept by this key, and need not be made."""
        return key in self._entries

    def leave(self, visitor):
        """Forget a visitor, and all that is large and only they had asked for."""
        with self._changed:
            for key, entry in list(self._entries.items()):
                entry.visitors.discard(visitor)
                if not entry.visitors and entry.size > ALWAYS_FREE:
                    self._let_go(key)
        give_back()

    def clear(self):
        """Let go of all that is kept."""
        with self._changed:
            self._entries.clear()
        give_back()

    def _let_go(self, key):
        if self._entries.pop(key).size > ALWAYS_FREE:
            give_back()


def give_back():
    """Give memory that was freed back to the system, where the C library would keep it for itself (glibc)."""
    try:
        trim = ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):  # another C library, or Windows
        return
    trim(0)


BUDGET = Budget()
