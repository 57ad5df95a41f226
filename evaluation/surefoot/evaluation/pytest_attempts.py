"""The attempts of a test: each is begun, heard and recorded as an ``Attempt``, whatever happens to it.

Rule: an attempt is in the records before the next one begins. ``random`` is seeded before each, so that an attempt
which failed by its luck fails again when it is replayed.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import json
import random
import threading
import time
import traceback
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import pytest

from surefoot.evaluation import provenance
from surefoot.evaluation.checkers import signature
from surefoot.evaluation.errors import InfrastructureError, RecordsError
from surefoot.evaluation.pytest_gate import Gate, Repeated, checked
from surefoot.evaluation.pytest_plugin import replay_command, seed_of
from surefoot.evaluation.records import MANIFEST, Attempt, Failure, RecordsWriter, Verdict
from surefoot.evaluation.suite import Protocol, Suite

_WAIT_SECONDS: Final = 30.0  # for the other processes of pytest-xdist, which write a line at a time
# Provenance is that of a suite; a test session has none.
_NO_SUITE: Final = Suite(name="pytest", tasks=(), protocol=Protocol(k=1, effects="none"), agent="")
RepeatAgent = Callable[..., Repeated]


@dataclass(slots=True)
class AgentAttempt:
    """One attempt, as its test sees it."""

    repetition: int
    seed: int
    output: Any = None
    recorded: bool = False

    def record(self, output: Any) -> Any:
        """Keep what the agent answered with the attempt, and return it."""
        self.output, self.recorded = output, True
        return output


@dataclass(slots=True)
class UnderWay:
    """The attempts of one marked test, while it runs."""

    item: pytest.Item
    gate: Gate
    option: Any
    attempts: list[Attempt] = field(default_factory=list)
    current: AgentAttempt = field(default_factory=lambda: AgentAttempt(0, 0))
    open: Attempt | None = None
    traces: dict[int, str] = field(default_factory=dict)

    def repetitions(self) -> range:
        """Return which attempts are made."""
        return _repetitions(self.option, self.gate)

    def begin(self, repetition: int) -> None:
        """Begin an attempt."""
        seed = seed_of(self.item.config, self.item.nodeid, repetition)
        random.seed(seed)
        self.item._report_sections.clear()  # noqa: SLF001 - what earlier attempts wrote is theirs
        self.current = AgentAttempt(repetition, seed)
        # Acceptable until something is heard that says otherwise.
        self.open = _begun(self.option, self.item.nodeid, repetition, seed)
        _record(self.option, "started", self.open)
        self.open = replace(self.open, outcome="ok", acceptable=True)

    def heard(self, call: pytest.CallInfo[None], report: pytest.TestReport) -> None:
        """Take in how a part of the attempt ended."""
        if self.open is None or call.excinfo is None or call.when == "teardown":
            return
        if report.skipped and not hasattr(report, "wasxfail"):
            return
        error = call.excinfo.value
        self.open = _failed(self.open, error, in_setup=call.when == "setup", node=self.item.nodeid)
        self.traces[self.open.repetition] = report.longreprtext

    def end(self) -> None:
        """Record how the attempt ended."""
        if self.open is None:
            return
        self.attempts.append(_finish(self.option, self.open, self.current, self.item.nodeid))
        self.open = None

    def skipped(self) -> None:
        """Record that the attempt said nothing: it ended, and nobody judged it."""
        if self.open is not None:
            self.open = replace(self.open, acceptable=None)
        self.end()

    def repeated(self) -> Repeated:
        """Return what the attempts come to."""
        replay = replay_command(self.item.config, self.item.nodeid)
        return Repeated(self.gate, tuple(self.attempts), replay, _place(self.option), self.traces)


def repeater(request: pytest.FixtureRequest) -> RepeatAgent:
    """Return the function that the fixture ``repeat_agent`` gives."""
    config, node = request.config, request.node.nodeid

    def repeat_agent(
        agent: Callable[..., Any],
        *inputs: Any,
        checker: Callable[[Any], Any] | None = None,
        task: str = "",
        **gate: Any,
    ) -> Repeated:
        """Call ``agent(*inputs)`` k times. ``checker(output)`` asserts or says False; without it, any answer does."""
        asked, named = checked(Gate(**gate)), f"{node}::{task}" if task else node
        attempts, traces = [], {}
        luck = random.getstate()
        try:
            for repetition in _repetitions(config.option, asked):
                seed = seed_of(config, named, repetition)
                random.seed(seed)
                attempt, trace = _one(config.option, named, repetition, seed, agent, inputs, checker)
                attempts.append(attempt)
                traces[repetition] = trace
        finally:
            random.setstate(luck)
        if config.option.surefoot_attempt is not None:
            asked = replace(asked, k=1, attempts=1)
        found = Repeated(asked, tuple(attempts), replay_command(config, node), _place(config.option), traces)
        request.node.user_properties.extend(found.properties())
        return found

    return repeat_agent


def _repetitions(option: Any, gate: Gate) -> range:
    only = option.surefoot_attempt
    return range(gate.made) if only is None else range(only, only + 1)


def _one(
    option: Any,
    task: str,
    repetition: int,
    seed: int,
    agent: Callable[..., Any],
    inputs: tuple[Any, ...],
    checker: Callable[[Any], Any] | None,
) -> tuple[Attempt, str]:
    attempt, current, trace = _begun(option, task, repetition, seed), AgentAttempt(repetition, seed), ""
    _record(option, "started", attempt)
    attempt = replace(attempt, outcome="ok", acceptable=True)
    try:
        _check(checker, current.record(_called(agent, *inputs)))
    except (Exception, pytest.fail.Exception) as error:  # noqa: BLE001 - agents raise anything, and all is recorded
        attempt = _failed(attempt, error, in_setup=False, node=task)
        trace = "".join(traceback.format_exception(error))
    return _finish(option, attempt, current, task), trace


def _check(checker: Callable[[Any], Any] | None, output: Any) -> None:
    if checker is not None and _called(checker, output) is False:
        raise AssertionError(f"{getattr(checker, '__name__', 'the checker')} says no to {output!r}")


def _called(function: Callable[..., Any], *given: Any) -> Any:
    """Call a plain function or a coroutine function; the latter on a loop of its own, beside one that runs already."""
    result = function(*given)
    if not inspect.isawaitable(result):
        return result

    async def awaited() -> Any:
        return await result

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(awaited())
    done: list[Any] = []
    failed: list[BaseException] = []

    def work() -> None:
        try:
            done.append(asyncio.run(awaited()))
        except BaseException as error:  # noqa: BLE001 - raised again where the function was called
            failed.append(error)

    thread = threading.Thread(target=work, name="surefoot-agent")
    thread.start()
    thread.join()
    if failed:
        raise failed[0]
    return done[0]


def _begun(option: Any, task: str, repetition: int, seed: int) -> Attempt:
    return Attempt(
        attempt_id=uuid.uuid4().hex,
        suite="pytest",
        variant=option.surefoot_variant,
        task_id=task,
        repetition=repetition,
        seed=seed,
        started_at=time.time(),
        outcome="lost",
        equivalence="exact",
    )


def _failed(attempt: Attempt, error: BaseException, *, in_setup: bool, node: str) -> Attempt:
    trace = "".join(traceback.format_exception(error))[-20_000:]
    if isinstance(error, AssertionError | pytest.fail.Exception) and not in_setup:
        said = Verdict("assertions", "outcome", "fail", str(error) or type(error).__name__, node, None, "executable")
        return replace(attempt, acceptable=False, verdicts=(said,), extra={"traceback": trace})
    what = Failure(_name(type(error)), str(error), trace)
    if in_setup or isinstance(error, InfrastructureError):
        return replace(attempt, outcome="infrastructure", acceptable=None, error=what)
    return replace(attempt, outcome="error", acceptable=False, error=what)


def _name(kind: type) -> str:
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def _finish(option: Any, attempt: Attempt, current: AgentAttempt, node: str) -> Attempt:
    if attempt.acceptable:
        attempt = replace(attempt, verdicts=(Verdict("assertions", "outcome", "pass", None, node, None, "executable"),))
    if attempt.outcome == "error" and attempt.error is not None:
        same: str | None = f"error:{attempt.error.type}"
    else:
        same = signature("exact", current.output, None) if current.recorded else None
    ended = replace(attempt, ended_at=time.time(), output=_json(current.output), signature=same)
    _record(option, "finished", ended)
    return ended


def _json(output: Any) -> Any:
    """Return an output as JSON can keep it: as it is, or as text."""
    try:
        json.dumps(output)
    except (TypeError, ValueError):
        return repr(output)
    return output


def _record(option: Any, event: str, attempt: Attempt) -> None:
    if not option.surefoot_folder:
        return
    folder = Path(option.surefoot_folder)
    with _writer(folder) as writer:
        if event == "started":
            _manifest(folder, option)
            writer.started(attempt)
        else:
            writer.finished(attempt)


@contextlib.contextmanager
def _writer(folder: Path) -> Iterator[RecordsWriter]:
    """The folder's writer; one process at a time, and the others wait."""
    deadline = time.monotonic() + _WAIT_SECONDS
    while True:
        try:
            writer = RecordsWriter(folder)
            break
        except RecordsError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.01)
    try:
        yield writer
    finally:
        writer.close()


def _manifest(folder: Path, option: Any) -> None:
    """Write what the attempts rest on, once."""
    file = folder / MANIFEST
    if not file.exists():
        found = provenance.collect(_NO_SUITE, Path.cwd(), besides=folder.parent)
        found = {**found, "suite_hash": None, "seed": option.surefoot_seed}
        file.write_text(json.dumps({"source": "pytest", "provenances": {found["id"]: found}}, indent=1))


def _place(option: Any) -> str:
    return f"{option.surefoot_folder}/attempts.jsonl" if option.surefoot_folder else ""
