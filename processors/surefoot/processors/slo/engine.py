"""Judge all SLOs, step by step: count what changed, keep the counts, report.

Contract: the report of :meth:`SloEngine.step` is a function of the lake's rows, of the SLO files and of ``now``. A step
costs what changed: its hours, or dates, are counted again, everything else is in memory (``track``). The first step
counts everything, so nothing needs to be remembered across a restart. The table ``slo_minutes`` holds, of every date
that any SLO's period reaches, the counts of the SLOs as they are defined now; where that is much to write, a minute
late at most.
"""

from __future__ import annotations

import contextlib
import logging
import math
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Final

from surefoot.processors.errors import QueryError
from surefoot.processors.lake import Lake, replace_dates
from surefoot.processors.lake.trace_files import TraceFiles
from surefoot.processors.lake.views import set_files
from surefoot.processors.settings import Settings
from surefoot.processors.slo import policy
from surefoot.processors.slo.adjustments import BudgetAdjustment
from surefoot.processors.slo.answer import TRAFFIC_SECONDS
from surefoot.processors.slo.count import count_custom, count_hours, count_many, touched, views_of
from surefoot.processors.slo.definition import MATURED, Slo
from surefoot.processors.slo.delay import LabelDelay, label_delays
from surefoot.processors.slo.judge import judge, period_bounds
from surefoot.processors.slo.load import Loaded, load_slos, watched_files
from surefoot.processors.slo.minutes import OTHER, Minutes, rows
from surefoot.processors.slo.records import APPLICATION, Records
from surefoot.processors.slo.report import SloReport, StatusReport
from surefoot.processors.slo.series import HOUR
from surefoot.processors.slo.source import Source, verdicts_from
from surefoot.processors.slo.windows import DAY, bucket_seconds, window_seconds

log = logging.getLogger("surefoot.slo")

TABLE: Final = "slo_minutes"
_EPOCH: Final = date(1970, 1, 1)
# Rows that are counted or written at once, so that a whole recount stays in memory: some 0.3 GB.
_MOST_ROWS: Final = 3_000_000
# More rows than this are written once in so many seconds.
_LARGE_ROWS: Final = 200_000
_WRITE_SECONDS: Final = 60.0
# Labels' delays are learnt anew after so many seconds, of one SLO in a step.
_DELAY_SECONDS: Final = 900.0
# A query of one's own that failed, perhaps after a minute of work, is tried again after so many seconds.
_RETRY_SECONDS: Final = 900.0


@dataclass(slots=True)
class _Judged:
    """An SLO and its counts; ``chosen_on`` is the date on which its strata were chosen, None before the first count."""

    slo: Slo
    minutes: Minutes
    chosen_on: date | None = None
    delay: LabelDelay | None = None
    delay_at: float = -math.inf
    waiting: set[date] = field(default_factory=set)  # dates that its own query could not be asked about yet
    failed: str | None = None  # why, in one sentence
    failed_at: float = -math.inf


@dataclass(slots=True)
class _Files:
    """The SLO files as they were read last."""

    stamps: dict[Path, tuple[int, int]] | None = None
    loaded: Loaded = field(default_factory=lambda: Loaded([], [], []))


