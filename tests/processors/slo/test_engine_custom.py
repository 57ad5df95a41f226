"""The engine over queries of one's own, and over events that move with other dates' runs and verdicts."""

from __future__ import annotations

import os
from datetime import UTC, date, datetime, timedelta
from itertools import count
from typing import Any

import duckdb
import pytest
import yaml

from support.slo_events import Row, Tables
from surefoot.processors.settings import Settings
from surefoot.processors.slo import SloEngine, StatusReport
from surefoot.processors.slo.report import Counts

NOW = 1_773_144_000.0  # 2026-03-10 12:00:00 UTC
TODAY = date(2026, 3, 10)
DAY = 86_400
_TICKS = count(10**18, 10**9)

QUERY = "SELECT ended_at, CASE WHEN outcome = 'ok' THEN 'good' ELSE 'bad' END AS class FROM runs"
# Breaks on what the data holds, so no check of the file can tell.
BREAKS = "SELECT ended_at, CASE WHEN CAST(run_id AS INT) > 1 THEN 'good' ELSE 'bad' END AS class FROM runs"


def write(settings: Settings, name: str, text: str) -> None:
    path = settings.slos_path / name
    path.write_text(text)
    # Two writes within one tick of the file system's clock would look like none.
    os.utime(path, ns=(next(_TICKS), next(_TICKS)))


def put(settings: Settings, name: str, days: int = 5, **source: Any) -> None:
    metric = {"ratioMetric": {"rawType": "success", "raw": {"metricSource": {"type": "surefoot", "spec": source}}}}
    spec = {
        "service": "desk",
        "budgetingMethod": "Occurrences",
        "timeWindow": [{"duration": f"{days}d", "isRolling": True}],
        "indicator": {"metadata": {"name": "mine"}, "spec": metric},
        "objectives": [{"target": 0.5}],
    }
    document = {"apiVersion": "openslo/v1", "kind": "SLO", "metadata": {"name": name}, "spec": spec}
    write(settings, f"{name}.yaml", yaml.safe_dump(document))


def run(name: str, ago: float, outcome: str = "ok", **other: object) -> Row:
    ended = int((NOW - ago) * 1_000_000)
    return {"run_id": name, "trace_id": name, "parent_run_id": None, "outcome": outcome, "ended_us": ended, **other}


def period(report: StatusReport, name: str, view: str = "fast") -> Counts:
    (slo,) = [slo for slo in report.slos if (slo.slo, slo.view) == (name, view)]
    return slo.strata[0].windows[-1].counts


