"""What derivation reads from the lake: arrivals, whole traces, and what was derived before.

Rule: every query on ``spans`` and ``logs`` is bounded by partition (``date``), and a trace is found by its id in one
query for many traces together. Queries are linear in the partitions that they may look at (measured elsewhere on this
design: the spans of 5,000 traces among 10 M, 72 to 334 ms).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date, timedelta
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from surefoot.processors.genai import evaluators, events, traces
from surefoot.processors.genai.arrays import any_true
from surefoot.processors.genai.events import Event
from surefoot.processors.genai.records import Row, from_table
from surefoot.processors.genai.verdicts import home_of
from surefoot.processors.lake import Lake
from surefoot.processors.lake.schema import TRACE_TABLES

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
_RESPONSES: Final = """
SELECT c.response_id, c.run_id, r.date, r.ended_at
FROM model_calls c JOIN runs r ON c.run_id = r.run_id
WHERE c.response_id IN (SELECT unnest(?)) AND c.trace_id NOT IN (SELECT unnest(?))
"""
_OUTPUTS: Final = f"date >= ? AND {_IN} AND name IN (SELECT unnest(?))"
# Verdicts whose run is not of their own trace, or whose response may yet be somebody's.
_ELSEWHERE: Final = """
SELECT DISTINCT trace_id, response_id, split_part(run_id, '-', 1) AS run_trace
FROM verdicts
WHERE run_id IS NULL AND response_id IS NOT NULL OR split_part(run_id, '-', 1) <> trace_id
"""
_TIMED: Final = "trace_id, span_id, date, settled, received_at, started_at, ended_at"
_BEFORE: Final = {
    "runs": f"{_TIMED}, run_id, parent_run_id",
    "tool_calls": _TIMED,
    "model_calls": f"{_TIMED}, input_tokens, output_tokens, cost_usd",
    "verdicts": "*",
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

    def refresh(self) -> None:
        """See what is committed now."""
        self._lake.refresh(self._con)

    def span_arrivals(self, files: Iterable[Path], into: dict[str, Arrival]) -> None:
        """Add the traces of these files of ``spans``, and those that evaluators among them judge."""
        chosen = list(files)
        arrived = self._lake.read("spans", ["trace_id", "date", "operation"], "trace_id <> ''", files=chosen)
        _count(arrived, into)
        # Asked of whole rows at once, files without an evaluator cost 0.3 s per 200,000 spans.
        if not any_true(pc.is_in(arrived["operation"], pa.array(events.EVALUATORS))):
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
        self._want(trace_ids)
        names = [*events.NAMES]
        return Found(
            self._bounded("spans", traces.COLUMNS, since),
            self._bounded("logs", events.COLUMNS, since, "event_name IN (SELECT unnest(?))", names),
            self._con.sql(_OTHER_LOGS, params=[since, names]).to_arrow_table(),
        )

    def derived(self, trace_ids: Collection[str]) -> dict[str, pa.Table]:
        """What each derived table holds of these traces: place, times and state; of ``verdicts`` whole rows."""
        self._want(trace_ids)
        return {table: self._query(table, _IN, [], _BEFORE[table]) for table in TRACE_TABLES}

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
        found = self._con.sql(_RESPONSES, params=[sorted(response_ids), sorted(but)])
        return from_table(found.to_arrow_table())

    def waiting(self, response_ids: pa.Array, of: Collection[str]) -> list[str]:
        """Traces other than ``of`` with a verdict whose run may change with ``of``.

        Its run is among them, or it judges one of these responses and its own trace has no run for it.
        """
        found = self._con.sql(_ELSEWHERE).to_arrow_table()
        if not found.num_rows:
            return []
        ids = pa.array(sorted(of), pa.string())
        concerned = pc.or_(pc.is_in(found["run_trace"], ids), pc.is_in(found["response_id"], response_ids))
        others = pc.invert(pc.is_in(found["trace_id"], ids))
        waiting: list[str] = found.filter(pc.and_(concerned, others))["trace_id"].unique().to_pylist()
        return waiting

    def ended_since(self, moment_us: int) -> list[date]:
        """Dates of the runs that ended and that something arrived for since ``moment_us`` (unix us)."""
        found = self._query("runs", "ended_at IS NOT NULL AND epoch_us(received_at) >= ?", [moment_us], "DISTINCT date")
        days: list[date] = found["date"].to_pylist()
        return days

    def _want(self, trace_ids: Collection[str]) -> None:
        """Make these the traces that queries look for."""
        self._con.register(_WANTED, pa.table({"trace_id": pa.array(list(trace_ids), pa.string())}))

    def _query(self, table: str, where: str, parameters: list[Any], columns: str = "*") -> pa.Table:
        query = f"SELECT {columns} FROM {table} WHERE {where}"  # noqa: S608 - no value of a user's in it
        return self._con.sql(query, params=parameters).to_arrow_table()

    def _bounded(
        self,
        table: str,
        columns: Iterable[str],
        since: date,
        also: str = "true",
        parameter: list[str] | None = None,
    ) -> pa.Table:
        parameters: list[Any] = [since, *([parameter] if parameter is not None else [])]
        return self._query(table, f"date >= ? AND {_IN} AND {also}", parameters, ", ".join(columns))


def _bring(event: Event, day: date, into: dict[str, Arrival]) -> None:
    arrival = into.setdefault(home_of(event), Arrival())
    arrival.rows += 1
    arrival.since = min(arrival.since, day)
    arrival.homeless.append(event)


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
