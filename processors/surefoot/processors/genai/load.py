"""What derivation reads from the lake: arrivals, whole traces, and what was derived before.

Rule: what is read of ``spans`` and ``logs`` is bounded by partition (``date``), and only files are opened that hold one
of the traces, so a new trace costs what arrived of it and not what the tables hold.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date, timedelta
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from surefoot.processors.genai import evaluators, events, traces
from surefoot.processors.genai.events import Event
from surefoot.processors.genai.reading_files import Groups, read_rows
from surefoot.processors.genai.records import Row, from_table
from surefoot.processors.genai.verdicts import home_of
from surefoot.processors.lake import Lake, views
from surefoot.processors.lake.schema import TABLES, TRACE_TABLES
from surefoot.processors.lake.table import PARTITION, DataFile
from surefoot.processors.lake.trace_files import TraceFiles

EPOCH: Final = date(1970, 1, 1)
# Ids go to DuckDB as an Arrow table: a list as a parameter is converted item by item.
_WANTED: Final = "wanted_traces"
_IN: Final = "trace_id IN (SELECT trace_id FROM wanted_traces)"

_OTHER_LOGS: Final = """
SELECT
  trace_id,
  max(coalesce(nullif(time_unix_nano, 0), observed_unix_nano, 0)) AS latest,
  epoch_us(max(received_at)) AS received
FROM logs
WHERE date >= ?
  AND trace_id IN (SELECT trace_id FROM wanted_traces)
  AND coalesce(event_name, '') NOT IN (SELECT unnest(?))
