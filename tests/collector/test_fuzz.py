"""Whatever arrives, the collector answers; what it acknowledges, the writer can decode."""

from __future__ import annotations

import base64
import contextlib
import random
from typing import Any

import orjson
import pytest
from google.protobuf import json_format
from hypothesis import given, settings
from hypothesis import strategies as st

from surefoot.collector.compression import CODINGS, decompress
from surefoot.collector.errors import BadRequestError, TooLargeError
from surefoot.collector.segment import Encoding, Record, Signal
from surefoot.collector.testing import log_request, metric_request, trace_request
from surefoot.collector.validate import REQUESTS, Checked, check
from surefoot.processors.otlp import decode_logs, decode_metrics, decode_spans

DECODE = {Signal.TRACES: decode_spans, Signal.LOGS: decode_logs, Signal.METRICS: decode_metrics}
EXAMPLES = 120


def rich(signal: Signal) -> bytes:
    """A request that touches most kinds of fields."""
    request: Any = {Signal.TRACES: trace_request, Signal.LOGS: log_request, Signal.METRICS: metric_request}[signal](2)
    if signal is Signal.TRACES:
        span = request.resource_spans[0].scope_spans[0].spans[0]
        span.attributes.add(key="n").value.int_value = -5
        span.attributes.add(key="list").value.array_value.values.add().kvlist_value.values.add(
            key="k"
        ).value.double_value = 1.5
        span.events.add(name="e", time_unix_nano=3).attributes.add(key="b").value.bytes_value = b"\xff"
        span.links.add(trace_id=b"1" * 16, span_id=b"2" * 8)
        span.status.code = 2
    return bytes(request.SerializeToString())


BODIES = {signal: rich(signal) for signal in Signal}


@st.composite
def mutated(draw: st.DrawFn) -> tuple[Signal, bytes]:
    signal = draw(st.sampled_from(Signal))
    body = bytearray(BODIES[signal])
    for _ in range(draw(st.integers(1, 4))):
        place = draw(st.integers(0, len(body)))
        match draw(st.sampled_from(["replace", "insert", "delete", "copy"])):
            case "replace":
                body[place : place + 1] = draw(st.binary(min_size=1, max_size=1))
            case "insert":
                body[place:place] = draw(st.binary(max_size=6))
            case "delete":
                del body[place : place + draw(st.integers(1, 6))]
            case "copy":
                body[place:place] = body[place : place + draw(st.integers(1, 40))]
    return signal, bytes(body)


def checked(signal: Signal, body: bytes, *, is_json: bool = False) -> Checked | None:
    try:
        return check(signal, body, is_json=is_json)
    except BadRequestError:
        return None


def assert_the_writer_takes_it(signal: Signal, kept: Checked) -> None:
    rows = DECODE[signal]([Record(signal, kept.encoding, 1_800_000_000_000_000_000, "grpc", kept.body)])
    assert rows.num_rows == kept.items


def test_the_bodies_to_mutate_are_sound() -> None:
    for signal, body in BODIES.items():
        kept = checked(signal, body)
        assert kept is not None
        assert (kept.items, kept.rejected, kept.body) == (2, 0, body)
        assert_the_writer_takes_it(signal, kept)


@settings(max_examples=EXAMPLES, deadline=None)
@given(mutated())
def test_a_mutated_request_is_refused_or_can_be_decoded_by_the_writer(case: tuple[Signal, bytes]) -> None:
    kept = checked(*case)
    if kept is not None:
        assert_the_writer_takes_it(case[0], kept)


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.sampled_from(Signal), st.binary(max_size=200))
def test_random_bytes_are_refused_or_can_be_decoded_by_the_writer(signal: Signal, body: bytes) -> None:
    kept = checked(signal, body)
    if kept is not None:
        assert_the_writer_takes_it(signal, kept)


KEYS = [
    "resourceSpans",
    "scopeSpans",
    "spans",
    "resourceLogs",
    "scopeLogs",
    "logRecords",
    "resourceMetrics",
    "scopeMetrics",
    "metrics",
    "sum",
    "dataPoints",
    "traceId",
    "spanId",
    "parentSpanId",
    "attributes",
    "key",
    "value",
    "stringValue",
    "intValue",
    "arrayValue",
    "values",
    "kvlistValue",
    "bytesValue",
    "doubleValue",
    "kind",
    "status",
    "code",
    "name",
    "body",
    "startTimeUnixNano",
    "events",
    "links",
    "asInt",
    "bucketCounts",
    "flags",
]
documents = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from(["", "1", "-1", "5b8efff798038103d269b633813fc60c", "eee19b7ec3c1b174", "AAAA", "x", "NaN"])
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=5),
    lambda children: st.lists(children, max_size=3) | st.dictionaries(st.sampled_from(KEYS), children, max_size=4),
    max_leaves=25,
)
TOP = {
    Signal.TRACES: ("resourceSpans", "scopeSpans", "spans"),
    Signal.LOGS: ("resourceLogs", "scopeLogs", "logRecords"),
    Signal.METRICS: ("resourceMetrics", "scopeMetrics", "metrics"),
}


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.sampled_from(Signal), documents, st.integers(0, 3))
def test_random_json_is_refused_or_can_be_decoded_by_the_writer(signal: Signal, document: Any, depth: int) -> None:
    for key in reversed(TOP[signal][:depth]):  # so that some of it gets deep enough to matter
        document = {key: [document]}
    kept = checked(signal, orjson.dumps(document), is_json=True)
    if kept is not None:
        assert_the_writer_takes_it(signal, kept)


