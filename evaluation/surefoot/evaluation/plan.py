"""One run of a suite: what it covers, what keeps it from being run, and the order of its attempts.

Rule: what can be refused is refused before anything is started or written.
"""

from __future__ import annotations

import copy
import random
import time
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from surefoot.evaluation import frozen
from surefoot.evaluation.errors import EffectsError, SuiteError
from surefoot.evaluation.records import FILE, REPLAYS
from surefoot.evaluation.suite import Suite

Slot = tuple[str, str, int]  # variant, task, repetition

_MOST: Final = 10_000_000  # attempts of a run, which are a list in memory
IN_PROCESSES: Final = frozenset({"process", "fresh"})
REMEDY: Final = "replay them from a cassette, simulate or withhold them, and say so in protocol.effects"


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


def check(plan: Plan) -> None:
    """Raise what keeps this plan from being run."""
    suite, protocol = plan.suite, plan.suite.protocol
    if protocol.effects == "real":
        raise EffectsError(
            f"The suite {suite.name} has real effects: its tools would act {protocol.k} times for each task. "
            f"To repeat it, {REMEDY}: replayed, simulated, withheld, or fixture. An agent without effects says none."
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
    if protocol.isolation in IN_PROCESSES:
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
