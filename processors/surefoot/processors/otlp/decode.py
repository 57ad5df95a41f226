"""From the bodies of acknowledged requests to one Arrow row per span, log record or data point.

ptars (Rust) turns protobuf into nested Arrow on the official descriptors; the rest is flattening. Rows carry names of
the lake's schema; the understanding of attributes happens in ``genai.columns``.

Rule: what was acknowledged is decoded. Bodies were parsed by upb before they were acknowledged, and upb skips unknown
groups and fields of an unexpected wire type, where ptars refuses the whole batch: such a body is read by upb and
written anew without its unknown fields. DecodeError names what even that does not help.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from google.protobuf.message import DecodeError as ProtobufDecodeError
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from surefoot.collector.segment import Encoding, Record
from surefoot.instrumentation import semconv
from surefoot.processors.errors import DecodeError
from surefoot.processors.otlp.arrays import (
    attribute_maps,
    expand,
    first_value,
    hex_text,
    int64,
    microseconds,
    offsets_of,
    value_text,
)
from surefoot.processors.otlp.json_bodies import each_encoding, resource_groups
from surefoot.processors.otlp.metrics import metric_points
from surefoot.processors.otlp.wire import handler

DAYS_BACK = 8
DAYS_AHEAD = 1
_DAY_NANOS = 86_400 * 10**9
EARLIEST_END = 946_684_800 * 10**9  # the year 2000: nothing that sends OTLP ended before
LATEST_AHEAD = DAYS_AHEAD * _DAY_NANOS
_KINDS = pa.array(["unspecified", "internal", "server", "client", "producer", "consumer"])
_STATUSES = pa.array(["unset", "ok", "error"])


@each_encoding
def decode_spans(records: Sequence[Record]) -> pa.Table:
    """One row per span: identity, timing, status, scope, attributes, events, links, resource, arrival."""
    resources, of_record = _top(records, ExportTraceServiceRequest, "resource_spans")
    groups, of_resource = expand(resources.field("scope_spans"))
    spans, of_group = expand(groups.field("spans"))
    of_resource = of_resource[of_group]
    start, end = int64(spans.field("start_time_unix_nano")), int64(spans.field("end_time_unix_nano"))
    scope = groups.field("scope")
    status = spans.field("status")
    columns = {
        "trace_id": hex_text(spans.field("trace_id")),
        "span_id": hex_text(spans.field("span_id")),
        "parent_span_id": hex_text(spans.field("parent_span_id")),
        "trace_state": _text(spans.field("trace_state")),
        "name": spans.field("name").fill_null("").dictionary_encode(),
        "kind": _named(_KINDS, spans.field("kind")),
        **_times(start, end, _received(records, of_record[of_resource])),
        "status": _named(_STATUSES, _child(status, "code")),
        "status_message": _text(_child(status, "message")),
        "scope_name": _take(_text(_child(scope, "name")).dictionary_encode(), of_group),
        "scope_version": _take(_text(_child(scope, "version")).dictionary_encode(), of_group),
        "attributes": attribute_maps(spans.field("attributes")),
        "events": _events(spans.field("events")),
        "links": _links(spans.field("links")),
        "dropped_attributes_count": spans.field("dropped_attributes_count").cast(pa.int64()).fill_null(0),
        **_resource(resources, of_resource),
        **arrival(records, of_record[of_resource], start),
    }
    return pa.table(columns)


@each_encoding
def decode_logs(records: Sequence[Record]) -> pa.Table:
    """One row per log record."""
    resources, of_record = _top(records, ExportLogsServiceRequest, "resource_logs")
    groups, of_resource = expand(resources.field("scope_logs"))
    logs, of_group = expand(groups.field("log_records"))
    of_resource = of_resource[of_group]
    observed = int64(logs.field("observed_time_unix_nano"))
    given = int64(logs.field("time_unix_nano"))
    time = pc.if_else(pc.equal(given, 0), observed, given)
    attributes = attribute_maps(logs.field("attributes"))
    columns = {
        "trace_id": hex_text(logs.field("trace_id")),
        "span_id": hex_text(logs.field("span_id")),
        # Some SDKs still send the event's name as an attribute.
        "event_name": pc.coalesce(
            _text(logs.field("event_name")), first_value(attributes, "event.name").dictionary_decode()
        ),
        "time": microseconds(time),
        "time_unix_nano": time,
        "observed_unix_nano": observed,
        "severity_number": logs.field("severity_number").cast(pa.int64()),
        "severity_text": _text(logs.field("severity_text")),
        "body": value_text(logs.field("body")),
        "scope_name": _take(_text(_child(groups.field("scope"), "name")), of_group),
        "attributes": attributes,
        **_resource(resources, of_resource),
        **arrival(records, of_record[of_resource], time),
    }
    return pa.table(columns)


@each_encoding
def decode_metrics(records: Sequence[Record]) -> pa.Table:
    """One row per data point of every kind."""
    resources, of_record = _top(records, ExportMetricsServiceRequest, "resource_metrics")
    groups, of_resource = expand(resources.field("scope_metrics"))
    metrics, of_group = expand(groups.field("metrics"))
    of_resource = of_resource[of_group]
    points, of_metric = metric_points(metrics)
    of_resource = of_resource[of_metric]
    scope_name = _take(_text(_child(groups.field("scope"), "name")), of_group[of_metric])
    columns = {
        **points,
        "scope_name": scope_name,
        **{name: column for name, column in _resource(resources, of_resource).items() if name != "service_version"},
        **arrival(records, of_record[of_resource], points["time_unix_nano"]),
    }
    return pa.table(columns)


def arrival(records: Sequence[Record], of_record: Any, event_nanos: pa.Array) -> dict[str, pa.Array]:
    """When and how each row came, and its date.

    The date is the event's, kept within 8 days before and 1 day after arrival, so that a wrong clock cannot make
    partitions in 1970 or 2262.
    """
    received = pa.array([record.received_unix_nano for record in records], pa.int64())
    received = received.take(pa.array(of_record))
    early = pc.subtract(received, DAYS_BACK * _DAY_NANOS)
    late = pc.add(received, DAYS_AHEAD * _DAY_NANOS)
    clamped = pc.min_element_wise(pc.max_element_wise(event_nanos, early), late)
    sources = pa.array([record.source for record in records], pa.string()).dictionary_encode()
    return {
        "received_at": microseconds(received),
        "source": sources.take(pa.array(of_record)),
        "date": microseconds(clamped).cast(pa.timestamp("us")).cast(pa.date32()),
    }


def _top(records: Sequence[Record], message: Any, field: str) -> tuple[pa.Array, Any]:
    """All resource groups of all records, which are of one encoding, and for each the number of its record."""
    if records and records[0].encoding is Encoding.JSON:
        return expand(resource_groups(records, message.DESCRIPTOR, field))
    bodies = [record.body for record in records]
    try:
        batch = handler(message).list_to_record_batch(bodies)
    except ValueError:
        batch = handler(message).list_to_record_batch(_rewritten(records, message))
    return expand(batch.column(batch.schema.get_field_index(field)))


def _rewritten(records: Sequence[Record], message: Any) -> list[bytes]:
    """The bodies, those that ptars refuses written anew by upb. Raises DecodeError if one cannot be read by either."""
    bodies, refused = [], {}
    for place, record in enumerate(records):
        body = record.body
        try:
            handler(message).list_to_record_batch([body])
        except ValueError:
            try:
                request = message.FromString(body)
                request.DiscardUnknownFields()
                body = request.SerializeToString()
                handler(message).list_to_record_batch([body])
            except (ValueError, ProtobufDecodeError) as error:
                refused[place] = f"the one received at {record.received_unix_nano} from {record.source}: {error}"
        bodies.append(body)
    if refused:
        raise DecodeError(
            f"Cannot decode {len(refused)} of {len(records)} {message.DESCRIPTOR.name}: {'; '.join(refused.values())}",
            list(refused),
        )
    return bodies


def _received(records: Sequence[Record], of_record: Any) -> pa.Array:
    """When each row came, in unix nanoseconds."""
    return pa.array(np.array([record.received_unix_nano for record in records], np.int64)[of_record])


def _times(start: pa.Array, end: pa.Array, received: pa.Array) -> dict[str, pa.Array]:
    # Both fit int64 and are not negative, so the difference fits too. What was cut to int64 lies beyond any arrival.
    duration = pc.subtract(end, start)
    sane = pc.and_(pc.greater_equal(end, EARLIEST_END), pc.less_equal(end, pc.add(received, LATEST_AHEAD)))
    return {
        "start_time": microseconds(start),
        "end_time": microseconds(end),
        "start_unix_nano": start,
        "end_unix_nano": end,
        "duration_ns": duration,
        "clock_skew": pc.or_(pc.less(duration, 0), pc.invert(sane)),
    }


def _resource(resources: pa.Array, of_resource: Any) -> dict[str, pa.Array]:
    maps = attribute_maps(_child(resources.field("resource"), "attributes"))
    names = (semconv.ENVIRONMENT, semconv.ENVIRONMENT_OLD)
    environment = pc.coalesce(*(first_value(maps, name).dictionary_decode() for name in names)).dictionary_encode()
    indices = pa.array(of_resource)
    return {
        "service_name": first_value(maps, semconv.SERVICE_NAME).take(indices),
        "service_version": first_value(maps, semconv.SERVICE_VERSION).take(indices),
        "environment": environment.take(indices),
        "resource_attributes": maps.take(indices),
    }


def _events(lists: pa.Array) -> pa.Array:
    items = lists.flatten()
    rows = pa.StructArray.from_arrays(
        [
            items.field("name").fill_null(""),
            int64(items.field("time_unix_nano")),
            attribute_maps(items.field("attributes")),
        ],
        names=["name", "time_unix_nano", "attributes"],
    )
    return pa.ListArray.from_arrays(offsets_of(lists), rows)


def _links(lists: pa.Array) -> pa.Array:
    items = lists.flatten()
    rows = pa.StructArray.from_arrays(
        [
            hex_text(items.field("trace_id")),
            hex_text(items.field("span_id")),
            attribute_maps(items.field("attributes")),
        ],
        names=["trace_id", "span_id", "attributes"],
    )
    return pa.ListArray.from_arrays(offsets_of(lists), rows)


def _child(struct: pa.StructArray, name: str) -> pa.Array:
    """A field of a struct that may be missing: then the field is null, not its default."""
    return pc.struct_field(struct, name)


def _text(array: pa.Array) -> pa.Array:
    """Text of which the empty one means "not given"."""
    return pc.if_else(pc.equal(pc.binary_length(array), 0), pa.scalar(None, pa.string()), array)


def _take(array: pa.Array, indices: Any) -> pa.Array:
    return array.take(pa.array(indices))


def _named(names: pa.StringArray, numbers: pa.Array) -> pa.DictionaryArray:
    """Enum numbers as names; an unknown number means what 0 means."""
    values = np.asarray(numbers.fill_null(0).to_numpy(zero_copy_only=False))
    known = np.where((values >= 0) & (values < len(names)), values, 0)
    return pa.DictionaryArray.from_arrays(pa.array(known.astype(np.int32)), names)
