"""``@pytest.mark.repeat_agent(k=10)``: a test that runs k times and passes or fails once, on what all attempts say.

Each repetition is an attempt with fixtures of its own (those of classes, modules and the session are kept). An
AssertionError is an answer that is not acceptable, any other exception an error, also not acceptable; a fixture that
fails is infrastructure. ``repeat_agent`` as a fixture does the same for a function that a test calls.

Rule: without the mark, the fixtures or its options this plugin does nothing, and loads nothing that takes time.
"""

from __future__ import annotations

import hashlib
import random
import secrets
import shlex
import time
import uuid
from collections.abc import Generator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

if TYPE_CHECKING:
    from surefoot.evaluation.pytest_attempts import AgentAttempt, RepeatAgent, UnderWay
    from surefoot.evaluation.pytest_gate import Repeated

MARK: Final = "repeat_agent"
_under_way: pytest.StashKey[UnderWay] = pytest.StashKey()
_Reports = list[pytest.TestReport]


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options."""
    group = parser.getgroup("surefoot", "repeated agents (surefoot)")
    group.addoption("--surefoot-runs", metavar="DIR", help="Record attempts in a run folder below DIR.")
    group.addoption(
        "--surefoot-variant", metavar="NAME", default="pytest", help="The attempts' variant in the records."
    )
    group.addoption(
        "--surefoot-seed", metavar="N", type=int, help="Draw attempts' seeds from this one; else a new one."
    )
    group.addoption("--surefoot-attempt", metavar="N", type=int, help="Make only this attempt of each repeated test.")


def pytest_configure(config: pytest.Config) -> None:
    """Register the mark, and settle what all processes of pytest-xdist have to agree on."""
    config.addinivalue_line(
        "markers",
        "repeat_agent(k=10, attempts=k, min_pass_hat_k=1, min_yield=None, confidence=None): make attempts, judge all.",
    )
    option = config.option
    told = getattr(config, "workerinput", {}).get("surefoot")
    if told is not None:
        option.surefoot_seed, option.surefoot_folder = told
        return
    name = f"pytest-{datetime.fromtimestamp(time.time(), UTC):%Y%m%dT%H%M%S}-{uuid.uuid4().hex[:4]}"
    asked = option.surefoot_runs
    option.surefoot_folder = str(Path(asked).absolute() / name) if asked else None
    if option.surefoot_attempt is not None and option.surefoot_attempt < 0:
        raise pytest.UsageError("--surefoot-attempt: attempts are numbered from 0.")
    if option.surefoot_seed is None:
        option.surefoot_seed = secrets.randbelow(2**31)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Tell a worker of pytest-xdist what this process has settled."""
    node.workerinput["surefoot"] = (node.config.option.surefoot_seed, node.config.option.surefoot_folder)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Refuse marks that cannot be meant, before anything is run."""
    for item in items:
        mark = item.get_closest_marker(MARK)
        if mark is not None:
            _gate(item, mark)


def _gate(item: pytest.Item, mark: pytest.Mark) -> Any:
    try:
        from surefoot.evaluation.pytest_gate import GateError, gate_from
    except ModuleNotFoundError as error:
        raise pytest.UsageError(f"{item.nodeid}: needs {error.name}: pip install 'surefoot[evaluation]'") from error
    try:
        return gate_from(mark.args, dict(mark.kwargs))
    except GateError as error:
        raise pytest.UsageError(f"{item.nodeid}: {error}") from error


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """Make the attempts of a marked test, and report them as one."""
    mark = item.get_closest_marker(MARK)
    if mark is None or item.config.getoption("setuponly", False):
        return None
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    for report in _repeated(item, nextitem, _gate(item, mark)):
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


def _repeated(item: pytest.Item, nextitem: pytest.Item | None, gate: Any) -> _Reports:
    from surefoot.evaluation.pytest_attempts import UnderWay

    made: list[_Reports] = []
    run = UnderWay(item, gate, item.config.option)
    item.stash[_under_way] = run
    luck = random.getstate()
    try:
        for repetition in run.repetitions():
            run.begin(repetition)
            made.append(_attempt(item))
            if _skipped(made[-1]):
                run.skipped()
                break
            run.end()
    finally:
        random.setstate(luck)
        del item.stash[_under_way]
    single = item.config.option.surefoot_attempt is not None
    # What an earlier attempt did wrong is not undone by one that skips itself.
    skipped = _skipped(made[-1]) and not any(attempt.acceptable is False for attempt in run.attempts)
    repeated = None if single or skipped else run.repeated()
    if repeated is not None:
        item.user_properties.extend(repeated.properties())
    down = _last_teardown(item, nextitem, [each for reports in made for each in reports if each.when == "teardown"])
    if repeated is None:
        return [*made[-1][:-1], down]
    return [_setup(made), _call(item, made, repeated), down]


def _skipped(reports: _Reports) -> bool:
    return any(report.skipped and not hasattr(report, "wasxfail") for report in reports)


def _attempt(item: pytest.Item) -> _Reports:
    from _pytest.runner import runtestprotocol

    if getattr(item, "cls", None) is not None:
        # pytest keeps the object whose method the test is; the next attempt gets one of its own.
        for kept in ("_instance", "_obj"):
            item.__dict__.pop(kept, None)
    # As if the next test were in the same class or module: only what belongs to this attempt is torn down.
    return runtestprotocol(item, log=False, nextitem=item.parent)  # type: ignore[arg-type]  # it asks for its parents


def _last_teardown(item: pytest.Item, nextitem: pytest.Item | None, reports: _Reports) -> pytest.TestReport:
    """Return the first teardown that failed, or that of everything which the next test does not share."""
    down = pytest.CallInfo.from_call(
        lambda: item.session._setupstate.teardown_exact(nextitem),  # noqa: SLF001 - as pytest's own teardown does
        when="teardown",
    )
    last: pytest.TestReport = item.ihook.pytest_runtest_makereport(item=item, call=down)
    return next((report for report in (*reports, last) if report.failed), last)


def _setup(made: list[_Reports]) -> pytest.TestReport:
    """Return a setup that passed: fixtures that failed are told with the call, beside what else there was."""
    good = next((reports[0] for reports in made if reports[0].passed), made[0][0])
    good.outcome, good.longrepr = "passed", None
    return good


def _call(item: pytest.Item, made: list[_Reports], repeated: Repeated) -> pytest.TestReport:
    calls = [report for reports in made for report in reports if report.when == "call"]
    expected = next((report.wasxfail for report in calls if hasattr(report, "wasxfail")), None)
    failed = bool(repeated.missed)
    first = repeated.first_failure
    worst = made[[a.repetition for a in repeated.attempts].index(first.repetition)] if first is not None else []
    report = pytest.TestReport(
        nodeid=item.nodeid,
        location=item.location,
        keywords=made[0][0].keywords,
        outcome="failed" if failed else "passed",
        longrepr=str(repeated) if failed else None,
        when="call",
        # What the first failing attempt wrote, so that it does not drown in that of the others.
        sections=worst[-1].sections if worst else (),
        duration=sum(each.duration for reports in made for each in reports),
        start=made[0][0].start,
        stop=made[-1][-1].stop,
        user_properties=item.user_properties,
    )
    strict = next((report.longrepr for report in calls if str(report.longrepr).startswith("[XPASS(strict)]")), None)
    if expected is not None:  # a mark xfail: what is expected to fail is the whole of it
        report.wasxfail = expected
        report.outcome = "skipped" if failed else "passed"
    if not failed and strict is not None:
        report.outcome, report.longrepr = "failed", strict
        report.__dict__.pop("wasxfail", None)
    elif failed and strict is not None:
        report.outcome, report.wasxfail = "skipped", str(strict).removeprefix("[XPASS(strict)] ")
    return report


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Hear how each part of an attempt ended, before it becomes text."""
    report = yield
    run = item.stash.get(_under_way, None)
    if run is not None:
        run.heard(call, report)
    return report


