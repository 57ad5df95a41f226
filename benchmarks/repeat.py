"""What `surefoot repeat` costs beside Inspect AI: an agent that takes 1 ms, attempt after attempt and 50 at a time.

Both call an agent that sleeps 1 ms and answers one word, tasks times k; one exact checker judges it; both keep every
attempt with its output in a temporary folder. Inspect AI gets a task with epochs, a solver that sleeps and its mock
model, which nobody calls; it runs as it is and without its log of what is under way (`log_realtime`). Ours is called
from Python in three isolations: `inline` (a coroutine function, as Inspect AI's solver is), `thread` (a plain one, a
thread each) and `process` (children, used again); the last one also with as many children as attempts are made at a
time, as a slow agent needs them: the first attempt in each then waits until all are there. Ours does an fsync before it
tells of an end; Inspect AI does none.

Sides take turns; each round begins with another one. "Whole" is from the call to its return: reading the environment,
starting children, closing logs. "Steady" leaves the first attempts out, one for each that runs at a time, and what
follows the last end; of `process` by itself children are started in it. Processor seconds are of all threads, children
and theirs, those of living ones from /proc, so of Linux.

    python benchmarks/repeat.py [--rounds 3] [--tasks 20] [--concurrency 50] [--folder DIR]

Inspect AI has to be installed: `surefoot[inspect]`. The last line is JSON.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import gc
import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from inspect_ai import Task, eval  # noqa: A004 - its name there
from inspect_ai.dataset import Sample
from inspect_ai.hooks import Hooks, SampleEnd, hooks
from inspect_ai.scorer import exact
from inspect_ai.solver import Generate, Solver, TaskState, solver

from surefoot.evaluation.loading import load_suite
from surefoot.evaluation.runner import Plan, repeat

K: Final = 10
ALL: Final = "process, all children"
OURS: Final = ("inline", "thread", "process", ALL)
PEERS: Final = ("inspect-ai", "inspect-ai, log_realtime=False")
SUITE: Final = """
import asyncio, os, time
from pathlib import Path
from surefoot.evaluation import Checker, Protocol, Suite, Task

waited = False


async def waits(text):
    global waited
    if {together} and not waited:
        waited = True
        (Path({ready!r}) / str(os.getpid())).touch()
        while len(os.listdir({ready!r})) < {together}:
            await asyncio.sleep(0.1)
    await asyncio.sleep(0.001)
    return "done"


def sleeps(text):
    time.sleep(0.001)
    return "done"


suite = Suite(
    name="a-millisecond",
    agent=sleeps if {isolation!r} == "thread" else waits,
    protocol=Protocol(k={k}, effects="none", isolation={isolation!r}, concurrency={concurrency}),
    tasks=tuple(
        Task(id=f"t{{number}}", input="do it", checkers=(Checker(type="exact", expected="done"),))
        for number in range({tasks})
    ),
)
"""


@dataclass(frozen=True, slots=True)
class Found:
    """One run of one side."""

    side: str
    concurrency: int
    attempts: int
    whole_s: float
    whole_processor_s: float
    steady_attempts: int
    steady_s: float
    steady_processor_s: float
    load: float


class Clock:
    """Notes when the first attempts, which find things cold, have ended, and when the last one has."""

    def __init__(self, first: int, last: int, children: bool) -> None:
        self.first, self.last, self.children = first, last, children
        self.ended = 0
        self.at: list[tuple[float, float]] = []

    def note(self) -> None:
        """One attempt has ended."""
        self.ended += 1
        if self.ended in {self.first, self.last}:
            used = processor_seconds(self.children)
            self.at.append((time.perf_counter(), used))


class Heard:
    """The clock of Inspect AI's run that is under way: its hooks are the process's."""

    clock: Clock | None = None


@hooks(name="surefoot-benchmark", description="Hears the ends of samples.")
class Ends(Hooks):
    """Inspect AI's observer."""

    async def on_sample_end(self, data: SampleEnd) -> None:  # noqa: ARG002 - its signature
        """One attempt has ended."""
        if Heard.clock is not None:
            Heard.clock.note()


