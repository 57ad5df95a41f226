"""The page's charts as SVG text.

Rendering costs some 50 ms, so charts are cached by their content. Every axis of time is in UTC,
whatever the machine's zone.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

import altair as alt

from surefoot.dashboards.chart_style import ACCENT, BAD, GOOD, SECOND, draw
from surefoot.dashboards.page.records import BURN_WINDOWS, BurnPoint
from surefoot.processors.slo.report import BudgetPoint, TierReport

Rows = list[dict[str, Any]]

_UTC: Final = alt.Scale(type="utc")


def budget_chart(history: list[BudgetPoint], width: int, height: int) -> str:
    """Budget left by day, with the line at which it is spent; "" without a defined point."""
    rows = [
        {"day": point.date, "left": point.error_budget_remaining_ratio}
        for point in history
        if point.error_budget_remaining_ratio is not None
    ]
    return _drawn("budget", json.dumps(rows), width, height)


def events_chart(history: list[BudgetPoint], width: int, height: int) -> str:
    """Good and bad events by day; "" without events."""
    rows = [
        {"day": point.date, "outcome": outcome, "events": getattr(point.counts, outcome)}
        for point in history
        for outcome in ("good", "bad")
    ]
    return _drawn("events", json.dumps(rows if any(row["events"] for row in rows) else []), width, height)


def burn_chart(points: list[BurnPoint], tiers: list[TierReport], width: int, height: int) -> str:
    """Burn rate of each window over time, its tier's factor dashed in the same colour; "" without a defined point.

    A gap is where the window had no event.
    """
    if all(point.burn_rate is None for point in points):
        return ""
    rows: Rows = [{"at": 1000 * point.at, "window": point.window, "rate": point.burn_rate} for point in points]
    rows += [{"window": tier.long_window, "factor": tier.factor} for tier in tiers if tier.long_window in BURN_WINDOWS]
    return _drawn("burn", json.dumps(rows), width, height)


@lru_cache(maxsize=256)
def _drawn(kind: str, rows: str, width: int, height: int) -> str:
    data: Rows = json.loads(rows)
    if not data:
        return ""
    return draw(_KINDS[kind](data), width, height)


def _budget(rows: Rows) -> Any:
    base = alt.Chart(alt.Data(values=rows)).encode(x=alt.X("day:T", title=None, scale=_UTC, axis=_days()))
    left = alt.Y("left:Q", title=None, axis=alt.Axis(format="%", tickCount=4), scale=alt.Scale(zero=True))
    area = base.mark_area(color=ACCENT, opacity=0.12, interpolate="step-after").encode(y=left)
    line = base.mark_line(color=ACCENT, strokeWidth=1.75, interpolate="step-after").encode(y=left)
    spent = alt.Chart(alt.Data(values=[{"zero": 0}])).mark_rule(color=BAD, strokeWidth=1).encode(y="zero:Q")
    return area + line + spent


def _events(rows: Rows) -> Any:
    colours = alt.Scale(domain=["good", "bad"], range=[GOOD, BAD])
    return (
        alt.Chart(alt.Data(values=rows))
        .mark_bar(cornerRadius=1)
        .encode(
            x=alt.X("day:T", timeUnit="utcyearmonthdate", title=None, axis=_days()),
            y=alt.Y("events:Q", title=None, axis=alt.Axis(tickCount=4)),
            color=alt.Color("outcome:N", scale=colours, legend=None),
            order=alt.Order("outcome:N", sort="ascending"),
        )
    )


def _burn(rows: Rows) -> Any:
    colours = alt.Scale(domain=list(BURN_WINDOWS), range=[ACCENT, SECOND])
    colour = alt.Color("window:N", scale=colours, legend=None)
    points = [row for row in rows if "at" in row]
    factors = [row for row in rows if "factor" in row]
    hours = alt.Axis(format="%H:%M", tickCount=6, grid=False, labelFlush=True)
    lines = (
        alt.Chart(alt.Data(values=points))
        .mark_line(strokeWidth=1.5)
        .encode(
            x=alt.X("at:T", title=None, scale=_UTC, axis=hours),
            y=alt.Y("rate:Q", title=None, axis=alt.Axis(tickCount=4), scale=alt.Scale(zero=True)),
            color=colour,
        )
    )
    dashed = alt.Chart(alt.Data(values=factors)).mark_rule(strokeWidth=1, strokeDash=[4, 4])
    return lines + dashed.encode(y="factor:Q", color=colour)


def _days() -> Any:
    return alt.Axis(format="%-d %b", tickCount=5, grid=False, labelFlush=True)


_KINDS: Final[dict[str, Callable[[Rows], Any]]] = {"budget": _budget, "events": _events, "burn": _burn}
