"""OTLP/JSON, requirement by requirement. Ids as in docs/collector.md."""

from __future__ import annotations

import base64
import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import json_format
from google.rpc.code_pb2 import INVALID_ARGUMENT
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from support.otlp_clients import JSON, PATHS, Answer, Collector, post
from support.otlp_json import message_of
from surefoot.collector.segment import Signal
from surefoot.collector.testing import RunningCollector

TRACE, SPAN, PARENT = "5b8efff798038103d269b633813fc60c", "eee19b7ec3c1b174", "eee19b7ec3c1b173"
# The protocol's own example requests are not part of this project; they are read where they lie beside it.
EXAMPLES = Path(__file__).parents[3] / "shared" / "data" / "otlp-examples"
FIXTURES = Path(__file__).parent / "fixtures"


def span(**changes: Any) -> dict[str, Any]:
    return {
        "traceId": TRACE,
        "spanId": SPAN,
        "name": "work",
        "startTimeUnixNano": "1",
        "endTimeUnixNano": "2",
    } | changes


def traces(*spans: dict[str, Any]) -> dict[str, Any]:
    return {"resourceSpans": [{"scopeSpans": [{"spans": list(spans)}]}]}


def send(collector: Collector, content: Any, signal: Signal = Signal.TRACES) -> Answer:
    return post(collector.running, PATHS[signal], json.dumps(content).encode(), JSON)


def kept_span(collector: Collector, **changes: Any) -> Any:
    """The span that is kept when one with these changes is sent."""
    answer = send(collector, traces(span(**changes)))
    assert (answer.code, answer.body) == (200, b"{}")
    (kept,) = collector.kept()
    return message_of(kept, ExportTraceServiceRequest).resource_spans[0].scope_spans[0].spans[0]


def refused(collector: Collector, content: Any, signal: Signal = Signal.TRACES) -> str:
    """The message of the 400 that this content must get."""
    answer = send(collector, content, signal)
    assert (answer.code, answer.headers["content-type"], collector.kept()) == (400, JSON, [])
    status = json.loads(answer.body)
    assert status["code"] == INVALID_ARGUMENT
    assert status["details"][0]["@type"] == "type.googleapis.com/google.rpc.BadRequest"
    message: str = status["message"]
    return message


@pytest.mark.parametrize("kind", [JSON, "application/json; charset=utf-8", "APPLICATION/JSON"])
def test_h2_h4_success_is_an_empty_object_in_json(collector: Collector, kind: str) -> None:
    answer = post(collector.running, "/v1/traces", json.dumps(traces(span())).encode(), kind)
    assert (answer.code, answer.headers["content-type"], answer.body) == (200, JSON, b"{}")
    assert [kept.signal for kept in collector.kept()] == [Signal.TRACES]


def test_t1_gzip(collector: Collector) -> None:
    body = gzip.compress(json.dumps(traces(span())).encode())
    assert post(collector.running, "/v1/traces", body, JSON, Content_Encoding="gzip").code == 200
    assert len(collector.kept()) == 1


@pytest.mark.parametrize("signal", list(Signal))
@pytest.mark.parametrize("content", [{}, {"resourceSpans": [], "resourceLogs": None, "resourceMetrics": []}])
def test_g4_e1_an_empty_request_succeeds(collector: Collector, signal: Signal, content: dict[str, Any]) -> None:
    assert (send(collector, content, signal).code, collector.kept()) == (200, [])


def test_g6_partial_success_in_json(collector: Collector) -> None:
    answer = send(collector, traces(span(), span(spanId="00" * 8, name="zeros"), span(spanId=PARENT)))
    partial = json.loads(answer.body)["partialSuccess"]
    assert (answer.code, partial["rejectedSpans"]) == (200, "1")
    assert "'zeros'" in partial["errorMessage"]
    assert len(collector.kept()) == 1


def test_h7_overload_is_503_with_retry_after(full: RunningCollector) -> None:
    answer = post(full, "/v1/traces", json.dumps(traces(span())).encode(), JSON)
    status = json.loads(answer.body)
    assert (answer.code, int(answer.headers["retry-after"]) >= 1) == (503, True)
    assert status["details"][0]["@type"] == "type.googleapis.com/google.rpc.RetryInfo"


@pytest.mark.parametrize("change", [str.lower, str.upper, str.title])
def test_j1_ids_are_hex_in_any_case(collector: Collector, change: Any) -> None:
    kept = kept_span(
        collector,
        traceId=change(TRACE),
        spanId=change(SPAN),
        parentSpanId=change(PARENT),
        links=[{"traceId": change(TRACE), "spanId": change(SPAN)}],
    )
    assert (kept.trace_id.hex(), kept.span_id.hex(), kept.parent_span_id.hex()) == (TRACE, SPAN, PARENT)
    assert (kept.links[0].trace_id.hex(), kept.links[0].span_id.hex()) == (TRACE, SPAN)


