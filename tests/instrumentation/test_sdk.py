"""Names, kinds, attributes and ends of operations, as the conventions have them."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import CancelledError as FutureCancelled
from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.trace import SpanKind, StatusCode

from surefoot.instrumentation import (
    RunThreadPool,
    agent_run,
    model_call,
    propagate,
    semconv,
    tool,
    workflow,
)
from surefoot.instrumentation.testing import Capture, VirtualClock, use_clock
from surefoot.instrumentation.traced import Traced


class DeskError(Exception):
    """An error with a module."""


def told(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


def parent(span: ReadableSpan) -> int | None:
    return span.parent.span_id if span.parent else None


def own(span: ReadableSpan) -> int:
    assert span.context is not None
    return int(span.context.span_id)


def test_a_run_says_what_it_was_told(captured: Capture) -> None:
    with agent_run(
        "desk",
        task_class="refund",
        task_id="refund-1",
        consequence_class="irreversible",
        intent_id="i",
        run_group="g",
        repetition=3,
        variant="b",
        versions={"prompt": "2", "policy": "7"},
        strata={"region": "eu"},
        conversation_id="c",
        principal="p",
        authority_domain="payments",
        agent_version="1.2",
        attributes={"mine": True},
    ) as run:
        run.set_confidence(80)
        run.checkpoint("checked")
        run.set_usage(input_tokens=3, output_tokens=4)
        run.set_attribute("later", None)
    span = captured.span("invoke_agent desk")
    assert told(span) == {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "desk",
        "gen_ai.agent.version": "1.2",
        "gen_ai.conversation.id": "c",
        "gen_ai.usage.input_tokens": 3,
        "gen_ai.usage.output_tokens": 4,
        "surefoot.task.class": "refund",
        "surefoot.task.id": "refund-1",
        "surefoot.consequence.class": "irreversible",
        "surefoot.intent.id": "i",
        "surefoot.run_group": "g",
        "surefoot.repetition": 3,
        "surefoot.variant": "b",
        "surefoot.versions.prompt": "2",
        "surefoot.versions.policy": "7",
        "surefoot.stratum.region": "eu",
        "surefoot.principal": "p",
        "surefoot.authority.domain": "payments",
        "surefoot.run.confidence": 80.0,
        "surefoot.checkpoint": "checked",
        "mine": True,
    }
    assert (span.kind, span.status.status_code) == (SpanKind.INTERNAL, StatusCode.UNSET)
    assert [(event.name, dict(event.attributes or {})) for event in span.events] == [
        ("surefoot.checkpoint", {"name": "checked"})
    ]
    assert span.instrumentation_scope is not None
    assert span.instrumentation_scope.name == "surefoot"


def test_operations_nest_and_inherit_what_their_conventions_want(captured: Capture) -> None:
    with (
        workflow("claims", conversation_id="c"),
        agent_run("desk", task_class="refund", intent_id="i"),
        tool("pay", effect="irreversible", dependency="payments", call_id="7", kind="function"),
        agent_run("helper"),
    ):
        with model_call("gpt-x", provider="openai") as call:
            call.set_usage(input_tokens=5, output_tokens=6, cache_read_tokens=1, reasoning_tokens=2)
            call.set_response(model="gpt-x-1", response_id="r", finish_reasons=["stop"], time_to_first_chunk=0.5)
        with tool("look"):
            pass
    flow, desk = captured.span("invoke_workflow claims"), captured.span("invoke_agent desk")
    pay, helper = captured.span("execute_tool pay"), captured.span("invoke_agent helper")
    chat, look = captured.span("chat gpt-x"), captured.span("execute_tool look")
    assert [parent(span) for span in (flow, desk, pay, helper, chat, look)] == [
        *(None, own(flow), own(desk), own(pay), own(helper), own(helper)),
    ]
    assert [span.kind.name for span in (flow, desk, pay, helper, chat, look)] == [
        *["INTERNAL"] * 4,
        "CLIENT",
        "INTERNAL",
    ]
    assert told(flow) == {
        "gen_ai.operation.name": "invoke_workflow",
        "gen_ai.workflow.name": "claims",
        "gen_ai.conversation.id": "c",
    }
    assert told(pay) == {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "pay",
        "gen_ai.tool.call.id": "7",
        "gen_ai.tool.type": "function",
        "gen_ai.agent.name": "desk",
        "gen_ai.conversation.id": "c",
        "surefoot.tool.effect": "irreversible",
        "surefoot.tool.dependency": "payments",
    }
    assert told(helper) == {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "helper",
        "gen_ai.conversation.id": "c",
    }
    assert told(look)["gen_ai.agent.name"] == "helper"
    assert told(chat) == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": "gpt-x",
        "gen_ai.conversation.id": "c",
        "gen_ai.usage.input_tokens": 5,
        "gen_ai.usage.output_tokens": 6,
        "gen_ai.usage.cache_read.input_tokens": 1,
        "gen_ai.usage.reasoning.output_tokens": 2,
        "gen_ai.response.model": "gpt-x-1",
        "gen_ai.response.id": "r",
        "gen_ai.response.finish_reasons": ("stop",),
        "gen_ai.response.time_to_first_chunk": 0.5,
    }


@pytest.mark.parametrize(
    ("error", "name"),
    [(ValueError("no"), "ValueError"), (DeskError("no"), f"{__name__}.DeskError"), (SystemExit(3), "SystemExit")],
)
def test_an_exception_makes_the_span_an_error(captured: Capture, error: BaseException, name: str) -> None:
    with pytest.raises(type(error)), agent_run("desk"), tool("pay"):
        raise error
    for span in captured.spans():
        assert (span.status.status_code, told(span)["error.type"]) == (StatusCode.ERROR, name)
        assert semconv.CANCELLED not in told(span)
        assert [event.name for event in span.events] == ["exception"]


@pytest.mark.parametrize("error", [asyncio.CancelledError(), KeyboardInterrupt(), GeneratorExit()])
def test_a_cancellation_is_no_error(captured: Capture, error: BaseException) -> None:
    with pytest.raises(type(error)), agent_run("desk"):
        raise error
    span = captured.span("invoke_agent desk")
    assert (span.status.status_code, span.events) == (StatusCode.UNSET, ())
    assert told(span)["surefoot.cancelled"] is True
    assert told(span)["error.type"].rpartition(".")[2] == type(error).__name__


def test_a_future_that_was_cancelled_is_the_callers_error(captured: Capture) -> None:
    with pytest.raises(FutureCancelled), tool("wait"):
        raise FutureCancelled
    assert captured.span("execute_tool wait").status.status_code is StatusCode.ERROR


@pytest.mark.parametrize("code", [None, 0])
def test_a_good_exit_ends_the_run_well(captured: Capture, code: int | None) -> None:
    with pytest.raises(SystemExit), agent_run("desk"):
        raise SystemExit(code)
    span = captured.span("invoke_agent desk")
    assert span.status.status_code is StatusCode.UNSET
    assert "error.type" not in told(span)


async def test_functions_of_every_kind_can_be_decorated(captured: Capture) -> None:
    @tool("plain")
    def plain(number: int) -> int:
        """Add one."""
        return number + 1

    @tool("coroutine")
    async def coroutine(number: int) -> int:
        await asyncio.sleep(0)
        return number + 1

    @tool("generator")
    def generator(number: int) -> Any:
        sent = yield number
        yield sent
        return "end"

    @tool("stream")
    async def stream(number: int) -> Any:
        sent = yield number
        yield sent

    @agent_run("desk")
    async def desk() -> list[Any]:
        numbers = generator(3)
        stream_of = stream(5)
        got = [plain(1), await coroutine(2), next(numbers), numbers.send(4), await anext(stream_of)]
        got.append(await stream_of.asend(6))
        with pytest.raises(StopIteration, match="end"):
            next(numbers)
        with pytest.raises(StopAsyncIteration):
            await anext(stream_of)
        return got

    assert await desk() == [2, 3, 3, 4, 5, 6]
    assert plain.__doc__ == "Add one."
    names = ["plain", "coroutine", "generator", "stream"]
    root = captured.span("invoke_agent desk")
    for name in names:
        span = captured.span(f"execute_tool {name}")
        assert (parent(span), span.status.status_code) == (own(root), StatusCode.UNSET)
        assert "error.type" not in told(span)


@pytest.mark.parametrize("make", [lambda: agent_run("x"), lambda: tool("x"), lambda: workflow("x")])
async def test_errors_pass_through_decorators(captured: Capture, make: Callable[[], Traced[Any]]) -> None:
    @make()
    def plain() -> None:
        raise DeskError("plain")

    @make()
    async def coroutine() -> None:
        raise DeskError("coroutine")

    with pytest.raises(DeskError, match="plain"):
        plain()
    with pytest.raises(DeskError, match="coroutine"):
        await coroutine()
    assert [span.status.description for span in captured.spans()] == ["plain", "coroutine"]


async def test_a_cancelled_task_ends_its_run_as_cancelled(captured: Capture) -> None:
    started = asyncio.Event()

    @agent_run("desk")
    async def desk() -> None:
        with tool("wait"):
            started.set()
            await asyncio.sleep(60)

    task = asyncio.create_task(desk())
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert [(s.name, told(s)["surefoot.cancelled"], s.status.status_code) for s in captured.spans()] == [
        ("execute_tool wait", True, StatusCode.UNSET),
        ("invoke_agent desk", True, StatusCode.UNSET),
    ]


async def test_one_object_serves_many_tasks_and_threads_at_once(captured: Capture) -> None:
    shared = tool("shared")
    barrier = threading.Barrier(3)

    async def in_task(name: str) -> None:
        with agent_run(name), shared as call:
            await asyncio.sleep(0.01 if name == "a" else 0.02)
            call.set_attribute("who", name)

    def in_thread(name: str) -> None:
        with agent_run(name), shared as call:
            barrier.wait(10)
            call.set_attribute("who", name)

    threads = [threading.Thread(target=in_thread, args=(name,)) for name in "xyz"]
    for thread in threads:
        thread.start()
    await asyncio.gather(in_task("b"), in_task("a"))
    for thread in threads:
        thread.join()
    runs = {own(span): told(span)["gen_ai.agent.name"] for span in captured.spans() if span.name.startswith("invoke")}
    calls = [span for span in captured.spans() if span.name == "execute_tool shared"]
    assert sorted(told(span)["who"] for span in calls) == ["a", "b", "x", "y", "z"]
    assert all(runs[parent(span) or 0] == told(span)["who"] == told(span)["gen_ai.agent.name"] for span in calls)


def test_work_handed_to_threads_stays_in_its_run(captured: Capture) -> None:
    @tool("look")
    def look(number: int) -> int:
        return number * 2

    with agent_run("desk", conversation_id="c"):
        with RunThreadPool(2) as pool:
            assert list(pool.map(look, range(4))) == [0, 2, 4, 6]
        thread = threading.Thread(target=propagate(look), args=(9,))
        thread.start()
        thread.join()
    root = captured.span("invoke_agent desk")
    looks = [span for span in captured.spans() if span.name == "execute_tool look"]
    assert len(looks) == 5
    assert {(parent(span), told(span)["gen_ai.conversation.id"]) for span in looks} == {(own(root), "c")}


def test_a_virtual_clock_gives_spans_and_events_their_times(captured: Capture) -> None:
    clock = VirtualClock(1_000.0)
    with use_clock(clock), agent_run("desk") as run:
        clock.advance(2.5)
        run.checkpoint("half")
        clock.advance(1)
        with pytest.raises(ValueError, match="no"), tool("fail"):
            raise ValueError("no")
    span, failed = captured.span("invoke_agent desk"), captured.span("execute_tool fail")
    assert (span.start_time, span.end_time) == (1_000_000_000_000, 1_003_500_000_000)
    assert [event.timestamp for event in (*span.events, *failed.events)] == [1_002_500_000_000, 1_003_500_000_000]
    assert captured.events("surefoot.run.started")[0].timestamp == 1_000_000_000_000


def test_confidence_has_a_range() -> None:
    with agent_run("desk") as run, pytest.raises(ValueError, match="between 0 and 100, not 101"):
        run.set_confidence(101)


def test_a_run_that_begins_says_so_once(captured: Capture) -> None:
    with agent_run(
        "desk", task_class="refund", versions={"p": "1"}, conversation_id="c", attributes={"other": 1}
    ) as run:
        (event,) = captured.events("surefoot.run.started")
    assert dict(event.attributes or {}) == {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "desk",
        "gen_ai.conversation.id": "c",
        "surefoot.task.class": "refund",
        "surefoot.versions.p": "1",
    }
    assert (event.trace_id, event.span_id) == (run.span_context.trace_id, run.span_context.span_id)
    assert len(captured.events("surefoot.run.started")) == 1
