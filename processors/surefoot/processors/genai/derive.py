"""The deriver: what arrived since the last step becomes rows of the derived tables, replaced by trace.

Contract: after :meth:`Deriver.step` the tables ``runs``, ``tool_calls``, ``model_calls`` and ``verdicts`` are what a
derivation from scratch at ``now`` would give. A crash at any instruction is repaired by the next step: how far each
source was read is recorded (application transactions ``derive-<source>`` of the table ``runs``) only after everything
read was replaced in all four tables, and replacing twice changes nothing. Traces that wait for their settle time are
those with an unsettled row, so they survive a restart.

One deriver per lake, under the lake's lease.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from surefoot.processors.genai.batch import LARGE, TIMED, Batch, OpenTrace, derive_batch, hours_of, next_traces
from surefoot.processors.genai.load import EPOCH, Arrival, Reader
from surefoot.processors.genai.traces import micros
from surefoot.processors.lake import Lake, replace_traces, settle_traces
from surefoot.processors.lake.schema import TRACE_TABLES
from surefoot.processors.settings import Settings

log = logging.getLogger("surefoot.derive")

_APP: Final = "derive"
_SOURCES: Final = {"spans": "derive-spans", "logs": "derive-logs", "metric_points": "derive-metric-points"}
_MARKED: Final = "runs"  # the table that carries the sources' progress

# Traces of one batch are in memory together.
_BATCH_SPANS: Final = 100_000
_BATCH_TRACES: Final = 20_000


@dataclass(frozen=True, slots=True)
class RunCounter:
    """User-facing runs of a service that were first seen ended with an outcome, since this process began."""

    service_name: str
    outcome: str
    runs: int
    exemplar_trace_id: str  # of the latest one


@dataclass(frozen=True, slots=True)
class UnpricedCounter:
    """Model calls of a service, as first seen, that used tokens at a price that the price list does not know."""

    service_name: str
    calls: int


@dataclass(frozen=True, slots=True)
class Derived:
    """What one step did."""

    changed_traces: frozenset[str]
    dirty_dates: set[date]  # dates of ``ended_at`` of rows before and after; on the first step all recent ones
    dirty_hours: set[int] | None  # the same in hours since 1970; None on the first step, when only dates are known
    next_deadline: float | None  # when the next trace is due, unix seconds
    rows: dict[str, int]  # rows written by table


class Deriver:
    """Derives step by step. Memory is a cache: a new deriver on the same lake goes on where this one stopped."""

    def __init__(self, lake: Lake, settings: Settings) -> None:
        self._lake = lake
        self._settings = settings
        self._reader = Reader(lake)
        self._read = {source: _last(lake, _MARKED, app) for source, app in _SOURCES.items()}
        self._sequence = max(_last(lake, table, _APP) for table in TRACE_TABLES)
        # When they are due is not recorded: all are looked at once.
        self._open = {trace_id: OpenTrace(0, 0) for trace_id in self._reader.open_traces()}
        self._counters: dict[tuple[str, str], RunCounter] = {}
        self._unpriced: Counter[str] = Counter()
        self._first = True

    @property
    def counters(self) -> list[RunCounter]:
        """One per service and outcome; they only grow."""
        return list(self._counters.values())

    @property
    def unpriced(self) -> list[UnpricedCounter]:
        """One per service that has such a call; they only grow."""
        return [UnpricedCounter(*counted) for counted in sorted(self._unpriced.items())]

    def step(self, now: float) -> Derived:
        """Derive what arrived since the last step and what is due at ``now`` (unix seconds)."""
        versions, work = self._arrived()
        now_us = micros(now)
        due = [(trace_id, known.rests) for trace_id, known in self._open.items() if known.due_us <= now_us]
        work |= {trace_id: work.get(trace_id) for trace_id, rests in due if not rests}
        self._postpone_large(work, now_us)
        hours: set[int] = set()
        rows = dict.fromkeys(TRACE_TABLES, 0)
        done: set[str] = set()
        while work:
            more: set[str] = set()
            for part in _parts(work, self._open):
                batch = derive_batch(
                    self._reader, part, now, self._settings.settle_seconds, self._settings.lookback_days
                )
                self._write(batch)
                self._remember(batch)
                done.update(batch.trace_ids)
                hours |= batch.hours()
                for table in TRACE_TABLES:
                    rows[table] += batch.after[table].num_rows
                self._reader.refresh()
                more.update(next_traces(self._reader, batch))
            work = dict.fromkeys(more - done)
        settling = [trace_id for trace_id, rests in due if rests and trace_id not in done]
        for start in range(0, len(settling), _BATCH_TRACES):
            self._settle(settling[start : start + _BATCH_TRACES], hours, rows)
        done.update(settling)
        self._record(versions)
        self._reader.end_step()
        dirty = {EPOCH + timedelta(hours=hour) for hour in hours}
        known = None if self._first else hours
        if self._first:
            dirty |= self._recent_dates(now_us)
            self._first = False
        deadline = min((known.due_us for known in self._open.values()), default=None)
        return Derived(frozenset(done), dirty, known, None if deadline is None else deadline / 1e6, rows)

    def _arrived(self) -> tuple[dict[str, int], dict[str, Arrival | None]]:
        """Versions of the sources now, and the traces that came after the versions read so far."""
        arrivals: dict[str, Arrival] = {}
        added = {source: self._lake.added_since(source, self._read[source]) for source in _SOURCES}
        for source, new in added.items():
            if not new.complete:
                log.warning("the log of table %s does not reach back to the last step; deriving all of it", source)
        self._reader.refresh()
        if added["spans"].files:
            self._reader.span_arrivals([file.path for file in added["spans"].files], arrivals)
        if added["logs"].files:
            self._reader.log_arrivals([file.path for file in added["logs"].files], arrivals)
        if added["metric_points"].files:
            self._reader.metric_arrivals([file.path for file in added["metric_points"].files], arrivals)
        return {source: new.version for source, new in added.items()}, {**arrivals}

    def _postpone_large(self, work: dict[str, Arrival | None], now_us: int) -> None:
        """Take out large open traces that are not due; they are due when nothing comes for the settle time from now."""
        for trace_id, arrival in list(work.items()):
            known = self._open.get(trace_id)
            if arrival is not None and known is not None and known.spans + arrival.rows > LARGE and known.spans:
                del work[trace_id]
                due = now_us + micros(self._settings.settle_seconds)
                self._open[trace_id] = OpenTrace(due, known.spans + arrival.rows)

    def _write(self, batch: Batch) -> None:
        """Replace the batch's traces in every table that holds or gets a row of them."""
        self._sequence += 1
        resting = pa.array(batch.resting, pa.string())
        for table in TRACE_TABLES:
            before, after = batch.before[table], batch.after[table]
            if not before.num_rows and not after.num_rows:
                continue
            earliest = pc.min(before["date"].filter(before["settled"])).as_py()
            rests = pc.is_in(after["trace_id"], resting)
            replace_traces(
                self._lake,
                table,
                batch.trace_ids,
                _those(after, pc.invert(pc.or_(after["settled"], rests))),
                _those(after, after["settled"]),
                _APP,
                self._sequence,
                since=earliest or date.max,
                resting=_those(after, rests),
                where=self._reader.where[table],
            )

    def _settle(self, trace_ids: list[str], hours: set[int], rows: dict[str, int]) -> None:
        """Settle traces as they are: nothing came since they were derived, and time changes nothing else in them."""
        self._sequence += 1
        for table in TRACE_TABLES:
            settled = settle_traces(self._lake, table, trace_ids, _APP, self._sequence, where=self._reader.where[table])
            rows[table] += settled.num_rows
            if table in TIMED:
                hours |= hours_of(settled)
        for trace_id in trace_ids:
            del self._open[trace_id]

    def _remember(self, batch: Batch) -> None:
        for trace_id in batch.trace_ids:
            self._open.pop(trace_id, None)
        self._open |= batch.open
        before, after = batch.before["runs"], batch.after["runs"]
        known = before.filter(before["ended_at"].is_valid())["run_id"].combine_chunks()
        ended = pc.and_(after["ended_at"].is_valid(), after["parent_run_id"].is_null())
        self._count(after.filter(pc.and_(ended, pc.invert(pc.is_in(after["run_id"], known)))))

        known, calls = (_without_price(rows["model_calls"]) for rows in (batch.before, batch.after))
        fresh = calls.filter(pc.invert(pc.is_in(_identities(calls), _identities(known))))
        self._unpriced.update(service or "" for service in fresh["service_name"].to_pylist())

    def _count(self, runs: pa.Table) -> None:
        services = pc.fill_null(runs["service_name"], "")
        ended = pa.table({"service": services, "outcome": runs["outcome"], "trace": runs["trace_id"]})
        counted = ended.group_by(["service", "outcome"], use_threads=False)
        for row in counted.aggregate([("trace", "count"), ("trace", "last")]).to_pylist():
            key = (row["service"], row["outcome"])
            known = self._counters.get(key)
            self._counters[key] = RunCounter(*key, (known.runs if known else 0) + row["trace_count"], row["trace_last"])

    def _record(self, versions: Mapping[str, int]) -> None:
        for source, app in _SOURCES.items():
            if versions[source] > self._read[source]:
                self._lake.commit(_MARKED, app_id=app, app_version=versions[source])
                self._read[source] = versions[source]

    def _recent_dates(self, now_us: int) -> set[date]:
        """Dates of runs that changed within the look-back: a process that died may have derived them and not told."""
        horizon = now_us - self._settings.lookback_days * 86_400_000_000
        return set(self._reader.ended_since(horizon))


