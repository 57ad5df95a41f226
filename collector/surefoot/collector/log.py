"""The durable log: appends are acknowledged only after one fsync that many of them share (group commit).

One thread owns the open segment. Callers hand it a record and wait on a future; the thread takes all that are waiting,
writes them, syncs once and resolves them together. Rule: a future that resolves without an exception means that its
record survives a kill and a power loss. When the disk is full or read-only every waiting future fails with a retryable
error, what was half written is cut, and the next append tries again, so the log recovers by itself.
"""

from __future__ import annotations

import errno
import logging
import os
import queue
import threading
import time
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path

from surefoot.collector.errors import UnavailableError
from surefoot.collector.segment import HEADER_BYTES, Record, encode_header, encode_record
from surefoot.collector.spool import Spool, sync_folder

log = logging.getLogger("surefoot.collector")

_DISK_RETRY_SECONDS = 5.0
_GROUP_BYTES = 8 << 20  # written before a sync even if more is waiting: an 8 MiB fdatasync took 5 ms here
_REASONS = {
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "the disk quota is used up",
    errno.EROFS: "the disk is read-only",
    errno.EIO: "the disk reports an error",
    errno.EFBIG: "a file may not grow any more",
}


@dataclass(slots=True)
class _Open:
    path: Path
    descriptor: int
    size: int
    since: float  # time.monotonic() at the first record


class DurableLog:
    """Appends records to segments of a spool. ``close`` seals what is open."""

    def __init__(self, spool: Spool, *, segment_bytes: int, segment_seconds: float) -> None:
        self._spool = spool
        self._segment_bytes = segment_bytes
        self._segment_seconds = segment_seconds
        self._waiting: queue.SimpleQueue[tuple[bytes, Future[None]] | None] = queue.SimpleQueue()
        self._open: _Open | None = None
        self._trouble: str | None = None
        self.sealed_total = 0
        self.bytes_total = 0
        self.syncs_total = 0
        self._thread = threading.Thread(target=self._run, name="durable-log")
        self._thread.start()

    @property
    def trouble(self) -> str | None:
        """Why nothing can be written at the moment, or None."""
        return self._trouble

    def append(self, record: Record) -> Future[None]:
        """Queue a record. The future resolves once it is on disk, or fails with UnavailableError."""
        future: Future[None] = Future()
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
            if group:
                self._commit(group)
            if self._open is not None and (not running or self._is_due(self._open)):
                self._seal(self._open)

    def _take_group(self) -> tuple[list[tuple[bytes, Future[None]]], bool]:
        """What is waiting now, at least one unless the open segment comes of age first; False after close."""
        timeout = None
        if self._open is not None:
            timeout = max(0.0, self._open.since + self._segment_seconds - time.monotonic())
        group: list[tuple[bytes, Future[None]]] = []
        size = 0
        try:
            item = self._waiting.get(timeout=timeout)
            while item is not None:
                group.append(item)
                size += len(item[0])
                if size >= _GROUP_BYTES:
                    return group, True
                item = self._waiting.get_nowait()
        except queue.Empty:
            return group, True
        return group, False

    def _commit(self, group: list[tuple[bytes, Future[None]]]) -> None:
        try:
            self._write([data for data, _ in group])
        except OSError as error:
            reason = _REASONS.get(error.errno or 0, f"writing failed: {error}")
            if self._trouble != reason:
                log.error(
                    "Nothing is acknowledged: %s (%s). Senders are asked to come again.", reason, self._spool.path
                )
            self._trouble = reason
            self._abandon_segment()
            for _, future in group:
                future.set_exception(UnavailableError(f"Cannot store the request: {reason}.", _DISK_RETRY_SECONDS))
            return
        if self._trouble is not None:
            log.warning("Writing works again in %s.", self._spool.path)
        self._trouble = None
        for _, future in group:
            future.set_result(None)

    def _write(self, group: list[bytes]) -> None:
        if self._open is None:
            self._open = self._start()
        data = b"".join(group)
        view = memoryview(data)
        while view:
            view = view[os.write(self._open.descriptor, view) :]
        os.fdatasync(self._open.descriptor)
        self._open.size += len(data)
        self.bytes_total += len(data)
        self.syncs_total += 1

    def _start(self) -> _Open:
        sequence = self._spool.next_sequence()
        path = self._spool.open_folder / self._spool.name_of(sequence)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        opened = _Open(path, descriptor, HEADER_BYTES, time.monotonic())
        try:
            os.write(descriptor, encode_header(self._spool.receiver_id, sequence, time.time_ns()))
            sync_folder(self._spool.open_folder)
        except OSError:
            os.close(descriptor)
            raise
        return opened

    def _is_due(self, opened: _Open) -> bool:
        return opened.size >= self._segment_bytes or time.monotonic() >= opened.since + self._segment_seconds

    def _seal(self, opened: _Open) -> None:
        """The segment's data is synced already. If the move fails, recovery at the next start seals it."""
        os.close(opened.descriptor)
        self._open = None
        try:
            self._spool.seal(opened.path)
        except OSError:
            log.exception("Could not seal %s; it is sealed when the collector starts again.", opened.path)
            return
        self.sealed_total += 1

    def _abandon_segment(self) -> None:
        """After a failed write: cut what was not acknowledged and seal the rest, so that no later append follows it."""
        opened, self._open = self._open, None
        if opened is None:
            return
        try:
            os.ftruncate(opened.descriptor, opened.size)
            os.fsync(opened.descriptor)
        except OSError:
            # The tail stays; its records were not acknowledged. They are whole or torn, and both are safe: a sender
            # that sends a whole one again sends the same span ids.
            log.exception("Could not cut %s after a failed write.", opened.path)
        self._open = None
        self._seal(opened)
