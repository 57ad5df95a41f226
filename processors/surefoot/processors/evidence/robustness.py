"""What remains of the yield when something is changed: faults, environment, wording of the task.

Rule: a ratio never stands without the two yields that it is made of. A poor agent keeps a high share of little, and the
cap at 1 hides a gain.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from surefoot.processors.evidence.consistency import RABANSER
from surefoot.processors.evidence.estimate import Estimate
from surefoot.processors.evidence.groups import GroupTable
from surefoot.processors.evidence.repeated import outcome_yield

Kind = Literal["fault", "environment", "prompt"]
RatioVariant = Literal["pooled_runs", "matched_tasks"]


@dataclass(frozen=True, slots=True)
class Robustness:
    """The ratio with its two sides, and the ratio without the cap."""

    ratio: Estimate
    baseline: Estimate
    perturbed: Estimate
    uncapped: float | None


def robustness(
    baseline: GroupTable, perturbed: GroupTable, kind: Kind, *, variant: RatioVariant = "pooled_runs"
) -> Robustness:
    """Return R of one kind of change: of all runs as published, or of tasks that both sides ran (``matched_tasks``)."""
    shared = np.intersect1d(baseline.task_id.astype(str), perturbed.task_id.astype(str))
    reasons = []
    if variant == "matched_tasks":
        sides = [side.select(np.isin(side.task_id.astype(str), shared)) for side in (baseline, perturbed)]
        before, after = (outcome_yield(side) for side in sides)
        alone = len(baseline) + len(perturbed) - len(sides[0]) - len(sides[1])
        reasons += [f"{alone} groups left out: their task was run on one side only"] if alone else []
    else:
        before, after = (outcome_yield(side, variant="pooled_runs") for side in (baseline, perturbed))
        if set(shared) != set(baseline.task_id.astype(str)) or set(shared) != set(perturbed.task_id.astype(str)):
            reasons.append(f"the two sides ran different tasks: {len(shared)} are in both")
    kept, why = _kept(before, after)
    reasons += [why] if why else []
    ratio = Estimate(
        name=f"robustness_{kind}",
        variant=variant,
        value=None if kept is None else min(kept, 1.0),
        k=None,
        groups=after.groups,
        runs=after.runs,
        definition="min(yield perturbed / yield baseline, 1)",
        source=RABANSER,
        reason="; ".join(reasons) or None,
        says=""
        if before.value is None or after.value is None
        else f"baseline {before.value:.4f} (n = {before.runs}), perturbed {after.value:.4f} (n = {after.runs})",
    )
    return Robustness(ratio=ratio, baseline=before, perturbed=after, uncapped=kept)


def robustness_index(ratios: Sequence[Estimate]) -> Estimate:
    """Return R_Rob: the mean of the ratios that are defined."""
    return _mean("robustness_index", "mean of the robustness ratios", ratios)


def aggregate(consistency: Estimate, prediction: Estimate, robust: Estimate) -> Estimate:
    """Return R, the mean of R_Con, R_Pred and R_Rob. Safety is not in it: an average would hide a rare catastrophe."""
    parts = (consistency, prediction, robust)
    whole = _mean("aggregate_without_safety", "mean of R_Con, R_Pred and R_Rob; safety is reported apart", parts)
    return replace(whole, says="One figure for comparing, not for gates: it says nothing about safety.")


def _kept(before: Estimate, after: Estimate) -> tuple[float | None, str | None]:
    if before.value is None or after.value is None:
        return None, "one side has no judged run"
    if before.value == 0:
        return None, "the baseline yield is 0: nothing could be kept"
    return after.value / before.value, None


def _mean(name: str, definition: str, parts: Sequence[Estimate]) -> Estimate:
    known = [part for part in parts if part.value is not None]
    absent = [part.name for part in parts if part.value is None]
    values = [part.value for part in known if part.value is not None]
    return Estimate(
        name=name,
        variant="+".join(f"{part.name}({part.variant})" for part in known),
        value=float(np.mean(values)) if values else None,
        k=None,
        groups=max((part.groups for part in known), default=0),
        runs=max((part.runs for part in known), default=0),
        definition=definition,
        source=RABANSER,
        reason=f"left out, undefined: {', '.join(absent)}" if absent else None,
    )