def _those(rows: pa.Table, mask: Any) -> pa.Table | None:
    """The rows where the mask is true; mostly that is all of them or none, and nothing is copied."""
    if pc.all(mask).as_py():
        return rows
    return rows.filter(mask) if pc.any(mask).as_py() else None


def _without_price(calls: pa.Table) -> pa.Table:
    used = pc.or_(calls["input_tokens"].is_valid(), calls["output_tokens"].is_valid())
    return calls.filter(pc.and_(used, calls["cost_usd"].is_null()))


def _identities(rows: pa.Table) -> pa.Array:
    return pc.binary_join_element_wise(rows["trace_id"], rows["span_id"], "-").combine_chunks()


def _last(lake: Lake, table: str, app: str) -> int:
    version = lake.transaction_version(table, app)
    return -1 if version is None else version


def _parts(work: Mapping[str, Arrival | None], known: Mapping[str, OpenTrace]) -> Iterator[dict[str, Arrival | None]]:
    """The work in batches that fit in memory, traces that look equally far back together, in order of arrival.

    In this order the spans of a batch are in few files, and these are read once.
    """

    def since(trace_id: str) -> date:
        arrival = work[trace_id]
        return date.min if arrival is None else arrival.since

    part: dict[str, Arrival | None] = {}
    spans = 0
    for trace_id in sorted(work, key=since):
        arrival = work[trace_id]
        size = (known[trace_id].spans if trace_id in known else 0) + (0 if arrival is None else arrival.rows)
        if part and (spans + size > _BATCH_SPANS or len(part) >= _BATCH_TRACES):
            yield part
            part, spans = {}, 0
        part[trace_id] = arrival
        spans += size
    if part:
        yield part
