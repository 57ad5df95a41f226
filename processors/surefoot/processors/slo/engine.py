"""Judge all SLOs, step by step: count what changed, keep the counts, report.

Contract: after :meth:`SloEngine.step` the table ``slo_minutes`` holds, of every date that any SLO's period reaches, the
counts of the SLOs as they are defined now, and the report is a function of those counts and of ``now``. A step costs
what changed: its dates are counted again, everything else is in memory. The first step counts everything, so nothing
needs to be remembered across a restart.
"""

from __future__ import annotations

import contextlib
import logging
import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Final

from surefoot.processors.lake import Lake, replace_dates
from surefoot.processors.settings import Settings
from surefoot.processors.slo.count import count_events
from surefoot.processors.slo.definition import Slo
from surefoot.processors.slo.judge import judge
from surefoot.processors.slo.load import Loaded, load_slos, slo_files
from surefoot.processors.slo.minutes import OTHER, Minutes, rows
from surefoot.processors.slo.report import StatusReport
from surefoot.processors.slo.windows import DAY, bucket_seconds, window_seconds

log = logging.getLogger("surefoot.slo")

TABLE: Final = "slo_minutes"
APPLICATION: Final = "slo"


@dataclass(slots=True)
class _Judged:
    """An SLO and its counts; ``chosen_on`` is the date on which its strata were chosen, None before the first count."""

    slo: Slo
    minutes: Minutes
    chosen_on: date | None = None


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
        self._bucket = bucket_seconds(settings.window_scale)
        self._con = lake.connect()
        self._files = _Files()
        self._judged: dict[str, _Judged] = {}
        self._horizon = 0  # days that are kept in memory
        self._today: date | None = None
        self._written = False  # whether this engine has put its own rows into the table

    def step(self, now: float, dirty_dates: Iterable[date]) -> StatusReport:
        """Count the ``dirty_dates`` again, those on which an event or a verdict on it changed, and judge at ``now``.

        Files that changed since the last step are read again; an SLO with another definition is counted whole.
        """
        today = datetime.fromtimestamp(now, UTC).date()
        redefined = self._reload()
        past = [today - timedelta(days=back) for back in range(self._horizon + 1)]
        dirty = set(dirty_dates)
        if today != self._today:
            dirty.add(today)  # runs of a sender whose clock is ahead may wait there
            self._today = today
        changed = self._count(dirty, past, today)
        if redefined or not self._written:
            changed |= set(past)
        if changed:
            self._write(changed, now)
        for judged in self._judged.values():
            judged.minutes.forget_before(past[-1])
        scale = self._settings.window_scale
        reports = [judge(judged.slo, judged.minutes, now, scale) for judged in self._judged.values()]
        return StatusReport(now, reports, [str(problem) for problem in self._files.loaded.problems])

    def _reload(self) -> bool:
        """Read the files if any changed; True if the counts of any SLO are others now."""
        stamps = _stamps(self._settings.slos_path)
        if stamps == self._files.stamps:
            return False
        loaded = load_slos(self._settings.slos_path)
        self._files = _Files(stamps, loaded)
        for problem in loaded.problems:
            log.warning("%s", problem)
        before = self._judged
        scale = self._settings.window_scale
        horizon = max((math.ceil(window_seconds(slo.period_seconds, scale) / DAY) for slo in loaded.slos), default=0)
        self._judged = {}
        for slo in loaded.slos:
            known = before.get(slo.name)
            if known is not None and known.slo.generation == slo.generation and horizon <= self._horizon:
                self._judged[slo.name] = _Judged(slo, known.minutes, known.chosen_on)
            else:
                self._judged[slo.name] = _Judged(slo, Minutes(slo))
        self._horizon = horizon
        return {(name, judged.slo.generation) for name, judged in before.items()} != {
            (name, judged.slo.generation) for name, judged in self._judged.items()
        }

    def _count(self, dirty: set[date], past: list[date], today: date) -> set[date]:
        """Bring the counts up to date; returns the dates on which any changed."""
        if not self._judged:
            return set()
        changed: set[date] = set()
        self._lake.refresh(self._con)
        for judged in self._judged.values():
            # Beyond the cap the choice of strata follows the traffic, once a day.
            crowded = OTHER in judged.minutes.strata()
            whole = judged.chosen_on is None or (crowded and judged.chosen_on != today)
            dates = dirty | set(past) if whole else dirty
            if not dates:
                continue
            counted = count_events(self._con, judged.slo, dates, self._bucket, self._settings.lookback_days)
            changed |= judged.minutes.replace(dates, counted, whole=whole)
            changed |= dates - set(past)  # not in memory, so only the table knows what they held
            if whole:
                judged.chosen_on = today
        return changed

    def _write(self, dates: set[date], now: float) -> None:
        version = (self._lake.transaction_version(TABLE, APPLICATION) or 0) + 1
        table = rows(((judged.slo, judged.minutes) for judged in self._judged.values()), dates, now)
        replace_dates(self._lake, TABLE, dates, table, APPLICATION, version)
        self._written = True


def _stamps(folder: Path) -> dict[Path, tuple[int, int]]:
    """What tells that a file changed: time and size."""
    found = {}
    for file in slo_files(folder):
        with contextlib.suppress(FileNotFoundError):  # removed since it was listed
            stat = file.stat()
            found[file] = (stat.st_mtime_ns, stat.st_size)
    return found
