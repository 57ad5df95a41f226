"""Repeats a suite: k attempts of each task and variant, recorded as they end, and continued where a run broke off.

Rule: a slot (variant, task, repetition) is finished once. What is finished is never run again, however it ended, unless
the infrastructure ended it; what was under way when the harness died is marked lost and run again. Budgets and Ctrl-C
only keep further attempts from beginning.
"""

from __future__ import annotations

import asyncio
import copy
import json
import os
import random
import signal
import threading
import time
import uuid
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from surefoot.evaluation import frozen, provenance, telemetry
from surefoot.evaluation.errors import EffectsError, RecordsError, SuiteError
from surefoot.evaluation.execute import Means, Order, begun, make_attempt
from surefoot.evaluation.pool import Pool
from surefoot.evaluation.records import (
    FILE,
    MANIFEST,
    REPLAYS,
    Attempt,
    Records,
    RecordsWriter,
    failing,
    last_tries,
    read_records,
)
from surefoot.evaluation.suite import Suite, plain, suite_hash
from surefoot.instrumentation import flush

FORMAT: Final = "surefoot.run/1"
_FLUSH_SECONDS: Final = 30.0
_MOST: Final = 10_000_000  # attempts of a run, which are a list in memory
_IN_PROCESSES: Final = frozenset({"process", "fresh"})
_REMEDY: Final = "replay them from a cassette, simulate or withhold them, and say so in protocol.effects"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """One run of a suite."""

    suite: Suite
    folder: Path  # a new one, or that of a run to be continued
    source: str | None = None  # the suite's name, from which child processes load it
    variants: tuple[str, ...] = ()  # none: all
    tasks: tuple[str, ...] = ()  # none: all
    endpoint: str | None = None  # OTLP over HTTP
    given: dict[str, str] = field(default_factory=dict)  # image_digest, retrieval_snapshot
    replayed: int | None = None  # only this repetition, again, with its seed, to look at: never evidence

    @property
    def file(self) -> str:
        """The name of the file that attempts are recorded in."""
        return FILE if self.replayed is None else REPLAYS


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


Slot = tuple[str, str, int]  # variant, task, repetition
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
            conditions, drifted = await asyncio.to_thread(_conditions, plan)
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


def check(plan: Plan) -> None:
    """Raise what keeps this plan from being run."""
    suite, protocol = plan.suite, plan.suite.protocol
    if protocol.effects == "real":
        raise EffectsError(
            f"The suite {suite.name} has real effects: its tools would act {protocol.k} times for each task. "
            f"To repeat it, {_REMEDY}: replayed, simulated, withheld, or fixture. An agent without effects says none."
        )
    for asked, known, what in ((plan.variants, suite.names, "variant"), (plan.tasks, _ids(suite), "task")):
        for name in asked:
            if name not in known:
                raise SuiteError(f"The suite {suite.name} has no {what} {name!r}; there are {', '.join(known)}.")
    if protocol.k * len(suite.tasks) * len(suite.variants) > _MOST:
        raise SuiteError(
            f"The suite {suite.name} asks for {protocol.k} repetitions of {len(suite.tasks)} tasks: more than "
            f"{_MOST:,} attempts. Write a smaller k."
        )
    if protocol.k < 1 or not suite.tasks:
        raise SuiteError(f"The suite {suite.name} asks for nothing: give it a task, and k of 1 or more.")
    _check_copies(suite)
    if protocol.isolation in _IN_PROCESSES:
        if plan.source is None:
            raise SuiteError(
                f"Isolation {protocol.isolation!r} needs the suite's file or module; name it, or use thread."
            )
    elif protocol.freeze is not None or any(variant.env for variant in suite.variants):
        raise SuiteError(
            f"freeze and env are a process's own, isolation is {protocol.isolation}: write process or fresh."
        )
    if protocol.freeze is not None:
        frozen.check(protocol.freeze)
    if plan.replayed is not None and plan.endpoint is not None:
        raise SuiteError("What is run again to be looked at is sent nowhere: a lake would count it. Name no endpoint.")


def _check_copies(suite: Suite) -> None:
    for task in suite.tasks:
        try:
            copy.deepcopy((task.input, None if callable(task.fixture) else task.fixture))
        except Exception as error:
            raise SuiteError(
                f"Each attempt of {task.id} gets a copy of its input and fixture, and copying them failed: "
                f"{type(error).__name__}: {error}. Give data, or make what cannot be copied in a fixture's function."
            ) from error


def new_folder(suite: Suite, parent: Path) -> Path:
    """Return a folder's name for a new run."""
    return parent / f"{suite.name}-{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}-{uuid.uuid4().hex[:4]}"


def slots_of(plan: Plan) -> list[Slot]:
    """Return (variant, task, repetition) in the order in which they are attempted.

    Tasks are shuffled, so that a run that a budget ends holds a random part of them; variants take turns, so that what
    changes with time meets all of them.
    """
    suite = plan.suite
    tasks = [name for name in _ids(suite) if not plan.tasks or name in plan.tasks]
    random.Random(suite.protocol.seed).shuffle(tasks)  # noqa: S311 - an order that repeats
    names = [name for name in suite.names if not plan.variants or name in plan.variants]
    numbers = range(suite.protocol.k) if plan.replayed is None else (plan.replayed,)
    return [(name, task, number) for task in tasks for number in numbers for name in names]


def _ids(suite: Suite) -> tuple[str, ...]:
    return tuple(task.id for task in suite.tasks)


def _conditions(plan: Plan) -> tuple[dict[str, Any], bool]:
    """Return the provenance of what follows, written into the manifest, and whether earlier attempts had another."""
    path = plan.folder / MANIFEST
    where = Path(plan.source).parent if plan.source and plan.source.endswith((".yaml", ".yml", ".py")) else Path.cwd()
    found = provenance.collect(plan.suite, where, besides=plan.folder.parent, given=plan.given)
    if path.exists():
        manifest = _read_manifest(path)
        if manifest["suite_hash"] != found["suite_hash"]:
            raise RecordsError(
                f"{plan.folder} holds attempts of the suite as it was ({manifest['suite_hash']}), and it has changed "
                f"since ({found['suite_hash']}): those attempts and new ones are not repetitions of each other. Use a "
                "new folder."
            )
    else:
        manifest = {
            "format": FORMAT,
            "suite": plain(plan.suite),
            "suite_hash": found["suite_hash"],
            "source": plan.source,
            "started_at": time.time(),
            "provenances": {},
            **({} if plan.replayed is None else {"replay": True}),
        }
    manifest["provenances"][found["id"]] = found
    _write_manifest(path, manifest)
    return found, len(manifest["provenances"]) > 1


def _read_manifest(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        if {"suite_hash", "provenances"} <= found.keys():
            return dict(found)
        why = "it is of no run of surefoot repeat"
    except (OSError, ValueError, AttributeError) as error:
        why = str(error)
    raise RecordsError(f"Reading {path}: {why}. Restore it, or use a new folder.")


def _write_manifest(path: Path, manifest: dict[str, Any]) -> None:
    temporary = path.with_suffix(".tmp")
    with failing("Writing", path):
        with temporary.open("w", encoding="utf-8") as file:
            json.dump(manifest, file, indent=1, ensure_ascii=False)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)


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
                f"Stopped: the suite says that its tools have no effects, and one of them says {acts}. Write "
                f"fixture for protocol.effects if all of it stays in the fixture; else {_REMEDY}."
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
        acts = set(attempt.extra.get("effects", ())) & {"write", "irreversible"}
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
        if isolation in _IN_PROCESSES:
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
