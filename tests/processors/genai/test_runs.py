"""Spans to runs and calls, by hand: every rule of docs/runs.md with the trace that made it necessary."""

from __future__ import annotations

from typing import Any

import pytest
from genai_prices import Usage, calc_price

from support.deriving import Result, derive_rows
from support.traces import T0, TRACE, agent, chat, event, run_started, sid, span, tool
from surefoot.instrumentation import semconv

Row = dict[str, Any]


def derive(*rows: Row, now: float = 100.0) -> Result:
    return derive_rows(rows, now)


def run_of(row: Row) -> str | None:
    return row["run_id"] and bytes.fromhex(row["run_id"].partition("-")[2]).rstrip(b"\0").decode()


def names(rows: list[Row]) -> list[str]:
    return [bytes.fromhex(row["span_id"]).rstrip(b"\0").decode() for row in rows]


def test_one_agent_with_its_calls() -> None:
    derived = derive(
        tool("search", "desk", 2, tool_effect="read", tool_dependency="crm", tool_call_id="call-1"),
        chat("c1", "desk", 1, input_tokens=11, output_tokens=7, response_id="r1", request_model="m"),
        chat("c2", "desk", 4, input_tokens=13, output_tokens=5),
        agent("desk", lasts=9, task_class="refund", confidence=80.0),
    )
    (run,) = derived.runs
    assert run["run_id"] == f"{TRACE}-{sid('desk')}"
    assert (
        run
        | {
            "outcome": "ok",
            "error_type": None,
            "tool_calls": 1,
            "tool_errors": 0,
            "model_calls": 2,
            "input_tokens": 24,
            "output_tokens": 12,
            "recovered": False,
            "task_class": "refund",
            "confidence": 80.0,
            "duration_ns": 9_000_000_000,
            "started_at": int(T0 * 1e6),
            "ended_at": int((T0 + 9) * 1e6),
            "parent_run_id": None,
        }
        == run
    )
    (call,) = derived.tool_calls
    assert (run_of(call), call["outcome"], call["effect"], call["dependency"]) == ("desk", "ok", "read", "crm")
    assert (call["agent_name"], call["task_class"], call["tool_call_id"]) == ("desk", "refund", "call-1")
    assert [(run_of(row), row["response_id"]) for row in derived.model_calls] == [("desk", "r1"), ("desk", None)]


def test_calls_and_tokens_of_a_sub_run_are_its_own() -> None:
    derived = derive(
        agent("boss"),
        chat("b1", "boss", 1, input_tokens=10),
        tool("ask", "boss", 2, 5),
        agent("helper", "ask", 3, 3),
        span("plumbing", "helper", 3),
        chat("h1", "plumbing", 4, input_tokens=3),
        tool("look", "plumbing", 5),
    )
    runs = {row["agent_name"]: row for row in derived.runs}
    assert runs["helper"]["parent_run_id"] == runs["boss"]["run_id"]
    assert {name: (row["tool_calls"], row["model_calls"], row["input_tokens"]) for name, row in runs.items()} == {
        "boss": (1, 1, 10),
        "helper": (1, 1, 3),
    }
    assert {row["tool_name"]: run_of(row) for row in derived.tool_calls} == {"ask": "boss", "look": "helper"}


def test_nameless_agents_around_or_directly_inside_a_named_one_are_no_runs_but_a_lone_one_is() -> None:
    wrapped = derive(agent("outer", agent_name=None), agent("named", "outer"), agent("turn", "named", agent_name=None))
    assert [(row["agent_name"], row["parent_run_id"]) for row in wrapped.runs] == [("named", None)]
    through_a_tool = derive(agent("named"), tool("t", "named"), agent("inner", "t", agent_name=None))
    assert sorted(names(through_a_tool.runs)) == ["inner", "named"]
    lone = derive(agent("runner", agent_name=None), tool("t", "runner"))
    assert [(row["agent_name"], row["tool_calls"]) for row in lone.runs] == [(None, 1)]


