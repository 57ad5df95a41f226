"""Child processes that make attempts: started when an attempt waits for one, used again while nothing is left behind.

Rule: whatever becomes of a child, its attempt ends with an ``Attempt``: what the child said, or what its silence or its
end says. A child that died, hung or leaves something behind (see ``worker``) is replaced.

A child that is there serves whoever waits longest, so an agent that takes a millisecond needs few of them, however many
attempts are made at a time. No more are started at once than there are processors, since that is what a start needs.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import signal
import time
from collections import deque
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import IO, Final

from surefoot.evaluation import frozen, telemetry
from surefoot.evaluation.children import START_SECONDS, Call, Child, Nursery, started
from surefoot.evaluation.errors import SuiteError
from surefoot.evaluation.execute import Order, begun, ended_at
from surefoot.evaluation.records import Attempt, Failure, Outcome, from_json
from surefoot.evaluation.suite import Suite
from surefoot.evaluation.telling import tell
from surefoot.instrumentation.launch import command_environment

# Beyond the protocol's limit, which the child itself keeps while it can: then it is killed.
GRACE_SECONDS: Final = 5.0
# For all checkers of one attempt together.
CHECK_SECONDS: Final = 300.0
# With one, every attempt of a run would meet the same order of sets; a Python of each child's own costs half a second.
_HASH_SEEDS: Final = 2


@dataclass(slots=True)
class _Kind:
    """The children of one variant."""

    idle: list[Child] = field(default_factory=list)
    waiting: deque[asyncio.Future[Child]] = field(default_factory=deque)
    starting: int = 0
    nurseries: list[asyncio.Task[Nursery]] = field(default_factory=list)
    asked: int = 0  # how often a nursery was


class Pool:
    """Makes attempts in children; one attempt at a time in each, and no more children than attempts at a time."""

    def __init__(self, suite: Suite, source: str, folder: Path, endpoint: str | None) -> None:
        self._suite, self._source, self._endpoint = suite, source, endpoint
        self._logs = folder / "workers"
        self._kinds: dict[str, _Kind] = {}
        self._all: set[Child] = set()
        self._starts: set[asyncio.Task[None]] = set()
        draws = random.SystemRandom()
        # Equal for all variants, so that they meet the same luck. None: what the environment says.
        fixed = "PYTHONHASHSEED" in os.environ or "PYTHONHASHSEED" in frozen.environment(suite.protocol.freeze)
        self._hash_seeds = [None] if fixed else [draws.getrandbits(32) for _ in range(_HASH_SEEDS)]

    async def make(self, order: Order) -> Attempt:
        """Return the attempt, whatever becomes of its child. Raises SuiteError if no child can be started."""
        kind = self._kinds.setdefault(order.variant, _Kind())
        child = await self._child(kind, order.variant)
        keep = False
        try:
            attempt, keep = await self._attempt(child, order)
            if child.hash_seed is not None:
                attempt = replace(attempt, extra={**attempt.extra, "hash_seed": child.hash_seed})
            return attempt
        finally:
            if keep and self._suite.protocol.isolation != "fresh":
                self._give(kind, child)
            else:
                await self._end(child)

    def warm(self, variant: str) -> None:
        """Begin to start what the first child of a variant needs; nothing of the suite is loaded by that."""
        if self._suite.protocol.isolation == "process":
            kind = self._kinds.setdefault(variant, _Kind())
            kind.nurseries.append(asyncio.create_task(self._new_nursery(variant, 0)))

    async def close(self) -> None:
        """Kill all children."""
        nurseries = [each for kind in self._kinds.values() for each in kind.nurseries]
        for task in (*self._starts, *nurseries):
            task.cancel()  # one that is done keeps its result
        await asyncio.gather(*self._starts, return_exceptions=True)
        for nursery in await asyncio.gather(*nurseries, return_exceptions=True):
            if isinstance(nursery, Nursery):
                await nursery.close()
        await asyncio.gather(*(self._end(child) for child in list(self._all)))

    async def _attempt(self, child: Child, order: Order) -> tuple[Attempt, bool]:
        attempt, since = begun(self._suite, order), time.monotonic()
        limit = self._suite.protocol.timeout_seconds + GRACE_SECONDS
        there = answered = False
        with contextlib.suppress(ConnectionError):  # dead already: hear() finds out
            await child.say(asdict(order))
        while True:
            try:
                message = await child.hear(CHECK_SECONDS if answered else limit)
            except TimeoutError:
                await child.end()
                what = f"The attempt took longer than {self._suite.protocol.timeout_seconds:g} s, and had to be killed."
                failure = Failure("surefoot.evaluation.errors.AttemptTimeoutError", what)
                outcome: Outcome = "timeout"
                break
            if message is None:
                failure = Failure("surefoot.evaluation.errors.AgentExitError", _ending(await child.end()))
                outcome = "error"
                break
            if "began" in message:
                attempt, there = replace(attempt, **message["began"]), True
            elif "answered" in message:
                attempt, answered = from_json(message["answered"]), True
            else:
                return from_json(message["done"]), not message["left"]
        if answered:  # only the verdicts are missing
            return replace(attempt, extra={**attempt.extra, "notes": {"checkers": failure.message}}), False
        attempt = replace(attempt, ended_at=ended_at(attempt, since), error=failure)
        if not there:  # the agent was not called yet: a fixture, or whoever killed the child
            return replace(attempt, outcome="infrastructure"), False
        return self._cut_off(attempt, failure, outcome), False

    def _cut_off(self, attempt: Attempt, failure: Failure, outcome: Outcome) -> Attempt:
        """Return the attempt of an agent whose child ended in the middle of it."""
        ended = replace(attempt, outcome=outcome, acceptable=False, signature=f"{outcome}:{failure.type}")
        if self._endpoint is not None:
            telemetry.set_up(self._suite.called, self._endpoint)
            tell(ended)
        return ended

    async def _child(self, kind: _Kind, variant: str) -> Child:
        while kind.idle:
            child = kind.idle.pop()
            if child.alive:
                return child
            await self._end(child)
        waits: asyncio.Future[Child] = asyncio.get_running_loop().create_future()
        kind.waiting.append(waits)
        self._grow(kind, variant)
        return await waits

    def _give(self, kind: _Kind, child: Child) -> None:
        while kind.waiting:
            waits = kind.waiting.popleft()
            if not waits.done():
                waits.set_result(child)
                return
        kind.idle.append(child)

    def _grow(self, kind: _Kind, variant: str) -> None:
        """Start as many as attempts wait for; one that another child serves meanwhile leaves an idle one."""
        while kind.starting < min(len(kind.waiting), os.cpu_count() or 1):
            kind.starting += 1
            start = asyncio.create_task(self._start(kind, variant))
            self._starts.add(start)
            start.add_done_callback(self._starts.discard)

    async def _start(self, kind: _Kind, variant: str) -> None:
        try:
            child = await self._made(kind, variant)
        except (SuiteError, OSError) as error:
            kind.starting -= 1
            for waits in kind.waiting:
                if not waits.done():
                    waits.set_exception(SuiteError(f"Starting {variant}'s agent in a child process: {error}"))
            kind.waiting.clear()
            return
        kind.starting -= 1
        self._give(kind, child)
        self._grow(kind, variant)

    async def _made(self, kind: _Kind, variant: str) -> Child:
        nursery = None if self._suite.protocol.isolation == "fresh" else await self._nursery(kind, variant)
        with self._log(variant) as log:
            if nursery is None or not nursery.forks:
                child = await started(self._call(variant, own=True), log)
            else:
                child = await nursery.fork(log)
        self._all.add(child)
        try:
            first = await child.hear(START_SECONDS)
        except TimeoutError:
            first = None
        if first is None or "failed" in first:
            code = await self._end(child)
            raise SuiteError(f"it ended with {code}; see {child.log}" if first is None else first["failed"])
        return child

    async def _nursery(self, kind: _Kind, variant: str) -> Nursery:
        """Return a nursery; those of a variant take turns, and one that is gone is replaced."""
        at = kind.asked % len(self._hash_seeds)
        kind.asked += 1
        if at == len(kind.nurseries):
            kind.nurseries.append(asyncio.create_task(self._new_nursery(variant, at)))
        found = kind.nurseries[at]
        if found.done() and not found.result().alive:
            found = kind.nurseries[at] = asyncio.create_task(self._new_nursery(variant, at))
        return await asyncio.shield(found)

    async def _new_nursery(self, variant: str, at: int) -> Nursery:
        with self._log(variant) as log:
            return await Nursery.start(self._call(variant, own=False), log, self._hash_seeds[at])

    def _log(self, variant: str) -> IO[bytes]:
        self._logs.mkdir(parents=True, exist_ok=True)
        return (self._logs / f"{variant}-{len(list(self._logs.iterdir())):04d}.log").open("wb")

    def _call(self, variant: str, *, own: bool) -> Call:
        return Call(self._source, variant, self._endpoint, self._environment(variant, own=own))

    def _environment(self, variant: str, *, own: bool) -> dict[str, str]:
        protocol = self._suite.protocol
        instrumented = command_environment(os.environ)
        if not own:  # a nursery's children are instrumented after the fork, since that starts threads
            del instrumented["PYTHONPATH"]
            instrumented |= {name: os.environ[name] for name in ("PYTHONPATH",) if name in os.environ}
        return {
            **instrumented,
            **telemetry.variables(self._suite.called, self._endpoint),
            **frozen.environment(protocol.freeze),
            **self._suite.variant(variant).env,
        }

    async def _end(self, child: Child) -> int:
        self._all.discard(child)
        return await child.end()


def _ending(code: int) -> str:
    if code < 0:
        return f"The agent's process was killed by {signal.Signals(-code).name} in the middle of an attempt."
    return f"The agent's process ended with exit code {code} in the middle of an attempt."
