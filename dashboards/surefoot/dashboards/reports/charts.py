"""The report's charts as SVG text."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any, Final

import altair as alt

from surefoot.dashboards.chart_style import ACCENT, MUTED, SECOND, draw
from surefoot.dashboards.reports.series import CurvePoint, Dumbbell

_LONGEST: Final = 31  # letters of a label
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
    """Mean@k against Pass^k by stratum, with their intervals; "" without a defined one."""
    ends = {
        "mean": (SECOND, -5, [(bell.mean, bell.mean_low, bell.mean_high) for bell in bells]),
        "strict": (ACCENT, 5, [(bell.strict, bell.strict_low, bell.strict_high) for bell in bells]),
    }
    lows = [low if low is not None else value for _, _, found in ends.values() for value, low, _ in found]
    known = [low for low in lows if low is not None]
    if not known:
        return ""
    scale = alt.Scale(domain=[max(0.0, min(known) - 0.03), 1], nice=False, clamp=True)
    axis = alt.Axis(format="%", tickCount=5)
    # Rows are numbered and named by the axis: two strata whose shortened names are alike stay two rows.
    names = f"{json.dumps([_short(bell.name) for bell in bells])}[datum.value]"
    labels = alt.Axis(grid=False, labelLimit=230, labelExpr=names)
    place = alt.Y("row:O", title=None, axis=labels, scale=alt.Scale(domain=list(range(len(bells)))))
    layers = []
    for colour, shift, found in ends.values():
        rows = [
            {"row": row, "value": value, "low": low, "high": high}
            for row, (value, low, high) in enumerate(found)
            if value is not None
        ]
        chart = alt.Chart(alt.Data(values=rows)).encode(y=place)
        bars = chart.mark_rule(color=colour, strokeWidth=2, opacity=0.55, yOffset=shift)
        dots = chart.mark_point(color=colour, filled=True, size=60, opacity=1, yOffset=shift)
        layers.append(bars.encode(x=alt.X("low:Q", title=None, scale=scale, axis=axis), x2="high:Q"))
        layers.append(dots.encode(x=alt.X("value:Q", title=None, scale=scale, axis=axis)))
    fit = alt.AutoSizeParams(type="fit", contains="padding")
    # On the left: the drawing guesses the widths of letters, and guesses too low for long labels.
    padding = {"left": 26, "right": 8, "top": 2, "bottom": 2}
    return draw(alt.layer(*layers).properties(autosize=fit, padding=padding), width, 34 * len(bells) + 34)


def _short(name: str) -> str:
    """The middle of a long name is what goes: strata often differ at its end."""
    return name if len(name) <= _LONGEST else f"{name[: _LONGEST - 15]}…{name[-14:]}"
