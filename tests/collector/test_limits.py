"""What one span, log record or data point may be: rejected alone, counted by reason, and cheap for all others."""

from __future__ import annotations

import gzip
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

from support.otlp_clients import call, post
from support.serving import eventually
from surefoot.collector.compression import decompress
from surefoot.collector.errors import BadRequestError, TooLargeError
from surefoot.collector.limits import DEEPEST, Limits, longest_item, parse_shallow
from surefoot.collector.segment import Signal
from surefoot.collector.testing import collector_process, kept_records, log_request, metric_request, trace_request
from surefoot.collector.validate import check

LIMITS = Limits(attributes=5, value_bytes=100, nesting=3, events=2, links=2)


def spans(request: Any) -> Any:
    return request.resource_spans[0].scope_spans[0].spans


def fill(attributes: Any, count: int) -> None:
    for number in range(count):
        attributes.add(key=f"k{number}").value.int_value = number


def nest(value: Any, levels: int, kind: str = "list") -> None:
    for _ in range(levels):
        value = value.array_value.values.add() if kind == "list" else value.kvlist_value.values.add(key="x").value
    value.int_value = 1


def attributes(span: Any, extra: int) -> None:
    fill(span.attributes, 5 + extra)


def event_attributes(span: Any, extra: int) -> None:
    fill(span.events.add(name="e").attributes, 5 + extra)


def link_attributes(span: Any, extra: int) -> None:
    fill(span.links.add(trace_id=b"t" * 16, span_id=b"s" * 8).attributes, 5 + extra)


def events(span: Any, extra: int) -> None:
    for _ in range(2 + extra):
        span.events.add(name="e")


def links(span: Any, extra: int) -> None:
    for _ in range(2 + extra):
        span.links.add(trace_id=b"t" * 16, span_id=b"s" * 8)


def value_bytes(span: Any, extra: int) -> None:
    span.attributes.add(key="long").value.string_value = "x" * (98 + extra)  # and two bytes of tag and length


def event_value_bytes(span: Any, extra: int) -> None:
    span.events.add(name="e").attributes.add(key="long").value.bytes_value = b"x" * (98 + extra)


def nesting(span: Any, extra: int) -> None:
    nest(span.attributes.add(key="deep").value, 3 + extra)


def nesting_of_maps(span: Any, extra: int) -> None:
    nest(span.events.add(name="e").attributes.add(key="deep").value, 3 + extra, "map")


CASES = [
    (attributes, "attributes", "has 6 attributes, the limit is 5"),
    (event_attributes, "attributes", "an event of span 'work' has 6 attributes"),
    (link_attributes, "attributes", "a link of span 'work' has 6 attributes"),
    (events, "events", "has 3 events, the limit is 2"),
    (links, "links", "has 3 links, the limit is 2"),
    (value_bytes, "value_bytes", "has 101 bytes in 'long', the limit is 100"),
    (event_value_bytes, "value_bytes", "has 101 bytes in 'long', the limit is 100"),
    (nesting, "nesting", "has 'deep' nested too deep, the limit is 3"),
    (nesting_of_maps, "nesting", "has 'deep' nested too deep, the limit is 3"),
]


@pytest.mark.parametrize(("break_it", "reason", "words"), CASES)
def test_a_span_beyond_a_limit_is_rejected_alone_and_one_at_the_limit_is_taken(
    break_it: Any, reason: str, words: str
) -> None:
    request = trace_request(6)
    break_it(spans(request)[1], 0)
    break_it(spans(request)[4], 1)
    checked = check(Signal.TRACES, request.SerializeToString(), limits=LIMITS)
    assert (checked.items, checked.rejected, dict(checked.reasons)) == (5, 1, {reason: 1})
    assert words in checked.message
    del spans(request)[4]
    assert ExportTraceServiceRequest.FromString(checked.body) == request