def test_the_same_agent_directly_inside_itself_is_one_run_but_not_through_a_tool() -> None:
    direct = derive(agent("a"), agent("again", "a", agent_name="a"), tool("t", "again"))
    assert [(names([row]), row["tool_calls"]) for row in direct.runs] == [(["a"], 1)]
    recursive = derive(agent("a"), tool("t", "a"), agent("again", "t", 1.2, agent_name="a"))
    assert names(recursive.runs) == ["a", "again"]


def test_a_workflow_is_a_run_only_where_no_agent_is() -> None:
    workflow = span("w", operation="invoke_workflow", workflow_name="graph", lasts=5)
    inner = span("w2", "w", operation="invoke_workflow", workflow_name="graph")
    without = derive(workflow, inner, tool("t", "w2"))
    assert [(row["agent_name"], row["tool_calls"]) for row in without.runs] == [("graph", 1)]
    within = derive(workflow | {"status": "error"}, agent("a", "w"), agent("b", "w", 11))
    assert [(row["agent_name"], row["outcome"], row["parent_run_id"]) for row in within.runs] == [
        ("a", "ok", None),
        ("b", "ok", None),
    ]


def test_tokens_come_from_innermost_calls_and_from_the_agent_only_if_no_call_tells() -> None:
    both = derive(
        agent("a", input_tokens=99),
        chat("outer", "a", 1, 3, input_tokens=50),
        chat("inner", "outer", 2, input_tokens=20),
    )
    assert (both.runs[0]["input_tokens"], both.runs[0]["model_calls"], names(both.model_calls)) == (20, 1, ["inner"])
    aggregate = derive(
        agent("a", input_tokens=30, output_tokens=4),
        chat("c", "a"),
        agent("sub", "a"),
        chat("s", "sub", input_tokens=12),
    )
    assert [(row["agent_name"], row["input_tokens"], row["output_tokens"]) for row in aggregate.runs] == [
        ("a", 18, 4),
        ("sub", 12, None),
    ]
    silent = derive(agent("a"), chat("c", "a"))
    assert (silent.runs[0]["input_tokens"], silent.runs[0]["model_calls"]) == (None, 1)


def test_tool_calls_are_counted_once_and_phantoms_and_handoffs_not_at_all() -> None:
    derived = derive(
        agent("a"),
        agent("Billing Desk", "a", 8, 1),
        tool("mcp", "a", tool_name="pay"),
        span("transport", "mcp"),
        tool("server", "transport", tool_name="pay"),
        tool("other", "server", tool_name="audit"),
        tool("m", "a", tool_name="(merged tools)"),
        tool("h1", "a", tool_name="transfer_to_billing_desk"),
        tool("h2", "a", tool_name="transfer_to_agent"),
        tool("h3", "a", tool_name="handoff to Billing Desk"),
        tool("money", "a", tool_name="transfer_to_savings"),
    )
    assert sorted(row["tool_name"] for row in derived.tool_calls) == ["audit", "pay", "transfer_to_savings"]
    assert names([row for row in derived.tool_calls if row["tool_name"] == "pay"]) == ["mcp"]


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ({}, ("ok", None)),
        ({"status": "ok"}, ("ok", None)),
        ({"status": "error", "error_type": "openai.RateLimitError"}, ("error", "RateLimitError")),
        ({"error_type": "tool_error"}, ("error", "tool_error")),
        ({"status": "error", "exception": "app.errors.Broken"}, ("error", "Broken")),
        ({"status": "error", "error_type": "_OTHER", "exception": "Broken"}, ("error", "Broken")),
        ({"status": "error", "error_type": "it went wrong, badly", "exception": "Broken"}, ("error", "Broken")),
        ({"status": "error", "status_message": "RuntimeError: 429"}, ("error", "RuntimeError")),
        ({"status": "error", "status_message": "no such city: Atlantis"}, ("error", "_OTHER")),
        ({"status": "error"}, ("error", "_OTHER")),
        ({"status": "error", "error_type": "429"}, ("error", "429")),
        ({"status": "error", "error_type": "asyncio.exceptions.CancelledError"}, ("cancelled", "CancelledError")),
        ({"status": "error", "exception": "KeyboardInterrupt"}, ("cancelled", "KeyboardInterrupt")),
        ({"status": "error", "error_type": "_OTHER", "status_message": "abandoned stream"}, ("cancelled", "_OTHER")),
        ({"attributes": {semconv.CANCELLED: "true"}}, ("cancelled", "_OTHER")),
        ({"attributes": {semconv.CANCELLED: "false"}}, ("ok", None)),
        ({"status": "error", "exception": "pydantic_ai.exceptions.ApprovalRequired"}, ("deferred", "ApprovalRequired")),
    ],
)
def test_how_a_span_ended(columns: Row, expected: tuple[str, str | None]) -> None:
    derived = derive(agent("a", **columns), tool("t", "a", **columns), chat("c", "a", **columns))
    for rows in (derived.runs, derived.tool_calls, derived.model_calls):
        assert (rows[0]["outcome"], rows[0]["error_type"]) == expected


