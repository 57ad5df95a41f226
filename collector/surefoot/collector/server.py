"""The collector process: both transports over one receiver and one durable log."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

from surefoot.collector.admission import Admission
from surefoot.collector.auth import Authenticator
from surefoot.collector.config import Config
from surefoot.collector.errors import SpoolError
from surefoot.collector.exposure import certificates, check_exposure
from surefoot.collector.grpc_server import GrpcServer, address
from surefoot.collector.http_server import HttpServer
from surefoot.collector.log import DurableLog
from surefoot.collector.mounts import mountinfo, refuse_network
from surefoot.collector.rate import Rate
from surefoot.collector.receiver import Receiver
from surefoot.collector.spool import Spool

log = logging.getLogger("surefoot.collector")

_STATUS_SECONDS = 1.0
_GRACE_SECONDS = 10.0
_BLOCK = 4096


class Collector:
    """A running collector. Use :func:`running`."""

    def __init__(self, config: Config, spool: Spool, recovered: list[str]) -> None:
        self._spool = spool
        self._started = time.time()
        self.recovered = recovered
        for sentence in recovered:
            log.warning("%s", sentence)
        self._log = DurableLog(spool, segment_bytes=config.segment_bytes, segment_seconds=config.segment_seconds)
        with contextlib.ExitStack() as undo:
            undo.callback(self._log.close)
            self._admission = Admission(spool, config.max_backlog_bytes)
            authenticator = Authenticator(config.tokens) if config.tokens is not None else None
            rate = Rate(config.max_requests_per_second)
            self._receiver = Receiver(self._log, self._admission, config.limits, rate, authenticator)
            files = certificates(config)
            self._http = HttpServer(self._receiver, config, files, self.health)
            undo.callback(self._http.stop)
            self._grpc = GrpcServer(self._receiver, config, files)
            undo.pop_all()
        scheme = "http" if files is None else "https"
        self.addresses = {
            "grpc": address(config.host, self._grpc.port),
            "http": f"{scheme}://{address(config.host, self._http.port)}",
        }

    def stop(self) -> None:
        """Take nothing new, finish what is in hand, seal the open segment."""
        self._grpc.stop(_GRACE_SECONDS)
        self._http.stop()
        self._log.close()

    def health(self) -> tuple[str, str | None]:
        """``ok``, ``disk`` or ``backlogged``, and why."""
        trouble = self._log.trouble
        if trouble is not None:
            return "disk", trouble
        if self._admission.is_refusing:
            return "backlogged", "the limit for bytes that wait for the lake is reached; see the writer"
        return "ok", None

    def status(self) -> dict[str, Any]:
        """What the collector says about itself; ``counts`` are totals since ``started``."""
        state, reason = self.health()
        sealed = self._spool.sealed()
        return {
            "at": time.time(),
            "started": self._started,
            "pid": os.getpid(),
            "addresses": self.addresses,
            "state": state,
            "reason": reason,
            "counts": self._receiver.counts(),
            "refusals": self._receiver.refusals(),
            "bytes_total": self._log.bytes_total,
            "syncs_total": self._log.syncs_total,
            "sealed_total": self._log.sealed_total,
            "backlog_bytes": self._admission.backlog(),
            "open_segments": len(self._spool.unsealed()),
            "sealed_segments": len(sealed),
            "oldest_sealed_seconds": _age(sealed),
            "quarantined": [path.name for path in self._spool.quarantined()],
            "recovered": self.recovered,
        }


@contextlib.contextmanager
def running(config: Config) -> Iterator[Collector]:
    """A collector that runs while inside. Raises SpoolError, AddressError or ExposureError if it cannot start."""
    check_exposure(config)
    if not config.spool_on_network:
        refuse_network(config.spool.absolute().resolve(), mountinfo())
    spool = Spool(config.spool)
    with spool.lock():
        try:
            recovered = spool.recover()
        except OSError as error:
            raise SpoolError(f"Cannot recover the spool {config.spool}: {error}. Nothing was deleted.") from error
        collector = Collector(config, spool, recovered)
        try:
            yield collector
        finally:
            collector.stop()


def serve(config: Config) -> None:
    """Run until SIGTERM or SIGINT; says where it listens in one JSON line on stdout."""
    stop = threading.Event()

    def request_stop(_number: int, _frame: FrameType | None) -> None:
        stop.set()

    signal.signal(signal.SIGTERM, request_stop)
    signal.signal(signal.SIGINT, request_stop)
    with running(config) as collector:
        print(json.dumps(collector.addresses), flush=True)  # noqa: T201 - the ready line
        while True:
            if config.status is not None:
                _publish(config.status, collector.status())
            if stop.wait(_STATUS_SECONDS):
                break
    if config.status is not None:
        _publish(config.status, collector.status())


def _age(sealed: list[Path]) -> float | None:
    """Seconds since the oldest segment got its last record; None if there is none, or the writer just took it."""
    with contextlib.suppress(FileNotFoundError):
        return max(0.0, time.time() - sealed[0].stat().st_mtime) if sealed else None
    return None


def _publish(folder: Path, status: dict[str, Any]) -> None:
    """Replace ``collector.json``; never raises, for a collector that waits for room on a full disk must go on.

    On a full disk no new file can be written. That is when the status matters most, so the old one is overwritten in
    the blocks that it has: its length is a multiple of a block, blanks at the end.
    """
    text = json.dumps(status).encode()
    text = text.ljust(-(-len(text) // _BLOCK) * _BLOCK)
    target, draft = folder / "collector.json", folder / f".collector.{os.getpid()}.tmp"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        draft.write_bytes(text)
        draft.replace(target)
    except OSError as error:
        try:
            draft.unlink(missing_ok=True)
            with target.open("r+b") as file:
                file.write(text)
                file.truncate()
        except OSError:
            log.warning("Could not publish the collector's status in %s: %s", folder, error)
