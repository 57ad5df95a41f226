"""OTLP/HTTP with protobuf bodies, requirement by requirement. Ids as in docs/collector.md."""

from __future__ import annotations

import gzip
import http.client
import json
import socket
import zlib
from collections.abc import Callable
from urllib.parse import urlsplit

import pytest
from google.rpc.code_pb2 import INVALID_ARGUMENT, NOT_FOUND, RESOURCE_EXHAUSTED, UNAVAILABLE, UNIMPLEMENTED
from google.rpc.error_details_pb2 import BadRequest, RetryInfo
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from support.otlp_clients import JSON, MAKERS, PATHS, PROTOBUF, SMALL, Collector, Maker, detail, post
from surefoot.collector.segment import Signal
from surefoot.collector.testing import RunningCollector, trace_request

EVERY = list(MAKERS.items())
COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    "identity": bytes,
    "gzip": gzip.compress,
    "deflate": zlib.compress,
    "GZIP": gzip.compress,
}


@pytest.mark.parametrize("coding", COMPRESS)
@pytest.mark.parametrize(("signal", "make"), EVERY)
def test_t1_h1_h4_plain_and_compressed(collector: Collector, signal: Signal, make: Maker, coding: str) -> None:
    body = make(50).SerializeToString()
    answer = post(collector.running, PATHS[signal], COMPRESS[coding](body), Content_Encoding=coding)
    assert (answer.code, answer.body, answer.headers["content-type"]) == (200, b"", PROTOBUF)
    assert [(kept.signal, kept.source, kept.body) for kept in collector.kept()] == [(signal, "http", body)]


def test_t1_several_gzip_members_are_one_body(collector: Collector) -> None:
    body = trace_request(9).SerializeToString()
    split = gzip.compress(body[:50]) + gzip.compress(body[50:])
    assert post(collector.running, "/v1/traces", split, Content_Encoding="gzip").code == 200
    assert collector.kept()[0].body == body


@pytest.mark.parametrize("kind", ["application/x-protobuf; charset=utf-8", "APPLICATION/X-PROTOBUF"])
def test_h2_parameters_and_upper_case_in_the_content_type(collector: Collector, kind: str) -> None:
    assert post(collector.running, "/v1/traces", trace_request().SerializeToString(), kind).code == 200


@pytest.mark.parametrize("coding", ["identity", "gzip", "deflate"])
@pytest.mark.parametrize("kind", [PROTOBUF, JSON])
def test_h3_h5_over_the_limit_also_after_decompression(small: RunningCollector, kind: str, coding: str) -> None:
    body = COMPRESS[coding](b" " * (SMALL + 1))
    answer = post(small, "/v1/traces", body, kind, Content_Encoding=coding)
    assert (answer.code, answer.headers["content-type"]) == (413, kind)
    code = answer.status.code if kind == PROTOBUF else json.loads(answer.body)["code"]
    assert code == RESOURCE_EXHAUSTED
    assert "retry-after" not in answer.headers


@pytest.mark.parametrize("coding", ["identity", "gzip"])
def test_h3_up_to_the_limit_is_taken(small: RunningCollector, coding: str) -> None:
    spare = len(trace_request(1, "x" * SMALL).SerializeToString()) - SMALL
    body = trace_request(1, "x" * (SMALL - spare)).SerializeToString()
    assert len(body) == SMALL
    assert post(small, "/v1/traces", COMPRESS[coding](body), Content_Encoding=coding).code == 200


def test_h3_a_decompression_bomb_is_cut_off_at_the_limit(small: RunningCollector) -> None:
    bomb = gzip.compress(b"\0" * (200 << 20), 1)
    assert len(bomb) < SMALL
    assert post(small, "/v1/traces", bomb, Content_Encoding="gzip").code == 413


@pytest.mark.parametrize("signal", list(Signal))
def test_g4_an_empty_request_succeeds(collector: Collector, signal: Signal) -> None:
    assert (post(collector.running, PATHS[signal], b"").code, collector.kept()) == (200, [])


def test_g6_one_malformed_span_is_rejected_alone(collector: Collector) -> None:
    request = trace_request(3)
    request.resource_spans[0].scope_spans[0].spans[0].trace_id = bytes(16)
    answer = post(collector.running, "/v1/traces", request.SerializeToString())
    partial = ExportTraceServiceResponse.FromString(answer.body).partial_success
    assert (answer.code, partial.rejected_spans) == (200, 1)
    assert "trace id" in partial.error_message


@pytest.mark.parametrize("body", [b"not protobuf", b"\x0a\xff\xff\xff\xff\x0f"])
@pytest.mark.parametrize("signal", list(Signal))
def test_h5_h6_what_cannot_be_decoded_is_400_with_details(collector: Collector, signal: Signal, body: bytes) -> None:
    answer = post(collector.running, PATHS[signal], body)
    assert (answer.code, answer.headers["content-type"]) == (400, PROTOBUF)
    assert answer.status.code == INVALID_ARGUMENT
    assert "is not an OTLP Export" in answer.status.message
    assert isinstance(detail(answer.status, BadRequest), BadRequest)
    assert collector.kept() == []