@pytest.mark.parametrize(
    "wrong",
    [
        base64.b64encode(bytes.fromhex(TRACE)).decode(),  # what a generic protobuf library writes
        TRACE[:-1],
        TRACE[:-2],
        " ".join((TRACE[:16], TRACE[16:])),
        "",
        "g" * 32,
        "０" * 32,
    ],
)
def test_j1_an_id_that_is_not_hex_costs_its_span_and_not_the_batch(collector: Collector, wrong: str) -> None:
    answer = send(collector, traces(span(), span(traceId=wrong, name="wrong")))
    partial = json.loads(answer.body)["partialSuccess"]
    assert (answer.code, partial["rejectedSpans"]) == (200, "1")
    assert "'wrong'" in partial["errorMessage"]
    (kept,) = collector.kept()
    assert len(message_of(kept, ExportTraceServiceRequest).resource_spans[0].scope_spans[0].spans) == 1


def test_j2_enums_are_integers(collector: Collector) -> None:
    kept = kept_span(collector, kind=2, status={"code": 2, "message": "no"})
    assert (kept.kind, kept.status.code) == (2, 2)


@pytest.mark.parametrize("kind", ["SPAN_KIND_SERVER", "2", True, [2], 2.5])
def test_j2_anything_else_is_no_enum(collector: Collector, kind: Any) -> None:
    message = refused(collector, traces(span(kind=kind)))
    assert message.startswith("resourceSpans[0].scopeSpans[0].spans[0].kind: expected an integer")


def test_j3_unknown_fields_are_ignored_at_every_level(collector: Collector) -> None:
    content = traces(span(fromTheFuture={"x": [1, {"y": None}]}, status={"code": 1, "new": 1})) | {"extra": True}
    content["resourceSpans"][0]["more"] = "text"
    assert (send(collector, content).code, len(collector.kept())) == (200, 1)


def test_j4_keys_with_underscores_are_unknown(collector: Collector) -> None:
    assert (send(collector, {"resource_spans": traces(span())["resourceSpans"]}).code, collector.kept()) == (200, [])
    assert kept_span(collector, start_time_unix_nano="7").start_time_unix_nano == 1


@pytest.mark.parametrize("time", [1544712660000000001, "1544712660000000001", 18446744073709551615, "0"])
def test_j5_64_bit_integers_are_text_or_numbers(collector: Collector, time: int | str) -> None:
    assert kept_span(collector, startTimeUnixNano=time).start_time_unix_nano == int(time)


@pytest.mark.parametrize("time", ["18446744073709551616", -1, 1e30, "1_0", " 1", "١", "", "now", True, {}, 1.5])
def test_j5_what_is_no_64_bit_integer_is_400(collector: Collector, time: Any) -> None:
    assert "startTimeUnixNano" in refused(collector, traces(span(startTimeUnixNano=time)))


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        ({"intValue": "-9223372036854775808"}, -(2**63)),
        ({"intValue": 9223372036854775807}, 2**63 - 1),
        ({"doubleValue": 0.1}, 0.1),
        ({"doubleValue": 3}, 3.0),
        ({"doubleValue": "1e-3"}, 0.001),
        ({"doubleValue": "-Infinity"}, float("-inf")),
        ({"boolValue": False}, False),
        ({"stringValue": ""}, ""),
        ({"stringValue": "\N{PILE OF POO} \u0000"}, "\N{PILE OF POO} \u0000"),
        ({"bytesValue": "3q2+7w=="}, b"\xde\xad\xbe\xef"),
        ({"bytesValue": "3q2-7w"}, b"\xde\xad\xbe\xef"),
    ],
)
def test_j5_attribute_values_keep_their_type(collector: Collector, value: dict[str, Any], kept: Any) -> None:
    any_value = kept_span(collector, attributes=[{"key": "k", "value": value}]).attributes[0].value
    found = getattr(any_value, any_value.WhichOneof("value"))
    assert (found, type(found)) == (kept, type(kept))


def test_j5_nested_values(collector: Collector) -> None:
    value = {"kvlistValue": {"values": [{"key": "a", "value": {"arrayValue": {"values": [{"intValue": 1}, {}]}}}]}}
    any_value = kept_span(collector, attributes=[{"key": "k", "value": value}, {"key": "none"}]).attributes[0].value
    values = any_value.kvlist_value.values[0].value.array_value.values
    assert [one.WhichOneof("value") for one in values] == ["int_value", None]


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"", "not JSON"),
        (b"{", "not JSON"),
        (b"[]", "must be a JSON object, it is a list"),
        (b"null", "must be a JSON object, it is null"),
        (b'{"resourceSpans": {}}', "resourceSpans: expected a list, got an object"),
        (b'{"resourceSpans": [[]]}', "resourceSpans[0]: expected an object, got a list"),
        (b'{"resourceSpans": [{"resource": 1}]}', "resourceSpans[0].resource: expected an object, got a number"),
        (b'{"resourceSpans": [{"schemaUrl": 1}]}', "resourceSpans[0].schemaUrl: expected text, got a number"),
        (b'{"a": "\xff"}', "not JSON"),
        (b'{"a": "\\ud800"}', "not JSON"),
        (b'{"a": NaN}', "not JSON"),
    ],
)
def test_h6_what_is_not_otlp_is_400_and_names_the_place(collector: Collector, body: bytes, words: str) -> None:
    answer = post(collector.running, "/v1/traces", body, JSON)
    assert (answer.code, answer.headers["content-type"]) == (400, JSON)
    assert words in json.loads(answer.body)["message"]


