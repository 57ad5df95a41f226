"""The writer process: sealed segments in, committed raw tables out, segments deleted when every table holds them.

Exactly once: each table remembers, in its own log, the highest segment of a receiver that it holds. After a crash the
segments that were being written are known from those numbers and finished before anything newer is touched, and
segments are never processed out of order, because a number that was passed counts as held. A segment that three times
by itself fails or ends the process is set aside, counted and named; a disk or a lake that refuses is waited for.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import logging
import math
import os
import signal
import sys
import threading
import time
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

import duckdb
import pyarrow as pa

from surefoot.collector.errors import SegmentError
from surefoot.collector.segment import Record, Segment, Signal, read_segment
from surefoot.collector.spool import Spool
from surefoot.errors import SurefootError
from surefoot.processors import status
from surefoot.processors.attempts import Attempts
from surefoot.processors.errors import DecodeError, LakeError, RowsError, WriterBusyError
from surefoot.processors.genai.columns import canonical_logs, canonical_spans
from surefoot.processors.lake import Lake, supersede
from surefoot.processors.lake.fingerprint import FingerprintFilter
from surefoot.processors.lake.identity import IdentityFilter, Sifted
from surefoot.processors.lake.schema import METRIC_POINTS, RAW_TABLES
from surefoot.processors.otlp import decode_logs, decode_metrics, decode_spans
from surefoot.processors.settings import Settings

log = logging.getLogger("surefoot.writer")

BATCH_BYTES = 32 << 20  # about 50 k spans, where decoding was measured fastest
IDLE_SECONDS = 0.1
WAIT_SECONDS = 2.0
BUSY_SECONDS = 30.0  # as long as the supervisor gives an ending writer
PUBLISH_SECONDS = 1.0
MOST_ATTEMPTS = 3

Decode = Callable[[Sequence[Record]], pa.Table]


class Writer:
    """Moves segments of one spool into one lake. Only one may work on a spool: see :func:`only_writer`."""

    def __init__(self, lake: Lake, spool: Spool) -> None:
        self._lake = lake
        self._spool = spool
        self._attempts = Attempts(spool.path / "attempts.json")
        self._identities = IdentityFilter(lake)
        self._fingerprints = {table: FingerprintFilter(lake, table) for table in ("logs", "metric_points")}
        self._errors: dict[str, str] = {}  # of segments that failed in this process, by name
        self.totals: Counter[str] = Counter()
        self.waiting: str | None = None  # why nothing can be written at the moment
        self.last_error: str | None = None

    def step(self) -> bool:
        """Process the next batch; False if there was none or the lake or a disk refuses at the moment."""
        paths = self._next_paths()
        if not paths:
            return False
        try:
            if self._attempts.alone(paths[0]) >= MOST_ATTEMPTS:
                self._set_aside(paths[0])
            else:
                self._attempts.begin(paths)
                self._process(paths)
                self._attempts.end(paths)
        except RowsError as error:
            self._blame(paths, error)
        except (OSError, LakeError) as error:
            self._wait(paths, error)
            return False
        except Exception as error:  # noqa: BLE001 - whatever a segment does to us, it is isolated, named and kept
            self._blame(paths, error)
        else:
            self.waiting = None
        return True

    def published(self) -> dict[str, Any]:
        """What the writer says about itself."""
        sealed = self._spool.sealed()
        return {
            "at": time.time(),
            "state": "waiting" if self.waiting else "ok",
            "reason": self.waiting,
            "last_error": self.last_error,
            "totals": dict(self.totals),
            "duplicates_total": self._identities.duplicates + sum(f.duplicates for f in self._fingerprints.values()),
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
            suspect = self._attempts.is_suspect(path)
            if chosen and (suspect or size > BATCH_BYTES):
                break
            chosen.append(path)
            if suspect:
                break
        return chosen

    def _process(self, paths: Sequence[Path]) -> None:
        segments = [(path, _read(path)) for path in paths]
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
        tables, poorer = self._tables([record for segment in segments for record in segment.records])
        if held["spans"] >= last and (lost := tables["spans"].num_rows):
            raise SegmentError(
                f"The lake holds every span up to segment {held['spans']} of {receiver}, but not {lost} of {last}. "
                "Were numbers used twice, as after an older receiver.json was put back? Stop the server and delete "
                f"{self._spool.path / 'receiver.json'}: a fresh id is made."
            )
        for name in RAW_TABLES:
            if held[name] >= last or tables[name].num_rows == 0:
                continue
            keys = _superseded(name, tables[name], poorer)
            commit = supersede(self._lake, name, tables[name], keys, poorer["date"].to_pylist(), receiver, last)
            self.totals[name] += tables[name].num_rows if commit.committed else 0
            if name == "spans":
                self._identities.remember(tables[name], commit)
            elif name in self._fingerprints:
                self._fingerprints[name].remember(tables[name], commit)

    def _tables(self, records: Sequence[Record]) -> tuple[dict[str, pa.Table], pa.Table]:
        """What is new, by table, and the spans that are held in a poorer copy."""
        sifted = self._sifted(self._decoded(decode_spans, records, Signal.TRACES))
        spans, contents = canonical_spans(sifted.rows)
        logs, log_contents = canonical_logs(self._new("logs", self._decoded(decode_logs, records, Signal.LOGS)))
        points = self._new("metric_points", self._decoded(decode_metrics, records, Signal.METRICS))
        tables = {
            "contents": pa.concat_tables([contents, log_contents]),
            "spans": spans,
            "logs": logs,
            "metric_points": points.select(METRIC_POINTS.names).cast(METRIC_POINTS),
        }
        return tables, sifted.poorer

    def _sifted(self, spans: pa.Table) -> Sifted:
        with _of_the_lake(f"looking for {spans.num_rows} spans"):
            return self._identities.sift(spans)

    def _new(self, table: str, rows: pa.Table) -> pa.Table:
        with _of_the_lake(f"looking for {rows.num_rows} rows of {table}"):
            return self._fingerprints[table].fresh(rows)

    def _decoded(self, decode: Decode, records: Sequence[Record], wanted: Signal) -> pa.Table:
        """The records of one signal as rows; requests that cannot be decoded are set aside and the rest is kept."""
        chosen = [record for record in records if record.signal is wanted]
        try:
            return decode(chosen)
        except DecodeError as error:
            self.last_error = str(error)
            for place in error.places:
                record = chosen[place]
                name = f"{record.received_unix_nano}-{zlib.crc32(record.body):08x}.{wanted.name.lower()}.request"
                self._keep("undecodable_requests", name, record.body, str(error))
            return decode([record for place, record in enumerate(chosen) if place not in error.places])

    def _finish(self, batch: Sequence[tuple[Path, Segment]]) -> None:
        for path, segment in batch:
            for damage in segment.damage:
                data = path.read_bytes()[damage.offset : damage.offset + damage.length]
                reason = f"{damage.length} bytes at {damage.offset} of {path.name}: {damage.reason}"
                self._keep("damaged_stretches", f"{path.stem}-at-{damage.offset}.damage", data, reason)
            self._spool.remove(path)
            self.totals["segments"] += 1

    def _keep(self, counter: str, name: str, data: bytes, reason: str) -> None:
        """Set bytes aside, once, also when the batch that they come from is done again."""
        if (self._spool.quarantine_folder / name).exists():
            return
        target = self._spool.quarantine_bytes(name, data, reason)
        self.totals[counter] += 1
        log.error("Set aside %s (%s).", target, reason)

    def _blame(self, paths: Sequence[Path], error: Exception) -> None:
        """A batch failed: its segments go alone from now on; one that fails often enough alone is set aside."""
        self.last_error = f"{', '.join(path.name for path in paths)}: {type(error).__name__}: {error}"
        self._errors |= {path.name: f"{type(error).__name__}: {error}" for path in paths}
        log.error("Could not process %s", self.last_error, exc_info=error)

    def _set_aside(self, path: Path) -> None:
        reason = self._errors.pop(path.name, "the writer ended while it processed the segment")
        text = (
            f"{MOST_ATTEMPTS} attempts failed; the last one: {reason}\n"
            "Do not move the file back: its number was passed, so it would count as held and be deleted."
        )
        target = self._spool.quarantine(path, text)
        self.totals["quarantined_segments"] += 1
        self.last_error = f"{path.name}: {reason}"
        log.error("Set aside %s after %d attempts (%s).", target, MOST_ATTEMPTS, reason)
        self._attempts.end([path])

    def _wait(self, paths: Sequence[Path], error: Exception) -> None:
        if self.waiting != str(error):
            log.error("Nothing can be written: %s. Segments wait.", error)
        self.waiting = self.last_error = str(error)
        with contextlib.suppress(OSError):  # a full disk: then they stay suspect and go alone, no more
            self._attempts.end(paths)


def _superseded(table: str, rows: pa.Table, poorer: pa.Table) -> pa.Table:
    """What tells the rows that these come in place of: poorer spans, and contents that the new copies have too."""
    identity = ["trace_id", "span_id"]
    if table == "contents":
        return rows.select([*identity, "name"]).join(poorer.select(identity), identity, join_type="left semi")
    return poorer.select(identity) if table == "spans" else poorer.slice(0, 0)


@contextlib.contextmanager
def _of_the_lake(attempt: str) -> Iterator[None]:
    """Errors while files of the lake are read are no segment's fault."""
    try:
        yield
    except (duckdb.Error, pa.ArrowException) as error:
        raise LakeError(f"{attempt} in the lake failed: {error}") from error


