"""One stratum of an SLO along time: windows, streaks, silences, and what changes only by the hour.

Contract: everything is a function of the buckets and of the times asked for. What costs the whole period (how failures
come together, how long silences are) is of whole hours, and is kept until a bucket before the last whole hour changes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from surefoot.processors.slo.answer import TRAFFIC_SECONDS, Tail, expected_events
from surefoot.processors.slo.definition import Slo
from surefoot.processors.slo.overdispersion import Overdispersion, overdispersion
from surefoot.processors.slo.report import Counts, Mass
from surefoot.processors.slo.slices import SLICE, SliceDay, slices_of
from surefoot.processors.slo.track import MICRO, EventDay, Sums, Track
from surefoot.processors.slo.windows import DAY

HOUR: Final = 3600

# A silence is unusual if it is twice as long as any before, and if at the usual rate it would come by chance with this
# probability.
_SILENCE_RATIO: Final = 2.0
_SILENCE_CHANCE: Final = 1e-4
# To know what is usual takes a weekend, and some events.
_SILENCE_SECONDS: Final = 8 * DAY
_SILENCE_EVENTS: Final = 30


@dataclass(frozen=True, slots=True)
class Amounts:
    """A window: counts of events, and what ratios are made of, in whole parts of ``unit``."""

    counts: Counts
    good: int
    bad: int
    unlabelled: int
    unit: int
    effective_n: float

    @property
    def mass(self) -> Mass | None:
        """None where every event is simply one."""
        if self.unit == 1:
            return None
        return Mass(self.good / self.unit, self.bad / self.unit, self.unlabelled / self.unit, self.effective_n)


@dataclass(frozen=True, slots=True)
class Hourly:
    """What is known of a period in whole hours."""

    dispersion: Overdispersion
    silence_limit: float | None  # seconds


class Series:
    """Buckets of one stratum and view."""

    def __init__(self, slo: Slo | None, slice_length: int | None) -> None:
        self._slo = slo
        self.slice_length = slice_length
        self._events: Track[EventDay] = Track(8)
        self._slices: Track[SliceDay] = Track(3)
        self._hourly: tuple[tuple[float, float, float], Hourly] | None = None

    @property
    def days(self) -> dict[int, EventDay]:
        """Buckets by day since 1970."""
        return self._events.days

    @property
    def volume(self) -> int:
        """Events of all classes."""
        return int(sum(sum(day.total[:4]) for day in self.days.values()))

    def put(self, number: int, day: EventDay | None) -> bool:
        """Make ``day`` all there is on that day; whether that changed anything."""
        before = self.days.get(number)
        if (day is None and before is None) or (day is not None and day.same(before)):
            return False
        if self._hourly is not None:
            limit = self._hourly[0][1] - number * DAY
            known = day or before
            if known is None or not known.same_before(before if day is not None else None, limit):
                self._hourly = None
        self._events.put(number, day)
        if self._slo is not None and self.slice_length is not None:
            self._slices.put(number, None if day is None else slices_of(self._slo, day, self.slice_length))
        return True

    def between(self, after: float, until: float) -> Counts:
        """Events of the buckets with after < start <= until."""
        return _counts(self._events.between(after, until))

    def amounts(self, after: float, until: float, *, whole_slices: bool = False) -> Amounts:
        """What a window that ends at ``until`` holds: buckets by their start, slices by their end.

        ``whole_slices``: none that began at or before ``after``.
        """
        sums = self._events.between(after, until)
        counts = _counts(sums)
        if self.slice_length is not None:
            first_end = after + self.slice_length * whole_slices
            good, bad, unlabelled = map(int, self._slices.between(min(first_end, until), until))
            return Amounts(counts, good, bad, unlabelled, SLICE, (good + bad) / SLICE)
        good, bad, unlabelled = map(int, sums[4:7])
        events = (counts.good, counts.bad, counts.unlabelled)
        labelled = counts.good + counts.bad
        # Weights are all 1 if their sums are the counts and so is the sum of their squares.
        if (good, bad, unlabelled) == tuple(count * MICRO for count in events) and sums[7] == labelled:
            return Amounts(counts, *events, 1, float(labelled))
        return Amounts(counts, good, bad, unlabelled, MICRO, _effective(good + bad, sums[7], labelled))

    def tail(self, until: float, scale: float) -> Tail:
        """The newest events at ``until``."""
        certain = possible = 0
        newest: float | None = None
        open_end = True
        for number, day, place in self._backwards(until):
            sums = day.sums
            if newest is None and (at := _last(sums[:, :3].sum(axis=1), place)):
                newest = number * DAY + int(day.starts[at - 1])
            if open_end:
                clear = _last(sums[:, 0] + sums[:, 2], place)
                certain += int(sums[place, 1] - sums[clear, 1])
                open_end = clear == 0
            clear = _last(sums[:, 0], place)
            possible += int((sums[place, 1:3] - sums[clear, 1:3]).sum())
            if clear:
                break
        expected = expected_events(self.between(until - TRAFFIC_SECONDS * scale, until))
        return Tail(certain, possible, expected, math.inf if newest is None else (until - newest) / scale)

    def last_event(self, until: float) -> float | None:
        """Start of the newest bucket with any event."""
        for number, day, place in self._backwards(until):
            return float(number * DAY + int(day.starts[place - 1]))
        return None

    def hourly(self, after: float, until: float, scale: float) -> Hourly:
        """Of the whole hours of (after, until]."""
        key = (after // HOUR * HOUR + HOUR, until // HOUR * HOUR, scale)
        if self._hourly is None or self._hourly[0] != key:
            self._hourly = key, Hourly(self._dispersion(key[0], key[1]), self._silence(key[0], key[1], scale))
        return self._hourly[1]

    def _backwards(self, until: float) -> Iterator[tuple[int, EventDay, int]]:
        """Days that hold buckets with start <= until, the newest first, each with how many of its buckets do."""
        last = int(until // DAY)
        for number in reversed(self._events.numbers):
            if number <= last:
                day = self.days[number]
                place = day.place(until - number * DAY)
                if place:
                    yield number, day, place

    def _dispersion(self, first: float, last: float) -> Overdispersion:
        hours = []
        for number in self._events.numbers:
            low, high = (min(max(int((edge - number * DAY) // HOUR), 0), 24) for edge in (first, last))
            if low < high:
                hours.append(self.days[number].hours()[low:high])
        if not hours:
            return Overdispersion(None, 0)
        together = np.concatenate(hours)
        return overdispersion(together[:, 0], together[:, 1])

    def _silence(self, first: float, last: float, scale: float) -> float | None:
        """A silence longer than this is unusual; None where too little is known."""
        gap = 0
        begin = end = None
        for number in self._events.numbers:
            day = self.days[number]
            low, high = (int(day.starts.searchsorted(edge - number * DAY)) for edge in (first, last))
            if low >= high:
                continue
            starts = day.starts[low:high]
            whole = high - low == len(day.starts)
            inside = day.longest_gap if whole else int(np.diff(starts).max()) if len(starts) > 1 else 0
            begin = number * DAY + int(starts[0]) if begin is None else begin
            since = number * DAY + int(starts[0]) - end if end is not None else 0
            gap, end = max(gap, inside, since), number * DAY + int(starts[-1])
        if begin is None or end is None or last - begin < _SILENCE_SECONDS * scale:
            return None
        events = sum(self._events.between(first - 0.5, last - 0.5)[:4])
        if events < _SILENCE_EVENTS:
            return None
        return max(_SILENCE_RATIO * gap, -math.log(_SILENCE_CHANCE) * (last - begin) / events)


def _last(running: npt.NDArray[np.integer], place: int) -> int:
    """How many of the first ``place`` buckets end with the last one that adds to the running sum; 0 if none does."""
    return int(running[: place + 1].searchsorted(running[place]))


def _counts(sums: Sums) -> Counts:
    return Counts(*map(int, sums[:4]))


def _effective(micros: int, squares: float, labelled: int) -> float:
    """Kish's effective sample size; between 1 and the number of events, whatever rounding does to a small one."""
    if not labelled:
        return 0.0
    weight = micros / MICRO
    return min(max(weight * weight / squares, 1.0), float(labelled)) if squares > 0 else 1.0
