"""Strata are capped, the roll-up is exact all the same, and the rest is other; adjustments exclude."""

from __future__ import annotations

from datetime import date

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from surefoot.processors.slo import Slo
from surefoot.processors.slo.adjustments import BudgetAdjustment
from surefoot.processors.slo.cube import SCHEMA
from surefoot.processors.slo.judge import judge
from surefoot.processors.slo.minutes import MAX_STRATA, OTHER, ROLL_UP, Minutes
from surefoot.processors.slo.report import Counts

DAY = date(2026, 3, 10)
MIDNIGHT = 1_773_100_800
NEXT = date(2026, 3, 11)


@pytest.fixture
def slo() -> Slo:
    return Slo("x", "desk", "availability", 0.99, "28d", 28 * 86_400, by=("task_id",))


def counted(*rows: tuple[int, str, int, int]) -> pa.Table:
    """Rows of start, value of task_id, good and bad."""
    found = [
        {
            "start": start,
            "view": "fast",
            "stratum_key": f"task_id={task}",
            "good": good,
            "bad": bad,
            "unlabelled": 0,
            "excluded": 0,
            "good_micros": good * 1_000_000,
            "bad_micros": bad * 1_000_000,
            "unlabelled_micros": 0,
            "weight_squares": good + bad,
        }
        for start, task, good, bad in rows
    ]
    return pa.Table.from_pylist(found, SCHEMA)


def total(minutes: Minutes, key: str) -> Counts:
    return minutes.series(key).between(0, 2e9)


def crowd(size: int) -> list[tuple[int, str, int, int]]:
    """Stratum 000 has one event, 001 two, and so on."""
    return [(MIDNIGHT + 60 * (number % 7), f"{number:03}", number, 1) for number in range(size)]


def test_the_fifty_with_most_events_have_a_line_and_the_rest_is_other(slo: Slo) -> None:
    minutes = Minutes(slo)
    minutes.replace([DAY], counted(*crowd(60)))
    minutes.choose()
    assert minutes.strata() == [ROLL_UP, *(f"task_id={number:03}" for number in range(10, 60)), OTHER]
    assert total(minutes, ROLL_UP) == Counts(good=sum(range(60)), bad=60)
    assert total(minutes, OTHER) == Counts(good=sum(range(10)), bad=10)
    report = judge(slo, minutes, MIDNIGHT + 3600, 1.0)
    assert (report.strata[-1].key, report.strata[-1].dimensions) == (OTHER, {"task_id": "(other)"})
    parts = [stratum.windows[-1].counts for stratum in report.strata[1:]]
    assert sum(part.good for part in parts) == report.strata[0].windows[-1].counts.good


def test_it_does_not_matter_how_many_dates_are_counted_at_once(slo: Slo) -> None:
    rows = [*crowd(60), *((start + 86_400, task, 3, 1) for start, task, _, _ in crowd(70))]
    at_once, by_day = Minutes(slo), Minutes(slo)
    at_once.replace([DAY, NEXT], counted(*rows))
    by_day.replace([DAY], counted(*rows[:60]))
    by_day.replace([NEXT], counted(*rows[60:]))
    at_once.choose()
    by_day.choose()
    assert by_day.differs(at_once) == set()
    assert by_day.strata() == at_once.strata()
    assert len(by_day.strata()) == MAX_STRATA + 2


def test_a_newcomer_gets_a_line_while_there_is_room(slo: Slo) -> None:
    minutes = Minutes(slo)
    minutes.replace([DAY], counted(*crowd(MAX_STRATA - 1)))
    minutes.choose()
    minutes.replace([NEXT], counted((MIDNIGHT + 86_400, "a", 5, 0), (MIDNIGHT + 86_400, "b", 9, 0)))
    assert total(minutes, "task_id=b") == Counts(good=9)
    assert total(minutes, OTHER) == Counts(good=5)
    assert "task_id=a" not in minutes.strata()


