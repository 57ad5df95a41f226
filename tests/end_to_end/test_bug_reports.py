"""What users of other receivers reported, tried on ours: one test per report, named by what it prevents.

The issue numbers are of the projects where people met the problem. Crashes while a file is written are in
`tests/crash`, thousands of small files in `tests/processors/lake/test_upkeep.py`.
"""

from __future__ import annotations

import json
import os
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from support.otlp_clients import JSON, METHODS, PROTOBUF
from support.serving import Server, eventually, serving
from surefoot.collector.segment import Signal
from surefoot.processors.lake import Lake

DAY = 86_400


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(tmp_path_factory.mktemp("bug_reports") / "home") as running:
        yield running


def post(server: Server, path: str, body: bytes, kind: str = PROTOBUF) -> bytes:
    request = urllib.request.Request(f"{server.http}/v1/{path}", body, {"Content-Type": kind})
    with urllib.request.urlopen(request, timeout=30) as answer:
        return bytes(answer.read())


def add(request: ExportTraceServiceRequest, **fields: Any) -> Span:
    """One more span in a request; a fresh root that ended just now unless told otherwise."""
    if not request.resource_spans:
        request.resource_spans.add().scope_spans.add()
    now = time.time_ns()
    told: dict[str, Any] = {"trace_id": os.urandom(16), "span_id": os.urandom(8), "name": "work"}
    told |= {"start_time_unix_nano": now - 1000, "end_time_unix_nano": now}
    return request.resource_spans[0].scope_spans[0].spans.add(**(told | fields))


def attribute(span: Span, key: str, value: str | int | bool | None) -> None:
    slot = span.attributes.add(key=key).value
    if isinstance(value, bool):
        slot.bool_value = value
    elif isinstance(value, int):
        slot.int_value = value
    elif value is not None:
        slot.string_value = value


def a_run(trace: bytes) -> ExportTraceServiceRequest:
    """An agent with one model call of 117 and 17 tokens."""
    request = ExportTraceServiceRequest()
    root = add(request, trace_id=trace, name="invoke_agent clerk")
    attribute(root, "gen_ai.operation.name", "invoke_agent")
    attribute(root, "gen_ai.agent.name", "clerk")
    call = add(request, trace_id=trace, parent_span_id=root.span_id, name="chat m")
    attribute(call, "gen_ai.operation.name", "chat")
    attribute(call, "gen_ai.usage.input_tokens", 117)
    attribute(call, "gen_ai.usage.output_tokens", 17)
    return request


def stored(server: Server, trace: bytes, columns: str = "*") -> list[dict[str, Any]]:
    return server.rows(f"SELECT {columns} FROM spans WHERE trace_id = '{trace.hex()}' ORDER BY start_unix_nano")


def after_a_marker(server: Server) -> None:
    """Wait until everything that was acknowledged before now is in the tables and derived."""
    trace = os.urandom(16)
    post(server, "traces", a_run(trace).SerializeToString())
    query = f"SELECT 1 AS there FROM runs WHERE trace_id = '{trace.hex()}'"
    eventually("the marker", lambda: server.rows(query))


def test_11056_and_44191_retries_of_exporters_change_no_count(server: Server) -> None:
    trace = os.urandom(16)
    request = a_run(trace)
    logs, metrics = ExportLogsServiceRequest(), ExportMetricsServiceRequest()
    logs.resource_logs.add().scope_logs.add().log_records.add(
        trace_id=trace, time_unix_nano=time.time_ns(), event_name=f"e-{trace.hex()}"
    )
    point = metrics.resource_metrics.add().scope_metrics.add().metrics.add(name=f"m-{trace.hex()}")
    point.gauge.data_points.add(time_unix_nano=time.time_ns(), as_int=1)
    halves = [ExportTraceServiceRequest(), ExportTraceServiceRequest()]
    for half, span in zip(halves, request.resource_spans[0].scope_spans[0].spans, strict=True):
        half.resource_spans.add().scope_spans.add().spans.append(span)
    for _ in range(3):  # the whole batch, then the same spans in other batches, as a collector's queue regroups them
        post(server, "traces", request.SerializeToString())
        post(server, "logs", logs.SerializeToString())
        post(server, "metrics", metrics.SerializeToString())
        for half in halves:
            post(server, "traces", half.SerializeToString())
        time.sleep(0.3)  # so that they lie in different segments
    after_a_marker(server)

    runs = server.rows(f"SELECT model_calls, input_tokens, output_tokens FROM runs WHERE trace_id = '{trace.hex()}'")
    assert runs == [{"model_calls": 1, "input_tokens": 117, "output_tokens": 17}]
    assert len(stored(server, trace)) == 2
    counts = (
        f"SELECT (SELECT count(*) FROM logs WHERE event_name = 'e-{trace.hex()}') AS logs, "
        f"(SELECT count(*) FROM metric_points WHERE metric_name = 'm-{trace.hex()}') AS points"
    )
    assert server.rows(counts) == [{"logs": 1, "points": 1}]


def test_duckdb_17158_a_reader_is_never_locked_out_while_spans_arrive(server: Server) -> None:
    lake = Lake.open(server.home / "lake", create=False)
    seen = 0
    with lake.connect() as reader:
        for _ in range(15):
            post(server, "traces", a_run(os.urandom(16)).SerializeToString())
            lake.refresh(reader)
            found = reader.sql("SELECT count(*), count(DISTINCT span_id) FROM spans").fetchall()[0]
            assert found[0] == found[1] >= seen
            seen = found[0]
            time.sleep(0.1)
    assert seen > 0


