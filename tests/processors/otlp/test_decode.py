"""Decoding equals the plain reference on random requests; what acknowledgement let through is decoded."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue

from support import otlp_reference as reference
from support.otlp_requests import DAY, NOW, log_batches, metric_batches, span_batches
from surefoot.collector.segment import Encoding, Record, Signal
from surefoot.processors.errors import DecodeError
from surefoot.processors.otlp import decode_logs, decode_metrics, decode_spans

# Importing and the first use of each descriptor count into the time of one example.
CHECKS = settings(deadline=None, max_examples=60)


def rows(table: pa.Table) -> list[dict[str, Any]]:
    """Rows as dicts, with maps as dicts; fails on a key that stands twice in one map."""
    return [{name: _maps(value) for name, value in row.items()} for row in table.to_pylist()]


def _maps(value: Any) -> Any:
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return [{name: _maps(inner) for name, inner in item.items()} for item in value]
    if isinstance(value, list) and value and isinstance(value[0], tuple):
        assert len(dict(value)) == len(value)
        return dict(value)
    return value


def same(decoded: pa.Table, expected: list[dict[str, Any]]) -> None:
    decoded.validate(full=True)
    found = rows(decoded)
    assert len(found) == len(expected)
    for got, wanted in zip(found, expected, strict=True):
        assert got.keys() == wanted.keys()
        for name, value in wanted.items():
            # An empty map and an empty list look alike as Python values.
            assert (got[name] or None if value == {} else got[name]) == (None if value == {} else _emptied(value)), name


def _emptied(value: Any) -> Any:
    if isinstance(value, list):
        return [
            {k: [] if v == {} else v for k, v in item.items()} if isinstance(item, dict) else item for item in value
        ]
    return value


@CHECKS
@given(span_batches)
def test_spans_equal_the_reference(records: list[Record]) -> None:
    same(decode_spans(records), reference.spans(records))


@CHECKS
@given(log_batches)
def test_logs_equal_the_reference(records: list[Record]) -> None:
    same(decode_logs(records), reference.logs(records))


@CHECKS
@given(metric_batches)
def test_points_equal_the_reference(records: list[Record]) -> None:
    expected = reference.points(records)
    # The decoder gives points kind by kind; order among points means nothing.
    order = ["gauge", "sum", "histogram", "exponential_histogram", "summary"]
    same(decode_metrics(records), sorted(expected, key=lambda row: order.index(row["metric_type"])))


@pytest.mark.parametrize("decode", [decode_spans, decode_logs, decode_metrics])
def test_nothing_decodes_to_no_rows(decode: Callable[[Sequence[Record]], pa.Table]) -> None:
    assert decode([]).num_rows == 0


def _record(body: bytes, received: int = NOW) -> Record:
    return Record(Signal.TRACES, Encoding.PROTOBUF, received, "test", body)


def _request(**fields: Any) -> ExportTraceServiceRequest:
    request = ExportTraceServiceRequest()
    request.resource_spans.add().scope_spans.add().spans.add(
        **{"trace_id": b"t" * 16, "span_id": b"s" * 8, "start_time_unix_nano": NOW, **fields}
    )
    return request


DEPTH = 15  # upb, and so the collector, refuses messages nested deeper than 100; each turn here nests five


def test_values_deeper_than_the_rust_decoder_goes() -> None:
    value = AnyValue(int_value=7)
    for _ in range(DEPTH):
        outer = AnyValue()
        outer.kvlist_value.values.add(key="k").value.array_value.values.append(value)
        value = outer
    request = _request()
    request.resource_spans[0].scope_spans[0].spans[0].attributes.add(key="deep").value.CopyFrom(value)
    text = dict(decode_spans([_record(request.SerializeToString())])["attributes"][0].as_py())["deep"]
    assert text == '{"k":[' * DEPTH + "7" + "]}" * DEPTH


@pytest.mark.parametrize(
    ("start", "expected"),
    [
        (0, date(2026, 11, 22)),
        (NOW - 8 * DAY - 1, date(2026, 11, 22)),
        (NOW - 3 * DAY, date(2026, 11, 27)),
        (NOW + 2 * DAY, date(2026, 12, 1)),
        (2**64 - 1, date(2026, 12, 1)),
    ],
)
def test_a_wrong_clock_cannot_make_a_far_partition(start: int, expected: date) -> None:
    # NOW is 2026-11-30.
    table = decode_spans([_record(_request(start_time_unix_nano=start).SerializeToString())])
    assert table["date"].to_pylist() == [expected]


GROUP = bytes([(15 << 3) | 3, (15 << 3) | 4])  # an empty group, field 15: upb skips it, ptars refuses it
OTHER_WIRE_TYPE = b"\x08\x01"  # field 1 as a number


@pytest.mark.parametrize("unknown", [GROUP, OTHER_WIRE_TYPE])
def test_what_upb_skips_does_not_stop_the_decoder(unknown: bytes) -> None:
    body = _request(name="first").SerializeToString() + unknown
    assert ExportTraceServiceRequest.FromString(body).resource_spans
    records = [_record(body), _record(_request(name="second").SerializeToString())]
    assert decode_spans(records)["name"].to_pylist() == ["first", "second"]


def test_what_nobody_can_read_is_named() -> None:
    good = _record(_request().SerializeToString())
    with pytest.raises(DecodeError, match=rf"1 of 3 ExportTraceServiceRequest.*{NOW + 5}") as caught:
        decode_spans([good, _record(b"\xff\xff\xff", NOW + 5), good])
    assert caught.value.places == (1,)
