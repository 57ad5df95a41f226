"""A whole trace to its rows of ``runs``, ``tool_calls``, ``model_calls`` and ``verdicts``.

Contract: :func:`derive_trace` is a pure function of the trace, and its rows replace everything that was derived from
the trace before. Rows are dicts with the columns of the lake's schema; times are integers, microseconds for timestamps
and days for dates, as :func:`to_table` takes and :func:`from_table` gives them.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Final

import pyarrow as pa

from surefoot.instrumentation import semconv
from surefoot.processors.genai import calls, verdicts
from surefoot.processors.genai.outcome import error_name, outcome
from surefoot.processors.genai.runs import Run, Runs, find_runs, started
from surefoot.processors.genai.trace import Span, Trace
from surefoot.processors.genai.verdicts import Row, RunIndex
from surefoot.processors.lake.schema import TABLES

NANOS_A_DAY: Final = 86_400_000_000_000
EMPTY: Final[Mapping[str, str]] = {}

# Columns that a run takes from its own span, else its start event, else the first of its spans that has one, with the
# attribute of the start event and how to read it.
_INHERITED: Final[dict[str, tuple[str, Callable[[str], Any]]]] = {
    "agent_version": (semconv.AGENT_VERSION, str),
    "conversation_id": (semconv.CONVERSATION_ID, str),
    "task_class": (semconv.TASK_CLASS, str),
    "task_id": (semconv.TASK_ID, str),
    "consequence_class": (semconv.CONSEQUENCE_CLASS, str),
    "intent_id": (semconv.INTENT_ID, str),
    "run_group": (semconv.RUN_GROUP, str),
    "repetition": (semconv.REPETITION, int),
    "variant": (semconv.VARIANT, str),
    "boundary_id": (semconv.BOUNDARY_ID, str),
    "mode": (semconv.MODE, str),
    "sample_weight": (semconv.SAMPLE_WEIGHT, float),
}


_INHERITED_OF: Final = attrgetter(*_INHERITED)


@dataclass(frozen=True, slots=True)
class TraceRows:
    """What a trace amounts to. Verdicts come from :func:`evaluate_trace`."""

    runs: list[Row]
    tool_calls: list[Row]
    model_calls: list[Row]
    index: RunIndex


def derive_trace(trace: Trace) -> TraceRows:
    """Runs, tool calls and model calls of the trace, in order of time, and where its verdicts find their runs."""
    runs = find_runs(trace)
    tools = calls.tool_spans(trace, runs)
    models = calls.model_spans(trace, runs)
    input_tokens = calls.tokens(runs, models, "input_tokens")
    output_tokens = calls.tokens(runs, models, "output_tokens")
    tool_outcomes = {span.span_id: calls.tool_outcome(span) for span in tools}
    outcomes_of: defaultdict[str, list[str]] = defaultdict(list)
    for span_id, ended_as in tool_outcomes.items():
        if span_id in runs.run_of:
            outcomes_of[runs.run_of[span_id]].append(ended_as)
    model_counts = Counter(runs.run_of[span.span_id] for span in models if span.span_id in runs.run_of)
    run_rows: dict[str, Row] = {}
    for run_id, run in runs.by_id.items():
        row = _run_row(trace, run)
        ended = outcomes_of[run_id]
        row |= {
            "tool_calls": len(ended),
            "tool_errors": ended.count("error"),
            "model_calls": model_counts[run_id],
            "input_tokens": input_tokens[run_id],
            "output_tokens": output_tokens[run_id],
            "recovered": row["outcome"] == "ok" and not calls.FAILED.isdisjoint(ended),
        }
        run_rows[run_id] = row
    owners = {span_id: run_rows[run_id] for span_id, run_id in runs.run_of.items()}
    model_rows = [_model_row(trace, span, owners.get(span.span_id)) for span in models]
    return TraceRows(
        runs=list(run_rows.values()),
        tool_calls=[_tool_row(trace, span, tool_outcomes[span.span_id], owners.get(span.span_id)) for span in tools],
        model_calls=model_rows,
        index=_index(runs, run_rows, owners, model_rows),
    )


def run_id(trace_id: str, span_id: str) -> str:
    """The id of the run whose own span is this one, whether the span came or not."""
    return f"{trace_id}-{span_id}"


def _run_row(trace: Trace, run: Run) -> Row:
    span, start = run.span, run.start
    told: Mapping[str, str] = start.attributes if start is not None else EMPTY
    head = span or (run.members[0] if run.members else None)
    ended_as, started_ns, ended_ns = _ending(trace, run)
    received = trace.life.arrival_us
    row: Row = {
        "run_id": run_id(trace.trace_id, run.span_id),
        "parent_run_id": None if run.parent is None else run_id(trace.trace_id, run.parent),
        "trace_id": trace.trace_id,
        "span_id": run.span_id,
        "service_name": start.service_name if start is not None else head and head.service_name,
        "environment": start.environment if start is not None else head and head.environment,
        "agent_name": _agent_name(run, told),
        "versions": _prefixed(run, told, semconv.VERSIONS_PREFIX),
        "strata": _prefixed(run, told, semconv.STRATUM_PREFIX),
        "outcome": ended_as,
        "error_type": error_name(span) if span is not None and ended_as != "ok" else None,
        "confidence": span.confidence if span is not None else None,
        "cost_usd": None,
        "settled": trace.settled,
        "dialect": head and head.dialect,
        "source": start.source if start is not None else head and head.source,
        "received_at": received,
        **_times(started_ns, ended_ns),
    }
    return row | _inherited(run, told)


def _ending(trace: Trace, run: Run) -> tuple[str, int, int | None]:
    """Outcome, start and end (unix ns). An abandoned run ends when the settle time after the last event is over."""
    if run.span is not None:
        return outcome(run.span), run.span.start_unix_nano, run.span.end_unix_nano
    if run.start is None:
        return "unknown", started(run), max(span.end_unix_nano for span in run.members)
    if not trace.quiet:
        return "running", started(run), None
    return "abandoned", started(run), trace.life.event_unix_nano + int(trace.settle_seconds * 1e9)


def _times(started_ns: int, ended_ns: int | None) -> Row:
    last = started_ns if ended_ns is None else ended_ns
    return {
        "started_at": started_ns // 1000,
        "ended_at": None if ended_ns is None else ended_ns // 1000,
        "started_unix_nano": started_ns,
        "ended_unix_nano": ended_ns,
        "duration_ns": None if ended_ns is None else ended_ns - started_ns,
        "date": last // NANOS_A_DAY,
    }


def _agent_name(run: Run, told: Mapping[str, str]) -> str | None:
    if run.span is not None:
        return run.span.agent_name or run.span.workflow_name
    named = (span.agent_name for span in run.members if span.agent_name)
    return told.get(semconv.AGENT_NAME) or next(named, None)


def _inherited(run: Run, told: Mapping[str, str]) -> Row:
    layers = [_INHERITED_OF(span) for span in run.members]
    layers.insert(0, tuple(_read(told.get(attribute), read) for attribute, read in _INHERITED.values()))
    if run.span is not None:
        layers.insert(0, _INHERITED_OF(run.span))
    first = (next((value for value in column if value is not None), None) for column in zip(*layers, strict=True))
    return dict(zip(_INHERITED, first, strict=True))


def _read(text: str | None, read: Callable[[str], Any]) -> Any:
    """The text of an attribute as ``read`` takes it; None if there is none, or no number where one is wanted."""
    try:
        return read(text) if text else None
    except ValueError:
        return None


def _prefixed(run: Run, told: Mapping[str, str], prefix: str) -> dict[str, str]:
    """Attributes that begin with ``prefix``, by the rest of their names; the run's own span wins, then the earliest."""
    layers = [span.marks for span in reversed(run.members) if span.marks]
    layers += [told] + ([run.span.marks] if run.span is not None else [])
    return {
        key.removeprefix(prefix): value for layer in layers for key, value in layer.items() if key.startswith(prefix)
    }


