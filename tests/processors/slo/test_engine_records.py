"""What the engine keeps beside counts: adjustments, actions and generations; and what it says of silence and age."""

from __future__ import annotations

import os
from dataclasses import replace
from datetime import UTC, datetime
from itertools import count
from typing import Any

import pytest
import yaml

from support.slo_events import Row, Tables
from surefoot.processors.settings import Settings
from surefoot.processors.slo import Slo, SloEngine
from surefoot.processors.slo.count import count_events
from surefoot.processors.slo.cube import SCHEMA
from surefoot.processors.slo.judge import judge
from surefoot.processors.slo.minutes import Minutes
from surefoot.processors.slo.report import Counts, SloReport

NOW = 1_773_144_000.0  # 2026-03-10 12:00:00 UTC
HOUR, DAY = 3600, 86_400
_TICKS = count(10**18, 10**9)


def put(settings: Settings, name: str, kind: str, spec: dict[str, Any]) -> None:
    own = {"apiVersion": "openslo/v1" if kind == "SLO" else "surefoot/v1", "kind": kind}
    path = settings.slos_path / f"{name}.yaml"
    path.write_text(yaml.safe_dump({**own, "metadata": {"name": name}, "spec": spec}))
    # Two writes within one tick of the file system's clock would look like none.
    os.utime(path, ns=(next(_TICKS), next(_TICKS)))


def slo(settings: Settings, target: float = 0.9, **window: Any) -> None:
    source = {"type": "surefoot", "spec": {"indicator": "availability", "by": ["task_class"]}}
    spec = {
        "service": "desk",
        "budgetingMethod": "Occurrences",
        "timeWindow": [window or {"duration": "28d", "isRolling": True}],
        "indicator": {
            "metadata": {"name": "mine"},
            "spec": {"ratioMetric": {"rawType": "success", "raw": {"metricSource": source}}},
        },
        "objectives": [{"target": target}],
    }
    put(settings, "desk", "SLO", spec)


def run(number: int, ago: float, outcome: str = "ok", task: str = "refund") -> Row:
    return {
        "run_id": f"r{number}",
        "trace_id": f"t{number}",
        "parent_run_id": None,
        "task_class": task,
        "outcome": outcome,
        "ended_us": int((NOW - ago) * 1_000_000),
    }


def step(engine: SloEngine, now: float = NOW) -> SloReport:
    (report,) = engine.step(now, set()).slos
    return report


def test_a_planned_exclusion_takes_effect_when_its_file_comes_and_goes(tables: Tables, settings: Settings) -> None:
    slo(settings)
    outage = [run(n, 50 * HOUR + 60 * n, "error") for n in range(10)]
    tables.hold(runs=[*(run(100 + n, n * HOUR) for n in range(90)), *outage])
    engine = SloEngine(tables.lake, settings)
    assert step(engine).strata[0].error_budget_remaining_ratio == 0.0
    begin, end = (datetime.fromtimestamp(NOW - hours * HOUR, UTC).isoformat() for hours in (51, 50))
    spec = {"slo": "desk", "from": begin, "to": end, "author": "Ada", "reason": "drill"}
    put(settings, "drill", "BudgetAdjustment", spec)
    adjusted = step(engine, NOW + 5)
    # From 51 h ago on and before 50 h ago: the run at the beginning, and nine of the ten that failed.
    assert adjusted.strata[0].windows[-1].counts == Counts(good=89, bad=1, excluded=10)
    (sentence,) = adjusted.adjustments
    assert sentence.endswith("drill (Ada)")
    assert sum(row["excluded"] for row in tables.lake.read("slo_minutes").to_pylist() if not row["stratum_key"]) == 10
    again = step(SloEngine(tables.lake, settings), NOW + 5)
    assert again == adjusted
    (settings.slos_path / "drill.yaml").unlink()
    assert step(engine, NOW + 10).strata[0].windows[-1].counts == Counts(good=90, bad=10)


def test_a_stratum_is_taken_out_of_what_is_counted_together_and_by_the_word_for_no_value(
    tables: Tables, settings: Settings
) -> None:
    slo(settings)
    many = [run(n, 60, task=f"t{n // 2:02}") for n in range(110)]  # 55 strata, of which 50 have a line
    tables.hold(runs=[*many, run(900, 60, "error", task="rare"), run(901, 60, "error", task="")])
    begin, end = (datetime.fromtimestamp(NOW - seconds, UTC).isoformat() for seconds in (600, 0))
    for name, task in (("one", "rare"), ("two", "(none)")):
        spec = {
            "slo": "desk",
            "from": begin,
            "to": end,
            "author": "Ada",
            "reason": "x",
            "stratum": {"task_class": task},
        }
        put(settings, name, "BudgetAdjustment", spec)
    strata = {stratum.key: stratum.windows[-1].counts for stratum in step(SloEngine(tables.lake, settings)).strata}
    assert strata[""] == Counts(good=110, excluded=2)
    assert strata["other"] == Counts(good=10, excluded=2)


