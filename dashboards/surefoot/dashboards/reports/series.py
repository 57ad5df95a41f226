"""What the profile's charts draw, computed from its counts.

Rule: a point that is undefined is not drawn, and every drawn interval is the one that the profile's indicators have.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from surefoot.processors.evidence import repeated
from surefoot.processors.evidence.classes import class_counts
from surefoot.processors.evidence.measure import Counted, bounds
from surefoot.processors.evidence.profile import Profile, StratumResult

MOST_K = 20  # points of the curve; a hundred repetitions are not a hundred points
MOST_STRATA = 12  # of the chart; the profile has all


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """Success at k runs of a task."""

    k: int
    every: float  # Pass^k
    low: float | None
    high: float | None
    some: float  # Pass@k
    equal: float  # (Mean@k)^k
    groups: int  # with k judged runs


@dataclass(frozen=True, slots=True)
class Strip:
    """Repetitions of a task, or of ``groups`` tasks that are alike: 1, 0 or ? for each run."""

    name: str
    stratum: str
    outcomes: str
    groups: int
    n: int
    c: int
    kind: str  # the group's class


@dataclass(frozen=True, slots=True)
class Dumbbell:
    """Mean@k and Pass^k of a stratum, with their intervals."""

    name: str
    groups: int
    mean: float | None
    mean_low: float | None
    mean_high: float | None
    strict: float | None
    strict_low: float | None
    strict_high: float | None


def curve(profile: Profile) -> list[CurvePoint]:
    """Pass^k for every k that some group reaches."""
    counted = _counted(profile)
    level = profile.repeat_protocol.confidence_level
    points = []
    for k in range(1, min(MOST_K, int(counted.groups.n.max(initial=0))) + 1):
        every = repeated.pass_hat_k(counted.groups, k)
        some = repeated.pass_at_k(counted.groups, k)
        equal = repeated.homogeneous_pass_hat_k(counted.groups, k)
        if every.value is None or some.value is None or equal.value is None:
            continue
        at_k = replace(counted, k=k)
        interval = bounds(at_k, "strict_repeated_success_at_k", "two", level)
        low, high = (None, None) if interval is None else (interval.low, interval.high)
        points.append(CurvePoint(k, every.value, low, high, some.value, equal.value, every.groups))
    return points


def class_shares(profile: Profile) -> dict[str, int]:
    """Groups by class, those without a class included."""
    return class_counts(_counted(profile).groups)


def strips(profile: Profile) -> list[Strip]:
    """The listed groups, the worst first; of published counts one strip for each kind of group."""
    names = [stratum_name(one) for one in profile.strata]
    if profile.evidence.listed_groups:
        return [
            Strip(
                name=group.task_id,
                stratum=names[group.stratum],
                outcomes=group.outcomes,
                groups=1,
                n=group.outcomes.count("1") + group.outcomes.count("0"),
                c=group.outcomes.count("1"),
                kind=_kind(group.outcomes.count("0"), group.outcomes.count("1"), None),
            )
            for group in profile.evidence.listed_groups
        ]
    alike: dict[tuple[str, str, int, int], int] = {}
    for stratum in profile.evidence.counts:
        for row in stratum.outcomes:
            outcomes = "1" * row.c + "0" * (row.n - row.c) + "?" * row.missing
            key = (outcomes, _kind(row.n - row.c, row.c, row.equivalent), row.n, row.c)
            alike[key] = alike.get(key, 0) + row.groups
    found = [
        Strip(f"{groups:,} group{'' if groups == 1 else 's'} alike", "all strata", outcomes, groups, n, c, kind)
        for (outcomes, kind, n, c), groups in alike.items()
    ]
    return sorted(found, key=lambda strip: (strip.c / strip.n if strip.n else -1, strip.kind))


def dumbbells(profile: Profile) -> list[Dumbbell]:
    """The whole, then the strata when there are several: those with the least Pass^k first, as many as fit."""
    strata = profile.strata if len(profile.strata) > 1 else []
    worst = sorted(strata, key=lambda one: one.indicators.strict_repeated_success_at_k.value or 0)[:MOST_STRATA]
    found = [("all", profile.indicators, profile.evidence.groups)]
    found += [(_telling_name(one, strata), one.indicators, one.indicators.outcome_yield.groups) for one in worst]
    bells = []
    for name, indicators, groups in found:
        ends = []
        for indicator in ("outcome_yield", "strict_repeated_success_at_k"):
            part = next(iter(indicators.confidence_intervals.get(indicator, [])), None)
            low, high = (None, None) if part is None else (part.low, part.high)
            ends += [getattr(indicators, indicator).value, low, high]
        bells.append(Dumbbell(name, groups, *ends))
    return bells


def stratum_name(stratum: StratumResult) -> str:
    """Its dimensions in one line."""
    parts = (stratum.task_class, stratum.consequence_class, stratum.horizon)
    return " · ".join(part for part in parts if part) or "unnamed stratum"


def _telling_name(stratum: StratumResult, strata: list[StratumResult]) -> str:
    """Its name without the dimensions in which all of them are alike."""
    parts = [
        getattr(stratum, name) or f"no {name.replace('_', ' ')}"
        for name in ("task_class", "consequence_class", "horizon")
        if len({getattr(one, name) for one in strata}) > 1
    ]
    return " · ".join(parts)


def _counted(profile: Profile) -> Counted:
    return Counted.of(profile.evidence, profile.repeat_protocol.k.value)


def _kind(bad: int, good: int, equivalent: bool | None) -> str:
    if good and bad:
        return "mixed"
    if good:
        return "all acceptable"
    if not bad:
        return "not judged"
    if equivalent is None:
        return "never acceptable"
    return "consistent-wrong" if equivalent else "never acceptable, not equivalent"
