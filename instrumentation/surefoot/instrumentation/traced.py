"""Makes an operation out of a ``with`` block, a function, a coroutine or a generator of either kind.

A generator's body runs inside its operation, its consumer does not: the operation is made current for each step and put
away before a value is handed out. So a consumer in another task, one that stops early, or the garbage collector, all
end the span once and quietly.
"""

from __future__ import annotations

import functools
import inspect
import sys
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextvars import Token
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Generic, ParamSpec, TypeVar, cast

from opentelemetry.context import Context

from surefoot.instrumentation.operation import Operation, Plan, leave

Op = TypeVar("Op", bound=Operation)
P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class _Entry(Generic[Op]):
    operation: Op
    token: Token[Context]
    owner: tuple[int, int]


class Traced(Generic[Op]):
    """An operation to be: enter it (``with``, ``async with``), or decorate a function with it.

    Every entry and every call is an operation of its own, also when many threads and tasks share this object.
    """

    def __init__(self, kind: type[Op], plan: Plan) -> None:
        self._kind = kind
        self._plan = plan
        self._entries: list[_Entry[Op]] = []
        self._lock = threading.Lock()

    def start(self) -> Op:
        """Start the operation without making it current; the caller ends it."""
        return self._kind(self._plan)

    def __enter__(self) -> Op:
        operation = self.start()
        entry = _Entry(operation, operation.attach(), _owner())
        with self._lock:
            self._entries.append(entry)
        return operation

    def __exit__(
        self, _kind: type[BaseException] | None, error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        entry = self._take(_owner())
        leave(entry.token)
        entry.operation.end(error)

    async def __aenter__(self) -> Op:
        return self.__enter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.__exit__(kind, error, trace)

    def __call__(self, function: Callable[P, R]) -> Callable[P, R]:
        """Decorate: every call is one operation. Works for all four kinds of functions."""
        wrapper: Callable[..., Any]
        if inspect.isasyncgenfunction(function):
            wrapper = self._async_generator(function)
        elif inspect.iscoroutinefunction(function):
            wrapper = self._coroutine(function)
        elif inspect.isgeneratorfunction(function):
            wrapper = self._generator(function)
        else:
            wrapper = self._function(function)
        return cast("Callable[P, R]", functools.wraps(function)(wrapper))

    def _take(self, owner: tuple[int, int]) -> _Entry[Op]:
        """The youngest entry of this thread and task; if none is left, the block was closed by another one."""
        with self._lock:
            mine = (index for index in reversed(range(len(self._entries))) if self._entries[index].owner == owner)
            return self._entries.pop(next(mine, -1))

    def _function(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            operation = self.start()
            try:
                with operation.active():
                    result = function(*args, **kwargs)
            except BaseException as error:
                operation.end(error)
                raise
            operation.end()
            return result

        return call

    def _coroutine(self, function: Callable[..., Any]) -> Callable[..., Any]:
        async def call(*args: Any, **kwargs: Any) -> Any:
            operation = self.start()
            try:
                with operation.active():
                    result = await function(*args, **kwargs)
            except BaseException as error:
                operation.end(error)
                raise
            operation.end()
            return result

        return call

    def _generator(self, function: Callable[..., Generator[Any, Any, Any]]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
            operation = self.start()
            inner = function(*args, **kwargs)
            step: Callable[[], Any] = functools.partial(next, inner)
            while True:
                try:
                    with operation.active():
                        item = step()
                except StopIteration as stop:
                    operation.end()
                    return stop.value
                except BaseException as error:
                    operation.end(error)
                    raise
                try:
                    sent = yield item
                except GeneratorExit as closed:
                    _close(inner, operation, closed)
                    raise
                except BaseException as thrown:  # noqa: BLE001 - it is the body's to handle
                    step = functools.partial(inner.throw, thrown)
                else:
                    step = functools.partial(inner.send, sent)

        return call

    def _async_generator(self, function: Callable[..., AsyncGenerator[Any, Any]]) -> Callable[..., Any]:
        async def call(*args: Any, **kwargs: Any) -> AsyncGenerator[Any, Any]:
            operation = self.start()
            inner = function(*args, **kwargs)
            step: Callable[[], Awaitable[Any]] = inner.__anext__
            while True:
                try:
                    with operation.active():
                        item = await step()
                except StopAsyncIteration:
                    operation.end()
                    return
                except BaseException as error:
                    operation.end(error)
                    raise
                try:
                    sent = yield item
                except GeneratorExit as closed:
                    await _aclose(inner, operation, closed)
                    raise
                except BaseException as thrown:  # noqa: BLE001 - it is the body's to handle
                    step = functools.partial(inner.athrow, thrown)
                else:
                    step = functools.partial(inner.asend, sent)

        return call


def _owner() -> tuple[int, int]:
    """The thread and, where an event loop runs in it, the task."""
    thread = threading.get_ident()
    asyncio = sys.modules.get("asyncio")  # not imported here: it is large, and without it there are no tasks
    if asyncio is None or asyncio._get_running_loop() is None:  # noqa: SLF001 - asks without raising, unlike the other
        return thread, 0
    return thread, id(asyncio.current_task())


def _close(inner: Generator[Any, Any, Any], operation: Operation, closed: GeneratorExit) -> None:
    """The consumer stopped early: let the body clean up inside its operation, then end it as given up."""
    try:
        with operation.active():
            inner.close()
    except BaseException as error:
        operation.end(error)
        raise
    operation.end(closed)


async def _aclose(inner: AsyncGenerator[Any, Any], operation: Operation, closed: GeneratorExit) -> None:
    try:
        with operation.active():
            await inner.aclose()
    except BaseException as error:
        operation.end(error)
        raise
    operation.end(closed)
