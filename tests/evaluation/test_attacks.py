"""What agents, disks, clocks and people do to a run: it is recorded as what it was, and nothing of it is met again."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from surefoot.cli.repeat_again import again
from surefoot.evaluation import (
    AttemptContext,
    Budget,
    Checker,
    InfrastructureError,
    Protocol,
    Suite,
    SuiteError,
    Task,
    execute,
    read_attempts,
)
from surefoot.evaluation.compare_sides import read_side
from surefoot.evaluation.errors import RecordsError
from surefoot.evaluation.live import Live
from surefoot.evaluation.loading import load_suite
from surefoot.evaluation.records import FILE, REPLAYS, RecordsWriter, read_records
from surefoot.evaluation.results import summaries
from surefoot.evaluation.runner import Plan, repeat
from surefoot.evaluation.suite import attempt_seed

AGENTS = Path(__file__).parent / "agents"
SUREFOOT = [sys.executable, "-c", "from surefoot.cli.main import main; main()"]


def small(agent: Callable[..., Any], *, k: int = 3, **protocol: Any) -> Suite:
    rules = {"effects": "none", "isolation": "inline", "concurrency": 1, **protocol}
    tasks = tuple(Task(id=f"t{n}", input=n, checkers=(Checker(type="exact", expected="yes"),)) for n in range(2))
    return Suite(name="small", agent=agent, protocol=Protocol(k=k, **rules), tasks=tasks)


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_no_attempt_meets_what_another_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    source = str(AGENTS / "attacking.py")
    ran = repeat(Plan(suite=load_suite(source), source=source, folder=tmp_path / "run"))
    found: dict[str, Counter[tuple[str, bool | None]]] = {}
    for attempt in ran.attempts:
        found.setdefault(attempt.task_id, Counter())[attempt.outcome, attempt.acceptable] += 1
    ends = {"forks_and_dies": ("error", False), "kills_its_fixture": ("infrastructure", None)}
    assert found == {task: Counter({ends.get(task, ("ok", True)): 2}) for task in found}, ran.attempts
    assert len(found) == 7
    (code,) = {a.error.message for a in ran.attempts if a.task_id == "forks_and_dies" and a.error is not None}
    assert "exit code 7" in code
    odd = next(attempt.output for attempt in ran.attempts if attempt.task_id == "answers_oddly")
    assert (odd["fine"], odd["(1, 2)"], odd["itself"]) == (True, "nan", "<a part of itself>")
    left = [pid for pid in (tmp_path / "processes").read_text().split() if Path(f"/proc/{pid}").exists()]
    assert not [pid for pid in left if "State:\tZ" not in Path(f"/proc/{pid}/status").read_text()]


def test_what_the_infrastructure_ended_is_tried_again_by_a_resume_and_nothing_else_is(tmp_path: Path) -> None:
    down = True
    calls: Counter[tuple[int, int]] = Counter()

    def agent(number: int, ctx: AttemptContext) -> str:
        calls[number, ctx.repetition] += 1
        ctx.add_usage(input_tokens=10)
        if number == 1 and ctx.repetition < 2 and down:
            raise InfrastructureError("the endpoint is down")
        return "yes" if number else "no"

    plan = Plan(suite=small(agent), folder=tmp_path)
    first = repeat(plan)
    assert (first.ended, first.made, first.retried) == ("complete", 6, 0)
    again = repeat(plan)
    assert (again.made, again.retried, len(again.attempts)) == (2, 2, 6)
    down = False
    last = repeat(plan)
    assert (last.made, last.retried, last.slots, len(last.attempts)) == (2, 4, 6, 6)
    assert repeat(plan).made == 0
    assert calls == {(0, 0): 1, (0, 1): 1, (0, 2): 1, (1, 0): 3, (1, 1): 3, (1, 2): 1}

    records = read_records(tmp_path)
    assert [attempt.outcome for attempt in records.earlier] == ["infrastructure"] * 4
    assert {attempt.slot: attempt.tried for attempt in records.finished if attempt.tried} == {
        ("baseline", "t1", 0): 2,
        ("baseline", "t1", 1): 2,
    }
    # Every reader sees the last tries.
    assert read_attempts(tmp_path) == list(read_side(str(tmp_path)).attempts) == list(records.finished)
    (summary,) = summaries(last.attempts, 3)
    assert (summary.judged, summary.infrastructure, summary.strict.value) == (6, 0, 0.5)
    live = Live(3)
    for attempt in (*records.earlier, *records.finished):
        live.add(attempt)
    assert "infrastructure" not in live.text()
    # What the tries used was used.
    more = replace(plan, suite=small(agent, k=4, budget=Budget(tokens=100)))
    assert repeat(more).ended == "budget: 100 of 100 tokens used"


def test_one_attempt_is_run_again_to_be_looked_at_and_counts_nowhere(tmp_path: Path) -> None:
    source = str(AGENTS / "dying.py")
    quiet = {**os.environ, "SUREFOOT_PORT_HTTP": "1"}
    command = [*SUREFOOT, "repeat", source, "--task", "raises", "--repetition", "4"]
    done = subprocess.run(command, cwd=tmp_path, env=quiet, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr
    seed = attempt_seed(load_suite(source), "raises", 4)
    assert f"baseline, raises, repetition 4, seed {seed}: not acceptable" in done.stdout
    assert "ValueError: no such order" in done.stdout
    assert "Traceback" in done.stdout
    (folder,) = (tmp_path / "runs" / "replays").iterdir()
    assert not (folder / FILE).exists()
    assert json.loads((folder / "manifest.json").read_text())["replay"] is True
    with pytest.raises(RecordsError, match="no evidence"):
        read_records(folder / REPLAYS)
    plan = Plan(suite=load_suite(source), source=source, folder=tmp_path / "new", tasks=("raises",), replayed=4)
    for wrong, message in (
        ({"folder": folder}, "is there already"),
        ({"endpoint": "http://127.0.0.1:1"}, "sent nowhere"),
        ({"tasks": ()}, "name its task"),
    ):
        with pytest.raises(SuiteError, match=message):
            again(replace(plan, **wrong), as_json=False)


def test_what_an_agent_answers_does_not_command_the_terminal(tmp_path: Path) -> None:
    (tmp_path / "suite.py").write_text(
        "from surefoot.evaluation import Checker, Protocol, Suite, Task\n"
        "suite = Suite(name='odd', agent=lambda _: '\\ud800 \\x1b[31m red', tasks=(Task(id='t', input='',\n"
        "    checkers=(Checker(type='exact', expected='x'),)),),\n"
        "    protocol=Protocol(k=1, effects='none', isolation='inline'))\n"
    )
    quiet = {**os.environ, "SUREFOOT_PORT_HTTP": "1"}
    for more, code in (([], 0), (["--task", "t", "--repetition", "0"], 1)):
        command = [*SUREFOOT, "repeat", "suite.py", *more]
        done = subprocess.run(command, cwd=tmp_path, env=quiet, capture_output=True, text=True, check=False)
        assert done.returncode == code, done.stderr
        assert "\x1b" not in done.stdout
        assert "[31m red" in done.stdout


FULL = """
import resource, sys
from pathlib import Path
from surefoot.evaluation import Protocol, Suite, Task
from surefoot.evaluation.errors import RecordsError
from surefoot.evaluation.runner import Plan, repeat
suite = Suite(name="full", agent=lambda n: "x" * 9000, tasks=tuple(Task(id=f"t{n}", input=n) for n in range(5)),
    protocol=Protocol(k=2, effects="none", isolation="inline", concurrency=3))
