"""The real OpenTelemetry exporters: what they send is kept, and they come again when asked."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import grpc
import pytest
from opentelemetry.exporter.otlp.proto.grpc.metric_exporter import OTLPMetricExporter as GrpcMetrics
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter as GrpcSpans
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter as HttpMetrics
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter as HttpSpans
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from support.otlp_clients import post
from support.serving import eventually
from surefoot.collector.segment import Signal
from surefoot.collector.spool import Spool
from surefoot.collector.testing import RunningCollector, collector_process, kept_records, trace_request


def span_exporter(collector: RunningCollector, transport: str, *, compressed: bool) -> SpanExporter:
    if transport == "grpc":
        coding = grpc.Compression.Gzip if compressed else grpc.Compression.NoCompression
        return GrpcSpans(endpoint=collector.grpc, insecure=True, compression=coding)
    http_coding = Compression.Deflate if compressed else Compression.NoCompression
    return HttpSpans(endpoint=f"{collector.http}/v1/traces", compression=http_coding)


def some_spans() -> list[ReadableSpan]:
    memory = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(memory))
    tracer = provider.get_tracer("shop")
    with tracer.start_as_current_span("parent") as parent:
        parent.set_attributes({"text": "é", "number": -1, "list": [1.5, 2.5]})
        with tracer.start_as_current_span("child"):
            pass
    provider.shutdown()
    return list(memory.get_finished_spans())


def names(body: bytes) -> list[str]:
    request = ExportTraceServiceRequest.FromString(body)
    return [span.name for group in request.resource_spans for scope in group.scope_spans for span in scope.spans]


@pytest.fixture(scope="module")
def collector(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with collector_process(tmp_path_factory.mktemp("collector") / "spool", "--segment-seconds", "3600") as running:
        yield running


@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize("transport", ["grpc", "http"])
def test_spans_are_kept(collector: RunningCollector, transport: str, compressed: bool) -> None:
    before = len(kept_records(collector.spool))
    exporter = span_exporter(collector, transport, compressed=compressed)
    assert exporter.export(some_spans()) is SpanExportResult.SUCCESS
    exporter.shutdown()
    (kept,) = kept_records(collector.spool)[before:]
    assert (kept.signal, kept.source, names(kept.body)) == (Signal.TRACES, transport, ["child", "parent"])


@pytest.mark.parametrize("transport", ["grpc", "http"])
def test_metrics_are_kept(collector: RunningCollector, transport: str) -> None:
    before = len(kept_records(collector.spool))
    exporter = (
        GrpcMetrics(endpoint=collector.grpc, insecure=True)
        if transport == "grpc"
        else HttpMetrics(endpoint=f"{collector.http}/v1/metrics")
    )
    provider = MeterProvider([PeriodicExportingMetricReader(exporter, export_interval_millis=3_600_000)])
    provider.get_meter("shop").create_counter("orders").add(3)
    provider.shutdown()
    (kept,) = kept_records(collector.spool)[before:]
    request = ExportMetricsServiceRequest.FromString(kept.body)
    assert request.resource_metrics[0].scope_metrics[0].metrics[0].sum.data_points[0].as_int == 3


def test_exporters_come_again_when_they_are_asked_to(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "spool")
    with collector_process(spool.path, "--segment-seconds", "0.1", "--max-backlog-bytes", "2500") as collector:
        assert post(collector, "/v1/traces", trace_request(1, "x" * 2000).SerializeToString()).code == 200
        results: list[SpanExportResult] = []
        exporters = [span_exporter(collector, transport, compressed=False) for transport in ("grpc", "http")]
        threads = [
            threading.Thread(target=lambda exporter=exporter: results.append(exporter.export(some_spans())))
            for exporter in exporters
        ]
        for thread in threads:
            thread.start()

        def deferred() -> int:
            return sum(c["total"] for c in collector.status["counts"] if c["name"] == "deferred_requests")

        eventually("both refused", lambda: deferred() >= 2)
        assert results == []
        eventually("a sealed segment", lambda: spool.unsealed() == [])
        for path in spool.sealed():
            spool.remove(path)  # what the writer does
        for thread in threads:
            thread.join(60)
        for exporter in exporters:
            exporter.shutdown()
    assert results == [SpanExportResult.SUCCESS] * 2
    assert [names(kept.body) for kept in kept_records(spool.path)] == [["child", "parent"]] * 2
