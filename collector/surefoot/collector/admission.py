"""Whether there is room: looks at bytes that are acknowledged but not yet in the lake, not at queue lengths.

Measured on the prototype: accepting outruns writing to Parquet by 2 to 4 times, so only the backlog says how far behind
the writer is. The folder is looked at once a second at most; bytes accepted since then are added.
"""

from __future__ import annotations

import threading
import time

from surefoot.collector.errors import BackloggedError
from surefoot.collector.spool import Spool

_LOOK_SECONDS = 1.0
_RETRY_SECONDS = 5.0


class Admission:
    """Refuses requests while the backlog is beyond its limit. Safe to call from many threads."""

    def __init__(self, spool: Spool, max_backlog_bytes: int) -> None:
        self._spool = spool
        self._limit = max_backlog_bytes
        self._lock = threading.Lock()
        self._backlog = spool.backlog_bytes()
        self._looked = time.monotonic()
        self._refused: int | None = None  # size of the last request, if it was refused

    def admit(self, size: int) -> None:
        """Count ``size`` bytes in, or raise BackloggedError."""
        with self._lock:
            self._look()
            if self._backlog + size > self._limit:
                self._refused = size
                raise BackloggedError(
                    f"{self._backlog:,} bytes wait for the lake, the limit is {self._limit:,}. Send again later.",
                    _RETRY_SECONDS,
                )
            self._refused = None
            self._backlog += size

    def backlog(self) -> int:
        """Bytes that wait for the lake."""
        with self._lock:
            self._look()
            return self._backlog

    @property
    def is_refusing(self) -> bool:
        """Whether the last request was refused and would be refused again."""
        with self._lock:
            self._look()
            return self._refused is not None and self._backlog + self._refused > self._limit

    def _look(self) -> None:
        now = time.monotonic()
        if now - self._looked >= _LOOK_SECONDS:
            self._backlog = self._spool.backlog_bytes()
            self._looked = now
