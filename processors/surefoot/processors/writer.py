"""The writer process: sealed segments in, committed raw tables out, segments deleted when every table holds them.

Exactly once: each table remembers, in its own log, the highest segment of a receiver that it holds. After a crash the
batch that was being written is formed again from those numbers and finished before anything newer is touched, and
segments are never processed out of order, because a number that was passed counts as held. A segment that fails three
times by itself is set aside, counted and named; a disk or a lake that refuses is nobody's fault and is waited for.
"""

from __future__ import annotations

import json
import logging
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import Any

import pyarrow as pa

from surefoot.collector.errors import SegmentError
from surefoot.collector.segment import Record, Segment, Signal, read_segment
from surefoot.collector.spool import Spool
from surefoot.errors import SurefootError
from surefoot.processors import status
from surefoot.processors.attempts import Attempts
from surefoot.processors.errors import LakeError, RowsError
from surefoot.processors.genai.columns import canonical_logs, canonical_spans
from surefoot.processors.lake import Lake
from surefoot.processors.lake.identity import IdentityFilter
from surefoot.processors.lake.schema import METRIC_POINTS, RAW_TABLES
from surefoot.processors.otlp import decode_logs, decode_metrics, decode_spans
from surefoot.processors.settings import Settings

log = logging.getLogger("surefoot.writer")

BATCH_BYTES = 32 << 20  # about 50 k spans, where decoding was measured fastest
IDLE_SECONDS = 0.1
WAIT_SECONDS = 2.0
MOST_ATTEMPTS = 3


class Writer:
    """Moves segments of one spool into one lake."""

    def __init__(self, lake: Lake, spool: Spool) -> None:
        self._lake = lake
        self._spool = spool
        self._attempts = Attempts(spool.path / "attempts.json")
        self._identities = IdentityFilter(lake)
        self.totals: Counter[str] = Counter()
        self.waiting: str | None = None  # why nothing can be written at the moment

    def step(self) -> bool:
        """Process the next batch; False if there was none or the lake refuses at the moment."""
        paths = self._next_paths()
        if not paths:
            return False
        alone = len(paths) == 1
        self._attempts.begin(paths, alone=alone)
        try:
            self._process(paths)
        except (OSError, LakeError) as error:
            if not isinstance(error, RowsError):
                self._attempts.forgive(paths)
                self._wait(error)
                return False
            self._blame(paths, error)
        except Exception as error:  # noqa: BLE001 - whatever a segment does to us, it is isolated, named and kept
            self._blame(paths, error)
        else:
            self.waiting = None
            self._attempts.done(paths)
        return True

    def published(self) -> dict[str, Any]:
        """What the writer says about itself."""
        sealed = self._spool.sealed()
        return {
            "at": time.time(),
            "state": "waiting" if self.waiting else "ok",
            "reason": self.waiting,
            "totals": dict(self.totals),
            "duplicates_total": self._identities.duplicates,
            "sealed_segments": len(sealed),
            "lag_seconds": _age(sealed),
            "quarantined": [path.name for path in self._spool.quarantined()],
        }

    def _next_paths(self) -> list[Path]:
        """The oldest segments, as many as make a batch; one that has failed before goes alone."""
        chosen: list[Path] = []
        size = 0
        for path in self._spool.sealed():
            size += path.stat().st_size
            suspect = self._attempts.has_failed(path)
            if chosen and (suspect or size > BATCH_BYTES):
                break
            chosen.append(path)
            if suspect:
                break
        return chosen

    def _process(self, paths: Sequence[Path]) -> None:
        segments = [(path, read_segment(path)) for path in paths]
        for receiver in dict.fromkeys(segment.receiver_id for _, segment in segments):
            own = [(path, segment) for path, segment in segments if segment.receiver_id == receiver]
            held = {table: self._lake.transaction_version(table, receiver) or 0 for table in RAW_TABLES}
            unfinished = [(p, s) for p, s in own if s.sequence <= max(held.values())]
            newer = [(p, s) for p, s in own if s.sequence > max(held.values())]
            for batch in (unfinished, newer):
                if batch:
                    self._commit([segment for _, segment in batch], receiver, held)
                    self._finish(batch)

    def _commit(self, segments: Sequence[Segment], receiver: str, held: dict[str, int]) -> None:
        """Commit what these segments hold to each table that does not hold it yet.

        Contents come first: they are those of spans that are new, and after a crash in between nothing could tell
        any more which those were.
        """
        last = max(segment.sequence for segment in segments)
        tables = self._tables([record for segment in segments for record in segment.records])
        for name in RAW_TABLES:
            if held[name] >= last or tables[name].num_rows == 0:
                continue
            commit = self._lake.commit(name, tables[name], app_id=receiver, app_version=last)
            self.totals[name] += tables[name].num_rows
            if name == "spans":
                self._identities.remember(tables[name], commit)

    def _tables(self, records: Sequence[Record]) -> dict[str, pa.Table]:
        by_signal = {kind: [record for record in records if record.signal is kind] for kind in Signal}
        fresh = self._identities.fresh(decode_spans(by_signal[Signal.TRACES]))
        spans, contents = canonical_spans(fresh)
        logs, log_contents = canonical_logs(decode_logs(by_signal[Signal.LOGS]))
        points = decode_metrics(by_signal[Signal.METRICS])
        return {
            "contents": pa.concat_tables([contents, log_contents]),
            "spans": spans,
            "logs": logs,
            "metric_points": points.select(METRIC_POINTS.names).cast(METRIC_POINTS),
        }

    def _finish(self, batch: Sequence[tuple[Path, Segment]]) -> None:
        for path, segment in batch:
            for damage in segment.damage:
                data = path.read_bytes()[damage.offset : damage.offset + damage.length]
                name = f"{path.stem}-at-{damage.offset}.damage"
                reason = f"{damage.length} bytes at {damage.offset} of {path.name}: {damage.reason}"
                self._spool.quarantine_bytes(name, data, reason)
                self.totals["damaged_stretches"] += 1
                log.error("Set aside %s.", reason)
            self._spool.remove(path)
            self.totals["segments"] += 1

    def _blame(self, paths: Sequence[Path], error: Exception) -> None:
        """A batch failed: its segments go alone from now on; one that failed often enough alone is set aside."""
        log.exception("Could not process %s.", ", ".join(path.name for path in paths))
        if len(paths) == 1 and (isinstance(error, SegmentError) or self._attempts.alone(paths[0]) >= MOST_ATTEMPTS):
            self._set_aside(paths[0], f"{type(error).__name__}: {error}")

    def set_aside_killers(self) -> None:
        """Set aside segments that ended the process itself three times; call once at the start."""
        for path in self._spool.sealed():
            if self._attempts.alone(path) >= MOST_ATTEMPTS:
                self._set_aside(path, f"the writer ended {MOST_ATTEMPTS} times while processing it")

    def _set_aside(self, path: Path, reason: str) -> None:
        target = self._spool.quarantine(path, reason)
        self._attempts.done([path])
        self.totals["quarantined_segments"] += 1
        log.error("Set aside %s (%s). It is kept in %s.", path.name, reason, target.parent)

    def _wait(self, error: Exception) -> None:
        if self.waiting != str(error):
            log.error("The lake cannot be written: %s. Segments wait.", error)
        self.waiting = str(error)


