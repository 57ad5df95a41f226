"""Agents that end badly, each in its own way, and a suite of them."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
import time
from typing import Any

from surefoot.evaluation import AttemptContext, Checker, InfrastructureError, Protocol, Suite, Task

# What the next attempt in this process would find.
LEFT: list[int] = []


def agent(way: str, ctx: AttemptContext) -> Any:
    return WAYS[way](ctx)


def raises(_: AttemptContext) -> str:
    raise ValueError("no such order")


def hangs(_: AttemptContext) -> str:
    time.sleep(600)
    return ""


def hangs_for_good(_: AttemptContext) -> str:
    """Holds the interpreter's lock, so that no Python code of the process runs any more."""
    import ctypes

    ctypes.PyDLL(None).sleep(600)
    return ""


def exits(_: AttemptContext) -> str:
    sys.exit(3)


def exits_at_once(_: AttemptContext) -> str:
    os._exit(0)


def is_killed(_: AttemptContext) -> str:
    os.kill(os.getpid(), signal.SIGKILL)
    return ""


def crashes(_: AttemptContext) -> str:
    os.kill(os.getpid(), signal.SIGSEGV)
    return ""


def writes(_: AttemptContext) -> str:
    print("{not a message}")
    sys.stdout.flush()
    os.write(1, b"\x00\x00\x00\x05hello")
    os.write(2, b"and to stderr")
    return "fine"


def leaks_threads(_: AttemptContext) -> str:
    LEFT.append(os.getpid())
    threading.Thread(target=time.sleep, args=(600,), name="forgotten").start()
    return "fine" if len(LEFT) == 1 else "met a thread of the attempt before"


def leaks_again(context: AttemptContext) -> str:
    return leaks_threads(context)


def returns_much(_: AttemptContext) -> str:
    return "x" * 10_000_000


def needs_a_network(_: AttemptContext) -> str:
    raise InfrastructureError("the test database is down")


def cannot_be_told(_: AttemptContext) -> Any:
    return {"text": "a lone surrogate \ud800", "object": object, "bytes": b"\xff"}


async def waits(_: Any, __: AttemptContext) -> str:
    await asyncio.sleep(600)
    return ""


WAYS = {
    function.__name__: function
    for function in (
        raises,
        hangs,
        hangs_for_good,
        exits,
        exits_at_once,
        is_killed,
        crashes,
        writes,
        leaks_threads,
        leaks_again,
        returns_much,
        needs_a_network,
        cannot_be_told,
    )
}

fine = Checker(type="regex", expected="^(fine|x+|.*surrogate.*)$")
suite = Suite(
    name="dying",
    agent=agent,
    protocol=Protocol(k=1, effects="none", concurrency=2, timeout_seconds=2),
    tasks=tuple(Task(id=way, input=way, checkers=(fine,)) for way in WAYS),
)
