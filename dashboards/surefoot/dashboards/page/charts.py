"""Charts as SVG text, drawn by Vega-Lite through vl-convert; one style for all.

Rendering costs some 50 ms, so charts are cached by their content. Colours are CSS variables of the page and follow its
light or dark scheme.
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any, Final

import altair as alt
import vl_convert

from surefoot.processors.slo.report import BudgetPoint

# Placeholders that stand for CSS variables: Vega-Lite wants colours that it can parse.
_VARIABLES: Final = {
    "#010203": "var(--accent)",
    "#010204": "var(--bad)",
    "#010205": "var(--muted)",
    "#010206": "var(--line)",
    "#010207": "var(--good)",
}
_ACCENT, _BAD, _MUTED, _LINE, _GOOD = _VARIABLES
_FONT: Final = "system-ui, sans-serif"
_CONFIG: Final[dict[str, Any]] = {
    "background": "transparent",
    "font": _FONT,
    "view": {"stroke": None},
    "axis": {
        "domain": False,
        "grid": True,
        "gridColor": _LINE,
        "tickColor": _LINE,
        "labelColor": _MUTED,
        "titleColor": _MUTED,
        "titleFontWeight": "normal",
        "labelFontSize": 11,
        "titleFontSize": 11,
        "ticks": False,
        "labelPadding": 6,
    },
}


def budget_chart(history: list[BudgetPoint], width: int, height: int) -> str:
    """Budget left by day, with the line at which it is spent."""
    rows = [
        {"day": point.date, "left": point.error_budget_remaining_ratio}
        for point in history
        if point.error_budget_remaining_ratio is not None
    ]
    return _drawn("budget", json.dumps(rows), width, height)


def events_chart(history: list[BudgetPoint], width: int, height: int) -> str:
    """Good and bad events by day."""
    rows = [
        {"day": point.date, "outcome": outcome, "events": getattr(point.counts, outcome)}
        for point in history
        for outcome in ("good", "bad")
    ]
    return _drawn("events", json.dumps(rows), width, height)


@lru_cache(maxsize=256)
def _drawn(kind: str, rows: str, width: int, height: int) -> str:
    data = json.loads(rows)
    if not data:
        return ""
    chart = _budget(data) if kind == "budget" else _events(data)
    spec = chart.properties(width=width, height=height).to_dict() | {"config": _CONFIG}
    svg: str = vl_convert.vegalite_to_svg(spec)
    for colour, variable in _VARIABLES.items():
        svg = svg.replace(colour, variable)
    return svg


def _budget(rows: list[dict[str, Any]]) -> Any:
    base = alt.Chart(alt.Data(values=rows)).encode(x=alt.X("day:T", title=None, axis=_days()))
    left = alt.Y("left:Q", title=None, axis=alt.Axis(format="%", tickCount=4), scale=alt.Scale(zero=True))
    area = base.mark_area(color=_ACCENT, opacity=0.12, interpolate="step-after").encode(y=left)
    line = base.mark_line(color=_ACCENT, strokeWidth=1.75, interpolate="step-after").encode(y=left)
    spent = alt.Chart(alt.Data(values=[{"zero": 0}])).mark_rule(color=_BAD, strokeWidth=1).encode(y="zero:Q")
    return area + line + spent


def _events(rows: list[dict[str, Any]]) -> Any:
    colours = alt.Scale(domain=["good", "bad"], range=[_GOOD, _BAD])
    return (
        alt.Chart(alt.Data(values=rows))
        .mark_bar(cornerRadius=1)
        .encode(
            x=alt.X("day:T", timeUnit="yearmonthdate", title=None, axis=_days()),
            y=alt.Y("events:Q", title=None, axis=alt.Axis(tickCount=4)),
            color=alt.Color("outcome:N", scale=colours, legend=None),
            order=alt.Order("outcome:N", sort="ascending"),
        )
    )


def _days() -> Any:
    return alt.Axis(format="%-d %b", tickCount=5, grid=False, labelFlush=True)
