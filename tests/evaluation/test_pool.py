"""Children are forked from what has only the harness loaded, as many as attempts wait for, each one of its own."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import sys
from pathlib import Path

import pytest

from surefoot.evaluation import Attempt
from surefoot.evaluation.loading import load_suite
from surefoot.evaluation.pool import Pool
from surefoot.evaluation.records import read_attempts
from surefoot.evaluation.runner import Plan, repeat, repeat_async

FOLDER = Path(__file__).parent / "agents"


def plan(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Plan:
    monkeypatch.setenv("PYTHONPATH", str(FOLDER))
    monkeypatch.syspath_prepend(str(FOLDER))
    monkeypatch.delenv("PYTHONHASHSEED", raising=False)
    return Plan(suite=load_suite(f"importing:{name}"), source=f"importing:{name}", folder=folder)


def seeds(attempts: tuple[Attempt, ...]) -> dict[int, int]:
    """The hashes by the seeds that are recorded."""
    return {attempt.extra["hash_seed"]: attempt.output["hash"] for attempt in attempts}


def test_slow_attempts_get_a_child_each_and_each_imports_the_agent_by_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = repeat(plan("slow", tmp_path, monkeypatch)).attempts
    outputs = {attempt.output["pid"]: attempt.output for attempt in told}
    assert len(outputs) > 2
    # Of a fork after the import there would be one value of each.
    assert len({one["drawn"] for one in outputs.values()}) == len({one["global"] for one in outputs.values()})
    assert len({one["drawn"] for one in outputs.values()}) == len(outputs)
    assert all(one["session"] and one["threads"] and not one["seeded"] for one in outputs.values())
    logs = b"".join(log.read_bytes() for log in (tmp_path / "workers").iterdir())
    assert logs.count(b"imported") >= len(outputs)
    assert len(seeds(told)) == len(set(seeds(told).values())) == 2


def test_fast_attempts_share_few_children(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told = repeat(plan("fast", tmp_path, monkeypatch)).attempts
    assert len(told) == 120
    assert len({attempt.output["pid"] for attempt in told}) < 40


def test_fresh_children_are_pythons_with_a_hash_seed_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = repeat(plan("apart", tmp_path, monkeypatch)).attempts
    assert len({attempt.output["pid"] for attempt in told}) == len({attempt.output["hash"] for attempt in told}) == 3


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
async def test_a_run_goes_on_when_what_forks_its_children_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed: set[int] = set()

    def kill(*_: object) -> None:
        if killed:
            return
        for stat in Path("/proc").glob("[0-9]*/cmdline"):
            found, mine = int(stat.parent.name), stat.parent.joinpath("status").read_text()
            if b"surefoot.evaluation.nursery" in stat.read_bytes() and f"PPid:\t{os.getpid()}\n" in mine:
                os.kill(found, signal.SIGKILL)
                killed.add(found)

    ran = await asyncio.wait_for(repeat_async(plan("slow", tmp_path, monkeypatch), kill), 120)
    assert killed
    assert ran.ended == "complete"
    assert [attempt.outcome for attempt in read_attempts(tmp_path)] == ["ok"] * 8


@pytest.mark.parametrize("seconds", [0.0, 0.05, 0.4])
def test_a_pool_that_is_closed_while_it_starts_leaves_nothing_behind(
    seconds: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = plan("slow", tmp_path, monkeypatch)
    (tmp_path / "workers").mkdir()

    async def start_and_close() -> None:
        pool = Pool(begun.suite, "importing:slow", tmp_path, None)
        pool.warm(begun.suite.variants[0].name)
        await asyncio.sleep(seconds)
        await pool.close()

    asyncio.run(start_and_close())
    gc.collect()  # what is still open complains now, and a complaint is an error here