@pytest.mark.parametrize("place", ["resource", "scope"])
@pytest.mark.parametrize(
    ("break_it", "reason"), [(attributes, "attributes"), (value_bytes, "value_bytes"), (nesting, "nesting")]
)
def test_a_resource_or_scope_beyond_a_limit_costs_its_own_spans_only(place: str, break_it: Any, reason: str) -> None:
    good, bad = trace_request(2), trace_request(3)
    found = bad.resource_spans[0]
    break_it(found.resource if place == "resource" else found.scope_spans[0].scope, 1)
    good.resource_spans.extend(bad.resource_spans)
    checked = check(Signal.TRACES, good.SerializeToString(), limits=LIMITS)
    assert (checked.items, checked.rejected, dict(checked.reasons)) == (2, 3, {reason: 3})
    assert f"the {place} has" in checked.message


@pytest.mark.parametrize(
    ("break_it", "reason"),
    [
        (lambda record: fill(record.attributes, 6), "attributes"),
        (lambda record: setattr(record.body, "string_value", "x" * 99), "value_bytes"),
        (lambda record: nest(record.body, 4), "nesting"),
        (lambda record: setattr(record, "trace_id", b"x"), "ids"),
    ],
)
def test_log_records(break_it: Any, reason: str) -> None:
    request = log_request(3)
    break_it(request.resource_logs[0].scope_logs[0].log_records[2])
    checked = check(Signal.LOGS, request.SerializeToString(), limits=LIMITS)
    assert (checked.items, checked.rejected, dict(checked.reasons)) == (2, 1, {reason: 1})


@pytest.mark.parametrize(
    ("break_it", "reason"),
    [
        (lambda point: fill(point.attributes, 6), "attributes"),
        (lambda point: setattr(point.attributes.add(key="k").value, "string_value", "x" * 99), "value_bytes"),
        (lambda point: nest(point.attributes.add(key="k").value, 4), "nesting"),
        (lambda point: fill(point.exemplars.add().filtered_attributes, 6), "attributes"),
        (lambda point: setattr(point.exemplars.add(), "trace_id", b"x" * 15), "ids"),
        (lambda point: setattr(point.exemplars.add(), "span_id", b"x" * 9), "ids"),
    ],
)
def test_data_points(break_it: Any, reason: str) -> None:
    request = metric_request(4)
    break_it(request.resource_metrics[0].scope_metrics[0].metrics[0].sum.data_points[0])
    checked = check(Signal.METRICS, request.SerializeToString(), limits=LIMITS)
    assert (checked.items, checked.rejected, dict(checked.reasons)) == (3, 1, {reason: 1})


@pytest.mark.parametrize(("field", "value"), [("trace_id", b"x" * 17), ("span_id", b"x" * 7)])
def test_a_link_to_what_cannot_be_a_span_costs_its_span(field: str, value: bytes) -> None:
    request = trace_request(2)
    setattr(spans(request)[0].links.add(trace_id=b"t" * 16, span_id=b"s" * 8), field, value)
    checked = check(Signal.TRACES, request.SerializeToString())
    assert (checked.items, checked.rejected, dict(checked.reasons)) == (1, 1, {"ids": 1})
    assert "a link of span 'work'" in checked.message


@pytest.mark.parametrize("kind", ["list", "map"])
@pytest.mark.parametrize("limit", [0, 1, 5, 20, 30, DEEPEST])
@pytest.mark.parametrize("place", ["resource", "span", "event"])
def test_nesting_is_exact_wherever_the_value_is(limit: int, kind: str, place: str) -> None:
    def made(levels: int) -> bytes:
        request = trace_request(1)
        resource, span = request.resource_spans[0].resource, spans(request)[0]
        holder = {"resource": resource, "span": span, "event": span.events.add(name="e")}[place]
        nest(holder.attributes.add(key="deep").value, levels, kind)
        return request.SerializeToString()

    most = min(limit, 46 if kind == "list" else 30)  # what the parser reads by itself anywhere
    assert check(Signal.TRACES, made(most), limits=Limits(nesting=limit)).rejected == 0
    try:
        rejected = check(Signal.TRACES, made(limit + 1), limits=Limits(nesting=limit)).rejected
    except BadRequestError:
        assert limit >= most
    else:
        assert rejected == 1 or limit == DEEPEST  # beyond that the parser decides


