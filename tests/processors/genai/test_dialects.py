"""Every instrumentation's attributes become the same columns, and none leaves a message in them."""

from __future__ import annotations

import ast
import json
import re
from collections import Counter
from functools import cache
from typing import Any, Final

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, ArrayValue, KeyValueList

from support.captures import FOLDER
from support.otlp_requests import NOW
from support.told import DIALECT_OF_SCOPE, TOLD
from surefoot.collector.json_codec import parse
from surefoot.collector.segment import Encoding, Record, Signal
from surefoot.instrumentation import semconv
from surefoot.processors.genai.columns import canonical_logs, canonical_spans
from surefoot.processors.genai.dialects import DIALECTS, openlit, reading
from surefoot.processors.genai.dialects.dialect import Source
from surefoot.processors.lake.schema import SPANS
from surefoot.processors.otlp import decode_logs, decode_spans

Row = dict[str, Any]
MODELS: Final = (*semconv.MODEL_OPERATIONS, semconv.EMBEDDINGS)
CAPTURES: Final = [
    str(path.relative_to(FOLDER))
    for path in sorted(FOLDER.rglob("*.json"))
    if path.name != "truth.json" and ".logs." not in path.name
]
LOGS: Final = [path.name for path in sorted(FOLDER.glob("*.logs.json"))]


def record(signal: Signal, message: Any, name: str) -> Record:
    parse((FOLDER / name).read_bytes(), message)
    return Record(signal, Encoding.PROTOBUF, NOW, "test", message.SerializeToString())


@cache
def spans_and_contents(name: str) -> tuple[list[Row], list[Row]]:
    spans, contents = canonical_spans(decode_spans([record(Signal.TRACES, ExportTraceServiceRequest(), name)]))
    return spans.to_pylist(), contents.to_pylist()


def made(name: str, *columns: str) -> list[tuple[Any, ...]]:
    return [tuple(row[column] for column in columns) for row in spans_and_contents(f"made/{name}.json")[0]]


def one(attributes: dict[str, Any], scope: str = "", name: str = "", event: dict[str, str] | None = None) -> Row:
    """The row of one span."""
    request = ExportTraceServiceRequest()
    group = request.resource_spans.add().scope_spans.add()
    group.scope.name = scope
    span = group.spans.add(trace_id=b"t" * 16, span_id=b"s" * 8, start_time_unix_nano=NOW, name=name)
    for key, value in attributes.items():
        span.attributes.add(key=key, value=any_value(value))
    for key, value in (event or {}).items():
        span.events.add(name="gen_ai.choice").attributes.add(key=key, value=any_value(value))
    sent = Record(Signal.TRACES, Encoding.PROTOBUF, NOW, "test", request.SerializeToString())
    row: Row
    (row,) = canonical_spans(decode_spans([sent]))[0].to_pylist()
    return row


def any_value(value: Any) -> AnyValue:
    if value is None:
        return AnyValue()
    if isinstance(value, list):
        return AnyValue(array_value=ArrayValue(values=[any_value(item) for item in value]))
    if isinstance(value, dict):
        pairs = KeyValueList()
        for key, item in value.items():
            pairs.values.add(key=key, value=any_value(item))
        return AnyValue(kvlist_value=pairs)
    names = {str: "string_value", bool: "bool_value", int: "int_value", float: "double_value", bytes: "bytes_value"}
    content: Any = {names[type(value)]: value}
    return AnyValue(**content)


# Real captures


@pytest.mark.parametrize(("told", "name"), [(told, name) for told, names in TOLD.items() for name in names])
def test_the_columns_say_what_was_recorded(told: str, name: str) -> None:
    counts = Counter(_line(row) for row in spans_and_contents(f"{name}.json")[0])
    del counts[None]
    assert "; ".join(f"{count} {line}" for line, count in sorted(counts.items())) == told


def _line(row: Row) -> str | None:
    operation = row["operation"]
    if operation not in (*MODELS, semconv.EXECUTE_TOOL, semconv.INVOKE_AGENT, "handoff"):
        return None
    who = row["request_model"] if operation in MODELS else row["agent_name"]
    who = row["tool_name"] if operation == semconv.EXECUTE_TOOL else who
    tokens = "" if row["input_tokens"] is None else f" {row['input_tokens']}/{row['output_tokens']}"
    return f"{operation} {who or '-'}{tokens}"


