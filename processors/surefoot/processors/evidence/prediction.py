"""Does the agent's confidence tell which runs fail? Calibration, discrimination, Brier score, risk and coverage.

Rule: only runs with both a confidence and a verdict count, the others are left out and counted. Runs are pooled, as
published, so an interval for these figures must still resample whole tasks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.integrate import trapezoid
from sklearn.metrics import auc, mean_squared_error

from surefoot.processors.evidence.consistency import RABANSER
from surefoot.processors.evidence.estimate import Estimate
from surefoot.processors.evidence.groups import FloatArray, GroupsError, GroupTable
from surefoot.processors.evidence.run_columns import groups_with, stretches

TiesVariant = Literal["ties_averaged", "ties_by_order"]
BINS = 10
GRID = 100


@dataclass(frozen=True, slots=True)
class RiskCoverage:
    """What share of accepted runs is wrong when only the most confident ones are accepted."""

    score: Estimate
    coverage: FloatArray
    risk: FloatArray


@dataclass(frozen=True, slots=True)
class Predictions:
    """What confidences are worth, four ways."""

    calibration: Estimate
    discrimination: Estimate
    brier: Estimate
    risk_coverage: RiskCoverage


def predictions(groups: GroupTable) -> Predictions:
    """Return all four, with one sort of the confidences: it is most of what each of them takes."""
    known = _known(groups)
    blocks = _blocks(known)
    return Predictions(
        _calibration(known),
        _discrimination(known, blocks),
        _brier(known),
        _risk_coverage(known, "ties_averaged", _averaged(blocks)),
    )


def calibration(groups: GroupTable) -> Estimate:
    """Return P_cal = 1 - ECE over ten bins of equal width.

    By hand: scikit-learn's calibration_curve gives no bin sizes and closes bins on the other side.
    """
    return _calibration(_known(groups))


def _calibration(known: _Known) -> Estimate:
    value = None if known.nothing else 1 - expected_calibration_error(known.confidence, known.outcome)
    definition = "1 - sum of n_b/N |mean outcome - mean confidence|, bins [a,b), the last one closed"
    return _estimate("calibration", f"ece_equal_width_{BINS}", known, value, definition)


def expected_calibration_error(confidence: FloatArray, outcome: FloatArray) -> float:
    """Return ECE of confidences in 0..1 against outcomes 0 or 1."""
    edges = np.linspace(0, 1, BINS + 1)
    bins = np.minimum(np.searchsorted(edges, confidence, side="right") - 1, BINS - 1)
    gaps = np.bincount(bins, weights=outcome - confidence, minlength=BINS)
    return float(np.abs(gaps).sum() / len(confidence))


def discrimination(groups: GroupTable) -> Estimate:
    """Return P_AUROC: the chance that an acceptable run has the higher confidence, ties counting half."""
    known = _known(groups)
    return _discrimination(known, _blocks(known))


def _discrimination(known: _Known, blocks: _Blocks) -> Estimate:
    # roc_auc_score is the same area, but sorts a million confidences anew: 0.5 processor seconds.
    good, bad = (np.insert(np.cumsum(one), 0, 0.0) for one in (blocks.good, blocks.size - blocks.good))
    one_kind = not known.nothing and not (good[-1] and bad[-1])
    value = None if known.nothing or one_kind else float(auc(bad, good) / (bad[-1] * good[-1]))
    definition = "(concordant + ties/2) / (acceptable x unacceptable)"
    reason = "all runs ended alike: there is nothing to tell apart" if one_kind else None
    return _estimate("discrimination", "auroc", known, value, definition, reason)


def brier(groups: GroupTable) -> Estimate:
    """Return P_brier = 1 - mean squared error of the confidence, which is also R_Pred."""
    return _brier(_known(groups))


def _brier(known: _Known) -> Estimate:
    # brier_score_loss is the same mean, but looks ten times as long for what the labels could mean.
    value = None if known.nothing else 1 - float(mean_squared_error(known.outcome, known.confidence))
    return _estimate("brier", "one_minus_loss", known, value, "1 - mean of (confidence - outcome)^2")


def risk_coverage(groups: GroupTable, *, variant: TiesVariant = "ties_averaged") -> RiskCoverage:
    """Return the risk-coverage curve and P_rc, 1 where confidence orders as well as can be, 0 as badly as chance.

    ``ties_by_order`` is the published code: runs of equal confidence count in the order in which they stand, which
    means nothing. ``ties_averaged`` is its mean over all such orders.
    """
    known = _known(groups)
    if variant == "ties_by_order":
        return _risk_coverage(known, variant, known.outcome[np.argsort(-known.confidence, kind="stable")])
    return _risk_coverage(known, variant, _averaged(_blocks(known)))


def _risk_coverage(known: _Known, variant: TiesVariant, ordered: FloatArray) -> RiskCoverage:
    coverage = np.linspace(0, 1, GRID)
    if known.nothing:
        empty = np.empty(0)
        score = _estimate("risk_coverage", f"grid_{GRID};{variant}", known, None, _RISK)
        return RiskCoverage(score, empty, empty)
    risk = _risks(ordered, coverage)
    best = _risks((np.arange(known.outcome.size) < known.outcome.sum()).astype(np.float64), coverage)
    area, least = float(trapezoid(risk, coverage)), float(trapezoid(best, coverage))
    most = 1 - float(known.outcome.mean())
    value = float(np.clip(1 - (area - least) / (most - least), 0, 1)) if most - least > 1e-8 else None
    reason = None if value is not None else "all runs ended alike: no order is better than another"
    score = _estimate("risk_coverage", f"grid_{GRID};{variant}", known, value, _RISK, reason)
    return RiskCoverage(score, coverage, risk)


_RISK = "clip(1 - (AURC - AURC of the best order) / (error rate - AURC of the best order), 0, 1)"


@dataclass(frozen=True, slots=True)
class _Known:
    confidence: FloatArray
    outcome: FloatArray
    groups: int
    left_out: int

    @property
    def nothing(self) -> bool:
        return not len(self.outcome)


@dataclass(frozen=True, slots=True)
class _Blocks:
    """Runs of each different confidence, and the acceptable ones of them, the highest confidence first."""

    size: FloatArray
    good: FloatArray


def _known(groups: GroupTable) -> _Known:
    runs = groups.runs
    if runs is None:
        raise GroupsError("computing prediction: these groups are counts only; build them with GroupTable.from_runs")
    confidence, verdict = runs.numbers["confidence"], runs.flags["acceptable"]
    counted = runs.counted
    both = counted & (verdict >= 0) & ~np.isnan(confidence)
    if bool(np.any((confidence[both] < 0) | (confidence[both] > 1))):
        raise GroupsError("computing prediction: a confidence is outside 0..1; divide percentages by 100")
    return _Known(
        confidence=confidence[both],
        outcome=verdict[both].astype(np.float64),
        groups=groups_with(runs, both),
        left_out=int((counted & ~both).sum()),
    )


def _blocks(known: _Known) -> _Blocks:
    # Two sorts of numbers take a quarter of the time of one that also moves the outcomes.
    different, _, size = stretches(np.sort(known.confidence))
    sure = np.sort(known.confidence[known.outcome == 1])
    good = np.diff(np.searchsorted(sure, different, side="right"), prepend=0)
    return _Blocks(size[::-1].astype(np.float64), good[::-1].astype(np.float64))


def _averaged(blocks: _Blocks) -> FloatArray:
    return np.repeat(blocks.good / blocks.size, blocks.size.astype(np.int64))


def _risks(outcomes: FloatArray, coverage: FloatArray) -> FloatArray:
    taken = np.maximum(1, (coverage * len(outcomes)).astype(np.int64))
    risks: FloatArray = 1 - np.cumsum(outcomes)[taken - 1] / taken
    return risks


def _estimate(
    name: str, variant: str, known: _Known, value: float | None, definition: str, reason: str | None = None
) -> Estimate:
    reasons = [reason] if reason else []
    if known.nothing:
        reasons.append("no run has both a confidence and a verdict")
    if known.left_out:
        reasons.append(f"{known.left_out} runs left out: without a confidence or a verdict")
    return Estimate(
        name=name,
        variant=variant,
        value=value,
        k=None,
        groups=known.groups,
        runs=len(known.outcome),
        definition=definition,
        source=RABANSER,
        reason="; ".join(reasons) or None,
    )
