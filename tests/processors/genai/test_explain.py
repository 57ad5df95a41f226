"""What ``surefoot explain`` says of each span is what derivation did with it, in words."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from support.captures import RECEIVED, capture, names
from support.deriving import Result, derive_rows, derive_tables
from support.traces import agent, chat, run_started, sid, span, spans_table, tool
from surefoot.processors.genai import why
from surefoot.processors.genai.explain import Explained, explain

PAGE = Path(__file__).parents[3] / "docs" / "explain.md"
CODES = {name: code for name, code in vars(why).items() if name.isupper() and isinstance(code, int)}
OUTER = "not the model call: the one inside it is (rule 9)"
HALF = "the end of a streamed call, which has these tokens (rule 16)"


def of_capture(name: str) -> tuple[list[Explained], Result]:
    taken = capture(f"{name}.json")
    found = derive_tables(taken.spans, taken.logs, RECEIVED + 5000)
    return explain(found.derived, taken.spans), found


def tree_of(name: str) -> list[str]:
    """Depth, name and note of each node of the capture's largest trace."""
    largest = max(of_capture(name)[0], key=lambda trace: trace.spans)
    return [f"{'  ' * node.depth}{node.name}: {node.note}" for node in largest.nodes]


def by_hand(*rows: dict[str, Any], now: float = 100.0) -> Explained:
    spans = spans_table([row for row in rows if "parent_span_id" in row])
    (trace,) = explain(derive_rows(rows, now).derived, spans)
    return trace


def notes(*rows: dict[str, Any], now: float = 100.0) -> dict[str, str]:
    words = {sid(row["name"]): row["name"] for row in rows if "name" in row}
    return {words.get(node.span_id, node.kind): node.note for node in by_hand(*rows, now=now).nodes}


def test_every_code_has_words() -> None:
    assert set(CODES.values()) == why.REASONS.keys()
    assert len({reason.name for reason in why.REASONS.values()}) == len(CODES)
    assert all(reason.text and reason.short for reason in why.REASONS.values())


TREES = {
    "openai-agents-0.20.0__openlit-1.45.0.handoff": [
        "invoke_workflow Agent workflow: not a run: workflow root in a trace that has agents (rule 2)",
        "  invoke_agent: folded: no name, around a named agent (rule 2)",
        "    invoke_agent triage_agent: run 1 of agent triage_agent, outcome ok",
        "      invoke_agent: folded into the agent above: no name, so one of its turns (rule 2)",
        "        invoke_agent french_agent: handoff: no run and no tool call (rule 15)",
        "    invoke_agent french_agent: run 2 of agent french_agent, outcome ok",
        "      invoke_agent: folded into the agent above: no name, so one of its turns (rule 2)",
    ],
    "openai-agents-0.24.0__openinference-openai-agents-2.6.0.multi_tool": [
        "weather wf: folded: no name, around a named agent (rule 2)",
        "  weather wf: not a run: a step in a trace that has agents (rule 2)",
        "    weather_agent: run 1 of agent weather_agent, outcome ok",
        "      turn: not a run: a step in a trace that has agents (rule 2)",
        "        get_weather: tool call of run 1",
        "        add: tool call of run 1",
        "      turn: not a run: a step in a trace that has agents (rule 2)",
    ],
    "langgraph-1.2.24__langsmith-otel-0.15.1.tool_handled": [
        "weather_graph: run 1 of agent weather_graph: a root chain, and no span is an agent's (rule 2), outcome ok",
        "  agent: a step of a program (rule 2)",
        "    Fake: model call of run 1",
        "    RunnableCallable: a step of a program (rule 2)",
        "  tools: a step of a program (rule 2)",
        "    flaky: tool call of run 1, outcome error: own status, Exception from the exception event (rule 6)",
        "  agent: a step of a program (rule 2)",
        "    Fake: model call of run 1",
        "    RunnableCallable: a step of a program (rule 2)",
    ],
    "dup__openai-genai1.3b0+openinference0.1.66.stream": [
        f"chat gpt-4o-mini: {OUTER}; tokens not counted: an inner model call has them (rule 9)",
        "  ChatCompletion: model call outside of any run",
    ],
    "fastmcp-4.2.3_mcp-2.3.0__native.tool_error": [
        "tools/call flaky: tool call outside of any run, outcome error: own status, error.type tool_error",
        "  MCP send tools/call flaky: folded: inside a call of the same tool (rule 7)",
        "    tools/call flaky: folded: inside a call of the same tool (rule 7)",
    ],
    "google-adk-2.13.0__native.multi_tool": [
        "invoke_workflow weather_agent: not a run: workflow root in a trace that has agents (rule 2)",
        "  invoke_agent weather_agent: run 1 of agent weather_agent, outcome ok",
        "    generate_content fake-model: model call of run 1",
        "    execute_tool get_weather: tool call of run 1",
        "    execute_tool add: tool call of run 1",
        "    execute_tool (merged): not a tool call: no tool stands behind this name (rule 7)",
        "    generate_content fake-model: model call of run 1",
    ],
    "google-adk-2.13.0__native.transfer": [
        "invoke_workflow root_agent: not a run: workflow root in a trace that has agents (rule 2)",
        "  invoke_agent root_agent: run 1 of agent root_agent, outcome ok",
        "    generate_content fake-model: model call of run 1",
        "    execute_tool transfer_to_agent: handoff, not a tool call (rule 7)",
        "  invoke_agent french_agent: run 2 of agent french_agent, outcome ok",
        "    generate_content fake-model: model call of run 2",
    ],
    "strands-agents-1.62.0__native.tool_error": [
        (
            "invoke_agent weather_agent: run 1 of agent weather_agent, outcome ok; "
            "tokens not counted: its model calls have them (rule 9)"
        ),
        "  execute_event_loop_cycle: nothing to count, in run 1",
        "    chat: model call of run 1",
        (
            "    execute_tool flaky: tool call of run 1, outcome error: own status, "
            "ValueError from the exception event (rule 6)"
        ),
        "  execute_event_loop_cycle: nothing to count, in run 1",
        "    chat: model call of run 1",
    ],
    "smolagents-1.26.0__openinference-smolagents-0.1.43.code_agent": [
        "None: this parent has not come: what is below is outside of any run (rule 14)",
        (
            "  weather_agent.run: run 1 of agent weather_agent, outcome ok; "
            "its tokens are the run's: no model call tells any (rule 9)"
        ),
        "    Step 1: not a run: a step in a trace that has agents (rule 2)",
        "      SimpleTool: tool call of run 1",
        "      FinalAnswerTool: not a tool call: no tool stands behind this name (rule 7)",
    ],
    "pydantic-ai-2.68.0__native-v6.delegate": [
        "invoke_agent boss: run 1 of agent boss, outcome ok",
        "  chat fake-model: model call of run 1",
        "  execute_tool ask: tool call of run 1",
        "    invoke_agent weather_agent: run 2 of agent weather_agent, sub-run of run 1, outcome ok",
        "      chat fake-model: model call of run 2",
        "      execute_tool get_weather: tool call of run 2",
        "      chat fake-model: model call of run 2",
        "  chat fake-model: model call of run 1",
    ],
}


