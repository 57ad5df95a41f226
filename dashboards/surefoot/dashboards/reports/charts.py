"""The report's charts as SVG text."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import altair as alt

from surefoot.dashboards.chart_style import ACCENT, MUTED, SECOND, draw
from surefoot.dashboards.reports.series import CurvePoint, Dumbbell

_PERCENT = alt.Axis(format="%", tickCount=5)


def curve_chart(points: list[CurvePoint], width: int, height: int) -> str:
    """Pass^k with its band, Pass@k, and what equal tasks with independent runs would give; "" for less than two k."""
    if len(points) < 2:
        return ""
    rows = [asdict(point) for point in points]
    lowest = min(min(point.equal, point.every, point.low or point.every) for point in points)
    floor = max(0.0, lowest - 0.1 * (1 - lowest))
    base = alt.Chart(alt.Data(values=rows)).encode(
        x=alt.X("k:O", title="k runs of a task", axis=alt.Axis(labelAngle=0, grid=False))
    )
    scale = alt.Scale(domain=[floor, 1], nice=False)
    band = base.mark_area(color=ACCENT, opacity=0.16).encode(
        y=alt.Y("low:Q", title=None, axis=_PERCENT, scale=scale), y2="high:Q"
    )

    def line(field: str, colour: str, dash: list[int]) -> Any:
        drawn = base.mark_line(color=colour, strokeWidth=1.75, strokeDash=dash)
        return drawn.encode(y=alt.Y(f"{field}:Q", title=None, axis=_PERCENT, scale=scale))

    dots = base.mark_point(color=ACCENT, filled=True, size=34, opacity=1).encode(
        y=alt.Y("every:Q", title=None, axis=_PERCENT, scale=scale)
    )
    lines = line("some", SECOND, [1, 0]) + line("equal", MUTED, [4, 4]) + line("every", ACCENT, [1, 0])
    return draw(band + lines + dots, width, height)


def dumbbell_chart(bells: list[Dumbbell], width: int) -> str:
    """Mean@k against Pass^k by stratum, the distance between them, and their intervals; "" without a defined one."""
    names = [_short(bell.name) for bell in bells]
    rows: list[dict[str, Any]] = []
    for name, bell in zip(names, bells, strict=True):
        for kind, value, low, high, shift in (
            ("mean", bell.mean, bell.mean_low, bell.mean_high, -5),
            ("strict", bell.strict, bell.strict_low, bell.strict_high, 5),
        ):
            if value is not None:
                rows.append({"name": name, "kind": kind, "value": value, "low": low, "high": high, "shift": shift})
    if not rows:
        return ""
    lows = [row["low"] if row["low"] is not None else row["value"] for row in rows]
    scale = alt.Scale(domain=[max(0.0, min(lows) - 0.03), 1], nice=False, clamp=True)
    colours = alt.Scale(domain=["mean", "strict"], range=[SECOND, ACCENT])
    colour = alt.Color("kind:N", scale=colours, legend=None)
    place = alt.Y("name:N", title=None, sort=names, axis=alt.Axis(grid=False, labelLimit=230))
    axis = alt.Axis(format="%", tickCount=5)
    layers = []
    for kind in ("mean", "strict"):
        mine = [row for row in rows if row["kind"] == kind]
        shift = -5 if kind == "mean" else 5
        chart = alt.Chart(alt.Data(values=mine)).encode(y=place, color=colour)
        bars = chart.mark_rule(strokeWidth=2, opacity=0.55, yOffset=shift)
        dots = chart.mark_point(filled=True, size=60, opacity=1, yOffset=shift)
        layers.append(bars.encode(x=alt.X("low:Q", title=None, scale=scale, axis=axis), x2="high:Q"))
        layers.append(dots.encode(x=alt.X("value:Q", title=None, scale=scale, axis=axis)))
    fit = alt.AutoSizeParams(type="fit", contains="padding")
    # On the left: the drawing guesses the widths of letters, and guesses too low for long labels.
    padding = {"left": 18, "right": 8, "top": 2, "bottom": 2}
    return draw(alt.layer(*layers).properties(autosize=fit, padding=padding), width, 34 * len(names) + 34)


def _short(name: str) -> str:
    return name if len(name) <= 34 else f"{name[:33]}…"
