"""OTLP/gRPC, requirement by requirement. Ids as in docs/collector.md."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf.message import Message
from google.rpc.error_details_pb2 import BadRequest, RetryInfo
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceResponse
from opentelemetry.proto.collector.logs.v1.logs_service_pb2_grpc import LogsServiceStub
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceResponse
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2_grpc import MetricsServiceStub
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2_grpc import TraceServiceStub

from support.otlp_clients import MAKERS, SMALL, Collector, Maker, call, detail, refusal
from surefoot.collector.config import Config
from surefoot.collector.segment import Signal
from surefoot.collector.testing import RunningCollector, log_request, metric_request, trace_request

EVERY = list(MAKERS.items())


@pytest.mark.parametrize("compression", [grpc.Compression.NoCompression, grpc.Compression.Gzip])
@pytest.mark.parametrize(("signal", "make"), EVERY)
def test_t1_plain_and_gzip(collector: Collector, signal: Signal, make: Maker, compression: grpc.Compression) -> None:
    body = make(50).SerializeToString()
    assert call(collector.running, signal, body, compression) == b""
    assert [(kept.signal, kept.body) for kept in collector.kept()] == [(signal, body)]


def test_t2_default_ports(tmp_path: Path) -> None:
    assert (Config(tmp_path).port_grpc, Config(tmp_path).port_http) == (4317, 4318)


def test_g1_the_three_services_answer_the_official_stubs(collector: Collector) -> None:
    stubs: dict[type[Any], tuple[Message, Message]] = {
        TraceServiceStub: (trace_request(), ExportTraceServiceResponse()),
        LogsServiceStub: (log_request(), ExportLogsServiceResponse()),
        MetricsServiceStub: (metric_request(), ExportMetricsServiceResponse()),
    }
    with grpc.insecure_channel(collector.running.grpc) as channel:
        for stub, (request, response) in stubs.items():
            assert stub(channel).Export(request, timeout=30) == response
    assert [kept.signal for kept in collector.kept()] == list(Signal)
    assert {kept.source for kept in collector.kept()} == {"grpc"}


@pytest.mark.parametrize("compression", [grpc.Compression.NoCompression, grpc.Compression.Gzip])
def test_g2_over_the_limit_also_after_decompression_is_final(
    small: RunningCollector, compression: grpc.Compression
) -> None:
    body = trace_request(1, "x" * SMALL).SerializeToString()
    code, status = refusal(lambda: call(small, Signal.TRACES, body, compression))
    assert code is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert detail(status, RetryInfo) is None


def test_g2_up_to_the_limit_is_taken(small: RunningCollector, tmp_path: Path) -> None:
    spare = len(trace_request(1, "x" * SMALL).SerializeToString()) - SMALL
    body = trace_request(1, "x" * (SMALL - spare)).SerializeToString()
    assert len(body) == SMALL
    assert call(small, Signal.TRACES, body) == b""
    assert Config(tmp_path).max_request_bytes == 64 << 20


def test_g2_six_mebibytes_are_no_reason_to_refuse(collector: Collector) -> None:
    # Agents send whole prompts; gRPC's own default of 4 MiB dropped such batches for good elsewhere.
    body = trace_request(1, "x" * (6 << 20)).SerializeToString()
    assert call(collector.running, Signal.TRACES, body) == b""
    assert collector.kept()[0].body == body


def test_g3_a_response_stays_small_whatever_was_rejected(collector: Collector) -> None:
    request = trace_request(2000, "\N{PILE OF POO}" * 500)
    for span in request.resource_spans[0].scope_spans[0].spans:
        span.span_id = b""
    answer = call(collector.running, Signal.TRACES, request.SerializeToString())
    assert len(answer) < 10_000
    assert ExportTraceServiceResponse.FromString(answer).partial_success.rejected_spans == 2000


@pytest.mark.parametrize("signal", list(Signal))
def test_g4_an_empty_request_succeeds(collector: Collector, signal: Signal) -> None:
    assert call(collector.running, signal, b"") == b""
    assert collector.kept() == []


def test_g5_full_success_leaves_partial_success_unset(collector: Collector) -> None:
    answer = call(collector.running, Signal.TRACES, trace_request(3).SerializeToString())
    assert not ExportTraceServiceResponse.FromString(answer).HasField("partial_success")


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("trace_id", b"", "nothing for a trace id"),
        ("trace_id", bytes(16), "00000000000000000000000000000000 for a trace id"),
        ("trace_id", b"\xab" * 15, "ab" * 15),
        ("span_id", bytes(8), "0000000000000000 for a span id"),
        ("span_id", b"\xcd" * 16, "cd" * 16),
        ("parent_span_id", b"\x01" * 3, "010101 for a parent's id"),
    ],
)
def test_g6_one_malformed_span_is_rejected_alone(collector: Collector, field: str, value: bytes, words: str) -> None:
    request = trace_request(5)
    spans = request.resource_spans[0].scope_spans[0].spans
    setattr(spans[2], field, value)
    spans[2].name = "the bad one"
    answer = ExportTraceServiceResponse.FromString(call(collector.running, Signal.TRACES, request.SerializeToString()))
    assert answer.partial_success.rejected_spans == 1
    assert "'the bad one'" in answer.partial_success.error_message
    assert words in answer.partial_success.error_message
    del spans[2]
    (kept,) = collector.kept()
    assert ExportTraceServiceRequest.FromString(kept.body) == request


def test_g6_malformed_log_records_are_rejected_alone(collector: Collector) -> None:
    request = log_request(4)
    request.resource_logs[0].scope_logs[0].log_records[1].trace_id = b"\x01" * 5
    request.resource_logs[0].scope_logs[0].log_records[3].span_id = b"\x01" * 5
    answer = ExportLogsServiceResponse.FromString(call(collector.running, Signal.LOGS, request.SerializeToString()))
    assert answer.partial_success.rejected_log_records == 2
    assert "0101010101" in answer.partial_success.error_message


def test_g6_nothing_is_kept_of_a_request_without_a_good_span(collector: Collector) -> None:
    request = trace_request(2)
    for span in request.resource_spans[0].scope_spans[0].spans:
        span.trace_id = b""
    answer = ExportTraceServiceResponse.FromString(call(collector.running, Signal.TRACES, request.SerializeToString()))
    assert answer.partial_success.rejected_spans == 2
    assert collector.kept() == []


@pytest.mark.parametrize(("signal", "make"), EVERY)
def test_g7_overload_is_unavailable_with_retry_info(full: RunningCollector, signal: Signal, make: Maker) -> None:
    code, status = refusal(lambda: call(full, signal, make(1).SerializeToString()))
    assert code is grpc.StatusCode.UNAVAILABLE
    info = detail(status, RetryInfo)
    assert isinstance(info, RetryInfo)
    assert info.retry_delay.seconds >= 1
    assert "wait for the lake" in status.message


@pytest.mark.parametrize("body", [b"not protobuf", b"\x0a\xff\xff\xff\xff\x0f", b"\x0a\x05\x0a"])
@pytest.mark.parametrize("signal", list(Signal))
def test_g8_what_cannot_be_decoded_is_an_invalid_argument(collector: Collector, signal: Signal, body: bytes) -> None:
    code, status = refusal(lambda: call(collector.running, signal, body))
    assert code is grpc.StatusCode.INVALID_ARGUMENT
    problem = detail(status, BadRequest)
    assert isinstance(problem, BadRequest)
    assert "is not an OTLP Export" in problem.field_violations[0].description
    assert collector.kept() == []


def test_g8_text_that_is_not_utf8_is_an_invalid_argument(collector: Collector) -> None:
    body = trace_request(1, "QQQQ").SerializeToString().replace(b"QQQQ", b"\xff\xfe\xfd\xfc")
    assert refusal(lambda: call(collector.running, Signal.TRACES, body))[0] is grpc.StatusCode.INVALID_ARGUMENT


def test_g8_values_nested_too_deep_are_an_invalid_argument(collector: Collector) -> None:
    request = trace_request()
    value = request.resource_spans[0].scope_spans[0].spans[0].attributes.add(key="deep").value
    for _ in range(150):
        value = value.array_value.values.add()
    body = request.SerializeToString()
    assert refusal(lambda: call(collector.running, Signal.TRACES, body))[0] is grpc.StatusCode.INVALID_ARGUMENT


def test_g9_an_unknown_method_is_unimplemented_and_nothing_else(collector: Collector) -> None:
    with grpc.insecure_channel(collector.running.grpc) as channel:
        export = channel.unary_unary("/opentelemetry.proto.collector.profiles.v1.ProfilesService/Export")
        assert refusal(lambda: export(b"", timeout=30))[0] is grpc.StatusCode.UNIMPLEMENTED


def test_e1_empty_envelopes_are_ignored(collector: Collector) -> None:
    request = ExportTraceServiceRequest()
    request.resource_spans.add().scope_spans.add()
    assert call(collector.running, Signal.TRACES, request.SerializeToString()) == b""
    assert collector.kept() == []


def test_e2_a_request_that_is_sent_again_is_acknowledged_again(collector: Collector) -> None:
    body = trace_request(2).SerializeToString()
    assert [call(collector.running, Signal.TRACES, body) for _ in range(2)] == [b"", b""]
    assert [kept.body for kept in collector.kept()] == [body, body]
