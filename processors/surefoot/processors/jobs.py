"""The jobs process: derive runs, judge SLOs, keep the lake in order, do what commands ask for. Holds the lake's lease.

Each cycle reads the clock once and passes it down. A step that fails ends the process with its traceback; the
supervisor starts it again and every step repeats safely, because progress is kept in the tables themselves. What one
cycle did is published as ``jobs.json``, the SLOs as ``slo.json``.
"""

from __future__ import annotations

import json
import logging
import signal
import sys
import threading
import time
from dataclasses import asdict
from types import FrameType
from typing import Any

from surefoot.errors import SurefootError
from surefoot.processors import status
from surefoot.processors.genai.derive import Deriver
from surefoot.processors.inbox import Inbox
from surefoot.processors.lake import Lake
from surefoot.processors.lake.erase import Sweep
from surefoot.processors.lake.erasures import Erasures
from surefoot.processors.lake.upkeep import TableUpkeep, upkeep
from surefoot.processors.settings import Settings
from surefoot.processors.slo import SloEngine

log = logging.getLogger("surefoot.jobs")

UPKEEP_SECONDS = 60.0


class Jobs:
    """The work of one cycle, and when upkeep is due."""

    def __init__(self, lake: Lake, settings: Settings) -> None:
        self._lake = lake
        self._settings = settings
        self._deriver = Deriver(lake, settings)
        self._engine = SloEngine(lake, settings)
        self._erasures = Erasures(lake.path)
        self._sweep = Sweep(lake, self._erasures)
        self._inbox = Inbox(lake, settings)
        self._upkeep_due = 0.0
        self._last_upkeep: list[dict[str, Any]] = []  # by table: what was compacted, expired and deleted

    def cycle(self, now: float) -> None:
        """Derive what arrived, recompute the SLOs it touches, publish both; upkeep once a minute.

        What was erased goes before anything is derived from it, also when it came back.
        """
        erased_dates = self._inbox.step(now)
        self._sweep.step(now)
        derived = self._deriver.step(now)
        if derived.dirty_hours is None:
            report = self._engine.step(now, derived.dirty_dates | erased_dates)
        else:
            report = self._engine.step(now, erased_dates, derived.dirty_hours)
        folder = self._settings.status_path
        status.publish(folder, "slo", report.to_json())
        status.publish(
            folder,
            "jobs",
            {
                "cycle_at": now,
                "cycle_seconds": time.time() - now,
                "changed_traces": len(derived.changed_traces),
                "counters": [asdict(counter) for counter in self._deriver.counters],
                "unpriced": [asdict(counter) for counter in self._deriver.unpriced],
                "upkeep": self._last_upkeep,
                "erased_again_rows": self._sweep.rows,
            },
        )
        if not self._upkeep_due - UPKEEP_SECONDS <= now < self._upkeep_due:  # a clock may be put back, too
            self._last_upkeep = [asdict(done) for done in self._upkeep(now)]
            self._upkeep_due = now + UPKEEP_SECONDS

    def _upkeep(self, now: float) -> list[TableUpkeep]:
        return upkeep(self._lake, self._settings, now, erased_at=self._erasures.erased_at)


def main() -> int:
    """Run cycles until SIGTERM; returns the exit code."""
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="surefoot jobs: %(levelname)s %(message)s")
    stop = threading.Event()

    def request_stop(_number: int, _frame: FrameType | None) -> None:
        stop.set()

    signal.signal(signal.SIGTERM, request_stop)
    signal.signal(signal.SIGINT, request_stop)
    settings = Settings()
    try:
        lake = Lake.open(settings.lake_path)
        with lake.lease("jobs"):
            jobs = Jobs(lake, settings)
            print(json.dumps({"ready": True}), flush=True)  # noqa: T201 - the ready line
            while not stop.is_set():
                jobs.cycle(time.time())
                stop.wait(settings.jobs_interval_seconds)
    except SurefootError as error:
        log.error("%s", error)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
