"""Starts, watches and restarts the processes of ``surefoot serve``.

Contract: each program says that it is ready with one JSON line on stdout; a program that ends before that stops the
whole start, one that ends later is started again with back-off. Programs are started with ``Popen`` from the main
thread and never by forking this process (delta-rs panics after a fork), in a session of their own so that Ctrl-C
reaches only the supervisor, which then stops them in order. When the supervisor is killed, the kernel sends
each program SIGTERM.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import logging
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import FrameType
from typing import IO, Any

from surefoot.errors import SurefootError

log = logging.getLogger("surefoot.supervisor")

READY_SECONDS = 60.0
STOP_SECONDS = 30.0
FIRST_BACKOFF_SECONDS = 0.5
LONGEST_BACKOFF_SECONDS = 30.0
STABLE_SECONDS = 60.0  # a program that ran this long starts again with the shortest back-off
_PR_SET_PDEATHSIG = 1


class StartError(SurefootError):
    """A program could not be started; its own message is on stderr."""

    def __init__(self, message: str, exit_code: int) -> None:
        super().__init__(message)
        self.exit_code = exit_code


@dataclass(frozen=True, slots=True)
class Program:
    """What to start. ``argv`` gets the ready line of the last start, so that a restart keeps its ports."""

    name: str
    argv: Callable[[Mapping[str, Any]], Sequence[str]]
    environment: Mapping[str, str]


@dataclass(slots=True)
class _Child:
    program: Program
    process: subprocess.Popen[str] | None = None
    ready: dict[str, Any] = field(default_factory=dict)
    lines: queue.SimpleQueue[str | None] = field(default_factory=queue.SimpleQueue)
    started: float = 0.0
    backoff: float = FIRST_BACKOFF_SECONDS
    restart_at: float | None = None
    restarts: int = 0
    last_exit: int | None = None


def _end_with_parent() -> None:
    """Runs in the child between fork and exec: ask Linux for SIGTERM when the supervisor dies."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


def _pump(stream: IO[str], lines: queue.SimpleQueue[str | None]) -> None:
    with stream:
        for line in stream:
            lines.put(line)
    lines.put(None)


class Supervisor:
    """Runs the programs in the order given; stops them in the same order, so that the collector drains first."""

    def __init__(self, programs: Sequence[Program], publish: Callable[[dict[str, Any]], None]) -> None:
        self._children = [_Child(program) for program in programs]
        self._publish = publish
        self._stopping = threading.Event()
        self._is_started = False

    def start(self) -> dict[str, Any]:
        """Start all programs and return their ready lines merged. Raises StartError if one does not get ready."""
        for child in self._children:
            self._spawn(child)
        deadline = time.monotonic() + READY_SECONDS
        try:
            for child in self._children:
                self._await_ready(child, deadline)
        except BaseException:
            self.stop()
            raise
        self._is_started = True
        self._report()
        return {key: value for child in self._children for key, value in child.ready.items()}

    @property
    def pids(self) -> dict[str, int]:
        """Process ids of the programs that run now."""
        return {c.program.name: c.process.pid for c in self._children if c.process is not None}

    def request_stop(self) -> None:
        """Make :meth:`watch` return soon. Safe to call from a signal handler or another thread."""
        self._stopping.set()

    def watch(self) -> None:
        """Restart programs that end, until a stop is requested."""
        while not self._stopping.wait(0.2):
            for child in self._children:
                self._tend(child)

    def stop(self) -> None:
        """Stop the programs one after another; one that does not end in time is killed, and that is said."""
        for child in self._children:
            process = child.process
            if process is None:
                continue
            if process.poll() is None:
                process.terminate()
            try:
                process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                log.error("%s did not stop within %.0f s and is killed", child.program.name, STOP_SECONDS)
                process.kill()
                process.wait()
            child.last_exit = process.returncode
            child.process = None
        self._report()

    def _spawn(self, child: _Child) -> None:
        child.lines = queue.SimpleQueue()
        child.process = subprocess.Popen(
            [sys.executable, *child.program.argv(child.ready)],
            env=dict(child.program.environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
            preexec_fn=_end_with_parent,  # noqa: PLW1509 - one prctl call, no locks; the supervisor's threads only read pipes
        )
        child.started = time.monotonic()
        child.restart_at = None
        assert child.process.stdout is not None  # noqa: S101 - stdout=PIPE
        threading.Thread(target=_pump, args=(child.process.stdout, child.lines), daemon=True).start()

    def _await_ready(self, child: _Child, deadline: float) -> None:
        name = child.program.name
        try:
            line = child.lines.get(timeout=max(0.0, deadline - time.monotonic()))
        except queue.Empty:
            raise StartError(f"The {name} process did not get ready within {READY_SECONDS:.0f} s.", 3) from None
        if line is None:
            process = child.process
            code = process.wait() if process is not None else 1
            exit_code = code if code in (2, 3) else 1
            raise StartError(
                f"The {name} process ended with {code} before it was ready; its message is above.", exit_code
            )
        child.ready = json.loads(line)

    def _tend(self, child: _Child) -> None:
        now = time.monotonic()
        if child.process is None:
            if child.restart_at is not None and now >= child.restart_at:
                child.restarts += 1
                self._spawn(child)
                self._report()
            return
        code = child.process.poll()
        if code is None:
            return
        if now - child.started > STABLE_SECONDS:
            child.backoff = FIRST_BACKOFF_SECONDS
        log.error("%s ended with %d; starting it again in %.1f s", child.program.name, code, child.backoff)
        child.process, child.last_exit = None, code
        child.restart_at = now + child.backoff
        child.backoff = min(child.backoff * 2, LONGEST_BACKOFF_SECONDS)
        self._report()

    def _report(self) -> None:
        """Say how the programs are; a full disk, which they wait out, must not end them all through this."""
        if not self._is_started:
            return  # what is published may be another supervisor's, whose place this one could not take
        processes = {
            c.program.name: {
                "pid": c.process.pid if c.process is not None else None,
                "restarts": c.restarts,
                "last_exit": c.last_exit,
            }
            for c in self._children
        }
        try:
            self._publish({"processes": processes})
        except OSError as error:
            log.error("cannot publish how the processes are: %s", error)


@contextlib.contextmanager
def stop_on_signals(supervisor: Supervisor) -> Iterator[None]:
    """While inside, SIGINT and SIGTERM request a stop instead of killing this process."""

    def handle(_number: int, _frame: FrameType | None) -> None:
        supervisor.request_stop()

    previous = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
