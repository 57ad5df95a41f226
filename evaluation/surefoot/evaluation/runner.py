"""Repeats a suite: k attempts of each task and variant, recorded as they end, and continued where a run broke off.

Rule: a slot (variant, task, repetition) is finished once. What is finished is never run again, however it ended, unless
the infrastructure ended it; what was under way when the harness died is marked lost and run again. Budgets and Ctrl-C
only keep further attempts from beginning.
"""

from __future__ import annotations

import asyncio
import signal
import threading
import time
import uuid
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from surefoot.evaluation import provenance, telemetry
from surefoot.evaluation.conditions import conditions_of
from surefoot.evaluation.errors import EffectsError
from surefoot.evaluation.execute import Means, Order, begun, make_attempt
from surefoot.evaluation.plan import IN_PROCESSES, REMEDY, Plan, Slot, check, slots_of
from surefoot.evaluation.pool import Pool
from surefoot.evaluation.records import Attempt, Records, RecordsWriter, last_tries, read_records
from surefoot.evaluation.suite import suite_hash
from surefoot.evaluation.usage import EFFECTS
from surefoot.instrumentation import flush

__all__ = ["Observer", "Plan", "Ran", "repeat", "repeat_async"]
_FLUSH_SECONDS: Final = 30.0


@dataclass(frozen=True, slots=True)
class Ran:
    """What a run came to."""

    folder: Path
    attempts: tuple[Attempt, ...]  # all finished ones of the folder, the last try of each
    slots: int  # attempts that the plan asks for
    made: int  # of this run
    lost: int  # under way when an earlier run broke off; run again
    ended: str  # "complete", "budget: ...", "interrupted"
    drifted: bool  # attempts of the folder were made under different conditions
    retried: int = 0  # tries in the folder that the infrastructure ended and that were made again


Make = Callable[[Order], Awaitable[Attempt]]
Observer = Callable[[Attempt, int, int], None]  # an attempt that ended, how many have, how many there will be


def repeat(plan: Plan, observer: Observer | None = None) -> Ran:
    """Run a plan to its end, or until Ctrl-C or SIGTERM. Raises SuiteError, EffectsError, RecordsError."""

    async def until_told() -> Ran:
        stop = asyncio.Event()
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                asyncio.get_running_loop().add_signal_handler(number, stop.set)
        return await repeat_async(plan, observer, stop)

    return asyncio.run(until_told())


async def repeat_async(plan: Plan, observer: Observer | None = None, stop: asyncio.Event | None = None) -> Ran:
    """As :func:`repeat`; ``stop`` ends it, as Ctrl-C does."""
    check(plan)
    with RecordsWriter(plan.folder, plan.file) as writer:
        before = read_records(writer.path) if plan.replayed is None else Records((), (), (), 0)
        run = _Run(plan, writer, before, observer or (lambda *_: None))
        async with _making(plan) as make:
            # Reading the packages takes as long as half a child's start, and waits for the disk as that does.
            conditions, drifted = await asyncio.to_thread(conditions_of, plan)
            writer.lost(before.open)
            ended = await run.go(make, conditions, stop or asyncio.Event())
    counting, again = last_tries(run.finished)
    return Ran(
        folder=plan.folder,
        attempts=counting,
        slots=len(run.slots),
        made=len(run.made),
        lost=len(before.open),
        ended=ended,
        drifted=drifted,
        retried=len(before.earlier) + len(again),
    )


