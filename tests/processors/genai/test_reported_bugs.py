"""What users of other tools reported about traces of agents: one entry per report, tried here or where it belongs.

Rows are those of a collection of public issues; each names some of them. A report is either a test below, on the rows
that the decoder gives and through the real derivation, or is tested elsewhere: then :data:`ELSEWHERE` names the tests,
and a test holds those names to what is there.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from support.captures import RECEIVED, capture
from support.deriving import Result, derive_rows, derive_tables
from support.traces import agent, chat, run_started, tool
from surefoot.collector.segment import Encoding, Record, Signal
from surefoot.processors.genai.columns import canonical_spans
from surefoot.processors.lake.schema import SPANS
from surefoot.processors.otlp.decode import decode_spans

Row = dict[str, Any]

TESTS = Path(__file__).parents[2]

ELSEWHERE = {
    1: (
        "agno#5208, adk-python#4894: a token of another context when an async generator ends",
        "instrumentation/test_generators.py::test_async_left_early_and_closed_by_another_task",
        "instrumentation/test_generators.py::test_async_each_step_in_another_task",
        "instrumentation/test_generators.py::test_closed_by_another_thread",
    ),
    3: (
        "smolagents#1840, crewAI#4708: tools in a pool of threads become roots",
        "instrumentation/test_sdk.py::test_work_handed_to_threads_stays_in_its_run",
    ),
    6: (
        "litellm#10588, langchain-azure#310: the same span in the table already",
        "processors/lake/test_copies.py::test_the_richer_copy_of_a_span_takes_the_place_of_the_poorer",
        "processors/lake/test_copies.py::test_a_later_end_counts_more_than_attributes",
    ),
    8: (
        "opentelemetry-collector#6046: a message of more than 4 MiB costs the whole batch",
        "end_to_end/test_bug_reports.py::test_apm_14759_a_prompt_beyond_the_four_megabytes_of_grpc_is_taken_whole",
        "collector/test_limits.py::test_a_span_beyond_a_limit_is_rejected_alone_and_one_at_the_limit_is_taken",
    ),
    14: (
        "vercel/eve#679, promptflow#2208: spans lost when the process ends",
        "instrumentation/test_exit.py::test_an_interrupted_lock_holder_still_flushes_on_sigterm",
        "instrumentation/test_exit.py::test_a_forked_child_delivers_its_own_and_not_the_parents",
    ),
    15: (
        "crewAI#7597: prompts exported that nobody asked for",
        "instrumentation/test_content.py::test_content_is_kept_where_the_mode_says",
        "instrumentation/test_cleaning.py::test_content_that_others_recorded_is_dropped_unless_capture_is_on",
        "processors/genai/test_columns.py::test_no_contents_stay_with_a_captured_span_and_none_is_lost",
    ),
    19: (
        "openai-v2 2.4b0 with util-genai 1.3b0: an instrumentor that cannot be imported takes all others along",
        "instrumentation/test_distro.py::test_instrumentors_that_crash_do_not_take_the_others_down",
        "instrumentation/test_choosing.py::test_one_that_crashes_keeps_none_out_that_works",
    ),
}

CANNOT_OCCUR = {
    16: (
        "litellm#27243: each turn sends the whole history again. What an agent sends is the agent's; here a span with "
        "its contents is stored once, under its identity, contents go to a table of their own with their own, shorter "
        "retention, and the collector's limits bound what one span may hold, so no row grows with another's history."
    ),
}


def captured(name: str) -> Result:
    found = capture(name)
    return derive_tables(found.spans, found.logs, RECEIVED + 10_000)


def outcomes(found: Result) -> list[tuple[str | None, str]]:
    return [(row["agent_name"], row["outcome"]) for row in found.runs if row["parent_run_id"] is None]


def test_every_report_is_somewhere() -> None:
    here = {int(number) for name in globals() for number in re.findall(r"^test_report_(\d+)", name)}
    assert here | ELSEWHERE.keys() | CANNOT_OCCUR.keys() == set(range(1, 20))
    assert not CANNOT_OCCUR.keys() & (here | ELSEWHERE.keys())


@pytest.mark.parametrize("number", ELSEWHERE)
def test_the_tests_named_for_a_report_are_there(number: int) -> None:
    for node in ELSEWHERE[number][1:]:
        path, name = node.split("::")
        assert re.search(rf"^(async )?def {name}\(", (TESTS / path).read_text(), re.MULTILINE), node


def test_report_2_every_span_a_root_of_a_trace_of_its_own() -> None:
    """opentelemetry-python-genai#513. Links that were never sent cannot be made up: each agent span is its own run,
    calls are calls without a run, and no run is invented for them."""
    rows = [agent("a", trace="01" * 16), chat("c", trace="02" * 16), tool("t", trace="03" * 16)]
    found = derive_rows(rows, now=5000)
    assert outcomes(found) == [("a", "ok")]
    assert [row["run_id"] for row in found.model_calls + found.tool_calls] == [None, None]
    whole = captured("langgraph-1.2.24__otel-genai-langchain-1.3b0.astream.json")
    assert [row["outcome"] for row in whole.runs] == ["ok"]
    assert {row["run_id"] for row in whole.model_calls + whole.tool_calls} == {whole.runs[0]["run_id"]}


@pytest.mark.parametrize(
    "name", ["strands-agents-1.62.0__native.multi_tool.json", "agent-framework-core-1.23.0__native.multi_tool.json"]
)
def test_report_4_tokens_on_the_agent_and_on_its_calls_count_once(name: str) -> None:
    """strands harness-sdk#1267, langsmith-sdk#1812."""
    assert [row["input_tokens"] for row in captured(name).runs] == [22]