def _call_row(trace: Trace, span: Span, run: Row | None) -> Row:
    """What tool calls and model calls have in common."""
    start, end = span.start_unix_nano, span.end_unix_nano
    return {
        "run_id": run and run["run_id"],
        "trace_id": trace.trace_id,
        "span_id": span.span_id,
        "service_name": span.service_name,
        "environment": span.environment,
        "agent_name": span.agent_name or (run and run["agent_name"]),
        "started_at": start // 1000,
        "ended_at": end // 1000,
        "duration_ns": end - start,
        "settled": trace.settled,
        "sample_weight": span.sample_weight,
        "received_at": span.received_us,
        "source": span.source,
        "date": end // NANOS_A_DAY,
    }


def _tool_row(trace: Trace, span: Span, ended_as: str, run: Row | None) -> Row:
    own = {
        key.removeprefix(semconv.STRATUM_PREFIX): value
        for key, value in span.marks.items()
        if key.startswith(semconv.STRATUM_PREFIX)
    }
    return _call_row(trace, span, run) | {
        "task_class": span.task_class or (run and run["task_class"]),
        "consequence_class": span.consequence_class or (run and run["consequence_class"]),
        "tool_name": span.tool_name,
        "tool_call_id": span.tool_call_id,
        "outcome": ended_as,
        "error_type": None if ended_as == "ok" else error_name(span),
        "effect": span.tool_effect or "unknown",
        "dependency": span.tool_dependency,
        "strata": {**(run["strata"] if run else EMPTY), **own},
    }


