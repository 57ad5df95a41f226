"""Attempts to evidence: one function makes run groups of them, whoever made them, and one sums a run up.

Rule: an attempt that the infrastructure ended is in no denominator, one that nobody judged is missing, and both are
counted; a failure of the agent is never left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from surefoot.evaluation.records import SPARED, Attempt
from surefoot.processors.evidence.classes import class_counts
from surefoot.processors.evidence.estimate import Estimate, Interval
from surefoot.processors.evidence.groups import EQUIVALENCE_RULE, GroupTable
from surefoot.processors.evidence.intervals import mean_interval, share_interval
from surefoot.processors.evidence.repeated import outcome_yield, pass_hat_k
from surefoot.processors.evidence.types import pass_hat_types, yield_types


def group_table(attempts: Iterable[Attempt]) -> GroupTable:
    """Return the run groups of attempts, one per (variant, task); ids are ``variant/task``."""
    rows = sorted(attempts, key=lambda attempt: attempt.slot)
    return GroupTable.from_runs(_columns(rows), equivalence_rule=_rule(rows))


def of_variant(attempts: Iterable[Attempt], variant: str) -> list[Attempt]:
    """Return the attempts of one variant."""
    return [attempt for attempt in attempts if attempt.variant == variant]


def variants(attempts: Iterable[Attempt]) -> tuple[str, ...]:
    """Return the variants in the order in which they appear."""
    return tuple(dict.fromkeys(attempt.variant for attempt in attempts))


def _columns(rows: Sequence[Attempt]) -> pa.Table:
    seconds = [attempt.seconds for attempt in rows]
    return pa.table(
        {
            "group_id": pa.array([f"{attempt.variant}/{attempt.task_id}" for attempt in rows], pa.string()),
            "task_id": pa.array([attempt.task_id for attempt in rows], pa.string()),
            "run_id": pa.array([attempt.attempt_id for attempt in rows], pa.string()),
            "repetition": pa.array([attempt.repetition for attempt in rows], pa.int64()),
            "task_class": pa.array([attempt.task_class for attempt in rows], pa.string()),
            "consequence_class": pa.array([attempt.consequence_class for attempt in rows], pa.string()),
            "acceptable": pa.array([attempt.acceptable for attempt in rows], pa.bool_()),
            "compliant": pa.array([_compliant(attempt) for attempt in rows], pa.bool_()),
            "available": pa.array([attempt.outcome == "ok" for attempt in rows], pa.bool_()),
            "disturbed": pa.array(
                [None if attempt.tool_errors is None else attempt.tool_errors > 0 for attempt in rows], pa.bool_()
            ),
            "infrastructure": pa.array([attempt.outcome in SPARED for attempt in rows], pa.bool_()),
            "signature": pa.array([attempt.signature for attempt in rows], pa.string()),
            "confidence": pa.array([attempt.confidence for attempt in rows], pa.float64()),
            "duration_ns": pa.array([None if s is None else round(s * 1e9) for s in seconds], pa.int64()),
            "cost_usd": pa.array([attempt.cost_usd for attempt in rows], pa.float64()),
            "model_calls": pa.array([attempt.model_calls for attempt in rows], pa.int64()),
            "tool_calls": pa.array([attempt.tool_calls for attempt in rows], pa.int64()),
            "tool_errors": pa.array([attempt.tool_errors for attempt in rows], pa.int64()),
            "actions": pa.array(
                [None if attempt.actions is None else list(attempt.actions) for attempt in rows], pa.list_(pa.string())
            ),
        }
    )


def _compliant(attempt: Attempt) -> bool | None:
    kept = [verdict.verdict for verdict in attempt.verdicts if verdict.kind == "process"]
    if "fail" in kept:
        return False
    return True if "pass" in kept else None


def _rule(rows: Sequence[Attempt]) -> str:
    rules = sorted({attempt.equivalence for attempt in rows if attempt.equivalence is not None})
    return ";".join([EQUIVALENCE_RULE, *rules])


@dataclass(frozen=True, slots=True)
class Worst:
    """A task that did badly: ``c`` of ``n`` acceptable, and why its first unacceptable attempt was not."""

    task_id: str
    c: int
    n: int
    attempt: Attempt | None


@dataclass(frozen=True, slots=True)
class Summary:
    """One variant of a run, for people."""

    variant: str
    k: int
    mean: Estimate
    mean_interval: Interval | None
    strict: Estimate
    strict_interval: Interval | None
    classes: dict[str, int]
    groups: int
    judged: int
    missing: int  # nobody could judge them
    infrastructure: int
    failed: int  # ended in error or beyond the time limit; they count as unacceptable
    cost_usd: float | None  # of the attempts whose cost is known
    cost_unknown: int
    tokens: int
    worst: tuple[Worst, ...]


def summaries(attempts: Sequence[Attempt], k: int) -> list[Summary]:
    """Return each variant's figures at ``k``; worst tasks first."""
    return [_summary(of_variant(attempts, name), name, k) for name in variants(attempts)]


def _summary(attempts: Sequence[Attempt], variant: str, k: int) -> Summary:
    groups = group_table(attempts)
    known = [attempt.cost_usd for attempt in attempts if attempt.cost_usd is not None]
    return Summary(
        variant=variant,
        k=k,
        mean=outcome_yield(groups),
        mean_interval=_mean_interval(groups),
        strict=pass_hat_k(groups, k),
        strict_interval=strict_interval(groups, k),
        classes=class_counts(groups),
        groups=len(groups),
        judged=int(groups.n.sum()),
        missing=int(groups.missing.sum()),
        infrastructure=int(groups.infrastructure.sum()),
        failed=sum(attempt.outcome in {"error", "timeout"} for attempt in attempts),
        cost_usd=sum(known) if known else None,
        cost_unknown=len(attempts) - len(known),
        tokens=sum((attempt.input_tokens or 0) + (attempt.output_tokens or 0) for attempt in attempts),
        worst=_worst(groups, attempts),
    )


def strict_interval(groups: GroupTable, k: int) -> Interval | None:
    """Return a two-sided 95 % interval of Pass^k; exact where every group has k runs. None where no group has."""
    enough = groups.n >= k
    n, c = groups.n[enough], groups.c[enough]
    if not len(n):
        return None
    if bool(np.all(n == k)):
        return share_interval(int((c == k).sum()), len(n), sides="two")
    return mean_interval(pass_hat_types(n, c, k), sides="two")


def _mean_interval(groups: GroupTable) -> Interval | None:
    judged = groups.n > 0
    return mean_interval(yield_types(groups.n[judged], groups.c[judged]), sides="two") if judged.any() else None


def _worst(groups: GroupTable, attempts: Sequence[Attempt]) -> tuple[Worst, ...]:
    failed: dict[str, Attempt] = {}
    for attempt in sorted(attempts, key=lambda each: each.repetition):
        if attempt.acceptable is False and attempt.outcome not in SPARED:
            failed.setdefault(attempt.task_id, attempt)
    rows = [
        Worst(str(task), int(c), int(n), failed.get(str(task)))
        for task, c, n in zip(groups.task_id, groups.c, groups.n, strict=True)
        if n
    ]
    return tuple(sorted(rows, key=lambda row: (row.c / row.n, -row.n, row.task_id)))