@pytest.mark.parametrize("name", TREES)
def test_a_capture_in_words(name: str) -> None:
    assert tree_of(name) == TREES[name]


def test_of_many_captures_every_span_is_told_and_the_counts_are_the_tables() -> None:
    rules = set(re.findall(r"^(\d+)\. \*\*", PAGE.read_text(), re.MULTILINE))
    assert rules == {str(number) for number in range(1, 18)}
    for name in names()[::5]:
        traces, found = of_capture(name.removesuffix(".json"))
        nodes = [node for trace in traces for node in trace.nodes]
        told = Counter(node.reason for node in nodes)
        assert sum(node.kind == "span" for node in nodes) == capture(name).spans.num_rows
        rows = {"run": found.runs, "tool_call": found.tool_calls, "model_call": found.model_calls}
        assert {reason: told[reason] for reason in rows} == {reason: len(of) for reason, of in rows.items()}
        assert {run.run_id: run.input_tokens for trace in traces for run in trace.runs} == {
            row["run_id"]: row["input_tokens"] for row in found.runs
        }
        for node in nodes:
            assert node.note
            assert "{" not in node.note
            assert set(re.findall(r"rule (\d+)", node.note)) <= rules
        for count in (count for trace in traces for count in trace.counts):
            assert count.counted + sum(count.others.values()) == count.spans


def test_the_same_agent_directly_inside_itself() -> None:
    assert notes(agent("a"), agent("b", "a", 1, 2, agent_name="a"))["b"] == (
        "folded into its parent: same agent name directly under (rule 2)"
    )


def test_two_instrumentations_side_by_side() -> None:
    said = notes(
        agent("a", scope_name="one", conversation_id="c"),
        tool("t", "a", 1, 2, tool_call_id="c1", scope_name="one"),
        chat("c", "a", 4, 1, input_tokens=10, request_model="m", scope_name="one"),
        agent("a2", at=0.1, lasts=9, agent_name="a", scope_name="other"),
        tool("t2", "a2", 1.1, 1, tool_name="t", scope_name="other"),
        chat("c2", "a2", 4.1, 0.5, input_tokens=10, scope_name="other"),
    )
    assert (said["a2"], said["t2"], said["c2"]) == (
        "second report of the same run by another instrumentation, of which one tells more (rule 8)",
        "second report of the same tool call by another instrumentation, of which one tells more (rule 8)",
        (
            "second report of the same call by another instrumentation, of which one tells more (rule 8); "
            "tokens not counted again"
        ),
    )


def test_a_streamed_call_in_two_halves() -> None:
    halves = [chat("c", "a", 1, 1), chat("log", "a", 3, 0, input_tokens=9)]
    said = notes(agent("a"), *halves)
    assert (said["c"], said["log"]) == ("model call of run 1", HALF)
    alone = notes(*(row | {"parent_span_id": None} for row in halves))
    assert alone["log"].endswith("perhaps another's second report: nothing says whose (rule 16)")


