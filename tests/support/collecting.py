"""A collector of a few lines that decodes OTLP/HTTP, and installed distributions that pretend."""

from __future__ import annotations

import contextlib
import textwrap
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
from opentelemetry.proto.trace.v1.trace_pb2 import Span


def plain(value: AnyValue) -> Any:
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [plain(item) for item in value.array_value.values]
    if kind == "kvlist_value":
        return {item.key: plain(item.value) for item in value.kvlist_value.values}
    return getattr(value, kind) if kind else None


def attributes(item: Any) -> dict[str, Any]:
    return {pair.key: plain(pair.value) for pair in item.attributes}


@dataclass
class Collector:
    """What arrived. ``status`` and ``gate`` let a test refuse or delay."""

    url: str = ""
    spans: list[Span] = field(default_factory=list)
    logs: list[LogRecord] = field(default_factory=list)
    resources: list[dict[str, Any]] = field(default_factory=list)
    status: int = 200
    gate: threading.Event = field(default_factory=threading.Event)
    arrived: threading.Condition = field(default_factory=threading.Condition)

    def span_names(self) -> list[str]:
        return sorted(span.name for span in self.spans)

    def events(self, name: str) -> list[LogRecord]:
        return [record for record in self.logs if record.event_name == name]

    def wait_for(self, condition: Callable[[], bool], seconds: float = 20) -> bool:
        with self.arrived:
            return self.arrived.wait_for(condition, seconds)

    def take(self, path: str, body: bytes) -> None:
        with self.arrived:
            if path == "/v1/traces":
                for traces in ExportTraceServiceRequest.FromString(body).resource_spans:
                    self.resources.append(attributes(traces.resource))
                    self.spans += [span for scope in traces.scope_spans for span in scope.spans]
            elif path == "/v1/logs":
                for logs in ExportLogsServiceRequest.FromString(body).resource_logs:
                    self.resources.append(attributes(logs.resource))
                    self.logs += [record for scope in logs.scope_logs for record in scope.log_records]
            self.arrived.notify_all()


@contextlib.contextmanager
def collecting() -> Iterator[Collector]:
    state = Collector()
    state.gate.set()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            state.gate.wait(30)
            if state.status == 200:
                state.take(self.path, body)
            self.send_response(state.status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *_: Any) -> None:
            """A killed client is part of the tests."""

    server = Server(("127.0.0.1", 0), Handler)
    state.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield state
    finally:
        state.gate.set()
        server.shutdown()
        server.server_close()
        thread.join()


def distribution(folder: Path, name: str, entry_points: str, modules: dict[str, str], requires: str = "") -> None:
    """Write an installed distribution into a folder that is to be on PYTHONPATH."""
    info = folder / f"{name.replace('-', '_')}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n{requires}")
    (info / "entry_points.txt").write_text(textwrap.dedent(entry_points))
    for module, text in modules.items():
        (folder / f"{module}.py").write_text(textwrap.dedent(text))
