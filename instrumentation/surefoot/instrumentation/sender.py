"""A bounded queue and one thread that exports what waits in it, and exact counts of what arrived and what did not.

OpenTelemetry's batch processors would do, but for three things that this room promises: what is urgent leaves at once;
a flush keeps its time limit (theirs ignores it, opentelemetry-python#4568); and at exit it is known how much was lost.

Safe to call from a signal handler and from a finalizer: both may interrupt code that holds the lock in the same thread,
so the lock is re-entrant.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Limits:
    """``delay``: seconds an item may wait for company; ``batch``: items per export; ``capacity``: items waiting."""

    delay: float
    batch: int
    capacity: int


class Sender(Generic[T]):
    """Exports items in batches from a thread of its own.

    ``export`` gets a batch and returns None if it arrived, else the reason why not; it may block. Items are counted as
    ``accepted`` when they come and as ``delivered`` when their batch arrived; the rest is ``missing``.
    """

    _changed: threading.Condition  # on a re-entrant lock; guards everything below
    _waiting: deque[T]
    _urgent: bool
    _closed: bool
    _accepted: int
    _handled: int  # exported, delivered or not
    _delivered: int
    _reason: str | None
    _thread: threading.Thread | None

    def __init__(self, name: str, export: Callable[[Sequence[T]], str | None], limits: Limits) -> None:
        self._name = name
        self._export = export
        self._limits = limits
        self._reset()
        self._start()
        # A fork copies the queue but not the thread. What waits is the parent's to deliver.
        method = weakref.WeakMethod(self._reset)
        os.register_at_fork(after_in_child=lambda: (reset := method()) and reset())

    @property
    def missing(self) -> int:
        """Items that were put in and have not arrived."""
        return self._accepted - self._delivered

    @property
    def reason(self) -> str | None:
        """Why the last loss happened, or None if nothing was lost yet."""
        return self._reason

    def put(self, item: T, *, urgent: bool = False) -> None:
        """Queue an item; never blocks on an export. If the queue is full or closed the item is lost, and counted."""
        with self._changed:
            self._accepted += 1
            if self._closed or len(self._waiting) >= self._limits.capacity:
                self._handled += 1
                self._reason = (
                    "it came after the end" if self._closed else f"the queue of {self._limits.capacity} was full"
                )
                return
            self._waiting.append(item)
            self._urgent = self._urgent or urgent
            if self._thread is None:
                self._start()
            if len(self._waiting) == 1 or self._is_due():
                self._changed.notify_all()

    def hurry(self) -> None:
        """Export what waits now, without waiting for it."""
        with self._changed:
            self._urgent = bool(self._waiting)
            self._changed.notify_all()

    def flush(self, seconds: float) -> bool:
        """Export what was put in before this call; False if that took longer or something did not arrive."""
        with self._changed:
            goal, lost = self._accepted, self._handled - self._delivered
            self.hurry()
            self._changed.wait_for(lambda: self._handled >= goal or self._closed, max(0.0, seconds))
            return self._handled >= goal and self._handled - self._delivered == lost

    def close(self) -> None:
        """Take nothing more in. What still waits is lost; flush first."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _reset(self) -> None:
        self._changed = threading.Condition()
        self._waiting = deque()
        self._urgent = self._closed = False
        self._accepted = self._handled = self._delivered = 0
        self._reason = None
        self._thread = None

    def _start(self) -> None:
        self._thread = threading.Thread(target=self._work, name=f"surefoot-{self._name}", daemon=True)
        self._thread.start()

    def _is_due(self) -> bool:
        return self._urgent or self._closed or len(self._waiting) >= self._limits.batch

    def _work(self) -> None:
        while (batch := self._take()) is not None:
            reason = self._export(batch)
            with self._changed:
                self._handled += len(batch)
                if reason is None:
                    self._delivered += len(batch)
                else:
                    self._reason = reason
                self._changed.notify_all()

    def _take(self) -> list[T] | None:
        """The next batch, as soon as one is due; None once the sender is closed."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._closed)
            self._changed.wait_for(self._is_due, self._limits.delay)
            if self._closed:
                return None
            batch = [self._waiting.popleft() for _ in range(min(len(self._waiting), self._limits.batch))]
            self._urgent = self._urgent and bool(self._waiting)
            return batch
