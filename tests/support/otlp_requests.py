"""Random OTLP requests, from the strange to the ordinary, as records of a segment."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import (
    AnyValue,
    ArrayValue,
    InstrumentationScope,
    KeyValue,
    KeyValueList,
)
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord, ResourceLogs, ScopeLogs
from opentelemetry.proto.metrics.v1 import metrics_pb2 as metrics
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span, Status

from surefoot.collector.segment import Encoding, Record, Signal

NOW = 1_796_010_000_000_000_000
DAY = 86_400 * 10**9

words = st.text(max_size=6)
keys = st.sampled_from(["", "a", "b", "service.name", "deployment.environment", "event.name", "ключ"]) | words
integers = st.integers(-(2**63), 2**63 - 1)
uint64 = st.integers(0, 2**64 - 1)
times = st.sampled_from([0, 2**63, 2**64 - 1, NOW]) | st.integers(NOW - 12 * DAY, NOW + 3 * DAY) | uint64
uint32 = st.integers(0, 2**32 - 1)
ids = st.sampled_from([b"", b"\0" * 8, bytes(range(16))]) | st.binary(max_size=16)

Values = st.SearchStrategy[AnyValue]
values: Values = st.deferred(lambda: st.one_of(scalars, lists, maps))
scalars: Values = st.one_of(
    st.just(AnyValue()),
    st.builds(AnyValue, string_value=words),
    st.builds(AnyValue, bool_value=st.booleans()),
    st.builds(AnyValue, int_value=integers),
    st.builds(AnyValue, double_value=st.floats()),
    st.builds(AnyValue, bytes_value=st.binary(max_size=5)),
)
lists: Values = st.builds(AnyValue, array_value=st.builds(ArrayValue, values=st.lists(values, max_size=3)))
pairs = st.builds(KeyValue, key=keys, value=st.none() | values)
maps: Values = st.builds(AnyValue, kvlist_value=st.builds(KeyValueList, values=st.lists(pairs, max_size=3)))
attributes = st.lists(pairs, max_size=4)
scopes = st.none() | st.builds(InstrumentationScope, name=words, version=words)
resources = st.none() | st.builds(Resource, attributes=attributes)

events = st.builds(Span.Event, name=words, time_unix_nano=times, attributes=attributes)
links = st.builds(Span.Link, trace_id=ids, span_id=ids, attributes=attributes)
spans = st.builds(
    Span,
    trace_id=ids,
    span_id=ids,
    parent_span_id=ids,
    trace_state=words,
    name=words,
    kind=st.integers(0, 7),
    start_time_unix_nano=times,
    end_time_unix_nano=times,
    attributes=attributes,
    events=st.lists(events, max_size=2),
    links=st.lists(links, max_size=2),
    dropped_attributes_count=uint32,
    status=st.none() | st.builds(Status, code=st.integers(0, 4), message=words),
)
log_records = st.builds(
    LogRecord,
    time_unix_nano=times,
    observed_time_unix_nano=times,
    severity_number=st.integers(0, 24),
    severity_text=words,
    body=st.none() | values,
    attributes=attributes,
    trace_id=ids,
    span_id=ids,
    event_name=words,
)

_stamps: Any = {"attributes": attributes, "time_unix_nano": times, "start_time_unix_nano": times}
_some_float = st.none() | st.floats(allow_nan=False)
numbers = st.one_of(
    st.builds(metrics.NumberDataPoint, **_stamps),
    st.builds(metrics.NumberDataPoint, as_double=st.floats(allow_nan=False), **_stamps),
    st.builds(metrics.NumberDataPoint, as_int=integers, **_stamps),
)
_edges: Any = {"count": uint64, "sum": _some_float, "min": _some_float, "max": _some_float}
histograms = st.builds(
    metrics.HistogramDataPoint,
    bucket_counts=st.lists(st.integers(0, 2**63 - 1), max_size=3),
    explicit_bounds=st.lists(st.floats(allow_nan=False), max_size=3),
    **_stamps,
    **_edges,
)
exponentials = st.builds(metrics.ExponentialHistogramDataPoint, **_stamps, **_edges)
summaries = st.builds(metrics.SummaryDataPoint, count=uint64, sum=st.floats(allow_nan=False), **_stamps)
temporalities = st.integers(0, 3)


def _data(kind: Any, data_points: Any, **more: Any) -> Any:
    return st.builds(kind, data_points=st.lists(data_points, max_size=3), **more)


_named: Any = {"name": words, "unit": words}
metric = st.one_of(
    st.builds(metrics.Metric, **_named),
    st.builds(metrics.Metric, gauge=_data(metrics.Gauge, numbers), **_named),
    st.builds(
        metrics.Metric,
        sum=_data(metrics.Sum, numbers, aggregation_temporality=temporalities, is_monotonic=st.booleans()),
        **_named,
    ),
    st.builds(
        metrics.Metric,
        histogram=_data(metrics.Histogram, histograms, aggregation_temporality=temporalities),
        **_named,
    ),
    st.builds(
        metrics.Metric,
        exponential_histogram=_data(metrics.ExponentialHistogram, exponentials, aggregation_temporality=temporalities),
        **_named,
    ),
    st.builds(metrics.Metric, summary=_data(metrics.Summary, summaries), **_named),
)


def _groups(kind: Any, scoped: Any, items: str, item: Any, inner: str) -> Any:
    lists = {items: st.lists(item, max_size=4)}
    scope_groups = st.lists(st.builds(scoped, scope=scopes, **lists), max_size=2)
    return st.lists(st.builds(kind, resource=resources, **{inner: scope_groups}), max_size=2)


def _records(signal: Signal, requests: Any) -> st.SearchStrategy[list[Record]]:
    record = st.builds(
        Record,
        st.just(signal),
        st.just(Encoding.PROTOBUF),
        st.integers(NOW - DAY, NOW + DAY),
        st.sampled_from(["127.0.0.1", "::1"]),
        requests.map(lambda request: request.SerializeToString()),
    )
    return st.lists(record, max_size=3)


span_batches = _records(
    Signal.TRACES,
    st.builds(
        ExportTraceServiceRequest, resource_spans=_groups(ResourceSpans, ScopeSpans, "spans", spans, "scope_spans")
    ),
)
log_batches = _records(
    Signal.LOGS,
    st.builds(
        ExportLogsServiceRequest,
        resource_logs=_groups(ResourceLogs, ScopeLogs, "log_records", log_records, "scope_logs"),
    ),
)
metric_batches = _records(
    Signal.METRICS,
    st.builds(
        ExportMetricsServiceRequest,
        resource_metrics=_groups(metrics.ResourceMetrics, metrics.ScopeMetrics, "metrics", metric, "scope_metrics"),
    ),
)
