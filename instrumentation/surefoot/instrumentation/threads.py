"""Work handed to threads keeps its place: spans made there are children of the run that started them."""

from __future__ import annotations

import contextvars
import functools
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


def propagate(function: Callable[P, R]) -> Callable[P, R]:
    """The function, bound to the context in force now: give it to ``threading.Thread`` or an executor."""
    context = contextvars.copy_context()

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        # A context can be entered once at a time; a copy lets one bound function run in many threads.
        return context.copy().run(function, *args, **kwargs)

    return call


class RunThreadPool(ThreadPoolExecutor):
    """A thread pool whose work runs in the context of its ``submit``."""

    def submit(self, fn: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> Future[R]:
        """As ThreadPoolExecutor.submit, in the caller's context."""
        return super().submit(propagate(fn), *args, **kwargs)
