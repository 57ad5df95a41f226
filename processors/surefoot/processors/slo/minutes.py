"""The counts of an SLO per bucket and stratum: in memory for windows, as rows for the table ``slo_minutes``.

Rule: whole dates are replaced, never added to, so whatever arrived late or was corrected is right once its date was
counted again. The roll-up "" is summed from all strata before they are capped.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from surefoot.processors.lake.schema import SLO_MINUTES
from surefoot.processors.slo.count import CLASSES, views_of
from surefoot.processors.slo.definition import FAST, Slo
from surefoot.processors.slo.report import Counts
from surefoot.processors.slo.windows import DAY

Array = npt.NDArray[np.int64]

ROLL_UP: Final = ""
OTHER: Final = "other"
# Strata with a line of their own. More than this nobody reads, and each is some 60 Prometheus series.
MAX_STRATA: Final = 50

_EPOCH: Final = date(1970, 1, 1)


@dataclass(frozen=True, slots=True)
class Series:
    """Buckets of one stratum in order of time."""

    starts: Array  # unix seconds
    totals: Array  # shape (len(starts) + 1, 4): sums of the four classes before each bucket, and of all

    def between(self, after: float, until: float) -> Counts:
        """Sums over the buckets with after < start <= until."""
        low, high = np.searchsorted(self.starts, (after, until), side="right")
        good, bad, unlabelled, excluded = (self.totals[high] - self.totals[low]).tolist()
        return Counts(good, bad, unlabelled, excluded)


class Minutes:
    """All buckets of one SLO, by date and stratum.

    At most ``MAX_STRATA`` strata have buckets of their own, the rest is ``other``. Which ones: those with the most
    events when the whole past was counted last, then newcomers while there is room. A stratum is therefore always
    either wholly its own or wholly in ``other``.
    """

    def __init__(self, slo: Slo) -> None:
        self._divided = bool(slo.by)
        self._view = views_of(slo)[-1]
        self._days: dict[date, dict[str, Array]] = {}  # arrays of shape (n, 5): start and the four classes
        self._kept: set[str] = set()
        self._series: dict[str, Series] = {}

    def replace(self, dates: Iterable[date], counted: pa.Table, *, whole: bool = False) -> set[date]:
        """Make ``counted`` (see ``count_events``) all there is on ``dates``; returns those that changed.

        ``whole`` says that these dates are all of the past, so the strata are chosen anew.
        """
        days: dict[date, dict[str, Array]] = {day: {} for day in dates}
        for key, buckets in self._by_stratum(counted, whole).items():
            numbers = buckets[:, 0] // DAY
            cuts = np.flatnonzero(numbers[1:] != numbers[:-1]) + 1
            for part in np.split(buckets, cuts):
                days[_EPOCH + timedelta(days=int(part[0, 0] // DAY))][key] = part
        if whole:
            days |= {day: {} for day in self._days.keys() - days.keys()}
        changed = {day for day, strata in days.items() if not _same(self._days.get(day, {}), strata)}
        for day in changed:
            for key in self._days.get(day, {}).keys() | days[day].keys():
                self._series.pop(key, None)
        self._days |= days
        return changed

    def forget_before(self, first: date) -> None:
        """Drop the dates before ``first``."""
        for day in [day for day in self._days if day < first]:
            for key in self._days.pop(day):
                self._series.pop(key, None)

    def strata(self) -> list[str]:
        """Keys with events, the roll-up first and ``other`` last."""
        keys = {key for strata in self._days.values() for key in strata} - {ROLL_UP}
        return [ROLL_UP, *sorted(keys - {OTHER}), *([OTHER] * (OTHER in keys))]

    def series(self, key: str) -> Series:
        """The buckets of a stratum; empty for one without events."""
        if key not in self._series:
            parts = [self._days[day][key] for day in sorted(self._days) if key in self._days[day]]
            buckets = np.concatenate([np.empty((0, 5), np.int64), *parts])
            totals = np.zeros((len(buckets) + 1, 4), np.int64)
            np.cumsum(buckets[:, 1:], axis=0, out=totals[1:])
            self._series[key] = Series(buckets[:, 0].copy(), totals)
        return self._series[key]

    def on(self, day: date) -> dict[str, Array]:
        """The buckets of a date by stratum, shape (n, 5): start and the four classes."""
        return self._days.get(day, {})

    def _by_stratum(self, counted: pa.Table, whole: bool) -> dict[str, Array]:
        counted = counted.filter(pc.equal(counted["view"], self._view))
        if not counted.num_rows:
            return {}
        buckets = np.column_stack([counted[name].to_numpy() for name in ("start", *CLASSES)])
        found = {ROLL_UP: _sum_equal_starts(buckets)}
        if not self._divided:
            return found
        encoded = counted["stratum_key"].combine_chunks().dictionary_encode()
        names, codes = encoded.dictionary.to_pylist(), encoded.indices.to_numpy()
        self._choose(names, np.bincount(codes, buckets[:, 1:].sum(axis=1), len(names)).tolist(), whole)
        order = np.argsort(codes, kind="stable")
        parts = np.split(buckets[order], np.cumsum(np.bincount(codes, minlength=len(names)))[:-1])
        rest = [part for name, part in zip(names, parts, strict=True) if name not in self._kept]
        found |= {name: _sum_equal_starts(part) for name, part in zip(names, parts, strict=True) if name in self._kept}
        if rest:
            found[OTHER] = _sum_equal_starts(np.concatenate(rest))
        return found

    def _choose(self, names: list[str], volumes: list[float], whole: bool) -> None:
        if whole:
            self._kept = set()
        for _, name in sorted((-volume, name) for name, volume in zip(names, volumes, strict=True)):
            if len(self._kept) >= MAX_STRATA:
                return
            self._kept.add(name)


def _sum_equal_starts(buckets: Array) -> Array:
    """One row per start, in order."""
    ordered = buckets[np.argsort(buckets[:, 0], kind="stable")]
    first = np.flatnonzero(np.diff(ordered[:, 0], prepend=-1))
    summed = np.add.reduceat(ordered, first, axis=0)
    summed[:, 0] = ordered[first, 0]
    return summed


def _same(one: dict[str, Array], other: dict[str, Array]) -> bool:
    return one.keys() == other.keys() and all(np.array_equal(buckets, other[key]) for key, buckets in one.items())


def rows(all_minutes: Iterable[tuple[Slo, Minutes]], dates: Iterable[date], now: float) -> pa.Table:
    """Everything that ``slo_minutes`` is to hold of these dates."""
    days = sorted(dates)
    batches = [
        _rows(slo, key, buckets, day)
        for slo, minutes in all_minutes
        for day in days
        for key, buckets in sorted(minutes.on(day).items())
    ]
    table = pa.Table.from_batches(batches, _UNSTAMPED)
    stamp = pa.repeat(pa.scalar(datetime.fromtimestamp(now, UTC), SLO_MINUTES.field("computed_at").type), len(table))
    return table.append_column("computed_at", stamp).select(SLO_MINUTES.names)


_UNSTAMPED: Final = SLO_MINUTES.remove(SLO_MINUTES.get_field_index("computed_at"))


def _rows(slo: Slo, key: str, buckets: Array, day: date) -> pa.RecordBatch:
    columns: dict[str, object] = {
        "slo": pa.repeat(slo.name, len(buckets)),
        "generation": pa.repeat(slo.generation, len(buckets)),
        "view": pa.repeat(FAST, len(buckets)),
        "stratum_key": pa.repeat(key, len(buckets)),
        "minute": pa.array(buckets[:, 0] * 1_000_000, _UNSTAMPED.field("minute").type),
        "date": pa.repeat(pa.scalar(day, pa.date32()), len(buckets)),
    } | {name: pa.array(buckets[:, index]) for index, name in enumerate(CLASSES, start=1)}
    columns |= {f"{name}_micros": pa.array(buckets[:, index] * 1_000_000) for index, name in enumerate(CLASSES[:3], 1)}
    return pa.RecordBatch.from_arrays([columns[name] for name in _UNSTAMPED.names], schema=_UNSTAMPED)
