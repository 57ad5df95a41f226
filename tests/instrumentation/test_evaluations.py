"""Verdicts: what the event says, and what it is about."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from typing import Any

import pytest
from opentelemetry._logs import LogRecord

from surefoot.instrumentation import agent_run, evaluation, record_evaluation
from surefoot.instrumentation.testing import Capture, VirtualClock, use_clock


def told(record: LogRecord) -> dict[str, Any]:
    return dict(record.attributes or {})


def verdicts(captured: Capture) -> list[LogRecord]:
    return captured.events("gen_ai.evaluation.result")


def test_everything_that_a_verdict_can_say(captured: Capture) -> None:
    with agent_run("desk") as run, use_clock(VirtualClock(50)):
        record_evaluation(
            "final_state",
            label="fail",
            score=0,
            explanation="not refunded",
            kind="outcome",
            finality="final",
            severity="high",
            grader_name="db",
            grader_version="3",
            grader_kind="executable",
            supersedes="v1",
            response_id="r",
            span_context=run.span_context,
            attributes={"mine": 1},
        )
    (event,) = verdicts(captured)
    assert told(event) == {
        "gen_ai.evaluation.name": "final_state",
        "gen_ai.evaluation.score.label": "fail",
        "gen_ai.evaluation.score.value": 0.0,
        "gen_ai.evaluation.explanation": "not refunded",
        "gen_ai.response.id": "r",
        "surefoot.evaluation.kind": "outcome",
        "surefoot.evaluation.finality": "final",
        "surefoot.evaluation.severity": "high",
        "surefoot.evaluation.supersedes": "v1",
        "surefoot.evaluator.name": "db",
        "surefoot.evaluator.version": "3",
        "surefoot.evaluator.kind": "executable",
        "mine": 1,
    }
    assert event.timestamp == event.observed_timestamp == 50_000_000_000


def test_on_what_a_verdict_is(captured: Capture) -> None:
    with agent_run("desk") as run:
        record_evaluation("current", label="pass")
        with agent_run("grader"):
            record_evaluation("by context", label="pass", span_context=run.span_context)
            record_evaluation("by response", label="pass", response_id="r")
    trace_id, span_id = f"{run.span_context.trace_id:032x}", f"{run.span_context.span_id:016x}"
    record_evaluation("by ids, later", label="pass", trace_id=trace_id, span_id=span_id)
    record_evaluation("by trace", label="pass", trace_id=trace_id)
    where = {told(event)["gen_ai.evaluation.name"]: (event.trace_id, event.span_id) for event in verdicts(captured)}
    ids = (run.span_context.trace_id, run.span_context.span_id)
    assert where == {
        "current": ids,
        "by context": ids,
        "by ids, later": ids,
        "by response": (0, 0),
        "by trace": (ids[0], 0),
    }


def test_a_verdict_needs_something_to_say() -> None:
    with pytest.raises(ValueError, match="'x' needs a label, a score, or the error"):
        record_evaluation("x")
    with pytest.raises(ValueError, match="needs a label"), evaluation("x"):
        pass


@pytest.mark.parametrize(
    ("result", "said"),
    [
        (True, {"label": "pass", "score": 1.0}),
        (False, {"label": "fail", "score": 0.0}),
        (0.25, {"score": 0.25}),
        (2, {"score": 2.0}),
        ("poor", {"label": "poor"}),
        ((False, "why"), {"label": "fail", "score": 0.0, "explanation": "why"}),
    ],
)
def test_graders_of_every_kind_of_function(captured: Capture, result: Any, said: dict[str, Any]) -> None:
    @evaluation("g", grader_kind="model")
    def plain() -> Any:
        return result

    @evaluation("g", grader_kind="model")
    async def coroutine() -> Any:
        return result

    @evaluation("g", grader_kind="model")
    def generator() -> Iterator[Any]:
        yield result

    @evaluation("g", grader_kind="model")
    async def stream() -> AsyncIterator[Any]:
        yield result

    async def all_of_stream() -> list[Any]:
        return [item async for item in stream()]

    assert [plain(), asyncio.run(coroutine()), *generator(), *asyncio.run(all_of_stream())] == [result] * 4
    names = {"label": "score.label", "score": "score.value", "explanation": "explanation"}
    expected = {f"gen_ai.evaluation.{names[key]}": value for key, value in said.items()}
    assert [told(event) for event in verdicts(captured)] == [
        {"gen_ai.evaluation.name": "g", "surefoot.evaluator.kind": "model", **expected}
    ] * 4


def test_a_block_grades_what_it_found(captured: Capture) -> None:
    with evaluation("g") as found:
        found.label, found.explanation = "pass", "seen"
    (event,) = verdicts(captured)
    assert told(event) == {
        "gen_ai.evaluation.name": "g",
        "gen_ai.evaluation.score.label": "pass",
        "gen_ai.evaluation.explanation": "seen",
    }


async def test_a_grader_that_fails_says_so_and_raises(captured: Capture) -> None:
    @evaluation("g")
    def plain() -> bool:
        raise TimeoutError("slow")

    @evaluation("g")
    async def stream() -> AsyncIterator[bool]:
        yield True
        raise TimeoutError("slow")

    with pytest.raises(TimeoutError):
        plain()
    with pytest.raises(TimeoutError):
        assert [item async for item in stream()]
    assert [told(event).get("error.type") for event in verdicts(captured)] == ["TimeoutError", None, "TimeoutError"]
    assert "gen_ai.evaluation.score.label" not in told(verdicts(captured)[0])


def test_a_result_that_is_no_verdict_is_the_graders_error(captured: Capture) -> None:
    @evaluation("g")
    def wrong() -> Any:
        return None

    with pytest.raises(TypeError, match="got None"):
        wrong()
    assert told(verdicts(captured)[0])["error.type"] == "TypeError"


async def test_a_cancelled_grader_has_no_verdict(captured: Capture) -> None:
    @evaluation("g")
    async def slow() -> bool:
        await asyncio.sleep(60)
        return True

    task = asyncio.create_task(slow())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert verdicts(captured) == []


async def test_a_stream_of_verdicts_left_early_keeps_those_that_came(captured: Capture) -> None:
    @evaluation("g")
    async def stream() -> AsyncGenerator[float, None]:
        yield 0.1
        yield 0.2

    generator = stream()
    assert await anext(generator) == 0.1
    await generator.aclose()
    assert [told(event)["gen_ai.evaluation.score.value"] for event in verdicts(captured)] == [0.1]


async def test_one_grader_serves_many_tasks(captured: Capture) -> None:
    shared = evaluation("g")

    async def grade(label: str, seconds: float) -> None:
        with shared as found:
            await asyncio.sleep(seconds)
            found.label = label

    await asyncio.gather(grade("slow", 0.02), grade("quick", 0.001))
    assert [told(event)["gen_ai.evaluation.score.label"] for event in verdicts(captured)] == ["quick", "slow"]
