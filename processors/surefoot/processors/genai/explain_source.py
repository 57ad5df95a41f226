"""Where traces to be explained come from: requests of a file, or the lake.

Contract: both take the way that the writer and the deriver take, on some traces, and write nothing. Of a file nothing
more is to come, as when it is imported. Of the lake's traces the stored runs and calls are compared with what a
derivation would give now.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from surefoot.collector.segment import Record, Signal
from surefoot.processors.genai import events
from surefoot.processors.genai.batch import IMPORTED, evaluations_of, put_together
from surefoot.processors.genai.columns import canonical_logs, canonical_spans
from surefoot.processors.genai.explain import Explained, explain
from surefoot.processors.genai.load import EPOCH, Found, Reader
from surefoot.processors.genai.records import Row
from surefoot.processors.genai.rows import derive
from surefoot.processors.lake import Lake
from surefoot.processors.lake.schema import SPANS, VERDICTS
from surefoot.processors.otlp.decode import decode_logs, decode_spans

_COMPARED: Final = {
    "runs": (
        *("parent_run_id", "agent_name", "outcome", "error_type", "tool_calls", "tool_errors", "model_calls"),
        *("input_tokens", "output_tokens"),
    ),
    "tool_calls": ("run_id", "tool_name", "outcome", "error_type"),
    "model_calls": ("run_id", "outcome", "error_type", "input_tokens", "output_tokens"),
}
_KNOWN: Final = """
SELECT trace_id, coalesce(string_agg(DISTINCT agent_name, ', ' ORDER BY agent_name), '') AS agents
FROM (
  SELECT trace_id, NULL AS agent_name FROM spans
  UNION ALL SELECT trace_id, NULL FROM logs
  UNION ALL SELECT trace_id, agent_name FROM runs
)
WHERE starts_with(trace_id, ?)
GROUP BY trace_id
ORDER BY trace_id
LIMIT ?
"""


@dataclass(frozen=True, slots=True)
class Stored:
    """What the lake's tables hold of a trace, beside what would be derived now."""

    rows: Mapping[str, int]  # by table
    runs: list[Row]
    differences: list[str]  # empty if a derivation now gives the same


@dataclass(frozen=True, slots=True)
class Answer:
    """Traces explained, and of those of a lake what is stored."""

    traces: list[Explained]
    stored: Stored | None = None
    others: list[str] = field(default_factory=list)  # ids of the file's traces that were not asked for


def explain_records(records: Sequence[Record], prefix: str, most: int, now: float, settle_seconds: float) -> Answer:
    """Explain the first ``most`` traces of a file whose ids begin with ``prefix``, in order of time."""
    spans, _ = canonical_spans(decode_spans([record for record in records if record.signal == Signal.TRACES]))
    logs, _ = canonical_logs(decode_logs([record for record in records if record.signal == Signal.LOGS]))
    spans, logs = spans.cast(SPANS), logs.filter(pc.fill_null(pc.not_equal(logs["trace_id"], ""), False))
    told = pc.is_in(logs["event_name"], pa.array(events.NAMES))
    starts = logs.filter(told)
    first = _first_seen(spans, starts)
    wanted = [trace_id for trace_id in first if trace_id.startswith(prefix)]
    chosen = pa.array(sorted(wanted[:most]), pa.string())
    found = Found(*(_of(rows, chosen) for rows in (spans, starts, _other_logs(logs.filter(pc.invert(told))))))
    explained = {trace.trace_id: trace for trace in _explain(found, chosen.to_pylist(), now, settle_seconds)[0]}
    in_time = [explained[trace_id] for trace_id in wanted[:most] if trace_id in explained]
    return Answer(in_time, others=[trace_id for trace_id in first if trace_id not in explained])


def imported(name: str) -> str:
    """The source of rows of a file."""
    return f"{IMPORTED}{name}"


def find_traces(lake: Lake, prefix: str, most: int) -> dict[str, str]:
    """Traces whose ids begin with ``prefix``, the first ``most``, and the agents of their runs."""
    return dict(lake.connect().execute(_KNOWN, [prefix, most]).fetchall())


def explain_stored(lake: Lake, trace_id: str, now: float, settle_seconds: float) -> Answer:
    """Explain one trace of the lake, of everything that is kept of it, however old."""
    reader = Reader(lake)
    whole = lake.read("spans", SPANS.names, "trace_id = ?", [trace_id])
    found = dataclasses.replace(reader.traces([trace_id], EPOCH), spans=whole)
    explained, after = _explain(found, [trace_id], now, settle_seconds)
    before = {table: reader.whole(table, [trace_id]) for table in _COMPARED}
    rows = {table: len(kept) for table, kept in before.items()}
    shown = ("run_id", *_COMPARED["runs"], "settled")
    runs = [{name: row[name] for name in shown} for row in before["runs"]]
    return Answer(explained, Stored(rows, runs, _differences(before, after)))


def _explain(
    found: Found, ids: list[str], now: float, settle_seconds: float
) -> tuple[list[Explained], Mapping[str, pa.Table]]:
    evaluations = evaluations_of(found, {})
    derived = derive(put_together(ids, found, evaluations, VERDICTS.empty_table(), now, settle_seconds))
    return explain(derived, found.spans), derived.tables


def _first_seen(spans: pa.Table, starts: pa.Table) -> list[str]:
    """Trace ids in order of their first span, or start event."""
    times = pa.table(
        {
            "trace_id": pa.chunked_array([*spans["trace_id"].chunks, *starts["trace_id"].chunks], pa.string()),
            "at": pa.chunked_array([*spans["start_unix_nano"].chunks, *starts["time_unix_nano"].chunks], pa.int64()),
        }
    )
    first = times.group_by("trace_id").aggregate([("at", "min")])
    ids: list[str] = first.sort_by([("at_min", "ascending"), ("trace_id", "ascending")])["trace_id"].to_pylist()
    return ids


def _other_logs(logs: pa.Table) -> pa.Table:
    """What :class:`Found` wants to know of logs that are no events of derivation."""
    grouped = logs.group_by("trace_id").aggregate([("time_unix_nano", "max"), ("received_at", "max")])
    names = {"trace_id": "trace_id", "time_unix_nano_max": "latest", "received_at_max": "received"}
    return grouped.rename_columns([names[name] for name in grouped.column_names])


def _of(rows: pa.Table, trace_ids: pa.Array) -> pa.Table:
    return rows.filter(pc.is_in(rows["trace_id"], trace_ids))


def _differences(before: Mapping[str, list[Row]], after: Mapping[str, pa.Table]) -> list[str]:
    """Each way in which stored rows are not those that would be derived now."""
    found = []
    for table, columns in _COMPARED.items():
        old = {row["span_id"]: row for row in before[table]}
        new: dict[str, dict[str, Any]] = {row["span_id"]: row for row in after[table].to_pylist()}
        found += [f"{table}: {span_id} is stored and would not be derived" for span_id in sorted(old.keys() - new)]
        found += [f"{table}: {span_id} would be derived and is not stored" for span_id in sorted(new.keys() - old)]
        for span_id in sorted(old.keys() & new):
            found += [
                f"{table}: {name} of {span_id} is stored as {old[span_id][name]} and would be {new[span_id][name]}"
                for name in columns
                if old[span_id][name] != new[span_id][name]
            ]

    return found