def test_report_4_a_trace_without_parent_links_has_the_calls_in_the_run_that_was_open() -> None:
    """comet-ml/opik PR#7177: a sender that leaves out all parents."""
    found = derive_rows([agent("a", at=0, lasts=10, input_tokens=7), chat("c", at=1, input_tokens=7, output_tokens=1)])
    assert [(row["input_tokens"], row["model_calls"]) for row in found.runs] == [(7, 1)]


@pytest.mark.parametrize("scenario", ["chat_tool", "stream"])
def test_report_5_two_instrumentations_of_one_library(scenario: str) -> None:
    """openinference#2101, #2119."""
    both = captured(f"dup__openai-genai1.3b0+openinference0.1.66.{scenario}.json")
    alone = captured(f"openai-3.57.0__otel-genai-openai-1.3b0.{scenario}.json")

    def told(found: Result) -> list[tuple[Any, ...]]:
        return sorted((row["outcome"], row["input_tokens"], row["output_tokens"]) for row in found.model_calls)

    assert told(both) == told(alone)


def test_report_6_one_span_sent_twice_with_different_contents() -> None:
    """litellm#10588, langchain-azure#310: the same ids again. The copy that ended later counts, in whatever order."""
    early, late = (chat("c", "a", at=1, lasts=lasts, input_tokens=tokens) for lasts, tokens in ((1, 5), (2, 9)))
    for copies in ((early, late), (late, early), (late, early, late)):
        found = derive_rows([agent("a"), *copies])
        assert [(row["model_calls"], row["input_tokens"]) for row in found.runs] == [(1, 9)]


@pytest.mark.parametrize(
    "name",
    [
        "openai-3.57.0__otel-genai-openai-1.3b0.stream_abandoned.json",
        "openai-3.57.0__traceloop-openai-0.62.4.stream_abandoned.json",
        "openai-3.57.0__openinference-openai-0.1.66.stream_abandoned.json",
    ],
)
def test_report_7_a_stream_that_was_left_early_is_one_call_and_no_failure(name: str) -> None:
    """openlit#1454, #1460, #1514, #1515. That our own spans end is in instrumentation/test_generators.py."""
    (call,) = captured(name).model_calls
    assert call["outcome"] in {"cancelled", "ok"}


