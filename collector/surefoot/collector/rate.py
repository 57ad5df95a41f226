"""How many requests a source may send: one token bucket each, which holds a second's worth.

Rule: a request over the rate is told when to come again and is never lost by that, for it is refused before anything
of it is kept.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable

from surefoot.collector.errors import ThrottledError


class Rate:
    """Requests a second for each source; 0 = any number. Safe to call from many threads."""

    def __init__(self, per_second: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._per_second = per_second
        self._size = max(1.0, per_second)
        self._clock = clock
        self._lock = threading.Lock()
        self._buckets: dict[str, tuple[float, float]] = {}  # what is left, and when that was so

    def take(self, source: str) -> None:
        """Count a request in, or raise ThrottledError."""
        if not self._per_second:
            return
        with self._lock:
            now = self._clock()
            left, since = self._buckets.get(source, (self._size, now))
            left = min(self._size, left + (now - since) * self._per_second)
            taken = left >= 1
            self._buckets[source] = (left - 1 if taken else left, now)
        if not taken:
            wait = math.ceil((1 - left) / self._per_second)
            raise ThrottledError(f"{source} may send {self._per_second:g} requests a second. Send again later.", wait)
