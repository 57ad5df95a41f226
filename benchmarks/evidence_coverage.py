"""How often each interval of the evidence room holds what it is about, over populations of tasks whose truth is known.

Means over groups (yield, Pass^k where n > k, blocks of production) are simulated: groups are drawn from a population,
each method gives its lower bound, and coverage is the share of bounds at or below the true mean. Shares of groups
(Pass^k where n = k, consistent-wrong) are binomial whatever the tasks are like, so their coverage is summed, not
simulated, at the population's rate and at the worst rate there is.

    python benchmarks/evidence_coverage.py [--replications 2000] [--groups 30,100,300,1000,3000] [--write]

``--write`` renews the table that decides which method may open a gate (``evidence/coverage.json``) and the tables and
chart of docs/evidence-coverage.md. Without it the run compares itself with that table; if they differ it ends with 1.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from fractions import Fraction
from math import comb, sqrt
from pathlib import Path

import numpy as np
from evidence_coverage_page import Row, write_page
from scipy import stats

from surefoot.processors.evidence import betting, bootstrap
from surefoot.processors.evidence.eligibility import TABLE
from surefoot.processors.evidence.types import GroupTypes

SIZES = (30, 100, 300, 1000, 3000)
LEVELS = (0.95, 1 - 0.05 / 3)
BLOCK_RUNS = 20
DISTANCES = 200  # samples whose bounds are averaged
WORST = "the worst rate"


@dataclass(frozen=True, slots=True)
class Population:
    """Shares of tasks by their chance to succeed; ``repeats`` of a task's failures are equivalent with that chance."""

    name: str
    classes: tuple[tuple[float, float], ...]  # (share of tasks, chance of an acceptable run)
    equivalent: float = 0.5

    def successes(self, k: int) -> np.ndarray:
        """The chance of 0 to k acceptable runs of k."""
        counts = np.arange(k + 1)
        each = [share * stats.binom.pmf(counts, k, chance) for share, chance in self.classes]
        return np.asarray(np.sum(each, axis=0))


def _spread(a: float, b: float) -> tuple[tuple[float, float], ...]:
    middles = (np.arange(200) + 0.5) / 200
    return tuple((1 / 200, float(chance)) for chance in stats.beta.ppf(middles, a, b))


POPULATIONS = (
    Population("homogeneous .97", ((1.0, 0.97),)),
    Population("homogeneous .80", ((1.0, 0.8),)),
    Population("spread, Beta(8, 1)", _spread(8, 1)),
    Population("bimodal, half .95, half .05", ((0.5, 0.95), (0.5, 0.05))),
    Population("bimodal, 3 % of tasks at .05", ((0.97, 0.995), (0.03, 0.05))),
    Population("rare bad class, 0.5 % never", ((0.995, 0.999), (0.005, 0.0))),
    Population("rare bad class, 0.1 % never", ((0.999, 0.999), (0.001, 0.0))),
)


Bound = Callable[[GroupTypes, float], float]
MEANS: dict[str, Bound] = {
    "betting": lambda types, alpha: betting.betting_lower(types.values, types.counts, alpha),
    "empirical_bernstein": lambda types, alpha: betting.empirical_bernstein_lower(types.values, types.counts, alpha),
    "clopper_pearson_floor": lambda types, alpha: _share_lower(
        "clopper_pearson", int(types.counts[-1]), types.groups, alpha
    ),
    "cluster_bootstrap_percentile": bootstrap.exact_quantile,
}
BLOCKS: dict[str, Bound] = {"block_bootstrap": bootstrap.exact_quantile}


def _share_lower(method: str, hits: int, groups: int, alpha: float) -> float:
    return float(1 - _share_uppers(method, groups, alpha)[groups - hits])


_UPPERS: dict[tuple[str, int, float], np.ndarray] = {}


def _share_uppers(method: str, groups: int, alpha: float) -> np.ndarray:
    """The upper bound after 0 to ``groups`` hits, for every number at once; a test compares it with the library's."""
    key = (method, groups, alpha)
    if key not in _UPPERS:
        hits = np.arange(groups)
        if method == "wilson":
            z = stats.norm.isf(alpha)
            root = z * np.sqrt(hits * (groups - hits) / groups + z * z / 4)
            bounds = (hits + z * z / 2 + root) / (groups + z * z)
        else:
            extra, less = (1.0, 0.0) if method == "clopper_pearson" else (0.5, 0.5)
            bounds = stats.beta.isf(alpha, hits + extra, groups - hits + less)
        _UPPERS[key] = np.append(bounds, 1.0)
    return _UPPERS[key]


def mean_rows(sizes: tuple[int, ...], replications: int, seed: int, averaged: int = DISTANCES) -> Iterator[Row]:
    """Lower bounds of yield at k = 3 and 5, of Pass^3 from 5 runs, and of the yield of blocks of 20 runs."""
    quantities: tuple[tuple[str, int, Callable[[int], Fraction], dict[str, Bound]], ...] = (
        ("yield, k = 3", 3, lambda good: Fraction(good, 3), MEANS),
        ("yield, k = 5", 5, lambda good: Fraction(good, 5), MEANS),
        ("Pass^3 from 5 runs", 5, lambda good: Fraction(comb(good, 3), comb(5, 3)), MEANS),
        (f"production, blocks of {BLOCK_RUNS} runs", BLOCK_RUNS, lambda good: Fraction(good, BLOCK_RUNS), BLOCKS),
    )
    for quantity, k, value, methods in quantities:
        values = [value(good) for good in range(k + 1)]
        for population in POPULATIONS:
            chances = population.successes(k)
            truth = float(chances @ np.array([float(v) for v in values]))
            for groups in sizes:
                drawn = np.random.default_rng([seed, groups, k]).multinomial(
                    groups, chances / chances.sum(), replications
                )
                for method, confidence, holds, distance in _measured(drawn, values, methods, truth, averaged):
                    yield Row(method, quantity, population.name, confidence, groups, holds, replications, distance)


