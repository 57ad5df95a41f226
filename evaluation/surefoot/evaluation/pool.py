"""Child processes that make attempts: started when they are needed, used again while nothing is left behind.

Rule: whatever becomes of a child, its attempt ends with an ``Attempt``: what the child said, or what its silence or its
end says. A child that died, hung or leaves something behind (threads, environment, working directory) is replaced.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import socket
import sys
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final

from surefoot.evaluation import frozen, telemetry
from surefoot.evaluation.errors import SuiteError
from surefoot.evaluation.execute import Order, begun
from surefoot.evaluation.records import Attempt, Failure, Outcome, from_json
from surefoot.evaluation.suite import Suite
from surefoot.evaluation.telling import tell
from surefoot.evaluation.worker import LENGTH
from surefoot.instrumentation.launch import command_environment

# Beyond the protocol's limit, which the child itself keeps while it can: then it is killed.
GRACE_SECONDS: Final = 5.0
# For all checkers of one attempt together.
CHECK_SECONDS: Final = 300.0
_START_SECONDS: Final = 120.0


@dataclass(slots=True, eq=False)
class _Child:
    process: asyncio.subprocess.Process
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def say(self, message: dict[str, Any]) -> None:
        body = json.dumps(message).encode()
        self.writer.write(LENGTH.pack(len(body)) + body)
        await self.writer.drain()

    async def hear(self, seconds: float) -> dict[str, Any] | None:
        """Return the next message, None if the child is gone. Raises TimeoutError."""
        async with asyncio.timeout(seconds):
            try:
                size = LENGTH.unpack(await self.reader.readexactly(LENGTH.size))[0]
                return dict(json.loads(await self.reader.readexactly(size)))
            except (asyncio.IncompleteReadError, ConnectionError):
                return None

    async def end(self) -> int:
        """Kill it with all that it started; return its exit code."""
        self.writer.close()
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)
        return await self.process.wait()


class Pool:
    """Makes attempts in children; one attempt at a time in each, and no more children than attempts at a time."""

    def __init__(self, suite: Suite, source: str, folder: Path, endpoint: str | None) -> None:
        self._suite, self._source, self._endpoint = suite, source, endpoint
        self._logs = folder / "workers"
        self._idle: dict[str, list[_Child]] = {}
        self._all: set[_Child] = set()

    async def make(self, order: Order) -> Attempt:
        """Return the attempt, whatever becomes of its child. Raises SuiteError if no child can be started."""
        child = await self._child(order.variant)
        keep = False
        try:
            attempt, keep = await self._attempt(child, order)
            return attempt
        finally:
            if keep and self._suite.protocol.isolation != "fresh":
                self._idle.setdefault(order.variant, []).append(child)
            else:
                await self._end(child)

    async def close(self) -> None:
        """Kill all children."""
        await asyncio.gather(*(self._end(child) for child in list(self._all)))

    async def _attempt(self, child: _Child, order: Order) -> tuple[Attempt, bool]:
        attempt = begun(self._suite, order)
        limit = self._suite.protocol.timeout_seconds + GRACE_SECONDS
        answered = False
        with contextlib.suppress(ConnectionError):  # dead already: hear() finds out
            await child.say(asdict(order))
        while True:
            try:
                message = await child.hear(CHECK_SECONDS if answered else limit)
            except TimeoutError:
                await child.end()
                what = f"The attempt took longer than {self._suite.protocol.timeout_seconds:g} s, and had to be killed."
                failure = Failure("surefoot.evaluation.errors.AttemptTimeoutError", what)
                return self._cut_off(attempt, answered, failure, "timeout"), False
            if message is None:
                failure = Failure("surefoot.evaluation.errors.AgentExitError", _ending(await child.end()))
                return self._cut_off(attempt, answered, failure, "error"), False
            if "began" in message:
                attempt = replace(attempt, **message["began"])
            elif "answered" in message:
                attempt, answered = from_json(message["answered"]), True
            else:
                return from_json(message["done"]), not message["left"]

    def _cut_off(self, attempt: Attempt, answered: bool, failure: Failure, outcome: Outcome) -> Attempt:
        """Return the attempt of a child that did not finish it. Only the verdicts are missing if it had answered."""
        if answered:
            extra = {**attempt.extra, "notes": {"checkers": failure.message}}
            return replace(attempt, extra=extra)
        ended = replace(
            attempt,
            ended_at=frozen.real_time(),
            outcome=outcome,
            error=failure,
            acceptable=False,
            signature=f"{outcome}:{failure.type}",
        )
        if self._endpoint is not None:
            telemetry.set_up(self._suite.called, self._endpoint)
            tell(ended)
        return ended

    async def _child(self, variant: str) -> _Child:
        idle = self._idle.get(variant)
        while idle:
            child = idle.pop()
            if child.process.returncode is None:
                return child
            await self._end(child)
        return await self._start(variant)

    async def _start(self, variant: str) -> _Child:
        ours, theirs = socket.socketpair()
        self._logs.mkdir(parents=True, exist_ok=True)
        with theirs, (self._logs / f"{variant}-{len(list(self._logs.iterdir())):04d}.log").open("wb") as log:
            command = [sys.executable, "-m", "surefoot.evaluation.worker", str(theirs.fileno()), self._source, variant]
            process = await asyncio.create_subprocess_exec(
                *command,
                self._endpoint or "",
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=[theirs.fileno()],
                env=self._environment(variant),
                start_new_session=True,  # Ctrl-C is the harness's; and one signal ends all that the agent started
            )
        reader, writer = await asyncio.open_connection(sock=ours)
        child = _Child(process, reader, writer)
        self._all.add(child)
        try:
            first = await child.hear(_START_SECONDS)
        except TimeoutError:
            first = None
        if first is None or "failed" in first:
            code = await self._end(child)
            why = f"it ended with {code}; see {log.name}" if first is None else first["failed"]
            raise SuiteError(f"Starting {variant}'s agent in a child process: {why}")
        return child

    def _environment(self, variant: str) -> dict[str, str]:
        protocol = self._suite.protocol
        return {
            **command_environment(os.environ),
            **telemetry.variables(self._suite.called, self._endpoint),
            **frozen.environment(protocol.freeze),
            **self._suite.variant(variant).env,
        }

    async def _end(self, child: _Child) -> int:
        self._all.discard(child)
        return await child.end()


def _ending(code: int) -> str:
    if code < 0:
        return f"The agent's process was killed by {signal.Signals(-code).name} in the middle of an attempt."
    return f"The agent's process ended with exit code {code} in the middle of an attempt."