def test_actions_are_recorded_when_they_begin_and_end_and_survive_a_restart(tables: Tables, settings: Settings) -> None:
    slo(settings)
    rule = {"action": "freeze_rollout", "when": {"budget": {"below": 0.1, "until": 0.25}}}
    put(settings, "agreed", "ErrorBudgetPolicy", {"slos": ["desk"], "rules": [rule]})
    tables.hold(runs=[*(run(n, n * HOUR) for n in range(90)), *(run(100 + n, 5 * HOUR, "error") for n in range(10))])
    (action,) = step(SloEngine(tables.lake, settings)).actions
    assert (action.policy, action.action, action.stratum_key, action.since) == ("agreed", "freeze_rollout", "", NOW)
    other = SloEngine(tables.lake, settings)
    (same,) = step(other, NOW + 60).actions
    assert same.since == NOW
    assert tables.lake.read("slo_actions").num_rows == 1
    tables.hold(runs=[run(n, n * HOUR) for n in range(90)])
    (report,) = other.step(NOW + 120, {datetime.fromtimestamp(NOW - 5 * HOUR, UTC).date()}).slos
    assert report.actions == []
    began, ended = tables.lake.read("slo_actions").sort_by([("ended_at", "ascending")]).to_pylist()[::-1]
    assert began["started_at"] == ended["started_at"] == datetime.fromtimestamp(NOW, UTC)
    assert (began["ended_at"], ended["ended_at"]) == (None, datetime.fromtimestamp(NOW + 120, UTC))
    assert "error budget left of desk (fast) is 0.0 %" in began["evidence"]
    assert "100.0 %" in ended["evidence"]


def test_every_definition_that_an_slo_had_is_kept_once(tables: Tables, settings: Settings) -> None:
    tables.hold(runs=[run(1, 60)])
    engine = SloEngine(tables.lake, settings)
    for target in (0.9, 0.95, 0.9):
        slo(settings, target)
        step(engine)
    slo(settings, 0.9, duration="30d", isRolling=True)
    generation = step(engine, NOW + 60).generation
    step(SloEngine(tables.lake, settings), NOW + 120)
    rows = tables.lake.read("slo_generations").to_pylist()
    assert [(row["slo"], row["objective"]) for row in rows if row["generation"] == generation] == [("desk", 0.9)]
    assert sorted(row["objective"] for row in rows if row["generation"] != generation) == [0.9, 0.95]


def test_a_calendar_month_begins_at_midnight_where_it_says(tables: Tables, settings: Settings) -> None:
    """In Kolkata March begins at 18:30 UTC on 28 February."""
    calendar = {"startTime": "2026-01-01 00:00:00", "timeZone": "Asia/Kolkata"}
    slo(settings, duration="1M", isRolling=False, calendar=calendar)
    march = datetime(2026, 2, 28, 18, 30, tzinfo=UTC).timestamp()
    tables.hold(runs=[run(0, NOW - march), run(1, NOW - march + 60, "error"), run(2, 60, "error")])
    report = step(SloEngine(tables.lake, settings))
    assert report.strata[0].windows[-1].counts == Counts(good=1, bad=1)
    assert report.period_start == march
    assert (report.history[0].date, report.history[-1].date) == ("2026-02-28", "2026-03-10")
    late = datetime(2026, 3, 31, 18, 30, tzinfo=UTC).timestamp()
    assert step(SloEngine(tables.lake, settings), late).strata[0].state == "no_data"


def test_a_daily_budget_resets_at_local_midnight_and_looks_back_no_further(tables: Tables, settings: Settings) -> None:
    """Two days in New York, the second of which, 8 March 2026, has 23 hours."""
    calendar = {"startTime": "2026-01-01 00:00:00", "timeZone": "America/New_York"}
    slo(settings, 0.9, duration="1d", isRolling=False, calendar=calendar)
    begin = datetime(2026, 3, 8, 5, 0, tzinfo=UTC).timestamp()
    end = datetime(2026, 3, 9, 4, 0, tzinfo=UTC).timestamp()
    bad = [run(n, NOW - begin + 60 - n, "error") for n in range(50)]  # the last minute of the 7th
    good = [run(100 + n, NOW - begin - 3600 * n) for n in range(23)]
    tables.hold(runs=[*bad, *good, run(999, NOW - end, "error")])
    engine = SloEngine(tables.lake, settings)
    before = step(engine, begin - 1)
    assert (before.strata[0].windows[-1].counts, before.strata[0].state) == (Counts(bad=50), "burning_page")
    first = step(engine, begin)
    assert (first.period_start, first.strata[0].windows[-1].counts) == (begin, Counts(good=1))
    assert first.strata[0].error_budget_remaining_ratio == 1.0
    assert first.strata[0].windows[0].counts == Counts(good=1, bad=50)  # windows of alerts do not stop at midnight
    assert step(engine, end - 1).strata[0].windows[-1].counts == Counts(good=23)
    assert step(engine, end).strata[0].windows[-1].counts == Counts(bad=1)
    # Nothing is of a day or longer but the period, so no two windows have one name.
    assert [window.window for window in first.strata[0].windows] == ["5m", "30m", "1h", "2h", "6h", "1d"]
    assert [(tier.name, tier.factor) for tier in first.strata[0].tiers] == [("page_fast", 2.0), ("page_slow", 2.0)]
    assert step(SloEngine(tables.lake, settings), end) == step(engine, end)


