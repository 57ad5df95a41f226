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
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

from surefoot.collector.admission import Admission
from surefoot.collector.errors import SpoolError
from surefoot.collector.grpc_server import GrpcServer
from surefoot.collector.http_server import HttpServer
from surefoot.collector.log import DurableLog
from surefoot.collector.receiver import Receiver
from surefoot.collector.spool import Spool

log = logging.getLogger("surefoot.collector")

_STATUS_SECONDS = 1.0
_GRACE_SECONDS = 10.0
_BLOCK = 4096


@dataclass(frozen=True, slots=True)
class Config:
    """How to run a collector. Sizes are bytes, times seconds; port 0 means any free port."""

    spool: Path
    status: Path | None = None
    host: str = "127.0.0.1"
    port_grpc: int = 4317
    port_http: int = 4318
    max_request_bytes: int = 64 << 20
    segment_bytes: int = 25 << 20
    segment_seconds: float = 2.0
    max_backlog_bytes: int = 2 << 30


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
            self._receiver = Receiver(self._log, self._admission)
            self._http = HttpServer(self._receiver, config.host, config.port_http, config.max_request_bytes)
            undo.callback(self._http.stop)
            self._grpc = GrpcServer(self._receiver, config.host, config.port_grpc, config.max_request_bytes)
            undo.pop_all()
        self.addresses = {
            "grpc": f"{config.host}:{self._grpc.port}",
            "http": f"http://{config.host}:{self._http.port}",
        }

    def stop(self) -> None:
        """Take nothing new, finish what is in hand, seal the open segment."""
        self._grpc.stop(_GRACE_SECONDS)
        self._http.stop()
        self._log.close()

    def status(self) -> dict[str, Any]:
        """What the collector says about itself; ``counts`` are totals since ``started``."""
        trouble = self._log.trouble
        state, reason = ("disk", trouble) if trouble else ("ok", None)
        if state == "ok" and self._admission.is_refusing:
            state, reason = "backlogged", "the limit for bytes that wait for the lake is reached; see the writer"
        return {
            "at": time.time(),
            "started": self._started,
            "state": state,
            "reason": reason,
            "counts": self._receiver.counts(),
            "bytes_total": self._log.bytes_total,
            "syncs_total": self._log.syncs_total,
            "sealed_total": self._log.sealed_total,
            "backlog_bytes": self._admission.backlog(),
            "open_segments": len(self._spool.unsealed()),
            "sealed_segments": len(self._spool.sealed()),
            "quarantined": [path.name for path in self._spool.quarantined()],
            "recovered": self.recovered,
        }


@contextlib.contextmanager
def running(config: Config) -> Iterator[Collector]:
    """A collector that runs while inside. Raises SpoolError or AddressError if it cannot start."""
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
