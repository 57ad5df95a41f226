"""Which bucket belongs to which window, to the second."""

from __future__ import annotations

import numpy as np
import pytest

from surefoot.processors.slo.minutes import series_of_rows
from surefoot.processors.slo.report import Counts
from surefoot.processors.slo.series import Series
from surefoot.processors.slo.windows import WINDOWS, bucket_seconds, seconds, shortest_name, window_seconds

NOON = 1_773_144_000  # 2026-03-10 12:00:00 UTC


def buckets(*starts: int) -> Series:
    """One good event in each bucket."""
    one, none = np.ones(len(starts), np.int64), np.zeros(len(starts), np.int64)
    counts = {"good": one, "bad": none, "unlabelled": none, "excluded": none}
    micros = {f"{name}_micros": 1_000_000 * count for name, count in counts.items()}
    return series_of_rows(None, {"start": np.array(starts, np.int64), **counts, **micros}, 1.0)


@pytest.mark.parametrize(
    ("now", "first", "last"),
    [
        (NOON, NOON - 240, NOON),  # the bucket that begins now counts, the one that began 5 minutes ago does not
        (NOON + 0.001, NOON - 240, NOON),
        (NOON + 59.999, NOON - 240, NOON),
        (NOON + 60, NOON - 180, NOON + 60),
        (NOON - 0.001, NOON - 300, NOON - 60),
    ],
)
def test_a_window_of_five_minutes_is_the_bucket_that_fills_and_four_before_it(
    now: float, first: int, last: int
) -> None:
    for start in range(NOON - 600, NOON + 600, 60):
        counted = buckets(start).between(now - seconds("5m"), now)
        assert counted == Counts(good=1 if first <= start <= last else 0), start - NOON
    assert buckets(*range(NOON - 600, NOON + 600, 60)).between(now - 300, now) == Counts(good=5)


def test_no_bucket_is_no_event() -> None:
    assert buckets().between(0, NOON) == Counts()


def test_durations() -> None:
    assert [seconds(name) for name in WINDOWS] == [300, 1800, 3600, 7200, 21_600, 86_400, 259_200]
    assert (seconds("4w"), seconds("28d")) == (2_419_200, 2_419_200)
    with pytest.raises(ValueError, match="'1M' is not a duration"):
        seconds("1M")


def test_equal_windows_have_one_name() -> None:
    names = {"60m": "1h", "24h": "1d", "4w": "28d", "90m": "90m", "36h": "36h", "1m": "1m"}
    assert {name: shortest_name(seconds(name)) for name in names} == names
    assert [shortest_name(seconds(name)) for name in WINDOWS] == list(WINDOWS)


@pytest.mark.parametrize(("scale", "bucket"), [(1.0, 60), (1 / 60, 1), (1 / 600, 1), (0.5, 30), (2.0, 120)])
def test_the_scale_of_tests_shrinks_buckets_and_windows_alike(scale: float, bucket: int) -> None:
    assert bucket_seconds(scale) == bucket
    assert window_seconds(3600, scale) == pytest.approx(max(3600 * scale, bucket))
    assert window_seconds(1, scale) >= bucket