def test_every_capture_of_spans_is_told_of() -> None:
    told = sorted(f"{name}.json" for names in TOLD.values() for name in names)
    assert told == [name for name in CAPTURES if not name.startswith("made/")]


@pytest.mark.parametrize("name", [name for name in CAPTURES if not name.startswith("made/")])
def test_a_scope_is_one_dialect(name: str) -> None:
    for row in spans_and_contents(name)[0]:
        assert row["dialect"] == DIALECT_OF_SCOPE[row["scope_name"]]


def test_conversations() -> None:
    """An explicit conversation counts before a thread, a thread before a session."""
    for instrumentation in ("langsmith-otel-0.15.1", "openinference-langchain-0.1.80", "traceloop-langchain-0.62.4"):
        rows, _ = spans_and_contents(f"langgraph-1.2.24__{instrumentation}.multi_tool.json")
        named = {row["conversation_id"] for row in rows if row["operation"] != semconv.CREATE_AGENT}
        assert named == {"thread-7"}
    for name, conversation in {"langfuse-5.0.4": "sess-1", "strands-agents-1.62.0__native": "sess-3"}.items():
        assert {row["conversation_id"] for row in spans_and_contents(f"{name}.multi_tool.json")[0]} == {conversation}


def test_cache_reads_and_finish_reasons_and_errors() -> None:
    def first(name: str, operation: str) -> Row:
        return next(row for row in spans_and_contents(f"{name}.json")[0] if row["operation"] == operation)

    call = first("langgraph-1.2.24__openinference-langchain-0.1.80.multi_tool", "chat")
    assert (call["cache_read_tokens"], call["finish_reasons"], call["provider_name"]) == (4, '["tool_call"]', "openai")
    call = first("anthropic-2.14.0__native.tool_runner", "chat")
    assert (call["cache_read_tokens"], call["cache_write_tokens"], call["finish_reasons"]) == (100, 5, '["tool_call"]')
    call = first("agent-framework-core-1.23.0__native.multi_tool", "chat")
    assert (call["finish_reasons"], call["response_id"]) == ('["tool_call"]', "resp_1")
    call = first("openai-3.57.0__openinference-openai-0.1.66-dualwrite.chat_tool", "chat")
    assert (call["request_model"], call["response_model"]) == ("gpt-4o-mini", "gpt-4o-mini-2024-07-18")
    for name, error in {
        "langfuse-5.0.4.tool_error": "_OTHER",
        "openai-agents-0.20.0__openlit-1.45.0.tool_error": "_OTHER",  # a sentence is no type
        "openai-agents-0.24.0__logfire-5.4.0.tool_error": "_OTHER",
        "strands-agents-1.62.0__native.tool_error": "_OTHER",
        "fastmcp-4.2.3_mcp-2.3.0__native.tool_error": "tool_error",
    }.items():
        assert first(name, "execute_tool")["error_type"] == error


# Made by hand, after the sources of those that were not recorded


def test_vercel_ai_sdk() -> None:
    columns = ("operation", "agent_name", "tool_name", "request_model", "input_tokens", "output_tokens")
    assert made("vercel-ai-5", *columns) == [
        ("invoke_agent", "order_desk", None, "gpt-4o-mini", 30, 9),
        ("chat", None, None, "gpt-4o-mini", 12, 4),
        ("execute_tool", None, "find_order", None, None, None),
        ("chat", None, None, "gpt-4o-mini", 18, 5),
    ]
    more = ("provider_name", "finish_reasons", "response_id", "cache_read_tokens", "time_to_first_chunk")
    assert made("vercel-ai-5", *more)[1] == ("openai", '["tool_call"]', "resp-1", 8, 0.25)
    assert made("vercel-ai-5", "provider_name", "tool_call_id", "dialect")[2:] == [
        (None, "call-1", "vercel_ai"),
        ("gcp.vertex_ai", None, "vercel_ai"),
    ]