def _measured(
    drawn: np.ndarray, values: list[Fraction], methods: dict[str, Bound], truth: float, averaged: int
) -> Iterator[tuple[str, float, float, float]]:
    """Method, level, share of samples whose bound holds, mean distance of the first ``averaged`` bounds."""
    different, times = np.unique(drawn, axis=0, return_counts=True)
    samples = [_types(values, counts) for counts in different]
    first = [_types(values, counts) for counts in drawn[:averaged]]
    for method, bound in methods.items():
        for confidence in LEVELS:
            alpha = 1 - confidence
            if method == "betting":
                held = [not betting.refuted(truth, types.values, types.counts, alpha) for types in samples]
            else:
                held = [bound(types, alpha) <= truth + 1e-12 for types in samples]
            distance = truth - float(np.mean([bound(types, alpha) for types in first]))
            yield method, confidence, float(times @ np.array(held)) / len(drawn), distance


def _types(values: list[Fraction], counts: np.ndarray) -> GroupTypes:
    """Types of one sample; equal values (Pass^3 of 0, 1 and 2 of 5) are one type."""
    merged: dict[Fraction, int] = {}
    for value, count in zip(values, counts, strict=True):
        merged[value] = merged.get(value, 0) + int(count)
    return GroupTypes(tuple(merged), np.array([list(merged.values())]))


def share_rows(sizes: tuple[int, ...]) -> Iterator[Row]:
    """Upper bounds of consistent-wrong, lower ones of Pass^k (upper ones of its complement), and the worst rate."""
    for method in ("clopper_pearson", "wilson", "jeffreys"):
        for groups in sizes:
            for confidence in LEVELS:
                uppers = _share_uppers(method, groups, 1 - confidence)
                for population in POPULATIONS:
                    for k in (3, 5):
                        chances = population.successes(k)
                        rates = {
                            f"consistent-wrong, k = {k}": chances[0] * population.equivalent,
                            f"Pass^{k} of {k} runs": 1 - chances[k],
                        }
                        for quantity, rate in rates.items():
                            holds, distance = _binomial(uppers, groups, float(rate))
                            yield Row(method, quantity, population.name, confidence, groups, holds, None, distance)
                # Coverage falls just above each bound, so the worst rate is one of those.
                just_above = uppers[uppers < 0.999] + 1e-9
                covered = stats.binom.sf(np.searchsorted(uppers, just_above) - 1, groups, just_above)
                yield Row(method, "any share", WORST, confidence, groups, float(covered.min()), None, None)


def _binomial(uppers: np.ndarray, groups: int, rate: float) -> tuple[float, float]:
    first = int(np.searchsorted(uppers, rate - 1e-12))
    chances = stats.binom.pmf(np.arange(groups + 1), groups, rate)
    return float(stats.binom.sf(first - 1, groups, rate)), float(chances @ uppers - rate)


def lowest(rows: list[Row]) -> list[dict[str, object]]:
    """For each method, level and number of groups: the least coverage, and where."""
    worst: dict[tuple[str, float, int], Row] = {}
    for row in rows:
        key = (row.method, row.confidence, row.groups)
        if key not in worst or row.coverage < worst[key].coverage:
            worst[key] = row
    return [{**asdict(row), "distance": None} for _, row in sorted(worst.items())]


def differences(rows: list[Row]) -> list[str]:
    """Where these lowest coverages are not those of the table, by more than five standard errors of this run."""
    known = {(entry.method, round(entry.confidence, 6), entry.groups): entry for entry in TABLE}
    problems = []
    for found in lowest(rows):
        key = (str(found["method"]), round(float(str(found["confidence"])), 6), int(str(found["groups"])))
        entry = known.get(key)
        if entry is None:
            problems.append(f"{key}: not in the table")
            continue
        simulated = found["replications"]
        slack = 5 * sqrt(max(entry.coverage * (1 - entry.coverage), 0.001) / int(str(simulated))) if simulated else 1e-6
        if abs(entry.coverage - float(str(found["coverage"]))) > slack:
            problems.append(
                f"{key}: {found['coverage']:.4f} here, {entry.coverage:.4f} in the table, slack {slack:.4f}"
            )
    return problems


def main() -> None:
    """Simulate, then write or compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--replications", type=int, default=2000)
    parser.add_argument("--groups", default=",".join(map(str, SIZES)))
    parser.add_argument("--seed", type=int, default=20260916)
    parser.add_argument("--write", action="store_true")
    chosen = parser.parse_args()
    sizes = tuple(int(size) for size in chosen.groups.split(","))
    began = time.perf_counter()
    rows = [*mean_rows(sizes, chosen.replications, chosen.seed, DISTANCES if chosen.write else 1), *share_rows(sizes)]
    print(f"{len(rows):,} coverages, {chosen.replications:,} replications each, {time.perf_counter() - began:.0f} s")
    if chosen.write:
        root = Path(__file__).parents[1]
        table = root / "processors" / "surefoot" / "processors" / "evidence" / "coverage.json"
        lines = ",\n".join(json.dumps(row) for row in lowest(rows))
        table.write_text(f"[\n{lines}\n]\n", encoding="utf-8")
        write_page(root / "docs", rows, sizes)
        return
    problems = differences(rows)
    for problem in problems:
        print(problem)
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
