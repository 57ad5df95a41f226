"""Clients as bare as OTLP allows: raw gRPC methods and raw HTTP."""

from __future__ import annotations

import http.client
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import grpc
import pytest
from google.protobuf.message import Message
from google.rpc.status_pb2 import Status

from surefoot.collector.segment import Record, Signal
from surefoot.collector.testing import RunningCollector, kept_records, log_request, metric_request, trace_request

METHODS = {
    Signal.TRACES: "/opentelemetry.proto.collector.trace.v1.TraceService/Export",
    Signal.LOGS: "/opentelemetry.proto.collector.logs.v1.LogsService/Export",
    Signal.METRICS: "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export",
}
Maker = Callable[..., Message]
MAKERS: dict[Signal, Maker] = {
    Signal.TRACES: trace_request,
    Signal.LOGS: log_request,
    Signal.METRICS: metric_request,
}
PATHS = {Signal.TRACES: "/v1/traces", Signal.LOGS: "/v1/logs", Signal.METRICS: "/v1/metrics"}
SMALL = 1 << 20  # the limit of a collector that is to refuse large requests
PROTOBUF, JSON = "application/x-protobuf", "application/json"


@dataclass(frozen=True)
class Answer:
    """What came back over HTTP."""

    code: int
    headers: dict[str, str]
    body: bytes

    @property
    def status(self) -> Status:
        return Status.FromString(self.body)


def post(
    collector: RunningCollector,
    path: str,
    body: bytes,
    content_type: str | None = PROTOBUF,
    *,
    method: str = "POST",
    **headers: str,
) -> Answer:
    connection = http.client.HTTPConnection(urlsplit(collector.http).netloc, timeout=30)
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    if content_type is not None:
        names["Content-Type"] = content_type
    try:
        connection.request(method, path, body, names)
        response = connection.getresponse()
        return Answer(response.status, {k.lower(): v for k, v in response.getheaders()}, response.read())
    finally:
        connection.close()


def call(
    collector: RunningCollector,
    signal: Signal,
    body: bytes,
    compression: grpc.Compression = grpc.Compression.NoCompression,
) -> bytes:
    with grpc.insecure_channel(collector.grpc, options=[("grpc.max_send_message_length", -1)]) as channel:
        answer: bytes = channel.unary_unary(METHODS[signal])(body, timeout=30, compression=compression)
        return answer


def refusal(attempt: Callable[[], object]) -> tuple[Any, Status]:
    """Code and Status details of a gRPC call that must fail."""
    with pytest.raises(grpc.RpcError) as caught:
        attempt()
    error: Any = caught.value
    details = dict(error.trailing_metadata() or ()).get("grpc-status-details-bin", b"")
    return error.code(), Status.FromString(details)


def detail(status: Status, kind: type[Message]) -> Message | None:
    for packed in status.details:
        message = kind()
        if packed.Unpack(message):
            return message
    return None


@dataclass
class Collector:
    """A running collector, and what it keeps of the requests sent after ``mark``."""

    running: RunningCollector
    before: int = 0

    def mark(self) -> None:
        self.before = len(kept_records(self.running.spool))

    def kept(self) -> list[Record]:
        return kept_records(self.running.spool)[self.before :]
