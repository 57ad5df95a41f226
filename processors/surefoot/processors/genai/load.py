"""What derivation reads from the lake: arrivals, whole traces, and what was derived before.

Rule: every query on ``spans`` and ``logs`` is bounded by partition (``date``), and a trace is found by its id in one
query for many traces together. Queries are linear in the partitions that they may look at (measured elsewhere on this
design: the spans of 5,000 traces among 10 M, 72 to 334 ms).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date, timedelta
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from surefoot.instrumentation import semconv
from surefoot.processors.genai.rows import from_table
from surefoot.processors.genai.trace import (
    EVENT_COLUMNS,
    EVENT_NAMES,
    SPAN_COLUMNS,
    Event,
    Life,
    Span,
    by_trace,
    read_events,
    read_spans,
)
from surefoot.processors.genai.verdicts import Row, home_of
from surefoot.processors.lake import Lake
from surefoot.processors.lake.schema import TRACE_TABLES

_IN: Final = "trace_id IN (SELECT unnest(?))"


_OTHER_LOGS: Final = """
SELECT trace_id, max(coalesce(nullif(time_unix_nano, 0), observed_unix_nano, 0)), epoch_us(max(received_at))
FROM logs
WHERE date >= ? AND trace_id IN (SELECT unnest(?)) AND coalesce(event_name, '') NOT IN (SELECT unnest(?))
GROUP BY trace_id
"""
_RESPONSES: Final = """
SELECT c.response_id, c.run_id, r.date, r.ended_at
FROM model_calls c JOIN runs r ON c.run_id = r.run_id
WHERE c.response_id IN (SELECT unnest(?)) AND c.trace_id NOT IN (SELECT unnest(?))
"""
_WAITING: Final = """
SELECT DISTINCT trace_id
FROM verdicts
WHERE trace_id NOT IN (SELECT unnest($2)) AND (
  split_part(run_id, '-', 1) IN (SELECT unnest($2))
  OR response_id IN (SELECT unnest($1)) AND (run_id IS NULL OR split_part(run_id, '-', 1) <> trace_id)
)
"""


@dataclass(slots=True)
class Arrival:
    """What came of a trace since the last step."""

    rows: int = 0
    since: date = date.max  # earliest partition
    homeless: list[Event] = field(default_factory=list)  # evaluations without trace context that are kept under it


@dataclass(slots=True)
class Found:
    """What the lake holds of a trace."""

    spans: list[Span] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    other_logs: Life | None = None


class Reader:
    """Queries on a lake, over its tables as they were at the last :meth:`refresh`."""

    def __init__(self, lake: Lake) -> None:
        self._lake = lake
        self._con = lake.connect()

    def refresh(self) -> None:
        """See what is committed now."""
        self._lake.refresh(self._con)

    def span_arrivals(self, files: Iterable[Path], into: dict[str, Arrival]) -> None:
        """Add the traces of these files of ``spans``."""
        _count(self._lake.read("spans", ["trace_id", "date"], "trace_id <> ''", files=files), into)

    def log_arrivals(self, files: Iterable[Path], into: dict[str, Arrival]) -> None:
        """Add the traces of these files of ``logs``, evaluations without trace context under their own ids."""
        chosen = list(files)
        _count(self._lake.read("logs", ["trace_id", "date"], "trace_id <> ''", files=chosen), into)
        homeless = self._lake.read(
            "logs",
            [*EVENT_COLUMNS, "date"],
            "coalesce(trace_id, '') = '' AND event_name = ?",
            [semconv.EVALUATION_EVENT],
            files=chosen,
        )
        for event, day in zip(read_events(homeless), homeless["date"].to_pylist(), strict=True):
            arrival = into.setdefault(home_of(event), Arrival())
            arrival.rows += 1
            arrival.since = min(arrival.since, day)
            arrival.homeless.append(event)

    def traces(self, trace_ids: Collection[str], since: date) -> dict[str, Found]:
        """All spans and logs of these traces in partitions from ``since`` on."""
        ids = sorted(trace_ids)
        found: defaultdict[str, Found] = defaultdict(Found)
        for trace_id, spans in by_trace(read_spans(self._bounded("spans", SPAN_COLUMNS, ids, since))).items():
            found[trace_id].spans = spans
        events = self._bounded("logs", EVENT_COLUMNS, ids, since, "event_name IN (SELECT unnest(?))", [*EVENT_NAMES])
        for event in read_events(events):
            found[event.trace_id or ""].events.append(event)
        for trace_id, latest, received in self._con.execute(_OTHER_LOGS, [since, ids, [*EVENT_NAMES]]).fetchall():
            found[trace_id].other_logs = Life(latest, received, received)
        return found

    def derived(self, trace_ids: Collection[str]) -> dict[str, list[Row]]:
        """What each derived table holds of these traces: place, times and state; of ``verdicts`` whole rows."""
        ids = sorted(trace_ids)
        common = "trace_id, span_id, date, settled, received_at"
        columns = {
            "runs": f"{common}, started_at, ended_at, run_id",
            "tool_calls": f"{common}, started_at, ended_at",
            "model_calls": f"{common}, started_at, ended_at",
            "verdicts": "*",
        }
        return {table: self.rows(table, _IN, [ids], columns[table]) for table in TRACE_TABLES}

    def whole(self, table: str, trace_ids: Collection[str]) -> list[Row]:
        """All columns of a derived table's rows of these traces."""
        return self.rows(table, _IN, [sorted(trace_ids)])

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

    def waiting(self, response_ids: Collection[str], of: Collection[str]) -> list[str]:
        """Traces other than ``of`` with a verdict whose run may change with ``of``.

        Its run is among them, or it judges one of these responses and its own trace has no run for it.
        """
        found = self._con.execute(_WAITING, [sorted(response_ids), sorted(of)])
        return [trace_id for (trace_id,) in found.fetchall()]

    def rows(self, table: str, where: str, parameters: list[Any], columns: str = "*") -> list[Row]:
        """Rows of a table; ``where`` is SQL of this room's own."""
        query = f"SELECT {columns} FROM {table} WHERE {where}"  # noqa: S608 - no value of a user's in it
        return from_table(self._con.sql(query, params=parameters).to_arrow_table())

    def _bounded(
        self,
        table: str,
        columns: Iterable[str],
        ids: list[str],
        since: date,
        also: str = "true",
        parameter: list[str] | None = None,
    ) -> pa.Table:
        query = f"SELECT {', '.join(columns)} FROM {table} WHERE date >= ? AND {_IN} AND {also}"  # noqa: S608 - constants
        parameters: list[Any] = [since, ids, *([parameter] if parameter is not None else [])]
        return self._con.sql(query, params=parameters).to_arrow_table()


