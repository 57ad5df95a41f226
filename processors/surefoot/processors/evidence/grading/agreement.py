"""A grader against adjudication of the same runs: how often they agree, and how each of the two errors is spread.

Rule: the runs were chosen without looking at the grader's verdict (a test set that everybody judges). Where the audit
was drawn from accepted and from rejected runs, these rates are those of the sample and not of the grader: use
``audit``. A verdict that one of the two could not give is counted apart and is in no rate.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from scipy import stats
from statsmodels.stats.inter_rater import cohens_kappa
from statsmodels.stats.proportion import confint_proportions_2indep

from surefoot.processors.evidence.estimate import Estimate, Interval
from surefoot.processors.evidence.intervals import share_interval
from surefoot.processors.evidence.types import EvidenceInputError

SOURCE: Final = "Doyle 2026, section 6.3"


@dataclass(frozen=True, slots=True)
class Confusion:
    """Runs by what the grader said and what adjudication said."""

    accepted_good: int
    accepted_bad: int  # false accepts
    rejected_good: int  # false rejects
    rejected_bad: int
    unresolved: int = 0  # one of the two could not tell

    def __post_init__(self) -> None:
        if min(self.table.min(), self.unresolved) < 0:
            raise EvidenceInputError(f"a confusion table has no negative counts, got {self}")

    @property
    def table(self) -> np.ndarray:
        """Rows: accepted, rejected. Columns: acceptable, not."""
        return np.array([[self.accepted_good, self.accepted_bad], [self.rejected_good, self.rejected_bad]])

    @property
    def runs(self) -> int:
        """Runs that both judged."""
        return int(self.table.sum())


@dataclass(frozen=True, slots=True)
class Agreement:
    """What the table says; each of them with a two-sided interval."""

    confusion: Confusion
    agreement: Estimate
    kappa: Estimate
    false_accept: Estimate
    false_reject: Estimate
    youden: Estimate
    accepted_right: Estimate  # positive predictive value
    rejected_right: Estimate  # negative predictive value


def agreement(confusion: Confusion, confidence: float = 0.95) -> Agreement:
    """All of them. Rates have Clopper-Pearson's interval, the Youden index Newcombe's, kappa the large-sample one."""
    one = confusion
    good, bad = one.accepted_good + one.rejected_good, one.accepted_bad + one.rejected_bad
    accepted, rejected = one.accepted_good + one.accepted_bad, one.rejected_good + one.rejected_bad

    def share(name: str, hits: int, of: int, what: str, nothing: str) -> Estimate:
        return rate(name, hits, of, what, nothing, confidence)

    return Agreement(
        confusion=one,
        agreement=share(
            "grader_agreement",
            one.accepted_good + one.rejected_bad,
            one.runs,
            "runs that grader and adjudication judge alike / runs that both judged",
            "no run was judged by both",
        ),
        kappa=kappa(one.table, one.runs, confidence),
        false_accept=share(
            "grader_false_accept_rate",
            one.accepted_bad,
            bad,
            "accepted runs / runs adjudicated as unacceptable",
            "no run was adjudicated as unacceptable",
        ),
        false_reject=share(
            "grader_false_reject_rate",
            one.rejected_good,
            good,
            "rejected runs / runs adjudicated as acceptable",
            "no run was adjudicated as acceptable",
        ),
        youden=_youden(one, good, bad, confidence),
        accepted_right=share(
            "positive_predictive_value",
            one.accepted_good,
            accepted,
            "acceptable runs / adjudicated runs that the grader accepts",
            "no accepted run was adjudicated",
        ),
        rejected_right=share(
            "negative_predictive_value",
            one.rejected_bad,
            rejected,
            "unacceptable runs / adjudicated runs that the grader rejects",
            "no rejected run was adjudicated",
        ),
    )


def rate(name: str, hits: int, of: int, definition: str, nothing: str, confidence: float = 0.95) -> Estimate:
    """A share of runs with Clopper-Pearson's interval; undefined, with the reason ``nothing``, of no runs."""
    intervals = (share_interval(hits, of, sides="two", confidence=confidence, unit="run"),) if of else ()
    return _estimate(name, hits / of if of else None, of, definition, None if of else nothing, intervals)


def kappa(table: np.ndarray, runs: int, confidence: float, undefined: str | None = None) -> Estimate:
    """Cohen's kappa of a table that sums to ``runs``; it may hold fractions where verdicts were weighted."""
    definition = "(agreement - agreement by chance) / (1 - agreement by chance), Cohen 1960"
    if undefined or not runs:
        return _estimate("kappa", None, runs, definition, undefined or "no run was judged by both", ())
    shares = table / table.sum()
    if np.isclose(shares.sum(axis=0) @ shares.sum(axis=1), 1):
        why = f"grader and adjudication gave one and the same verdict on all {runs} runs: chance would do that, too"
        return _estimate("kappa", None, runs, definition, why, ())
    with np.errstate(invalid="ignore"):  # of full agreement the variance is 0, or a rounding error below it
        found = cohens_kappa(table)
    value, error = float(found.kappa), float(np.sqrt(max(0.0, float(found.var_kappa))))
    spread = float(stats.norm.isf((1 - confidence) / 2)) * error
    note = f"large-sample, standard error {error:.6f}"
    interval = Interval(
        "fleiss_large_sample", confidence, "two", value - spread, value + spread, "run", gate=False, note=note
    )
    return _estimate("kappa", value, runs, definition, None, (interval,))


def _youden(one: Confusion, good: int, bad: int, confidence: float) -> Estimate:
    definition = "1 - false-accept rate - false-reject rate: 1 is a perfect grader, 0 one that knows nothing"
    if not good or not bad:
        missing = "unacceptable" if good else "acceptable"
        why = f"no run was adjudicated as {missing}" if one.runs else "no run was judged by both"
        return _estimate("youden", None, one.runs, definition, why, ())
    low, high = confint_proportions_2indep(
        one.accepted_good, good, one.accepted_bad, bad, method="newcomb", compare="diff", alpha=1 - confidence
    )
    interval = Interval("newcombe", confidence, "two", float(low), float(high), "run", gate=False, note="approximate")
    value = one.accepted_good / good - one.accepted_bad / bad
    return _estimate("youden", value, one.runs, definition, None, (interval,))


def _estimate(
    name: str, value: float | None, runs: int, definition: str, reason: str | None, intervals: tuple[Interval, ...]
) -> Estimate:
    return Estimate(
        name=name,
        variant="adjudicated_runs",
        value=value,
        k=None,
        groups=0,
        runs=runs,
        definition=definition,
        source=SOURCE,
        reason=reason,
        intervals=intervals,
    )
