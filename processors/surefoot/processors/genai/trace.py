"""One trace as derivation sees it: its spans and the log events that matter, read from the tables' columns.

Contract: :func:`read_spans` and :func:`read_events` take rows of the tables ``spans`` and ``logs`` and give named
tuples; :func:`build` puts those of one trace together. Rule: no order of arrival survives here. Spans are unique by
identity, everything is sorted by time and id, so whatever is derived is a function of the set of spans and events.

Times are unix nanoseconds, arrivals unix microseconds. Named tuples and not dataclasses, because rows are zipped from
columns: building them costs a fifteenth.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from operator import attrgetter
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from surefoot.instrumentation import semconv
from surefoot.processors.genai.tree import without_circles

NOTHING: Final[Mapping[str, str]] = MappingProxyType({})

# Attributes that no column holds and that derivation reads; all others stay in the table.
RETRY_CAUSE: Final = "pydantic_ai.tool.retry.cause"
MARKS: Final = (semconv.CANCELLED, RETRY_CAUSE)
PREFIXES: Final = (semconv.VERSIONS_PREFIX, semconv.STRATUM_PREFIX)


class Span(NamedTuple):
    """A row of ``spans``, without what derivation does not read."""

    trace_id: str
    span_id: str
    parent_span_id: str | None
    start_unix_nano: int
    end_unix_nano: int
    status: str
    status_message: str | None
    service_name: str | None
    environment: str | None
    dialect: str | None
    operation: str | None
    agent_name: str | None
    agent_version: str | None
    conversation_id: str | None
    workflow_name: str | None
    tool_name: str | None
    tool_call_id: str | None
    provider_name: str | None
    request_model: str | None
    response_model: str | None
    response_id: str | None
    input_tokens: int | None
    output_tokens: int | None
    cache_read_tokens: int | None
    cache_write_tokens: int | None
    reasoning_tokens: int | None
    error_type: str | None
    task_class: str | None
    task_id: str | None
    consequence_class: str | None
    intent_id: str | None
    run_group: str | None
    repetition: int | None
    variant: str | None
    tool_effect: str | None
    tool_dependency: str | None
    confidence: float | None
    boundary_id: str | None
    mode: str | None
    sample_weight: float | None
    received_us: int
    source: str | None
    marks: Mapping[str, str]  # attributes of MARKS and PREFIXES
    exception_type: str | None  # of the last exception event


SPAN_COLUMNS: Final = (*(name for name in Span._fields[:-4]), "received_at", "source", "attributes", "events")


class Event(NamedTuple):
    """A row of ``logs`` that derivation reads: a start event or an evaluation."""

    trace_id: str | None
    span_id: str | None
    event_name: str
    time_unix_nano: int
    service_name: str | None
    environment: str | None
    attributes: Mapping[str, str]
    received_us: int
    source: str | None


EVENT_COLUMNS: Final = (
    "trace_id",
    "span_id",
    "event_name",
    "time_unix_nano",
    "observed_unix_nano",
    "service_name",
    "environment",
    "attributes",
    "received_at",
    "source",
)
EVENT_NAMES: Final = (semconv.RUN_STARTED_EVENT, semconv.EVALUATION_EVENT)


class Life(NamedTuple):
    """When something of a trace last happened, and last arrived.

    ``sign_us`` is the latest arrival of a span or of a log that is no evaluation: the agent was alive. An evaluation is
    an arrival, but no sign of life: a verdict on a dead run must not revive it.
    """

    event_unix_nano: int
    sign_us: int
    arrival_us: int


@dataclass(frozen=True, slots=True)
class Trace:
    """All that is known of one trace. Spans and events are in order of time."""

    trace_id: str
    spans: Mapping[str, Span]  # by span id
    starts: tuple[Event, ...]  # of runs whose span has not come, the earliest of each span id
    evaluations: tuple[Event, ...]
    life: Life
    quiet: bool  # no sign of life for the settle time: what is missing is not waited for
    settled: bool  # nothing arrived for the settle time
    settle_seconds: float


def build(
    trace_id: str,
    spans: Iterable[Span],
    events: Iterable[Event],
    *,
    now: float,
    settle_seconds: float,
    other_logs: Life | None = None,
) -> Trace:
    """Put a trace together; ``now`` in unix seconds. ``other_logs`` tells of its logs that are not in ``events``.

    Of a span id that comes twice, the version that ends later is kept, then the one that arrived last.
    """
    unique: dict[str, Span] = {}
    for span in sorted(spans, key=attrgetter("start_unix_nano", "span_id")):
        known = unique.get(span.span_id)
        if known is None or (span.end_unix_nano, span.received_us) > (known.end_unix_nano, known.received_us):
            unique[span.span_id] = span
    unique = without_circles(unique)
    ordered = sorted(events, key=lambda e: (e.time_unix_nano, e.span_id or "", e.received_us))
    evaluations = tuple(event for event in ordered if event.event_name == semconv.EVALUATION_EVENT)
    starts: dict[str, Event] = {}
    for event in ordered:
        if event.event_name == semconv.RUN_STARTED_EVENT and event.span_id:
            starts.setdefault(event.span_id, event)
    life = _life(unique.values(), ordered, other_logs)
    limit_us = micros(now) - micros(settle_seconds)
    return Trace(
        trace_id=trace_id,
        spans=unique,
        starts=tuple(event for span_id, event in starts.items() if span_id not in unique),
        evaluations=evaluations,
        life=life,
        quiet=life.sign_us <= limit_us,
        settled=life.arrival_us <= limit_us,
        settle_seconds=settle_seconds,
    )


def micros(seconds: float) -> int:
    """Whole microseconds: times are compared as integers, so a deadline is met exactly when it is due."""
    return round(seconds * 1e6)


def _life(spans: Collection[Span], events: Iterable[Event], other: Life | None) -> Life:
    latest, sign, arrival = other or (0, 0, 0)
    if spans:
        latest = max(latest, *map(attrgetter("end_unix_nano"), spans), *map(attrgetter("start_unix_nano"), spans))
        sign = max(sign, *map(attrgetter("received_us"), spans))
    for event in events:
        if event.event_name == semconv.EVALUATION_EVENT:
            arrival = max(arrival, event.received_us)
        else:
            latest = max(latest, event.time_unix_nano)
            sign = max(sign, event.received_us)
    return Life(latest, sign, max(sign, arrival))


def by_trace(spans: Iterable[Span]) -> dict[str, list[Span]]:
    """The spans of each trace."""
    groups: defaultdict[str, list[Span]] = defaultdict(list)
    for span in spans:
        groups[span.trace_id].append(span)
    return groups


def read_spans(rows: pa.Table) -> list[Span]:
    """Rows with (at least) :data:`SPAN_COLUMNS` as spans."""
    columns = [rows[name].to_pylist() for name in Span._fields[:-4]]
    columns.append(_micros(rows["received_at"]))
    columns.append(rows["source"].to_pylist())
    columns.append(_marks(rows["attributes"]))
    columns.append(_exception_types(rows["events"]))
    return list(map(Span._make, zip(*columns, strict=True)))


def read_events(rows: pa.Table) -> list[Event]:
    """Rows with (at least) :data:`EVENT_COLUMNS` as events; without a time, an event has that of its observation."""
    return [
        Event(
            row["trace_id"] or None,
            row["span_id"] or None,
            row["event_name"],
            row["time_unix_nano"] or row["observed_unix_nano"] or received * 1000,
            row["service_name"],
            row["environment"],
            dict(row["attributes"] or ()),
            received,
            row["source"],
        )
        for row, received in zip(rows.select(EVENT_COLUMNS).to_pylist(), _micros(rows["received_at"]), strict=True)
    ]


def _micros(times: pa.ChunkedArray) -> list[int]:
    micros: list[int] = times.cast(pa.int64()).to_pylist()
    return micros


def _marks(attributes: pa.ChunkedArray) -> list[Mapping[str, str]]:
    """The few attributes of each row that derivation reads; only these become Python objects."""
    found: list[Any] = [NOTHING] * len(attributes)
    maps = _one_array(attributes)
    keys = maps.keys
    wanted = pc.is_in(keys, pa.array(MARKS, pa.string()))
    for prefix in PREFIXES:
        wanted = pc.or_(wanted, pc.starts_with(keys, prefix))
    places = np.flatnonzero(wanted.to_numpy(zero_copy_only=False))
    names, values = keys.take(pa.array(places)).to_pylist(), maps.items.take(pa.array(places)).to_pylist()
    for row, name, value in zip(_rows_of(places, maps.offsets), names, values, strict=True):
        if found[row] is NOTHING:
            found[row] = {}
        found[row][name] = value
    return found


def _exception_types(events: pa.ChunkedArray) -> list[str | None]:
    """``exception.type`` of the last exception event of each row."""
    found: list[str | None] = [None] * len(events)
    lists = _one_array(events)
    structs = lists.values
    places = np.flatnonzero(
        pc.fill_null(pc.equal(pc.struct_field(structs, "name"), "exception"), False).to_numpy(zero_copy_only=False)
    )
    if not len(places):
        return found
    maps = _one_array(pa.chunked_array([pc.struct_field(structs, "attributes")]).take(pa.array(places)))
    types = np.flatnonzero(pc.equal(maps.keys, "exception.type").to_numpy(zero_copy_only=False))
    rows = _rows_of(places[_rows_of(types, maps.offsets)], lists.offsets)
    for row, value in zip(rows, maps.items.take(pa.array(types)).to_pylist(), strict=True):
        found[row] = value
    return found


def _one_array(column: pa.ChunkedArray) -> Any:
    combined = column.combine_chunks()
    return pa.concat_arrays(combined.chunks) if isinstance(combined, pa.ChunkedArray) else combined


def _rows_of(places: Any, offsets: pa.Array) -> Any:
    """The row that each place of a list column's flat values belongs to."""
    return np.searchsorted(offsets.to_numpy(zero_copy_only=False), places, side="right") - 1