if sys.argv[2] == "full":
    resource.setrlimit(resource.RLIMIT_FSIZE, (40_000, resource.RLIM_INFINITY))
try:
    print(repeat(Plan(suite=suite, folder=Path(sys.argv[1]))).ended)
except RecordsError as error:
    print(error)
"""


def test_a_full_disk_ends_the_run_and_what_was_recorded_is_continued(tmp_path: Path) -> None:
    def run(disk: str) -> str:
        command = [sys.executable, "-c", FULL, str(tmp_path), disk]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    said = run("full")
    assert "File too large" in said
    assert "continue with the same folder" in said
    before = read_records(tmp_path)
    assert 0 < len(before.finished) < 10
    assert before.torn == 0
    assert run("roomy") == "complete"
    after = read_records(tmp_path)
    assert after.finished[: len(before.finished)] == before.finished
    assert len(after.finished) == len({attempt.slot for attempt in after.finished}) == 10
    assert after.open == ()


def test_a_folder_that_cannot_be_written_and_one_that_another_run_writes_are_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(RecordsError, match="Opening"):
        repeat(Plan(suite=small(lambda _: "yes"), folder=tmp_path / "file" / "run"))
    with RecordsWriter(tmp_path / "run"), pytest.raises(RecordsError, match="Another run writes"):
        repeat(Plan(suite=small(lambda _: "yes"), folder=tmp_path / "run"))
    (tmp_path / "odd").mkdir()
    (tmp_path / "odd" / "manifest.json").write_text("[")
    with pytest.raises(RecordsError, match="Restore it, or use a new folder"):
        repeat(Plan(suite=small(lambda _: "yes"), folder=tmp_path / "odd"))


def test_an_input_that_cannot_be_copied_and_a_number_beyond_reason_are_refused(tmp_path: Path) -> None:
    suite = small(lambda _: "yes")
    odd = replace(suite, tasks=(Task(id="locked", input=threading.Lock()),))
    with pytest.raises(SuiteError, match=r"locked gets a copy of its input.*cannot pickle"):
        repeat(Plan(suite=odd, folder=tmp_path / "run"))
    with pytest.raises(SuiteError, match="more than 10,000,000 attempts"):
        repeat(Plan(suite=small(lambda _: "yes", k=10**9), folder=tmp_path / "run"))


def test_a_clock_that_is_set_meanwhile_does_not_change_how_long_it_took(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = time.time_ns

    def agent(number: int) -> str:
        hours = 3600 * 10**9 * (1 if number else -1)
        monkeypatch.setattr(time, "time_ns", lambda: real() + hours)
        return "yes"

    took = [attempt.seconds for attempt in repeat(Plan(suite=small(agent), folder=tmp_path)).attempts]
    assert all(seconds is not None and 0 <= seconds < 600 for seconds in took), took


def test_a_checker_that_does_not_end_is_no_verdict(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(execute, "CHECK_SECONDS", 0.1)
    let_go = threading.Event()
    suite = small(lambda _: "yes", k=1, isolation="thread")
    slow = Checker(type="callable", expected=lambda _: let_go.wait(60), name="slow")
    tasks = (replace(suite.tasks[0], checkers=(*suite.tasks[0].checkers, slow)),)
    (one,) = repeat(Plan(suite=replace(suite, tasks=tasks), folder=tmp_path)).attempts
    let_go.set()
    assert [(verdict.name, verdict.verdict) for verdict in one.verdicts] == [("exact", "pass"), ("slow", "unresolved")]
    assert (one.outcome, one.acceptable) == ("ok", None)