def _count(rows: pa.Table, into: dict[str, Arrival]) -> None:
    grouped = rows.group_by("trace_id").aggregate([("date", "min"), ("date", "count")])
    for trace_id, day, count in zip(
        grouped["trace_id"].to_pylist(), grouped["date_min"].to_pylist(), grouped["date_count"].to_pylist(), strict=True
    ):
        arrival = into.setdefault(trace_id, Arrival())
        arrival.rows += count
        arrival.since = min(arrival.since, day)


def reach(arrival: Arrival | None, before: Iterable[Row], lookback: timedelta, today: date) -> date:
    """The earliest partition in which rows of a trace are looked for.

    What arrived says where to look, and the look-back is counted from there. A trace that is still open has rows that
    say how far back it goes, and is followed that far.
    """
    days = [arrival.since - lookback if arrival is not None and arrival.since < date.max else today - lookback]
    days += [
        date(1970, 1, 1) + timedelta(microseconds=min(row.get("started_at") or row["received_at"], row["received_at"]))
        for row in before
        if not row["settled"]
    ]
    return min(days)


def group(rows: Mapping[str, list[Row]]) -> dict[str, dict[str, list[Row]]]:
    """Rows by table, as rows by trace and table."""
    grouped: defaultdict[str, dict[str, list[Row]]] = defaultdict(lambda: {table: [] for table in TRACE_TABLES})
    for table, of_table in rows.items():
        for row in of_table:
            grouped[row["trace_id"]][table].append(row)
    return grouped
