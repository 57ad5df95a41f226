"""A frozen world is the same for every attempt, and what it is not is reported."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.collecting import Collector, collecting
from surefoot.evaluation import Frozen, SuiteError, read_attempts
from surefoot.evaluation.frozen import check
from surefoot.evaluation.loading import load_suite
from surefoot.evaluation.runner import Plan, repeat
from surefoot.evaluation.varied import varied

FOLDER = Path(__file__).parent / "agents"


@pytest.fixture
def otlp_collector() -> Iterator[Collector]:
    with collecting() as running:
        yield running


def run(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch, endpoint: str | None = None) -> None:
    monkeypatch.setenv("PYTHONPATH", str(FOLDER))
    monkeypatch.syspath_prepend(str(FOLDER))
    source = f"worldly:{name}"
    repeat(Plan(suite=load_suite(source), source=source, folder=folder, endpoint=endpoint))


def test_a_frozen_world_is_the_same_in_every_attempt_and_spans_keep_real_times(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, otlp_collector: Collector
) -> None:
    began = time.time()
    run("frozen", tmp_path, monkeypatch, otlp_collector.url)
    attempts = read_attempts(tmp_path)
    assert [attempt.outcome for attempt in attempts] == ["ok"] * 6
    for task in ("look", "look-again"):
        seen = [attempt.output for attempt in attempts if attempt.task_id == task]
        assert seen[0]["now"] == "2026-01-15T04:00:00-05:00"
        for what in set(seen[0]) - {"secret"}:
            assert len({one[what] for one in seen}) == 1, what
        assert len({one["secret"] for one in seen}) == 3
    # Tasks are not each other's repetitions.
    assert len({attempt.output["random"] for attempt in attempts}) == 2
    assert len({attempt.trace_id for attempt in attempts}) == 6
    found = {each.what: each for each in varied(attempts)}
    assert set(found) == {"the answer", "the final state, by the task's rule"}
    assert (found["the answer"].tasks, found["the answer"].of) == (2, 2)
    assert all(attempt.started_at and attempt.started_at > began and attempt.seconds for attempt in attempts)
    assert {span.name for span in otlp_collector.spans} == {"invoke_agent worldly", "execute_tool look"}
    for span in otlp_collector.spans:
        assert began < span.start_time_unix_nano / 1e9 < span.end_time_unix_nano / 1e9


def test_a_world_that_is_left_as_it_is_varies_and_the_report_says_in_what(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PYTHONHASHSEED", raising=False)
    run("left", tmp_path, monkeypatch)
    world = {each.what for each in varied(read_attempts(tmp_path)) if each.of_world}
    assert {"hash", "random"} <= world
    assert world.isdisjoint({"timezone", "locale", "working directory"})


@pytest.mark.parametrize(
    ("world", "message"),
    [
        (Frozen(clock="yesterday"), "write 2026-01-15T09:00:00"),
        (Frozen(clock="2026-01-15T09:00:00"), "has no zone"),
        (Frozen(timezone="Middle/Earth"), "there is no zone"),
        (Frozen(locale="xx_YY"), "`locale -a`"),
    ],
)
def test_a_world_that_cannot_be_is_refused(world: Frozen, message: str) -> None:
    with pytest.raises(SuiteError, match=message):
        check(world)
