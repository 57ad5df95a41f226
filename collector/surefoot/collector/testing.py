"""For tests: a collector in a process of its own, requests to send to it, and what it kept."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.logs.v1.logs_pb2 import SEVERITY_NUMBER_INFO

from surefoot.collector.segment import Record, SegmentWriter, encode_record, read_segment
from surefoot.collector.spool import Spool


@dataclass(frozen=True, slots=True)
class RunningCollector:
    """Where a collector process listens, what it writes to, and the process."""

    grpc: str
    http: str
    spool: Path
    process: subprocess.Popen[str]

    @property
    def status(self) -> dict[str, Any]:
        """What it last published; needs the flag ``--status`` with the folder ``status`` beside the spool."""
        content: dict[str, Any] = json.loads((self.spool.parent / "status" / "collector.json").read_text())
        return content

    def kill(self) -> None:
        """Kill -9, and wait until it is gone."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self) -> int:
        """SIGTERM, and wait until it has ended; returns the exit code."""
        self.process.terminate()
        return self.process.wait(30)


@contextlib.contextmanager
def collector_process(spool: Path, *flags: str) -> Iterator[RunningCollector]:
    """A real collector on free ports; stopped with SIGTERM at the end unless it is gone already.

    Publishes its status in the folder ``status`` beside the spool. Raises RuntimeError if it does not start, or if
    SIGTERM does not end it with 0.
    """
    command = [sys.executable, "-m", "surefoot.collector", "--spool", str(spool)]
    command += ["--status", str(spool.parent / "status"), "--port-grpc", "0", "--port-http", "0", *flags]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        ready = json.loads(process.stdout.readline() or "{}") if process.stdout else {}
        if not ready:
            raise RuntimeError(f"The collector did not start; it ended with {process.wait()}.")
        collector = RunningCollector(ready["grpc"], ready["http"], spool, process)
        try:
            yield collector
        except BaseException:
            process.kill()
            raise
        if process.poll() is None and (code := collector.stop()) != 0:
            raise RuntimeError(f"The collector ended with {code}.")
        if process.stdout and (more := process.stdout.read()):
            raise RuntimeError(f"The collector wrote more than its ready line to stdout: {more}")


def kept_records(spool: Path) -> list[Record]:
    """Every record in a spool, oldest first, also those of the segment being written."""
    paths = Spool(spool).sealed() + Spool(spool).unsealed()
    return [record for path in paths for record in read_segment(path).records]


def write_segment(path: Path, records: Sequence[Record], receiver_id: uuid.UUID, sequence: int = 1) -> None:
    """A whole segment file."""
    writer = SegmentWriter(path, receiver_id, sequence, time.time_ns())
    writer.append([encode_record(record) for record in records])
    writer.close()


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


def log_request(records: int = 1, text: str = "it happened") -> ExportLogsServiceRequest:
    """A request with ``records`` log records."""
    request = ExportLogsServiceRequest()
    resource = request.resource_logs.add()
    resource.resource.attributes.add(key="service.name").value.string_value = "test"
    scope = resource.scope_logs.add()
    for _ in range(records):
        record = scope.log_records.add(time_unix_nano=time.time_ns(), severity_number=SEVERITY_NUMBER_INFO)
        record.body.string_value = text
    return request


def metric_request(points: int = 1, name: str = "orders") -> ExportMetricsServiceRequest:
    """A request with one sum of ``points`` data points."""
    request = ExportMetricsServiceRequest()
    resource = request.resource_metrics.add()
    resource.resource.attributes.add(key="service.name").value.string_value = "test"
    metric = resource.scope_metrics.add().metrics.add(name=name, unit="1")
    for number in range(points):
        metric.sum.data_points.add(time_unix_nano=time.time_ns(), as_int=number)
    return request