def _model_row(trace: Trace, span: Span, run: Row | None) -> Row:
    ended_as = outcome(span)
    return _call_row(trace, span, run) | {
        "response_id": span.response_id,
        "provider_name": span.provider_name,
        "request_model": span.request_model,
        "response_model": span.response_model,
        "outcome": ended_as,
        "error_type": None if ended_as == "ok" else error_name(span),
        "input_tokens": span.input_tokens,
        "output_tokens": span.output_tokens,
        "cache_read_tokens": span.cache_read_tokens,
        "cache_write_tokens": span.cache_write_tokens,
        "reasoning_tokens": span.reasoning_tokens,
    }


def _index(runs: Runs, rows: Mapping[str, Row], owners: Mapping[str, Row], models: Iterable[Row]) -> RunIndex:
    sole = runs.sole()
    by_span = {span_id: row["run_id"] for span_id, row in owners.items()}
    by_span |= {span_id: row["run_id"] for span_id, row in rows.items()}
    return RunIndex(by_span, unique_responses(models), None if sole is None else rows[sole.span_id]["run_id"])


def unique_responses(models: Iterable[Row]) -> dict[str, str]:
    """Run ids by response id, without those that stand for more than one run (scripted models repeat their ids)."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for row in models:
        if row["response_id"] and row["run_id"]:
            found[row["response_id"]].add(row["run_id"])
    return {response_id: next(iter(ids)) for response_id, ids in found.items() if len(ids) == 1}


def evaluate_trace(trace: Trace, index: RunIndex, settled: bool, kept: Iterable[Row] = ()) -> list[Row]:
    """The verdicts of the trace. ``kept`` are rows of the table: a fact stays when its event is out of reach."""
    found = {row["verdict_id"]: row for row in kept}
    for row in verdicts.facts(trace.evaluations):
        known = found.get(row["verdict_id"])
        if known is None or row["received_at"] <= known["received_at"]:
            found[row["verdict_id"]] = row
    return verdicts.joined(found.values(), index, settled)


def to_table(name: str, rows: list[Row]) -> pa.Table:
    """Rows as Arrow with the schema of the table ``name``; absent keys are null."""
    schema = TABLES[name]
    return pa.table([_column([row.get(field.name) for row in rows], field.type) for field in schema], schema=schema)


def from_table(rows: pa.Table) -> list[Row]:
    """The inverse of :func:`to_table`, for any columns of a table."""
    columns = {name: _integers(column) for name, column in zip(rows.column_names, rows.columns, strict=True)}
    found: list[Row] = pa.table(columns).to_pylist()
    return found


def _integers(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if pa.types.is_timestamp(column.type):
        return column.cast(pa.timestamp("us", "UTC")).cast(pa.int64())
    return column.cast(pa.int32()) if pa.types.is_date(column.type) else column


def _column(values: list[Any], kind: pa.DataType) -> pa.Array:
    if pa.types.is_map(kind):
        values = [None if value is None else list(dict(value).items()) for value in values]
    return pa.array(values, kind)
