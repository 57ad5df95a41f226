"""Calendar windows equal a slow walk over the zone's clock, minute by minute."""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surefoot.processors.slo.definition import Calendar
from surefoot.processors.slo.periods import Window, longest_seconds, previous, window_at, windows_back

DAY = 86_400
# Changes at 1:00 UTC, at 2:00 local, of half an hour, in the southern year, at midnight, and none.
ZONES = (
    "Europe/Berlin",
    "America/New_York",
    "Australia/Lord_Howe",
    "America/Santiago",
    "Asia/Beirut",
    "Asia/Kolkata",
    "Pacific/Apia",
    "UTC",
)


def at(text: str, zone: str = "UTC") -> float:
    return datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone)).timestamp()


def of(window: Window, zone: str) -> tuple[str, str]:
    first, last = (datetime.fromtimestamp(time, ZoneInfo(zone)) for time in (window.start, window.end))
    return f"{first:%Y-%m-%d %H:%M}", f"{last:%Y-%m-%d %H:%M}"


def clock_beginnings(calendar: Calendar, first: date, last: date) -> list[datetime]:
    """Every clock time from ``first`` to ``last`` at which a window begins, found by trying each date."""
    start = datetime.fromisoformat(calendar.start)
    found = []
    day = first
    while day <= last:
        months_apart = 12 * (day.year - start.year) + day.month - start.month
        is_last_of_month = (day + timedelta(days=1)).month != day.month
        right_day = day.day == start.day or (is_last_of_month and day.day < start.day)
        begins = {
            "d": (day - start.date()).days % calendar.count == 0,
            "w": (day - start.date()).days % (7 * calendar.count) == 0,
            "M": right_day and months_apart % calendar.count == 0,
            "Q": right_day and months_apart % (3 * calendar.count) == 0,
            "Y": right_day and months_apart % (12 * calendar.count) == 0,
        }[calendar.unit]
        if begins:
            found.append(datetime.combine(day, start.time()))
        day += timedelta(days=1)
    return found


def walk_to(clock: datetime, zone: str) -> int:
    """The first minute, walking up from a day before, at which the zone's clock shows ``clock`` or later."""
    minute = int(clock.replace(tzinfo=UTC).timestamp()) - 27 * 3600
    while datetime.fromtimestamp(minute, ZoneInfo(zone)).replace(tzinfo=None) < clock:
        minute += 60
    return minute


