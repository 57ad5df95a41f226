"""What leaves the process: foreign content dropped, reasoning gone, secrets replaced, everything else untouched."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry._logs import LogRecord
from opentelemetry.sdk._logs import ReadableLogRecord
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanLimits, TracerProvider
from opentelemetry.trace import Link, SpanContext, Status, StatusCode

from surefoot.instrumentation import PATTERNS, Pattern, Redaction
from surefoot.instrumentation.cleaning import Cleaner
from surefoot.instrumentation.content import CaptureMode
from surefoot.instrumentation.redaction import BUILT_IN, is_card_number

OFF, BOTH = CaptureMode(spans=False, events=False), CaptureMode(spans=True, events=True)
TRACER = TracerProvider(span_limits=SpanLimits(max_span_attributes=12)).get_tracer("foreign")

SECRETS = [
    "ada@example.com",
    "Bearer abcdefghijkl.mnop",
    "sk-proj-abcdefghijklmnopqrstu",
    "AKIAABCDEFGHIJKLMNOP",
    "ghp_abcdefghijklmnopqrstuvwx",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJlMTIz",
    "4111 1111 1111 1111",
    "5500-0000-0000-0004",
    "api_key=abcdef123456",
    'password: "hunter2hunter2"',
]


def span_of(attributes: dict[str, Any], **more: Any) -> ReadableSpan:
    span = TRACER.start_span("s", attributes=attributes, **more)
    span.end()
    assert isinstance(span, ReadableSpan)
    return span


def cleaned(
    attributes: dict[str, Any], redaction: Redaction | None = BUILT_IN, capture: CaptureMode = OFF
) -> dict[str, Any]:
    return dict(Cleaner(redaction, capture).span(span_of(attributes)).attributes or {})


def log_of(body: Any, attributes: dict[str, Any], event_name: str | None = None) -> ReadableLogRecord:
    record = LogRecord(body=body, attributes=attributes, event_name=event_name, timestamp=1)
    return ReadableLogRecord(record, Resource.get_empty())


def test_a_span_with_nothing_to_clean_is_the_same_object() -> None:
    span = span_of({"gen_ai.operation.name": "chat", "gen_ai.usage.input_tokens": 5, "words": ["a", "b"]})
    assert Cleaner(BUILT_IN, OFF).span(span) is span
    record = log_of("fine", {"a": 1})
    assert Cleaner(BUILT_IN, OFF).log(record) is record


@pytest.mark.parametrize(
    "key",
    [
        *("gen_ai.input.messages", "gen_ai.output.messages", "gen_ai.system_instructions", "gen_ai.tool.definitions"),
        *("pydantic_ai.all_messages", "final_result", "tool_arguments", "gen_ai.prompt.0.content", "input.value"),
        *(
            "crew_tasks",
            "output",
            "traceloop.entity.output",
            "llm.input_messages.0.message.content",
            "gen_ai.tool.call.result",
        ),
    ],
)
def test_content_that_others_recorded_is_dropped_unless_capture_is_on(key: str) -> None:
    assert cleaned({key: "hello", "kept": 1}) == {"kept": 1}
    assert cleaned({key: "hello", "kept": 1}, capture=BOTH) == {key: "hello", "kept": 1}


def test_events_links_and_status_are_cleaned_too() -> None:
    link = Link(SpanContext(1, 2, is_remote=False), {"who": "ada@example.com"})
    span = TRACER.start_span("s", links=[link])
    span.add_event("gen_ai.user.message", {"content": "hello"}, timestamp=5)
    span.add_event("exception", {"exception.message": "ada@example.com is unknown"}, timestamp=6)
    span.set_status(Status(StatusCode.ERROR, "ada@example.com is unknown"))
    span.end()
    assert isinstance(span, ReadableSpan)
    clean = Cleaner(BUILT_IN, OFF).span(span)
    assert [(event.name, dict(event.attributes or {}), event.timestamp) for event in clean.events] == [
        ("gen_ai.user.message", {}, 5),
        ("exception", {"exception.message": "[REDACTED] is unknown"}, 6),
    ]
    assert [dict(link.attributes or {}) for link in clean.links] == [{"who": "[REDACTED]"}]
    assert (clean.status.status_code, clean.status.description) == (StatusCode.ERROR, "[REDACTED] is unknown")
    # The original is another exporter's, too.
    assert span.status.description == "ada@example.com is unknown"


def test_a_cleaned_span_is_otherwise_the_same() -> None:
    span = span_of({**{f"k{n}": n for n in range(20)}, "mail": "ada@example.com"})
    clean = Cleaner(BUILT_IN, OFF).span(span)
    assert clean is not span
    names = ("name", "context", "parent", "kind", "start_time", "end_time", "resource", "instrumentation_scope")
    assert all(getattr(clean, name) is getattr(span, name) for name in names)
    assert (clean.dropped_attributes, clean.dropped_events, clean.dropped_links) == (9, 0, 0)


@pytest.mark.parametrize("secret", SECRETS)
def test_secrets_are_replaced_wherever_they_stand(secret: str) -> None:
    text = f"before {secret} after"
    attributes = cleaned({"a": text, "list": ["x", text], "gen_ai.output.messages": json.dumps([text])}, capture=BOTH)
    for value in (attributes["a"], attributes["list"][1]):
        assert value.startswith("before [REDACTED]")
        assert value.endswith("after")
    record = Cleaner(BUILT_IN, BOTH).log(log_of({"deep": [text]}, {"a": text}))
    assert "[REDACTED]" in str(record.log_record.body)
    assert secret not in str((attributes, record.log_record.body, record.log_record.attributes))


@given(st.text(max_size=20), st.sampled_from(SECRETS), st.text(max_size=20))
def test_a_secret_between_any_texts_does_not_leave(before: str, secret: str, after: str) -> None:
    assert secret not in str(cleaned({"note": f"{before} {secret} {after}"}))


@given(st.integers(10**12, 10**19 - 1))
def test_numbers_go_only_if_they_are_card_numbers(number: int) -> None:
    redacted = cleaned({"note": f"n {number} n"}) != {"note": f"n {number} n"}
    assert redacted == is_card_number(str(number))


def test_ids_and_measurements_are_left_alone() -> None:
    kept = {
        "gen_ai.conversation.id": "4111111111111111",
        "surefoot.task.id": "4111111111111111",
        "order_id": "4111111111111111",
        "trace": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        "uuid": "41111111-1111-4111-8111-111111111111",
        "seconds": "1700000000.4111111111111",
    }
    assert cleaned(kept) == kept
    assert is_card_number("4111111111111111")


def test_a_callable_sees_every_text_after_the_patterns() -> None:
    seen: list[tuple[str, str]] = []

    def shout(key: str, text: str) -> str:
        seen.append((key, text))
        return text.upper()

    attributes = {"a": "x ada@example.com", "n": 1, "many": ["y"], "gen_ai.operation.name": "chat"}
    assert cleaned(attributes, Redaction(call=shout)) == {
        "a": "X [REDACTED]",
        "n": 1,
        "many": ["Y"],
        "gen_ai.operation.name": "chat",
    }
    assert seen == [("a", "x [REDACTED]"), ("many", "y")]


@pytest.mark.parametrize("wrong", [lambda _key, _text: 1 / 0, lambda _key, _text: None])
def test_a_callable_that_fails_lets_nothing_out(wrong: Any) -> None:
    cleaner = Cleaner(Redaction(call=wrong), OFF)
    span = cleaner.span(span_of({"a": "raw", "n": 1}))
    assert dict(span.attributes or {}) == {"a": "[REDACTED]", "n": 1}
    assert cleaner.log(log_of("raw", {})).log_record.body == "[REDACTED]"
    assert cleaner.failures == 2


def test_patterns_can_be_replaced_or_left_out() -> None:
    import re

    own = Redaction(patterns=(*PATTERNS, Pattern("order", re.compile(r"ORD-\d+"))))
    assert cleaned({"a": "ORD-17 of ada@example.com"}, own) == {"a": "[REDACTED] of [REDACTED]"}
    assert cleaned({"a": "ada@example.com"}, None) == {"a": "ada@example.com"}


def test_reasoning_that_others_recorded_never_leaves() -> None:
    flat = {
        "llm.output_messages.0.message.contents.0.message_content.type": "reasoning",
        "llm.output_messages.0.message.contents.0.message_content.text": "secret thought",
        "llm.output_messages.0.message.contents.1.message_content.type": "text",
        "llm.output_messages.0.message.contents.1.message_content.text": "hi",
        "gen_ai.completion.0.reasoning": "secret thought",
        "gen_ai.output.messages": '[{"parts":[{"type":"thinking","content":"secret thought"}]}]',
        "gen_ai.usage.reasoning.output_tokens": 7,
    }
    assert cleaned(flat, capture=BOTH) == {
        "llm.output_messages.0.message.contents.1.message_content.type": "text",
        "llm.output_messages.0.message.contents.1.message_content.text": "hi",
        "gen_ai.output.messages": '[{"parts": []}]',
        "gen_ai.usage.reasoning.output_tokens": 7,
    }


def test_log_records_that_are_messages_lose_their_body_unless_capture_is_on() -> None:
    body = {"content": "hello", "parts": [{"type": "reasoning", "content": "x"}]}
    for record in (log_of(body, {}, "gen_ai.user.message"), log_of(body, {"event.name": "gen_ai.choice"})):
        assert Cleaner(None, OFF).log(record).log_record.body is None
        clean = Cleaner(None, BOTH).log(record).log_record
        assert clean.body == {"content": "hello", "parts": []}
        assert (clean.timestamp, record.log_record.body) == (1, body)
