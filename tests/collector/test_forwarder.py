"""rotel, an OpenTelemetry collector that is not ours, forwards to us: every span arrives, also over our restarts."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from support.otlp_clients import PROTOBUF
from support.serving import eventually
from surefoot.collector.testing import RunningCollector, collector_process, kept_records, trace_request

REQUESTS, SPANS = 200, 7
pytest.importorskip("rotel", reason="rotel has no wheel for this machine")


@contextlib.contextmanager
def forwarder(folder: Path, protocol: str, endpoint: str) -> Iterator[str]:
    """rotel with a free port; yields the URL of its OTLP/HTTP receiver. SIGTERM lets it send what it holds."""
    with socket.socket() as grpc_port, socket.socket() as http_port:
        for port in (grpc_port, http_port):
            port.bind(("127.0.0.1", 0))
        grpc, http = (f"127.0.0.1:{port.getsockname()[1]}" for port in (grpc_port, http_port))
    command = [str(files("rotel") / "rotel-agent"), "start", "--otlp-grpc-endpoint", grpc, "--otlp-http-endpoint", http]
    command += ["--exporter", "otlp", "--otlp-exporter-protocol", protocol, "--otlp-exporter-endpoint", endpoint]
    command += ["--pid-file", str(folder / "rotel.pid"), "--log-file", str(folder / "rotel.log")]
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("OTEL_", "ROTEL_"))}
    with (folder / "rotel.out").open("w") as out, subprocess.Popen(command, env=environment, stdout=out) as process:
        eventually("rotel listens", lambda: _answers(http), 30)
        yield f"http://{http}"
        process.terminate()


def _answers(address: str) -> bool:
    host, _, port = address.partition(":")
    try:
        socket.create_connection((host, int(port)), timeout=1).close()
    except OSError:
        return False
    return True


def send(url: str) -> set[bytes]:
    """One request, sent again until it is taken; returns its span ids."""
    message = trace_request(SPANS)
    request = urllib.request.Request(f"{url}/v1/traces", message.SerializeToString(), {"Content-Type": PROTOBUF})
    while True:
        with contextlib.suppress(urllib.error.HTTPError), urllib.request.urlopen(request, timeout=30):
            return {span.span_id for span in message.resource_spans[0].scope_spans[0].spans}
        time.sleep(0.05)


def kept(spool: Path) -> list[bytes]:
    return [
        span.span_id
        for record in kept_records(spool)
        for resource in ExportTraceServiceRequest.FromString(record.body).resource_spans
        for scope in resource.scope_spans
        for span in scope.spans
    ]


def endpoint(collector: RunningCollector, protocol: str) -> str:
    return f"http://{collector.grpc}" if protocol == "grpc" else collector.http


@pytest.mark.parametrize("protocol", ["grpc", "http"])
def test_rotel_in_front_delivers_every_span_once(protocol: str, tmp_path: Path) -> None:
    with (
        collector_process(tmp_path / "spool") as collector,
        forwarder(tmp_path, protocol, endpoint(collector, protocol)) as url,
    ):
        sent = set[bytes]().union(*(send(url) for _ in range(REQUESTS)))
        eventually("every span", lambda: len(kept(collector.spool)) >= len(sent))
    assert sorted(kept(tmp_path / "spool")) == sorted(sent)


@pytest.mark.parametrize("protocol", ["grpc", "http"])
def test_rotel_delivers_what_it_took_while_we_were_killed_and_started_again(protocol: str, tmp_path: Path) -> None:
    spool = tmp_path / "spool"
    with contextlib.ExitStack() as stack:
        first = stack.enter_context(collector_process(spool))
        url = stack.enter_context(forwarder(tmp_path, protocol, endpoint(first, protocol)))
        sent = set[bytes]().union(*(send(url) for _ in range(REQUESTS // 2)))
        first.kill()
        sent |= set[bytes]().union(*(send(url) for _ in range(REQUESTS // 2)))
        ports = (first.grpc.rpartition(":")[2], first.http.rpartition(":")[2])
        stack.enter_context(collector_process(spool, "--port-grpc", ports[0], "--port-http", ports[1]))
        eventually("every span", lambda: sent <= set(kept(spool)))