def _read(path: Path) -> Segment:
    try:
        return read_segment(path)
    except OSError as error:
        raise SegmentError(f"Cannot read {path}: {error}") from error


def _age(sealed: Sequence[Path]) -> float:
    """Seconds since the oldest sealed segment was last written; 0 without one."""
    try:
        return max(0.0, time.time() - sealed[0].stat().st_mtime) if sealed else 0.0
    except FileNotFoundError:
        return 0.0


@contextlib.contextmanager
def only_writer(spool: Spool, stop: threading.Event) -> Iterator[None]:
    """Hold the spool as its only writer: two would each commit segments that the other has in hand.

    Waits for one that is ending. Raises WriterBusyError naming the other process if it goes on.
    """
    deadline = time.monotonic() + BUSY_SECONDS
    with (spool.path / "writer.lock").open("a+") as file:
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if stop.is_set() or time.monotonic() > deadline:
                    file.seek(0)
                    raise WriterBusyError(
                        f"Another writer (process {file.read().strip() or 'unknown'}) works on {spool.path}. "
                        "Stop it, or let it do the work."
                    ) from None
            stop.wait(IDLE_SECONDS)
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        yield


def run(settings: Settings, stop: threading.Event, *, once: bool, announce: bool = True) -> None:
    """Process segments until ``stop`` is set, or with ``once`` until there is none left or none can be written."""
    spool = Spool(settings.spool_path)
    with only_writer(spool, stop):
        writer = Writer(Lake.open(settings.lake_path), spool)
        if announce:
            print(json.dumps({"ready": True}), flush=True)  # noqa: T201 - the ready line
        published = -math.inf
        while not stop.is_set():
            busy = writer.step()
            if time.monotonic() - published >= PUBLISH_SECONDS:
                _publish(settings, writer)
                published = time.monotonic()
            if busy:
                continue
            if once:
                break
            stop.wait(WAIT_SECONDS if writer.waiting else IDLE_SECONDS)
        _publish(settings, writer)
        if once and writer.waiting:
            raise LakeError(f"{writer.waiting}. {len(spool.sealed())} segments still wait in {spool.path}.")


def _publish(settings: Settings, writer: Writer) -> None:
    try:
        status.publish(settings.status_path, "writer", writer.published())
    except OSError as error:  # a full disk, which the writer waits out
        log.error("Cannot publish what the writer does: %s.", error)


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
