"""A child process that makes attempts, one at a time, as its parent orders them over a socket.

Rule: nothing that happens in here reaches the parent but messages: the agent's stdout and stderr are a log file, its
exit is the end of the socket. When the parent is gone, this process and everything that it started is killed.

Messages are a length (4 bytes, big endian) and JSON. From here: ``ready`` or ``failed`` once; then per order ``began``,
``answered`` and ``done``. ``done`` says whether the attempt left something behind that the next one would meet:
threads, tasks, processes, another environment, working directory, locale, signal handler or standard stream. What
modules keep in variables is not seen.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import locale
import os
import queue
import signal
import socket
import struct
import sys
import threading
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from surefoot.errors import SurefootError
from surefoot.evaluation import telemetry
from surefoot.evaluation.execute import Means, Order, make_attempt
from surefoot.evaluation.loading import load_suite, resolve
from surefoot.evaluation.records import Attempt, to_json
from surefoot.instrumentation import flush
from surefoot.instrumentation.launch import command_environment

LENGTH: Final = struct.Struct(">I")
# An attempt's spans must be delivered before its process may be replaced.
_FLUSH_SECONDS: Final = 30.0
_START_FLUSH_SECONDS: Final = 2.0
_ENDING_SECONDS: Final = 0.2


def main(descriptor: int, source: str, variant: str, endpoint: str | None) -> None:
    """Serve orders until the parent closes the socket."""
    channel = socket.socket(fileno=descriptor)
    try:
        suite = load_suite(source)
        usage = telemetry.set_up(suite.called, endpoint)
        resolve(suite.variant(variant).agent or suite.agent, f"agent of {variant}")
    except SurefootError as error:
        _send(channel, {"failed": str(error)})
        return
    # A process that the agent forks is not the one that answers, and must not keep the socket open when that one ends.
    os.register_at_fork(after_in_child=channel.close)
    means = Means(suite, usage, threads=True)
    orders = _listen(channel)
    _send(channel, {"ready": True})
    known = set(threading.enumerate())
    while True:
        order = orders.get()
        before, running = _surroundings(), _processes()
        attempt, left = _alone(_attempt(means, Order(**order), channel, endpoint))
        if endpoint is not None and not flush(_FLUSH_SECONDS):
            attempt = replace(attempt, extra={**attempt.extra, "undelivered": True})
        left += _left_behind(known)
        left += [name for name, value in _surroundings().items() if value != before[name]]
        left += [f"process {pid}" for pid in _processes() - running]
        _send(channel, {"done": to_json(attempt), "left": left})


def instrument() -> None:
    """Load what ``surefoot run`` loads before a program's first line, in a process that was not started by it."""
    from opentelemetry.instrumentation.auto_instrumentation import initialize

    initialize()
    os.environ["PYTHONPATH"] = command_environment(os.environ)["PYTHONPATH"]  # for what the agent starts


def _alone(attempt: Coroutine[Any, Any, Attempt]) -> tuple[Attempt, list[str]]:
    """Run the attempt in an event loop of its own, and wait for nothing that it leaves there."""
    loop = asyncio.new_event_loop()
    executor = ThreadPoolExecutor(thread_name_prefix="surefoot-executor")
    loop.set_default_executor(executor)
    asyncio.set_event_loop(loop)
    done = loop.run_until_complete(attempt)
    left = [f"task {task.get_name()}" for task in asyncio.all_tasks(loop)]
    executor.shutdown(wait=False, cancel_futures=True)
    if not left:
        loop.close()
    return done, left


async def _attempt(means: Means, order: Order, channel: socket.socket, endpoint: str | None) -> Attempt:
    def began(attempt: Attempt) -> None:
        if endpoint is not None:
            # A run whose process dies exports no span: its start has to be there before the agent can kill it.
            flush(_START_FLUSH_SECONDS)
        _send(channel, {"began": {"trace_id": attempt.trace_id, "run_id": attempt.run_id}})

    return await make_attempt(
        means, order, began=began, answered=lambda attempt: _send(channel, {"answered": to_json(attempt)})
    )


def _surroundings() -> dict[str, Any]:
    """Return what the next attempt would find."""
    try:
        folder = str(Path.cwd())
    except FileNotFoundError:
        folder = "gone"
    return {
        "the working directory": folder,
        "the environment": {name: value for name, value in os.environ.items() if not name.startswith("OTEL_")},
        "the locale": locale.setlocale(locale.LC_ALL),
        "signal handlers": [signal.getsignal(number) for number in signal.valid_signals()],
        "standard streams": [_opened(descriptor) for descriptor in range(3)],
        "sys.stdout or sys.stderr": [(stream, stream.closed) for stream in (sys.stdout, sys.stderr)],
    }


def _opened(descriptor: int) -> tuple[int, int] | None:
    try:
        status = os.fstat(descriptor)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _processes() -> set[str]:
    """Return the living children of this process, where the system has /proc to tell them."""
    found: set[str] = set()
    for thread in Path("/proc/self/task").glob("*/children"):
        with contextlib.suppress(OSError):  # the thread has ended
            found.update(thread.read_text().split())
    return found


def _left_behind(known: set[threading.Thread]) -> list[str]:
    """Return the threads that the attempt left running; this process's own are known."""
    started = [thread for thread in threading.enumerate() if thread not in known]
    for thread in started:
        # One that is about to end, such as an idle one of the executor, is not left behind.
        thread.join(_ENDING_SECONDS / len(started))
    return [f"thread {thread.name}" for thread in started if thread.is_alive()]


def _listen(channel: socket.socket) -> queue.SimpleQueue[dict[str, Any]]:
    """Read orders in a thread, so that the parent's end is noticed in the middle of an attempt, too."""
    orders: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()

    def read() -> None:
        with contextlib.suppress(OSError):
            while head := _exactly(channel, LENGTH.size):
                body = _exactly(channel, LENGTH.unpack(head)[0])
                orders.put(json.loads(body))
        # This process is the leader of its own group: what the agent started ends with it.
        os.killpg(os.getpgrp(), signal.SIGKILL)

    threading.Thread(target=read, name="surefoot-orders", daemon=True).start()
    return orders


def _exactly(channel: socket.socket, size: int) -> bytes:
    found = bytearray()
    while len(found) < size:
        part = channel.recv(min(size - len(found), 1 << 20))
        if not part:
            return b""
        found += part
    return bytes(found)


def _send(channel: socket.socket, message: dict[str, Any]) -> None:
    if channel.fileno() < 0:
        os._exit(0)  # a fork of the agent's own that came back to here
    body = json.dumps(message).encode()
    channel.sendall(LENGTH.pack(len(body)) + body)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], sys.argv[3], sys.argv[4] or None)