def test_report_9_attributes_that_the_sdk_dropped_leave_null_and_are_told() -> None:
    """openinference#3527, ai-gateway#2064: the limit of 128 attributes drops the model and the tokens."""
    request = ExportTraceServiceRequest()
    scope = request.resource_spans.add().scope_spans.add()
    scope.scope.name = "openinference.instrumentation.openai"
    end = int(RECEIVED * 1e9)
    ids = {"trace_id": b"\1" * 16, "span_id": b"\2" * 8}
    sent = scope.spans.add(name="ChatCompletion", start_time_unix_nano=end - 1000, end_time_unix_nano=end, **ids)
    sent.attributes.add(key="openinference.span.kind").value.string_value = "LLM"
    for number in range(127):
        key = f"llm.input_messages.{number}.message.role"
        sent.attributes.add(key=key).value.string_value = "user"
    sent.dropped_attributes_count = 54
    record = Record(Signal.TRACES, Encoding.PROTOBUF, end, "test", request.SerializeToString())
    rows = canonical_spans(decode_spans([record]))[0].cast(SPANS)
    assert rows["dropped_attributes_count"].to_pylist() == [54]
    (call,) = derive_tables(rows, capture("util-genai-1.3b0__manual.error.json").logs.slice(0, 0), RECEIVED).model_calls
    assert (call["outcome"], call["request_model"], call["input_tokens"], call["cost_usd"]) == ("ok", None, None, None)


@pytest.mark.parametrize(
    "name",
    [
        "langgraph-1.2.24__otel-genai-langchain-1.3b0.tool_error.json",
        "langgraph-1.2.24__openinference-langchain-0.1.80.tool_error.json",
        "langgraph-1.2.24__traceloop-langchain-0.62.4.tool_error.json",
        "strands-agents-1.62.0__native.tool_error.json",
        "agent-framework-core-1.23.0__native.tool_error.json",
        "google-adk-2.13.0__native.tool_error.json",
        "openai-agents-0.24.0__otel-genai-openai-agents-1.3b0.tool_error.json",
    ],
)
def test_report_10_a_failed_tool_is_an_error(name: str) -> None:
    """opentelemetry-python-genai#557, agent-framework#2217, kibana#277689."""
    assert "error" in {row["outcome"] for row in captured(name).tool_calls}


@pytest.mark.parametrize("kind", ["CallDeferred", "pydantic_ai.exceptions.ApprovalRequired"])
def test_report_11_waiting_for_a_person_is_no_error(kind: str) -> None:
    """pydantic-ai#4530."""
    found = derive_rows([agent("a"), tool("t", "a", status="error", exception=kind)])
    assert [row["outcome"] for row in found.tool_calls] == ["deferred"]
    assert [row["tool_errors"] for row in found.runs] == [0]


def test_report_12_a_run_whose_root_never_ended_is_unknown_if_its_calls_tell_of_it_and_never_ok() -> None:
    """openinference PR#2654: the span of what failed never ends, so it never comes."""
    found = captured("smolagents-1.26.0__openinference-smolagents-0.1.43.model_error.json")
    assert (found.runs, found.model_calls, found.tool_calls) == ([], [], [])  # all that came is a step
    orphan = derive_rows([chat("c", "lost"), tool("t", "lost")], now=5000)
    assert [(row["outcome"], row["tool_calls"], row["model_calls"]) for row in orphan.runs] == [("unknown", 1, 1)]


def test_report_13_a_cancelled_run_is_cancelled_and_one_that_never_reports_is_abandoned() -> None:
    """strands harness-sdk#3609, #3896, agentscope#1618. The status of a cancelled span may be unset."""
    told = derive_rows([agent("a", attributes={"strands.cancellation.type": "user"}), chat("c", "a")])
    assert outcomes(told) == [("a", "cancelled")]
    silent = derive_rows([run_started("a"), chat("c", "a")], now=5000)
    assert outcomes(silent) == [("a", "abandoned")]


def test_report_17_one_call_of_an_mcp_tool_that_client_and_server_report() -> None:
    """dd-trace-js#9416."""
    for scenario, outcome in (("ok", "ok"), ("tool_error", "error")):
        calls = captured(f"fastmcp-4.2.3_mcp-2.3.0__native.{scenario}.json").tool_calls
        assert [row["outcome"] for row in calls] == [outcome]


def test_report_18_tokens_that_only_the_agent_tells() -> None:
    """openinference#1154: no model call is seen, the total stands on the agent's span."""
    found = captured("smolagents-1.26.0__openinference-smolagents-0.1.43.multi_tool.json")
    assert [(row["input_tokens"], row["output_tokens"] is not None) for row in found.runs] == [(22, True)]
    none = captured("crewai-1.15.30__openinference-crewai-1.1.21.multi_tool.json")
    assert {row["input_tokens"] for row in none.runs} == {None}
