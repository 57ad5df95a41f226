"""The same request sent as JSON and as protobuf gives the same cells in the tables, whichever way JSON takes.

Requests are random (support.otlp_requests), also in what JSON can say in more than one way: 64-bit integers as text or
numbers, ids in any case, bytes in either alphabet, white space, unknown keys, null for nothing.
"""

from __future__ import annotations

import base64
from typing import Any

import orjson
import pyarrow as pa
import pytest
from google.protobuf import json_format
from hypothesis import given, settings
from hypothesis import strategies as st

from support.otlp_requests import log_batches, metric_batches, span_batches
from surefoot.collector.errors import BadRequestError
from surefoot.collector.segment import Encoding, Record, Signal
from surefoot.collector.validate import REQUESTS, Checked, check
from surefoot.processors.otlp import decode_logs, decode_metrics, decode_spans

DECODE = {Signal.TRACES: decode_spans, Signal.LOGS: decode_logs, Signal.METRICS: decode_metrics}
IDS = ("traceId", "spanId", "parentSpanId")
WIDE = ("intValue", "asInt", "count")
batches = st.one_of(span_batches, log_batches, metric_batches)
dice = st.randoms(use_true_random=False)
RECEIVED = 1_796_010_000_000_000_000


def spoken(content: Any, random: Any) -> Any:
    """The content as another exporter might write it."""
    if isinstance(content, list):
        return [spoken(item, random) for item in content]
    if not isinstance(content, dict):
        return content
    said = {key: _said(key, value, random) for key, value in content.items()}
    if random.random() < 0.2:
        said |= {"unknown": {"deep": [1, "x", None]}, "snake_case": 1, "attributes": said.get("attributes")}
    return said


def _said(key: str, value: Any, random: Any) -> Any:
    if key in IDS:
        digits = base64.b64decode(value).hex()
        return digits.upper() if random.random() < 0.3 else digits
    if isinstance(value, str) and (key in WIDE or key.endswith("Nano")) and random.random() < 0.5:
        return int(value)
    if key == "bytesValue" and random.random() < 0.5:
        return value.replace("+", "-").replace("/", "_").rstrip("=")
    return spoken(value, random)


def as_json(request: Any, random: Any) -> bytes:
    content = json_format.MessageToDict(request, use_integers_for_enums=True)
    return orjson.dumps(spoken(content, random), option=orjson.OPT_INDENT_2 if random.random() < 0.3 else 0)


def outcome(signal: Signal, body: bytes, *, is_json: bool) -> Checked | str:
    try:
        return check(signal, body, is_json=is_json)
    except BadRequestError:
        return "refused"


@settings(max_examples=40, deadline=None)
@given(batches, dice)
def test_json_gives_the_cells_that_protobuf_gives(batch: list[Record], random: Any) -> None:
    for record in batch:
        assert_equal(record.signal, record.body, as_json(REQUESTS[record.signal].FromString(record.body), random))


def assert_equal(signal: Signal, protobuf: bytes, json: bytes) -> None:
    plain, spoken = outcome(signal, protobuf, is_json=False), outcome(signal, json, is_json=True)
    if isinstance(plain, str) or isinstance(spoken, str):
        assert plain == spoken
        return
    assert (spoken.items, spoken.rejected, spoken.reasons) == (plain.items, plain.rejected, plain.reasons)
    tables = [DECODE[signal]([Record(signal, kept.encoding, RECEIVED, "test", kept.body)]) for kept in (plain, spoken)]
    assert tables[0].schema.names == tables[1].schema.names
    assert tables[0].to_pylist() == tables[1].to_pylist()


def many(signal: Signal) -> Any:
    """A request of which every part is in order."""
    request: Any = REQUESTS[signal]()
    for number in range(3):
        if signal is Signal.TRACES:
            group = request.resource_spans.add()
            span = group.scope_spans.add().spans.add(trace_id=b"t" * 16, span_id=bytes([number + 1]) * 8, name="s")
            items, span.status.code = span, 2
            span.events.add(name="e", time_unix_nano=5).attributes.add(key="k").value.bool_value = True
        elif signal is Signal.LOGS:
            group = request.resource_logs.add()
            items = group.scope_logs.add().log_records.add(time_unix_nano=7, severity_number=9)
            items.body.kvlist_value.values.add(key="m").value.array_value.values.add().double_value = 1e22
        else:
            group = request.resource_metrics.add()
            metric = group.scope_metrics.add().metrics.add(name="m", unit="1")
            items = metric.histogram.data_points.add(time_unix_nano=7, count=2**63 - 1, bucket_counts=[1, 0])
        group.resource.attributes.add(key="service.name").value.string_value = '\0 \N{PILE OF POO} " \\ \n'
        items.attributes.add(key="i").value.int_value = -(10**17)
        items.attributes.add(key="b").value.bytes_value = b"\xff\xfe"
        items.attributes.add(key="l").value.array_value.values.add().string_value = "x"
        items.attributes.add(key="none")
    return request


@pytest.mark.parametrize("signal", list(Signal))
def test_what_is_in_order_stays_json_and_mixes_with_protobuf(signal: Signal) -> None:
    request = many(signal)
    protobuf = request.SerializeToString()
    content = json_format.MessageToDict(request, use_integers_for_enums=True)
    kept = check(signal, orjson.dumps(spoken(content, NeverRandom())), is_json=True)
    assert (kept.encoding, kept.items, kept.rejected) == (Encoding.JSON, 3, 0)
    assert_equal(signal, protobuf, orjson.dumps(spoken(content, NeverRandom())))
    one = Record(signal, Encoding.JSON, RECEIVED, "json", kept.body)
    other = Record(signal, Encoding.PROTOBUF, RECEIVED, "protobuf", protobuf)
    rows = DECODE[signal]([one, other, one])
    assert sorted(rows["source"].to_pylist()) == ["json"] * 6 + ["protobuf"] * 3
    assert rows.filter(pa.array([source == "json" for source in rows["source"].to_pylist()])).num_rows == 6


class NeverRandom:
    """Dice that say each thing in the first way."""

    def random(self) -> float:
        return 1.0