def as_json(signal: Signal) -> bytes:
    """The rich request as OTLP/JSON."""
    content = json_format.MessageToDict(REQUESTS[signal].FromString(BODIES[signal]), use_integers_for_enums=True)
    return orjson.dumps(with_hex_ids(content))


def with_hex_ids(content: Any) -> Any:
    if isinstance(content, list):
        return [with_hex_ids(item) for item in content]
    if not isinstance(content, dict):
        return content
    return {
        key: base64.b64decode(value).hex() if key in ("traceId", "spanId", "parentSpanId") else with_hex_ids(value)
        for key, value in content.items()
    }


TEXTS = {signal: as_json(signal) for signal in Signal}
# What tends to break a reader of JSON, put where any byte may be.
PIECES = [
    *(b'"', b"\\", b"{", b"}", b"[", b"]", b",", b":", b"null", b"true", b"NaN", b"-", b"1e400"),
    *(b"18446744073709551616", b"0x1", b"1.0", b"-0", b"00", b"\n", b"\x00", b"\xff", b"\xed\xa0\x80"),
    *(b'"\\ud800"', b'"\\udc00\\ud800"', b'"\\u0000"', b"[" * 60),
    *(b'"name":"twice",', b'"intValue":"1",', b'"intValue":"-",', b'"kind":"SPAN_KIND_SERVER",', b'"traceId":"zz",'),
    *(
        b'"arrayValue":{"values":[null]},',
        b'"kvlistValue":{"values":[{}]},',
        b'"bytesValue":"*",',
        b'"x":{"y":[1,{}]},',
    ),
]


@st.composite
def mutated_json(draw: st.DrawFn) -> tuple[Signal, bytes]:
    signal = draw(st.sampled_from(Signal))
    body = bytearray(TEXTS[signal])
    for _ in range(draw(st.integers(1, 3))):
        place = draw(st.integers(0, len(body)))
        body[place : place + draw(st.integers(0, 3))] = draw(st.sampled_from(PIECES))
    return signal, bytes(body)


def test_the_json_to_mutate_is_sound_and_stays_json() -> None:
    for signal, body in TEXTS.items():
        kept = checked(signal, body, is_json=True)
        assert kept is not None
        assert (kept.items, kept.rejected, kept.encoding) == (2, 0, Encoding.JSON)
        assert_the_writer_takes_it(signal, kept)


@settings(max_examples=2 * EXAMPLES, deadline=None)
@given(mutated_json())
def test_mutated_json_is_refused_or_can_be_decoded_by_the_writer(case: tuple[Signal, bytes]) -> None:
    kept = checked(*case, is_json=True)
    if kept is not None:
        assert_the_writer_takes_it(case[0], kept)


@pytest.mark.parametrize("signal", list(Signal))
def test_pieces_put_before_each_member_of_a_request(signal: Signal) -> None:
    body = TEXTS[signal]
    places = [place for place in range(1, len(body)) if body[place - 1 : place] in (b"{", b"[", b",")]
    for piece in (b'"name":"twice",', b'"intValue":5,', b'"timeUnixNano":"x",', b'"unknown":[{"a":1}],', b"null,"):
        for place in places[::3]:
            kept = checked(signal, body[:place] + piece + body[place:], is_json=True)
            if kept is not None:
                assert_the_writer_takes_it(signal, kept)


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.sampled_from(CODINGS), st.binary(max_size=100), st.integers(1, 200))
def test_random_compressed_bytes_never_exceed_the_limit(coding: str, body: bytes, limit: int) -> None:
    with contextlib.suppress(BadRequestError, TooLargeError):
        assert len(decompress(body, coding, limit)) <= limit


@pytest.mark.long
def test_ten_thousand_mutations() -> None:
    dice = random.Random(7)
    for number in range(10_000):
        signal = Signal(number % 3 + 1)
        body = bytearray(BODIES[signal])
        for _ in range(dice.randint(1, 3)):
            body[dice.randrange(len(body))] = dice.randrange(256)
        kept = checked(signal, bytes(body))
        if kept is not None:
            assert_the_writer_takes_it(signal, kept)


@pytest.mark.long
def test_ten_thousand_mutations_of_json() -> None:
    dice = random.Random(7)
    for number in range(10_000):
        signal = Signal(number % 3 + 1)
        body = bytearray(TEXTS[signal])
        for _ in range(dice.randint(1, 3)):
            place = dice.randrange(len(body))
            body[place : place + dice.randrange(3)] = dice.choice([*PIECES, bytes([dice.randrange(256)])])
        kept = checked(signal, bytes(body), is_json=True)
        if kept is not None:
            assert_the_writer_takes_it(signal, kept)
