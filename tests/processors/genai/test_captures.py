"""What real instrumentations emitted becomes what their programs did."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from support.captures import RECEIVED, capture, names
from surefoot.processors.genai.rows import TraceRows, derive_trace, evaluate_trace
from surefoot.processors.genai.trace import (
    EVENT_NAMES,
    Event,
    Span,
    Trace,
    build,
    by_trace,
    read_events,
    read_spans,
)

Row = dict[str, Any]

# Instrumentations of the current conventions, and pydantic-ai; others have their own suite when their dialect is there.
UNDERSTOOD = (
    "pydantic-ai-2.68.0__native-v5",
    "pydantic-ai-2.68.0__native-v6",
    "langgraph-1.2.24__otel-genai-langchain",
    "openai-3.57.0__otel-genai-openai-",
    "openai-agents-0.24.0__otel-genai-openai-agents",
)
CAPTURES = [name for name in names() if name.startswith(UNDERSTOOD) and "embeddings" not in name]


def spans_and_events(name: str) -> tuple[list[Span], list[Event]]:
    taken = capture(name)
    wanted = pc.is_in(taken.logs["event_name"], pa.array(EVENT_NAMES))
    return read_spans(taken.spans), read_events(taken.logs.filter(wanted))


def built(spans: list[Span], events: list[Event], later: float = 5000.0) -> list[Trace]:
    of_trace: defaultdict[str, list[Event]] = defaultdict(list)
    for event in events:
        of_trace[event.trace_id or ""].append(event)
    return [
        build(trace_id, group, of_trace[trace_id], now=RECEIVED + later, settle_seconds=900)
        for trace_id, group in by_trace(spans).items()
    ]


def derived(spans: list[Span], events: list[Event], later: float = 5000.0) -> TraceRows:
    """All traces of a capture together."""
    parts = [derive_trace(trace) for trace in built(spans, events, later)]
    return TraceRows(
        [row for part in parts for row in part.runs],
        [row for part in parts for row in part.tool_calls],
        [row for part in parts for row in part.model_calls],
        parts[0].index,
    )


def test_the_captures_are_there() -> None:
    assert len(CAPTURES) == 28


@pytest.mark.parametrize("name", CAPTURES)
def test_the_rows_say_what_the_program_did(name: str) -> None:
    truth = capture(name).truth
    found = derived(*spans_and_events(name))
    by_id = {row["run_id"]: row["agent_name"] for row in found.runs}
    if truth["observable"]["runs"]:
        assert sorted(
            (row["agent_name"], row["outcome"], by_id.get(row["parent_run_id"])) for row in found.runs
        ) == sorted((run["agent"], run["outcome"], run["parent"]) for run in truth["runs"])
    if truth["observable"]["tools"]:
        assert sorted((row["tool_name"], row["outcome"]) for row in found.tool_calls) == sorted(
            (call["name"], call["outcome"]) for call in truth["tool_calls"]
        )
    if truth["observable"]["llm"]:
        assert len(found.model_calls) == truth["llm_calls"]
        assert sum(row["outcome"] == "error" for row in found.model_calls) == truth["llm_errors"]
    if truth["observable"]["tokens"]:
        for kind in ("input_tokens", "output_tokens"):
            if truth[kind] is not None:
                calls = sum(row[kind] or 0 for row in found.model_calls)
                assert calls == truth[kind]
                if found.runs:
                    assert sum(row[kind] or 0 for row in found.runs) == calls
    if "thread_id" in truth:
        assert {row["conversation_id"] for row in found.runs} == {truth["thread_id"]}


@pytest.mark.parametrize("name", CAPTURES)
def test_at_every_prefix_of_the_export_no_run_or_call_is_there_that_will_vanish(name: str) -> None:
    """These export children first. Nothing is counted before it is known, so nothing has to be taken back."""
    spans, events = spans_and_events(name)
    whole = derived(spans, events)
    for length in range(1, len(spans)):
        part = derived(spans[:length], events, later=1.0)
        for rows, of_whole in (
            ([row for row in part.runs if row["outcome"] != "running"], whole.runs),
            (part.tool_calls, whole.tool_calls),
            (part.model_calls, whole.model_calls),
        ):
            final = {row["span_id"]: row for row in of_whole}
            assert {row["span_id"] for row in rows} <= final.keys()
            assert all(row["outcome"] == final[row["span_id"]]["outcome"] for row in rows)
            assert all(row.get("run_id") in (None, final[row["span_id"]]["run_id"]) for row in rows)


@pytest.mark.parametrize("name", [name for name in CAPTURES if name.startswith("pydantic-ai")])
def test_an_agent_that_died_before_its_root_was_exported_is_one_unknown_run(name: str) -> None:
    spans, events = spans_and_events(name)
    (root,) = [span for span in spans if span.parent_span_id is None]
    found = derived([span for span in spans if span is not root], events)
    assert [(row["span_id"], row["outcome"]) for row in found.runs if row["parent_run_id"] is None][:1] == [
        (root.span_id, "unknown")
    ]
    assert sum(row["outcome"] == "unknown" for row in found.runs) == 1
    assert all(row["run_id"] is not None for row in (*found.tool_calls, *found.model_calls))


def test_util_genai_by_hand() -> None:
    found = derived(*spans_and_events("util-genai-1.3b0__manual.ok.json"))
    assert [
        (row["agent_name"], row["outcome"], row["tool_calls"], row["model_calls"], row["input_tokens"])
        for row in found.runs
    ] == [("weather_agent", "ok", 1, 1, 11), ("remote", "ok", 0, 0, 5)]
    assert {row["conversation_id"] for row in found.runs} == {"conv-1"}
    broken = derived(*spans_and_events("util-genai-1.3b0__manual.error.json"))
    assert [(row["agent_name"], row["outcome"], row["error_type"]) for row in broken.runs] == [
        ("weather_agent", "error", "TimeoutError")
    ]
    assert [(row["tool_name"], row["error_type"]) for row in broken.tool_calls] == [("flaky", "ValueError")]


def test_online_evaluations_of_pydantic_evals() -> None:
    (trace,) = built(*spans_and_events("pydantic-evals-2.62.0.online.json"))
    rows = evaluate_trace(trace, derive_trace(trace).index, trace.settled)
    assert {row["name"]: (row["verdict"], row["score"], row["label"]) for row in rows} == {
        "relevance": ("unresolved", 0.8, None),
        "label": ("pass", None, "good"),
        "ok": ("pass", 1.0, "pass"),
        "Boom": ("unresolved", None, None),
    }
