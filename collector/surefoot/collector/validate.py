"""Checks a request before it is kept: what is acknowledged must be decodable later, for the writer never asks back.

The body is parsed with upb, which is stricter than the writer's decoder (nesting, UTF-8). A span, log record or data
point whose ids cannot be ids, or that is beyond the limits, is rejected alone: only then is the body written anew
without it; otherwise it is kept byte for byte. JSON that is in order stays JSON, in canonical form; where one thing is
not, all of it becomes protobuf.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, NamedTuple

from google.protobuf.message import DecodeError, Message
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest, ExportLogsServiceResponse
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
    ExportMetricsServiceResponse,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

from surefoot.collector import json_codec, json_typed
from surefoot.collector.errors import BadRequestError
from surefoot.collector.limits import (
    Limits,
    Problem,
    attributes_problem,
    longest_item,
    parse_shallow,
    values_problem,
)
from surefoot.collector.segment import Encoding, Signal

REQUESTS: dict[Signal, type[Message]] = {
    Signal.TRACES: ExportTraceServiceRequest,
    Signal.LOGS: ExportLogsServiceRequest,
    Signal.METRICS: ExportMetricsServiceRequest,
}
RESPONSES: dict[Signal, Callable[..., Message]] = {
    Signal.TRACES: ExportTraceServiceResponse,
    Signal.LOGS: ExportLogsServiceResponse,
    Signal.METRICS: ExportMetricsServiceResponse,
}
REJECTED_FIELD = {
    Signal.TRACES: "rejected_spans",
    Signal.LOGS: "rejected_log_records",
    Signal.METRICS: "rejected_data_points",
}
_NO_TRACE, _NO_SPAN = bytes(16), bytes(8)
_NAMED = 3  # how many rejected items a message describes
_SPAN = attrgetter("trace_id", "span_id", "parent_span_id", "links")
_LOG = attrgetter("trace_id", "span_id")


@dataclass(frozen=True, slots=True)
class Checked:
    """A request that may be kept: its body, how many items it holds, what was rejected and why."""

    body: bytes
    items: int
    rejected: int
    message: str
    reasons: Mapping[str, int] = field(default_factory=dict)  # rejected items by reason
    encoding: Encoding = Encoding.PROTOBUF


class _Group(NamedTuple):
    """Items of one list, and what they share."""

    resource: Any
    scope: Any
    items: Any


@dataclass(frozen=True, slots=True)
class _Look:
    """What some item of a request may have too much of."""

    limits: Limits
    deep: bool  # levels in a value
    large: bool  # bytes in a value
    numerous: bool  # attributes, events or links


def check(signal: Signal, body: bytes, *, is_json: bool = False, limits: Limits | None = None) -> Checked:
    """Check a request body. Raises BadRequestError if no part of it can ever be accepted."""
    limits = limits or Limits()
    kind = REQUESTS[signal]
    if is_json:
        rewritten = json_typed.rewrite(kind, body, limits)
        if rewritten is not None:
            return Checked(rewritten.body, rewritten.items, 0, "", encoding=Encoding.JSON)
        message = kind()
        json_codec.parse(body, message)
        # Parsed again from its own bytes: that is what enforces upb's limits on nesting and text.
        body = message.SerializeToString()
    request: Any = parse_shallow(kind, body, limits.nesting)
    deep = request is None
    if deep:
        request = kind()
        try:
            request.ParseFromString(body)
        except DecodeError as error:
            raise BadRequestError(f"The body is not an OTLP {request.DESCRIPTOR.name}: {error}.") from error
    fewest = limits.shortest_bad
    numerous = len(body) >= fewest and longest_item(body) >= fewest
    look = _Look(limits, deep, len(body) > limits.value_bytes, numerous)
    return _reject_bad(request, body, _GROUPS[signal](request), _SUSPECTS[signal], _PROBLEM[signal], look)


def _reject_bad(
    request: Any,
    body: bytes,
    groups: Iterator[_Group],
    suspects: Callable[[Any, _Look], Sequence[int]],
    problem: Callable[[Any, Limits], Problem | None],
    look: _Look,
) -> Checked:
    items = 0
    named: list[str] = []
    reasons: Counter[str] = Counter()
    for group in groups:
        shared = _shared_problem(group, look)
        everything = shared is not None or look.deep or look.large
        numbers = range(len(group.items)) if everything else suspects(group.items, look)
        items += len(group.items)
        if not numbers:
            continue
        bad = [(n, why) for n in numbers if (why := shared or _item_problem(group.items[n], problem, look)) is not None]
        items -= len(bad)
        reasons.update(why.reason for _, why in bad)
        named += [why.text for _, why in bad[: _NAMED - len(named)]]
        for number, _ in reversed(bad):
            del group.items[number]
    if not reasons:
        return Checked(body, items, 0, "")
    rejected = reasons.total()
    more = f" and {rejected - len(named)} more" if rejected > len(named) else ""
    text = f"Rejected {rejected}: {'; '.join(named)}{more}."
    return Checked(request.SerializeToString(), items, rejected, text, reasons)


def _shared_problem(group: _Group, look: _Look) -> Problem | None:
    for what, shared in (("the resource", group.resource), ("the scope", group.scope)):
        found = attributes_problem(what, shared.attributes, look.limits)
        if found is None and (look.deep or look.large):
            found = values_problem(what, shared, look.limits, deep=look.deep)
        if found is not None:
            return found
    return None


def _item_problem(item: Any, problem: Callable[[Any, Limits], Problem | None], look: _Look) -> Problem | None:
    found = problem(item, look.limits)
    if found is None and (look.deep or look.large):
        return values_problem(_named(item), item, look.limits, deep=look.deep)
    return found


def _named(item: Any) -> str:
    kind = item.DESCRIPTOR.name
    return f"span {item.name[:60]!r}" if kind == "Span" else "a log record" if kind == "LogRecord" else "a data point"


def _span_groups(request: Any) -> Iterator[_Group]:
    return (_Group(r.resource, s.scope, s.spans) for r in request.resource_spans for s in r.scope_spans)


def _log_groups(request: Any) -> Iterator[_Group]:
    return (_Group(r.resource, s.scope, s.log_records) for r in request.resource_logs for s in r.scope_logs)


def _point_groups(request: Any) -> Iterator[_Group]:
    for resource in request.resource_metrics:
        for scope in resource.scope_metrics:
            for metric in scope.metrics:
                kind = metric.WhichOneof("data")
                if kind is not None:
                    yield _Group(resource.resource, scope.scope, getattr(metric, kind).data_points)


# Which items need a closer look: one pass that stays in C as far as it can, for most items are fine.


def _suspect_spans(spans: Any, look: _Look) -> list[int]:
    suspects = [
        number
        for number, (trace, own, parent, links) in enumerate(map(_SPAN, spans))
        if len(trace) != 16
        or len(own) != 8
        or len(parent) not in (0, 8)
        or trace == _NO_TRACE
        or own == _NO_SPAN
        or links
    ]
    if look.numerous:
        most = look.limits.attributes
        many = {n for n, span in enumerate(spans) if len(span.attributes) > most or span.events}
        return sorted(many.union(suspects))
    return suspects


def _suspect_logs(records: Any, look: _Look) -> list[int]:
    suspects = [
        number
        for number, (trace, own) in enumerate(map(_LOG, records))
        if len(trace) not in (0, 16) or len(own) not in (0, 8)
    ]
    if look.numerous:
        most = look.limits.attributes
        return sorted({n for n, record in enumerate(records) if len(record.attributes) > most}.union(suspects))
    return suspects


def _suspect_points(points: Any, look: _Look) -> list[int]:
    return [n for n, point in enumerate(points) if len(point.attributes) > look.limits.attributes or _exemplars(point)]


def _exemplars(point: Any) -> Any:
    return getattr(point, "exemplars", ())  # a summary has none


def _span_problem(span: Any, limits: Limits) -> Problem | None:
    what = f"span {span.name[:60]!r}"
    trace, own = span.trace_id, span.span_id
    if len(trace) != 16 or trace == _NO_TRACE:
        return _id_problem(what, trace, "a trace id, which takes 16 bytes other than zero")
    if len(own) != 8 or own == _NO_SPAN:
        return _id_problem(what, own, "a span id, which takes 8 bytes other than zero")
    if len(span.parent_span_id) not in (0, 8):
        return _id_problem(what, span.parent_span_id, "a parent's id, which takes 8 bytes")
    if len(span.events) > limits.events:
        return Problem("events", f"{what} has {len(span.events):,} events, the limit is {limits.events:,}")
    if len(span.links) > limits.links:
        return Problem("links", f"{what} has {len(span.links):,} links, the limit is {limits.links:,}")
    found = attributes_problem(what, span.attributes, limits)
    for event in span.events:
        found = found or attributes_problem(f"an event of {what}", event.attributes, limits)
    for link in span.links:
        place = f"a link of {what}"
        found = found or _reference_problem(place, link) or attributes_problem(place, link.attributes, limits)
    return found


def _log_problem(record: Any, limits: Limits) -> Problem | None:
    what = "a log record"
    return _reference_problem(what, record) or attributes_problem(what, record.attributes, limits)


def _point_problem(point: Any, limits: Limits) -> Problem | None:
    what = "a data point"
    found = attributes_problem(what, point.attributes, limits)
    for exemplar in _exemplars(point):
        place = f"an exemplar of {what}"
        found = found or _reference_problem(place, exemplar)
        found = found or attributes_problem(place, exemplar.filtered_attributes, limits)
    return found


def _reference_problem(what: str, item: Any) -> Problem | None:
    """Whether the ids of a span that the item points to cannot be ids; it may point to none."""
    if len(item.trace_id) not in (0, 16):
        return _id_problem(what, item.trace_id, "a trace id, which takes 16 bytes")
    if len(item.span_id) not in (0, 8):
        return _id_problem(what, item.span_id, "a span id, which takes 8 bytes")
    return None


def _id_problem(what: str, identity: bytes, expected: str) -> Problem:
    shown = "text that is not hex" if identity == json_codec.NOT_HEX else identity[:20].hex() or "nothing"
    return Problem("ids", f"{what} has {shown} for {expected}")


_GROUPS: dict[Signal, Callable[[Any], Iterator[_Group]]] = {
    Signal.TRACES: _span_groups,
    Signal.LOGS: _log_groups,
    Signal.METRICS: _point_groups,
}
_SUSPECTS: dict[Signal, Callable[[Any, _Look], list[int]]] = {
    Signal.TRACES: _suspect_spans,
    Signal.LOGS: _suspect_logs,
    Signal.METRICS: _suspect_points,
}
_PROBLEM: dict[Signal, Callable[[Any, Limits], Problem | None]] = {
    Signal.TRACES: _span_problem,
    Signal.LOGS: _log_problem,
    Signal.METRICS: _point_problem,
}