def test_h6_a_poison_value_is_400_and_never_retried(collector: Collector) -> None:
    body = trace_request(1, "QQQQ").SerializeToString().replace(b"QQQQ", b"\xff\xfe\xfd\xfc")
    answer = post(collector.running, "/v1/traces", body)
    assert (answer.code, "retry-after" in answer.headers) == (400, False)


@pytest.mark.parametrize(("signal", "make"), EVERY)
def test_h7_overload_is_503_with_retry_after(full: RunningCollector, signal: Signal, make: Maker) -> None:
    answer = post(full, PATHS[signal], make(1).SerializeToString())
    assert answer.code == 503
    assert int(answer.headers["retry-after"]) >= 1
    assert answer.status.code == UNAVAILABLE
    assert isinstance(detail(answer.status, RetryInfo), RetryInfo)


def test_h8_a_client_that_accepts_gzip_is_answered(collector: Collector) -> None:
    body = trace_request().SerializeToString()
    answer = post(collector.running, "/v1/traces", body, Accept_Encoding="gzip")
    assert (answer.code, answer.headers.get("content-encoding"), answer.body) == (200, None, b"")


@pytest.mark.parametrize(
    "kind", [None, "", "text/plain", "application/protobuf", "application/grpc", "multipart/form-data"]
)
def test_an_unknown_content_type_is_415(collector: Collector, kind: str | None) -> None:
    answer = post(collector.running, "/v1/traces", trace_request().SerializeToString(), kind)
    assert answer.code == 415
    content = json.loads(answer.body)  # no encoding of its own to answer in
    assert content["code"] == INVALID_ARGUMENT
    assert "application/x-protobuf" in content["message"]
    assert collector.kept() == []


@pytest.mark.parametrize("coding", ["weird", "br", "zstd", "gzip, gzip"])
def test_an_unknown_content_encoding_is_415(collector: Collector, coding: str) -> None:
    answer = post(collector.running, "/v1/traces", trace_request().SerializeToString(), Content_Encoding=coding)
    assert (answer.code, answer.status.code) == (415, INVALID_ARGUMENT)
    assert "gzip" in answer.status.message
    assert collector.kept() == []


GZIPPED = gzip.compress(trace_request(20).SerializeToString())


@pytest.mark.parametrize(
    ("coding", "body"),
    [
        ("gzip", b"this is not gzip"),
        ("gzip", GZIPPED[:-9]),
        ("gzip", GZIPPED[:-8] + b"\0\0\0\0" + GZIPPED[-4:]),
        ("gzip", GZIPPED[:30] + bytes(255 - byte for byte in GZIPPED[30:60]) + GZIPPED[60:]),
        ("gzip", GZIPPED + b"junk"),
        ("deflate", b"this is not zlib"),
        ("deflate", zlib.compress(b"x" * 1000)[:-5]),
    ],
)
def test_a_corrupt_compressed_body_is_400(collector: Collector, coding: str, body: bytes) -> None:
    answer = post(collector.running, "/v1/traces", body, Content_Encoding=coding)
    assert (answer.code, answer.status.code) == (400, INVALID_ARGUMENT)
    assert f"The {coding} body is corrupt" in answer.status.message
    assert collector.kept() == []


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "PATCH"])
def test_another_method_is_405_and_names_post(collector: Collector, method: str) -> None:
    answer = post(collector.running, "/v1/traces", b"", method=method)
    assert (answer.code, answer.headers["allow"], answer.status.code) == (405, "POST", UNIMPLEMENTED)


def test_an_unknown_path_is_404_and_names_the_right_ones(collector: Collector) -> None:
    answer = post(collector.running, "/v1/trace", b"", JSON)
    content = json.loads(answer.body)
    assert (answer.code, content["code"]) == (404, NOT_FOUND)
    assert "/v1/traces" in content["message"]


def test_h1_a_chunked_body_on_a_connection_that_is_kept(collector: Collector) -> None:
    body = trace_request(5).SerializeToString()
    connection = http.client.HTTPConnection(urlsplit(collector.running.http).netloc, timeout=30)
    for _ in range(3):
        connection.request(
            "POST", "/v1/traces", iter([body[:9], body[9:]]), {"Content-Type": PROTOBUF}, encode_chunked=True
        )
        response = connection.getresponse()
        assert (response.status, response.read()) == (200, b"")
    connection.close()
    assert [kept.body for kept in collector.kept()] == [body] * 3


def test_a_client_that_goes_away_in_the_middle_of_a_body_costs_nothing(collector: Collector) -> None:
    host, port = urlsplit(collector.running.http).netloc.split(":")
    with socket.create_connection((host, int(port))) as client:
        head = ["POST /v1/traces HTTP/1.1", "Host: x", f"Content-Type: {PROTOBUF}", "Content-Length: 1000", "", "abc"]
        client.sendall("\r\n".join(head).encode())
    assert post(collector.running, "/v1/traces", trace_request().SerializeToString()).code == 200
    assert len(collector.kept()) == 1
