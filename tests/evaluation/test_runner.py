"""The harness outlives whatever it runs, records all of it, and continues where it broke off."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import pytest

from surefoot.evaluation import (
    Attempt,
    AttemptContext,
    Budget,
    Checker,
    Frozen,
    Protocol,
    Suite,
    SuiteError,
    Task,
    Variant,
    read_attempts,
)
from surefoot.evaluation.errors import EffectsError, RecordsError
from surefoot.evaluation.loading import load_suite
from surefoot.evaluation.records import FILE, MANIFEST, read_records
from surefoot.evaluation.runner import Plan, repeat, repeat_async
from surefoot.instrumentation import model_call, tool

AGENTS = Path(__file__).parent / "agents"
ROOT = Path(__file__).parents[2]
HARNESS = [sys.executable, "-c", "from surefoot.cli.main import main; main()", "repeat"]


def small(agent: object, *, k: int = 3, tasks: int = 2, **protocol: Any) -> Suite:
    rules = {"effects": "none", "isolation": "inline", "concurrency": 1, **protocol}
    return Suite(
        name="small",
        agent=agent,  # type: ignore[arg-type]  # any function
        protocol=Protocol(k=k, **rules),
        tasks=tuple(Task(id=f"t{n}", input=n, checkers=(Checker(type="exact", expected="yes"),)) for n in range(tasks)),
    )


@pytest.fixture(scope="module")
def died(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, list[Attempt]]]:
    source = str(AGENTS / "dying.py")
    folder = tmp_path_factory.mktemp("dying")
    ran = repeat(Plan(suite=load_suite(source), source=source, folder=folder))
    assert ran.ended == "complete"
    found: dict[str, list[Attempt]] = {}
    for attempt in read_attempts(folder):
        found.setdefault(attempt.task_id, []).append(attempt)
    return folder, found


@pytest.mark.parametrize(
    ("way", "outcome", "acceptable", "told"),
    [
        ("raises", "error", False, "no such order"),
        ("hangs", "timeout", False, "took longer than 2 s"),
        ("hangs_for_good", "timeout", False, "had to be killed"),
        ("exits", "error", False, "ended its program with 3"),
        ("exits_at_once", "error", False, "exit code 0 in the middle"),
        ("is_killed", "error", False, "killed by SIGKILL"),
        ("crashes", "error", False, "killed by SIGSEGV"),
        ("writes", "ok", True, ""),
        ("leaks_threads", "ok", True, ""),
        ("leaks_again", "ok", True, ""),
        ("returns_much", "ok", True, ""),
        ("needs_a_network", "infrastructure", None, "database is down"),
        ("cannot_be_told", "ok", True, ""),
    ],
)
def test_every_way_of_ending_is_recorded(
    died: tuple[Path, dict[str, list[Attempt]]], way: str, outcome: str, acceptable: bool | None, told: str
) -> None:
    attempts = died[1][way]
    assert sorted(attempt.repetition for attempt in attempts) == [0]
    for attempt in attempts:
        assert (attempt.outcome, attempt.acceptable) == (outcome, acceptable), attempt.error
        assert told in (attempt.error.message if attempt.error else "")


def test_outputs_are_whole_and_stdout_is_a_log(died: tuple[Path, dict[str, list[Attempt]]]) -> None:
    folder, found = died
    assert {len(attempt.output) for attempt in found["returns_much"]} == {10_000_000}
    logs = b"".join(log.read_bytes() for log in (folder / "workers").iterdir())
    assert logs.count(b"{not a message}") == logs.count(b"and to stderr") == 1


def test_what_an_attempt_used_is_read_off_its_spans(tmp_path: Path) -> None:
    def agent(_: int) -> str:
        with model_call("gpt-4o-mini", provider="openai") as call:
            call.set_usage(input_tokens=1_000_000, output_tokens=0)
        with tool("look", effect="read"):
            pass
        return "yes"

    ran = repeat(Plan(suite=small(agent, k=1, tasks=1), folder=tmp_path))
    one = ran.attempts[0]
    assert (one.input_tokens, one.output_tokens, one.model_calls, one.actions) == (1_000_000, 0, 1, ("look",))
    assert one.cost_usd == pytest.approx(0.15)  # dollars per million tokens, as published
    assert one.run_id is not None
    assert one.trace_id is not None


@pytest.mark.parametrize(
    ("budget", "told"),
    [
        (Budget(tokens=25), "budget: 30 of 25 tokens used"),
        (Budget(usd=0.5), "budget: 0.6 of 0.5 US dollars used"),
        (Budget(seconds=1e-9), "of 1e-09 seconds used"),
    ],
)
def test_a_budget_ends_the_run_and_the_rest_can_follow(tmp_path: Path, budget: Budget, told: str) -> None:
    def agent(_: int, ctx: AttemptContext) -> str:
        ctx.add_usage(input_tokens=10, cost_usd=0.2)
        return "yes"

    ran = repeat(Plan(suite=small(agent, budget=budget), folder=tmp_path))
    assert told in ran.ended
    assert ran.made == (0 if budget.seconds else 3)
    rest = repeat(Plan(suite=small(agent), folder=tmp_path))
    assert (rest.ended, rest.made, rest.lost) == ("complete", 6 - ran.made, 0)
    assert len({attempt.slot for attempt in rest.attempts}) == 6


async def test_stopping_marks_what_is_under_way_and_keeps_the_rest(tmp_path: Path) -> None:
    under_way, stop = asyncio.Event(), asyncio.Event()

    async def agent(number: int, ctx: AttemptContext) -> str:
        if ctx.repetition == 1:
            under_way.set()
            await asyncio.sleep(600)
        return "yes"

    running = asyncio.create_task(repeat_async(Plan(suite=small(agent, tasks=1), folder=tmp_path), None, stop))
    await under_way.wait()
    stop.set()
    ran = await running
    assert ran.ended == "interrupted"
    records = read_records(tmp_path)
    assert [attempt.repetition for attempt in records.finished] == [0]
    assert [attempt.repetition for attempt in records.lost] == [1]


def test_kill_9_in_the_middle_loses_nothing_recorded_and_resume_finishes_the_rest(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    command = [*HARNESS, str(AGENTS / "slow.py"), "--folder", str(folder)]
    environment = {**os.environ, "SUREFOOT_PORT_HTTP": "1"}
    killed = 0
    while True:
        with subprocess.Popen(command, env=environment, cwd=tmp_path, stderr=subprocess.DEVNULL) as harness:
            before = len(read_attempts(folder)) if (folder / FILE).exists() else 0
            while harness.poll() is None and killed < 1:
                time.sleep(0.05)
                if (folder / FILE).exists() and len(read_attempts(folder)) >= before + 3:
                    harness.send_signal(signal.SIGKILL)
                    killed += 1
                    break
            harness.wait(120)
        if harness.returncode == 0:
            break
        kept = (folder / FILE).read_bytes()
        wrote = [int(name) for name in (tmp_path / "pids").read_text().split()]
    assert killed == 1
    records = read_records(folder)
    assert (folder / FILE).read_bytes().startswith(kept)
    assert len(records.finished) == len({attempt.slot for attempt in records.finished}) == 12
    assert records.open == ()
    assert records.lost
    # Children of a dead harness do not go on acting.
    assert not [pid for pid in wrote if Path(f"/proc/{pid}").exists()]
    finished = {attempt.slot for attempt in records.finished}
    assert {attempt.slot for attempt in records.lost} <= finished


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"effects": "real"}, "would act 3 times for each task"),
        ({"isolation": "process"}, "needs the suite's file or module"),
        ({"freeze": Frozen(hash_seed=0)}, "write process or fresh"),
    ],
)
def test_what_cannot_be_repeated_is_refused_before_anything_runs(
    tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    def agent(_: int) -> str:
        raise AssertionError("ran")

    with pytest.raises((EffectsError, SuiteError), match=message):
        repeat(Plan(suite=small(agent, **change), folder=tmp_path / "run"))
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("effect", ["write", "irreversible"])
def test_a_tool_that_would_act_although_the_suite_says_none_is_not_called_and_stops_the_run(
    effect: Literal["write", "irreversible"], tmp_path: Path
) -> None:
    paid = []

    @tool("pay", effect=effect)
    def pay() -> None:
        paid.append(1)

    def agent(_: int) -> str:
        with tool("look", effect="read"):
            pass
        with contextlib.suppress(Exception):  # an agent that goes on whatever a tool says
            pay()
        return "yes"

    with pytest.raises(EffectsError, match=f"one of them says {effect}; it was not called"):
        repeat(Plan(suite=small(agent), folder=tmp_path))
    assert paid == []
    (attempt,) = read_attempts(tmp_path)
    assert (attempt.actions, attempt.tool_errors) == (("look", "pay"), 0)
    repeat(Plan(suite=small(agent, effects="withheld"), folder=tmp_path / "withheld"))
    assert paid  # what it says there is the suite's word


def test_a_suite_that_changed_is_not_continued(tmp_path: Path) -> None:
    repeat(Plan(suite=small(lambda _: "yes"), folder=tmp_path))
    other = small(lambda _: "yes", sampling={"temperature": 1})
    with pytest.raises(RecordsError, match="Use a new folder"):
        repeat(Plan(suite=other, folder=tmp_path))
    manifest = json.loads((tmp_path / MANIFEST).read_text())
    assert list(manifest["provenances"]) == [read_attempts(tmp_path)[0].provenance_id]


def test_more_repetitions_continue_a_run(tmp_path: Path) -> None:
    def agent(_: int) -> str:
        return "yes"

    repeat(Plan(suite=small(agent), folder=tmp_path))
    more = repeat(Plan(suite=small(agent, k=5), folder=tmp_path))
    assert (more.made, len(more.attempts)) == (4, 10)


def test_variants_take_turns_and_meet_the_same_luck(tmp_path: Path) -> None:
    def agent(_: int, ctx: AttemptContext) -> str:
        return ctx.variant

    suite = replace(small(agent), variants=(Variant(name="baseline"), Variant(name="candidate")))
    ran = repeat(Plan(suite=suite, folder=tmp_path))
    assert [attempt.variant for attempt in ran.attempts[:4]] == ["baseline", "candidate"] * 2
    seeds = {(a.task_id, a.repetition, a.seed) for a in ran.attempts}
    assert len(seeds) == 6


def test_a_plain_function_in_a_thread_can_be_left_behind(tmp_path: Path) -> None:
    def agent(_: int) -> str:
        time.sleep(1)
        return "yes"

    suite = small(agent, k=1, tasks=1, isolation="thread", timeout_seconds=0.1)
    assert [attempt.outcome for attempt in repeat(Plan(suite=suite, folder=tmp_path)).attempts] == ["timeout"]


def test_an_agent_that_cannot_be_imported_is_said_before_any_attempt(tmp_path: Path) -> None:
    source = tmp_path / "suite.yaml"
    source.write_text("name: s\nagent: nowhere:agent\nprotocol: {k: 1, effects: none}\ntasks: [{id: a, input: 1}]\n")
    with pytest.raises(SuiteError, match="importing nowhere failed"):
        repeat(Plan(suite=load_suite(str(source)), source=str(source), folder=tmp_path / "run"))
    assert read_attempts(tmp_path / "run") == []


def test_post_hoc_confidence_is_asked_and_one_that_fails_changes_nothing(tmp_path: Path) -> None:
    def sure(_: int, output: str, ctx: AttemptContext) -> float:
        if ctx.repetition == 1:
            raise RuntimeError("no idea")
        return 80.0

    ran = repeat(Plan(suite=small(lambda _: "yes", k=2, tasks=1, confidence=sure), folder=tmp_path))
    assert [(a.confidence, a.acceptable) for a in ran.attempts] == [(80.0, True), (None, True)]
    assert ran.attempts[1].extra["notes"] == {"confidence": "RuntimeError: no idea"}


def test_errors_that_the_protocol_names_are_the_infrastructure_s(tmp_path: Path) -> None:
    def agent(number: int) -> str:
        raise ConnectionResetError("by peer") if number else ValueError("mine")

    suite = small(agent, k=1, infrastructure_errors=("ConnectionError",))
    found = {a.task_id: (a.outcome, a.acceptable) for a in repeat(Plan(suite=suite, folder=tmp_path)).attempts}
    assert found == {"t0": ("error", False), "t1": ("infrastructure", None)}


def test_a_fixture_that_fails_is_the_infrastructure_and_a_checker_that_fails_is_no_verdict(tmp_path: Path) -> None:
    def broken(*_: Any) -> bool:
        raise RuntimeError("broken")

    suite = small(lambda _: "yes", k=1)
    no_fixture, no_checker = suite.tasks
    tasks = (
        replace(no_fixture, fixture=broken),
        replace(no_checker, checkers=(Checker(type="callable", expected=broken),)),
    )
    ran = repeat(Plan(suite=replace(suite, tasks=tasks), folder=tmp_path))
    found = {a.task_id: (a.outcome, a.acceptable) for a in ran.attempts}
    assert found == {"t0": ("infrastructure", None), "t1": ("ok", None)}


def test_what_stands_around_an_attempt_can_change_its_input_and_its_tools(tmp_path: Path) -> None:
    def louder(ctx: AttemptContext) -> None:
        ctx.input = "hello"
        ctx.wraps.append(lambda name, function: lambda: f"{name}: {function()}")
        ctx.notes["louder"] = True

    def agent(given: str, ctx: AttemptContext) -> str:
        return f"{given} {ctx.tool('greet', lambda: 'world')()}"

    suite = small(agent, k=1, tasks=1)
    variant = Variant(name="loud", perturb=(louder,))
    (one,) = repeat(Plan(suite=replace(suite, variants=(variant,)), folder=tmp_path)).attempts
    assert (one.output, one.extra["notes"]) == ("hello greet: world", {"louder": True})


def test_ctrl_c_keeps_what_is_done_and_says_how_to_go_on(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    command = [*HARNESS, str(AGENTS / "slow.py"), "--folder", str(folder)]
    environment = {**os.environ, "SUREFOOT_PORT_HTTP": "1"}
    with subprocess.Popen(
        command, env=environment, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as harness:
        while not ((folder / FILE).exists() and read_attempts(folder)):
            assert harness.poll() is None
            time.sleep(0.02)
        harness.send_signal(signal.SIGINT)
        time.sleep(0.05)
        harness.send_signal(signal.SIGINT)  # of somebody in a hurry
        printed, _ = harness.communicate(timeout=120)
    assert harness.returncode == 130
    records = read_records(folder)
    assert records.open == ()
    assert 0 < len(records.finished) < 12
    assert f"To continue: surefoot repeat {AGENTS / 'slow.py'} --folder {folder}" in printed
