"""Content capture through the SDK: off unless asked for, in its place, never with reasoning."""

from __future__ import annotations

import json
from typing import Any

import pytest

from surefoot.instrumentation import agent_run, content, model_call, semconv, tool
from surefoot.instrumentation.testing import Capture

MODES = {
    "": (False, False),
    "NO_CONTENT": (False, False),
    "false": (False, False),
    "nonsense": (False, False),
    "SPAN_ONLY": (True, False),
    "EVENT_ONLY": (False, True),
    "span_and_event": (True, True),
    "true": (True, True),
}
ASKED = [{"role": "user", "parts": [{"type": "text", "content": "hello"}]}]
ANSWERED = [
    {
        "role": "assistant",
        "parts": [
            {"type": "reasoning", "content": "the user greets"},
            {"type": "thinking", "thinking": "how to greet"},
            {"type": "text", "content": "hi", "reasoning_content": "short"},
        ],
    }
]
SAID = [{"role": "assistant", "parts": [{"type": "text", "content": "hi"}]}]


@pytest.mark.parametrize("mode", MODES)
def test_content_is_kept_where_the_mode_says(captured: Capture, monkeypatch: pytest.MonkeyPatch, mode: str) -> None:
    monkeypatch.setenv(semconv.CAPTURE_CONTENT_VARIABLE, mode)
    with agent_run("desk") as run:
        run.set_messages(input=ASKED)
        with model_call("m", provider="openai") as model:
            model.set_messages(input=ASKED, output=ANSWERED)
            model.set_response(response_id="r")
        with tool("t") as call:
            call.set_arguments({"amount": 3})
            call.set_result({"ok": True, "thinking": "no"})
    on_spans, on_events = MODES[mode]
    kept = {
        key: json.loads(str(value))
        for span in captured.spans()
        for key, value in (span.attributes or {}).items()
        if key in semconv.CONTENT_ATTRIBUTES
    }
    assert kept == (
        {
            "gen_ai.input.messages": ASKED,
            "gen_ai.output.messages": SAID,
            "gen_ai.tool.call.arguments": {"amount": 3},
            "gen_ai.tool.call.result": {"ok": True},
        }
        if on_spans
        else {}
    )
    events = captured.events("gen_ai.client.inference.operation.details")
    assert len(events) == (1 if on_events else 0)
    for event in events:
        told = json.loads(json.dumps(dict(event.attributes or {}), default=dict))
        assert (told["gen_ai.input.messages"], told["gen_ai.output.messages"]) == (ASKED, SAID)
        assert (told["gen_ai.request.model"], told["gen_ai.response.id"]) == ("m", "r")
        chat = captured.span("chat m").context
        assert chat is not None
        assert event.span_id == chat.span_id


@pytest.mark.parametrize(
    ("given", "left"),
    [
        ('[{"type":"reasoning","content":"x"},{"type":"text","content":"y"}]', [{"type": "text", "content": "y"}]),
        (
            '{"role":"a","thinking":"x","parts":[{"thought":true,"text":"x"},{"text":"y"}]}',
            {"role": "a", "parts": [{"text": "y"}]},
        ),
        ('{"nested":"[{\\"part_kind\\":\\"thinking\\",\\"content\\":\\"x\\"}]"}', {"nested": "[]"}),
    ],
)
def test_reasoning_is_taken_out_of_json_text_at_any_depth(given: str, left: Any) -> None:
    assert json.loads(content.without_reasoning(given)) == left


def test_text_that_cannot_be_cleaned_is_not_kept() -> None:
    assert content.without_reasoning('[{"type":"reasoning","content":"cut o') is None
    assert content.without_reasoning('{"type":"reasoning","content":"x"}') is None


def test_talking_about_reasoning_is_no_reasoning() -> None:
    for text in ("I am thinking of a number", '["what is reasoning?"]', "plain", "[not json", 7, None):
        assert content.without_reasoning(text) == text