def test_signoz_814_a_span_that_ends_before_it_starts_poisons_no_duration(server: Server) -> None:
    request, trace, now = ExportTraceServiceRequest(), os.urandom(16), time.time_ns()
    add(request, trace_id=trace, start_time_unix_nano=now, end_time_unix_nano=now - 5_000)
    post(server, "traces", request.SerializeToString())
    columns = "duration_ns, clock_skew"
    rows = eventually("the span", lambda: stored(server, trace, columns))
    assert rows == [{"duration_ns": -5_000, "clock_skew": True}]


def test_openobserve_3150_and_rust_3328_times_as_text_and_as_numbers(server: Server) -> None:
    trace, now = os.urandom(16), time.time_ns()
    spans = [
        {"traceId": trace.hex().upper(), "spanId": os.urandom(8).hex(), "name": "n", "startTimeUnixNano": start}
        for start in (now, str(now))
    ]
    body = json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}).encode()
    assert json.loads(post(server, "traces", body, JSON)) == {}
    rows = eventually("the spans", lambda: stored(server, trace, "start_unix_nano"))
    assert rows == [{"start_unix_nano": now}, {"start_unix_nano": now}]


def test_contrib_35723_text_that_is_not_utf8_is_refused_for_good_and_wedges_nothing(server: Server) -> None:
    request, trace = ExportTraceServiceRequest(), os.urandom(16)
    add(request, trace_id=trace, name="MARK")
    poison = request.SerializeToString().replace(b"MARK", b"\xff\xfe\xff\xfe")
    with pytest.raises(urllib.error.HTTPError) as refused:
        post(server, "traces", poison)
    assert refused.value.code == 400
    refused.value.close()
    after_a_marker(server)
    assert stored(server, trace) == []


def test_parseable_1711_one_key_with_three_types_in_one_batch(server: Server) -> None:
    request, trace = ExportTraceServiceRequest(), os.urandom(16)
    values: list[str | int | bool | None] = [True, "high", 3, None]
    for place, value in enumerate(values):
        attribute(add(request, trace_id=trace, start_time_unix_nano=time.time_ns() + place), "level", value)
    post(server, "traces", request.SerializeToString())
    rows = eventually("the spans", lambda: stored(server, trace, "attributes['level'] AS level"))
    assert [row["level"] for row in rows] == ["true", "high", "3", None]


def test_openobserve_14638_times_far_from_now_are_kept_seen_flagged_and_make_no_partition_of_their_own(
    server: Server,
) -> None:
    request, trace, now = ExportTraceServiceRequest(), os.urandom(16), time.time_ns()
    far = {"long ago": 1, "in 2100": 4_102_444_800 * 10**9, "in 2262": 2**63 - 1, "beyond": 2**64 - 1}
    for name, nanos in far.items():
        add(request, trace_id=trace, name=name, start_time_unix_nano=nanos, end_time_unix_nano=nanos)
    # A run may start long before it ends: skew is judged where it ended.
    add(request, trace_id=trace, name="long", start_time_unix_nano=now - 3 * DAY * 10**9, end_time_unix_nano=now)
    post(server, "traces", request.SerializeToString())
    columns = "name, clock_skew, date, start_unix_nano"
    rows = eventually("the spans", lambda: stored(server, trace, columns))
    assert {row["name"]: row["clock_skew"] for row in rows} == dict.fromkeys(far, True) | {"long": False}
    today = time.time() // DAY
    for row in rows:
        assert -9 <= (row["date"].toordinal() - 719_163) - today <= 2
    starts = {row["name"]: row["start_unix_nano"] for row in rows}
    assert (starts["long ago"], starts["in 2262"], starts["beyond"]) == (1, 2**63 - 1, 2**63 - 1)


def test_apm_14759_a_prompt_beyond_the_four_megabytes_of_grpc_is_taken_whole(server: Server) -> None:
    request, trace = ExportTraceServiceRequest(), os.urandom(16)
    attribute(add(request, trace_id=trace), "gen_ai.input.messages", json.dumps(["x" * (9 << 20)]))
    with grpc.insecure_channel(server.grpc, options=[("grpc.max_send_message_length", -1)]) as channel:
        channel.unary_unary(METHODS[Signal.TRACES])(request.SerializeToString(), timeout=30)
    query = f"SELECT length(content) AS letters FROM contents WHERE trace_id = '{trace.hex()}'"
    assert eventually("the prompt", lambda: server.rows(query)) == [{"letters": (9 << 20) + 4}]


def test_langfuse_15026_one_bad_span_costs_no_other(server: Server) -> None:
    request, trace = ExportTraceServiceRequest(), os.urandom(16)
    attribute(add(request, trace_id=trace, name="no value"), "empty", None)
    add(request, trace_id=trace, name="no id", span_id=b"")
    add(request, trace_id=trace, name="good")
    answer = ExportTraceServiceResponse.FromString(post(server, "traces", request.SerializeToString()))
    assert answer.partial_success.rejected_spans == 1
    assert "no id" in answer.partial_success.error_message
    rows = eventually("the rest", lambda: stored(server, trace, "name"))
    assert sorted(row["name"] for row in rows) == ["good", "no value"]


def test_every_report_has_a_test_where_this_module_says() -> None:
    root = Path(__file__).parents[1]
    assert (root / "crash" / "test_writer_faults.py").exists()
    assert "small_files" in (root / "processors" / "lake" / "test_upkeep.py").read_text()
