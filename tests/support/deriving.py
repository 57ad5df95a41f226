"""Derivation without a lake: rows of ``spans`` and ``logs`` in, rows of the derived tables out, as dicts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import duckdb
import pyarrow as pa

from support.traces import T0, logs_table, spans_table
from surefoot.processors.genai import batch, events, traces
from surefoot.processors.genai.judging import run_indexes
from surefoot.processors.genai.load import Arrival, Found
from surefoot.processors.genai.records import from_table
from surefoot.processors.genai.rows import Derived, derive
from surefoot.processors.genai.verdicts import home_of, judged
from surefoot.processors.lake.schema import VERDICTS

Row = dict[str, Any]

_OTHERS = """
SELECT trace_id, max(time_unix_nano)::BIGINT AS latest, epoch_us(max(received_at)) AS received
FROM logs WHERE trace_id IS NOT NULL AND coalesce(event_name, '') NOT IN (SELECT unnest(?)) GROUP BY trace_id
"""


@dataclass(frozen=True)
class Result:
    """Rows in order of trace and time; times are integers."""

    runs: list[Row]
    tool_calls: list[Row]
    model_calls: list[Row]
    verdicts: list[Row]
    derived: Derived


@cache
def _connection() -> duckdb.DuckDBPyConnection:
    con = duckdb.connect()
    con.execute("SET TimeZone = 'UTC'")
    return con


def derive_rows(rows: Iterable[Mapping[str, Any]], now: float = 100.0, settle: float = 900.0) -> Result:
    """Mixed rows of both tables, derived at ``now`` seconds after T0."""
    chosen = list(rows)
    spans = spans_table([row for row in chosen if "parent_span_id" in row])
    logs = logs_table([row for row in chosen if "parent_span_id" not in row])
    return derive_tables(spans, logs, T0 + now, settle)


def derive_tables(
    spans: pa.Table, logs: pa.Table, now: float, settle: float = 900.0, kept: Iterable[Row] = ()
) -> Result:
    """Tables with the schemas of ``spans`` and ``logs``, derived at ``now`` (unix seconds)."""
    con = _connection()
    names = [*events.NAMES]
    chosen = con.sql("SELECT * FROM logs WHERE event_name IN (SELECT unnest(?))", params=[names]).to_arrow_table()
    homeless = [event for event in events.read_events(chosen) if event.trace_id is None]
    arrivals: dict[str, Arrival | None] = {}
    for event in homeless:
        arrival = arrivals.setdefault(home_of(event), Arrival())
        assert arrival is not None
        arrival.homeless.append(event)
    found = Found(
        spans.select(traces.COLUMNS),
        con.sql("SELECT * FROM chosen WHERE trace_id IS NOT NULL").to_arrow_table(),
        con.sql(_OTHERS, params=[names]).to_arrow_table(),
    )
    ids = sorted({*spans["trace_id"].to_pylist(), *logs["trace_id"].to_pylist(), *arrivals} - {None})
    evaluations = batch.evaluations_of(found, arrivals)
    derived = derive(batch.put_together(ids, found, evaluations, VERDICTS.empty_table(), now, settle))
    indexes = run_indexes(derived, ids)
    settled = dict(zip(ids, derived.traces.settled.tolist(), strict=True))
    verdicts = [
        row
        for trace_id in ids
        for row in judged(
            evaluations[trace_id],
            indexes[trace_id],
            settled[trace_id],
            [row for row in kept if row["trace_id"] == trace_id],
        )
    ]
    lists = {name: from_table(table) for name, table in derived.tables.items()}
    for row in (*lists["runs"], *lists["tool_calls"]):
        row.update({name: dict(row[name]) for name in ("versions", "strata") if name in row})
    return Result(lists["runs"], lists["tool_calls"], lists["model_calls"], verdicts, derived)
