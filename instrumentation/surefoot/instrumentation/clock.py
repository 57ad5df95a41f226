"""The one clock of the SDK: real time, unless a virtual clock is set, which lets a program tell a past in seconds.

Spans, events and verdicts made through this SDK ask here. What other instrumentations make keeps real time.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from contextvars import ContextVar


class VirtualClock:
    """A clock that moves only when told to. Times are unix seconds."""

    def __init__(self, at: float) -> None:
        self._nanos = int(at * 1e9)

    def set(self, at: float) -> None:
        """Move to ``at``. Moving back while spans are open makes them end before they began: the caller's concern."""
        self._nanos = int(at * 1e9)

    def advance(self, seconds: float) -> None:
        """Let ``seconds`` pass."""
        self._nanos += int(seconds * 1e9)

    def now_unix_nano(self) -> int:
        """Nanoseconds since the epoch."""
        return self._nanos


_virtual: ContextVar[VirtualClock | None] = ContextVar("surefoot_clock", default=None)


def now_unix_nano() -> int:
    """Nanoseconds since the epoch, by the clock that is set here."""
    clock = _virtual.get()
    return time.time_ns() if clock is None else clock.now_unix_nano()


def virtual_unix_nano() -> int | None:
    """The virtual clock's time, or None if real time runs: then OpenTelemetry reads it itself."""
    clock = _virtual.get()
    return None if clock is None else clock.now_unix_nano()


@contextlib.contextmanager
def use_clock(clock: VirtualClock) -> Iterator[VirtualClock]:
    """Spans and events made inside get their times from ``clock``."""
    token = _virtual.set(clock)
    try:
        yield clock
    finally:
        _virtual.reset(token)
