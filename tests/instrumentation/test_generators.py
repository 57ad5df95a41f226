"""Generators that end in every way but the expected one: the span ends once, rightly, and nothing is logged."""

from __future__ import annotations

import asyncio
import gc
import logging
import threading
from collections.abc import AsyncGenerator, Generator, Iterator

import pytest
from opentelemetry.trace import StatusCode, get_current_span

from surefoot.instrumentation import agent_run, tool
from surefoot.instrumentation.testing import Capture


@pytest.fixture(autouse=True)
def _quiet(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    with caplog.at_level(logging.DEBUG, logger="opentelemetry"):
        yield
        assert [record.getMessage() for record in caplog.records if record.name.startswith("opentelemetry")] == []


@agent_run("streamer")
def numbers() -> Generator[int, int | None, str]:
    try:
        with tool("inside"):
            pass
        yield from range(3)
    finally:
        with tool("clean_up"):
            pass
    return "done"


@agent_run("streamer")
async def stream() -> AsyncGenerator[int, None]:
    try:
        for number in range(3):
            with tool("inside"):
                await asyncio.sleep(0)
            yield number
    finally:
        with tool("clean_up"):
            pass


def ended(captured: Capture) -> tuple[StatusCode, bool]:
    """Status and cancellation of the only run, whose tools are all its children."""
    run = captured.span("invoke_agent streamer")
    assert run.context is not None
    tools = [span for span in captured.spans() if span.name.startswith("execute_tool")]
    assert {span.parent.span_id if span.parent else None for span in tools} == {run.context.span_id}
    return run.status.status_code, bool((run.attributes or {}).get("surefoot.cancelled"))


def test_read_to_the_end(captured: Capture) -> None:
    assert list(numbers()) == [0, 1, 2]
    assert ended(captured) == (StatusCode.UNSET, False)


def test_the_consumer_is_not_inside(captured: Capture) -> None:
    with tool("consumer") as outer:
        for _ in numbers():
            assert get_current_span() is outer.span
    assert captured.span("invoke_agent streamer").parent == outer.span_context


def test_closed_early(captured: Capture) -> None:
    generator = numbers()
    next(generator)
    generator.close()
    assert ended(captured) == (StatusCode.UNSET, True)


def test_collected(captured: Capture) -> None:
    generator = numbers()
    next(generator)
    del generator
    gc.collect()
    assert ended(captured) == (StatusCode.UNSET, True)


def test_never_started_is_no_run(captured: Capture) -> None:
    numbers().close()
    assert captured.spans() == []


def test_thrown_into(captured: Capture) -> None:
    generator = numbers()
    next(generator)
    with pytest.raises(KeyError):
        generator.throw(KeyError("x"))
    assert ended(captured) == (StatusCode.ERROR, False)


def test_closed_by_another_thread(captured: Capture) -> None:
    generator = numbers()
    next(generator)
    thread = threading.Thread(target=generator.close)
    thread.start()
    thread.join()
    assert ended(captured) == (StatusCode.UNSET, True)


async def test_async_read_to_the_end(captured: Capture) -> None:
    assert [number async for number in stream()] == [0, 1, 2]
    assert ended(captured) == (StatusCode.UNSET, False)


async def test_async_left_early_and_closed_by_another_task(captured: Capture) -> None:
    generator = stream()
    await anext(generator)
    await asyncio.create_task(generator.aclose())
    assert ended(captured) == (StatusCode.UNSET, True)


async def test_async_each_step_in_another_task(captured: Capture) -> None:
    generator = stream()
    for expected in range(3):
        assert await asyncio.create_task(anext(generator)) == expected
    with pytest.raises(StopAsyncIteration):
        await asyncio.create_task(anext(generator))
    assert ended(captured) == (StatusCode.UNSET, False)


def test_async_abandoned_at_the_end_of_the_loop(captured: Capture) -> None:
    async def leave_early() -> None:
        async for _ in stream():
            break

    asyncio.run(leave_early())
    gc.collect()
    assert ended(captured) == (StatusCode.UNSET, True)


async def test_async_cancelled_while_it_waits(captured: Capture) -> None:
    @agent_run("streamer")
    async def waiting() -> AsyncGenerator[int, None]:
        with tool("inside"):
            await asyncio.sleep(60)
        yield 1

    generator = waiting()
    task = asyncio.create_task(anext(generator))
    await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ended(captured) == (StatusCode.UNSET, True)


async def test_a_block_inside_a_plain_generator_closed_by_another_task(captured: Capture) -> None:
    async def plain() -> AsyncGenerator[int, None]:
        with agent_run("streamer"):
            with tool("inside"):
                pass
            yield 1
            yield 2

    generator = plain()
    await asyncio.create_task(anext(generator))
    await asyncio.create_task(generator.aclose())
    assert ended(captured) == (StatusCode.UNSET, True)
