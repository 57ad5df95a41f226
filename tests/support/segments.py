"""Sealed segments with numbered spans, as a collector would leave them, and what the lake holds of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from surefoot.collector.segment import Encoding, Record, Signal, encode_record
from surefoot.collector.spool import Spool
from surefoot.processors.lake import Lake

# A moment in the middle of a day.
RECEIVED = 1_796_040_000_000_000_000


def traces(numbers: Iterable[int], *, content: bool = True) -> Record:
    """A request with one span per number, each with one content unless told otherwise."""
    request = ExportTraceServiceRequest()
    spans = request.resource_spans.add().scope_spans.add().spans
    for number in numbers:
        span = spans.add(
            trace_id=(number + 1).to_bytes(16, "big"),
            span_id=(number + 1).to_bytes(8, "big"),
            name=f"span {number}",
            start_time_unix_nano=RECEIVED - number,
            end_time_unix_nano=RECEIVED,
        )
        span.attributes.add(key="gen_ai.operation.name").value.string_value = "chat"
        if content:
            span.attributes.add(key="gen_ai.input.messages").value.string_value = f'["{number}"]'
    return record(Signal.TRACES, request)


def logs(numbers: Iterable[int]) -> Record:
    """A request with one log record per number."""
    request = ExportLogsServiceRequest()
    records = request.resource_logs.add().scope_logs.add().log_records
    for number in numbers:
        records.add(time_unix_nano=RECEIVED, event_name=f"event {number}")
    return record(Signal.LOGS, request)


def points(numbers: Iterable[int]) -> Record:
    """A request with one data point per number."""
    request = ExportMetricsServiceRequest()
    metrics = request.resource_metrics.add().scope_metrics.add().metrics
    for number in numbers:
        metrics.add(name=f"metric {number}").gauge.data_points.add(time_unix_nano=RECEIVED, as_int=number)
    return record(Signal.METRICS, request)


def record(signal: Signal, request: Any, source: str = "test") -> Record:
    return Record(signal, Encoding.PROTOBUF, RECEIVED, source, request.SerializeToString())


def seal(spool: Spool, records: Sequence[Record]) -> Path:
    """Write one segment and seal it."""
    writer = spool.begin_segment()
    writer.append([encode_record(item) for item in records])
    writer.close()
    spool.seal(writer.path)
    return spool.sealed_folder / writer.path.name


def held(lake: Lake) -> dict[str, Counter[str]]:
    """What each raw table holds, and how often."""
    return {
        table: Counter(lake.read(table, [column])[column].to_pylist())
        for table, column in (
            ("spans", "name"),
            ("contents", "content"),
            ("logs", "event_name"),
            ("metric_points", "metric_name"),
        )
    }


def once(numbers: Iterable[int]) -> dict[str, Counter[str]]:
    """What the tables hold if each number came in all three signals and is held exactly once."""
    numbers = list(numbers)
    return {
        "spans": Counter(f"span {number}" for number in numbers),
        "contents": Counter(f'["{number}"]' for number in numbers),
        "logs": Counter(f"event {number}" for number in numbers),
        "metric_points": Counter(f"metric {number}" for number in numbers),
    }