def test_claude_code_counts_its_cache_apart() -> None:
    columns = ("operation", "agent_name", "tool_name", "request_model", "input_tokens", "output_tokens", "error_type")
    assert made("claude-code", *columns) == [
        ("invoke_agent", "claude-code", None, None, None, None, None),
        ("chat", None, None, "claude-x", 113, 7, None),
        ("execute_tool", None, "Bash", None, None, None, None),
        (None, None, None, None, None, None, None),
        (None, None, None, None, None, None, "ShellError"),
        ("execute_tool", None, None, None, None, None, "_OTHER"),
    ]
    assert made("claude-code", "provider_name", "conversation_id", "time_to_first_chunk")[1] == (
        "anthropic",
        "s-2",
        0.8,
    )


def test_gemini_cli_and_agentcore() -> None:
    columns = ("dialect", "operation", "agent_name", "tool_name", "conversation_id", "input_tokens", "error_type")
    assert made("gemini-cli", *columns) == [
        ("gemini_cli", "invoke_agent", "gemini-cli", None, "s-3", None, None),
        ("gemini_cli", "chat", None, None, None, 20, None),
        ("gemini_cli", "execute_tool", None, "read_file", None, None, None),
    ]
    assert made("agentcore", *columns) == [
        ("agentcore", "invoke_workflow", None, None, "s-4", None, None),
        ("strands", "invoke_agent", "order_desk", None, "s-4", None, None),
        ("strands", "execute_tool", None, "find_order", None, None, "CancelledError"),
    ]


def test_mlflow_encodes_every_value_as_json() -> None:
    columns = ("operation", "agent_name", "tool_name", "request_model", "provider_name", "input_tokens", "status")
    assert made("mlflow-3", *columns) == [
        ("invoke_agent", "order_desk", None, None, None, None, "unset"),
        ("chat", None, None, "gpt-4o-mini", "openai", 12, "unset"),
        ("execute_tool", None, "find_order", None, None, None, "error"),
        (None, None, None, None, None, None, "unset"),
    ]


def test_google_adk_of_old_has_it_in_names() -> None:
    columns = ("operation", "agent_name", "tool_name", "tool_call_id", "conversation_id", "provider_name")
    assert made("google-adk-1", *columns) == [
        ("invoke_workflow", None, None, None, None, None),
        ("invoke_agent", "order_desk", None, None, None, None),
        ("chat", None, None, None, "s-6", None),
        ("execute_tool", None, "find_order", None, None, None),
    ]


def test_a_kind_of_traceloop_counts_before_the_operation() -> None:
    columns = ("dialect", "operation", "agent_name", "tool_name", "provider_name", "input_tokens")
    assert made("traceloop-openai-agents", *columns) == [
        ("traceloop", "invoke_workflow", None, None, None, None),
        ("traceloop", "invoke_agent", "triage", None, "aws.bedrock", None),
        ("traceloop", "execute_tool", None, "find_order", None, None),
        ("traceloop", "handoff", None, None, None, None),
        ("traceloop", "chat", None, None, "openai", 12),
        ("traceloop", "invoke_workflow", None, None, None, None),
        ("traceloop", None, None, None, None, None),
        ("traceloop", "invoke_agent", "Clerk", None, None, None),
    ]


def test_openinference_kinds_and_providers() -> None:
    columns = ("operation", "agent_name", "provider_name", "request_model", "input_tokens", "output_tokens")
    assert made("openinference-google-adk", *columns) == [
        ("chain", None, None, None, None, None),
        ("invoke_agent", "order_desk", None, None, None, None),
        ("chat", None, "azure.ai.openai", "gpt-4o", 12, 4),
        ("retrieval", None, None, None, None, None),
        (None, None, None, None, None, None),
        ("evaluate", None, None, None, None, None),
        ("text_completion", None, "gcp.vertex_ai", None, None, None),
    ]


# Recognition, names and values