@solver
def waits() -> Solver:
    """Sleep 1 ms and answer."""

    async def solve(state: TaskState, generate: Generate) -> TaskState:  # noqa: ARG001 - its signature
        await asyncio.sleep(0.001)
        state.output.completion = "done"
        return state

    return solve


def processor_seconds(living: bool) -> float:
    """Of this process, its threads, dead children and, where asked for, living ones."""
    own = os.times()
    return time.process_time() + own.children_user + own.children_system + (of_living_children() if living else 0.0)


def of_living_children() -> float:
    """Of children and of theirs that they have not waited for or have, from /proc, to 10 ms each."""
    return _ticks("self") / os.sysconf("SC_CLK_TCK")


def _ticks(process: str) -> int:
    ticks = 0
    for children in Path(f"/proc/{process}/task").glob("*/children"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # a thread that ended meanwhile
            for child in children.read_text().split():
                fields = Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()
                # utime and stime of all its threads, and those of its dead children.
                ticks += sum(map(int, fields[11:15])) + _ticks(child)
    return ticks


def measured(side: str, concurrency: int, tasks: int, work: Callable[[Clock], Callable[[], None]]) -> Found:
    """Do it once; what ``work`` prepares is not timed."""
    attempts = tasks * K
    clock = Clock(min(concurrency, attempts - 1), attempts, side in {"process", ALL})
    job = work(clock)
    gc.collect()
    load = os.getloadavg()[0]
    began, used = time.perf_counter(), processor_seconds(False)
    job()
    whole, whole_used = time.perf_counter() - began, processor_seconds(False) - used
    if clock.ended != attempts:
        raise SystemExit(f"{side}: {clock.ended} attempts ended, {attempts} were asked for.")
    (since, used_then), (until, used_at_last) = clock.at
    steady = attempts - clock.first
    return Found(side, concurrency, attempts, whole, whole_used, steady, until - since, used_at_last - used_then, load)


def ours(home: Path, side: str, concurrency: int, tasks: int) -> Callable[[Clock], Callable[[], None]]:
    """Return what runs the suite in an isolation."""
    isolation = side.partition(",")[0]

    def prepare(clock: Clock) -> Callable[[], None]:
        made = Path(tempfile.mkdtemp(dir=home))
        (made / "ready").mkdir()
        source = made / f"suite_{made.name}.py"
        together = concurrency if side == ALL else 0
        text = SUITE.format(
            isolation=isolation, concurrency=concurrency, tasks=tasks, k=K, together=together, ready=str(made / "ready")
        )
        source.write_text(text, encoding="utf-8")
        plan = Plan(suite=load_suite(str(source)), source=str(source), folder=made / "run")

        def job() -> None:
            ran = repeat(plan, lambda *_: clock.note())
            if not all(attempt.acceptable for attempt in ran.attempts):
                raise SystemExit(f"{isolation}: an attempt was not acceptable; see {ran.folder}.")

        return job

    return prepare


def inspect_ai(home: Path, realtime: bool, concurrency: int, tasks: int) -> Callable[[Clock], Callable[[], None]]:
    """Return what runs the same with Inspect AI."""

    def prepare(clock: Clock) -> Callable[[], None]:
        samples = [Sample(id=f"t{number}", input="do it", target="done") for number in range(tasks)]
        task = Task(name="a-millisecond", dataset=samples, solver=waits(), scorer=exact(), epochs=K)

        def job() -> None:
            Heard.clock = clock
            logs = eval(
                task,
                model="mockllm/model",
                log_dir=tempfile.mkdtemp(dir=home),
                max_samples=concurrency,
                max_connections=concurrency,
                log_realtime=None if realtime else False,
                display="none",
            )
            Heard.clock = None
            results = logs[0].results
            if results is None or results.scores[0].metrics["mean"].value != 1:
                raise SystemExit(f"inspect-ai: the run ended with {logs[0].status}: {logs[0].error}")

        return job

    return prepare


def sides(home: Path, concurrency: int, tasks: int) -> dict[str, Callable[[Clock], Callable[[], None]]]:
    """Return every side by its name."""
    found = {side: ours(home, side, concurrency, tasks) for side in OURS}
    return found | {name: inspect_ai(home, name == PEERS[0], concurrency, tasks) for name in PEERS}


def measure(home: Path, concurrencies: Sequence[int], tasks: int, rounds: int) -> list[Found]:
    """All sides in turn, after two tasks of each that nobody counts."""
    for name, work in sides(home, 1, 2).items():
        measured(name, 1, 2, work)
    found: list[Found] = []
    for number in range(rounds):
        for concurrency in concurrencies:
            work_of = list(sides(home, concurrency, tasks).items())
            turn = number % len(work_of)
            for name, work in (*work_of[turn:], *work_of[:turn]):
                found.append(measured(name, concurrency, tasks, work))
    return found


FIGURES: Final[dict[str, Callable[[Found], float]]] = {
    "steady ms": lambda one: 1000 * one.steady_s / one.steady_attempts,
    "steady processor ms": lambda one: 1000 * one.steady_processor_s / one.steady_attempts,
    "attempts/s": lambda one: one.steady_attempts / one.steady_s,
    "whole s": lambda one: one.whole_s,
    "whole processor s": lambda one: one.whole_processor_s,
}
RATIOS: Final = ("steady ms", "steady processor ms", "whole s", "whole processor s")


def spread(values: Sequence[float]) -> str:
    """Return the median and what it lies between."""
    return f"{statistics.median(values):.2f} ({min(values):.2f} to {max(values):.2f})"


def tell(found: list[Found], concurrency: int) -> dict[str, Any]:
    """Print the tables of one concurrency; return the medians of their figures."""
    of = {
        side: [one for one in found if (one.side, one.concurrency) == (side, concurrency)] for side in (*OURS, *PEERS)
    }
    some = of[OURS[0]]
    print(f"\n{concurrency} at a time, {some[0].attempts} attempts a run, {len(some)} rounds in turn\n")
    print(f"| median | {' | '.join(FIGURES)} |\n|---|{'---|' * len(FIGURES)}")
    told: dict[str, Any] = {}
    for side, runs in of.items():
        told[side] = {name: statistics.median(map(figure, runs)) for name, figure in FIGURES.items()}
        print(f"| {side} | {' | '.join(f'{value:.2f}' for value in told[side].values())} |")
    for peer in PEERS:
        print(f"\n| {peer} / ours: median (lowest to highest) | {' | '.join(RATIOS)} |\n|---|{'---|' * len(RATIOS)}")
        for side in OURS:
            pairs = list(zip(of[peer], of[side], strict=True))
            ratios = {name: [FIGURES[name](their) / FIGURES[name](own) for their, own in pairs] for name in RATIOS}
            told[f"{peer} / {side}"] = {name: statistics.median(values) for name, values in ratios.items()}
            print(f"| {side} | {' | '.join(spread(values) for values in ratios.values())} |")
    return told


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print; the last line is JSON."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--tasks", type=int, default=20, help=f"each attempted {K} times")
    parser.add_argument("--concurrency", type=int, default=50, help="beside 1")
    parser.add_argument("--folder", type=Path, help="for what is kept; default: a temporary one")
    options = parser.parse_args(arguments)
    load = os.getloadavg()[0]
    concurrencies = (1, options.concurrency)
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        found = measure(Path(folder), concurrencies, options.tasks, options.rounds)
    told = {str(concurrency): tell(found, concurrency) for concurrency in concurrencies}
    loads = {"load": load, "load_after": os.getloadavg()[0]}
    print(json.dumps({**loads, "rounds": options.rounds, "told": told, "runs": [asdict(one) for one in found]}))


if __name__ == "__main__":
    main()
