"""What users of other SLO tools reported, each as a test of the engine, named for what it prevents.

The numbers are those of the reports: slok/sloth, pyrra-dev/pyrra, elastic/kibana, google/slo-generator, OpenSLO/slogen.
"""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import Any

import pytest
import yaml

from support.slo_events import Row, Tables
from surefoot.processors.settings import Settings
from surefoot.processors.slo import SloEngine, error_budget
from surefoot.processors.slo.burn import budget_remaining, burn_rate, wilson
from surefoot.processors.slo.report import Counts, SloReport, StratumReport

NOW = 1_773_144_000.0  # 2026-03-10 12:00:00 UTC

DAY = 86_400


def write(settings: Settings, target: float = 0.99, **spec: Any) -> None:
    source = {"type": "surefoot", "spec": {"indicator": "availability"}}
    objective = {"target": target} | spec.pop("objective", {})
    document = {
        "apiVersion": "openslo/v1",
        "kind": "SLO",
        "metadata": {"name": "desk"},
        "spec": {
            "service": "desk",
            "budgetingMethod": "Occurrences",
            "timeWindow": [{"duration": "28d", "isRolling": True}],
            "indicator": {
                "metadata": {"name": "mine"},
                "spec": {"ratioMetric": {"rawType": "success", "raw": {"metricSource": source}}},
            },
            "objectives": [objective],
            **spec,
        },
    }
    (settings.slos_path / "desk.yaml").write_text(yaml.safe_dump(document) + f"# {target}\n")


def runs(ago: float, good: int, bad: int = 0, name: str = "r") -> list[Row]:
    return [
        {
            "run_id": f"{name}-{ago}-{number}",
            "trace_id": f"{name}-{ago}-{number}",
            "parent_run_id": None,
            "outcome": "ok" if number < good else "error",
            "ended_us": int((NOW - ago) * 1_000_000),
        }
        for number in range(good + bad)
    ]


