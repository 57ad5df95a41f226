"""Equal to the official protobuf library, apart from the ids, on whatever a request can hold."""

from __future__ import annotations

import base64
from typing import Any

import orjson
from google.protobuf import json_format
from hypothesis import given, settings
from hypothesis import strategies as st
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, ArrayValue, KeyValue, KeyValueList
from opentelemetry.proto.metrics.v1.metrics_pb2 import HistogramDataPoint
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from surefoot.collector import json_codec

text = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
u64, i64, u32 = st.integers(0, 2**64 - 1), st.integers(-(2**63), 2**63 - 1), st.integers(0, 2**32 - 1)
doubles = st.floats(allow_nan=False)
values: st.SearchStrategy[AnyValue] = st.recursive(
    st.builds(AnyValue, string_value=text)
    | st.builds(AnyValue, bool_value=st.booleans())
    | st.builds(AnyValue, int_value=i64)
    | st.builds(AnyValue, double_value=doubles)
    | st.builds(AnyValue, bytes_value=st.binary(max_size=8))
    | st.just(AnyValue()),
    lambda children: (
        st.lists(children, max_size=3).map(lambda items: AnyValue(array_value=ArrayValue(values=items)))
        | st.lists(st.builds(KeyValue, key=text, value=children), max_size=3).map(
            lambda items: AnyValue(kvlist_value=KeyValueList(values=items))
        )
    ),
    max_leaves=6,
)
attributes = st.lists(st.builds(KeyValue, key=text, value=values), max_size=3)
ids16, ids8 = st.binary(min_size=16, max_size=16), st.binary(min_size=8, max_size=8)
spans = st.builds(
    Span,
    trace_id=ids16,
    span_id=ids8,
    parent_span_id=ids8,
    trace_state=text,
    flags=u32,
    name=text,
    kind=st.integers(0, 5),
    start_time_unix_nano=u64,
    end_time_unix_nano=u64,
    attributes=attributes,
    dropped_attributes_count=u32,
    events=st.lists(st.builds(Span.Event, time_unix_nano=u64, name=text, attributes=attributes), max_size=2),
    links=st.lists(st.builds(Span.Link, trace_id=ids16, span_id=ids8, flags=u32), max_size=2),
)
points = st.builds(
    HistogramDataPoint,
    time_unix_nano=u64,
    count=u64,
    sum=doubles,
    bucket_counts=st.lists(u64, max_size=3),
    explicit_bounds=st.lists(doubles, max_size=3),
    min=doubles,
)


def with_hex_ids(content: Any) -> Any:
    if isinstance(content, list):
        return [with_hex_ids(item) for item in content]
    if not isinstance(content, dict):
        return content
    return {
        key: base64.b64decode(value).hex() if key in ("traceId", "spanId", "parentSpanId") else with_hex_ids(value)
        for key, value in content.items()
    }


def through_json(request: Any) -> Any:
    content = json_format.MessageToDict(request, use_integers_for_enums=True)
    again = type(request)()
    json_codec.parse(orjson.dumps(with_hex_ids(content)), again)
    return again


@settings(max_examples=60, deadline=None)
@given(st.lists(spans, max_size=3), attributes)
def test_traces_survive_the_way_through_json(some: list[Span], resource: list[KeyValue]) -> None:
    scope_spans = [{"scope": {"name": "lib"}, "spans": some}]
    request = ExportTraceServiceRequest(
        resource_spans=[{"resource": {"attributes": resource}, "scope_spans": scope_spans}]  # type: ignore[list-item]  # protobuf takes dicts
    )
    assert through_json(request) == request


@settings(max_examples=50, deadline=None)
@given(st.lists(points, max_size=3))
def test_metrics_survive_the_way_through_json(some: list[HistogramDataPoint]) -> None:
    request = ExportMetricsServiceRequest()
    metric = request.resource_metrics.add().scope_metrics.add().metrics.add(name="m")
    metric.histogram.data_points.extend(some)
    assert through_json(request) == request