@given(st.data())
@hypothesis_settings(max_examples=60, deadline=None)
def test_replacing_hours_gives_what_replacing_their_dates_gives(data: st.DataObject) -> None:
    slo = Slo("x", "desk", "availability", 0.99, "28d", 28 * 86_400, by=("task_id",))
    events = st.tuples(st.integers(0, 2879), st.sampled_from("abc"), st.integers(0, 2), st.integers(0, 2))
    drawn = st.lists(events, unique_by=lambda row: row[:2], max_size=30)
    rows = [
        [(MIDNIGHT + minute * 60, task, good, bad) for minute, task, good, bad in data.draw(drawn)] for _ in range(2)
    ]
    hours = data.draw(st.sets(st.integers(MIDNIGHT // 3600, MIDNIGHT // 3600 + 47)))
    inside = [row for row in rows[1] if row[0] // 3600 in hours]
    adjusted = [BudgetAdjustment("a", "x", MIDNIGHT + 3000, MIDNIGHT + 40_000, "me", "why", (("task_id", "b"),))]
    by_hour, by_date = Minutes(slo), Minutes(slo)
    for minutes in (by_hour, by_date):
        minutes.replace([DAY, NEXT], counted(*rows[0]), adjusted)
        minutes.choose()
    changed = by_hour.replace_hours(hours, counted(*inside), adjusted)
    outside = [row for row in rows[0] if row[0] // 3600 not in hours]
    assert by_date.replace([DAY, NEXT], counted(*outside, *inside), adjusted) == changed
    assert by_hour.differs(by_date) == set()
    assert by_hour.strata() == by_date.strata()


def test_what_differs_is_told_by_date(slo: Slo) -> None:
    before, after = Minutes(slo), Minutes(slo)
    busy = [(MIDNIGHT + 86_400, "000", 1000, 0)]
    before.replace([DAY], counted(*crowd(60)))
    after.replace([DAY, NEXT], counted(*crowd(60), *busy))
    before.choose()
    after.choose()
    assert total(after, "task_id=000") == Counts(good=1000, bad=1)
    assert "task_id=010" not in after.strata()
    assert after.differs(before) == {DAY, NEXT}
    assert after.differs(after) == set()


def test_only_what_changed_is_said_to_have_changed(slo: Slo) -> None:
    minutes = Minutes(slo)
    rows = [(MIDNIGHT, "a", 1, 0), (MIDNIGHT + 86_400, "a", 1, 0)]
    assert minutes.replace([DAY, NEXT], counted(*rows)) == {DAY, NEXT}
    minutes.choose()
    assert minutes.replace([DAY, NEXT], counted(*rows)) == set()
    assert minutes.replace([NEXT], counted((MIDNIGHT + 86_400, "a", 0, 1))) == {NEXT}
    assert total(minutes, "task_id=a") == Counts(good=1, bad=1)
    assert minutes.replace([NEXT], counted()) == {NEXT}
    assert total(minutes, "task_id=a") == Counts(good=1)
    minutes.forget_before(NEXT)
    assert minutes.strata() == [ROLL_UP]
    assert total(minutes, ROLL_UP) == Counts()


def test_an_adjustment_excludes_in_its_stratum_and_so_in_the_roll_up(slo: Slo) -> None:
    minutes = Minutes(slo)
    rows = [(MIDNIGHT + 60 * minute, task, 2, 1) for minute in range(4) for task in ("a", "b")]
    planned = BudgetAdjustment("x", "x", MIDNIGHT + 60, MIDNIGHT + 180, "ada", "drill", (("task_id", "a"),))
    elsewhere = BudgetAdjustment("y", "other-slo", MIDNIGHT, MIDNIGHT + 600, "ada", "drill")
    minutes.replace([DAY], counted(*rows), [planned, elsewhere])
    assert total(minutes, "task_id=a") == Counts(good=4, bad=2, excluded=6)
    assert total(minutes, "task_id=b") == Counts(good=8, bad=4)
    assert total(minutes, ROLL_UP) == Counts(good=12, bad=6, excluded=6)
    amounts = minutes.series("task_id=a").amounts(0, 2e9)
    assert (amounts.mass, amounts.bad) == (None, 2)
