"""Raw spans of the current conventions, and of pydantic-ai, as canonical columns; contents go their own way."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue

from support.captures import FOLDER, capture
from support.otlp_requests import NOW, span_batches
from surefoot.collector.json_codec import parse
from surefoot.collector.segment import Encoding, Record, Signal
from surefoot.instrumentation import semconv
from surefoot.processors.genai.columns import canonical_logs, canonical_spans
from surefoot.processors.genai.contents import without_reasoning
from surefoot.processors.lake.schema import CONTENTS, LOGS, SPANS
from surefoot.processors.otlp import decode_logs, decode_spans

Value = str | bool | int | float


def rows(
    attributes: Mapping[str, Value],
    scope: str = "",
    events: Mapping[str, Mapping[str, str]] | None = None,
    name: str = "",
) -> tuple[dict[str, Any], dict[str, str]]:
    """The row of one span with these attributes, and its contents by name."""
    request = ExportTraceServiceRequest()
    group = request.resource_spans.add().scope_spans.add()
    group.scope.name = scope
    span = group.spans.add(trace_id=b"t" * 16, span_id=b"s" * 8, name=name, start_time_unix_nano=NOW)
    _put(span.attributes, attributes)
    for event, of_event in (events or {}).items():
        _put(span.events.add(name=event).attributes, of_event)
    spans, contents = canonical_spans(decode_spans([_record(Signal.TRACES, request)]))
    assert spans.cast(SPANS).schema == SPANS  # text that repeats is dictionary-encoded
    assert contents.schema == CONTENTS
    (row,) = spans.to_pylist()
    row["attributes"] = dict(row["attributes"])
    assert {item["span_id"] for item in contents.to_pylist()} <= {row["span_id"]}
    return row, {item["name"]: item["content"] for item in contents.to_pylist()}


def log_rows(event_name: str, body: str, attributes: Mapping[str, Value]) -> tuple[dict[str, Any], dict[str, str]]:
    request = ExportLogsServiceRequest()
    record = request.resource_logs.add().scope_logs.add().log_records.add(event_name=event_name, time_unix_nano=NOW)
    record.body.string_value = body
    _put(record.attributes, attributes)
    logs, contents = canonical_logs(decode_logs([_record(Signal.LOGS, request)]))
    assert logs.schema == LOGS
    (row,) = logs.to_pylist()
    return row, {item["name"]: item["content"] for item in contents.to_pylist()}


def _put(into: Any, attributes: Mapping[str, Value]) -> None:
    names = {str: "string_value", bool: "bool_value", int: "int_value", float: "double_value"}
    for key, value in attributes.items():
        content: Any = {names[type(value)]: value}
        into.add(key=key, value=AnyValue(**content))


def _record(signal: Signal, request: Any) -> Record:
    return Record(signal, Encoding.PROTOBUF, NOW, "test", request.SerializeToString())


def told(name: str, *columns: str) -> list[tuple[Any, ...]]:
    return [tuple(row[column] for column in columns) for row in capture(name).spans.to_pylist()]


# Real captures


def test_pydantic_ai_by_its_own_emitter() -> None:
    columns = ("operation", "agent_name", "tool_name", "tool_call_id", "request_model", "input_tokens", "output_tokens")
    name = "weather_agent"
    chat = ("chat", name, None, None, "fake-model", 11, 7)
    weather = ("execute_tool", name, "get_weather", "call_get_weather_0", None, None, None)
    add = ("execute_tool", name, "add", "call_add_1", None, None, None)
    # The agent's aggregate is no usage of its own: it would count each token twice.
    agent = ("invoke_agent", name, None, None, "fake-model", None, None)
    for version in ("v2", "v5", "v6"):
        taken = f"pydantic-ai-2.68.0__native-{version}.multi_tool.json"
        assert told(taken, *columns) == [chat, weather, add, chat, agent]
        assert set(told(taken, "dialect")) == {("pydantic_ai",)}
        (agent_row,) = [row for row in capture(taken).spans.to_pylist() if row["operation"] == "invoke_agent"]
        assert dict(agent_row["attributes"])["gen_ai.aggregated_usage.input_tokens"] == "22"


def test_the_retry_marker_of_pydantic_ai_stays_with_the_span() -> None:
    spans = capture("pydantic-ai-2.68.0__native-v6.tool_retry.json").spans.to_pylist()
    (tool,) = [row for row in spans if row["tool_name"] == "flaky"]
    assert tool["status"] == "error"
    assert dict(tool["attributes"])["pydantic_ai.tool.retry.cause"] == "model_retry"


def test_util_genai_writes_the_conventions() -> None:
    name = "util-genai-1.3b0__manual.ok.json"
    assert told(name, "operation", "agent_name", "provider_name", "request_model", "finish_reasons") == [
        ("chat", None, "openai", "fake-model", '["tool_call"]'),
        ("execute_tool", "weather_agent", None, None, None),
        ("retrieval", None, None, None, None),
        ("embeddings", None, "openai", "emb", None),
        ("invoke_agent", "weather_agent", None, "fake-model", None),
        ("invoke_agent", "remote", "aws.bedrock", None, None),
        ("invoke_workflow", None, None, None, None),
    ]
    assert [row for (row,) in told(name, "workflow_name") if row] == ["trip_planner"]
    errors = told("util-genai-1.3b0__manual.error.json", "operation", "status", "error_type")
    assert errors == [("execute_tool", "error", "ValueError"), ("invoke_agent", "error", "TimeoutError")]


def test_the_openai_and_langchain_instrumentations() -> None:
    columns = ("operation", "provider_name", "response_model", "response_id", "input_tokens", "cache_read_tokens")
    chat = ("chat", "openai", "gpt-4o-mini-2024-07-18", "chatcmpl-1", 20, 8)
    assert told("openai-3.57.0__otel-genai-openai-1.3b0.chat_tool.json", *columns) == [chat, chat]
    astream = "langgraph-1.2.24__otel-genai-langchain-1.3b0.astream.json"
    assert told(astream, "operation", "conversation_id", "tool_call_id", "cache_read_tokens") == [
        ("chat", "thread-7", None, 4),
        ("execute_tool", None, "call_get_weather_0", None),
        ("chat", "thread-7", None, 4),
        ("invoke_agent", "thread-7", None, None),
    ]


# Instrumentations that name contents as the conventions do; test_dialects looks at the texts in all others.
CAPTURED = sorted(path.name for path in FOLDER.glob("*.json") if re.search("otel-genai|util-genai|native-v", path.name))
IS_CONTENT = re.compile(
    r"gen_ai\.(input|output)\.messages|gen_ai\.system_instructions|gen_ai\.tool\.(definitions|call\.(arguments|result))"
    r"|tool_arguments|tool_response|final_result|pydantic_ai\.all_messages|model_request_parameters"
    r"|gen_ai\.retrieval\.(documents|query\.text)"
)


@pytest.mark.parametrize("name", [name for name in CAPTURED if ".logs." not in name])
def test_no_contents_stay_with_a_captured_span_and_none_is_lost(name: str) -> None:
    spans, contents = canonical_spans(decode_spans([_captured(name, Signal.TRACES, ExportTraceServiceRequest)]))
    kept = [key for maps in spans["attributes"].to_pylist() for key, _ in maps]
    assert kept
    assert [key for key in kept if IS_CONTENT.fullmatch(key)] == []
    assert sorted(contents["name"].to_pylist()) == sorted(_content_keys(name))


@pytest.mark.parametrize("name", [name for name in CAPTURED if ".logs." in name])
def test_no_contents_stay_with_a_captured_log_and_none_is_lost(name: str) -> None:
    logs, contents = canonical_logs(decode_logs([_captured(name, Signal.LOGS, ExportLogsServiceRequest)]))
    kept = [key for maps in logs["attributes"].to_pylist() for key, _ in maps]
    assert [key for key in kept if IS_CONTENT.fullmatch(key)] == []
    assert sorted(contents["name"].to_pylist()) == sorted(_content_keys(name))


def _captured(name: str, signal: Signal, message: Any) -> Record:
    request = message()
    parse((FOLDER / name).read_bytes(), request)
    return _record(signal, request)


def _content_keys(name: str) -> list[str]:
    found: list[str] = re.findall(r'"key": ?"([^"]+)"', (FOLDER / name).read_text())
    return [key for key in found if IS_CONTENT.fullmatch(key)]


# Names and values


@pytest.mark.parametrize(
    ("key", "value", "column", "expected"),
    [
        ("gen_ai.system", "openai", "provider_name", "openai"),
        ("gen_ai.system", "az.ai.openai", "provider_name", "azure.ai.openai"),
        (semconv.PROVIDER_NAME, "xai", "provider_name", "x_ai"),
        (semconv.PROVIDER_NAME, "langgraph", "provider_name", None),
        ("gen_ai.usage.prompt_tokens", 5, "input_tokens", 5),
        ("gen_ai.usage.completion_tokens", 6, "output_tokens", 6),
        ("gen_ai.usage.cache_creation.input_tokens", 7, "cache_write_tokens", 7),
        ("gen_ai.usage.cache_read_input_tokens", 8, "cache_read_tokens", 8),
        (semconv.INPUT_TOKENS, "12", "input_tokens", 12),
        (semconv.INPUT_TOKENS, '"12"', "input_tokens", 12),
        (semconv.INPUT_TOKENS, 12.0, "input_tokens", 12),
        (semconv.INPUT_TOKENS, "many", "input_tokens", None),
        (semconv.INPUT_TOKENS, True, "input_tokens", None),
        (semconv.INPUT_TOKENS, 10**18, "input_tokens", None),
        (semconv.AGENT_NAME, '"desk"', "agent_name", "desk"),
        (semconv.AGENT_NAME, '"half', "agent_name", '"half'),
        (semconv.AGENT_NAME, '"\\ud800"', "agent_name", '"\\ud800"'),
        (semconv.AGENT_NAME, "__REDACTED__", "agent_name", None),
        (semconv.FINISH_REASONS, "stop", "finish_reasons", '["stop"]'),
        (semconv.FINISH_REASONS, '["stop"]', "finish_reasons", '["stop"]'),
        (semconv.OPERATION_NAME, "unknown", "operation", None),
        (semconv.OPERATION_NAME, "plan", "operation", "plan"),
        (semconv.TASK_CLASS, "refund", "task_class", "refund"),
        (semconv.REPETITION, 3, "repetition", 3),
        (semconv.RUN_CONFIDENCE, 71, "confidence", 71.0),
        (semconv.RUN_CONFIDENCE, "1e999", "confidence", None),
        (semconv.RUN_CONFIDENCE, "\t5", "confidence", None),
    ],
)
def test_a_value_is_right_or_null(key: str, value: Value, column: str, expected: Any) -> None:
    assert rows({semconv.TOOL_TYPE: "function", key: value})[0][column] == expected


def test_the_current_name_wins_over_an_older_one() -> None:
    row, _ = rows({"gen_ai.usage.prompt_tokens": 1, semconv.INPUT_TOKENS: 2, "gen_ai.system": "a", "error.type": "E"})
    assert (row["input_tokens"], row["provider_name"], row["error_type"]) == (2, "a", "E")
    assert row["attributes"]["gen_ai.usage.prompt_tokens"] == "1"


def test_a_span_that_is_not_about_genai() -> None:
    row, contents = rows({"agent_name": "proxy", "events": "3", "error.type": "timeout"}, scope="http")
    assert (row["dialect"], row["agent_name"], row["operation"], row["error_type"]) == (None, None, None, "timeout")
    assert row["attributes"] == {"agent_name": "proxy", "events": "3", "error.type": "timeout"}
    assert contents == {}


def test_names_that_only_one_dialect_has_count_there() -> None:
    row, contents = rows({"agent_name": "desk", "tool_response": "no"}, scope="pydantic-ai")
    assert (row["dialect"], row["agent_name"]) == ("pydantic_ai", "desk")
    assert contents == {"tool_response": "no"}


def test_versions_and_strata_stay_where_derivation_reads_them() -> None:
    attributes = {"surefoot.versions.prompt": "7", "surefoot.stratum.tier": "gold", "gen_ai.prompt.version": "2"}
    row, contents = rows(attributes)
    assert row["attributes"] == attributes
    assert contents == {}


@given(
    st.dictionaries(
        st.sampled_from([semconv.INPUT_TOKENS, semconv.OUTPUT_TOKENS, semconv.REPETITION, semconv.RUN_CONFIDENCE]),
        st.text('0123456789.eE+-" \t\n[x', max_size=8) | st.text(max_size=5) | st.floats() | st.integers(-9, 2**63 - 1),
    )
)
@settings(deadline=None, max_examples=50)
def test_numbers_from_any_text(texts: dict[str, Value]) -> None:
    row, _ = rows(texts)
    columns = {
        semconv.INPUT_TOKENS: "input_tokens",
        semconv.OUTPUT_TOKENS: "output_tokens",
        semconv.REPETITION: "repetition",
        semconv.RUN_CONFIDENCE: "confidence",
    }
    for key, column in columns.items():
        if row[column] is None:
            continue
        read = float(str(texts[key]).strip('" '))
        assert math.isfinite(read)
        assert row[column] == (read if column == "confidence" else int(float(read)))


@given(span_batches)
@settings(deadline=None, max_examples=40)
def test_random_spans_keep_their_rows(records: list[Record]) -> None:
    raw = decode_spans(records)
    spans, _ = canonical_spans(raw)
    assert spans.cast(SPANS).schema == SPANS  # text that repeats is dictionary-encoded
    spans.validate(full=True)
    for name in ("trace_id", "span_id", "name", "attributes", "events", "links", "date"):
        assert spans[name].to_pylist() == raw[name].to_pylist()


# Contents


def test_contents_leave_the_attributes_of_spans_and_of_their_events() -> None:
    row, contents = rows(
        {semconv.INPUT_MESSAGES: "[]", "gen_ai.prompt.0.content": "hi", semconv.TOOL_NAME: "t"},
        events={"gen_ai.content": {semconv.TOOL_RESULT: "42", "k": "v"}, "exception": {"exception.type": "E"}},
    )
    assert contents == {semconv.INPUT_MESSAGES: "[]", "gen_ai.prompt.0.content": "hi", semconv.TOOL_RESULT: "42"}
    assert row["attributes"] == {semconv.TOOL_NAME: "t"}
    events = [(event["name"], event["attributes"]) for event in row["events"]]
    assert events == [("gen_ai.content", [("k", "v")]), ("exception", [("exception.type", "E")])]


def test_the_body_of_a_message_event_is_a_content() -> None:
    row, contents = log_rows("gen_ai.user.message", "my card is lost", {"k": "v"})
    assert (row["body"], contents) == (None, {"gen_ai.user.message": "my card is lost"})
    row, contents = log_rows("device.app.lifecycle", "started", {semconv.INPUT_MESSAGES: "[]"})
    assert (row["body"], contents) == ("started", {semconv.INPUT_MESSAGES: "[]"})


SECRET = "let me think"
REASONING: list[Any] = [
    {"type": "reasoning", "content": SECRET},
    {"type": "thinking", "thinking": SECRET, "signature": "x"},
    {"part_kind": "thinking", "content": SECRET},
    {"text": SECRET, "thought": True},
    {"role": "assistant", "reasoning_content": SECRET},
    {"type": ["text"], "reasoning": {"text": SECRET}},
    {"content": json.dumps([{"type": "thinking", "thinking": SECRET}])},
    json.dumps({"content": json.dumps({"type": "reasoning", "content": SECRET})}),
    "{'type': 'thinking', 'thinking': '" + SECRET + "'}",
]


@pytest.mark.parametrize("part", REASONING)
def test_reasoning_is_taken_out_and_the_rest_is_kept(part: Any) -> None:
    message = [{"role": "assistant", "parts": [{"type": "text", "content": "answer"}, part]}]
    for content in (json.dumps(message), json.dumps(json.dumps(message))):
        _, contents = rows({semconv.OUTPUT_MESSAGES: content})
        assert SECRET not in contents[semconv.OUTPUT_MESSAGES]
        assert "answer" in contents[semconv.OUTPUT_MESSAGES]


@pytest.mark.parametrize(
    "content",
    [
        "{'type': 'thinking', 'x': 1}",
        '[{"type":"thinking", "thinking":"cut',
        '{"a":' * 5000 + '"thinking"' + "}" * 5000,
    ],
)
def test_what_mentions_reasoning_and_cannot_be_read_is_not_kept(content: str) -> None:
    row, contents = rows({semconv.OUTPUT_MESSAGES: content})
    assert contents == {}
    assert row["attributes"] == {}


@pytest.mark.parametrize("content", ["I was thinking", 'the word "thinking" is fine here', '[{"type":"text"}]', ""])
def test_other_contents_are_kept_byte_for_byte(content: str) -> None:
    assert rows({semconv.OUTPUT_MESSAGES: content})[1] == {semconv.OUTPUT_MESSAGES: content}


def test_half_a_surrogate_pair_in_json_is_no_trouble() -> None:
    cleaned = without_reasoning(pa.array(['[{"type":"thinking"},"\\ud800"]']))
    assert json.loads(cleaned[0].as_py()) == ["\ud800"]


@pytest.mark.parametrize(
    ("scope", "attributes"),
    [
        (
            "openinference.instrumentation.langchain",
            {"openinference.span.kind": "CHAIN", "metadata": '{"lc_agent_name": "helper", "langgraph_node": "tools"}'},
        ),
        ("langsmith", {"langsmith.span.kind": "chain", "langsmith.metadata.lc_agent_name": "helper"}),
    ],
)
def test_a_langchain_agent_is_the_chain_that_bears_the_agents_name(scope: str, attributes: dict[str, Value]) -> None:
    """The name is in the metadata of everything that runs inside of the agent."""
    found, _ = rows(attributes, scope, name="helper")
    assert (found["operation"], found["agent_name"]) == ("invoke_agent", "helper")
    found, _ = rows(attributes, scope, name="tools")
    assert found["operation"] == "chain"