GROUP BY trace_id
"""
_NO_OTHER_LOGS: Final = pa.schema(
    [("trace_id", pa.string()), ("latest", pa.int64()), ("received", pa.int64())]
).empty_table()
_RESPONSES: Final = """
SELECT c.response_id, c.run_id, r.date, r.ended_at
FROM model_calls c JOIN runs r ON c.run_id = r.run_id
WHERE c.response_id IN (SELECT unnest(?)) AND c.trace_id NOT IN (SELECT unnest(?))
"""
_OUTPUTS: Final = f"date >= ? AND {_IN} AND name IN (SELECT unnest(?))"
# Verdicts whose run is not of their own trace, or whose response may yet be somebody's.
_ELSEWHERE: Final = """
SELECT DISTINCT trace_id, response_id, split_part(run_id, '-', 1) AS run_trace
FROM {verdicts}
WHERE run_id IS NULL AND response_id IS NOT NULL OR split_part(run_id, '-', 1) <> trace_id
"""
_TIMED: Final = ("trace_id", "span_id", "date", "settled", "received_at", "started_at", "ended_at")
_BEFORE: Final = {
    "runs": (*_TIMED, "run_id", "parent_run_id"),
    "tool_calls": _TIMED,
    "model_calls": (*_TIMED, "input_tokens", "output_tokens", "cost_usd"),
    "verdicts": tuple(TABLES["verdicts"].names),
}


@dataclass(slots=True)
class Arrival:
    """What came of a trace since the last step."""

    rows: int = 0
    since: date = date.max  # earliest partition
    # Evaluations kept under it that its own spans and logs do not tell: without context, of evaluators, of metrics.
    homeless: list[Event] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Found:
    """What the lake holds of some traces."""

    spans: pa.Table  # traces.COLUMNS
    events: pa.Table  # events.COLUMNS, only start events and evaluations
    other_logs: pa.Table  # trace_id, latest (unix ns), received (unix us)


class Reader:
    """Queries on a lake, over its tables as they were at the last :meth:`refresh`."""

    def __init__(self, lake: Lake) -> None:
        self._lake = lake
        self._con = lake.connect()
        self._stale = False  # whether views of the connection may show less than is there
        self._recent: Groups = {}
        self._elsewhere: pa.Table | None = None
        self.where = {table: TraceFiles(lake.table(table)) for table in ("spans", "logs", *TRACE_TABLES)}

    def end_step(self) -> None:
        """Let go of rows that only the step's next batch could have used."""
        self._recent.clear()

    def refresh(self) -> None:
        """See what is committed now, from the next query on."""
        self._stale = True

    def span_arrivals(self, files: Iterable[Path], into: dict[str, Arrival]) -> None:
        """Add the traces of these files of ``spans``, and those that evaluators among them judge."""
        chosen = list(files)
        judging = False
        for path in chosen:
            judging |= _count_spans(path, into)
        if not judging:  # asked of whole rows at once, files without an evaluator cost 0.3 s per 200,000 spans
            return
        judges = self._lake.read("spans", evaluators.SPAN_COLUMNS, evaluators.SPANS_WHERE, files=chosen)
        earliest = pc.min(judges["date"]).as_py()
        self._want(judges["trace_id"].unique().to_pylist())
        outputs = self._query("contents", _OUTPUTS, [earliest, [*evaluators.OUTPUTS]], "trace_id, span_id, content")
        by_span = {(row["trace_id"], row["span_id"]): row["content"] for row in outputs.to_pylist()}
        for row in events.records(judges):
            for event in evaluators.from_evaluator(row, by_span.get((row["trace_id"], row["span_id"]))):
                _bring(event, row["date"], into)

    def metric_arrivals(self, files: Iterable[Path], into: dict[str, Arrival]) -> None:
        """Add the traces that evaluations in these files of ``metric_points`` judge."""
        points = self._lake.read("metric_points", evaluators.POINT_COLUMNS, evaluators.POINTS_WHERE, files=list(files))
        for row in events.records(points):
            for event in evaluators.from_point(row):
                _bring(event, row["date"], into)

    def log_arrivals(self, files: Iterable[Path], into: dict[str, Arrival]) -> None:
        """Add the traces of these files of ``logs``, evaluations without trace context under their own ids."""
        chosen = list(files)
        _count(self._lake.read("logs", ["trace_id", "date"], "trace_id <> ''", files=chosen), into)
        homeless = self._lake.read(
            "logs",
            [*events.COLUMNS, "date"],
            "coalesce(trace_id, '') = '' AND event_name IN (SELECT unnest(?))",
            [[*events.EVALUATIONS]],
            files=chosen,
        )
        for day in homeless["date"].unique().to_pylist():
            for event in events.read_events(homeless.filter(pc.equal(homeless["date"], day))):
                _bring(event, day, into)

    def traces(self, trace_ids: Collection[str], since: date) -> Found:
        """All spans and logs of these traces in partitions from ``since`` on."""
        spans = read_rows(
            self._lake.table("spans"),
            self._holding("spans", trace_ids, since),
            traces.COLUMNS,
            pa.array(trace_ids, pa.string()),
            recent=self._recent,
        )
        logs, files = self._lake.table("logs"), self._holding("logs", trace_ids, since)
        if not files:
            return Found(spans, _none(events.COLUMNS), _NO_OTHER_LOGS)
        views.set_files(self._con, logs, [logs.path / file.path for file in files])
        names = [*events.NAMES]
        self._want(trace_ids)
        columns = ", ".join(events.COLUMNS)
        query = f"SELECT {columns} FROM logs WHERE date >= ? AND {_IN} AND event_name IN (SELECT unnest(?))"  # noqa: S608 - names of the schema
        told = self._con.sql(query, params=[since, names]).to_arrow_table()
        others = self._con.sql(_OTHER_LOGS, params=[since, names]).to_arrow_table()
        self._stale = True  # the view is to show all logs again
        return Found(spans, told, others)

    def _holding(self, table: str, trace_ids: Collection[str], since: date) -> list[DataFile]:
        """Files from ``since`` on that hold rows of these traces."""
        files = [file for file in self._lake.table(table).files().values() if file.date >= since]
        return self.where[table].find(trace_ids, files)

    def derived(self, trace_ids: Collection[str]) -> dict[str, pa.Table]:
        """What each derived table holds of these traces: place, times and state; of ``verdicts`` whole rows."""
        ids = pa.array(trace_ids, pa.string())
        return {
            table: read_rows(self._lake.table(table), self._holding(table, trace_ids, date.min), _BEFORE[table], ids)
            for table in TRACE_TABLES
        }

    def whole(self, table: str, trace_ids: Collection[str]) -> list[Row]:
        """All columns of a derived table's rows of these traces."""
        self._want(trace_ids)
        return from_table(self._query(table, _IN, []))

    def open_traces(self) -> list[str]:
        """Traces with a row that is not settled."""
        query = " UNION ".join(
            f"SELECT trace_id FROM {table} WHERE NOT settled"  # noqa: S608 - names of the schema
            for table in TRACE_TABLES
        )
        return [trace_id for (trace_id,) in self._con.execute(query).fetchall()]

    def responses(self, response_ids: Collection[str], but: Collection[str]) -> list[Row]:
        """Runs of the model calls that gave these responses, in traces other than ``but``, and the runs' dates."""
        self._fresh()
        found = self._con.sql(_RESPONSES, params=[sorted(response_ids), sorted(but)])
        return from_table(found.to_arrow_table())

    def waiting(self, response_ids: pa.Array, of: Collection[str]) -> list[str]:
        """Traces other than ``of`` with a verdict whose run may change with ``of``.

        Its run is among them, or it judges one of these responses and its own trace has no run for it.
        """
        found = self._known_elsewhere()
        if not found.num_rows:
            return []
        ids = pa.array(sorted(of), pa.string())
        concerned = pc.or_(pc.is_in(found["run_trace"], ids), pc.is_in(found["response_id"], response_ids))
        others = pc.invert(pc.is_in(found["trace_id"], ids))
        waiting: list[str] = found.filter(pc.and_(concerned, others))["trace_id"].unique().to_pylist()
        return waiting

    def _known_elsewhere(self) -> pa.Table:
        if self._elsewhere is None:
            self._fresh()
            self._elsewhere = self._con.sql(_ELSEWHERE.format(verdicts="verdicts")).to_arrow_table()
        return self._elsewhere

    def remember(self, trace_ids: Collection[str], verdicts: pa.Table) -> None:
        """These are all verdicts of the traces now: :meth:`waiting` looks at verdicts in memory, not in the table."""
        known = self._known_elsewhere()
        if known.num_rows:
            known = known.filter(pc.invert(pc.is_in(known["trace_id"], pa.array(trace_ids, pa.string()))))
        if verdicts.num_rows:
            self._con.register("new_verdicts", verdicts)
            new = self._con.sql(_ELSEWHERE.format(verdicts="new_verdicts")).to_arrow_table()
            known = pa.concat_tables([known, new.cast(known.schema)])
        self._elsewhere = known

    def ended_since(self, moment_us: int) -> list[date]:
        """Dates of the runs that ended and that something arrived for since ``moment_us`` (unix us)."""
        found = self._query("runs", "ended_at IS NOT NULL AND epoch_us(received_at) >= ?", [moment_us], "DISTINCT date")
        days: list[date] = found["date"].to_pylist()
        return days

    def _want(self, trace_ids: Collection[str]) -> None:
        """Make these the traces that queries look for."""
        self._con.register(_WANTED, pa.table({"trace_id": pa.array(list(trace_ids), pa.string())}))

    def _query(self, table: str, where: str, parameters: list[Any], columns: str = "*") -> pa.Table:
        self._fresh()
        query = f"SELECT {columns} FROM {table} WHERE {where}"  # noqa: S608 - no value of a user's in it
        return self._con.sql(query, params=parameters).to_arrow_table()

    def _fresh(self) -> None:
        """Views show what is committed now."""
        if self._stale:
            self._lake.refresh(self._con)
            self._stale = False


