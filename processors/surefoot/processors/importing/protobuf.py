"""Which OTLP request some protobuf bytes are, alone or in a stream with lengths before each.

The three requests have one outer shape, and protobuf bytes do not name their type. What tells them apart is what lies
inside: a span has ids of 16 and 8 bytes, a metric has points of one kind, and a type that does not fit leaves fields
unknown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

from google.protobuf.message import DecodeError
from google.protobuf.unknown_fields import UnknownFieldSet
from opentelemetry.proto.logs.v1.logs_pb2 import LogsData
from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData
from opentelemetry.proto.trace.v1.trace_pb2 import TracesData

_LENGTH: Final = 4  # bytes before a message of the Collector's file exporter, the highest first
_LOOKED_AT: Final = 3


class Request(NamedTuple):
    """A request, or with ``signal`` None bytes that are none. ``place`` says where they stand."""

    place: str
    signal: str | None
    body: bytes
    items: int


def protobuf_requests(data: bytes, most_bytes: int) -> list[Request]:
    """The requests in ``data``, those above ``most_bytes`` in parts; nothing if it is no OTLP."""
    alone = _requests("file", data, most_bytes)
    if alone:
        return alone
    for split in (_by_length, _by_varint):
        messages = split(data)
        if messages is None:
            continue
        found = [
            _requests(f"message {number}", message, most_bytes) or [Request(f"message {number}", None, message, 0)]
            for number, message in enumerate(messages, 1)
        ]
        if any(request.signal for requests in found for request in requests):
            return [request for requests in found for request in requests]
    return []


def _requests(place: str, data: bytes, most_bytes: int) -> list[Request]:
    for signal, kind, groups_of, items_of, fits in _KINDS:
        message = kind()
        try:
            message.ParseFromString(data)
        except DecodeError:
            continue
        groups = getattr(message, groups_of)
        some = [item for group in groups for item in items_of(group)][:_LOOKED_AT]
        if some and all(not len(UnknownFieldSet(item)) and fits(item) for item in some):
            return list(_split(place, signal, kind, groups_of, data, message, most_bytes))
    return []


def _split(
    place: str, signal: str, kind: Any, groups_of: str, data: bytes, message: Any, most_bytes: int
) -> Iterator[Request]:
    count = _COUNT[signal]
    groups = getattr(message, groups_of)
    if len(data) <= most_bytes:
        yield Request(place, signal, data, sum(map(count, groups)))
        return
    for number, group in enumerate(groups, 1):
        yield Request(
            f"{place}, resource {number}", signal, kind(**{groups_of: [group]}).SerializeToString(), count(group)
        )


def _spans(group: Any) -> list[Any]:
    return [span for scope in group.scope_spans for span in scope.spans]


def _logs(group: Any) -> list[Any]:
    return [record for scope in group.scope_logs for record in scope.log_records]


def _metrics(group: Any) -> list[Any]:
    return [metric for scope in group.scope_metrics for metric in scope.metrics]


def _points(group: Any) -> int:
    return sum(len(getattr(m, kind).data_points) for m in _metrics(group) if (kind := m.WhichOneof("data")) is not None)


_KINDS: Final[list[tuple[str, Any, str, Callable[[Any], list[Any]], Callable[[Any], bool]]]] = [
    ("traces", TracesData, "resource_spans", _spans, lambda span: len(span.trace_id) == 16 and len(span.span_id) == 8),
    ("metrics", MetricsData, "resource_metrics", _metrics, lambda metric: metric.WhichOneof("data") is not None),
    ("logs", LogsData, "resource_logs", _logs, lambda _record: True),
]
_COUNT: Final[dict[str, Callable[[Any], int]]] = {
    "traces": lambda group: len(_spans(group)),
    "logs": lambda group: len(_logs(group)),
    "metrics": _points,
}


def _by_length(data: bytes) -> list[bytes] | None:
    """Messages with four bytes of length before each, if they fill the data to its end."""
    messages, at = [], 0
    while at < len(data):
        end = at + _LENGTH + int.from_bytes(data[at : at + _LENGTH], "big")
        if end > len(data) or end == at + _LENGTH:
            return None
        messages.append(data[at + _LENGTH : end])
        at = end
    return messages


def _by_varint(data: bytes) -> list[bytes] | None:
    """Messages with their length as a varint before each, if they fill the data to its end."""
    messages, at = [], 0
    while at < len(data):
        length = shift = 0
        while True:
            if at >= len(data) or shift > 35:
                return None
            byte = data[at]
            at += 1
            length |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                break
        if length == 0 or at + length > len(data):
            return None
        messages.append(data[at : at + length])
        at += length
    return messages