@pytest.mark.parametrize(
    ("scope", "key", "dialect"),
    [
        ("opentelemetry.instrumentation.openai_agents", "gen_ai.operation.name", "otel_genai"),
        ("opentelemetry.instrumentation.openai_agents", "traceloop.span.kind", "traceloop"),
        ("opentelemetry.instrumentation.genai.openai", "traceloop.entity.name", "otel_genai"),
        ("strands.telemetry.tracer", "openinference.span.kind", "strands"),
        ("amazon.opentelemetry.distro.instrumentation.openai_agents", "x", "otel_genai"),
        ("my.app", "openinference.span.kind", "openinference"),
        ("my.app", "langfuse.observation.type", "langfuse"),
        ("my.app", "langsmith.span.kind", "langsmith"),
        ("my.app", "mlflow.spanType", "mlflow"),
        ("my.app", "ai.operationId", "vercel_ai"),
        ("my.app", "mcp.method.name", "mcp"),
        ("my.app", "gen_ai.request.model", "otel_genai"),
        ("http", "langfuse.trace.tags", None),  # SDKs that write these on every span of the process
        ("http", "traceloop.association.properties.user_id", None),
        ("http", "session.id", None),
    ],
)
def test_recognised_by_scope_then_by_attribute(scope: str, key: str, dialect: str | None) -> None:
    assert one({key: "x"}, scope)["dialect"] == dialect


@pytest.mark.parametrize(
    ("scope", "attributes", "column", "expected"),
    [
        ("langfuse-sdk", {"langfuse.observation.usage_details": '{"input": 3, "input_cached_tokens": 8}'}, "input", 11),
        ("langfuse-sdk", {"langfuse.observation.usage_details": '{"prompt_tokens": 9, "total": 12}'}, "input", 9),
        ("langfuse-sdk", {"langfuse.observation.usage_details": "{'input': 3}"}, "input", None),
        ("langfuse-sdk", {"langfuse.observation.usage_details": '"{\\"input\\": 3}"'}, "input", 3),
        ("mlflow", {"mlflow.chat.tokenUsage": '{"input_tokens": "7"}'}, "input", 7),
        ("mlflow", {"mlflow.chat.tokenUsage": '{"input_tokens": [7]}'}, "input", None),
        ("openlit.x", {"gen_ai.request.model": "<oa.Model object at 0x7fb361fdaad0>"}, "request_model", None),
        ("openlit.x", {"gen_ai.operation.name": "chat", "gen_ai.tool.name": "asked_for"}, "tool_name", None),
        ("openlit.x", {"error.type": "openai.RateLimitError: 429"}, "error_type", "openai.RateLimitError"),
        ("traceloop.tracer", {"gen_ai.request.model": "unknown"}, "request_model", None),
        ("x", {"gen_ai.response.finish_reasons": ["end_turn", "STOP", "odd"]}, "finish", '["stop","stop","odd"]'),
        ("x", {"gen_ai.response.finish_reasons": '["tool-calls"]'}, "finish", '["tool_call"]'),
        ("x", {"gen_ai.agent.name": ""}, "agent_name", None),
        ("x", {"gen_ai.provider.name": "AWS"}, "provider_name", "aws.bedrock"),
        ("x", {"gen_ai.provider.name": "OpenAI"}, "provider_name", "openai"),
        ("x", {"gen_ai.provider.name": "my-gateway"}, "provider_name", "my-gateway"),
        ("x", {"gen_ai.request.model": "[REDACTED]"}, "request_model", None),
        ("langsmith", {"gen_ai.usage.input_token_details": '{"cache_read": 4}'}, "cache_read", 4),
        ("logfire.openai", {"logfire.msg_template": "Chat Completion with {x!r}"}, "operation", "chat"),
        ("logfire.openai", {"request_data": '{"model": "m"}', "gen_ai.system": "openai"}, "request_model", "m"),
        ("agent_framework", {"gen_ai.agent.id": "5f0c", "gen_ai.agent.name": "a"}, "agent_id", None),
    ],
)  # fmt: skip
def test_a_value_is_right_or_null(scope: str, attributes: dict[str, Any], column: str, expected: Any) -> None:
    names = {"input": "input_tokens", "finish": "finish_reasons", "cache_read": "cache_read_tokens"}
    assert one(attributes, scope)[names.get(column, column)] == expected