def test_a_failed_tool_is_no_failed_run_and_a_run_that_ends_well_has_recovered() -> None:
    failed = tool("t", "a", status="error", error_type="Timeout")
    well = derive(agent("a"), failed, tool("t2", "a", 3, tool_name="t"))
    assert (well.runs[0]["outcome"], well.runs[0]["tool_errors"], well.runs[0]["recovered"]) == ("ok", 1, True)
    badly = derive(agent("a", status="error", error_type="Timeout"), failed)
    assert (badly.runs[0]["outcome"], badly.runs[0]["recovered"]) == ("error", False)


@pytest.mark.parametrize(
    "columns",
    [
        {"exception": "pydantic_ai.exceptions.ToolRetryError"},
        {"exception": "Whatever", "attributes": {"pydantic_ai.tool.retry.cause": "model_retry"}},
    ],
)
def test_a_tool_that_asks_for_another_try_is_neither_ok_nor_an_error(columns: Row) -> None:
    derived = derive(agent("a"), tool("t", "a", status="error", **columns))
    assert derived.tool_calls[0]["outcome"] == "retry"
    assert (derived.runs[0]["tool_errors"], derived.runs[0]["recovered"]) == (0, True)


def test_columns_are_inherited_from_the_start_event_and_then_from_any_span_of_the_run() -> None:
    derived = derive(
        agent("a", conversation_id="mine"),
        chat("c2", "a", 2, conversation_id="later", task_id="t-2"),
        chat("c1", "a", 1, conversation_id="first", task_id="t-1"),
        agent("sub", "a", 3, 1, variant="never mine", conversation_id="sub's"),
    )
    assert [(row["conversation_id"], row["task_id"], row["variant"]) for row in derived.runs] == [
        ("mine", "t-1", None),
        ("sub's", None, "never mine"),
    ]
    started = run_started("a", attributes={semconv.TASK_ID: "t-0", semconv.REPETITION: "3", semconv.SAMPLE_WEIGHT: "?"})
    (run,) = derive(started, chat("c1", "a", 1, task_id="t-1", conversation_id="first")).runs
    assert (run["task_id"], run["repetition"], run["conversation_id"], run["sample_weight"]) == (
        "t-0",
        3,
        "first",
        None,
    )


def test_versions_and_strata_are_maps() -> None:
    derived = derive(
        agent("a", attributes={"surefoot.versions.prompt": "7", "surefoot.stratum.tier": "gold", "other": "x"}),
        chat("c", "a", attributes={"surefoot.versions.prompt": "6", "surefoot.versions.tools": "3"}),
        tool("t", "a", attributes={"surefoot.stratum.region": "eu"}),
    )
    assert derived.runs[0]["versions"] == {"prompt": "7", "tools": "3"}
    assert derived.runs[0]["strata"] == {"tier": "gold", "region": "eu"}
    assert derived.tool_calls[0]["strata"] == {"tier": "gold", "region": "eu"}


