"""Indicators that are shares of runs: availability, policy compliance, recovery, autonomy, intervention.

Rule: what nobody judged is left out and counted, never assumed good or bad. Each indicator also comes as counts per
task group (``counts``), because intervals resample whole groups.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from surefoot.processors.evidence.estimate import Estimate
from surefoot.processors.evidence.groups import GroupsError, GroupTable, IntArray, RunTable, Where
from surefoot.processors.evidence.repeated import PAPER

Indicator = Literal[
    "availability", "policy_compliance", "recovery_success", "autonomous_coverage", "intervention_success"
]


@dataclass(frozen=True, slots=True)
class _Rate:
    asked: Callable[[RunTable], Where]  # the runs that it is about
    known: Callable[[RunTable], Where]
    good: Callable[[RunTable], Where]
    definition: str


def _flag(name: str, value: int) -> Callable[[RunTable], Where]:
    return lambda runs: runs.flags[name] == value


def _told(name: str) -> Callable[[RunTable], Where]:
    return lambda runs: runs.flags[name] >= 0


def _every(runs: RunTable) -> Where:
    return np.ones(len(runs), dtype=np.bool_)


_RATES: dict[Indicator, _Rate] = {
    "availability": _Rate(
        _every, _told("available"), _flag("available", 1), "runs that ended as an answer / runs that ended or vanished"
    ),
    "policy_compliance": _Rate(
        _every, _told("compliant"), _flag("compliant", 1), "runs whose process verdicts all pass / runs with any"
    ),
    # A recovery that ended in a wrong final state is none, so the outcome verdict decides.
    "recovery_success": _Rate(
        _flag("disturbed", 1),
        _told("acceptable"),
        _flag("acceptable", 1),
        "acceptable runs / runs in which a tool failed",
    ),
    # Escalated, handed over and refused runs stay in the denominator: coverage is what says that they exist.
    "autonomous_coverage": _Rate(
        _every, _told("autonomous"), _flag("autonomous", 1), "runs to their end without anybody's help / all runs"
    ),
    "intervention_success": _Rate(
        _flag("intervened", 1),
        _told("acceptable"),
        _flag("acceptable", 1),
        "acceptable runs / runs with an intervention",
    ),
}


INDICATORS: tuple[Indicator, ...] = tuple(_RATES)


def counts(groups: GroupTable, indicator: Indicator) -> tuple[IntArray, IntArray]:
    """Return per group (runs that were asked and judged, of those the good ones)."""
    runs = _runs(groups, indicator)
    judged, good = judged_runs(groups, indicator)
    rows = len(groups)
    n = np.bincount(runs.group[judged], minlength=rows).astype(np.int64)
    return n, np.bincount(runs.group[good], minlength=rows).astype(np.int64)


def judged_runs(groups: GroupTable, indicator: Indicator) -> tuple[Where, Where]:
    """Return per run (whether it was asked and judged, whether it is also good)."""
    runs = _runs(groups, indicator)
    rate = _RATES[indicator]
    judged = rate.asked(runs) & rate.known(runs) & _counted(runs, indicator)
    return judged, judged & rate.good(runs)


def run_rate(groups: GroupTable, indicator: Indicator) -> Estimate:
    """Return the share of runs (pooled over groups), with what it left out."""
    runs = _runs(groups, indicator)
    rate = _RATES[indicator]
    n, good = counts(groups, indicator)
    total, unknown = int(n.sum()), rate.asked(runs) & ~rate.known(runs) & _counted(runs, indicator)
    reasons = [f"{int(unknown.sum())} runs left out: nobody judged them"] if unknown.any() else []
    if not total:
        reasons.insert(0, "no run was asked and judged")
    return Estimate(
        name=indicator,
        variant="pooled_runs",
        value=int(good.sum()) / total if total else None,
        k=None,
        groups=int((n > 0).sum()),
        runs=total,
        definition=rate.definition,
        source=f"{PAPER}, section 6.1",
        reason="; ".join(reasons) or None,
    )


def _counted(runs: RunTable, indicator: Indicator) -> Where:
    # An infrastructure error says nothing about the agent, but it is what availability is about.
    return _every(runs) if indicator == "availability" else runs.flags["infrastructure"] != 1


def _runs(groups: GroupTable, indicator: Indicator) -> RunTable:
    if groups.runs is None:
        raise GroupsError(f"computing {indicator}: these groups are counts only; build them with GroupTable.from_runs")
    return groups.runs
