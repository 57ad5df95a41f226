"""For tests: a collector in a process of its own, and requests to send to it."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


@dataclass(frozen=True, slots=True)
class RunningCollector:
    """Where a collector process listens, and the process."""

    grpc: str
    http: str
    process: subprocess.Popen[str]

    def kill(self) -> None:
        """Kill -9, and wait until it is gone."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()


@contextlib.contextmanager
def collector_process(spool: Path, *flags: str) -> Iterator[RunningCollector]:
    """A real collector on free ports; stopped with SIGTERM at the end unless it is gone already."""
    command = [sys.executable, "-m", "surefoot.collector", "--spool", str(spool)]
    ports = ["--port-grpc", "0", "--port-http", "0"]
    with subprocess.Popen([*command, *ports, *flags], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None  # noqa: S101 - stdout=PIPE
        ready = json.loads(process.stdout.readline() or "{}")
        if not ready:
            raise RuntimeError(f"The collector did not start; it ended with {process.wait()}.")
        try:
            yield RunningCollector(ready["grpc"], ready["http"], process)
        finally:
            process.terminate()
            process.wait(30)


def trace_request(spans: int = 1, name: str = "work") -> ExportTraceServiceRequest:
    """A request with ``spans`` fresh spans of one trace."""
    request = ExportTraceServiceRequest()
    resource = request.resource_spans.add()
    resource.resource.attributes.add(key="service.name").value.string_value = "test"
    scope = resource.scope_spans.add()
    trace_id, start = os.urandom(16), time.time_ns()
    for number in range(spans):
        span = scope.spans.add(trace_id=trace_id, span_id=os.urandom(8), name=name)
        span.start_time_unix_nano, span.end_time_unix_nano = start + number, start + number + 1000
    return request