def test_a_started_run_is_running_then_abandoned_and_its_span_takes_over_the_id() -> None:
    rows = [run_started("a", 0), chat("c", "a", 3, 1), tool("t", "lost", 5, 1)]
    (running,) = derive(*rows, now=905.9).runs
    assert (running["outcome"], running["ended_at"], running["duration_ns"]) == ("running", None, None)
    assert (running["tool_calls"], running["model_calls"], running["agent_name"]) == (1, 1, "a")
    (abandoned,) = derive(*rows, now=906).runs
    assert (abandoned["outcome"], abandoned["settled"], abandoned["error_type"]) == ("abandoned", True, None)
    assert abandoned["ended_at"] == int((T0 + 6 + 900) * 1e6)
    (ended,) = derive(*rows, agent("a", lasts=2000), now=2000).runs
    assert (ended["outcome"], ended["run_id"]) == ("ok", abandoned["run_id"])


def test_a_verdict_on_an_abandoned_run_does_not_revive_it() -> None:
    late = event(semconv.EVALUATION_EVENT, "a", 5000, attributes={semconv.EVALUATION_NAME: "outcome"})
    (run,) = derive(run_started("a"), late, now=5001).runs
    assert (run["outcome"], run["settled"], run["ended_at"]) == ("abandoned", False, int((T0 + 900) * 1e6))
    chatter = event("app.heartbeat", "a", 5000)
    (alive,) = derive(run_started("a"), now=899).runs
    assert alive["outcome"] == "running"
    assert derive(run_started("a"), chatter, now=5001).runs[0]["outcome"] == "running"


def test_started_runs_inside_each_other_are_one_user_facing_run() -> None:
    derived = derive(run_started("boss", 0), run_started("helper", 2), tool("look", "helper", 3), now=2000)
    assert [(row["agent_name"], row["outcome"], run_of({"run_id": row["parent_run_id"]})) for row in derived.runs] == [
        ("boss", "abandoned", None),
        ("helper", "abandoned", "boss"),
    ]
    finished = derive(run_started("boss", 0), agent("helper", "lost", 2, 3), now=2000)
    assert [(row["agent_name"], row["outcome"], run_of({"run_id": row["parent_run_id"]})) for row in finished.runs] == [
        ("boss", "abandoned", None),
        ("helper", "ok", "boss"),
    ]


def test_a_caller_that_reports_elsewhere_does_not_hide_a_run() -> None:
    derived = derive(agent("a", "gateway", 0), agent("b", "gateway", 1), now=2000)
    assert [(row["agent_name"], row["parent_run_id"]) for row in derived.runs] == [("a", None), ("b", None)]


def test_children_without_their_root_are_no_run_until_the_trace_is_quiet() -> None:
    rows = [chat("c", "root", 1, agent_name="desk", task_class="refund"), tool("t", "step", 2, agent_name="desk")]
    waiting = derive(*rows, now=100)
    assert (waiting.runs, [row["run_id"] for row in waiting.tool_calls]) == ([], [None])
    quiet = derive(*rows, now=5000)
    (unknown,) = quiet.runs
    assert (unknown["outcome"], unknown["agent_name"], unknown["task_class"]) == ("unknown", "desk", "refund")
    assert (run_of(unknown), unknown["tool_calls"], unknown["model_calls"]) == ("root", 1, 1)
    assert (unknown["started_at"], unknown["ended_at"]) == (int((T0 + 1) * 1e6), int((T0 + 3) * 1e6))
    (ended,) = derive(*rows, agent("root", agent_name="desk"), now=5000).runs
    assert (ended["outcome"], ended["run_id"], ended["tool_calls"]) == ("ok", unknown["run_id"], 1)


