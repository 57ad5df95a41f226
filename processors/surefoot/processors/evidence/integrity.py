"""Whether a profile is as it was built, and whether everything that it tells follows from what it holds.

Rule: whoever edits a file can compute its hash again. So every number that stands twice is compared with the other
place: indicators of the whole and of each stratum with the counts, the tally with them, listed runs with counts and
cited hash, the word on the grader with its audits.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator
from math import isclose

from surefoot.processors.evidence.grading.decision_grade import contradiction
from surefoot.processors.evidence.grading.propagation import indicators_behind
from surefoot.processors.evidence.measure import Counted
from surefoot.processors.evidence.profile import INDICATORS, Indicators, IntervalPart, Profile

_SAME = 1e-9


def other_sample(profile: Profile) -> str | None:
    """Where the sample that it tells is not that of its counts."""
    rows = [row for stratum in profile.evidence.counts for row in stratum.outcomes]
    told = (profile.evidence.groups, profile.evidence.tally.judged)
    counted = (sum(row.groups for row in rows), sum(row.n * row.groups for row in rows))
    if told == counted:
        return None
    return f"it tells {told[0]} groups and {told[1]} judged runs, its counts {counted[0]} and {counted[1]}"


def not_from_counts(profile: Profile) -> list[str]:
    """What is told and does not follow from the counts, from the listed runs or from the grader's audits."""
    whole = _again(profile)
    found = [*_different(whole, profile.indicators), *_of_the_strata(profile, whole), *_of_the_listed(profile)]
    if sample := other_sample(profile):
        found.append(sample)
    if grader := contradiction(profile):
        found.append(grader)
    return found


def _of_the_strata(profile: Profile, whole: Indicators) -> Iterator[str]:
    counts, told = profile.evidence.counts, profile.strata
    if [one.key for one in counts] != [(one.task_class, one.consequence_class, one.horizon) for one in told]:
        yield "the strata"
        return
    for place, one in enumerate(told):
        right = whole if len(counts) == 1 else _again(profile, place)
        name = " / ".join(part or "unnamed" for part in counts[place].key)
        yield from (f"{what} of {name}" for what in _different(right, one.indicators))


def _of_the_listed(profile: Profile) -> Iterator[str]:
    """Where all groups are listed, their runs are the cited ones and their outcomes the counted ones."""
    evidence = profile.evidence
    if len(evidence.listed_groups) != evidence.groups or evidence.run_ids_sha256 is None:
        return
    ids = sorted(run for group in evidence.listed_groups for run in group.run_ids)
    text = "".join(f"{one}\n" for one in ids)
    if evidence.run_ids_sha256 != f"sha256:{hashlib.sha256(text.encode()).hexdigest()}":
        yield "the listed run ids, which have another hash than the cited ones"
    listed = Counter(
        (group.stratum, group.outcomes.count("1"), group.outcomes.count("0"), group.outcomes.count("?"))
        for group in evidence.listed_groups
    )
    counted: Counter[tuple[int, int, int, int]] = Counter()
    for place, stratum in enumerate(evidence.counts):
        for row in stratum.outcomes:
            counted[place, row.c, row.n - row.c, row.missing] += row.groups
    if listed != counted:
        yield "the listed outcomes"


def _again(profile: Profile, place: int | None = None) -> Indicators:
    protocol = profile.repeat_protocol
    only = None if place is None else [profile.evidence.counts[place]]
    counted = Counted.of(profile.evidence, protocol.k.value, only)
    return indicators_behind(counted, profile.grader, protocol.confidence_level)


def _different(right: Indicators, told: Indicators) -> Iterator[str]:
    for name in INDICATORS:
        mine, theirs = getattr(right, name), getattr(told, name)
        sample = (mine.groups, mine.runs, mine.k) == (theirs.groups, theirs.runs, theirs.k)
        if not sample or not _agree(mine.value, theirs.value):
            yield name
    for name in sorted({*right.confidence_intervals, *told.confidence_intervals}):
        if not _same_bounds(right.confidence_intervals.get(name, []), told.confidence_intervals.get(name, [])):
            yield f"interval of {name}"


def _agree(one: float | None, other: float | None) -> bool:
    return one is other or (one is not None and other is not None and isclose(one, other, abs_tol=_SAME))


def _same_bounds(mine: list[IntervalPart], theirs: list[IntervalPart]) -> bool:
    return len(mine) == len(theirs) and all(
        (a.method, a.confidence, a.sides, a.gate) == (b.method, b.confidence, b.sides, b.gate)
        and _agree(a.low, b.low)
        and _agree(a.high, b.high)
        for a, b in zip(mine, theirs, strict=True)
    )
