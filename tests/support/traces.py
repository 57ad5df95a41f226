"""Rows of ``spans`` and ``logs`` as the writer would store them, made by hand, and a lake to put them in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from itertools import count
from typing import Any

import pyarrow as pa

from surefoot.instrumentation import semconv
from surefoot.processors.lake import Lake
from surefoot.processors.lake.schema import LOGS, SPANS

# A moment in the middle of a day, so that a test's seconds do not cross midnight.
T0 = 1_790_000_000.0
TRACE = "0af7651916cd43dd8448eb211c80319c"

_commits = count(1)


def sid(name: str) -> str:
    """A span id from a word."""
    return name.encode().hex()[:16].ljust(16, "0")


def span(
    name: str,
    parent: str | None = None,
    at: float = 0.0,
    lasts: float = 1.0,
    *,
    operation: str | None = None,
    trace: str = TRACE,
    received: float | None = None,
    exception: str | None = None,
    attributes: Mapping[str, str] | None = None,
    **columns: Any,
) -> dict[str, Any]:
    """A row of ``spans``; times are seconds after T0, ``received`` is the end if not told."""
    start, end = T0 + at, T0 + at + lasts
    arrival = T0 + received if received is not None else end
    events = [] if exception is None else [_exception("Earlier", end), _exception(exception, end)]
    row: dict[str, Any] = dict.fromkeys(SPANS.names)
    row |= {
        "trace_id": trace,
        "span_id": sid(name),
        "parent_span_id": None if parent is None else sid(parent),
        "name": name,
        "kind": "internal",
        "start_time": _time(start),
        "end_time": _time(end),
        "start_unix_nano": _nanos(start),
        "end_unix_nano": _nanos(end),
        "duration_ns": _nanos(end) - _nanos(start),
        "clock_skew": lasts < 0,
        "status": "unset",
        "service_name": "desk",
        "dialect": None if operation is None else "otel",
        "operation": operation,
        "attributes": list((attributes or {}).items()),
        "resource_attributes": [],
        "events": events,
        "links": [],
        "received_at": _time(arrival),
        "source": "test",
        "date": _time(start).date(),
    }
    return row | columns


def agent(name: str, parent: str | None = None, at: float = 0.0, lasts: float = 10.0, **columns: Any) -> dict[str, Any]:
    """An agent run called as its span."""
    return span(name, parent, at, lasts, **{"operation": "invoke_agent", "agent_name": name, **columns})


def tool(name: str, parent: str | None = None, at: float = 1.0, lasts: float = 1.0, **columns: Any) -> dict[str, Any]:
    """A tool call; the tool is called as the span if not told."""
    return span(name, parent, at, lasts, **{"operation": "execute_tool", "tool_name": name, **columns})


def chat(name: str, parent: str | None = None, at: float = 0.5, lasts: float = 0.5, **columns: Any) -> dict[str, Any]:
    """A model call."""
    return span(name, parent, at, lasts, **{"operation": "chat", **columns})


def event(
    name: str,
    on: str | None,
    at: float = 0.0,
    *,
    trace: str | None = TRACE,
    received: float | None = None,
    attributes: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """A row of ``logs`` called ``name`` in the context of the span ``on``."""
    row: dict[str, Any] = dict.fromkeys(LOGS.names)
    return row | {
        "trace_id": trace,
        "span_id": None if on is None else sid(on),
        "event_name": name,
        "time": _time(T0 + at),
        "time_unix_nano": _nanos(T0 + at),
        "observed_unix_nano": _nanos(T0 + at),
        "service_name": "desk",
        "attributes": list((attributes or {}).items()),
        "resource_attributes": [],
        "received_at": _time(T0 + (at if received is None else received)),
        "source": "test",
        "date": _time(T0 + at).date(),
    }


def run_started(on: str, at: float = 0.0, **more: Any) -> dict[str, Any]:
    """The event that the SDK sends when a run begins."""
    attributes = {semconv.AGENT_NAME: on, **more.pop("attributes", {})}
    return event(semconv.RUN_STARTED_EVENT, on, at, attributes=attributes, **more)


def evaluation(on: str | None, at: float = 0.0, **more: Any) -> dict[str, Any]:
    """An evaluation result; attributes by their names without ``gen_ai.evaluation.`` or with a full name."""
    attributes = {
        key if "." in key and not key.startswith("score.") else f"gen_ai.evaluation.{key}": value
        for key, value in more.pop("attributes", {}).items()
    }
    return event(
        semconv.EVALUATION_EVENT, on, at, attributes={semconv.EVALUATION_NAME: "outcome", **attributes}, **more
    )


def spans_table(rows: Iterable[Mapping[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist([dict(row) for row in rows], schema=SPANS)


def logs_table(rows: Iterable[Mapping[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist([dict(row) for row in rows], schema=LOGS)


def put(lake: Lake, *rows: Mapping[str, Any]) -> None:
    """Commit rows to ``spans`` and ``logs`` as the writer would."""
    spans = [row for row in rows if "parent_span_id" in row]
    logs = [row for row in rows if "parent_span_id" not in row]
    if spans:
        lake.commit("spans", spans_table(spans), app_id="test", app_version=next(_commits))
    if logs:
        lake.commit("logs", logs_table(logs), app_id="test", app_version=next(_commits))


def _exception(kind: str, at: float) -> dict[str, Any]:
    attributes = [("exception.type", kind), ("exception.message", "why")]
    return {"name": "exception", "time_unix_nano": _nanos(at), "attributes": attributes}


def _time(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def _nanos(seconds: float) -> int:
    return round(seconds * 1e6) * 1000
