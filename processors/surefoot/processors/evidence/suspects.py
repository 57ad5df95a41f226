"""Tasks of a profile that somebody should look at first: none of their runs, or unusually few, were acceptable.

Such a task may be broken, impossible or wrongly graded. Rule: it is a list for people and not a test. With many tasks
some are on it by chance, and nothing leaves the estimates for being on it.
"""

from __future__ import annotations

from dataclasses import dataclass

from scipy import stats

from surefoot.processors.evidence.classes import UNUSUAL
from surefoot.processors.evidence.profile import ListedGroup, Profile, StratumCounts


@dataclass(frozen=True, slots=True)
class Suspects:
    """``groups`` are those that the profile lists run by run, the most surprising first."""

    total: int
    groups: tuple[ListedGroup, ...]


def suspects(profile: Profile, unusual: float = UNUSUAL) -> Suspects:
    """Of each stratum the groups whose so few passes, or fewer, had a chance of at most ``unusual`` at its yield."""
    evidence = profile.evidence
    chances = [_chances(stratum) for stratum in evidence.counts]
    total = sum(
        row.groups
        for stratum, chance in zip(evidence.counts, chances, strict=True)
        for row in stratum.outcomes
        if row.n and (row.c == 0 or chance[row.n, row.c] <= unusual)
    )
    found = []
    for group in evidence.listed_groups:
        good, bad = group.outcomes.count("1"), group.outcomes.count("0")
        chance_of = chances[group.stratum].get((good + bad, good), 1.0)
        if good + bad and (good == 0 or chance_of <= unusual):
            found.append((chance_of, group.task_id, group))
    return Suspects(total, tuple(group for _, _, group in sorted(found, key=lambda one: one[:2])))


def _chances(stratum: StratumCounts) -> dict[tuple[int, int], float]:
    runs = sum(row.n * row.groups for row in stratum.outcomes)
    good = sum(row.c * row.groups for row in stratum.outcomes)
    kinds = {(row.n, row.c) for row in stratum.outcomes if row.n}
    return {(n, c): float(stats.binom.cdf(c, n, good / runs)) for n, c in kinds}
