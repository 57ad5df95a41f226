"""What differs between two profiles, field by field, and whether it revokes what was decided about the first.

Rule: any difference in system, versions, population, outcome contract or graders revokes, and a field that only one of
the two has is a difference. Nothing is "close enough".
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from surefoot.processors.evidence.profile import INDICATORS, Profile
from surefoot.processors.yaml_models import Part

_SAMPLE: Final = frozenset({"run_group"})


@dataclass(frozen=True, slots=True)
class Difference:
    """A field that is not the same."""

    field: str
    before: Any
    after: Any

    def __str__(self) -> str:
        return f"{self.field}: {shown(self.before)} became {shown(self.after)}"


@dataclass(frozen=True, slots=True)
class Moved:
    """An indicator in two profiles; ``apart`` says whether their intervals do not meet, None where one is missing."""

    indicator: str
    before: float | None
    after: float | None
    before_interval: tuple[float, float] | None
    after_interval: tuple[float, float] | None
    apart: bool | None


@dataclass(frozen=True, slots=True)
class Changes:
    """The answer of ``profile diff``."""

    revoking: list[Difference]
    other: list[Difference]  # who, how often and how it was measured
    indicators: list[Moved]
    groups: tuple[int, int]
    runs: tuple[int, int]

    @property
    def revokes(self) -> bool:
        """Whether a decision about the first says nothing about the second."""
        return bool(self.revoking)


def changes(before: Profile, after: Profile) -> Changes:
    """Everything that differs. That intervals meet is no proof that nothing changed; compare paired runs for that."""
    other = [
        *_values("profile_id", before.profile_id, after.profile_id),
        *_values("version", before.version, after.version),
        *_values("owner", before.owner, after.owner),
        *_values("review_date", before.review_date, after.review_date),
        *between("repeat_protocol", before.repeat_protocol, after.repeat_protocol),
        *between("operating_boundary", before.operating_boundary, after.operating_boundary),
        *between("change_control", before.change_control, after.change_control),
        *_selected(before, after, revoking=False),
        *_values("evidence.source", before.evidence.source, after.evidence.source),
        *_values("evidence.publication", before.evidence.publication, after.evidence.publication),
        *_values("grader.decision_grade", before.grader.decision_grade, after.grader.decision_grade),
        *_values("evidence.run_ids_sha256", before.evidence.run_ids_sha256, after.evidence.run_ids_sha256),
    ]
    return Changes(
        revoking=_revoking(before, after),
        other=other,
        indicators=[_moved(name, before, after) for name in INDICATORS],
        groups=(before.evidence.groups, after.evidence.groups),
        runs=(before.evidence.tally.runs, after.evidence.tally.runs),
    )


def _revoking(before: Profile, after: Profile) -> list[Difference]:
    return [
        *between("system", before.system, after.system),
        *maps("versions", before.evidence.versions, after.evidence.versions),
        *between("task_population", before.task_population, after.task_population),
        *between("outcome_contract", before.outcome_contract, after.outcome_contract),
        *_values("evidence.graders", _graders(before), _graders(after)),
        *_selected(before, after, revoking=True),
        *_values("evidence.environments", _environments(before), _environments(after)),
        *_values("evidence.strata", _strata(before), _strata(after)),
        *_values("evidence.equivalence_rule", before.evidence.equivalence_rule, after.evidence.equivalence_rule),
    ]


def between(name: str, before: Part, after: Part) -> Iterator[Difference]:
    """The fields of one section that differ; of a mapping, its entries."""
    for field in type(before).model_fields:
        yield from _values(f"{name}.{field}", getattr(before, field), getattr(after, field))


def maps(name: str, before: dict[str, str], after: dict[str, str]) -> Iterator[Difference]:
    """The entries of a mapping that differ."""
    for key in sorted({*before, *after}):
        if before.get(key) != after.get(key):
            yield Difference(f"{name}.{key}", before.get(key), after.get(key))


def shown(value: Any) -> str:
    """A field's value in a sentence."""
    if value is None:
        return "nothing"
    if isinstance(value, dict):
        return ", ".join(f"{key} {item}" for key, item in value.items())
    return ", ".join(map(str, value)) if isinstance(value, list) else f"{value}"


def _values(name: str, before: Any, after: Any) -> Iterator[Difference]:
    if isinstance(before, dict) and isinstance(after, dict):
        yield from maps(name, before, after)
    elif isinstance(before, Part) and isinstance(after, Part):
        yield from between(name, before, after)
    elif before != after:
        yield Difference(name, before, after)


def _graders(profile: Profile) -> list[str] | None:
    used = profile.evidence.graders
    if used is None:
        return None
    return sorted(
        f"{one.name} {one.version or 'of unknown version'} ({one.kind or 'of unknown kind'}, {one.judges})"
        for one in used
    )


def _selected(before: Profile, after: Profile, *, revoking: bool) -> Iterator[Difference]:
    """What chose the runs: another day or run group is another sample, another value of anything else other work."""
    chosen = [{} if one.evidence.selection is None else one.evidence.selection.where for one in (before, after)]
    sample = [{name: value for name, value in one.items() if (name in _SAMPLE) is not revoking} for one in chosen]
    yield from maps("evidence.selection.where", *sample)


def _environments(profile: Profile) -> list[str] | None:
    found = profile.evidence.environments
    return None if found is None else sorted(found)


def _strata(profile: Profile) -> list[str]:
    # Not by horizon: how long the runs of a sample were is measured, not chosen.
    names = {(one.task_class, one.consequence_class) for one in profile.evidence.counts}
    return sorted(" / ".join(part or "unnamed" for part in one) for one in names)


def _moved(name: str, before: Profile, after: Profile) -> Moved:
    first, second = _interval(before, name), _interval(after, name)
    apart = None if first is None or second is None else first[1] < second[0] or second[1] < first[0]
    values = (getattr(profile.indicators, name).value for profile in (before, after))
    return Moved(name, next(values), next(values), first, second, apart)


def _interval(profile: Profile, name: str) -> tuple[float, float] | None:
    for part in profile.indicators.confidence_intervals.get(name, []):
        if part.low is not None and part.high is not None:
            return part.low, part.high
    return None
