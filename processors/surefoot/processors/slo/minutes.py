"""The counts of an SLO per bucket, view and stratum: in memory for windows, as rows for the table ``slo_minutes``.

Rule: whole dates or hours are replaced, never added to, so whatever arrived late or was corrected is right once its
time was counted again. The roll-up "" is summed from all strata before they are capped. Planned exclusions (budget
adjustments) are taken out here, so that memory, table and report agree.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from surefoot.processors.lake.schema import SLO_MINUTES
from surefoot.processors.slo.adjustments import BudgetAdjustment, exclusions
from surefoot.processors.slo.count import views_of
from surefoot.processors.slo.cube import CLASSES, WEIGHED
from surefoot.processors.slo.definition import FAST, Slo
from surefoot.processors.slo.series import HOUR, Series
from surefoot.processors.slo.slices import slice_length
from surefoot.processors.slo.track import EventDay, Floats, Ints
from surefoot.processors.slo.windows import DAY

ROLL_UP: Final = ""
OTHER: Final = "other"
# Strata with a line of their own. More than this nobody reads, and each is some 60 Prometheus series.
MAX_STRATA: Final = 50

_EPOCH: Final = date(1970, 1, 1)


class Buckets(NamedTuple):
    """Buckets in order of time."""

    starts: Ints
    counts: Ints  # (n, 4): the classes
    micros: Ints  # (n, 3): sums of weights in millionths
    squares: Floats  # (n)

    def of(self, chosen: slice | npt.NDArray[np.bool_] | npt.NDArray[np.intp]) -> Buckets:
        """Some of them."""
        return Buckets(self.starts[chosen], self.counts[chosen], self.micros[chosen], self.squares[chosen])


class Minutes:
    """All buckets of one SLO.

    At most ``MAX_STRATA`` strata have buckets of their own, the rest is ``other``. Which ones: after the whole past was
    counted (:meth:`choose`) those with the most events, then newcomers while there is room. A stratum is therefore
    always either wholly its own or wholly in ``other``.
    """

    def __init__(self, slo: Slo, scale: float = 1.0) -> None:
        self._slo = slo
        self._slice_length = slice_length(slo, scale)
        self._views: dict[str, dict[str, Series]] = {view: {} for view in views_of(slo)}
        self._kept: set[str] = set()
        self._most: int | None = None  # before the choice all strata are kept

    def replace(
        self, dates: Iterable[date], counted: pa.Table, adjustments: Iterable[BudgetAdjustment] = ()
    ) -> set[date]:
        """Make ``counted`` (see ``count_many``) all there is on ``dates``; returns those that changed."""
        days = {number_of(day) for day in dates}
        changed: set[int] = set()
        for view, all_series in self._views.items():
            found = self._by_stratum(_exclude(_of_view(counted, view), self._slo, adjustments))
            for key, buckets in found.items():
                split = _by_day(buckets)
                changed |= self._put(all_series, key, {day: split.get(day) for day in days})
            for key in all_series.keys() - found.keys():
                changed |= self._put(all_series, key, dict.fromkeys(days))
        return {_EPOCH + timedelta(days=day) for day in changed}

    def replace_hours(
        self, hours: Collection[int], counted: pa.Table, adjustments: Iterable[BudgetAdjustment] = ()
    ) -> set[date]:
        """As :meth:`replace`, of these hours since 1970; a bucket lies within one. The rest of their dates stays."""
        dirty: dict[int, list[int]] = {}
        for hour in hours:
            dirty.setdefault(hour // 24, []).append(hour % 24)
        changed: set[int] = set()
        for view, all_series in self._views.items():
            found = self._by_stratum(_exclude(_of_view(counted, view), self._slo, adjustments))
            for key in all_series.keys() | found.keys():
                split = _split(found[key]) if key in found else {}
                known = all_series[key].days if key in all_series else {}
                days = {day: _patched(known.get(day), split.get(day), within) for day, within in dirty.items()}
                changed |= self._put(all_series, key, days)
        return {_EPOCH + timedelta(days=day) for day in changed}

    def choose(self) -> None:
        """The past is counted: strata beyond ``MAX_STRATA`` become ``other``, from now on those without room, too."""
        self._most = MAX_STRATA
        volumes = Counter({key: series.volume for key, series in self._views[FAST].items() if key != ROLL_UP})
        most = sorted(volumes, key=lambda key: (-volumes[key], key))[:MAX_STRATA]
        self._kept = set(most)
        for all_series in self._views.values():
            rest = [all_series.pop(key) for key in all_series.keys() - self._kept - {ROLL_UP}]
            days = {day for series in rest for day in series.days}
            if days:
                together = {day: _joined([series.days.get(day) for series in rest]) for day in days}
                self._put(all_series, OTHER, together)

    def forget_before(self, first: date) -> None:
        """Drop the dates before ``first``."""
        for all_series in self._views.values():
            for key, series in list(all_series.items()):
                for day in [day for day in series.days if day < number_of(first)]:
                    series.put(day, None)
                if not series.days:
                    del all_series[key]

    def strata(self, view: str = FAST) -> list[str]:
        """Keys with events, the roll-up first and ``other`` last."""
        keys = self._views[view].keys() - {ROLL_UP}
        return [ROLL_UP, *sorted(keys - {OTHER}), *([OTHER] * (OTHER in keys))]

    def series(self, key: str, view: str = FAST) -> Series:
        """The buckets of a stratum; empty for one without events."""
        return self._views[view].get(key) or Series(self._slo, self._slice_length)

    def differs(self, other: Minutes) -> set[date]:
        """The dates on which the two do not hold the same."""
        found: set[date] = set()
        for view in self._views.keys() | other._views.keys():
            mine, theirs = self._views.get(view, {}), other._views.get(view, {})
            for key in mine.keys() | theirs.keys():
                one = mine[key].days if key in mine else {}
                two = theirs[key].days if key in theirs else {}
                days = [day for day in one.keys() | two.keys() if not _same(one.get(day), two.get(day))]
                found.update(_EPOCH + timedelta(days=day) for day in days)
        return found

    def size(self, day: date) -> int:
        """Buckets of the date, of all views and strata: rows of the table."""
        number = number_of(day)
        each = (series.days.get(number) for views in self._views.values() for series in views.values())
        return sum(len(found.starts) for found in each if found is not None)

    def on(self, day: date) -> list[tuple[str, str, EventDay]]:
        """View, stratum and buckets of a date."""
        number = number_of(day)
        return [
            (view, key, series.days[number])
            for view, all_series in self._views.items()
            for key, series in sorted(all_series.items())
            if number in series.days
        ]

    def _put(self, all_series: dict[str, Series], key: str, days: Mapping[int, EventDay | None]) -> set[int]:
        series = all_series.get(key)
        if series is None:
            if not any(days.values()):
                return set()
            series = all_series[key] = Series(self._slo, self._slice_length)
        changed = {day for day, buckets in days.items() if series.put(day, buckets)}
        if not series.days:
            del all_series[key]
        return changed

    def _by_stratum(self, counted: pa.Table) -> dict[str, Buckets]:
        if not counted.num_rows:
            return {}
        buckets = Buckets(
            counted["start"].to_numpy(),
            np.column_stack([counted[name].to_numpy() for name in CLASSES]),
            np.column_stack([counted[f"{name}_micros"].to_numpy() for name in WEIGHED]),
            counted["weight_squares"].to_numpy(),
        )
        order = np.argsort(buckets.starts, kind="stable")
        buckets = buckets.of(order)
        found = {ROLL_UP: _summed(buckets)}
        if not self._slo.by:
            return found
        encoded = counted["stratum_key"].combine_chunks().dictionary_encode()
        names, codes = encoded.dictionary.to_pylist(), encoded.indices.to_numpy()[order]
        self._admit(names, np.bincount(codes, buckets.counts.sum(axis=1), len(names)).tolist())
        # The codes of all strata without a line are one.
        lines = [name for name in names if name in self._kept]
        place = {name: number for number, name in enumerate(lines)}
        line = np.array([place.get(name, len(lines)) for name in names], np.int32)[codes]
        chosen = np.argsort(line, kind="stable")
        ends = np.cumsum(np.bincount(line, minlength=len(lines) + 1)).tolist()
        for number, name in enumerate([*lines, OTHER]):
            part = chosen[ends[number - 1] if number else 0 : ends[number]]
            if len(part):
                found[name] = _summed(buckets.of(part)) if name == OTHER else buckets.of(part)
        return found

    def _admit(self, names: Sequence[str], volumes: Sequence[float]) -> None:
        """Newcomers get a line of their own while there is room, those with the most events first."""
        for _, name in sorted((-volume, name) for name, volume in zip(names, volumes, strict=True)):
            if self._most is not None and len(self._kept) >= self._most:
                return
            self._kept.add(name)


def number_of(day: date) -> int:
    """Days since 1970."""
    return (day - _EPOCH).days


def _of_view(counted: pa.Table, view: str) -> pa.Table:
    views = counted["view"].combine_chunks().dictionary_encode()
    if views.dictionary.to_pylist() == [view]:
        return counted
    return counted.filter(pc.equal(counted["view"], view))


def _exclude(counted: pa.Table, slo: Slo, adjustments: Iterable[BudgetAdjustment]) -> pa.Table:
    """Planned exclusions: what was good, bad or unlabelled then is excluded."""
    own = [adjustment for adjustment in adjustments if adjustment.slo == slo.name]
    if not own or not counted.num_rows:
        return counted
    starts = counted["start"].to_numpy()
    keys = counted["stratum_key"].combine_chunks().dictionary_encode()
    hit = np.zeros(len(starts), bool)
    for code, key in enumerate(keys.dictionary.to_pylist()):
        for begin, end in exclusions(own, slo.name, key):
            hit |= (keys.indices.to_numpy() == code) & (starts >= begin) & (starts < end)
    columns = {name: counted[name].to_numpy().copy() for name in counted.column_names if name not in _TEXTS}
    columns["excluded"][hit] += sum(columns[name][hit] for name in WEIGHED)
    for name in columns.keys() - {"start", "excluded"}:
        columns[name][hit] = 0
    for name, values in columns.items():
        counted = counted.set_column(counted.column_names.index(name), name, pa.array(values))
    return counted


_TEXTS: Final = ("view", "stratum_key")


def _summed(buckets: Buckets) -> Buckets:
    """One bucket per start."""
    first = np.flatnonzero(np.diff(buckets.starts, prepend=-1))
    sums = (np.add.reduceat(part, first, axis=0) for part in (buckets.counts, buckets.micros, buckets.squares))
    return Buckets(buckets.starts[first], *sums)


def _split(buckets: Buckets) -> dict[int, Buckets]:
    """By day."""
    numbers = buckets.starts // DAY
    cuts = [0, *(np.flatnonzero(numbers[1:] != numbers[:-1]) + 1).tolist(), len(numbers)]
    return {int(numbers[low]): buckets.of(slice(low, high)) for low, high in pairwise(cuts) if high > low}


def _by_day(buckets: Buckets) -> dict[int, EventDay]:
    return {day: EventDay.of(*found) for day, found in _split(buckets).items()}


def _patched(known: EventDay | None, found: Buckets | None, hours: Sequence[int]) -> EventDay | None:
    """A day with what was found in these hours of it, and what it held outside of them."""
    if known is None:
        return None if found is None else EventDay.of(*found)
    held = Buckets(*known.buckets())
    added = None if found is None else found._replace(starts=found.starts % DAY)
    parts, place = [], 0
    for hour in sorted(hours):
        low, high = held.starts.searchsorted((hour * HOUR, (hour + 1) * HOUR)).tolist()
        parts.append(held.of(slice(place, low)))
        if added is not None:
            parts.append(added.of(slice(*added.starts.searchsorted((hour * HOUR, (hour + 1) * HOUR)).tolist())))
        place = high
    together = Buckets(*map(np.concatenate, zip(*parts, held.of(slice(place, None)), strict=True)))
    return EventDay.of(*together) if len(together.starts) else None


def _joined(days: Sequence[EventDay | None]) -> EventDay:
    parts = [Buckets(*day.buckets()) for day in days if day is not None]
    joined = Buckets(*(np.concatenate(column) for column in zip(*parts, strict=True)))
    return EventDay.of(*_summed(joined.of(np.argsort(joined.starts, kind="stable"))))


def _same(one: EventDay | None, other: EventDay | None) -> bool:
    return one is other if one is None or other is None else one.same(other)


def series_of_rows(slo: Slo | None, found: Mapping[str, npt.NDArray[np.int64]], scale: float) -> Series:
    """The series of rows of ``slo_minutes``: ``start`` (unix seconds), classes and weights, in order of time.

    What the table does not hold, squares of weights, is taken to be the events. Without ``slo`` there are no slices.
    """
    series = Series(slo, None if slo is None else slice_length(slo, scale))
    counts = np.column_stack([found[name] for name in CLASSES])
    micros = np.column_stack([found[f"{name}_micros"] for name in WEIGHED])
    squares = (counts[:, 0] + counts[:, 1]).astype(float)
    for number, day in _by_day(Buckets(found["start"], counts, micros, squares)).items():
        series.put(number, day)
    return series


def rows(all_minutes: Iterable[tuple[Slo, Minutes]], dates: Iterable[date], now: float) -> pa.Table:
    """Everything that ``slo_minutes`` is to hold of these dates."""
    days = sorted(dates)
    batches = [
        _rows(slo, view, key, buckets, day)
        for slo, minutes in all_minutes
        for day in days
        for view, key, buckets in minutes.on(day)
    ]
    table = pa.Table.from_batches(batches, _UNSTAMPED)
    stamp = pa.repeat(pa.scalar(datetime.fromtimestamp(now, UTC), SLO_MINUTES.field("computed_at").type), len(table))
    return table.append_column("computed_at", stamp).select(SLO_MINUTES.names)


_UNSTAMPED: Final = SLO_MINUTES.remove(SLO_MINUTES.get_field_index("computed_at"))


def _rows(slo: Slo, view: str, key: str, day: EventDay, when: date) -> pa.RecordBatch:
    starts, counts, micros, _ = day.buckets()
    count = len(starts)
    columns: dict[str, object] = {
        "slo": pa.repeat(slo.name, count),
        "generation": pa.repeat(slo.generation, count),
        "view": pa.repeat(view, count),
        "stratum_key": pa.repeat(key, count),
        "minute": pa.array((starts + number_of(when) * DAY) * 1_000_000, _UNSTAMPED.field("minute").type),
        "date": pa.repeat(pa.scalar(when, pa.date32()), count),
    } | {name: pa.array(counts[:, place]) for place, name in enumerate(CLASSES)}
    columns |= {f"{name}_micros": pa.array(micros[:, place]) for place, name in enumerate(WEIGHED)}
    return pa.RecordBatch.from_arrays([columns[name] for name in _UNSTAMPED.names], schema=_UNSTAMPED)