def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a marked ``async def`` test that no other plugin runs."""
    import asyncio
    import inspect

    if pyfuncitem.get_closest_marker(MARK) is None or not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = pyfuncitem._fixtureinfo.argnames  # noqa: SLF001 - what pytest's own implementation passes
    asyncio.run(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in names}))
    return True


def seed_of(config: pytest.Config, task: str, repetition: int) -> int:
    """Return an attempt's seed."""
    text = f"{config.option.surefoot_seed}/{task}/{repetition}"
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4])


def replay_command(config: pytest.Config, node: str) -> str:
    """Return the command that makes an attempt again; {} stands for the repetition."""
    inside = " -n 0" if hasattr(config, "workerinput") else ""
    quoted = shlex.quote(node).replace("{", "{{").replace("}", "}}")
    return f"pytest {quoted}{inside} --surefoot-seed {config.option.surefoot_seed} --surefoot-attempt {{}}"


@pytest.fixture
def agent_attempt(request: pytest.FixtureRequest) -> AgentAttempt:
    """Give the attempt under way: ``repetition``, ``seed``, and ``record(output)``, which keeps the answer with it."""
    from surefoot.evaluation.pytest_attempts import AgentAttempt

    run: UnderWay | None = request.node.stash.get(_under_way, None)
    if run is not None:
        return run.current
    return AgentAttempt(0, seed_of(request.config, request.node.nodeid, 0))


@pytest.fixture
def repeat_agent(request: pytest.FixtureRequest) -> RepeatAgent:
    """Call a function k times: ``repeat_agent(agent, *inputs, checker=..., k=10) -> Repeated``."""
    from surefoot.evaluation.pytest_attempts import repeater

    return repeater(request)
