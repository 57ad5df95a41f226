"""The pages' data: what the templates show, taken from the status files and the lake."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

import jinja2

from surefoot.dashboards.page import charts
from surefoot.errors import SurefootError
from surefoot.processors import status
from surefoot.processors.lake.console import query
from surefoot.processors.settings import Settings
from surefoot.processors.slo.report import SloReport, StatusReport, StratumReport

STALE_SECONDS: Final = 60.0
_WINDOWS: Final = ("5m", "1h", "6h", "3d")
_STATE_WORDS: Final = {
    "ok": "OK",
    "no_data": "No data",
    "burning_ticket": "Burning",
    "burning_page": "Paging",
    "exhausted": "Budget spent",
}
_RUNS: Final = """
SELECT run_id, trace_id, agent_name, task_class, outcome, error_type, started_at, ended_at, duration_ns, tool_calls,
       tool_errors, input_tokens, output_tokens
FROM runs WHERE parent_run_id IS NULL
"""
_LATEST: Final = _RUNS + " ORDER BY started_at DESC LIMIT 12"
_FAILED: Final = _RUNS + " AND outcome IN ('error', 'abandoned') ORDER BY started_at DESC LIMIT 12"


@dataclass(frozen=True, slots=True)
class Process:
    """One process as the page shows it."""

    name: str
    state: str  # ok warn bad
    text: str


class Pages:
    """Renders pages from what is there now."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._templates = jinja2.Environment(
            loader=jinja2.PackageLoader("surefoot.dashboards.page"),
            autoescape=True,
            trim_blocks=True,
            lstrip_blocks=True,
            undefined=jinja2.StrictUndefined,
        )
        self._templates.filters.update(percent=percent, number=number, duration=duration, ago=ago, clock=clock)
        self._templates.globals.update(state_words=_STATE_WORDS, windows=_WINDOWS, **_helpers())

    def overview(self) -> str:
        """The page at ``/``."""
        report = self._report()
        latest, trouble = self._rows(_LATEST)
        failed, _ = self._rows(_FAILED)
        return self._render(
            "overview.html",
            report=report,
            latest=latest,
            failed=failed,
            trouble=trouble,
            budget=lambda slo: charts.budget_chart(slo.history, 300, 84),
        )

    def detail(self, name: str) -> str | None:
        """The page of one SLO, or None if there is no such SLO."""
        report = self._report()
        slo = next((slo for slo in report.slos if slo.slo == name), None) if report else None
        if slo is None or report is None:
            return None
        return self._render(
            "detail.html",
            report=report,
            slo=slo,
            total=slo.strata[0],
            budget=charts.budget_chart(slo.history, 1000, 200),
            events=charts.events_chart(slo.history, 1000, 140),
        )

    def _render(self, template: str, **values: Any) -> str:
        now = time.time()
        report: StatusReport | None = values["report"]
        stale = report is not None and now - report.computed_at > STALE_SECONDS
        text: str = self._templates.get_template(template).render(
            now=now, stale=stale, processes=self._processes(now), settings=self._settings, **values
        )
        return text

    def _report(self) -> StatusReport | None:
        content = status.read(self._settings.status_path, "slo")
        return None if content is None else StatusReport.from_json(content)

    def _rows(self, sql: str) -> tuple[list[dict[str, Any]], str | None]:
        """Rows of the lake, or why there are none: a page without a lake is a page for newcomers."""
        try:
            result = query(self._settings.lake_path, sql)
        except SurefootError as error:
            return [], str(error)
        return [dict(zip(result.columns, row, strict=True)) for row in result.rows], None

    def _processes(self, now: float) -> list[Process]:
        folder = self._settings.status_path
        return [
            _collector(status.read(folder, "collector"), now),
            _writer(status.read(folder, "writer"), now),
            _jobs(status.read(folder, "jobs"), now),
        ]


def _collector(content: dict[str, Any] | None, now: float) -> Process:
    if content is None:
        return Process("collector", "warn", "has said nothing yet")
    if now - content["at"] > STALE_SECONDS:
        return Process("collector", "bad", f"silent for {duration((now - content['at']) * 1e9)}")
    if content["state"] != "ok":
        return Process("collector", "bad", f"asks senders to come again: {content['reason']}")
    accepted = sum(c["total"] for c in content["counts"] if c["name"] == "accepted_items" and c["signal"] == "traces")
    waiting = f", {content['backlog_bytes']:,} bytes wait" if content["backlog_bytes"] else ""
    return Process("collector", "ok", f"{accepted:,} spans accepted{waiting}")


def _writer(content: dict[str, Any] | None, now: float) -> Process:
    if content is None:
        return Process("writer", "warn", "has said nothing yet")
    if now - content["at"] > STALE_SECONDS:
        return Process("writer", "bad", f"silent for {duration((now - content['at']) * 1e9)}")
    if content["state"] != "ok":
        return Process("writer", "bad", f"waits: {content['reason']}")
    if content["quarantined"]:
        return Process("writer", "bad", f"{len(content['quarantined'])} files in quarantine")
    return Process("writer", "ok", f"{content['totals'].get('spans', 0):,} spans in the tables")


def _jobs(content: dict[str, Any] | None, now: float) -> Process:
    if content is None:
        return Process("jobs", "warn", "has said nothing yet")
    age = now - content["cycle_at"]
    if age > STALE_SECONDS:
        return Process("jobs", "bad", f"no cycle for {duration(age * 1e9)}")
    return Process("jobs", "ok", f"a cycle takes {content['cycle_seconds']:.1f} s")


def _helpers() -> dict[str, Any]:
    def window(stratum: StratumReport, name: str) -> Any:
        return next((item for item in stratum.windows if item.window == name), None)

    def burning(stratum: StratumReport) -> set[str]:
        return {name for tier in stratum.tiers if tier.burning for name in (tier.long_window, tier.short_window)}

    def bar(ratio: float | None) -> float:
        """Length of the budget bar in per cent of its box."""
        return 0.0 if ratio is None else min(100.0, 100 * abs(ratio))

    def worst(slo: SloReport) -> StratumReport | None:
        """The stratum that is worse off than the whole, if there is one."""
        order = ["ok", "no_data", "burning_ticket", "exhausted", "burning_page"]
        others = [item for item in slo.strata[1:] if order.index(item.state) > order.index(slo.strata[0].state)]
        return max(others, key=lambda item: order.index(item.state), default=None)

    return {"window": window, "burning": burning, "bar": bar, "worst": worst}


def percent(ratio: float | None, digits: int = 1) -> str:
    """A ratio as per cent; a dash where it is undefined."""
    return "–" if ratio is None else f"{100 * ratio:.{digits}f} %"


def number(value: float | None, digits: int = 1) -> str:
    """A number; a dash where it is undefined."""
    return "–" if value is None else f"{value:,.{digits}f}"


def duration(nanos: float | None) -> str:
    """Nanoseconds in the unit that people would use."""
    if nanos is None:
        return "–"
    seconds = nanos / 1e9
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min"), (1, "s")):
        if seconds >= size:
            return f"{seconds / size:.1f} {unit}"
    return f"{1000 * seconds:.0f} ms"


def ago(at: float, now: float) -> str:
    """How long ago, in words."""
    return f"{duration(max(0.0, now - at) * 1e9)} ago"


def clock(at: datetime | None) -> str:
    """A time in UTC, to the second."""
    return "–" if at is None else at.astimezone(UTC).strftime("%d %b %H:%M:%S")
