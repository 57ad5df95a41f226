"""A tool with something around it: one way for plain and for async functions.

Rule: what stands around a tool is written once, as a generator. It gets the call, yields the call to make, receives the
result (or the tool's exception) and returns what the agent gets. So the two kinds of functions cannot differ in what
their agents see, which is how the published fault suite lost most of its faults.
"""

from __future__ import annotations

import functools
import inspect
import threading
from collections import Counter
from collections.abc import Awaitable, Callable, Generator, Mapping
from dataclasses import dataclass
from typing import Any

from surefoot.evaluation.errors import EvaluationError


class PerturbError(EvaluationError):
    """A perturbation that cannot be made as asked."""


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a tool. ``index``: which of this tool's calls in the attempt it is; ``place``: which of all calls."""

    tool: str
    index: int
    place: int
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]


Steps = Callable[[Call], Generator[Call, Any, Any]]


class Counts:
    """Numbers the calls of one attempt, from 0, also when threads call at the same time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._by_tool: Counter[str] = Counter()

    def call(self, tool: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Call:
        """Return the next call of this tool."""
        with self._lock:
            place, index = self._by_tool.total(), self._by_tool[tool]
            self._by_tool[tool] += 1
        return Call(tool, index, place, args, kwargs)

    @property
    def total(self) -> int:
        """How many calls there were."""
        return self._by_tool.total()


def around(tool: str, function: Callable[..., Any], counts: Counts, steps: Steps) -> Callable[..., Any]:
    """Return the function with ``steps`` around each of its calls."""
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise PerturbError(
            f"Perturbing the tool {tool!r}: it is a generator, whose result comes in parts. "
            "Wrap the function that returns the whole result, or leave this tool out."
        )
    if not (inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__)):

        def call(*args: Any, **kwargs: Any) -> Any:
            running = steps(counts.call(tool, args, kwargs))
            try:
                asked = next(running)
            except StopIteration as stop:
                return stop.value
            try:
                result = function(*asked.args, **asked.kwargs)
            except BaseException as error:  # noqa: BLE001 - the steps decide, and raise it again
                return _last(functools.partial(running.throw, error))
            if inspect.isawaitable(result):  # a plain function that gives a coroutine
                return _awaited(running, result)
            return _last(functools.partial(running.send, result))

        return functools.wraps(function)(call)

    async def call_async(*args: Any, **kwargs: Any) -> Any:
        running = steps(counts.call(tool, args, kwargs))
        try:
            asked = next(running)
        except StopIteration as stop:
            return stop.value
        return await _awaited(running, function(*asked.args, **asked.kwargs))

    return functools.wraps(function)(call_async)


async def _awaited(running: Generator[Call, Any, Any], result: Awaitable[Any]) -> Any:
    try:
        done = await result
    except BaseException as error:  # noqa: BLE001 - the steps decide, and raise it again
        return _last(functools.partial(running.throw, error))
    return _last(functools.partial(running.send, done))


def _last(step: Callable[[], Any]) -> Any:
    try:
        step()
    except StopIteration as stop:
        return stop.value
    raise RuntimeError("steps around a tool's call yielded twice")
