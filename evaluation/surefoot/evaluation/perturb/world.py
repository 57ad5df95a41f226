"""A world that does not wait: somebody else changes the state between two calls, or the workflow is cut off.

Rule: both happen once per attempt, at a place that is given, so that two variants meet the same thing.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import threading
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from typing import Any

from surefoot.evaluation.agent import AttemptContext, call_with
from surefoot.evaluation.loading import resolve
from surefoot.evaluation.perturb.calls import Call, Counts, PerturbError, around
from surefoot.evaluation.suite import Reference


class WorkflowInterruptedError(BaseException):
    """The workflow was cut off. No ``except Exception`` of an agent stops it, as none would stop a killed process."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConcurrentUpdate:
    """Somebody else's change of the fixture: ``change(state)`` before call ``before_call`` (1 is the first)."""

    change: Callable[[Any], Any]
    before_call: int = 2

    def __post_init__(self) -> None:
        if self.before_call < 1:
            raise PerturbError("ConcurrentUpdate: before_call counts from 1.")

    @contextlib.contextmanager
    def __call__(self, context: AttemptContext) -> Iterator[None]:
        """Stand around an attempt's tools, and note whether the change happened."""
        counts, note = Counts(), {"before_call": self.before_call, "done": False}

        def steps(call: Call) -> Generator[Call, Any, Any]:
            if call.place == self.before_call - 1:
                self.change(context.state)
                note["done"] = True
            return (yield call)

        context.wraps.append(lambda name, function: around(name, function, counts, steps))
        context.notes["concurrent_update"] = note
        yield


@dataclass(frozen=True, slots=True, kw_only=True)
class Interrupted:
    """An agent that is cut off when call ``after_call`` was done, and then resumed on the state that it left.

    ``resume(task_input, ctx)`` goes on; None: the agent is called again, as after a crash. It stands where the agent
    would: ``Variant(name="cut off", agent=Interrupted(agent=my_agent))``.
    """

    agent: Reference
    after_call: int = 1
    resume: Reference | None = None

    def __post_init__(self) -> None:
        if self.after_call < 1:
            raise PerturbError("Interrupted: after_call counts from 1.")

    async def __call__(self, task_input: Any, ctx: AttemptContext) -> Any:
        """Call the agent, and again where it was cut off."""
        agent = resolve(self.agent, "agent")
        if "interrupt" in ctx.notes:  # a later turn of a conversation
            return await _call(agent, task_input, ctx)
        note = {"after_call": self.after_call, "done": False}
        ctx.notes["interrupt"] = note
        cut = _Cut(self.after_call)
        ctx.wraps.append(cut.wrap)
        try:
            answer = await _call(agent, task_input, ctx)
        except BaseException:
            # Whatever came through: groups and frameworks wrap what they do not know.
            if not cut.off:
                raise
        note["done"] = cut.off
        if not cut.off:
            return answer
        ctx.wraps.remove(cut.wrap)
        return await _call(agent if self.resume is None else resolve(self.resume, "resume"), task_input, ctx)


class _Cut:
    """What stands around tools until the interruption. Left-over calls of the part that was cut off stay cut off."""

    def __init__(self, after: int) -> None:
        self.off = False
        self._after = after
        self._done = 0
        self._counts = Counts()
        self._lock = threading.Lock()

    def wrap(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return the tool: when enough calls are done the workflow is cut off."""
        return around(name, function, self._counts, self._steps)

    def _steps(self, call: Call) -> Generator[Call, Any, Any]:
        if self.off:
            raise WorkflowInterruptedError
        result = yield call
        with self._lock:
            self._done += 1
            self.off = self.off or self._done >= self._after
        if self.off:
            raise WorkflowInterruptedError
        return result


async def _call(agent: Callable[..., Any], task_input: Any, ctx: AttemptContext) -> Any:
    if inspect.iscoroutinefunction(agent) or inspect.iscoroutinefunction(type(agent).__call__):
        return await call_with(agent, task_input, context=ctx)
    answer = await asyncio.to_thread(call_with, agent, task_input, context=ctx)
    return await answer if inspect.isawaitable(answer) else answer