def test_a_query_of_ones_own_is_counted_without_the_engines_connection(
    tables: Tables, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The engine's connection may write and read files; the console's may not."""
    write(settings, "q.sql", QUERY + " -- mine")
    put(settings, "own", indicator="sql", file="q.sql")
    put(settings, "plain", indicator="availability")
    tables.hold(runs=[run("a", 10), run("b", 2 * DAY, "error")])
    asked: list[str] = []

    class Watched:
        def __init__(self, con: duckdb.DuckDBPyConnection) -> None:
            self._con = con

        def __getattr__(self, name: str) -> Any:
            return getattr(self._con, name)

        def execute(self, text: str, *values: Any) -> Any:
            asked.append(text)
            return self._con.execute(text, *values)

        def sql(self, text: str, **values: Any) -> Any:
            asked.append(text)
            return self._con.sql(text, **values)

    con = tables.lake.connect()
    monkeypatch.setattr(tables.lake, "connect", lambda: Watched(con))
    engine = SloEngine(tables.lake, settings)
    report = engine.step(NOW, set())
    assert period(report, "own") == period(report, "plain") == Counts(good=1, bad=1)
    tables.hold(runs=[run("a", 10, "error"), run("b", 2 * DAY, "error")])
    assert period(engine.step(NOW, {TODAY}), "own") == Counts(bad=2)
    assert asked
    assert not [text for text in asked if "-- mine" in text]


def test_a_query_that_fails_takes_no_other_slo_down_and_is_told(tables: Tables, settings: Settings) -> None:
    write(settings, "q.sql", BREAKS)
    put(settings, "own", indicator="sql", file="q.sql")
    put(settings, "plain", indicator="availability")
    tables.hold(runs=[run("1", 10), run("2", 20)])
    engine = SloEngine(tables.lake, settings)
    assert period(engine.step(NOW, set()), "own") == Counts(good=1, bad=1)
    tables.hold(runs=[run("1", 10), run("2", 20), run("three", 30)])
    report = engine.step(NOW, {TODAY})
    assert period(report, "plain") == Counts(good=3)
    own = next(slo for slo in report.slos if slo.slo == "own")
    assert own.problem is not None
    assert "its query failed" in own.problem
    assert {tier.frozen for tier in own.strata[0].tiers} == {True}
    tables.hold(runs=[run("1", 10), run("2", 20), run("3", 30)])
    assert period(engine.step(NOW + 60, set()), "own") == Counts(good=1, bad=1)  # not asked at every step
    healed = engine.step(NOW + 1000, set())
    assert period(healed, "own") == Counts(good=2, bad=1)
    assert next(slo for slo in healed.slos if slo.slo == "own").problem is None
    assert healed == SloEngine(tables.lake, settings).step(NOW + 1000, set())


def test_a_class_that_there_is_not_is_told(tables: Tables, settings: Settings) -> None:
    write(settings, "q.sql", "SELECT ended_at, 'fine' AS class FROM runs")
    put(settings, "own", indicator="sql", file="q.sql")
    tables.hold(runs=[run("1", 10)])
    (own,) = SloEngine(tables.lake, settings).step(NOW, set()).slos
    assert own.problem is not None
    assert "gives the class 'fine'" in own.problem


def test_a_group_of_runs_moves_with_a_verdict_on_an_earlier_day(tables: Tables, settings: Settings) -> None:
    put(settings, "repeat", indicator="strict_repeat")
    runs = [run(f"r{n}", (3 - n) * DAY, service_name="s", run_group="g", repetition=n) for n in range(1, 4)]
    told = [
        {
            "verdict_id": f"v{n}",
            "run_id": f"r{n}",
            "trace_id": f"r{n}",
            "name": "rules",
            "kind": "outcome",
            "verdict": "pass",
            "finality": "final",
            "occurred_us": int((NOW - 60) * 1e6),
        }
        for n in range(1, 4)
    ]
    tables.hold(runs=runs, verdicts=told)
    engine = SloEngine(tables.lake, settings)
    assert period(engine.step(NOW, set()), "repeat") == Counts(good=1)
    tables.hold(runs=runs, verdicts=[told[0] | {"verdict": "fail"}, *told[1:]])
    first = datetime.fromtimestamp(NOW - 2 * DAY, UTC).date()
    assert period(engine.step(NOW + 1, {first}), "repeat") == Counts(bad=1)


def test_a_clock_that_was_ahead_costs_no_history(tables: Tables, settings: Settings) -> None:
    put(settings, "plain", 28, indicator="availability")
    tables.hold(runs=[run("a", 10), run("b", 20 * DAY, "error")])
    engine = SloEngine(tables.lake, settings)
    before = engine.step(NOW, set())
    rows = tables.lake.read("slo_minutes").num_rows
    engine.step(NOW + 100 * DAY, set())
    assert engine.step(NOW, set()) == before
    assert tables.lake.read("slo_minutes").num_rows == rows


def test_an_adjustment_of_decades_counts_no_more_dates_than_there_are(tables: Tables, settings: Settings) -> None:
    put(settings, "plain", 28, indicator="availability")
    tables.hold(runs=[run("a", 10), run("b", 20 * DAY, "error")])
    engine = SloEngine(tables.lake, settings)
    engine.step(NOW, set())
    document = {
        "apiVersion": "surefoot/v1",
        "kind": "BudgetAdjustment",
        "metadata": {"name": "ages"},
        "spec": {
            "slo": "plain",
            "from": "1990-01-01T00:00:00Z",
            "to": "2090-01-01T00:00:00Z",
            "author": "Ada",
            "reason": "not in production yet",
        },
    }
    write(settings, "ages.yaml", yaml.safe_dump(document))
    dirty: set[date] = set()
    engine._reload(dirty, TODAY)
    assert min(dirty) >= TODAY - timedelta(days=28)
    assert max(dirty) == TODAY + timedelta(days=1)
    assert period(SloEngine(tables.lake, settings).step(NOW, set()), "plain") == Counts(excluded=2)
