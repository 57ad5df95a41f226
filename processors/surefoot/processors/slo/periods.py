"""Calendar windows: fixed stretches of time that begin at a place on a zone's wall clock.

Contract: pure functions of a :class:`Calendar` and an instant in unix seconds. The windows of a calendar follow each
other without gap or overlap, also backwards from its ``start``, which only says where they begin.

- ``d w M Q Y`` count on the wall clock: a day is from a clock time to the same one on the next date, so it lasts 23, 24
  or 25 hours where clocks change. Months, quarters (3 months) and years are counted from ``start`` itself, never from
  the window before: from the 31st the next ones begin on the last day of shorter months, and on the 31st again
  where there is one. 29 February becomes the 28th in common years.
- ``m h`` are elapsed time since ``start``: an hour is an hour, whatever clocks do.

Rule: a window begins at the first instant at which the zone's clock shows its beginning or something later. So a clock
time that is skipped means the moment of the jump, and one that comes twice means the first of the two.
"""

from __future__ import annotations

import calendar as months
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from itertools import pairwise
from typing import Final
from zoneinfo import ZoneInfo

from surefoot.processors.slo.definition import Calendar

START_FORMAT: Final = "%Y-%m-%d %H:%M:%S"
MONTHS: Final = {"M": 1, "Q": 3, "Y": 12}
_DAYS: Final = {"d": 1, "w": 7}
_SECONDS: Final = {"m": 60, "h": 3600}


@dataclass(frozen=True, slots=True)
class Window:
    """From ``start`` on and before ``end``, in unix seconds."""

    start: int
    end: int


def window_at(calendar: Calendar, instant: float) -> Window:
    """The window that ``instant`` lies in."""
    index = _guess(calendar, instant)
    while _begin(calendar, index) > instant:
        index -= 1
    # Where a zone skipped a whole date, two beginnings are the same moment and the window between them is empty.
    while _begin(calendar, index + 1) <= instant:
        index += 1
    return Window(_begin(calendar, index), _begin(calendar, index + 1))


def previous(calendar: Calendar, window: Window) -> Window:
    """The window before ``window``."""
    return window_at(calendar, window.start - 1)


def windows_back(calendar: Calendar, instant: float) -> Iterator[Window]:
    """The window that ``instant`` lies in, the one before it, and so on without end."""
    window = window_at(calendar, instant)
    while True:
        yield window
        window = previous(calendar, window)


@lru_cache(maxsize=1024)
def longest_seconds(calendar: Calendar) -> int:
    """Length of the longest of its windows in the eight years from its start: what must be kept to fill one."""
    if calendar.unit in _SECONDS:
        return calendar.count * _SECONDS[calendar.unit]
    first = _begin(calendar, 0)
    # Eight years hold leap years and all changes of clocks; at least two windows, were they longer than that.
    count = 2
    while _begin(calendar, count) - first < 8 * 366 * 86_400:
        count *= 2
    starts = [_begin(calendar, index) for index in range(count + 1)]
    return max(after - before for before, after in pairwise(starts))


def _guess(calendar: Calendar, instant: float) -> int:
    """About the index of the window, counted from that of ``start``; not more than a few away."""
    if calendar.unit in _SECONDS:
        return int((instant - _begin(calendar, 0)) // (calendar.count * _SECONDS[calendar.unit]))
    here = datetime.fromtimestamp(instant, ZoneInfo(calendar.zone)).replace(tzinfo=None)
    start = _start(calendar)
    if calendar.unit in _DAYS:
        return (here.date() - start.date()).days // (calendar.count * _DAYS[calendar.unit])
    elapsed = 12 * (here.year - start.year) + here.month - start.month
    return elapsed // (calendar.count * MONTHS[calendar.unit])


@lru_cache(maxsize=65_536)
def _begin(calendar: Calendar, index: int) -> int:
    """When window number ``index`` begins; 0 is the one at ``start``."""
    steps = index * calendar.count
    start = _start(calendar)
    if calendar.unit in _SECONDS:
        return _instant(start, calendar.zone) + steps * _SECONDS[calendar.unit]
    if calendar.unit in _DAYS:
        return _instant(start + timedelta(days=steps * _DAYS[calendar.unit]), calendar.zone)
    year, month = divmod(12 * start.year + start.month - 1 + steps * MONTHS[calendar.unit], 12)
    last = months.monthrange(year, month + 1)[1]
    return _instant(start.replace(year=year, month=month + 1, day=min(start.day, last)), calendar.zone)


@lru_cache(maxsize=1024)
def _start(calendar: Calendar) -> datetime:
    return datetime.strptime(calendar.start, START_FORMAT)  # noqa: DTZ007 - a wall clock's time has no zone yet


def _instant(clock: datetime, zone: str) -> int:
    """The first unix second at which the clock of ``zone`` shows ``clock`` or later."""
    place = ZoneInfo(zone)
    # fold=0 reads the clock with the offset before a change, fold=1 with the one after it.
    first = int(clock.replace(tzinfo=place, fold=0).timestamp())
    if _clock(first, place) == clock:
        return first
    earliest = int(clock.replace(tzinfo=place, fold=1).timestamp())
    candidates = range(earliest, first + 1)
    return candidates[bisect_left(candidates, True, key=lambda second: _clock(second, place) >= clock)]


def _clock(second: int, place: ZoneInfo) -> datetime:
    return datetime.fromtimestamp(second, UTC).astimezone(place).replace(tzinfo=None)
