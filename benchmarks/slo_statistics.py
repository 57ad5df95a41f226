"""What the burn-rate alerts promise, by simulation: false pages a year, and the time until an outage pages.

For every target and traffic: years at the budget's own error ratio, in which whatever pages is false; and outages that
begin in a service that burns at half the budget. Judged every minute by the rule that the engine uses.

    python benchmarks/slo_statistics.py measure [--years 20] [--outages 200] [--targets .9,.99] [--per-day 3,300]
    python benchmarks/slo_statistics.py page

`measure` takes some 20 minutes of one core, adds to docs/slo-statistics.json after every cell, and leaves out those
that are there already. `page` writes the tables of docs/slo-statistics.md and its chart from that file.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from slo_statistics_page import write_page

from surefoot.processors.slo.burn import PAGE, TICKET
from surefoot.processors.slo.definition import Alerting, TierSpec
from surefoot.processors.slo.simulate import Detection, Traffic, false_pages, outages

TARGETS = (0.8, 0.9, 0.95, 0.99, 0.999)
PER_DAY = (3, 10, 30, 100, 300, 3_000, 30_000)
STRATA = 5
CORRELATION = 0.02
PAGES_ONLY = (
    TierSpec("page_fast", PAGE, "1h", "5m", 13.44),
    TierSpec("page_slow", PAGE, "6h", "30m", 5.6),
)
FOLDER = Path(__file__).parents[1] / "docs"


def years_of(target: float, per_day: float, years: int) -> dict[str, dict[str, float]]:
    """False pages and tickets in simulated years: plain, and with what strains the promise."""
    few = max(1, years // 5)
    widened = Alerting(tiers=PAGES_ONLY, correlation=CORRELATION)
    kinds: dict[str, tuple[Traffic, int, int, Alerting]] = {
        "alone": (Traffic(per_day), years, 1, Alerting()),
        "strata": (Traffic(per_day), few, STRATA, Alerting()),
        "office": (Traffic(per_day, office=True), few, 1, Alerting()),
        "correlated": (Traffic(per_day, correlation=CORRELATION), few, 1, Alerting()),
        "widened": (Traffic(per_day, correlation=CORRELATION), few, 1, widened),
    }
    return {
        kind: {"years": length, **false_pages(target, traffic, length, strata, alerting)}
        for kind, (traffic, length, strata, alerting) in kinds.items()
    }


def outages_of(target: float, per_day: float, error_ratio: float, count: int, before: float = 0.5) -> dict[str, Any]:
    """When outages were detected; None where fewer were than the quantile needs."""
    days = 14 if per_day <= 10 else 3
    found = outages(target, Traffic(per_day), error_ratio, count, days, before=before)
    pages = np.array([np.inf if item.page is None else item.page for item in found])
    median, late = (float(np.quantile(pages, share, method="higher")) for share in (0.5, 0.95))
    return {
        "n": len(found),
        "days": days,
        "paged": int(np.isfinite(pages).sum()),
        "median_minutes": median if np.isfinite(median) else None,
        "late_minutes": late if np.isfinite(late) else None,
        "within_72h": int((pages <= 72 * 60).sum()),
        "page_first": sum(_page_first(item) for item in found),
    }


def _page_first(found: Detection) -> bool:
    return found.page is not None and (found.ticket is None or found.page <= found.ticket)


def cell(target: float, per_day: float, years: int, count: int) -> dict[str, Any]:
    """All that is measured of one target and traffic."""
    return {
        "target": target,
        "per_day": per_day,
        "false": years_of(target, per_day, years),
        "full": outages_of(target, per_day, 1.0, count),
        "full_at_budget": outages_of(target, per_day, 1.0, count, before=1.0),
        "half": outages_of(target, per_day, 0.5, count),
    }


def measure(folder: Path, targets: Sequence[float], traffics: Sequence[float], years: int, count: int) -> None:
    """Measure what is not measured yet; written after every cell."""
    file = folder / "slo-statistics.json"
    cells: list[dict[str, Any]] = json.loads(file.read_text()) if file.exists() else []
    done = {(known["target"], known["per_day"]) for known in cells}
    for per_day in traffics:
        for target in targets:
            if (target, per_day) in done:
                continue
            measured = cell(target, per_day, years, count)
            cells = sorted([*cells, measured], key=lambda known: (known["target"], known["per_day"]))
            file.write_text("[\n" + ",\n".join(json.dumps(known) for known in cells) + "\n]\n")
            alone = measured["false"]["alone"]
            print(
                f"target {target}, {per_day:g} a day: {alone[PAGE]} false pages and {alone[TICKET]} tickets in "
                f"{alone['years']} years; {measured['full']['paged']} of {measured['full']['n']} full outages paged",
                flush=True,
            )


def main() -> None:
    """Measure, or write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["measure", "page"])
    parser.add_argument("--years", type=int, default=20)
    parser.add_argument("--outages", type=int, default=200)
    parser.add_argument("--targets", default=",".join(map(str, TARGETS)))
    parser.add_argument("--per-day", default=",".join(map(str, PER_DAY)))
    parser.add_argument("--folder", type=Path, default=FOLDER)
    options = parser.parse_args()
    if options.what == "page":
        write_page(options.folder)
        return
    targets, traffics = ([float(part) for part in text.split(",")] for text in (options.targets, options.per_day))
    measure(options.folder, targets, traffics, options.years, options.outages)


if __name__ == "__main__":
    main()
