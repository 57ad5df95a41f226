"""Strata are capped, the roll-up is exact all the same, and the rest is other."""

from __future__ import annotations

from datetime import date

import pyarrow as pa
import pytest

from surefoot.processors.slo import Slo
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
    return pa.table(
        {
            "start": pa.array([row[0] for row in rows], pa.int64()),
            "stratum_key": pa.array([f"task_id={row[1]}" for row in rows], pa.string()),
            "good": pa.array([row[2] for row in rows], pa.int64()),
            "bad": pa.array([row[3] for row in rows], pa.int64()),
            "unlabelled": pa.array([0] * len(rows), pa.int64()),
            "excluded": pa.array([0] * len(rows), pa.int64()),
        }
    )


def total(minutes: Minutes, key: str) -> Counts:
    return minutes.series(key).between(0, 2e9)


def crowd(size: int) -> list[tuple[int, str, int, int]]:
    """Stratum 000 has one event, 001 two, and so on."""
    return [(MIDNIGHT + 60 * (number % 7), f"{number:03}", number, 1) for number in range(size)]


def test_the_fifty_with_most_events_have_a_line_and_the_rest_is_other(slo: Slo) -> None:
    minutes = Minutes(slo)
    minutes.replace([DAY], counted(*crowd(60)), whole=True)
    assert minutes.strata() == [ROLL_UP, *(f"task_id={number:03}" for number in range(10, 60)), OTHER]
    assert total(minutes, ROLL_UP) == Counts(good=sum(range(60)), bad=60)
    assert total(minutes, OTHER) == Counts(good=sum(range(10)), bad=10)
    report = judge(slo, minutes, MIDNIGHT + 3600, 1.0)
    assert (report.strata[-1].key, report.strata[-1].dimensions) == (OTHER, {"task_id": "(other)"})
    parts = [stratum.windows[-1].counts for stratum in report.strata[1:]]
    assert sum(part.good for part in parts) == report.strata[0].windows[-1].counts.good


def test_a_newcomer_gets_a_line_while_there_is_room(slo: Slo) -> None:
    minutes = Minutes(slo)
    minutes.replace([DAY], counted(*crowd(MAX_STRATA - 1)), whole=True)
    minutes.replace([NEXT], counted((MIDNIGHT + 86_400, "a", 5, 0), (MIDNIGHT + 86_400, "b", 9, 0)))
    assert total(minutes, "task_id=b") == Counts(good=9)
    assert total(minutes, OTHER) == Counts(good=5)
    assert "task_id=a" not in minutes.strata()


def test_counting_the_whole_past_chooses_anew(slo: Slo) -> None:
    minutes = Minutes(slo)
    minutes.replace([DAY], counted(*crowd(60)), whole=True)
    busy = [(MIDNIGHT + 86_400, "000", 1000, 0)]
    assert minutes.replace([DAY, NEXT], counted(*crowd(60), *busy), whole=True) == {DAY, NEXT}
    assert total(minutes, "task_id=000") == Counts(good=1000, bad=1)
    assert "task_id=010" not in minutes.strata()


def test_only_what_changed_is_said_to_have_changed(slo: Slo) -> None:
    minutes = Minutes(slo)
    rows = [(MIDNIGHT, "a", 1, 0), (MIDNIGHT + 86_400, "a", 1, 0)]
    assert minutes.replace([DAY, NEXT], counted(*rows), whole=True) == {DAY, NEXT}
    assert minutes.replace([DAY, NEXT], counted(*rows)) == set()
    assert minutes.replace([NEXT], counted((MIDNIGHT + 86_400, "a", 0, 1))) == {NEXT}
    assert total(minutes, "task_id=a") == Counts(good=1, bad=1)
    assert minutes.replace([NEXT], counted()) == {NEXT}
    assert total(minutes, "task_id=a") == Counts(good=1)
    minutes.forget_before(NEXT)
    assert minutes.strata() == [ROLL_UP]
    assert total(minutes, ROLL_UP) == Counts()