class SloEngine:
    """The SLOs of ``settings.slos_path`` over the runs of a lake. One per lake, under its lease."""

    def __init__(self, lake: Lake, settings: Settings) -> None:
        self._lake = lake
        self._settings = settings
        self._scale = settings.window_scale
        self._bucket = bucket_seconds(settings.window_scale)
        self._con = lake.connect()
        self._files = _Files()
        self._judged: dict[str, _Judged] = {}
        self._horizon = 0  # days that are kept in memory
        self._today: date | None = None
        self._held_from = date.max  # what is before it was forgotten
        self._records: Records | None = None
        self._pending: set[date] = set()  # dates whose rows in the table are not those in memory
        self._files_of: dict[str, TraceFiles] = {}  # which files of a table are about which runs
        self._written_at: float | None = None  # None: this engine has not put its own rows into the table yet

    def step(self, now: float, dirty_dates: Iterable[date], dirty_hours: Iterable[int] = ()) -> StatusReport:
        """Count again where an event or a verdict on it changed, and judge at ``now``.

        ``dirty_hours`` are since 1970, for whoever knows it so closely: an hour costs an hour, a date a date. SLO
        files that changed since the last step are read again; an SLO with another definition is counted whole.
        """
        today = datetime.fromtimestamp(now, UTC).date()
        dirty = set(dirty_dates)
        redefined = self._reload(dirty, today)
        past = [today - timedelta(days=back) for back in range(self._horizon + 1)]
        dirty.update(day for day in past if day < self._held_from)  # a clock was put back
        self._held_from = past[-1]
        if today != self._today:
            dirty.add(today)  # runs of a sender whose clock is ahead may wait there
            self._today = today
        hours = set(dirty_hours)
        # Part of a date is only counted into what memory holds of the rest; a bucket must not begin in one hour and
        # end in the next.
        dirty.update(day for day in map(_date_of, hours) if day not in past or HOUR % self._bucket)
        self._pending |= self._count(dirty, {hour for hour in hours if _date_of(hour) not in dirty}, past, today, now)
        if redefined or self._written_at is None:
            self._pending |= set(past)
        self._write(now, set(past))
        for judged in self._judged.values():
            judged.minutes.forget_before(past[-1])
        self._learn_delays(now)
        reports = [report for judged in self._judged.values() for report in self._reports(judged, now)]
        return StatusReport(now, self._act(reports, now), self._problems())

    def _problems(self) -> list[str]:
        if self._records is not None and self._records.actions and not self._files.stamps:
            slos = ", ".join(sorted(self._records.actions))
            what = f"no SLO file is there, and actions are in force on {slos}, which stay: the folder may only be away"
            remedy = "put the files back, or, to end the actions, a file that does not ask for them"
            return [f"{self._settings.slos_path}: {what}; {remedy}"]
        return [str(problem) for problem in self._files.loaded.problems]

    def _reports(self, judged: _Judged, now: float) -> Iterator[SloReport]:
        """One of each view."""
        for view in views_of(judged.slo):
            report = judge(judged.slo, judged.minutes, now, self._scale, view, judged.delay, judged.failed)
            after, until = period_bounds(judged.slo, report.evaluated_at or now, self._scale)
            adjusted = [
                adjustment.sentence
                for adjustment in self._files.loaded.adjustments
                if adjustment.slo == judged.slo.name and adjustment.end > after and adjustment.start <= until
            ]
            yield replace(report, adjustments=adjusted)

    def _act(self, reports: list[SloReport], now: float) -> list[SloReport]:
        """The reports with the actions that policies demand; what changed is recorded."""
        policies = self._files.loaded.policies
        if self._records is None:
            self._records = Records(self._lake)
        self._records.define((judged.slo for judged in self._judged.values()), now)
        if not policies and not self._records.actions:
            return reports
        # No file at all: more likely a folder that is away than a last SLO taken back.
        whole = bool(self._files.stamps) and not self._files.loaded.problems
        found = policy.evaluate(policies, reports, self._records.actions, now, files_are_whole=whole)
        self._records.act(found.active, found.changes, now)
        return [replace(report, actions=found.active.get(report.slo, [])) for report in reports]

    def _reload(self, dirty: set[date], today: date) -> bool:
        """Read the files if any changed; True if the counts of any SLO are others now.

        The dates of adjustments that came or went are added to ``dirty``.
        """
        stamps = _stamps(self._settings.slos_path)
        if stamps == self._files.stamps:
            return False
        loaded = load_slos(self._settings.slos_path)
        for problem in loaded.problems:
            log.warning("%s", problem)
        before = self._judged
        horizon = max((self._days(slo) for slo in loaded.slos), default=0)
        for adjustment in set(loaded.adjustments) ^ set(self._files.loaded.adjustments):
            dirty.update(_dates_of(adjustment, today - timedelta(days=horizon), today + timedelta(days=1)))
        self._files = _Files(stamps, loaded)
        self._judged = {}
        for slo in loaded.slos:
            known = before.get(slo.name)
            if known is not None and known.slo.generation == slo.generation and horizon <= self._horizon:
                self._judged[slo.name] = replace(known, slo=slo, delay_at=-math.inf, failed_at=-math.inf)
            else:
                self._judged[slo.name] = _Judged(slo, Minutes(slo, self._scale))
        self._horizon = horizon
        return {(name, judged.slo.generation) for name, judged in before.items()} != {
            (name, judged.slo.generation) for name, judged in self._judged.items()
        }

    def _days(self, slo: Slo) -> int:
        """Days back from now that its windows can reach; those of the matured view end earlier."""
        lag = slo.labels.max_delay_seconds * self._scale if MATURED in views_of(slo) else 0.0
        period = window_seconds(slo.period_seconds, self._scale) if slo.calendar is None else slo.period_seconds
        # Traffic, and whether it is usual, is learnt from days before a short period, too.
        longest = max(period, window_seconds(TRAFFIC_SECONDS, self._scale))
        return math.ceil((longest + lag) / DAY)

    def _count(self, dirty: set[date], hours: set[int], past: list[date], today: date, now: float) -> set[date]:
        """Bring the counts of dates and hours up to date; returns the dates on which any changed."""
        if not self._judged:
            return set()
        every = dirty | set(map(_date_of, hours))
        # Beyond the cap the choice of strata follows the traffic, once a day.
        whole = [
            judged
            for judged in self._judged.values()
            if judged.chosen_on is None or (OTHER in judged.minutes.strata() and judged.chosen_on != today)
        ]
        rest = [judged for judged in self._judged.values() if judged not in whole]
        # An event of several runs can be one of many dates.
        oldest = every | set(past) if whole or any(judged.slo.source.repeated for judged in rest) else every
        if oldest:
            # To plan a query DuckDB opens each file that it is told of.
            self._lake.refresh(self._con, verdicts_from(min(oldest), self._settings.lookback_days))
        changed: set[date] = set()
        shared = [judged for judged in whole if judged.slo.custom_sql is None]
        if shared:
            fresh = {judged.slo.name: Minutes(judged.slo, self._scale) for judged in shared}
            self._fill(fresh, shared, every | set(past))
            for judged in shared:
                changed |= _choose(judged, fresh[judged.slo.name], today)
        shared = [judged for judged in rest if judged.slo.custom_sql is None]
        single = [judged for judged in shared if not judged.slo.source.repeated]
        changed |= self._fill({judged.slo.name: judged.minutes for judged in single}, single, dirty)
        changed |= self._fill_hours(single, hours)
        repeated = [judged for judged in shared if judged.slo.source.repeated]
        if repeated:
            near = touched(repeated[0].slo, every, self._settings.lookback_days)
            dates = dirty | {day for day in near if day >= past[-1]}
            changed |= self._fill({judged.slo.name: judged.minutes for judged in repeated}, repeated, dates)
        for judged in self._judged.values():
            if judged.slo.custom_sql is not None:
                judged.waiting |= every | (set(past) if judged in whole else set())
                changed |= self._ask(judged, judged in whole, today, now)
        return changed | (every - set(past))  # those are not in memory, so only the table knows what they held

    def _ask(self, judged: _Judged, whole: bool, today: date, now: float) -> set[date]:
        """Count an SLO that has a query of its own. That it fails is its own trouble, and it is asked again later."""
        if not judged.waiting or judged.failed_at <= now < judged.failed_at + _RETRY_SECONDS:
            return set()
        try:
            lake, lookback = self._lake.path, self._settings.lookback_days
            counted = count_custom(self._con, lake, judged.slo, judged.waiting, self._bucket, lookback)
        except QueryError as error:
            log.warning("the query of %s: %s", judged.slo.name, error)
            judged.failed, judged.failed_at = f"its query failed, so nothing is known of now: {error}", now
            return set()
        minutes = Minutes(judged.slo, self._scale) if whole else judged.minutes
        changed = minutes.replace(judged.waiting, counted, self._files.loaded.adjustments)
        judged.waiting, judged.failed, judged.failed_at = set(), None, -math.inf
        return _choose(judged, minutes, today) if whole else changed

    def _fill(self, minutes: dict[str, Minutes], judged: list[_Judged], dates: set[date]) -> set[date]:
        """Count these dates into ``minutes``, some at a time; returns those that changed."""
        changed: set[date] = set()
        slos = [item.slo for item in judged]
        waiting = sorted(dates) if slos else []
        size = 1
        while waiting:
            chosen, waiting = waiting[:size], waiting[size:]
            counted = count_many(self._con, slos, chosen, self._bucket, self._settings.lookback_days)
            for name, table in counted.items():
                changed |= minutes[name].replace(chosen, table, self._files.loaded.adjustments)
            most = max(1, sum(table.num_rows for table in counted.values()) // len(chosen))
            size = max(1, min(2 * size, _MOST_ROWS // most))
        return changed

    def _fill_hours(self, judged: list[_Judged], hours: set[int]) -> set[date]:
        """Count these hours anew; returns the dates that changed."""
        changed: set[date] = set()
        if hours and judged:
            slos, lookback = [item.slo for item in judged], self._settings.lookback_days
            counted = count_hours(self._con, slos, hours, self._bucket, lookback, self._narrow)
            for item in judged:
                found = counted[item.slo.name]
                changed |= item.minutes.replace_hours(hours, found, self._files.loaded.adjustments)
        return changed

    @contextlib.contextmanager
    def _narrow(self, name: str, runs: Collection[str], since: date) -> Iterator[None]:
        """See :data:`surefoot.processors.slo.near.Narrow`."""
        table = self._lake.table(name)
        if name not in self._files_of:
            self._files_of[name] = TraceFiles(table, column="run_id")
        files = [file for file in table.files().values() if file.date >= since]
        set_files(self._con, table, [table.path / file.path for file in self._files_of[name].find(runs, files)])
        yield
        set_files(self._con, table, [table.path / file.path for file in files])

    def _learn_delays(self, now: float) -> None:
        """How long labels take, for SLOs whose labels come late: of all that are new, else of the one that waits most.

        Those that share its scan are learnt with it.
        """
        late = [judged for judged in self._judged.values() if MATURED in views_of(judged.slo)]
        due = [judged for judged in late if not judged.delay_at <= now < judged.delay_at + _DELAY_SECONDS * self._scale]
        new = [judged for judged in due if judged.delay_at == -math.inf]
        if due:
            self._lake.refresh(self._con)
        first = min(due, key=lambda judged: judged.delay_at, default=None)
        shared = [judged for judged in late if first and Source.of(judged.slo) == Source.of(first.slo)]
        chosen = {judged.slo.name: judged for judged in new or shared}
        slos = [judged.slo for judged in chosen.values()]
        learnt = label_delays(self._con, slos, now, self._scale, self._settings.lookback_days)
        for name, judged in chosen.items():
            judged.delay, judged.delay_at = learnt[name], now

    def _write(self, now: float, past: set[date]) -> None:
        """Put the pending dates into the table; many rows once in a while, unless memory is about to forget them."""
        all_minutes = [(judged.slo, judged.minutes) for judged in self._judged.values()]
        sizes = {day: sum(minutes.size(day) for _, minutes in all_minutes) for day in sorted(self._pending)}
        waited = self._written_at is None or not 0 <= now - self._written_at < _WRITE_SECONDS
        if not self._pending or (sum(sizes.values()) > _LARGE_ROWS and not waited and self._pending <= past):
            return
        for days in _batches(sizes):
            version = (self._lake.transaction_version(TABLE, APPLICATION) or 0) + 1
            table = rows(all_minutes, days, now)
            replace_dates(self._lake, TABLE, days, table, APPLICATION, version)
        self._pending.clear()
        self._written_at = now


def _date_of(hour: int) -> date:
    return _EPOCH + timedelta(hours=hour)


def _choose(judged: _Judged, fresh: Minutes, today: date) -> set[date]:
    """Take counts of the whole past as they are, with their strata chosen anew; returns the dates that changed."""
    fresh.choose()
    changed = fresh.differs(judged.minutes)
    judged.minutes, judged.chosen_on = fresh, today
    return changed


def _batches(sizes: dict[date, int]) -> Iterator[list[date]]:
    """Dates together, as long as they have few enough rows."""
    days: list[date] = []
    total = 0
    for day, size in sizes.items():
        if days and total + size > _MOST_ROWS:
            yield days
            days, total = [], 0
        days.append(day)
        total += size
    if days:
        yield days


def _dates_of(adjustment: BudgetAdjustment, earliest: date, latest: date) -> set[date]:
    """The dates of a planned exclusion that are in memory."""
    first, last = (datetime.fromtimestamp(at, UTC).date() for at in (adjustment.start, adjustment.end))
    first, last = max(first, earliest), min(last, latest)
    return {first + timedelta(days=day) for day in range((last - first).days + 1)}


def _stamps(folder: Path) -> dict[Path, tuple[int, int]]:
    """What tells that a file changed: time and size."""
    found = {}
    for file in watched_files(folder):
        with contextlib.suppress(FileNotFoundError):  # removed since it was listed
            stat = file.stat()
            found[file] = (stat.st_mtime_ns, stat.st_size)
    return found
