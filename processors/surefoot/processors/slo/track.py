"""Counts along time, so that any window is two look-ups.

A :class:`Track` holds days, and each day its buckets with running sums. ``upto(edge)`` is everything until an edge, so
a window is one ``upto`` less another. Rule: a changed day costs that day. The sums before it stay, those after it are
added up again from the days' totals, never from their buckets. So a cycle that changes today costs today, whatever the
history.

Memory: 20 bytes for each bucket that holds an event, 56 where events have weights other than 1; plus 0.2 kB for each
day.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field
from operator import add, sub
from typing import Final, Generic, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from surefoot.processors.slo.windows import DAY

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Sums = tuple[float, ...]  # whole numbers, but for a sum of squares

MICRO: Final = 1_000_000
_MOST_EDGES: Final = 128
HOURS: Final = np.arange(0, 25 * 3600, 3600)


class Day(Protocol):
    """What a track needs to know of a day."""

    def upto(self, second: float) -> Sums:
        """Sums of what lies at or before this second of the day."""
        ...

    @property
    def total(self) -> Sums:
        """Sums of the whole day."""
        ...


D = TypeVar("D", bound=Day)


class Track(Generic[D]):
    """Days by number since 1970, and sums until any time."""

    def __init__(self, width: int) -> None:
        self._nothing: Sums = (0,) * width
        self.days: dict[int, D] = {}
        self._numbers: list[int] = []
        self._before: list[Sums] = [self._nothing]  # sums of the days before each one, as far as they are known
        self._edges: dict[float, Sums] = {}  # what was asked since the last change: windows share their ends

    def put(self, number: int, day: D | None) -> None:
        """Make ``day`` all there is on that day; None: nothing."""
        place = bisect_left(self._numbers, number)
        if number in self.days:
            if day is None:
                del self.days[number], self._numbers[place]
        elif day is not None:
            self._numbers.insert(place, number)
        if day is not None:
            self.days[number] = day
        del self._before[place + 1 :]
        self._edges.clear()

    @property
    def numbers(self) -> list[int]:
        """The days that hold anything, in order."""
        return self._numbers

    def upto(self, edge: float) -> Sums:
        """Sums of all that lies at or before ``edge`` (unix seconds)."""
        found = self._edges.get(edge)
        if found is None:
            if len(self._edges) >= _MOST_EDGES:
                self._edges.clear()
            found = self._edges[edge] = self._upto(edge)
        return found

    def _upto(self, edge: float) -> Sums:
        number = int(edge // DAY)
        place = bisect_left(self._numbers, number)
        sums = self._sums_before(place)
        if place < len(self._numbers) and self._numbers[place] == number:
            return added(sums, self.days[number].upto(edge - number * DAY))
        return sums

    def between(self, after: float, until: float) -> Sums:
        """Sums of all that lies after ``after`` and at or before ``until``."""
        return less(self.upto(until), self.upto(after))

    def _sums_before(self, place: int) -> Sums:
        while len(self._before) <= place:
            previous = self._numbers[len(self._before) - 1]
            self._before.append(added(self._before[-1], self.days[previous].total))
        return self._before[place]


def added(one: Sums, other: Sums) -> Sums:
    """Element by element."""
    return tuple(map(add, one, other))


def less(one: Sums, other: Sums) -> Sums:
    """``one`` without ``other``."""
    return tuple(map(sub, one, other))


@dataclass(frozen=True, slots=True, eq=False)
class EventDay:
    """The buckets of one day that hold events, in order. Sums: the four classes, three weights, squares of weights."""

    starts: npt.NDArray[np.int32]  # second of the day
    sums: npt.NDArray[np.int32]  # (n + 1, 4): good, bad, unlabelled, excluded before each bucket, and of all
    micros: Ints | None  # (n + 1, 3): sums of weights in millionths; None where every event weighs 1
    squares: Floats | None  # (n + 1): of the weights of good and bad events
    total: Sums
    longest_gap: int  # between two buckets, in seconds
    _hours: list[npt.NDArray[np.int32]] = field(default_factory=list)

    @classmethod
    def of(cls, starts: Ints, counts: Ints, micros: Ints, squares: Floats) -> EventDay:
        """From buckets in order: ``counts`` (n, 4), ``micros`` (n, 3), ``squares`` (n)."""
        sums = np.zeros((len(starts) + 1, 4), np.int32)
        np.cumsum(counts, axis=0, out=sums[1:])
        labelled = counts[:, 0] + counts[:, 1]
        weighed = bool((micros != counts[:, :3] * MICRO).any() or (squares != labelled).any())
        all_micros = all_squares = None
        if weighed:
            all_micros = np.zeros((len(starts) + 1, 3), np.int64)
            np.cumsum(micros, axis=0, out=all_micros[1:])
            all_squares = np.concatenate([[0.0], np.cumsum(squares)])
        seconds = (starts % DAY).astype(np.int32)
        gap = int(np.diff(seconds).max()) if len(seconds) > 1 else 0
        return cls(seconds, sums, all_micros, all_squares, _sums(sums, all_micros, all_squares, -1), gap)

    def upto(self, second: float) -> Sums:
        """See :class:`Day`."""
        return _sums(self.sums, self.micros, self.squares, self.place(second))

    def place(self, second: float) -> int:
        """How many buckets begin at or before this second."""
        return int(self.starts.searchsorted(second, side="right"))

    def buckets(self) -> tuple[Ints, Ints, Ints, Floats]:
        """What :meth:`of` took, with seconds of the day."""
        counts = np.diff(self.sums, axis=0).astype(np.int64)
        micros = counts[:, :3] * MICRO if self.micros is None else np.diff(self.micros, axis=0)
        squares = (counts[:, 0] + counts[:, 1]).astype(float) if self.squares is None else np.diff(self.squares)
        return self.starts.astype(np.int64), counts, micros, squares

    def hours(self) -> npt.NDArray[np.int32]:
        """Good and bad events of each hour, (24, 2)."""
        if not self._hours:
            self._hours.append(np.diff(self.sums[self.starts.searchsorted(HOURS), :2], axis=0))
        return self._hours[0]

    def same_before(self, other: EventDay | None, second: float) -> bool:
        """Whether both hold the same in the buckets that begin before ``second``."""
        if other is None:
            return bool(self.starts.searchsorted(second) == 0)
        mine, theirs = int(self.starts.searchsorted(second)), int(other.starts.searchsorted(second))
        return (
            mine == theirs
            and np.array_equal(self.starts[:mine], other.starts[:mine])
            and np.array_equal(self.sums[: mine + 1], other.sums[: mine + 1])
            and _equal(self.micros, other.micros, mine + 1)
            and _equal(self.squares, other.squares, mine + 1)
        )

    def same(self, other: EventDay | None) -> bool:
        """Whether both hold the same."""
        return self.same_before(other, DAY)


def _sums(sums: npt.NDArray[np.int32], micros: Ints | None, squares: Floats | None, place: int) -> tuple[float, ...]:
    good, bad, unlabelled, excluded = sums[place].tolist()
    if micros is None or squares is None:
        weights = (good * MICRO, bad * MICRO, unlabelled * MICRO, float(good + bad))
    else:
        weights = (*micros[place].tolist(), float(squares[place]))
    return (good, bad, unlabelled, excluded, *weights)


def _equal(one: npt.NDArray[np.generic] | None, other: npt.NDArray[np.generic] | None, count: int) -> bool:
    if one is None or other is None:
        return one is None and other is None
    return np.array_equal(one[:count], other[:count])