KEYS: Final = sorted(
    {
        key
        for dialect in DIALECTS
        for sources in dialect.columns.values()
        for source in sources
        if (key := source.key if isinstance(source, Source) else source) is not None
    }
    | {key for dialect in DIALECTS for key in dialect.contents if "*" not in key and "[" not in key}
)
SCOPES: Final = sorted({scope for dialect in DIALECTS for scope in dialect.scopes | dialect.shared_scopes} | {"app"})
WORDS: Final = ["LLM", '"AGENT"', "TOOL", "agent", "chat", "invoke_agent", "execute_tool", "null", "false", "17"]
texts = st.sampled_from(WORDS) | st.text(max_size=6) | st.builds(repr, st.dictionaries(st.text(max_size=3), st.text()))
scalars = texts | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats() | st.binary(max_size=4) | st.none()
plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | texts,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(texts, inner, max_size=2),
    max_leaves=4,
)
fields = st.dictionaries(st.sampled_from(["input", "output", "model", "input_tokens", "thread_id"]), plain, max_size=3)
values = scalars | st.lists(scalars, max_size=2) | st.dictionaries(texts, scalars, max_size=2)
values |= fields.map(json.dumps) | fields.map(json.dumps).map(json.dumps) | plain.map(json.dumps)


ODD: Final[list[Any]] = [
    *(None, b"", [], {}, [[]], {"": {"": None}}, True, 2**63 - 1, -1.5, float("nan"), "", " ", '"', "{", "[", "null"),
    *('"\\ud800"', '["\\ud800"]', '{"model": "\\ud800", "input": "\\ud800", "thread_id": "\\ud800"}'),
    *('{"input": 1e400, "prompt_tokens": true}', '{"output": {"a": 1}}', '"[1, {}]"', "{'a': None}", "9" * 5000),
    '{"input": ' + "9" * 4300 + "}",
    "[" * 100_000,
]


@pytest.mark.parametrize("value", ODD, ids=[repr(value)[:40] for value in ODD])
def test_an_odd_value_under_every_key_is_no_error(value: Any) -> None:
    request = ExportTraceServiceRequest()
    for scope in SCOPES:
        group = request.resource_spans.add().scope_spans.add()
        group.scope.name = scope
        span = group.spans.add(trace_id=b"t" * 16, span_id=b"s" * 8, start_time_unix_nano=NOW, name="agent")
        for key in KEYS if len(str(value)) < 1000 else KEYS[::25]:
            span.attributes.add(key=key, value=any_value(value))
    sent = Record(Signal.TRACES, Encoding.PROTOBUF, NOW, "test", request.SerializeToString())
    rows, contents = canonical_spans(decode_spans([sent]))
    rows.cast(SPANS).validate(full=True)
    contents.validate(full=True)
    assert rows.num_rows == len(SCOPES)
    assert None not in rows["dialect"].to_pylist()


@given(
    st.lists(
        st.tuples(
            st.sampled_from(SCOPES),
            st.sampled_from(["agent", "call_llm", "agent_run [x]", "handoff to x", "claude_code.tool", "", "x"]),
            st.dictionaries(st.sampled_from(KEYS), values, max_size=12),
        ),
        max_size=4,
    )
)
@settings(deadline=None, max_examples=50)
def test_no_value_of_any_type_is_an_error(spans: list[tuple[str, str, dict[str, Any]]]) -> None:
    request = ExportTraceServiceRequest()
    for scope, name, attributes in spans:
        group = request.resource_spans.add().scope_spans.add()
        group.scope.name = scope
        span = group.spans.add(trace_id=b"t" * 16, span_id=b"s" * 8, start_time_unix_nano=NOW, name=name)
        for key, value in attributes.items():
            span.attributes.add(key=key, value=any_value(value))
    record = Record(Signal.TRACES, Encoding.PROTOBUF, NOW, "test", request.SerializeToString())
    rows, contents = canonical_spans(decode_spans([record]))
    rows.cast(SPANS).validate(full=True)
    contents.validate(full=True)
    assert rows.num_rows == len(spans)


# Contents

# What was said in the captures: by the user, the system, the model and the tools.
SAID: Final = re.compile(
    r"Be brief|Weather in Paris|Paris: 21C|Oslo: 21C|It is sunny|21C and 4|order 4711|4711\}|left the warehouse"
    r"|grep 4711|An error occurred while running the tool"
)
# An error's message and traceback may quote what was said; they stay where errors are looked for.
MAY_QUOTE: Final = re.compile(r"exception\.(message|stacktrace)|langfuse\.observation\.status_message")


