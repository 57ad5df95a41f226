"""Writes the measured parts of docs/evidence-coverage.md and its chart; the words around them are the page's own.

Rule: every figure on that page stands between two markers and comes from rows of one run.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import altair as alt
import vl_convert

PAGE, CHART = "evidence-coverage.md", "evidence-coverage.png"
SHARES = ("clopper_pearson", "wilson", "jeffreys")
MEANS = ("betting", "empirical_bernstein", "clopper_pearson_floor", "cluster_bootstrap_percentile")
PLOTTED = ("betting", "cluster_bootstrap_percentile")


@dataclass(frozen=True, slots=True)
class Row:
    """One measured coverage."""

    method: str
    quantity: str
    population: str
    confidence: float
    groups: int
    coverage: float
    replications: int | None  # None: computed, not simulated
    distance: float | None  # of the bound from the truth, on average


def write_page(docs: Path, rows: Sequence[Row], sizes: Sequence[int]) -> None:
    """Renew the page's tables and its chart."""
    levels = sorted({row.confidence for row in rows})
    parts = {
        "lowest": _lowest(rows, levels, sizes),
        "means": "\n\n".join(_by_population(rows, quantity, levels[-1], MEANS, sizes) for quantity in _means(rows)),
        "shares": "\n\n".join(_by_population(rows, quantity, levels[-1], SHARES, sizes) for quantity in _shares(rows)),
        "blocks": "\n\n".join(
            _by_population(rows, quantity, levels[-1], ("block_bootstrap",), sizes) for quantity in _blocks(rows)
        ),
        "distance": _distances(rows, levels[-1], sizes),
        "replications": f"Replications: {max(row.replications or 0 for row in rows):,} for each simulated figure.",
    }
    page = (docs / PAGE).read_text(encoding="utf-8")
    for name, text in parts.items():
        marked = re.compile(rf"(<!-- measured: {name} -->\n).*?<!-- end -->", re.DOTALL)
        place = marked.search(page)
        if not place:
            raise SystemExit(f"docs/{PAGE} has no place for {name!r}: <!-- measured: {name} --> to <!-- end -->")
        page = f"{page[: place.end(1)]}{text}\n<!-- end -->{page[place.end() :]}"
    (docs / PAGE).write_text(page, encoding="utf-8")
    _draw(docs / CHART, [row for row in rows if row.quantity == "yield, k = 5" and row.confidence == levels[-1]])


def _means(rows: Sequence[Row]) -> list[str]:
    return _unique(row.quantity for row in rows if row.method == "betting")


def _shares(rows: Sequence[Row]) -> list[str]:
    return _unique(row.quantity for row in rows if row.method == "wilson" and row.distance is not None)


def _blocks(rows: Sequence[Row]) -> list[str]:
    return _unique(row.quantity for row in rows if row.method == "block_bootstrap")


def _unique(words: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(words))


def _table(head: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (head, ["---"] * len(head), *lines))


def _lowest(rows: Sequence[Row], levels: Sequence[float], sizes: Sequence[int]) -> str:
    lines = []
    for method in _unique(row.method for row in rows):
        for level in levels:
            cells = []
            for groups in sizes:
                here = [r for r in rows if (r.method, r.confidence, r.groups) == (method, level, groups)]
                cells.append(f"{min(row.coverage for row in here):.3f}")
            lines.append([f"`{method}`", f"{level:.4f}", *cells])
    return _table(["method", "nominal", *(f"{groups:,} groups" for groups in sizes)], lines)


def _by_population(
    rows: Sequence[Row], quantity: str, level: float, methods: Sequence[str], sizes: Sequence[int]
) -> str:
    lines = []
    known = {(r.population, r.method, r.groups): r for r in rows if (r.quantity, r.confidence) == (quantity, level)}
    for population in _unique(place[0] for place in known):
        for method in methods:
            cells = [f"{known[population, method, groups].coverage:.3f}" for groups in sizes]
            lines.append([population, f"`{method}`", *cells])
    head = ["population", "method", *(f"{groups:,}" for groups in sizes)]
    return f"{quantity[0].upper()}{quantity[1:]}, nominal {level:.4f}:\n\n{_table(head, lines)}"


def _distances(rows: Sequence[Row], level: float, sizes: Sequence[int]) -> str:
    lines = []
    for quantity, methods in (("yield, k = 5", MEANS), ("consistent-wrong, k = 3", SHARES)):
        here = [row for row in rows if (row.quantity, row.confidence) == (quantity, level)]
        for method in methods:
            cells = []
            for groups in sizes:
                found = [row.distance or 0 for row in here if (row.method, row.groups) == (method, groups)]
                cells.append(f"{sum(found) / len(found):.4f}")
            lines.append([quantity, f"`{method}`", *cells])
    return _table(["quantity", "method", *(f"{groups:,}" for groups in sizes)], lines)


def _draw(path: Path, rows: Sequence[Row]) -> None:
    data = [
        {"population": row.population, "method": row.method, "groups": row.groups, "coverage": row.coverage}
        for row in rows
        if row.method in PLOTTED
    ]
    level = rows[0].confidence
    base = alt.Chart(alt.Data(values=data))
    lines = base.mark_line(point=True, strokeWidth=2).encode(
        x=alt.X(
            "groups:Q",
            scale=alt.Scale(type="log"),
            title="task groups",
            axis=alt.Axis(values=[30, 100, 300, 1000, 3000]),
        ),
        y=alt.Y("coverage:Q", scale=alt.Scale(domain=[0, 1]), title="coverage of the lower bound"),
        color=alt.Color("method:N", title=None, legend=alt.Legend(orient="top"), sort=list(PLOTTED)),
        shape=alt.Shape("method:N", legend=None, sort=list(PLOTTED)),
    )
    nominal = base.mark_rule(strokeDash=[4, 4], color="#555").encode(y=alt.datum(level))
    chart = (
        alt.layer(lines, nominal)
        .properties(width=230, height=150)
        .facet(facet=alt.Facet("population:N", title=None, sort=_unique(row.population for row in rows)), columns=3)
        .properties(title=f"Yield, 5 runs a task: one-sided bounds, nominal {level:.4f} (dashed)")
    )
    path.write_bytes(vl_convert.vegalite_to_png(chart.to_json(), scale=1))