def numbers(value: Any) -> list[float]:
    """Every number in a report."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple):
        return [number for item in value for number in numbers(item)]
    return [float(value)] if isinstance(value, int | float) else []


def judged(tables: Tables, settings: Settings, rows: list[Row], now: float = NOW) -> SloReport:
    tables.hold(runs=rows)
    report = SloEngine(tables.lake, settings).step(now, set()).slos[0]
    assert all(math.isfinite(number) for number in numbers(asdict(report)))
    return report


def window(stratum: StratumReport, name: str) -> Counts:
    return next(window.counts for window in stratum.windows if window.window == name)


def test_sloth_133_five_minutes_without_requests_do_not_make_the_budget_nan_for_30_days(
    tables: Tables, settings: Settings
) -> None:
    """0 / 0 in a short window was NaN, and so was every sum over it."""
    write(settings)
    report = judged(tables, settings, [*runs(600, 60), *runs(5 * DAY, 39, 1)])
    shortest = report.strata[0].windows[0]
    assert (shortest.window, shortest.counts, shortest.burn_rate, shortest.error_ratio) == ("5m", Counts(), None, None)
    assert report.strata[0].error_budget_remaining_ratio == 0.0
    assert report.strata[0].state == "exhausted"
    nothing = judged(tables, settings, [])
    assert (nothing.strata[0].error_budget_remaining_ratio, nothing.strata[0].state) == (None, "no_data")


def test_sloth_749_a_new_objective_does_not_make_the_budget_infinite(tables: Tables, settings: Settings) -> None:
    """The counts stay and the target is applied when they are read; 100 % is refused with a sentence."""
    write(settings)
    tables.hold(runs=runs(600, 98, 2))
    engine = SloEngine(tables.lake, settings)
    left = []
    for target in (0.99, 0.9, 0.999, 0.5):
        write(settings, target)
        report = engine.step(NOW, set()).slos[0]
        assert all(math.isfinite(number) for number in numbers(asdict(report)))
        left.append(report.strata[0].error_budget_remaining_ratio)
    assert left == [-1.0, 0.8, -19.0, 0.96]
    write(settings, 1.0)
    refused = engine.step(NOW, set())
    assert refused.slos == []
    assert "leaves no error budget" in refused.problems[0]
    recorded = tables.lake.read("slo_generations").sort_by("first_seen_at").to_pylist()
    assert {(row["objective"], row["generation"]) for row in recorded} == {
        (target, report.generation) for target in (0.99, 0.9, 0.999, 0.5)
    }


@pytest.mark.parametrize("method", ["Timeslices", "RatioTimeslices"])
def test_kibana_197064_slices_without_events_are_not_bad(tables: Tables, settings: Settings, method: str) -> None:
    """A service that nobody uses at night is not down at night."""
    target = {"timeSliceTarget": 0.9} if method == "Timeslices" else {}
    write(settings, 0.9, budgetingMethod=method, objective={"timeSliceWindow": "5m", **target})
    used = [row for hour in range(3, 9) for row in runs(hour * 3600, 4)]
    report = judged(tables, settings, [*used, *runs(2 * DAY, 0, 3)])
    mass = report.strata[0].windows[-1].mass
    assert mass is not None
    assert (mass.good, mass.bad, mass.effective_n) == (6.0, 1.0, 7.0)
    assert report.strata[0].error_budget_remaining_ratio == pytest.approx(1 - 1 / 0.7)


def test_sloth_618_a_busy_hour_weighs_as_many_events_as_it_had(tables: Tables, settings: Settings) -> None:
    """The mean of 5 minute ratios says 25 % bad: one quiet slice of four was all bad. Of events 1 % is."""
    write(settings, 0.9)
    rows = [row for slice_ in range(3) for row in runs(3600 + 300 * slice_, 132)]
    report = judged(tables, settings, [*rows, *runs(7200, 0, 4)])
    assert report.strata[0].windows[-1].error_ratio == 4 / 400
    assert report.strata[0].windows[-1].burn_rate == pytest.approx(0.1)


def test_sloth_517_a_budget_that_is_just_spent_is_exactly_zero_and_an_overspent_one_is_not_clamped() -> None:
    """-4.69e-12 % made the panel red, 1,000,000 % hid what happened; kibana PR 142784 cut it off at 0."""
    for objective in (0.9, 0.99, 0.999, 0.9999, 0.95, 0.97):
        budget = error_budget(objective)
        events = 10_000_000
        allowed = int(events * budget)
        assert budget_remaining(allowed, events, budget) == 0.0
        assert burn_rate(Counts(good=events - allowed, bad=allowed), budget) == 1.0
        assert budget_remaining(3 * allowed, events, budget) == -2.0
    assert budget_remaining(100, 100, error_budget(0.999)) == -999.0


def test_pyrra_1576_the_history_begins_with_the_period_and_not_four_weeks_before(
    tables: Tables, settings: Settings
) -> None:
    """The graph started at 30 to 40 % of the budget, because its first point looked back further."""
    write(settings, 0.9)
    before = runs(29 * DAY, 0, 50)
    report = judged(tables, settings, [*before, *runs(20 * DAY, 90), *runs(DAY, 9, 1)])
    left = [point.error_budget_remaining_ratio for point in report.history]
    assert (left[0], left[-1]) == (1.0, report.strata[0].error_budget_remaining_ratio)
    assert sum(point.counts.bad for point in report.history) == 1
    assert left == sorted(left, key=lambda share: -(share or 0.0))


def test_prometheus_1673_the_first_failure_of_a_series_counts(tables: Tables, settings: Settings) -> None:
    """A counter that is born at 1 has no increase; here an event is an event, whether one came before or not."""
    write(settings, 0.5)
    report = judged(tables, settings, runs(30, 0, 1))
    assert {name: window(report.strata[0], name) for name in ("5m", "1h", "28d")} == dict.fromkeys(
        ("5m", "1h", "28d"), Counts(bad=1)
    )
    assert report.strata[0].windows[0].error_ratio == 1.0


def test_slo_generator_615_nothing_good_and_nothing_bad_is_no_division_by_zero(
    tables: Tables, settings: Settings
) -> None:
    write(settings)
    rows = [{**row, "outcome": "cancelled"} for row in runs(60, 5)]
    report = judged(tables, settings, rows)
    roll_up = report.strata[0]
    assert window(roll_up, "28d") == Counts(excluded=5)
    assert {(w.error_ratio, w.burn_rate, w.error_ratio_low, w.label_coverage_ratio) for w in roll_up.windows} == {
        (None, None, None, None)
    }
    assert (roll_up.interval_low, roll_up.time_to_exhaustion_seconds, roll_up.state) == (None, None, "no_data")
    assert report.problem == "none of the last 28d's events is good or bad: 0 unlabelled, 5 excluded"
    assert wilson(0, 0) == (None, None)


def test_slogen_41_a_steady_burn_is_told_by_every_window_and_the_time_it_leaves(
    tables: Tables, settings: Settings
) -> None:
    """Burn was derived from a constant of the 30 days, and alerts were dead for weeks.

    Six times the budget burns from four days ago until now, and every window says 6.
    """
    write(settings, 0.99)
    quiet = [row for day in range(5, 28) for row in runs(day * DAY, 1500)]
    steady = [row for slot in range(4 * 288) for row in runs(slot * 300 + 10, 47, 3, name="s")]
    report = judged(tables, settings, [*quiet, *steady])
    roll_up = report.strata[0]
    rates = {w.window: w.burn_rate for w in roll_up.windows[:-1]}
    assert rates == {name: pytest.approx(6.0) for name in ("5m", "30m", "1h", "2h", "6h", "1d", "3d")}
    assert [tier.name for tier in roll_up.tiers if tier.burning] == ["page_slow", "ticket_fast", "ticket_slow"]
    left = roll_up.error_budget_remaining_ratio
    assert left is not None
    assert left < 0
    assert roll_up.time_to_exhaustion_seconds is None  # spent already
    healthy = judged(tables, settings, [*quiet, *quiet_again()])
    counts, lasts = healthy.strata[0].windows[-1].counts, healthy.strata[0].time_to_exhaustion_seconds
    assert lasts == pytest.approx((0.01 * (counts.good + counts.bad) - counts.bad) / 48 * DAY)


def quiet_again() -> list[Row]:
    """The last day burns twice the budget."""
    return [row for slot in range(24) for row in runs(slot * 3600 + 10, 98, 2, name="q")]
