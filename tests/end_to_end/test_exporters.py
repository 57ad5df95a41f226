"""(a) The real OpenTelemetry SDK and its exporters, gRPC and HTTP, all three signals."""

from __future__ import annotations

from typing import Any

import pytest
from opentelemetry._logs import SeverityNumber
from opentelemetry.exporter.otlp.proto.grpc._log_exporter import OTLPLogExporter as GrpcLogs
from opentelemetry.exporter.otlp.proto.grpc.metric_exporter import OTLPMetricExporter as GrpcMetrics
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter as GrpcSpans
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter as HttpLogs
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter as HttpMetrics
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter as HttpSpans
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

from support.serving import Server, eventually


@pytest.mark.parametrize("transport", ["grpc", "http"])
def test_the_real_exporters_deliver_traces_logs_and_metrics(server: Server, transport: str) -> None:
    resource = Resource.create({"service.name": f"shop-{transport}", "deployment.environment.name": "test"})
    spans: Any
    logs: Any
    metrics: Any
    if transport == "grpc":
        spans = GrpcSpans(endpoint=server.grpc, insecure=True)
        logs = GrpcLogs(endpoint=server.grpc, insecure=True)
        metrics = GrpcMetrics(endpoint=server.grpc, insecure=True)
    else:
        spans = HttpSpans(endpoint=f"{server.http}/v1/traces", compression=Compression.Gzip)
        logs = HttpLogs(endpoint=f"{server.http}/v1/logs")
        metrics = HttpMetrics(endpoint=f"{server.http}/v1/metrics")
    tracing, logging_, metering = (
        TracerProvider(resource=resource),
        LoggerProvider(resource=resource),
        MeterProvider([PeriodicExportingMetricReader(metrics, export_interval_millis=3_600_000)], resource=resource),
    )
    tracing.add_span_processor(BatchSpanProcessor(spans))
    logging_.add_log_record_processor(BatchLogRecordProcessor(logs))

    tracer = tracing.get_tracer("shop")
    with tracer.start_as_current_span("invoke_agent clerk") as run:
        run.set_attributes({"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "clerk"})
        with tracer.start_as_current_span("execute_tool search") as call:
            call.set_attributes({"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "search"})
    logging_.get_logger("shop").emit(body="stock is low", severity_number=SeverityNumber.WARN, severity_text="WARN")
    metering.get_meter("shop").create_counter("orders").add(3, {"kind": "web"})
    for provider in (tracing, logging_, metering):
        provider.shutdown()

    service = f"service_name = 'shop-{transport}'"
    eventually("two spans", lambda: len(server.rows(f"SELECT * FROM spans WHERE {service}")) == 2)
    runs = eventually("the run", lambda: server.rows(f"SELECT * FROM runs WHERE {service}"))
    assert [(r["agent_name"], r["outcome"], r["tool_calls"], r["environment"]) for r in runs] == [
        ("clerk", "ok", 1, "test")
    ]
    found = eventually("the log", lambda: server.rows(f"SELECT body, severity_text FROM logs WHERE {service}"))
    assert found == [{"body": "stock is low", "severity_text": "WARN"}]
    points = eventually(
        "the metric", lambda: server.rows(f"SELECT metric_name, value FROM metric_points WHERE {service}")
    )
    assert points == [{"metric_name": "orders", "value": 3.0}]