def _age(sealed: Sequence[Path]) -> float:
    """Seconds since the oldest sealed segment was last written; 0 without one."""
    try:
        return max(0.0, time.time() - sealed[0].stat().st_mtime) if sealed else 0.0
    except FileNotFoundError:
        return 0.0


def run(settings: Settings, stop: threading.Event, *, once: bool) -> None:
    """Process segments until ``stop`` is set, or with ``once`` until there is none left."""
    spool = Spool(settings.spool_path)
    writer = Writer(Lake.open(settings.lake_path), spool)
    writer.set_aside_killers()
    print(json.dumps({"ready": True}), flush=True)  # noqa: T201 - the ready line
    published = 0.0
    while not stop.is_set():
        busy = writer.step()
        if time.monotonic() - published >= 1.0 or once:
            status.publish(settings.status_path, "writer", writer.published())
            published = time.monotonic()
        if busy:
            continue
        if once:
            break
        stop.wait(WAIT_SECONDS if writer.waiting else IDLE_SECONDS)
    status.publish(settings.status_path, "writer", writer.published())


def main() -> int:
    """``python -m surefoot.processors.writer [--once]``; returns the exit code."""
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="surefoot writer: %(levelname)s %(message)s")
    stop = threading.Event()

    def request_stop(_number: int, _frame: FrameType | None) -> None:
        stop.set()

    signal.signal(signal.SIGTERM, request_stop)
    signal.signal(signal.SIGINT, request_stop)
    try:
        run(Settings(), stop, once="--once" in sys.argv[1:])
    except SurefootError as error:
        log.error("%s", error)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
