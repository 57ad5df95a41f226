"""What was imported, in a few numbers per task: the counts that evidence needs, and the part of a profile's spec."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import yaml

from surefoot.evaluation.records import SPARED, Attempt
from surefoot.processors.evidence.groups import EQUIVALENCE_RULE, GroupTable


@dataclass(slots=True)
class _Group:
    task_class: str | None
    consequence_class: str | None
    n: int = 0
    c: int = 0
    missing: int = 0
    infrastructure: int = 0
    signature: str | None = None  # of the first unacceptable attempt that has one
    differs: bool = False
    unknown: bool = False

    @property
    def equivalent(self) -> int:
        """1 if all failures are equivalent, 0 if two are not, -1 if that is not known or not asked."""
        if self.n < 2 or self.c or (self.unknown and not self.differs):
            return -1
        return 0 if self.differs else 1


class Tally:
    """Counts attempts as they come; the same groups as ``results.group_table`` makes of all of them."""

    def __init__(self) -> None:
        self._groups: dict[str, dict[str, _Group]] = {}
        self._graders: dict[str, set[str | None]] = {}

    def add(self, attempt: Attempt) -> None:
        """Count one."""
        tasks = self._groups.setdefault(attempt.variant, {})
        group = tasks.setdefault(attempt.task_id, _Group(attempt.task_class, attempt.consequence_class))
        if attempt.outcome in SPARED:
            group.infrastructure += 1
            return
        kinds = (verdict.grader_kind for verdict in attempt.verdicts if verdict.kind == "outcome")
        self._graders.setdefault(attempt.variant, set()).update(kinds)
        if attempt.acceptable is None:
            group.missing += 1
            return
        group.n += 1
        group.c += attempt.acceptable
        if not attempt.acceptable:
            group.unknown |= attempt.signature is None
            group.differs |= None not in {group.signature, attempt.signature} and group.signature != attempt.signature
            group.signature = group.signature or attempt.signature

    @property
    def variants(self) -> tuple[str, ...]:
        """The variants, in the order in which they came."""
        return tuple(self._groups)

    def infrastructure(self, variant: str) -> int:
        """How many attempts the infrastructure ended."""
        return sum(group.infrastructure for group in self._groups[variant].values())

    def table(self, variant: str) -> GroupTable:
        """Return the run groups of a variant."""
        tasks = self._groups[variant]
        groups = list(tasks.values())
        return GroupTable.from_counts(
            np.array([group.n for group in groups]),
            [group.c for group in groups],
            task_id=list(tasks),
            missing=[group.missing for group in groups],
            equivalent=[group.equivalent for group in groups],
            equivalence_rule=EQUIVALENCE_RULE,
            task_class=[group.task_class for group in groups],
            consequence_class=[group.consequence_class for group in groups],
        )

    def published(self, variant: str, source: str) -> str:
        """Return the ``published`` part of a profile's spec, as YAML."""
        same = Counter(
            (group.n, group.c, group.equivalent, group.missing, group.task_class, group.consequence_class)
            for group in self._groups[variant].values()
        )
        counts = [_count(*key, number) for key, number in sorted(same.items(), key=repr)]
        part: dict[str, Any] = {"source": source, "counts": counts}
        kinds = self._graders.get(variant, set())
        if len(kinds) == 1 and None not in kinds:
            part["grader_kind"] = next(iter(kinds))
        return yaml.safe_dump({"published": part}, sort_keys=False, allow_unicode=True, width=110)


def _count(
    n: int, c: int, equivalent: int, missing: int, task_class: str | None, consequence: str | None, groups: int
) -> Mapping[str, Any]:
    row: dict[str, Any] = {"n": n, "c": c, "groups": groups}
    if equivalent >= 0:
        row["equivalent"] = bool(equivalent)
    if missing:
        row["missing"] = missing
    strata = {"task_class": task_class, "consequence_class": consequence}
    return {**row, **{name: value for name, value in strata.items() if value is not None}}
