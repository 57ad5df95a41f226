"""Run groups as events: what completes one, where it stands, and which dates a change touches."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, timedelta

import duckdb
import pytest

from support.slo_events import NOW, SECOND, Row, table
from surefoot.processors.slo import Slo
from surefoot.processors.slo.count import count_events, touched

TODAY = date(2026, 3, 10)
YESTERDAY = TODAY - timedelta(days=1)
MIDNIGHT = (NOW - 150) * SECOND


@pytest.fixture
def con() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        yield connection


def attempt(repetition: int | None, verdict: str | None = "pass", **said: object) -> Row:
    row = {"repetition": repetition, "run_group": "g", "task_id": "t", "outcome": "ok", "ended_us": NOW * SECOND}
    return {**row, "verdict": verdict, **said}


def slo(indicator: str = "strict_repeat", **said: object) -> Slo:
    return Slo("x", "desk", indicator, 0.9, "28d", 28 * 86_400, **said)  # type: ignore[arg-type]  # fields by name


def classes(con: duckdb.DuckDBPyConnection, attempts: list[Row], asked: Slo, day: date = TODAY) -> list[str]:
    """The classes of the matured view's events of a day."""
    runs, verdicts = [], []
    for number, row in enumerate(attempts):
        said = dict(row)
        verdict = said.pop("verdict")
        runs.append({"run_id": f"r{number}", "trace_id": "t", **said})
        if verdict is not None:
            ground = {"verdict_id": f"v{number}", "run_id": f"r{number}", "kind": "outcome", "finality": "final"}
            verdicts.append({**ground, "verdict": verdict, "occurred_us": NOW * SECOND})
    for name, rows in (("runs", runs), ("verdicts", verdicts), ("tool_calls", [])):
        con.register(name, table(name, rows))
    found = count_events(con, asked, [day], 60, lookback_days=8).to_pylist()
    kinds = ("good", "bad", "unlabelled", "excluded")
    return [kind for row in found if row["view"] == "matured" for kind in kinds for _ in range(row[kind])]


@pytest.mark.parametrize(
    ("attempts", "strict", "wrong"),
    [
        ([attempt(1), attempt(2), attempt(3)], ["good"], ["good"]),
        ([attempt(0), attempt(1)], ["good"], ["good"]),
        ([attempt(1), attempt(2, "fail")], ["bad"], ["good"]),
        ([attempt(1, "fail"), attempt(2, "fail")], ["bad"], ["bad"]),
        ([attempt(1, None, outcome="error"), attempt(2, None, outcome="abandoned")], ["bad"], ["bad"]),
        ([attempt(1), attempt(2, None)], ["unlabelled"], ["good"]),
        ([attempt(1, "fail"), attempt(2, None)], ["bad"], ["unlabelled"]),
        ([attempt(1), attempt(2, outcome="cancelled")], ["excluded"], ["good"]),
        ([attempt(1, "fail"), attempt(2, outcome="refused")], ["bad"], ["excluded"]),
        ([attempt(1)], ["good"], ["excluded"]),  # k = 1: nothing was repeated
        ([attempt(1), attempt(3)], [], []),  # the second is missing
        ([attempt(2), attempt(3)], [], []),  # the first is
        ([attempt(1), attempt(2, None, outcome="running", ended_us=None)], [], []),
        ([attempt(None), attempt(None)], ["good"], ["good"]),  # without numbers, the runs are counted
        ([attempt(1), attempt(None)], [], []),
        ([attempt(1), attempt(2, "fail"), attempt(2)], ["bad"], ["good"]),  # trying again does not heal
        ([attempt(1), attempt(1, run_group="h")], ["good", "good"], ["excluded", "excluded"]),
        ([attempt(1), attempt(1, task_id="u")], ["good", "good"], ["excluded", "excluded"]),
        ([attempt(1), attempt(2, parent_run_id="r0")], ["good"], ["excluded"]),
    ],
)
def test_what_a_group_counts_as(
    con: duckdb.DuckDBPyConnection, attempts: list[Row], strict: list[str], wrong: list[str]
) -> None:
    assert classes(con, attempts, slo()) == strict
    assert classes(con, attempts, slo("consistent_wrong")) == wrong


def test_a_group_that_straddles_midnight_is_one_event_of_its_last_day(con: duckdb.DuckDBPyConnection) -> None:
    group = [attempt(1, ended_us=MIDNIGHT - 1), attempt(2)]
    assert classes(con, group, slo(), TODAY) == ["good"]
    assert classes(con, group, slo(), YESTERDAY) == []
    assert classes(con, group[:1], slo(), YESTERDAY) == ["good"]  # as it looked before midnight


def test_where_k_waits_for_the_last_run(con: duckdb.DuckDBPyConnection) -> None:
    three = slo(where=(("k", ("3",)),))
    assert classes(con, [attempt(1), attempt(2)], three) == []
    assert classes(con, [attempt(1), attempt(2), attempt(3)], three) == ["good"]


def test_a_change_of_a_run_touches_the_days_on_which_its_group_may_stand() -> None:
    days = touched(slo(), [TODAY], lookback_days=2)
    assert days == {TODAY + timedelta(days=offset) for offset in range(-2, 3)}
    assert touched(slo("availability"), [TODAY], lookback_days=2) == {TODAY}
