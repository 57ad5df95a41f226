"""The tables of docs/slo-statistics.md and its chart, from what slo_statistics.py measured.

Rule: nobody types a figure. Every table stands between two comments that carry its name, and a test compares.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import altair as alt
import vl_convert
from scipy.stats import chi2

Cell = dict[str, Any]

# What was simulated, in words, and the severity that is counted.
FALSE = {
    "alone": ("one stratum", "page"),
    "tickets": ("one stratum, tickets instead of pages", "ticket"),
    "strata": ("5 strata with a fifth of the runs each, and the roll-up", "page"),
    "office": ("one stratum, all runs on weekdays from 9 to 17", "page"),
    "correlated": ("one stratum, failures of an hour correlate by 0.02", "page"),
    "correlated-tickets": ("the same, tickets instead of pages", "ticket"),
    "widened": ("the same failures, with `correlation: 0.02`", "page"),
}


def write_page(folder: Path) -> None:
    """Put the tables into the page and draw the chart."""
    cells: list[Cell] = json.loads((folder / "slo-statistics.json").read_text())
    page = folder / "slo-statistics.md"
    page.write_text(with_tables(page.read_text(), cells))
    (folder / "slo-statistics.svg").write_text(chart(cells))


def with_tables(text: str, cells: list[Cell]) -> str:
    """The page with every table as it follows from the cells."""
    for name, table in tables(cells).items():
        before, opening, rest = text.partition(f"<!-- {name} -->\n")
        old, closing, after = rest.partition("<!-- end -->")
        if not closing or "<!--" in old:
            raise ValueError(f"docs/slo-statistics.md has no place for a table: write <!-- {name} --> and <!-- end -->")
        text = before + opening + table + "\n" + closing + after
    return text


def tables(cells: list[Cell]) -> dict[str, str]:
    """Markdown by name."""
    made = {name: _false(cells, name) for name in FALSE}
    made["worst"] = _worst(cells)
    made["full"] = _matrix(cells, lambda cell: _times(cell["full"]))
    made["half"] = _matrix(cells, lambda cell: _times(cell["half"]))
    made["first"] = _matrix(cells, lambda cell: _of(cell["full"], "page_first"))
    made["first-at-budget"] = _matrix(cells, lambda cell: _of(cell["full_at_budget"], "page_first"))
    made["soon"] = _matrix(cells, lambda cell: _of(cell["full"], "within_72h"))
    return made


def _matrix(cells: list[Cell], show: Callable[[Cell], str]) -> str:
    targets = sorted({cell["target"] for cell in cells})
    traffics = sorted({cell["per_day"] for cell in cells})
    shown = {(cell["target"], cell["per_day"]): show(cell) for cell in cells}
    lines = ["| target | " + " | ".join(f"{traffic:,.0f} a day" for traffic in traffics) + " |"]
    lines.append("|---|" + "---|" * len(traffics))
    for target in targets:
        values = " | ".join(shown.get((target, traffic), "") for traffic in traffics)
        lines.append(f"| {target:g} | {values} |")
    return "\n".join(lines)


def _false(cells: list[Cell], name: str) -> str:
    what, severity = FALSE[name]
    kind = {"tickets": "alone", "correlated-tickets": "correlated"}.get(name, name)
    years = sorted({cell["false"][kind]["years"] for cell in cells})
    said = f"{years[0]}" if len(years) == 1 else f"{years[0]} (where most runs) to {years[-1]}"
    title = f"A year, {what}; {said} simulated years a cell:"
    return title + "\n\n" + _matrix(cells, lambda cell: f"{_rate(cell, kind, severity):.2f}")


def _rate(cell: Cell, kind: str, severity: str) -> float:
    return float(cell["false"][kind][severity] / cell["false"][kind]["years"])


def _worst(cells: list[Cell]) -> str:
    lines = []
    for kind in ("alone", "strata", "office"):
        most = max(cells, key=lambda cell: _rate(cell, kind, "page"))
        found = most["false"][kind]
        pages, years = (sum(cell["false"][kind][part] for cell in cells) for part in ("page", "years"))
        lines.append(
            f"- {FALSE[kind][0]}: {pages} false pages in {years} SLO-years of all {len(cells)} cells, with 95 % "
            f"confidence at most {_limit(pages, years):.2f} a year on average; most in the cell of target "
            f"{most['target']:g} and {most['per_day']:,.0f} a day, {found['page']} in {found['years']} years, at most "
            f"{_limit(found['page'], found['years']):.2f} a year"
        )
    return "\n".join(lines)


def _limit(pages: int, years: int) -> float:
    """Exact one-sided upper 95 % limit of a Poisson rate."""
    return float(chi2.ppf(0.95, 2 * (pages + 1)) / 2 / years)


def _times(found: dict[str, Any]) -> str:
    return f"{_duration(found['median_minutes'], found)} / {_duration(found['late_minutes'], found)}"


def _duration(minutes: float | None, found: dict[str, Any]) -> str:
    if minutes is None:
        return f"> {found['days']} d"
    if minutes < 100:
        return f"{minutes:.0f} min"
    return f"{minutes / 60:.1f} h" if minutes < 48 * 60 else f"{minutes / 1440:.1f} d"


def _of(found: dict[str, Any], what: str) -> str:
    return f"{100 * found[what] / found['n']:.3g} % of {found['n']}"


def chart(cells: list[Cell]) -> str:
    """Median time until an outage pages, full and half, by traffic and target."""
    rows = [
        {
            "outage": name,
            "target": f"{cell['target']:g}",
            "runs a day": cell["per_day"],
            "hours": cell[key]["median_minutes"] / 60,
        }
        for cell in cells
        for key, name in (("full", "all runs fail"), ("half", "half of the runs fail"))
        if cell[key]["median_minutes"] is not None
    ]
    lines = alt.Chart().mark_line(point=alt.OverlayMarkDef(size=45), strokeWidth=2)
    coded = lines.encode(
        x=alt.X("runs a day:Q", scale=alt.Scale(type="log"), axis=alt.Axis(values=[3, 10, 30, 100, 300, 3000, 30000])),
        y=alt.Y(
            "hours:Q",
            title="median hours until the page",
            scale=alt.Scale(type="log"),
            axis=alt.Axis(values=[0.01, 0.1, 1, 10, 100], format="~g"),
        ),
        color=alt.Color(
            "target:N",
            title="target",
            scale=alt.Scale(range=["#7a0177", "#c51b8a", "#e6550d", "#3182bd", "#08306b"]),
        ),
    )
    drawn = coded.properties(width=330, height=260).facet(
        column=alt.Column("outage:N", title=None, header=alt.Header(labelFontSize=13)), data=alt.Data(values=rows)
    )
    spec = drawn.to_dict() | {"config": {"background": "white", "font": "sans-serif", "view": {"stroke": "#ddd"}}}
    svg: str = vl_convert.vegalite_to_svg(spec)
    return svg