def test_what_is_nested_within_the_limit_is_not_parsed_twice() -> None:
    request = trace_request(3)
    nest(spans(request)[0].attributes.add(key="deep").value, 30)
    parsed = parse_shallow(ExportTraceServiceRequest, request.SerializeToString(), 32)
    assert parsed == request
    nest(spans(request)[1].attributes.add(key="deep").value, 33)
    assert parse_shallow(ExportTraceServiceRequest, request.SerializeToString(), 32) is None


@settings(max_examples=50, deadline=None)
@given(st.lists(st.lists(st.integers(0, 20_000), max_size=5), max_size=4), st.binary(max_size=3))
def test_the_longest_item_is_what_protobuf_says(scopes: list[list[int]], state: bytes) -> None:
    request = ExportTraceServiceRequest()
    sizes = [0]
    for lengths in scopes:
        group = request.resource_spans.add(schema_url="https://example.org/1")
        scope = group.scope_spans.add(schema_url="x" * 200)
        scope.scope.name = "scope"
        group.resource.attributes.add(key="k").value.bytes_value = state
        for length in lengths:
            scope.spans.add(name="n" * length)
        sizes += [span.ByteSize() for span in scope.spans]
    assert longest_item(request.SerializeToString()) == max(sizes)


def test_fields_that_nobody_knows_make_the_longest_item_the_whole_body() -> None:
    body = trace_request(3).SerializeToString() + b"\x98\x06\x01"  # field 99, a number
    assert longest_item(body) == len(body)
    assert check(Signal.TRACES, body, limits=LIMITS).items == 3


def test_gzip_members_are_counted() -> None:
    one = gzip.compress(b"ab")
    assert decompress(one * 1_000 + b"\0" * 9, "gzip", 2_000) == b"ab" * 1_000
    large = gzip.compress(bytes(300_000), 0)
    assert decompress(large * 3 + one, "gzip", 1_000_000) == bytes(900_000) + b"ab"
    assert decompress(b"", "gzip", 9) == b""
    with pytest.raises(BadRequestError, match="more than 1,000 members"):
        decompress(gzip.compress(b"") * 1_001, "gzip", 9)
    for broken in (one[:-1], one + b"x", one[:-5] + b"x" + one[-4:]):
        with pytest.raises(BadRequestError, match="gzip body is corrupt"):
            decompress(broken, "gzip", 9)
    with pytest.raises(TooLargeError):
        decompress(one * 5, "gzip", 9)


def test_limits_are_flags_and_what_is_rejected_is_counted_by_reason(tmp_path: Any) -> None:
    flags = ["--max-attributes=5", "--max-value-bytes=100", "--max-nesting=3", "--max-events=2", "--max-links=2"]
    with collector_process(tmp_path / "spool", "--segment-seconds", "3600", *flags) as collector:
        for number, (break_it, _, words) in enumerate(CASES):
            request = trace_request(2)
            break_it(spans(request)[0], 1)
            if number % 2:
                answer = call(collector, Signal.TRACES, request.SerializeToString())
            else:
                answer = post(collector, "/v1/traces", request.SerializeToString()).body
            partial = ExportTraceServiceResponse.FromString(answer).partial_success
            assert partial.rejected_spans == 1
            assert words in partial.error_message
        total = len(CASES)
        refused = eventually(
            "all counts",
            lambda: (r := collector.status["refusals"]) and sum(c["total"] for c in r) == total and r,
        )
    by_reason: dict[str, int] = {}
    for count in refused:
        assert (count["signal"], count["what"]) == ("traces", "items")
        by_reason[count["reason"]] = by_reason.get(count["reason"], 0) + count["total"]
    assert by_reason == {"attributes": 3, "events": 1, "links": 1, "value_bytes": 2, "nesting": 2}
    assert len(kept_records(tmp_path / "spool")) == total
