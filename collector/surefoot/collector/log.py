"""The durable log: appends are acknowledged only after one fsync that many of them share (group commit).

One thread owns the open segment. Callers hand it a record and wait on a future; the thread takes all that are waiting,
writes them, syncs once and resolves them together.

Rule 1: a future that resolves without an exception means that its record survives a kill and a power loss. When the
disk refuses, every waiting future fails with a retryable error, what was half written is cut, and the log tries again
by itself once a second.
Rule 2: no segment is begun before the one before it is sealed, because the writer counts every sequence number below
the highest that it has seen as done: a segment sealed late would be lost.
"""

from __future__ import annotations

import errno
import logging
import queue
import threading
import time
from concurrent.futures import Future
from pathlib import Path

from surefoot.collector.errors import UnavailableError
from surefoot.collector.segment import Payload, Record, SegmentWriter, encode_record
from surefoot.collector.spool import Spool

log = logging.getLogger("surefoot.collector")

_RETRY_SECONDS = 5.0  # what senders are told
_PROBE_SECONDS = 1.0  # how often the log itself looks whether the disk works again
_GROUP_BYTES = 8 << 20  # written before a sync even if more is waiting: an 8 MiB fdatasync took 5 ms
_REASONS = {
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "the disk quota is used up",
    errno.EROFS: "the disk is read-only",
    errno.EIO: "the disk reports an error",
    errno.EFBIG: "a file may not grow any more",
}

_Waiting = tuple[Payload, Future[None]]


class DurableLog:
    """Appends records to segments of a spool. ``close`` seals what is open."""

    def __init__(self, spool: Spool, *, segment_bytes: int, segment_seconds: float) -> None:
        self._spool = spool
        self._segment_bytes = segment_bytes
        self._segment_seconds = segment_seconds
        self._waiting: queue.SimpleQueue[_Waiting | None] = queue.SimpleQueue()
        self._open: SegmentWriter | None = None
        self._due = 0.0  # time.monotonic() at which the open segment is sealed whatever its size
        self._unsealed: Path | None = None  # closed, but the move to the sealed ones failed
        self._trouble: str | None = None
        self.sealed_total = 0
        self.bytes_total = 0
        self.syncs_total = 0
        self._thread = threading.Thread(target=self._run, name="durable-log", daemon=True)
        self._thread.start()

    @property
    def trouble(self) -> str | None:
        """Why nothing can be written at the moment, or None."""
        return self._trouble

    def append(self, record: Record) -> Future[None]:
        """Queue a record. The future resolves once it is on disk, or fails with UnavailableError."""
        future: Future[None] = Future()
        # A waiting caller may be cancelled; its future must stay resolvable, for the thread resolves a whole group.
        future.set_running_or_notify_cancel()
        self._waiting.put((encode_record(record), future))
        return future

    def close(self) -> None:
        """Write what is waiting, seal the open segment and end. Nothing may be appended afterwards."""
        self._waiting.put(None)
        self._thread.join()

    def _run(self) -> None:
        running = True
        while running:
            group, running = self._take_group()
            if group or self._trouble is not None:
                self._commit(group)
            if self._is_due() or not running:
                self._rotate()

    def _take_group(self) -> tuple[list[_Waiting], bool]:
        """What is waiting now; may be empty when there is something to do by itself. False after close."""
        group: list[_Waiting] = []
        size = 0
        try:
            item = self._waiting.get(timeout=self._patience())
            while item is not None:
                group.append(item)
                size += len(item[0].data)
                if size >= _GROUP_BYTES:
                    return group, True
                item = self._waiting.get_nowait()
        except queue.Empty:
            return group, True
        return group, False

    def _patience(self) -> float | None:
        """Seconds until there is something to do without a caller, or None."""
        if self._trouble is not None:
            return _PROBE_SECONDS
        return None if self._open is None else max(0.0, self._due - time.monotonic())

    def _commit(self, group: list[_Waiting]) -> None:
        try:
            self._write([payload for payload, _ in group])
        except Exception as error:  # noqa: BLE001 - whatever it is, every waiting sender must get an answer
            self._tell(error)
            self._give_up_segment()
            refusal = f"Cannot store the request: {self._trouble}."
            for _, future in group:
                future.set_exception(UnavailableError(refusal, _RETRY_SECONDS))
            return
        if self._trouble is not None:
            log.warning("Writing works again in %s.", self._spool.path)
            self._trouble = None
        for _, future in group:
            future.set_result(None)

    def _write(self, payloads: list[Payload]) -> None:
        """Write and sync. Without payloads it shows whether writing works; a segment without records is never kept."""
        if self._open is None:
            self._seal()
            self._open = self._spool.begin_segment()
            self._due = time.monotonic() + self._segment_seconds
        self.bytes_total += self._open.append(payloads)
        self.syncs_total += 1

    def _is_due(self) -> bool:
        opened = self._open
        return opened is not None and (opened.size >= self._segment_bytes or time.monotonic() >= self._due)

    def _rotate(self) -> None:
        try:
            self._seal()
        except OSError as error:
            self._tell(error)

    def _seal(self) -> None:
        """Close the open segment and move it to the sealed ones; a move that failed earlier is made up for."""
        if self._open is not None:
            self._unsealed, opened, self._open = self._open.path, self._open, None
            opened.close()
        if self._unsealed is not None:
            self.sealed_total += self._spool.seal(self._unsealed)
            self._unsealed = None

    def _give_up_segment(self) -> None:
        """After a failed write: cut what was not acknowledged and seal the rest, so that no later append follows it."""
        if self._open is None:
            return
        try:
            self._open.cut()
        except OSError as error:
            # The tail stays. Its records are torn or whole, and both are safe: a sender that sends a whole one again
            # sends the same span ids.
            log.error("Could not cut %s after a failed write: %s.", self._open.path, error)
        self._rotate()

    def _tell(self, error: Exception) -> None:
        """Remember why nothing can be written; said once, not for every request."""
        number = error.errno if isinstance(error, OSError) else None
        reason = _REASONS.get(number or 0, f"writing failed: {error}")
        if self._trouble != reason:
            log.error(
                "Nothing is acknowledged: %s (%s). Senders are asked to come again.",
                reason,
                self._spool.path,
                exc_info=None if number in _REASONS else error,
            )
        self._trouble = reason