def test_a_call_without_an_agent_is_a_call_outside_a_run() -> None:
    derived = derive(chat("c", "web request", 1, input_tokens=4), now=5000)
    assert (derived.runs, [row["run_id"] for row in derived.model_calls]) == ([], [None])
    derived = derive(tool("t", "remote client", 1), now=5000)
    assert (derived.runs, [row["run_id"] for row in derived.tool_calls]) == ([], [None])
    both = derive(chat("c", "x", 1), tool("t", "x", 2), now=5000)
    assert [row["outcome"] for row in both.runs] == ["unknown"]
    root = derive(chat("c", at=1, agent_name="desk"), now=5000)
    assert root.runs == []


def test_parents_in_a_circle_harm_nobody() -> None:
    derived = derive(
        agent("a", "b"),
        agent("b", "a", 1, agent_name="a"),
        tool("t", "b"),
        chat("self", "self", input_tokens=1),
        agent("own", "own"),
        now=5000,
    )
    assert names(derived.runs) == ["a", "own"]
    assert [run_of(row) for row in derived.tool_calls] == ["a"]
    assert [row["run_id"] for row in derived.model_calls] == [None]


def test_a_negative_duration_is_kept_as_it_is() -> None:
    (run,) = derive(agent("a", lasts=-2.0)).runs
    assert run["duration_ns"] == -2_000_000_000


def test_the_same_span_twice_is_one_call_and_the_version_that_ended_later_counts() -> None:
    early, late = tool("t", "a", 1, 1), tool("t", "a", 1, 3, status="error", error_type="Late")
    for rows in ([early, late], [late, early]):
        derived = derive(agent("a"), *rows)
        assert [(row["outcome"], row["duration_ns"]) for row in derived.tool_calls] == [("error", 3_000_000_000)]


def test_a_deep_trace_takes_linear_time() -> None:
    depth = 10_000
    rows = [agent("s0")] + [tool(f"s{i}", f"s{i - 1}", tool_name=f"t{i % 7}") for i in range(1, depth)]
    derived = derive(*rows)
    assert derived.runs[0]["tool_calls"] == depth - 1


def test_two_instrumentations_of_one_run_count_once() -> None:
    one: Row = {"scope_name": "one"}
    other: Row = {"scope_name": "other"}
    rows = [
        agent("a", **one),
        tool("t", "a", 1, 2, tool_call_id="c1", **one),
        chat("c", "a", 4, 1, input_tokens=10, request_model="m", **one),
        agent("a2", at=0.1, lasts=9, agent_name="a", **other),
        tool("t2", "a2", 1.1, 1, tool_name="t", **other),
        chat("c2", "a2", 4.1, 0.5, input_tokens=10, **other),
        tool("t3", "a", 6, 1, tool_name="t", **other),
    ]
    derived = derive(*rows)
    assert (names(derived.runs), sorted(names(derived.tool_calls)), names(derived.model_calls)) == (
        ["a"],
        ["t", "t3"],
        ["c"],
    )
    assert (derived.runs[0]["tool_calls"], derived.runs[0]["input_tokens"]) == (2, 10)
    parallel = derive(*(row | {"scope_name": "one"} for row in rows))
    assert (len(parallel.runs), len(parallel.tool_calls), len(parallel.model_calls)) == (2, 3, 2)


def test_without_parent_links_time_tells_who_contains_whom() -> None:
    derived = derive(
        agent("a", lasts=9), agent("b", at=2, lasts=4), tool("t", at=3), tool("u", at=7), chat("late", at=20)
    )
    assert {row["agent_name"]: run_of({"run_id": row["parent_run_id"]}) for row in derived.runs} == {
        "a": None,
        "b": "a",
    }
    assert {row["tool_name"]: run_of(row) for row in derived.tool_calls} == {"t": "b", "u": "a"}
    assert [row["run_id"] for row in derived.model_calls] == [None]