def _none(columns: Iterable[str]) -> pa.Table:
    return pa.schema([TABLES["logs"].field(name) for name in columns]).empty_table()


def _bring(event: Event, day: date, into: dict[str, Arrival]) -> None:
    arrival = into.setdefault(home_of(event), Arrival())
    arrival.rows += 1
    arrival.since = min(arrival.since, day)
    arrival.homeless.append(event)


def _count_spans(path: Path, into: dict[str, Arrival]) -> bool:
    """Add the traces of a file of ``spans``; returns whether an evaluator is among the spans."""
    day = date.fromisoformat(path.parent.name.removeprefix(f"{PARTITION}="))
    rows = pq.read_table(
        path,
        columns=["trace_id", "operation"],
        partitioning=None,
        use_threads=False,
        read_dictionary=["trace_id", "operation"],
    )
    counts = pc.value_counts(rows["trace_id"])
    traces_of, sizes = counts.field("values"), counts.field("counts")
    words = traces_of.dictionary.take(traces_of.indices) if pa.types.is_dictionary(traces_of.type) else traces_of
    for trace_id, size in zip(words.to_pylist(), sizes.to_pylist(), strict=True):
        if trace_id:
            arrival = into.get(trace_id)
            if arrival is None:
                into[trace_id] = Arrival(size, day)
            else:
                arrival.rows += size
                arrival.since = min(arrival.since, day)
    operations = rows["operation"].unique().cast(pa.string())
    return bool(pc.any(pc.is_in(operations, pa.array(events.EVALUATORS))).as_py())


def _count(rows: pa.Table, into: dict[str, Arrival]) -> None:
    grouped = rows.group_by("trace_id").aggregate([("date", "min"), ("date", "count")])
    for trace_id, day, count in zip(
        grouped["trace_id"].to_pylist(), grouped["date_min"].to_pylist(), grouped["date_count"].to_pylist(), strict=True
    ):
        arrival = into.setdefault(trace_id, Arrival())
        arrival.rows += count
        arrival.since = min(arrival.since, day)


def reach(arrivals: Iterable[Arrival | None], before: Mapping[str, pa.Table], lookback: timedelta, today: date) -> date:
    """The earliest partition in which rows of traces are looked for.

    What arrived says where to look, and the look-back is counted from there. A trace that is still open has rows that
    say how far back it goes, and is followed that far.
    """
    days = [
        arrival.since - lookback if arrival is not None and arrival.since < date.max else today - lookback
        for arrival in arrivals
    ]
    for rows in before.values():
        unsettled = rows.filter(pc.invert(rows["settled"]))
        for name in {"started_at", "received_at"} & set(unsettled.column_names):
            earliest = pc.min(unsettled[name].cast(pa.timestamp("us", "UTC")).cast(pa.int64())).as_py()
            if earliest is not None:
                days.append(EPOCH + timedelta(microseconds=earliest))
    return min(days)