def test_what_lasts_is_told_in_days_like_the_last_one(tables: Tables, settings: Settings) -> None:
    """On the second day of a month half of the budget is left; days like the first one use that up in one day."""
    calendar = {"startTime": "2026-01-01 00:00:00", "timeZone": "UTC"}
    slo(settings, 0.9, duration="1M", isRolling=False, calendar=calendar)
    now = datetime(2026, 3, 2, tzinfo=UTC).timestamp()
    failed = [run(n, NOW - now + 60 * (n + 1), "error" if n < 5 else "ok") for n in range(100)]
    tables.hold(runs=failed)
    roll_up = step(SloEngine(tables.lake, settings), now).strata[0]
    assert roll_up.error_budget_remaining_ratio == 0.5
    assert roll_up.time_to_exhaustion_seconds == DAY


def minutes_of(tables: Tables, defined: Slo, rows: list[Row]) -> Minutes:
    tables.hold(runs=rows)
    with tables.lake.connect() as con:
        dates = [datetime.fromtimestamp(row["ended_us"] / 1e6, UTC).date() for row in rows]
        minutes = Minutes(defined)
        minutes.replace(dates, count_events(con, defined, dates, 60, 8))
    minutes.choose()
    return minutes


DESK = Slo("desk", "desk", "availability", 0.9, "28d", 28 * DAY)


def test_a_silence_is_unusual_when_it_is_twice_the_longest_and_no_chance(tables: Tables) -> None:
    """Runs every half an hour, but none at night from 20:00 to 6:00."""
    days = [run(100 * day + slot, day * DAY + 4 * HOUR + slot * 1800) for day in range(20) for slot in range(28)]
    minutes = minutes_of(tables, DESK, [row for row in days if row["ended_us"] < (NOW - 4 * HOUR + 60) * 1e6])
    roll_up = judge(DESK, minutes, NOW, 1.0).strata[0]
    assert roll_up.last_event_at == NOW - 4 * HOUR
    assert roll_up.silence_limit_seconds == pytest.approx(2 * 10.5 * HOUR)
    few = judge(DESK, minutes, NOW - 15 * DAY, 1.0).strata[0]
    assert few.silence_limit_seconds is None  # five days do not tell what a weekend is like


def test_repeated_runs_that_are_too_old_freeze(tables: Tables) -> None:
    weekly = replace(DESK, max_age_seconds=8 * DAY)
    minutes = minutes_of(tables, weekly, [run(n, 7 * DAY + n * 60) for n in range(5)])
    assert judge(weekly, minutes, NOW, 1.0).strata[0].state == "ok"
    old = judge(weekly, minutes, NOW + 2 * DAY, 1.0).strata[0]
    assert (old.state, {tier.frozen for tier in old.tiers}) == ("frozen", {True})
    assert old.tiers[0].reason.startswith("the newest event is 9.0 days old")


def test_no_two_strata_have_one_label(tables: Tables) -> None:
    """Prometheus keeps one of two samples with the same labels, and says so in its log only."""
    by_task = replace(DESK, by=("task_class",))
    tasks = ["", "(none)", "((none))", "(other)", "refund"]
    minutes = minutes_of(tables, by_task, [run(n, 60, task=task) for n, task in enumerate(tasks)])
    _, *strata = judge(by_task, minutes, NOW, 1.0).strata
    shown = {stratum.dimensions["task_class"] for stratum in strata}
    assert shown == {"(none)", "((none))", "(((none)))", "((other))", "refund"}


def test_an_empty_minutes_has_nothing_to_say(tables: Tables) -> None:
    minutes = Minutes(DESK)
    minutes.replace([], SCHEMA.empty_table())
    minutes.choose()
    report = judge(DESK, minutes, NOW, 1.0)
    assert (report.strata[0].state, report.strata[0].last_event_at) == ("no_data", None)