def test_handoffs_by_marker_and_calls_that_create_nothing() -> None:
    marked = agent("b", "a", 1, 2, attributes={"gen_ai.agent.source": "a"})
    said = notes(agent("a"), marked, span("new", "a", operation="create_agent"), span("http", "a"))
    assert said["b"] == "handoff, not a run (rule 15)"
    assert said["new"] == "not a run: an agent is created here, not called (rule 12)"
    assert said["http"] == "not about GenAI, in run 1"


def test_what_has_not_come() -> None:
    rows = [run_started("a"), chat("c", "lost", 3, 1)]
    early, late = notes(*rows), notes(*rows, now=5000)
    assert early["start"].endswith(
        "outcome running: its span has not come, and the trace still gives signs of life (rule 14)"
    )
    assert late["start"].endswith("outcome abandoned: its span never came, and nothing more is to come (rule 14)")
    assert late["missing"] == "this parent has not come: what is below is in run 1, which was open then (rule 14)"
    calls = [chat("c", "lost", 1, 1), tool("t", "lost", 2, 1)]
    assert notes(*calls)["missing"].endswith("outside of any run (rule 14)")
    assert notes(*calls, now=5000)["missing"] == (
        "run 1, told by its calls: this parent never came (rule 14), outcome unknown"
    )


def test_a_trace_without_parents_and_one_with_a_circle() -> None:
    assert notes(agent("a", lasts=9), tool("t", at=3))["t"] == (
        "tool call of run 1; placed by time: no span of the trace names a parent (rule 14)"
    )
    circle = notes(agent("a", "b"), agent("b", "a", 1))
    assert [name for name, said in circle.items() if said.endswith("form a circle, which was cut here")] == ["a"]


@pytest.mark.parametrize(
    ("columns", "because"),
    [
        ({}, "its own span ended without an error (rule 4)"),
        ({"status": "error", "error_type": "x.Late"}, "own status, error.type Late"),
        ({"error_type": "Late"}, "error.type Late, although its status is not error"),
        ({"status": "error", "exception": "x.Late"}, "own status, Late from the exception event (rule 6)"),
        ({"status": "error", "status_message": "Late: 5 s"}, "own status, Late from the status message (rule 6)"),
        ({"status": "error"}, "own status, error without a name (rule 6)"),
        ({"status": "error", "exception": "asyncio.CancelledError"}, "CancelledError is no failure (rule 5)"),
        ({"status": "error", "status_message": "abandoned stream"}, "an abandoned stream is no failure (rule 5)"),
        ({"attributes": {"surefoot.cancelled": "true"}}, "marked as cancelled (rule 5)"),
        ({"status": "error", "exception": "x.CallDeferred"}, "CallDeferred hands it to somebody else (rule 5)"),
        (
            {"status": "error", "exception": "x.InputGuardrailTripwireTriggered"},
            "InputGuardrailTripwireTriggered: a guard or a person said no (rule 5)",
        ),
        ({"mode": "refuse"}, "its mode is refuse"),
    ],
)
def test_why_a_run_ended_so(columns: dict[str, Any], because: str) -> None:
    (run,) = by_hand(agent("a", **columns)).runs
    assert run.because == because


def test_where_the_tokens_of_a_run_come_from() -> None:
    told: dict[str, Any] = {"input_tokens": 9, "output_tokens": 1}
    assert by_hand(agent("a")).runs[0].tokens_from is None
    assert by_hand(agent("a", **told)).runs[0].tokens_from == "its own span"
    assert by_hand(agent("a", **told), chat("c", "a", **told)).runs[0].tokens_from == "its model calls"
    above, _ = by_hand(agent("a", **told), agent("b", "a", 1, 2, input_tokens=4, output_tokens=1)).runs
    assert (above.input_tokens, above.tokens_from) == (5, "its own span, less what its sub-runs used")


def test_a_workflow_that_says_otherwise() -> None:
    def said(root: str, run: str) -> bool:
        rows = [span("w", operation="invoke_workflow", status=root), agent("a", "w", status=run)]
        return "is no run's outcome (rule 4)" in notes(*rows)["w"]

    assert said("ok", "error")
    assert said("error", "ok")
    assert not said("error", "error")
    assert not said("ok", "ok")
    assert not said("unset", "error")


def test_a_failed_tool_and_a_copy() -> None:
    twice = by_hand(agent("a"), tool("t", "a", status="error"), tool("t", "a", status="error"))
    assert (twice.spans, twice.copies) == (2, 1)
    assert twice.runs[0].because.endswith("a tool call that failed is no failed run (rule 7)")


def test_a_very_deep_trace() -> None:
    rows = [agent("0"), *(span(str(number), str(number - 1)) for number in range(1, 3000))]
    nodes = by_hand(*rows).nodes
    assert [node.depth for node in nodes] == list(range(3000))
