"""The pages' data: what the templates show, taken from the status files and the lake."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass
from typing import Any, Final

import jinja2

from surefoot.dashboards.page import charts, records, text
from surefoot.processors import status
from surefoot.processors.settings import Settings
from surefoot.processors.slo import Slo, load_slos
from surefoot.processors.slo.report import (
    ActionReport,
    SloReport,
    StatusReport,
    StratumReport,
    TierReport,
    WindowReport,
)

STALE_SECONDS: Final = 60.0
_WINDOWS: Final = ("5m", "1h", "6h", "3d")
# The most urgent first.
_STATE_WORDS: Final = {
    "burning_page": "Paging",
    "exhausted": "Budget spent",
    "burning_ticket": "Burning",
    "frozen": "Frozen",
    "no_data": "No data",
    "ok": "OK",
}
_URGENCY: Final = {state: place for place, state in enumerate(_STATE_WORDS)}
_TROUBLED: Final = ("burning_page", "exhausted", "burning_ticket")


@dataclass(frozen=True, slots=True)
class Shown:
    """An SLO with all its views. ``main`` holds the budget, ``paging`` pages; one of them where labels come at once."""

    main: SloReport
    paging: SloReport
    views: list[SloReport]
    state: str  # the most urgent of the views' roll-ups
    actions: list[ActionReport]
    adjustments: list[str]

    @property
    def troubled(self) -> list[StratumReport]:
        """The strata that burn or have no budget left, the most urgent first; each once."""
        found: dict[str, StratumReport] = {}
        for item in (stratum for view in self.views for stratum in view.strata[1:]):
            worse = item.key not in found or _URGENCY[item.state] < _URGENCY[found[item.key].state]
            if item.state in _TROUBLED and worse:
                found[item.key] = item
        return sorted(found.values(), key=lambda item: _URGENCY[item.state])


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
        filters = (
            text.percent,
            text.objective,
            text.number,
            text.compact,
            text.duration,
            text.ago,
            text.clock,
            text.moment,
        )
        self._templates.filters.update({function.__name__: function for function in filters})
        self._templates.globals.update(
            state_words=_STATE_WORDS, windows=_WINDOWS, window=_window, burning=_burning, bar=_bar, tiers=_tiers
        )

    def overview(self) -> str:
        """The page at ``/``: the most urgent SLO first."""
        report = self._report()
        slos = sorted(_shown(report), key=_urgency) if report else []
        return self._render(
            "overview.html",
            report=report,
            slos=slos,
            states=Counter(slo.state for slo in slos),
            runs=records.latest_runs(self._settings),
            budget=lambda slo: charts.budget_chart(slo.history, 272, 84),
        )

    def detail(self, name: str) -> str | None:
        """The page of one SLO, or None if there is no such SLO."""
        report = self._report()
        shown = next((slo for slo in _shown(report) if slo.main.slo == name), None) if report else None
        if shown is None or report is None:
            return None
        past = records.past(self._settings, shown.paging, self._definition(shown.main), report.computed_at)
        history = shown.main.history
        return self._render(
            "detail.html",
            report=report,
            shown=shown,
            slo=shown.main,
            total=shown.main.strata[0],
            past=past,
            bad_events_days=records.BAD_EVENTS_DAYS,
            budget=charts.budget_chart(history, 460, 170),
            burn=charts.burn_chart(past.burn, shown.paging.strata[0].tiers, 460, 170),
            events=charts.events_chart(history, 460, 170),
        )

    def _render(self, template: str, **values: Any) -> str:
        now = time.time()
        report: StatusReport | None = values["report"]
        stale = report is not None and now - report.computed_at > STALE_SECONDS
        rendered: str = self._templates.get_template(template).render(
            now=now, stale=stale, processes=self._processes(now), settings=self._settings, **values
        )
        return rendered

    def _report(self) -> StatusReport | None:
        content = status.read(self._settings.status_path, "slo")
        return None if content is None else StatusReport.from_json(content)

    def _definition(self, slo: SloReport) -> Slo | None:
        """The definition that the report was made from; None if the file has changed since."""
        found = load_slos(self._settings.slos_path).slos
        return next((item for item in found if (item.name, item.generation) == (slo.slo, slo.generation)), None)

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
        return Process("collector", "bad", f"silent for {_since(content['at'], now)}")
    if content["state"] != "ok":
        return Process("collector", "bad", f"asks senders to come again: {content['reason']}")
    accepted = sum(c["total"] for c in content["counts"] if c["name"] == "accepted_items" and c["signal"] == "traces")
    waiting = f", {content['backlog_bytes']:,} bytes wait" if content["backlog_bytes"] else ""
    return Process("collector", "ok", f"{accepted:,} spans accepted{waiting}")


def _writer(content: dict[str, Any] | None, now: float) -> Process:
    if content is None:
        return Process("writer", "warn", "has said nothing yet")
    if now - content["at"] > STALE_SECONDS:
        return Process("writer", "bad", f"silent for {_since(content['at'], now)}")
    if content["state"] != "ok":
        return Process("writer", "bad", f"waits: {content['reason']}")
    if content["quarantined"]:
        return Process("writer", "bad", f"{len(content['quarantined'])} files in quarantine")
    return Process("writer", "ok", f"{content['totals'].get('spans', 0):,} spans in the tables")


def _jobs(content: dict[str, Any] | None, now: float) -> Process:
    if content is None:
        return Process("jobs", "warn", "has said nothing yet")
    if now - content["cycle_at"] > STALE_SECONDS:
        return Process("jobs", "bad", f"no cycle for {_since(content['cycle_at'], now)}")
    return Process("jobs", "ok", f"a cycle takes {content['cycle_seconds']:.1f} s")


def _since(at: float, now: float) -> str:
    return text.duration((now - at) * 1e9)


def _window(stratum: StratumReport, name: str) -> WindowReport | None:
    return next((item for item in stratum.windows if item.window == name), None)


def _burning(stratum: StratumReport) -> dict[str, str]:
    """The windows that burn, each with the more urgent of the severities of its tiers."""
    found: dict[str, str] = {}
    for tier in reversed(stratum.tiers):  # slowest first, so that a page overwrites a ticket
        if tier.burning:
            found |= {tier.long_window: tier.severity, tier.short_window: tier.severity}
    return found


def _bar(ratio: float | None) -> float:
    """Length of the budget bar in per cent of its box."""
    return 0.0 if ratio is None else min(100.0, 100 * abs(ratio))


def _tiers(view: SloReport, stratum: StratumReport) -> list[TierReport]:
    """The tiers that alert from this view."""
    return [tier for tier in stratum.tiers if tier.severity in view.severities]


def _shown(report: StatusReport) -> list[Shown]:
    """The SLOs, each once."""
    by_name: dict[str, list[SloReport]] = {}
    for slo in report.slos:
        by_name.setdefault(slo.slo, []).append(slo)
    return [_one_shown(views) for views in by_name.values()]


def _one_shown(views: list[SloReport]) -> Shown:
    def with_severity(name: str) -> SloReport:
        return next((view for view in views if name in view.severities), views[-1])

    return Shown(
        main=with_severity("ticket"),
        paging=with_severity("page"),
        views=views,
        state=min((view.strata[0].state for view in views), key=_URGENCY.__getitem__),
        actions=list(dict.fromkeys(action for view in views for action in view.actions)),
        adjustments=list(dict.fromkeys(text for view in views for text in view.adjustments)),
    )


def _urgency(slo: Shown) -> tuple[int, int]:
    """Place in the list: by the most urgent of roll-ups and strata, then by the roll-ups."""
    own = _URGENCY[slo.state]
    return min([own, *(_URGENCY[item.state] for item in slo.troubled)]), own
