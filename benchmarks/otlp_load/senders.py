"""Clients that send bodies as fast as a server answers: gRPC stubs without serialisers, raw HTTP sockets.

Only what was answered as a success counts. Loopback only.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

import grpc
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from otlp_load.bodies import Bodies

_METHOD = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"
_LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
LOST = "connection lost"
Send = Callable[[bytes], Awaitable[str | None]]


@dataclass
class Sent:
    """What one client did."""

    spans_per_request: int
    seconds: float = 0.0
    salts: list[str] = field(default_factory=list)  # of acknowledged requests
    latencies: list[float] = field(default_factory=list)  # seconds, of acknowledged requests
    bytes: int = 0  # acknowledged
    refusals: Counter[str] = field(default_factory=Counter)

    @property
    def spans(self) -> int:
        """Acknowledged spans."""
        return len(self.salts) * self.spans_per_request

    @property
    def rate(self) -> float:
        """Acknowledged spans a second."""
        return self.spans / self.seconds if self.seconds else 0.0

    def percentile(self, percent: int) -> float:
        """Milliseconds within which so many of the acknowledged requests were answered."""
        if len(self.latencies) < 2:
            return float("nan")
        return statistics.quantiles(self.latencies, n=100)[percent - 1] * 1000


def send_grpc(address: str, bodies: Bodies, seconds: float, in_flight: int = 16) -> Sent:
    """Send over one gRPC channel with so many requests in flight."""
    _check_loopback(f"//{address}")
    return asyncio.run(_grpc(address, bodies, seconds, in_flight))


def send_http(
    url: str, bodies: Bodies, seconds: float, in_flight: int = 16, headers: Mapping[str, str] | None = None
) -> Sent:
    """Send protobuf over so many keep-alive connections."""
    _check_loopback(url)
    return asyncio.run(_http(url, bodies, seconds, in_flight, headers or {}))


def _check_loopback(url: str) -> None:
    if not any(urlsplit(url).netloc.startswith(f"{host}:") for host in _LOOPBACK):
        raise ValueError(f"{url} is not on this machine; the load generator sends to loopback addresses only")


async def _grpc(address: str, bodies: Bodies, seconds: float, in_flight: int) -> Sent:
    async with grpc.aio.insecure_channel(address, options=[("grpc.use_local_subchannel_pool", 1)]) as channel:
        call = channel.unary_unary(_METHOD)

        async def send(body: bytes) -> str | None:
            try:
                answer = await call(body, timeout=60)
            except grpc.aio.AioRpcError as error:
                return str(error.code().name)
            rejected = answer and ExportTraceServiceResponse.FromString(answer).partial_success.rejected_spans
            return f"rejected {rejected}" if rejected else None

        return await _all(bodies, seconds, [send] * in_flight)


async def _http(url: str, bodies: Bodies, seconds: float, in_flight: int, headers: Mapping[str, str]) -> Sent:
    parts = urlsplit(url)
    given = {"Host": parts.netloc, "Content-Type": "application/x-protobuf", **headers}
    head = f"POST {parts.path or '/v1/traces'} HTTP/1.1\r\n" + "".join(f"{k}: {v}\r\n" for k, v in given.items())
    connections = [await asyncio.open_connection(parts.hostname, parts.port) for _ in range(in_flight)]
    try:
        return await _all(bodies, seconds, [_http_sender(head, *connection) for connection in connections])
    finally:
        for _, writer in connections:
            writer.close()


def _http_sender(head: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Send:
    async def send(body: bytes) -> str | None:
        try:
            writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
            answer = await reader.readuntil(b"\r\n\r\n")
            lowered = answer.lower()
            if b"content-length:" in lowered:
                length = int(lowered.partition(b"content-length:")[2].partition(b"\r\n")[0])
                content = await reader.readexactly(length)
            else:  # chunked
                content = await reader.readuntil(b"0\r\n\r\n")
        except (ConnectionError, asyncio.IncompleteReadError):
            return LOST
        status = answer.split(b" ", 2)[1].decode()
        if status == "200" and b"json" not in lowered and content:
            return f"rejected: {content[:80]!r}"
        return None if status == "200" else status

    return send


async def _all(bodies: Bodies, seconds: float, senders: list[Send]) -> Sent:
    sent = Sent(bodies.spans)
    began = time.perf_counter()
    deadline = began + seconds

    async def work(send: Send) -> None:
        while (before := time.perf_counter()) < deadline:
            fresh = bodies.fresh()
            refusal = await send(fresh.body)
            after = time.perf_counter()
            if refusal is None:
                sent.salts.append(fresh.salt)
                sent.latencies.append(after - before)
                sent.bytes += len(fresh.body)
                sent.seconds = after - began
            else:
                sent.refusals[refusal] += 1
                if refusal == LOST:
                    return
                await asyncio.sleep(0.05)

    await asyncio.gather(*(work(send) for send in senders))
    return sent