class _Run:
    """The attempts of one call: what is left, what is under way, what was used."""

    def __init__(
        self,
        plan: Plan,
        writer: RecordsWriter,
        before: Records,
        observer: Observer,
    ) -> None:
        self.plan, self._before = plan, before
        self.made: list[Attempt] = []
        self.slots = slots_of(plan)
        self._writer, self._observer = writer, observer
        self._durable = _Durable(writer)
        done = {attempt.slot for attempt in before.finished if attempt.outcome != "infrastructure"}
        self._tries = Counter(each.slot for each in (*before.earlier, *before.finished) if each.slot not in done)
        self._left = iter([slot for slot in self.slots if slot not in done])
        self._began = time.monotonic()
        self._why: str | None = None
        self._hash = suite_hash(plan.suite)
        self._under_way: dict[str, Attempt] = {}
        self._effects: set[str] = set()
        self._tokens, self._usd = 0, 0.0
        self._done = sum(slot in done for slot in self.slots)
        for attempt in (*before.earlier, *before.finished):
            self._count(attempt)

    @property
    def finished(self) -> list[Attempt]:
        """What the folder holds, without tries that were made again before."""
        return [*self._before.finished, *self.made]

    async def go(self, make: Make, conditions: dict[str, Any], stop: asyncio.Event) -> str:
        """Make what is left; return how it ended."""
        order = _orders(self.plan, conditions)
        workers = [asyncio.create_task(self._work(make, order)) for _ in range(self.plan.suite.protocol.concurrency)]
        stopped = asyncio.create_task(stop.wait())
        try:
            await _first_failure_or_all(workers, stopped)
        finally:
            # Before the children are killed, or their deaths would be recorded as the agent's.
            for task in (*workers, stopped):
                task.cancel()
            await asyncio.gather(*workers, stopped, return_exceptions=True)
            await self._durable.wait()
            self._writer.lost(self._under_way.values())
        if stop.is_set():
            return "interrupted"
        if self._effects:
            acts = " and ".join(sorted(self._effects))
            raise EffectsError(
                f"Stopped: the suite says that its tools have no effects, and one of them says {acts}; it was not "
                f"called. Write fixture for protocol.effects if all of it stays in the fixture; else {REMEDY}."
            )
        return self._why or "complete"

    async def _work(self, make: Make, ordered: Callable[[Slot], Order]) -> None:
        while self._why is None:
            self._why = self._over_budget()
            slot = next(self._left, None)
            if slot is None or self._why is not None:
                return
            order = replace(ordered(slot), tried=self._tries[slot] or None)
            start = replace(begun(self.plan.suite, order), suite_hash=self._hash)
            self._writer.started(start)
            self._under_way[order.attempt_id] = start
            attempt = replace(await make(order), suite_hash=self._hash)
            self._writer.ended(attempt)
            del self._under_way[order.attempt_id]
            self._note(attempt)
            await self._durable.wait()
            self._observer(attempt, self._done, len(self.slots))

    def _note(self, attempt: Attempt) -> None:
        self.made.append(attempt)
        self._done += 1
        self._count(attempt)
        acts = set(attempt.extra.get("effects", ())) & EFFECTS
        if acts and self.plan.suite.protocol.effects == "none":
            self._effects |= acts
            self._why = "effects"

    def _count(self, attempt: Attempt) -> None:
        self._tokens += (attempt.input_tokens or 0) + (attempt.output_tokens or 0)
        self._usd += attempt.cost_usd or 0.0

    def _over_budget(self) -> str | None:
        budget = self.plan.suite.protocol.budget
        used = (
            ("seconds", time.monotonic() - self._began, budget.seconds),
            ("tokens", self._tokens, budget.tokens),
            ("US dollars", self._usd, budget.usd),
        )
        over = ((unit, spent, limit) for unit, spent, limit in used if limit is not None and spent >= limit)
        return next((f"budget: {spent:g} of {limit:g} {unit} used" for unit, spent, limit in over), None)


async def _first_failure_or_all(workers: Sequence[asyncio.Task[None]], stopped: asyncio.Task[Any]) -> None:
    everyone = asyncio.gather(*workers)
    waited: set[asyncio.Future[Any]] = {everyone, stopped}
    await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
    if everyone.done():
        everyone.result()


def _orders(plan: Plan, conditions: dict[str, Any]) -> Callable[[Slot], Order]:
    versions = {"suite": suite_hash(plan.suite)}
    code = provenance.version(conditions)
    if code is not None:
        versions["code"] = code

    def order(slot: Slot) -> Order:
        return Order(uuid.uuid4().hex, *slot, plan.folder.name, conditions["id"], versions)

    return order


class _Durable:
    """One fsync at a time for all attempts that ended meanwhile: each by itself is what bounds many at a time."""

    def __init__(self, writer: RecordsWriter) -> None:
        self._writer = writer
        self._lock = asyncio.Lock()
        self._next: asyncio.Task[None] | None = None

    async def wait(self) -> None:
        """Return once everything that was written before is on the disk."""
        if self._next is None:
            self._next = asyncio.create_task(self._sync())
        await asyncio.shield(self._next)

    async def _sync(self) -> None:
        async with self._lock:
            self._next = None  # what is written from here on waits for the one after
            await asyncio.to_thread(self._writer.sync)


class _making:  # noqa: N801 - reads as a function where it is used
    """What makes attempts: a pool of children, or this process."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._pool: Pool | None = None

    async def __aenter__(self) -> Make:
        plan, isolation = self._plan, self._plan.suite.protocol.isolation
        if isolation in IN_PROCESSES:
            self._pool = Pool(plan.suite, plan.source or "", plan.folder, plan.endpoint)
            self._pool.warm(slots_of(plan)[0][0])
            return self._pool.make
        usage = telemetry.set_up(plan.suite.called, plan.endpoint)
        means = Means(plan.suite, usage, threads=isolation == "thread")
        return lambda order: make_attempt(means, order)

    async def __aexit__(self, *_: object) -> None:
        if self._pool is not None:
            await self._pool.close()
        if self._plan.endpoint is not None:
            await asyncio.to_thread(flush, _FLUSH_SECONDS)
