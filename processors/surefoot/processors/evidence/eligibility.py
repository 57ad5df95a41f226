"""Which interval may open a gate: by method and number of groups, from measured coverage.

``python benchmarks/evidence_coverage.py --write`` measures it and writes ``coverage.json``: for each method, level and
number of groups the least coverage over all simulated populations (docs/evidence-coverage.md). A test repeats a part.

Rule: a method with a proof is offered always, any other from the least tabulated number of groups on from which no
population brought it below its level; all others answer for show, with the reason. Unknown methods are never offered.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from importlib.resources import files
from math import sqrt

PROVED = {
    "clopper_pearson": "Clopper and Pearson 1934",
    "clopper_pearson_floor": "Clopper and Pearson 1934, on groups that are wholly acceptable",
    "betting": "Waudby-Smith and Ramdas 2024",
    "empirical_bernstein": "Waudby-Smith and Ramdas 2024",
}
RESAMPLED_AS = {"cluster_bootstrap_percentile_exact": "cluster_bootstrap_percentile"}  # one distribution, two ways


@dataclass(frozen=True, slots=True)
class Coverage:
    """The least coverage of a method at a level and a number of groups, and the population that it was seen in."""

    method: str
    quantity: str
    population: str
    confidence: float
    groups: int
    coverage: float
    replications: int | None  # None: computed exactly
    distance: float | None = None

    @property
    def holds(self) -> bool:
        """Whether it reached its level, but for three standard errors of the simulation."""
        noise = 3 * sqrt(self.confidence * (1 - self.confidence) / self.replications) if self.replications else 1e-6
        return self.coverage >= self.confidence - noise


def _table() -> tuple[Coverage, ...]:
    text = files("surefoot.processors.evidence").joinpath("coverage.json").read_text(encoding="utf-8")
    return tuple(Coverage(**row) for row in json.loads(text))


TABLE = _table()


def least_groups(method: str) -> int | None:
    """From how many groups on ``method`` may open a gate; None: never."""
    if method in PROVED:
        return 1
    rows = [row for row in TABLE if row.method == RESAMPLED_AS.get(method, method)]
    least = None
    for groups in sorted({row.groups for row in rows}, reverse=True):
        if not all(row.holds for row in rows if row.groups == groups):
            break
        least = groups
    return least


def gate_note(method: str, groups: int, confidence: float) -> str | None:
    """Why ``method`` may not open a gate with so many groups, or None where it may."""
    least = least_groups(method)
    if least is not None and groups >= least:
        return None
    rows = [row for row in TABLE if row.method == RESAMPLED_AS.get(method, method)]
    if not rows:
        return f"{method} is not for gates: its coverage was never measured"
    near = min(rows, key=lambda row: (abs(row.groups - groups), abs(row.confidence - confidence)))
    return (
        f"{method} is not for gates: at {near.groups:,} groups it covered {near.coverage:.3f} of a nominal "
        f"{near.confidence:.3f} ({near.population})"
    )
