"""``init`` and the pipeline: the standard variables hold, arguments win, the program's own providers stay in charge."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc
import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse
from opentelemetry.proto.collector.trace.v1.trace_service_pb2_grpc import (
    TraceServiceServicer,
    add_TraceServiceServicer_to_server,
)

from support.collecting import Collector
from surefoot.instrumentation.doctor import diagnose
from surefoot.instrumentation.pipeline import set_defaults

Run = Callable[..., "subprocess.CompletedProcess[str]"]


def test_defaults_fill_only_what_is_open() -> None:
    empty: dict[str, str] = {}
    set_defaults(empty)
    assert empty == {
        "OTEL_TRACES_EXPORTER": "otlp",
        "OTEL_LOGS_EXPORTER": "otlp",
        "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
        "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318",
        "OTEL_SEMCONV_STABILITY_OPT_IN": "gen_ai_latest_experimental",
    }
    given = {
        "OTEL_TRACES_EXPORTER": "console",
        "OTEL_LOGS_EXPORTER": "none",
        "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc",
        "OTEL_EXPORTER_OTLP_ENDPOINT": "http://elsewhere:1",
        "OTEL_SEMCONV_STABILITY_OPT_IN": "gen_ai_tool_definitions",
    }
    kept = dict(given)
    set_defaults(kept)
    assert kept == given


@pytest.mark.parametrize(
    ("given", "endpoint"),
    [
        ({"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, "http://127.0.0.1:4317"),
        ({"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "grpc"}, None),
        ({"OTEL_SEMCONV_STABILITY_OPT_IN": "http"}, "http://127.0.0.1:4318"),
    ],
)
def test_the_default_endpoint_follows_the_protocol(given: dict[str, str], endpoint: str | None) -> None:
    set_defaults(given)
    assert given.get("OTEL_EXPORTER_OTLP_ENDPOINT") == endpoint
    assert given["OTEL_SEMCONV_STABILITY_OPT_IN"] in ("gen_ai_latest_experimental", "http,gen_ai_latest_experimental")


def test_arguments_win_over_the_environment(run: Run, collector: Collector) -> None:
    done = run(
        f"""
        from surefoot.instrumentation import agent_run, flush, init
        init(service_name="mine", environment="test", endpoint="{collector.url}", capture_content=True)
        with agent_run("desk") as run:
            run.set_messages(input="a@example.com says hello")
        assert flush()
        """,
        OTEL_EXPORTER_OTLP_ENDPOINT="http://127.0.0.1:9",
        OTEL_EXPORTER_OTLP_TRACES_ENDPOINT="http://127.0.0.1:9/v1/traces",
        OTEL_SERVICE_NAME="other",
        OTEL_RESOURCE_ATTRIBUTES="team=red",
    )
    assert (done.returncode, done.stderr) == (0, "")
    (span,) = collector.spans
    told = {pair.key: pair.value.string_value for pair in span.attributes}
    assert told["gen_ai.input.messages"] == '"[REDACTED] says hello"'
    wanted = {"service.name": "mine", "deployment.environment.name": "test", "team": "red"}
    assert all(resource.items() >= wanted.items() for resource in collector.resources)


def test_the_first_call_counts_and_a_second_one_says_so(run: Run, collector: Collector) -> None:
    done = run(
        """
        from surefoot.instrumentation import agent_run, init
        init(service_name="first")
        init()
        init(service_name="second")
        with agent_run("desk"):
            pass
        """
    )
    assert done.stderr.count("this init() changes nothing") == 1
    assert collector.span_names() == ["invoke_agent desk"]
    assert {resource["service.name"] for resource in collector.resources} == {"first"}


def test_a_provider_of_the_program_stays_in_charge(run: Run, collector: Collector) -> None:
    done = run(
        """
        from opentelemetry import trace
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        trace.set_tracer_provider(TracerProvider(resource=Resource.create({"service.name": "theirs"})))
        from surefoot.instrumentation import agent_run, init
        init(service_name="ours")
        with agent_run("desk"), trace.get_tracer("theirs").start_as_current_span("own"):
            pass
        """
    )
    assert done.returncode == 0
    assert "The program set its own TracerProvider" in done.stderr
    assert collector.span_names() == ["invoke_agent desk", "own"]
    assert len(collector.events("surefoot.run.started")) == 1
    assert {resource["service.name"] for resource in collector.resources} == {"theirs"}


def test_a_provider_that_takes_no_processors_is_refused(run: Run) -> None:
    done = run(
        """
        from opentelemetry import trace
        trace.set_tracer_provider(trace.NoOpTracerProvider())
        from surefoot.instrumentation import init
        init()
        """
    )
    assert done.returncode == 1
    assert "PipelineError: The program's own tracer provider, a opentelemetry.trace.NoOpTracerProvider" in done.stderr


@pytest.mark.parametrize(
    ("variables", "spans", "logs"),
    [
        ({"OTEL_SDK_DISABLED": "true"}, 0, 0),
        ({"OTEL_TRACES_EXPORTER": "none"}, 0, 1),
        ({"OTEL_LOGS_EXPORTER": "none"}, 1, 0),
        ({"OTEL_TRACES_SAMPLER": "always_off"}, 0, 0),
    ],
)
def test_the_standard_variables_hold(
    run: Run, collector: Collector, variables: dict[str, str], spans: int, logs: int
) -> None:
    done = run(
        """
        from surefoot.instrumentation import agent_run, init
        init()
        with agent_run("desk"):
            pass
        """,
        **variables,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert (len(collector.spans), len(collector.logs)) == (spans, logs)


def test_an_exporter_that_is_not_there_is_named(run: Run) -> None:
    done = run("from surefoot.instrumentation import init; init()", OTEL_TRACES_EXPORTER="zipkin")
    assert done.returncode == 1
    assert "PipelineError" in done.stderr
    assert "zipkin" in done.stderr


def test_grpc_delivers_where_it_is_chosen(run: Run) -> None:
    arrived: list[str] = []

    class Traces(TraceServiceServicer):
        def Export(self, request: Any, _context: Any) -> ExportTraceServiceResponse:  # noqa: N802 - gRPC's
            for resource in request.resource_spans:
                arrived.extend(span.name for scope in resource.scope_spans for span in scope.spans)
            return ExportTraceServiceResponse()

    server = grpc.server(ThreadPoolExecutor(1))
    add_TraceServiceServicer_to_server(Traces(), server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        done = run(
            """
            from surefoot.instrumentation import agent_run, init
            init()
            with agent_run("desk"):
                pass
            """,
            OTEL_EXPORTER_OTLP_PROTOCOL="grpc",
            OTEL_EXPORTER_OTLP_ENDPOINT=f"http://127.0.0.1:{port}",
            OTEL_LOGS_EXPORTER="none",
        )
        answer = diagnose({"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, f"http://127.0.0.1:{port}").endpoint
    finally:
        server.stop(None).wait()
    assert (done.returncode, done.stderr) == (0, "")
    assert arrived == ["invoke_agent desk"]
    assert (answer.protocol, answer.answers) == ("grpc", True)


def test_a_second_exporter_gets_the_same_cleaned_spans(run: Run, collector: Collector) -> None:
    done = run(
        """
        from surefoot.instrumentation import agent_run, init
        init()
        with agent_run("desk", principal="ada@example.com"):
            pass
        """,
        OTEL_TRACES_EXPORTER="otlp,console",
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert '"surefoot.principal": "[REDACTED]"' in done.stdout
    assert collector.span_names() == ["invoke_agent desk"]