@settings(max_examples=60, deadline=None)
@given(
    unit=st.sampled_from("dwMQY"),
    count=st.integers(1, 3),
    start=st.datetimes(datetime(2003, 1, 1), datetime(2028, 12, 31)),
    # Close to where clocks change in one of the zones, and anywhere.
    day=st.one_of(
        st.sampled_from(
            [date(2024, 3, 31), date(2025, 11, 2), date(2026, 4, 5), date(2011, 12, 30), date(2024, 2, 29)]
        ),
        st.dates(date(2005, 1, 1), date(2030, 12, 31)),
    ),
    second=st.integers(0, DAY - 1),
    zone=st.sampled_from(ZONES),
)
def test_a_window_is_the_one_that_a_slow_walk_finds(
    unit: str, count: int, start: datetime, day: date, second: int, zone: str
) -> None:
    start = start.replace(second=0, microsecond=0)
    calendar = Calendar(start.isoformat(sep=" "), zone, count, unit)
    instant = datetime.combine(day, datetime.min.time(), UTC).timestamp() + second
    reach = timedelta(days=longest_seconds(calendar) // DAY + 3)
    around = clock_beginnings(calendar, day - reach, day + reach)
    near = [clock for clock in around if abs(clock.date() - day) <= timedelta(days=3)]
    far = [clock for clock in around if clock not in near]
    begins = sorted(
        {walk_to(clock, zone) for clock in near}
        | {walk_to(max((c for c in far if c.date() < day), default=around[0]), zone)}
        | {walk_to(min((c for c in far if c.date() > day), default=around[-1]), zone)}
    )
    window = window_at(calendar, instant)
    assert window.start == max(begin for begin in begins if begin <= instant)
    assert window.end == min(begin for begin in begins if begin > instant)
    assert window.end - window.start <= longest_seconds(calendar)
    assert window_at(calendar, window.start) == window
    assert window_at(calendar, window.end - 1) == window
    before = previous(calendar, window)
    assert (before.end, window_at(calendar, before.start)) == (window.start, before)


@pytest.mark.parametrize(
    ("day", "hours"),
    [("2026-03-29", 23), ("2026-10-25", 25), ("2026-06-01", 24)],
)
def test_a_day_is_as_long_as_it_is_there(day: str, hours: int) -> None:
    calendar = Calendar("2026-01-01 00:00:00", "Europe/Berlin", 1, "d")
    window = window_at(calendar, at(f"{day}T12:00:00", "Europe/Berlin"))
    assert window.end - window.start == hours * 3600
    assert of(window, "Europe/Berlin")[0] == f"{day} 00:00"


def test_a_start_that_is_skipped_is_the_moment_of_the_jump() -> None:
    calendar = Calendar("2026-01-01 02:30:00", "Europe/Berlin", 1, "d")
    window = window_at(calendar, at("2026-03-29T12:00:00", "Europe/Berlin"))
    assert window.start == at("2026-03-29T01:00:00")  # 2:00 becomes 3:00
    assert of(window, "Europe/Berlin") == ("2026-03-29 03:00", "2026-03-30 02:30")


def test_a_start_that_comes_twice_is_the_first_of_the_two() -> None:
    calendar = Calendar("2026-01-01 02:30:00", "Europe/Berlin", 1, "d")
    window = window_at(calendar, at("2026-10-25T12:00:00", "Europe/Berlin"))
    assert window.start == at("2026-10-25T00:30:00")  # still summer time
    assert window.end - window.start == 25 * 3600


def test_a_date_that_a_zone_skipped_has_no_window() -> None:
    calendar = Calendar("2011-12-01 00:00:00", "Pacific/Apia", 1, "d")
    after = window_at(calendar, at("2011-12-31T00:00:00", "Pacific/Apia"))
    assert of(after, "Pacific/Apia") == ("2011-12-31 00:00", "2012-01-01 00:00")
    assert of(previous(calendar, after), "Pacific/Apia")[0] == "2011-12-29 00:00"


def test_months_from_the_31st_begin_on_the_last_day_and_find_back() -> None:
    calendar = Calendar("2024-01-31 00:00:00", "UTC", 1, "M")
    back = windows_back(calendar, at("2024-06-01T00:00:00"))
    assert [of(next(back), "UTC")[0][5:10] for _ in range(6)] == ["05-31", "04-30", "03-31", "02-29", "01-31", "12-31"]


def test_a_year_from_29_february_begins_on_the_28th_in_common_years() -> None:
    calendar = Calendar("2024-02-29 06:00:00", "UTC", 1, "Y")
    assert of(window_at(calendar, at("2026-01-01T00:00:00")), "UTC") == ("2025-02-28 06:00", "2026-02-28 06:00")
    assert of(window_at(calendar, at("2028-02-29T06:00:00")), "UTC") == ("2028-02-29 06:00", "2029-02-28 06:00")


def test_a_quarter_ends_where_its_months_do() -> None:
    calendar = Calendar("2026-01-01 00:00:00", "America/New_York", 1, "Q")
    last = window_at(calendar, at("2026-06-30T23:59:59", "America/New_York"))
    assert of(last, "America/New_York") == ("2026-04-01 00:00", "2026-07-01 00:00")
    assert window_at(calendar, last.end).start == last.end


def test_minutes_and_hours_are_elapsed_time_whatever_clocks_do() -> None:
    calendar = Calendar("2026-03-28 00:00:00", "Europe/Berlin", 24, "h")
    back = windows_back(calendar, at("2026-03-30T12:00:00", "Europe/Berlin"))
    assert [of(next(back), "Europe/Berlin")[0][5:] for _ in range(3)] == ["03-30 01:00", "03-29 00:00", "03-28 00:00"]
    assert longest_seconds(Calendar("2026-01-01 00:00:00", "UTC", 90, "m")) == 5400


def test_windows_go_back_beyond_the_start_which_only_says_where_they_begin() -> None:
    calendar = Calendar("2026-05-04 00:00:00", "UTC", 1, "w")
    assert of(window_at(calendar, at("2026-01-01T00:00:00")), "UTC") == ("2025-12-29 00:00", "2026-01-05 00:00")


@pytest.mark.parametrize(
    ("unit", "zone", "longest"),
    [
        ("d", "UTC", DAY),
        ("d", "Europe/Berlin", 25 * 3600),
        ("M", "UTC", 31 * DAY),
        ("M", "Europe/Berlin", 31 * DAY + 3600),
        ("Y", "Europe/Berlin", 366 * DAY),
    ],
)
def test_the_longest_window_is_what_must_be_kept(unit: str, zone: str, longest: int) -> None:
    assert longest_seconds(Calendar("2026-01-01 00:00:00", zone, 1, unit)) == longest


def test_zones_are_known_where_the_system_has_none() -> None:
    code = (
        "from surefoot.processors.slo.definition import Calendar\n"
        "from surefoot.processors.slo.openslo_documents import CalendarPart\n"
        "from surefoot.processors.slo.periods import window_at\n"
        "CalendarPart.model_validate({'startTime': '2026-01-01 00:00:00', 'timeZone': 'Europe/Berlin'})\n"
        "window = window_at(Calendar('2026-01-01 00:00:00', 'Europe/Berlin', 1, 'd'), 1774782000)\n"
        "print(window.end - window.start)\n"
    )
    bare = {**os.environ, "PYTHONTZPATH": ""}  # zoneinfo then has the package tzdata alone
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=bare, check=False)
    assert (done.stdout, done.stderr) == (f"{23 * 3600}\n", "")
