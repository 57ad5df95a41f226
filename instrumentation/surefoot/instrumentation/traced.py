"""Makes an operation out of a ``with`` block, a function, a coroutine or a generator of either kind.

A generator's body runs inside its operation, its consumer does not: the operation is made current for each step and put
away before a value is handed out. So a consumer in another task, one that stops early, or the garbage collector, all
end the span once and quietly.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator
from contextvars import Token
from types import TracebackType
from typing import Any, Generic, ParamSpec, TypeVar, cast

from opentelemetry.context import Context

from surefoot.instrumentation.operation import Operation, Plan, leave

Op = TypeVar("Op", bound=Operation)
P = ParamSpec("P")
R = TypeVar("R")


class Traced(Generic[Op]):
    """An operation to be: enter it (``with``, ``async with``), or decorate a function with it.

    A decorated function may run many times at once, each call is an operation of its own. An object that is entered
    serves one block at a time; nested entries are fine.
    """

    def __init__(self, kind: type[Op], plan: Callable[[], Plan]) -> None:
        self._kind = kind
        self._plan = plan
        self._entered: list[tuple[Op, Token[Context]]] = []

    def start(self) -> Op:
        """Start the operation without making it current; the caller ends it."""
        return self._kind(self._plan())

    def __enter__(self) -> Op:
        operation = self.start()
        self._entered.append((operation, operation.attach()))
        return operation

    def __exit__(
        self, _kind: type[BaseException] | None, error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        operation, token = self._entered.pop()
        leave(token)
        operation.end(error)

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

    def _generator(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
            operation = self.start()
            inner: Generator[Any, Any, Any] = function(*args, **kwargs)
            step: Callable[[], Any] = lambda: next(inner)  # noqa: E731 - replaced below by what the consumer did
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
                except BaseException as thrown:  # noqa: BLE001 - handed to the body, which decides
                    step = functools.partial(inner.throw, thrown)
                else:
                    step = functools.partial(inner.send, sent)

        return call

    def _async_generator(self, function: Callable[..., Any]) -> Callable[..., Any]:
        async def call(*args: Any, **kwargs: Any) -> AsyncIterator[Any]:
            operation = self.start()
            inner: AsyncGenerator[Any, Any] = function(*args, **kwargs)
            step: Callable[[], Any] = inner.__anext__
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
                except BaseException as thrown:  # noqa: BLE001 - handed to the body, which decides
                    step = functools.partial(inner.athrow, thrown)
                else:
                    step = functools.partial(inner.asend, sent)

        return call


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