def test_h6_values_that_are_no_base64_or_boolean_are_400(collector: Collector) -> None:
    for value in ({"bytesValue": "***"}, {"boolValue": "true"}, {"doubleValue": "x"}, {"doubleValue": True}):
        refused(collector, traces(span(attributes=[{"key": "k", "value": value}])))


@pytest.mark.parametrize("depth", [60, 150, 400, 5000])
def test_h6_nesting_is_bounded(collector: Collector, depth: int) -> None:
    # Deeper than 90 is more than protobuf's own limit, deeper than 1000 more than the JSON parser's.
    value = '{"arrayValue":{"values":[' * depth + '{"intValue":1}' + "]}}" * depth
    body = json.dumps(traces(span(attributes=[{"key": "k", "value": 0}]))).replace('"value": 0', f'"value": {value}')
    answer = post(collector.running, "/v1/traces", body.encode(), JSON)
    # 60 levels of arrays are 120 messages, which protobuf refuses as well.
    assert answer.code == 400
    assert post(collector.running, "/v1/traces", json.dumps(traces(span())).encode(), JSON).code == 200


def test_logs_and_metrics_of_every_kind(collector: Collector) -> None:
    requests: dict[Signal, Any] = {Signal.LOGS: ExportLogsServiceRequest, Signal.METRICS: ExportMetricsServiceRequest}
    for signal, kind in requests.items():
        content = json.loads((FIXTURES / f"{signal.name.lower()}.json").read_text())
        assert send(collector, content, signal).code == 200
        kept = message_of(collector.kept()[-1], kind)
        if signal is Signal.LOGS:
            record = kept.resource_logs[0].scope_logs[0].log_records[0]
            assert (record.trace_id.hex(), record.span_id.hex()) == (TRACE, SPAN)
            assert (record.severity_number, record.event_name, record.body.kvlist_value.values[0].key) == (9, "e", "b")
            assert (record.time_unix_nano, record.flags) == (1544712660300000000, 1)
        else:
            metrics = kept.resource_metrics[0].scope_metrics[0].metrics
            assert [metric.WhichOneof("data") for metric in metrics] == [
                "sum",
                "gauge",
                "histogram",
                "exponential_histogram",
                "summary",
            ]
            assert metrics[0].sum.aggregation_temporality == 1
            assert metrics[0].sum.data_points[0].exemplars[0].trace_id.hex() == TRACE
            assert list(metrics[2].histogram.data_points[0].bucket_counts) == [1, 2**63, 0]
            assert metrics[3].exponential_histogram.data_points[0].positive.offset == -1
            assert metrics[4].summary.data_points[0].quantile_values[0].quantile == 0.5


@pytest.mark.parametrize(
    ("name", "signal", "kind"),
    [
        ("trace", Signal.TRACES, ExportTraceServiceRequest),
        ("logs", Signal.LOGS, ExportLogsServiceRequest),
        ("events", Signal.LOGS, ExportLogsServiceRequest),
        ("metrics", Signal.METRICS, ExportMetricsServiceRequest),
    ],
)
def test_the_protocols_own_examples_are_kept(collector: Collector, name: str, signal: Signal, kind: Any) -> None:
    if not EXAMPLES.exists():
        pytest.skip(
            "the protocol's example requests are not beside this project; test_logs_and_metrics covers their form"
        )
    text = (EXAMPLES / f"{name}.json").read_text()
    assert post(collector.running, PATHS[signal], text.encode(), JSON).body == b"{}"
    (kept,) = collector.kept()
    # Back to JSON with the official library; ids go there as base64, so they are put back to hex.
    again = json_format.MessageToDict(message_of(kept, kind), use_integers_for_enums=True)
    assert plain(again) == plain(json.loads(text))


def plain(content: Any) -> Any:
    """Equal for equal OTLP/JSON: numbers as numbers, ids in lower case hex whatever they came in."""
    if isinstance(content, list):
        return [plain(item) for item in content]
    if not isinstance(content, dict):
        return int(content) if isinstance(content, str) and content.lstrip("-").isdigit() else content
    known = {}
    for key, value in content.items():
        if key in ("traceId", "spanId", "parentSpanId"):
            known[key] = value.lower() if len(value) in (16, 32) else base64.b64decode(value).hex()
        elif value not in (0, "0"):  # proto3 leaves defaults out, except in a oneof, where both sides write them
            known[key] = plain(value)
    return known