def test_the_second_half_of_a_streamed_call_is_folded_in_its_run_and_doubtful_elsewhere() -> None:
    halves = [chat("c", "a", 1, 1), chat("log", "a", 3, 0, input_tokens=9, response_id="r")]
    derived = derive(agent("a"), *halves)
    (call,) = derived.model_calls
    assert (names([call]), call["input_tokens"], call["response_id"], call["possible_duplicate"]) == (
        ["c"],
        9,
        "r",
        False,
    )
    assert derived.runs[0]["model_calls"] == 1
    alone = derive(*(row | {"parent_span_id": None} for row in halves))
    assert sorted(row["possible_duplicate"] for row in alone.model_calls) == [False, True]


def test_a_streamed_call_that_the_library_reports_in_another_trace_is_doubtful_once() -> None:
    theirs, own = "openinference.instrumentation.anthropic", "com.anthropic.sdk.python"
    streamed = derive(
        chat("c", scope_name=theirs, input_tokens=117, trace="a" * 32),
        chat("d", scope_name=own, input_tokens=117, trace="b" * 32),
    )
    assert {row["trace_id"][0]: row["possible_duplicate"] for row in streamed.model_calls} == {"a": True, "b": False}
    enclosing = derive(chat("c", scope_name=theirs, input_tokens=117), chat("d", "c", scope_name=own, input_tokens=117))
    assert [row["possible_duplicate"] for row in enclosing.model_calls] == [False]
    in_a_run = derive(agent("a"), chat("c", "a", scope_name=theirs, input_tokens=117))
    assert [row["possible_duplicate"] for row in in_a_run.model_calls] == [False]


def test_traceloop_hangs_an_agent_called_as_a_tool_under_the_workflow_and_its_caller_is_found_by_time() -> None:
    told: Row = {"dialect": "traceloop"}
    root = span("w", operation="invoke_workflow", lasts=20, **told)
    called = derive(
        root, agent("boss", "w", 1, 10, **told), tool("ask", "boss", 2, 5, **told), agent("helper", "w", 3, 2, **told)
    )
    runs = {row["agent_name"]: row for row in called.runs}
    assert (runs["boss"]["parent_run_id"], runs["helper"]["parent_run_id"]) == (None, runs["boss"]["run_id"])
    after = derive(
        root, agent("boss", "w", 1, 10, **told), tool("ask", "boss", 2, 5, **told), agent("next", "w", 12, 2, **told)
    )
    assert [row["parent_run_id"] for row in after.runs] == [None, None]
    elsewhere = derive(
        span("w", operation="invoke_workflow", lasts=20), agent("boss", "w", 1), tool("ask", "boss", 2, 5),
        agent("helper", "w", 3, 2),
    )  # fmt: skip
    assert [row["parent_run_id"] for row in elsewhere.runs] == [None, None]


def test_a_guard_that_says_no_refuses() -> None:
    derived = derive(agent("a", status="error", exception="agents.exceptions.InputGuardrailTripwireTriggered"))
    assert derived.runs[0]["outcome"] == "refused"
    assert derive(agent("a", mode="refuse")).runs[0]["outcome"] == "refused"


def test_cost_is_that_of_the_price_list_and_null_where_it_knows_no_price() -> None:
    used: Row = {"provider_name": "openai", "request_model": "gpt-4o-mini", "input_tokens": 1000, "output_tokens": 100}
    known = derive(agent("a"), chat("c", "a", **used), chat("d", "a", 2, cache_read_tokens=400, **used))
    prices = [
        calc_price(
            Usage(input_tokens=1000, output_tokens=100, cache_read_tokens=read), "gpt-4o-mini", provider_id="openai"
        )
        for read in (0, 400)
    ]
    assert [row["cost_usd"] for row in known.model_calls] == pytest.approx([float(p.total_price) for p in prices])
    assert known.runs[0]["cost_usd"] == pytest.approx(sum(float(p.total_price) for p in prices))
    unknown = derive(agent("a"), chat("c", "a", **used), chat("d", "a", 2, **used | {"request_model": "no such"}))
    assert unknown.runs[0]["cost_usd"] is None
