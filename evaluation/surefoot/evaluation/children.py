"""Child processes as the pool has them: started as a Python of their own, or forked by a nursery that is one.

Rule: a child is in a session of its own, so that Ctrl-C is the harness's and one signal ends all that the agent
started; and its end has a code, whoever started it.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import socket
import sys
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import IO, Any, Final, Self

from surefoot.evaluation.errors import SuiteError
from surefoot.evaluation.nursery import ANSWER, CANNOT_FORK, END, REQUEST, START
from surefoot.evaluation.worker import LENGTH

START_SECONDS: Final = 120.0
_CLOSE_SECONDS: Final = 10.0


@dataclass(frozen=True, slots=True)
class Call:
    """What a child is started with."""

    source: str
    variant: str
    endpoint: str | None
    environment: Mapping[str, str]

    async def process(
        self, module: str, given: socket.socket, log: IO[bytes], *more: str
    ) -> asyncio.subprocess.Process:
        """Start a Python with one end of a socket."""
        return await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", module, str(given.fileno()), self.source, self.variant, self.endpoint or "", *more),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            pass_fds=[given.fileno()],
            env=self.environment,
            start_new_session=True,
        )


@dataclass(slots=True, eq=False)
class Child:
    """One that makes attempts, one at a time."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    log: str
    kill: Callable[[], Awaitable[int]]  # with all that it started; the exit code
    hash_seed: int | None = None  # that the pool drew for it
    code: int | None = None  # with which it ended

    @property
    def alive(self) -> bool:
        """Whether it has not closed its socket."""
        return not self.reader.at_eof()

    async def say(self, message: dict[str, Any]) -> None:
        """Send it a message."""
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
        """Kill it; return its exit code. What it is the second time is known."""
        if self.code is None:
            self.writer.close()
            self.code = await self.kill()
        return self.code


async def started(call: Call, log: IO[bytes]) -> Child:
    """Start a child that is a Python of its own."""
    ours, theirs = socket.socketpair()
    try:
        with theirs:
            process = await call.process("surefoot.evaluation.worker", theirs, log)
    except BaseException:
        ours.close()
        raise

    async def kill() -> int:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        return await process.wait()

    try:
        reader, writer = await asyncio.open_connection(sock=ours)
    except BaseException:
        ours.close()
        await kill()
        raise
    return Child(reader, writer, log.name, kill)


class Nursery:
    """A process that forks children."""

    def __init__(self, process: asyncio.subprocess.Process, control: socket.socket, hash_seed: int | None) -> None:
        self._process, self._control, self._hash_seed = process, control, hash_seed
        self._turn = asyncio.Lock()
        self.forks = False

    @classmethod
    async def start(cls, call: Call, log: IO[bytes], hash_seed: int | None) -> Self:
        """Start one. ``hash_seed``: None leaves what the environment says."""
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        seeded = {} if hash_seed is None else {"PYTHONHASHSEED": str(hash_seed)}
        call = Call(call.source, call.variant, call.endpoint, {**call.environment, **seeded})
        try:
            with theirs:
                process = await call.process("surefoot.evaluation.nursery", theirs, log, "drawn" if seeded else "")
        except BaseException:
            ours.close()
            raise
        made = cls(process, ours, hash_seed)
        try:
            made.forks = await made._answer() != CANNOT_FORK
        except BaseException:
            await made._kill()  # it has no children yet
            raise
        return made

    @property
    def alive(self) -> bool:
        """Whether it can be asked."""
        return self._process.returncode is None

    async def fork(self, log: IO[bytes]) -> Child:
        """Return a new child. Raises SuiteError if the nursery is gone."""
        ours, theirs = socket.socketpair()
        try:
            with theirs:
                pid = await self._ask(START, 0, [theirs.fileno(), log.fileno()])
        except BaseException:
            ours.close()  # which ends a child that is there already
            raise
        reader, writer = await asyncio.open_connection(sock=ours)
        return Child(reader, writer, log.name, lambda: self._end(pid), self._hash_seed)

    async def close(self) -> None:
        """End it, and with it all its children."""
        self._control.close()
        try:
            await asyncio.wait_for(self._process.wait(), _CLOSE_SECONDS)
        except TimeoutError:
            await self._kill()

    async def _kill(self) -> None:
        """End it and wait for that: a process nobody waited for outlives its event loop, and Python complains of it."""
        self._control.close()
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()
        await self._process.wait()

    async def _end(self, pid: int) -> int:
        try:
            return await self._ask(END, pid)
        except SuiteError:
            # Nobody can tell any more how the child ended; what is left of it is ended here.
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(pid, signal.SIGKILL)
            return -signal.SIGKILL

    async def _ask(self, kind: int, pid: int, descriptors: list[int] | None = None) -> int:
        async with self._turn:
            try:
                socket.send_fds(self._control, [REQUEST.pack(kind, pid)], descriptors or [])
            except OSError as error:
                raise SuiteError(f"The process that forks children is gone: {error}. Run again to continue.") from error
            return await self._answer()

    async def _answer(self) -> int:
        found = b""
        while len(found) < ANSWER.size:
            try:
                part = await asyncio.wait_for(
                    asyncio.get_running_loop().sock_recv(self._control, ANSWER.size - len(found)), START_SECONDS
                )
            except (OSError, TimeoutError):
                part = b""
            if not part:
                raise SuiteError("The process that forks children is gone, or does not answer. Run again to continue.")
            found += part
        return int(ANSWER.unpack(found)[0])
