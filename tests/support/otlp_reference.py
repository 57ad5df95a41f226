"""What decoding means, said once more in plain Python: one dict per span, log record or data point.

Slow and obvious on purpose. Doubles stand as ``Double``, which equals any text that reads back as the same number:
Arrow and Python differ in when they write an exponent.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Iterable, Iterator
from datetime import UTC, date, datetime, timedelta
from typing import Any

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue

from surefoot.collector.segment import Record

LARGEST = 2**63 - 1
DAY = 86_400 * 10**9
YEAR_2000 = 946_684_800 * 10**9
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
DAY = 86_400 * 10**9
LONGEST_DOUBLE = 24  # -2.2250738585072014e-308
KINDS = ["unspecified", "internal", "server", "client", "producer", "consumer"]
STATUSES = ["unset", "ok", "error"]
TEMPORALITIES = ["unspecified", "delta", "cumulative"]


class Double:
    """A double as text."""

    def __init__(self, number: float) -> None:
        self.number = number

    def __eq__(self, text: object) -> bool:
        if not isinstance(text, str) or len(text) > LONGEST_DOUBLE:
            return False
        read = float(text)
        return read == self.number or (math.isnan(read) and math.isnan(self.number))

    __hash__ = None  # type: ignore[assignment]  # equal to texts, which hash otherwise

    def __repr__(self) -> str:
        return f"Double({self.number!r})"


def spans(records: Iterable[Record]) -> list[dict[str, Any]]:
    return [
        {
            "trace_id": span.trace_id.hex() or None,
            "span_id": span.span_id.hex() or None,
            "parent_span_id": span.parent_span_id.hex() or None,
            "trace_state": span.trace_state or None,
            "name": span.name,
            "kind": name(KINDS, span.kind),
            "start_time": moment(cut(span.start_time_unix_nano)),
            "end_time": moment(cut(span.end_time_unix_nano)),
            "start_unix_nano": cut(span.start_time_unix_nano),
            "end_unix_nano": cut(span.end_time_unix_nano),
            "duration_ns": cut(span.end_time_unix_nano) - cut(span.start_time_unix_nano),
            "clock_skew": cut(span.end_time_unix_nano) < cut(span.start_time_unix_nano)
            or cut(span.end_time_unix_nano) < YEAR_2000
            or cut(span.end_time_unix_nano) > record.received_unix_nano + DAY,
            "status": name(STATUSES, span.status.code),
            "status_message": span.status.message or None,
            "scope_name": group.scope.name or None,
            "scope_version": group.scope.version or None,
            "attributes": attributes(span.attributes),
            "events": [
                {"name": e.name, "time_unix_nano": cut(e.time_unix_nano), "attributes": attributes(e.attributes)}
                for e in span.events
            ],
            "links": [
                {
                    "trace_id": link.trace_id.hex() or None,
                    "span_id": link.span_id.hex() or None,
                    "attributes": attributes(link.attributes),
                }
                for link in span.links
            ],
            "dropped_attributes_count": span.dropped_attributes_count,
            **resource(group_of.resource),
            **arrival(record, span.start_time_unix_nano),
        }
        for record in records
        for group_of in ExportTraceServiceRequest.FromString(record.body).resource_spans
        for group in group_of.scope_spans
        for span in group.spans
    ]


def logs(records: Iterable[Record]) -> list[dict[str, Any]]:
    rows = []
    for record in records:
        for group_of in ExportLogsServiceRequest.FromString(record.body).resource_logs:
            for group in group_of.scope_logs:
                for log in group.log_records:
                    time = log.time_unix_nano or log.observed_time_unix_nano
                    given = attributes(log.attributes)
                    rows.append(
                        {
                            "trace_id": log.trace_id.hex() or None,
                            "span_id": log.span_id.hex() or None,
                            "event_name": log.event_name or given.get("event.name"),
                            "time": moment(cut(time)),
                            "time_unix_nano": cut(time),
                            "observed_unix_nano": cut(log.observed_time_unix_nano),
                            "severity_number": log.severity_number,
                            "severity_text": log.severity_text or None,
                            "body": text(log.body),
                            "scope_name": group.scope.name or None,
                            "attributes": given,
                            **resource(group_of.resource),
                            **arrival(record, time),
                        }
                    )
    return rows


def points(records: Iterable[Record]) -> list[dict[str, Any]]:
    rows = []
    for record in records:
        for group_of in ExportMetricsServiceRequest.FromString(record.body).resource_metrics:
            for group in group_of.scope_metrics:
                for metric in group.metrics:
                    for row in _points_of(metric):
                        of_resource = resource(group_of.resource)
                        del of_resource["service_version"]
                        rows.append(
                            {
                                **row,
                                "scope_name": group.scope.name or None,
                                **of_resource,
                                **arrival(record, row["time_unix_nano"]),
                            }
                        )
    return rows


def _points_of(metric: Any) -> Iterator[dict[str, Any]]:
    kind = metric.WhichOneof("data")
    if kind is None:
        return
    data = getattr(metric, kind)
    for point in data.data_points:
        row = {
            "metric_name": metric.name,
            "metric_type": kind,
            "unit": metric.unit,
            "temporality": name(TEMPORALITIES, getattr(data, "aggregation_temporality", 0)),
            "monotonic": data.is_monotonic if kind == "sum" else None,
            "time": moment(cut(point.time_unix_nano)),
            "time_unix_nano": cut(point.time_unix_nano),
            "start_unix_nano": cut(point.start_time_unix_nano),
            "value": None,
            **dict.fromkeys(("count", "sum", "min", "max", "bucket_counts", "explicit_bounds")),
            "attributes": attributes(point.attributes),
        }
        if kind in ("gauge", "sum"):
            which = point.WhichOneof("value")
            row["value"] = None if which is None else float(getattr(point, which))
        else:
            row["count"] = cut(point.count)
            row["sum"] = point.sum if kind == "summary" or point.HasField("sum") else None
        if kind in ("histogram", "exponential_histogram"):
            row |= {edge: getattr(point, edge) if point.HasField(edge) else None for edge in ("min", "max")}
        if kind == "histogram":
            row |= {field: list(getattr(point, field)) for field in ("bucket_counts", "explicit_bounds")}
        yield row


def attributes(pairs: Iterable[KeyValue]) -> dict[str, Any]:
    return {pair.key: text(pair.value) for pair in pairs}


def text(value: AnyValue) -> Any:
    match value.WhichOneof("value"):
        case None:
            return None
        case "string_value":
            return value.string_value
        case "bool_value":
            return "true" if value.bool_value else "false"
        case "int_value":
            return str(value.int_value)
        case "double_value":
            return Double(value.double_value)
        case "bytes_value":
            return base64.b64encode(value.bytes_value).decode()
    return json.dumps(plain(value), ensure_ascii=False, separators=(",", ":"))


def plain(value: AnyValue) -> Any:
    match value.WhichOneof("value"):
        case None:
            return None
        case "array_value":
            return [plain(item) for item in value.array_value.values]
        case "kvlist_value":
            return {pair.key: plain(pair.value) for pair in value.kvlist_value.values}
        case "bytes_value":
            return base64.b64encode(value.bytes_value).decode()
        case "double_value":
            return value.double_value if math.isfinite(value.double_value) else str(value.double_value)
        case kind:
            return getattr(value, kind)


def resource(message: Any) -> dict[str, Any]:
    given = attributes(message.attributes)
    new, old = given.get("deployment.environment.name"), given.get("deployment.environment")
    return {
        "service_name": given.get("service.name"),
        "service_version": given.get("service.version"),
        "environment": old if new is None else new,
        "resource_attributes": given,
    }


def arrival(record: Record, nanos: int) -> dict[str, Any]:
    clamped = min(max(nanos, record.received_unix_nano - 8 * DAY), record.received_unix_nano + DAY)
    return {
        "received_at": moment(record.received_unix_nano),
        "source": record.source,
        "date": date(1970, 1, 1) + timedelta(days=clamped // DAY),
    }


def cut(nanos: int) -> int:
    return min(nanos, LARGEST)


def moment(nanos: int) -> datetime:
    return EPOCH + timedelta(microseconds=nanos // 1000)


def name(names: list[str], number: int) -> str:
    return names[number] if 0 <= number < len(names) else names[0]
