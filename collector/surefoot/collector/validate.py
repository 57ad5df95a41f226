"""Checks a request before it is kept: what is acknowledged must be decodable later, for the writer never asks back.

The body is parsed with upb, which is stricter than the writer's decoder (nesting, UTF-8). A span or log record whose
ids cannot be ids is rejected alone: only then is the body written anew without it; otherwise it is kept byte for byte.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

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

from surefoot.collector import json_codec
from surefoot.collector.errors import BadRequestError
from surefoot.collector.segment import Signal

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


@dataclass(frozen=True, slots=True)
class Checked:
    """A request that may be kept: its body, how many items it holds, what was rejected and why."""

    body: bytes
    items: int
    rejected: int
    message: str


def check(signal: Signal, body: bytes, *, is_json: bool = False) -> Checked:
    """Check a request body. Raises BadRequestError if no part of it can ever be accepted."""
    request: Any = REQUESTS[signal]()
    if is_json:
        json_codec.parse(body, request)
        # Parsed again from its own bytes: that is what enforces upb's limits on nesting and text.
        body = request.SerializeToString()
        request = REQUESTS[signal]()
    try:
        request.ParseFromString(body)
    except DecodeError as error:
        raise BadRequestError(f"The body is not an OTLP {request.DESCRIPTOR.name}: {error}.") from error
    if signal is Signal.METRICS:
        return Checked(body, sum(_points(metric) for metric in _metrics(request)), 0, "")
    groups, problem = (_span_groups, _span_problem) if signal is Signal.TRACES else (_log_groups, _log_problem)
    return _reject_bad(request, body, groups(request), problem)


def _reject_bad(request: Any, body: bytes, groups: Iterator[Any], problem: Callable[[Any], str | None]) -> Checked:
    items = rejected = 0
    named: list[str] = []
    for group in groups:
        bad = [(number, why) for number, item in enumerate(group) if (why := problem(item)) is not None]
        items += len(group) - len(bad)
        rejected += len(bad)
        named += [why for _, why in bad[: _NAMED - len(named)]]
        for number, _ in reversed(bad):
            del group[number]
    if rejected == 0:
        return Checked(body, items, 0, "")
    more = f" and {rejected - len(named)} more" if rejected > len(named) else ""
    return Checked(request.SerializeToString(), items, rejected, f"Rejected {rejected}: {'; '.join(named)}{more}.")


def _span_groups(request: Any) -> Iterator[Any]:
    return (scope.spans for resource in request.resource_spans for scope in resource.scope_spans)


def _log_groups(request: Any) -> Iterator[Any]:
    return (scope.log_records for resource in request.resource_logs for scope in resource.scope_logs)


def _metrics(request: Any) -> Iterator[Any]:
    return (metric for r in request.resource_metrics for scope in r.scope_metrics for metric in scope.metrics)


def _points(metric: Any) -> int:
    kind = metric.WhichOneof("data")
    return 0 if kind is None else len(getattr(metric, kind).data_points)


def _span_problem(span: Any) -> str | None:
    trace, own, parent = span.trace_id, span.span_id, span.parent_span_id
    if len(trace) != 16 or trace == _NO_TRACE:
        return f"span {span.name[:60]!r} has {_shown(trace)} for a trace id, which takes 16 bytes other than zero"
    if len(own) != 8 or own == _NO_SPAN:
        return f"span {span.name[:60]!r} has {_shown(own)} for a span id, which takes 8 bytes other than zero"
    if len(parent) not in (0, 8):
        return f"span {span.name[:60]!r} has {_shown(parent)} for a parent's id, which takes 8 bytes"
    return None


def _log_problem(record: Any) -> str | None:
    if len(record.trace_id) not in (0, 16):
        return f"a log record has {_shown(record.trace_id)} for a trace id, which takes 16 bytes"
    if len(record.span_id) not in (0, 8):
        return f"a log record has {_shown(record.span_id)} for a span id, which takes 8 bytes"
    return None


def _shown(identity: bytes) -> str:
    if identity == json_codec.NOT_HEX:
        return "text that is not hex"
    return identity[:20].hex() or "nothing"
