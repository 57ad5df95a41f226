"""Mistakes that other SLO tools made with what stands in their files, and that this one is to refuse or not to make.

Each name says what is prevented; the report it comes from stands below it.
"""

from __future__ import annotations

import itertools
import json
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from support.openslo_documents import CONDITION, FILES, GOOD, write
from surefoot.processors.slo import Slo, error_budget, load_slos
from surefoot.processors.slo.definition import Calendar
from surefoot.processors.slo.judge import judge
from surefoot.processors.slo.minutes import Minutes
from surefoot.processors.slo.periods import window_at, windows_back
from surefoot.processors.slo.report import StatusReport


def only(folder: Path, text: str) -> Slo:
    write(folder, {"only": text})
    loaded = load_slos(folder)
    assert loaded.problems == []
    (slo,) = loaded.slos
    return slo


@pytest.mark.parametrize("target", ["target: 1", "target: 1.0", "targetPercent: 100", "target: 0.99999999999999999999"])
def test_a_target_without_a_budget_never_becomes_an_infinite_burn_rate(target: str, tmp_path: Path) -> None:
    """slok/sloth#749: an objective of 100 gave +Inf and -Inf error budgets."""
    write(tmp_path, {"whole": GOOD.replace("target: 0.99", target)})
    loaded = load_slos(tmp_path)
    assert loaded.slos == []
    assert "leaves no error budget" in loaded.problems[0].what


@pytest.mark.parametrize(
    ("target", "shown", "budget"),
    [
        ("target: 0.999", "99.9", "0.001"),
        ("targetPercent: 99.9", "99.9", "0.001"),
        ("targetPercent: 99.99", "99.99", "0.0001"),
        ("target: 0.9999", "99.99", "0.0001"),
        ("targetPercent: 99.95", "99.95", "0.0005"),
        ("targetPercent: 99.995", "99.995", "0.00005"),
    ],
)
def test_three_nines_are_shown_as_they_were_written_and_not_as_one_hundred(
    target: str, shown: str, budget: str, tmp_path: Path
) -> None:
    """slok/sloth#131: 99.9 was rendered as 0.9990000000000001, and 99.99 as 100 %."""
    slo = only(tmp_path, GOOD.replace("target: 0.99", target))
    assert error_budget(slo.objective) == Decimal(budget)
    assert f"{100 * slo.objective:g}" == shown
    report = judge(slo, Minutes(slo, 1.0), 1_773_144_000.0, 1.0)
    written = json.dumps(StatusReport(0.0, [report], []).to_json())
    assert f'"objective": {Decimal(shown) / 100}' in written
    assert "000000001" not in written


def test_a_calendar_window_begins_where_the_calendar_says_and_not_some_days_ago() -> None:
    """elastic/kibana#199872: calendar-aligned SLOs were computed over now-7d and now-1M."""
    wednesday = datetime(2026, 3, 11, 15, 30, tzinfo=UTC).timestamp()
    week = window_at(Calendar("2026-01-05 00:00:00", "UTC", 1, "w"), wednesday)
    assert datetime.fromtimestamp(week.start, UTC) == datetime(2026, 3, 9, tzinfo=UTC)
    month = window_at(Calendar("2026-01-01 00:00:00", "UTC", 1, "M"), wednesday)
    assert datetime.fromtimestamp(month.start, UTC) == datetime(2026, 3, 1, tzinfo=UTC)
    # A budget is whole again at the first second of a week, and was not so a second before.
    first = window_at(Calendar("2026-01-05 00:00:00", "UTC", 1, "w"), week.start)
    assert (first.start, first.end - first.start) == (week.start, 7 * 86_400)


@pytest.mark.parametrize("zone", ["America/New_York", "Asia/Kolkata", "Pacific/Auckland", "Europe/Berlin"])
def test_a_daily_budget_begins_at_midnight_there_on_every_day_of_a_year(zone: str) -> None:
    """BerriAI/litellm#34896: in a zone other than UTC a daily budget was reset at a wrong moment and lasted 32 h."""
    place = ZoneInfo(zone)
    calendar = Calendar("2025-01-01 00:00:00", zone, 1, "d")
    end = datetime(2027, 1, 1, tzinfo=place).timestamp()
    days = list(itertools.islice(windows_back(calendar, end - 1), 365))
    assert all(datetime.fromtimestamp(day.start, place).strftime("%H:%M:%S") == "00:00:00" for day in days)
    lengths = {(day.end - day.start) / 3600 for day in days}
    assert lengths == ({24} if zone == "Asia/Kolkata" else {23, 24, 25})
    assert sum(day.end - day.start for day in days) == end - days[-1].start


@pytest.mark.parametrize(
    ("one", "other"),
    [("4w", "28d"), ("672h", "28d"), ("028d", "28d"), ("40320m", "4w")],
)
def test_equal_periods_written_differently_are_one_period(one: str, other: str, tmp_path: Path) -> None:
    """pyrra-dev/pyrra#1502: le="1" and le="1.0" are the same number, and were two labels."""
    texts = [GOOD.replace("28d", period) for period in (one, other)]
    first, second = (only(tmp_path, text) for text in texts)
    assert first == second
    assert first.period == "28d"
    assert first.generation == second.generation


@pytest.mark.parametrize(("one", "other"), [("1", "1.0"), ("1.50", "1.5"), ("30", "3.0e+1"), ("0.30", "0.3")])
def test_equal_thresholds_written_differently_are_one_threshold(one: str, other: str, tmp_path: Path) -> None:
    """pyrra-dev/pyrra#1502, of a value: neither a new generation nor another number."""
    latency = (
        GOOD.replace("ratioMetric: {rawType: success, raw: {", "thresholdMetric: {")
        .replace("availability}}}}}", "latency}}}}")
        .replace("{target: 0.99}", "{target: 0.99, op: lte, value: VALUE}")
    )
    cost = latency.replace("latency", "cost")
    for text in (latency, cost):
        first, second = (only(tmp_path, text.replace("VALUE", value)) for value in (one, other))
        assert first == second
        assert first.generation == second.generation


def test_equal_alert_windows_written_differently_are_one_window(tmp_path: Path) -> None:
    """pyrra-dev/pyrra#1502, of a window, which is a label of the burn rate."""
    found = set()
    for lookback in ("60m", "1h"):
        write(tmp_path, {**FILES, "condition": CONDITION.replace("60m", lookback).replace("14.4", "14.40")})
        found.add(load_slos(tmp_path).slos[0].alerting.tiers)
    assert len(found) == 1
