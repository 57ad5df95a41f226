"""Calling an agent: a coroutine function, or a plain one that a time limit has to be able to leave behind.

Rule: nothing that the agent raises ends the caller, SystemExit neither; a time limit is told from the agent's own, and
from a simulated user that does not answer.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import inspect
import threading
from collections.abc import Callable
from typing import Any

from surefoot.evaluation.agent import AttemptContext, call_with
from surefoot.evaluation.conversation import converse
from surefoot.evaluation.errors import AgentExitError, AttemptTimeoutError, InfrastructureError
from surefoot.evaluation.suite import Task


async def answer(agent: Any, task: Task, context: AttemptContext, *, limit: float, threads: bool) -> Any:
    """Return what the agent answers within ``limit`` seconds. Raises what it raises, and AttemptTimeoutError."""

    async def once(given: Any) -> Any:
        try:
            if _is_async(agent):
                result = await call_with(agent, given, context=context)
            else:
                result = await call_plain(threads, call_with, agent, given, context=context)
                result = await result if inspect.isawaitable(result) else result
            return _whole(result)
        except SystemExit as error:
            raise AgentExitError(
                f"The agent ended its program with {error.code!r} in the middle of an attempt."
            ) from error

    waiting_for_user = False

    async def asked(function: Callable[..., Any], *given: Any) -> Any:
        nonlocal waiting_for_user
        waiting_for_user = True
        found = await asyncio.to_thread(function, *given)
        waiting_for_user = False
        return found

    async def whole() -> Any:
        if task.user is None:
            return await once(context.input)
        return await converse(task.user, context.input, once, asked)

    deadline = asyncio.timeout(limit)
    try:
        async with deadline:
            return await whole()
    except TimeoutError as error:
        if not deadline.expired():
            raise  # the agent's own
        if waiting_for_user:
            raise InfrastructureError(
                f"The simulated user's endpoint was asked, and {limit:g} s of the attempt were over before it "
                "answered. Check that it is up, or raise timeout_seconds."
            ) from error
        raise AttemptTimeoutError(f"The attempt took longer than {limit:g} s.") from error


def _whole(result: Any) -> Any:
    """Return the answer. Raises InfrastructureError for a generator: nothing of the agent has run yet."""
    if inspect.isgenerator(result) or inspect.isasyncgen(result):
        raise InfrastructureError("The agent gave a generator, of which nothing ran; let it return the whole answer.")
    return result


def _is_async(agent: Any) -> bool:
    return inspect.iscoroutinefunction(agent) or inspect.iscoroutinefunction(type(agent).__call__)


async def call_plain(threads: bool, function: Callable[..., Any], *given: Any, **named: Any) -> Any:
    """Call a plain function; in a thread of its own where the time limit has to be able to leave it behind."""
    if not threads:
        return function(*given, **named)
    loop = asyncio.get_running_loop()
    done: asyncio.Future[Any] = loop.create_future()
    within = contextvars.copy_context()

    def work() -> None:
        result, error = None, None
        try:
            result = within.run(function, *given, **named)
        except BaseException as caught:  # noqa: BLE001 - SystemExit, too: it must not end the thread unheard
            error = caught
        with contextlib.suppress(RuntimeError):  # the loop is gone: nobody waits any more
            loop.call_soon_threadsafe(_settle, done, result, error)

    threading.Thread(target=work, name="surefoot-agent", daemon=True).start()
    result, error = await done
    if error is not None:
        raise error
    return result


def _settle(done: asyncio.Future[Any], result: Any, error: BaseException | None) -> None:
    # As a value, since a future takes neither SystemExit nor StopIteration as its exception.
    if not done.done():
        done.set_result((result, error))
