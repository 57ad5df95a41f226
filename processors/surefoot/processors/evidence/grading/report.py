"""A grader's report by task class: agreement, kappa, both errors, and the yield and Pass^k behind its verdicts.

Contract: a function of graded runs. Rule: one line is one grader, in one version, on one task class, because the same
judge errs ten times as often on another kind of task.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from surefoot.processors.evidence.estimate import Estimate
from surefoot.processors.evidence.grading.audit import GraderRates, rates
from surefoot.processors.evidence.grading.decision_grade import measured, too_coarse
from surefoot.processors.evidence.grading.propagation import corrected, propagated
from surefoot.processors.evidence.grading.reading import GradedRun, Said, class_audit
from surefoot.processors.evidence.groups import GroupTable
from surefoot.processors.evidence.measure import Counted
from surefoot.processors.evidence.profile import ClassAudit, GraderError, StratumCounts

Key = tuple[str | None, str, str | None, str | None]


@dataclass(frozen=True, slots=True)
class ClassReport:
    """One grader on one task class."""

    task_class: str | None
    grader: str
    version: str | None
    kind: str | None
    graded: int
    grader_unresolved: int
    disputed: int  # runs about which auditors disagree: unresolved by adjudication
    against: dict[str, int]  # what it was held against: audit, human, executable
    audit: ClassAudit
    rates: GraderRates
    k: int
    strict: Estimate  # Pass^k behind the verdicts
    graded_yield: float | None
    grader_error: GraderError
    decision_grade: bool
    reasons: list[str]


def report(
    runs: Iterable[GradedRun], *, k: int | None = None, budget: float | None = None, confidence: float = 0.95
) -> list[ClassReport]:
    """Each grader on each task class, those without a more trusted one beside them only if they were audited.

    ``k``: of Pass^k; the most common number of graded runs of a group where it is None. ``budget``: the share of runs
    that the grader has to govern.
    """
    found: defaultdict[Key, list[tuple[GradedRun, Said]]] = defaultdict(list)
    for run in runs:
        for said in run.verdicts:
            found[run.task_class, said.grader, said.version, said.kind].append((run, said))
    return [
        _of_class(key, rows, k, budget, confidence)
        for key, rows in sorted(found.items(), key=lambda item: [str(one) for one in item[0]])
    ]


def _of_class(
    key: Key, rows: list[tuple[GradedRun, Said]], k: int | None, budget: float | None, confidence: float
) -> ClassReport:
    told = [(run, said) for run, said in rows if said.verdict != "unresolved"]
    pairs = [(run.group, said.verdict == "pass", run.reference(said)) for run, said in told]
    audit = class_audit(key[0], pairs)
    error = measured([audit], confidence)
    coarse = None if budget is None else too_coarse(error, budget)
    exact = key[3] == "executable"
    reasons = [*error.reasons, *([coarse] if coarse else [])]
    if exact:
        reasons = ["an executable check decides by definition; what adjudication says of it stands here for you"]
    against = Counter(_source(run, one) for (run, _), (_, _, one) in zip(told, pairs, strict=True) if one is not None)
    groups: defaultdict[str, list[bool]] = defaultdict(list)
    for group, accepted, _ in pairs:
        groups[group].append(accepted)
    size = k or (Counter(len(one) for one in groups.values()).most_common(1)[0][0] if groups else 1)
    return ClassReport(
        task_class=key[0],
        grader=key[1],
        version=key[2],
        kind=key[3],
        graded=len(told),
        grader_unresolved=len(rows) - len(told),
        disputed=sum(bool(run.rivals) for run, _ in told),
        against=dict(sorted(against.items())),
        audit=audit,
        rates=rates(audit, confidence),
        k=size,
        strict=_strict(audit, list(groups.values()), size, confidence),
        graded_yield=float(np.mean([np.mean(one) for one in groups.values()])) if groups else None,
        grader_error=error,
        decision_grade=exact or (error.decision_grade and coarse is None),
        reasons=reasons,
    )


def _strict(audit: ClassAudit, groups: list[list[bool]], k: int, confidence: float) -> Estimate:
    stratum = StratumCounts(task_class=audit.task_class, consequence_class=None, horizon=None, outcomes=[], ratios={})
    table = GroupTable.from_counts([len(one) for one in groups], [sum(one) for one in groups])
    counted = Counted((stratum,), k, table, np.zeros(len(table), dtype=np.int64), "")
    found = corrected(counted, [audit], k)
    interval = propagated(counted, [audit], "strict_repeated_success_at_k", "two", confidence)
    return found if interval is None else replace(found, intervals=(interval,))


def _source(run: GradedRun, reference: Said) -> str:
    return "audit" if reference is run.audit else reference.kind or "other"