def _left(items: list[tuple[str, str | None]]) -> list[tuple[str, str | None]]:
    return [(key, text) for key, text in items if SAID.search(text or "") and not MAY_QUOTE.fullmatch(key)]


@pytest.mark.parametrize("name", CAPTURES)
def test_nothing_that_was_said_stays_in_the_attributes_of_spans(name: str) -> None:
    rows, contents = spans_and_contents(name)
    for row in rows:
        assert _left(row["attributes"]) == []
        for event in row["events"]:
            assert _left(event["attributes"]) == []
    if SAID.search((FOLDER / name).read_text()):
        assert any(SAID.search(row["content"]) for row in contents) or "error" in name or "fatal" in name


@pytest.mark.parametrize("name", LOGS)
def test_nothing_that_was_said_stays_in_logs(name: str) -> None:
    logs, _ = canonical_logs(decode_logs([record(Signal.LOGS, ExportLogsServiceRequest(), name)]))
    for row in logs.to_pylist():
        assert _left([*row["attributes"], ("body", row["body"])]) == []


def test_the_prompts_in_logs_of_coding_agents_are_contents() -> None:
    request = ExportLogsServiceRequest()
    for scope, attributes in {
        "com.anthropic.claude_code.events": {"prompt": "said", "prompt_length": "4", "tool_parameters": "said"},
        "gemini-cli": {"prompt": "said", "function_args": "said", "prompt_length": "4"},
        "other": {"prompt": "choose", "prompt_length": "6"},
    }.items():
        group = request.resource_logs.add().scope_logs.add()
        group.scope.name = scope
        log = group.log_records.add(time_unix_nano=NOW, event_name="user_prompt")
        for key, text in attributes.items():
            log.attributes.add(key=key).value.string_value = text
    sent = Record(Signal.LOGS, Encoding.PROTOBUF, NOW, "test", request.SerializeToString())
    logs, contents = canonical_logs(decode_logs([sent]))
    assert [dict(row) for row in logs["attributes"].to_pylist()] == [
        {"prompt_length": "4"},
        {"prompt_length": "4"},
        {"prompt": "choose", "prompt_length": "6"},
    ]
    assert contents["content"].to_pylist() == ["said"] * 4


def test_a_namespaced_content_leaves_every_span_and_a_bare_one_only_its_own() -> None:
    foreign = {"input.value": "a", "traceloop.entity.input": "b", "llm.input_messages.0.message.content": "c"}
    assert dict(one({**foreign, "output": "d"}, scope="http")["attributes"]) == {"output": "d"}
    assert dict(one({"output": "d", "logfire.span_type": "span"}, scope="logfire.openai")["attributes"]) == {
        "logfire.span_type": "span"
    }
    (event,) = one({}, scope="strands.telemetry.tracer", event={"message": "hi"})["events"]
    assert dict(event["attributes"]) == {}


# The dialects themselves


def test_dialects_are_data_that_fits() -> None:
    columns = set(SPANS.names)
    for dialect in DIALECTS:
        assert set(dialect.columns) <= columns
        assert dialect.scopes or dialect.shared_scopes or dialect.markers
    readers = [
        source.read
        for dialect in DIALECTS
        for sources in dialect.columns.values()
        for source in sources
        if isinstance(source, Source) and source.read is not None
    ]
    for read in readers:
        for text in ("", '"', "{", "[", "1e999", "null", '{"input": 1e400}', "x" * 5000, "[" * 5000):
            assert read(text) is None or isinstance(read(text), str)
    assert ast.literal_eval(reading.finish_reasons('["a"]')) == ["a"]
    assert openlit.DIALECT.columns["agent_id"] == ()


def test_a_column_has_each_text_once_in_its_dictionary() -> None:
    """A Parquet writer takes a dictionary at its word."""
    records = [record(Signal.TRACES, ExportTraceServiceRequest(), name) for name in CAPTURES[::5]]
    spans, _ = canonical_spans(decode_spans(records))
    for column in spans.columns:
        for chunk in column.chunks:
            if pa.types.is_dictionary(chunk.type):
                assert len(set(chunk.dictionary.to_pylist())) == len(chunk.dictionary)
