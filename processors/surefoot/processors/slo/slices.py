"""Time slices: a day's buckets as slices of equal length, each of which counts the same, however many events it holds.

``Timeslices``: a slice is good if its share of good events is at least the slice target, else bad. While labels are
missing it is good or bad only if no missing label could change that; else it is unlabelled. ``RatioTimeslices``: a
slice is as good as its share of good events, and as unlabelled as its share of unlabelled ones. So the bounds of an
error ratio over slices are true bounds: the missing labels all good, or all bad.

Rules: a slice without events is neither good nor bad: no traffic is no outage. A slice counts once it is over, since
the first event of one that is filling would decide it; it lies at its end. Late labels decide it anew. Slices start
anew at midnight UTC, like buckets.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Final

import numpy as np
import numpy.typing as npt

from surefoot.processors.slo.definition import OCCURRENCES, TIMESLICES, Slo
from surefoot.processors.slo.track import EventDay, Ints, Sums
from surefoot.processors.slo.windows import DAY, bucket_seconds

# A slice in whole parts, so that sums of shares are exact.
SLICE: Final = 1_000_000_000


@dataclass(frozen=True, slots=True, eq=False)
class SliceDay:
    """The slices of one day that hold good, bad or unlabelled events; in parts of ``SLICE``."""

    ends: npt.NDArray[np.int32]  # second of the day, above 0; at most a whole day
    sums: Ints  # (n + 1, 3): good, bad, unlabelled before each slice, and of all
    total: Sums

    def upto(self, second: float) -> Sums:
        """Sums of the slices that end at or before this second of the day."""
        return tuple(self.sums[int(self.ends.searchsorted(second, side="right"))].tolist())


def slice_length(slo: Slo, scale: float) -> int | None:
    """Seconds of its slices, whole buckets; None of an SLO that counts events."""
    if slo.budgeting == OCCURRENCES or slo.slice_seconds is None:
        return None
    bucket = bucket_seconds(scale)
    return max(1, round(slo.slice_seconds * scale / bucket)) * bucket


def slices_of(slo: Slo, day: EventDay, length: int) -> SliceDay | None:
    """The day's slices of ``length`` seconds; None if none holds an event that counts."""
    starts, counts, micros, _ = day.buckets()
    counted = counts[:, :3].sum(axis=1) > 0
    starts, micros = starts[counted] // length, micros[counted]
    if not len(starts):
        return None
    first = np.flatnonzero(np.diff(starts, prepend=-1))
    amounts = np.add.reduceat(micros, first, axis=0)
    known = amounts.sum(axis=1) > 0  # weights so small that they are 0 in millionths say nothing
    parts = _by_target(amounts[known], slo) if slo.budgeting == TIMESLICES else _by_share(amounts[known])
    sums = np.zeros((len(parts) + 1, 3), np.int64)
    np.cumsum(parts, axis=0, out=sums[1:])
    ends = np.minimum((starts[first][known] + 1) * length, DAY).astype(np.int32)
    return SliceDay(ends, sums, tuple(sums[-1].tolist()))


def _by_target(amounts: Ints, slo: Slo) -> Ints:
    target, whole = Decimal(repr(slo.slice_target)).as_integer_ratio()
    parts = np.zeros_like(amounts)
    for place, (good, bad, unlabelled) in enumerate(amounts.tolist()):  # whole numbers of any size, as Python has them
        total = good + bad + unlabelled
        at_worst, at_best = (part * whole >= target * total for part in (good, good + unlabelled))
        parts[place, 0 if at_worst else 2 if at_best else 1] = SLICE
    return parts


def _by_share(amounts: Ints) -> Ints:
    totals = amounts.sum(axis=1, dtype=float)
    parts = np.zeros_like(amounts)
    parts[:, 1:] = np.rint(amounts[:, 1:] / totals[:, None] * SLICE)
    parts[:, 0] = np.maximum(SLICE - parts[:, 1] - parts[:, 2], 0)
    return parts
