"""What a grader's verdicts say about the truth, once its error was measured.

``rogan_gladen`` needs the grader's error rates, measured on runs that were chosen without looking at its verdicts;
``predictive`` needs accepted and rejected runs that were audited afterwards. ``strict_scores`` carries the error to
Pass^k: the mean over groups of its scores is what solving the matrix of misclassified counts gives
(``misclassification``), also with unequal numbers of runs.

Rule: nothing is clamped in silence. These functions tell an estimate outside of [0, 1] as it is, with the reason, and
``as_share`` says what to make of it; a bound that was cut there says so. Verdicts on the runs of a group are taken to
err independently, given the truth.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import comb
from typing import Final

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from surefoot.processors.evidence.estimate import Estimate, Interval
from surefoot.processors.evidence.types import EvidenceInputError, Floats

ROGAN_GLADEN: Final = "Rogan and Gladen 1978; interval by Lang and Reiczigel 2014"
BEGG_GREENES: Final = "Begg and Greenes 1983: verification that depends on the verdict"
ERRORS_OUTSIDE: Final = 3  # standard errors of drawing the groups by which an estimate may be outside of [0, 1]
WORST_CONDITION: Final = 1e6  # of the matrix: beyond it six digits of the counts are lost


def design_effect(n: ArrayLike, c: ArrayLike) -> float:
    """How much more the share of accepted runs varies than with independent runs: groups of ``n`` runs, ``c`` accepted.

    The variance of a ratio over clusters, over the binomial one. Without any variation nothing can be seen of it, and
    the runs of a group are taken for one: the largest it can be.
    """
    runs, hits = np.asarray(n, dtype=float), np.asarray(c, dtype=float)
    total, groups = runs.sum(), len(runs)
    if not total:
        raise EvidenceInputError("a design effect needs at least one graded run")
    share = hits.sum() / total
    if share in {0.0, 1.0} or groups < 2:
        return float((runs**2).sum() / total)
    clustered = groups / (groups - 1) * ((hits - share * runs) ** 2).sum() / total**2
    return float(clustered / (share * (1 - share) / total))


def rogan_gladen(
    accepted: int,
    graded: int,
    true_accepts: tuple[int, int],
    true_rejects: tuple[int, int],
    *,
    confidence: float = 0.95,
    effect: float = 1.0,
) -> Estimate:
    """The share of acceptable runs: ``accepted`` of ``graded`` runs, and the grader's hits on adjudicated ones.

    ``true_accepts``: (accepted, all) of those adjudicated as acceptable; ``true_rejects``: (rejected, all) of the
    others. ``effect``: the design effect of the graded runs, which makes them so many fewer.
    """
    for hits, of in ((accepted, graded), true_accepts, true_rejects):
        if not 0 <= hits <= of:
            raise EvidenceInputError(f"a share needs 0 <= hits <= runs, got {hits} of {of}")
    definition = "(accepted share + specificity - 1) / (sensitivity + specificity - 1)"
    if not (graded and true_accepts[1] and true_rejects[1]):
        why = "the grader's errors were not measured on acceptable and on unacceptable runs"
        return _estimate("rogan_gladen", None, graded, definition, ROGAN_GLADEN, why)
    sensitivity, specificity = true_accepts[0] / true_accepts[1], true_rejects[0] / true_rejects[1]
    value = rogan_gladen_value(accepted / graded, sensitivity, specificity)
    if value is None:
        return _estimate("rogan_gladen", None, graded, definition, ROGAN_GLADEN, _no_signal(sensitivity, specificity))
    interval = lang_reiczigel(accepted / graded, graded / effect, true_accepts, true_rejects, confidence)
    return _estimate("rogan_gladen", value, graded, definition, ROGAN_GLADEN, _left(value), (interval,))


def rogan_gladen_value(share: float, sensitivity: float, specificity: float) -> float | None:
    """Rogan and Gladen's estimate as it is, also outside of [0, 1]; None if the grader knows nothing (Youden <= 0)."""
    youden = sensitivity + specificity - 1
    return None if youden <= 0 else (share + specificity - 1) / youden


def lang_reiczigel(
    share: float,
    runs: float,
    true_accepts: tuple[int, int],
    true_rejects: tuple[int, int],
    confidence: float = 0.95,
) -> Interval:
    """Two-sided bounds for the true share (Preventive Veterinary Medicine 113, 2014), ``runs`` being effective ones."""
    z = float(stats.norm.isf((1 - confidence) / 2))
    n, q = runs + z**2, (runs * share + z**2 / 2) / (runs + z**2)
    m1, m0 = true_accepts[1] + 2, true_rejects[1] + 2
    se, sp = (true_accepts[0] + 1) / m1, (true_rejects[0] + 1) / m0
    youden = se + sp - 1
    if youden <= 0:
        note = f"undefined: the Youden index, drawn to the middle, is {youden:.4f}"
        return Interval("lang_reiczigel", confidence, "two", None, None, "run", gate=False, note=note)
    middle = (q + sp - 1) / youden
    of_se, of_sp = se * (1 - se) / m1, sp * (1 - sp) / m0
    shift = 2 * z**2 * (middle * of_se - (1 - middle) * of_sp)
    spread = z * np.sqrt(q * (1 - q) / n + middle**2 * of_se + (1 - middle) ** 2 * of_sp) / youden
    return _cut("lang_reiczigel", confidence, middle + shift - spread, middle + shift + spread)


def predictive(
    accepted: int,
    graded: int,
    accepted_right: tuple[int, int],
    rejected_right: tuple[int, int],
    *,
    confidence: float = 0.95,
    effect: float = 1.0,
) -> Estimate:
    """The same from an audit of verdicts: (right, audited) of the accepted runs and of the rejected ones.

    Variances of the two audited shares are drawn to the middle (one right and one wrong more), or an audit that found
    no error would look like one that cannot err.
    """
    definition = "accepted share x PPV + rejected share x (1 - NPV)"
    for hits, of in ((accepted, graded), accepted_right, rejected_right):
        if not 0 <= hits <= of:
            raise EvidenceInputError(f"a share needs 0 <= hits <= runs, got {hits} of {of}")
    rejected = graded - accepted
    if not graded or (accepted and not accepted_right[1]) or (rejected and not rejected_right[1]):
        what = "accepted" if accepted and not accepted_right[1] else "rejected" if graded else "graded"
        why = f"no {what} run was audited" if graded else "no run was graded"
        return _estimate("predictive_values", None, graded, definition, BEGG_GREENES, why)
    q = accepted / graded
    ppv, npv = (right / of if of else 0.0 for right, of in (accepted_right, rejected_right))
    value = q * ppv + (1 - q) * (1 - npv)
    of_ppv, of_npv = (_smoothed_variance(*one) if one[1] else 0.0 for one in (accepted_right, rejected_right))
    variance = q**2 * of_ppv + (1 - q) ** 2 * of_npv + (ppv + npv - 1) ** 2 * q * (1 - q) / graded * effect
    z = float(stats.norm.isf((1 - confidence) / 2))
    spread = z * float(np.sqrt(variance))
    interval = _cut("delta_predictive_values", confidence, value - spread, value + spread)
    return _estimate("predictive_values", value, graded, definition, BEGG_GREENES, None, (interval,))


def _smoothed_variance(hits: int, of: int) -> float:
    share = (hits + 1) / (of + 2)
    return share * (1 - share) / of


def misclassification(n: int, false_accept: float, false_reject: float) -> Floats:
    """P(x accepted | a acceptable) of ``n`` runs, x by row and a by column."""
    seen = np.arange(n + 1)
    columns = []
    for good in seen:
        right = stats.binom.pmf(seen, good, 1 - false_reject)
        wrong = stats.binom.pmf(seen, n - good, false_accept)
        columns.append(np.convolve(right, wrong)[: n + 1])
    return np.array(columns).T


def true_counts(graded: ArrayLike, false_accept: float, false_reject: float) -> tuple[Floats, str | None]:
    """Distribution of acceptable runs behind that of accepted ones (groups by 0..n accepted runs), and what is wrong.

    The matrix's solution, which sums to 1 but may have negative parts: then the sample, or the error rates, do not fit.
    """
    groups = np.asarray(graded, dtype=float)
    unclear = unidentified(len(groups) - 1, false_accept, false_reject)
    if unclear or not groups.sum():
        raise EvidenceInputError(unclear or "no group was graded")
    solved = np.linalg.solve(misclassification(len(groups) - 1, false_accept, false_reject), groups / groups.sum())
    low = float(solved.min())
    return solved, f"a part of the solution is {low:.6f}, below 0" if low < -1e-12 else None


def unidentified(n: int, false_accept: float, false_reject: float) -> str | None:
    """Why the truth behind ``n`` verdicts cannot be told, or None where it can."""
    if false_accept + false_reject >= 1:
        return _no_signal(1 - false_reject, 1 - false_accept)
    condition = float(np.linalg.cond(misclassification(n, false_accept, false_reject)))
    if condition > WORST_CONDITION:
        return f"the matrix of misclassified counts of {n} runs has a condition of {condition:.2g}: nothing is left"
    return None


def strict_scores(n: int, k: int, false_accept: float, false_reject: float) -> Floats:
    """For 0..n accepted runs the score of a group whose mean over groups estimates Pass^k without bias.

    For each run (accepted - FA) / (1 - FA - FR) has the truth as its mean, and runs err independently; so the product
    over k of them has Pass^k's, and the score is its average over all choices of k of the n runs. ``k=1`` is the yield.
    """
    if not 1 <= k <= n:
        raise EvidenceInputError(f"Pass^{k} of groups of {n} runs is undefined; k is from 1 to n")
    youden = 1 - false_accept - false_reject
    if youden <= 0:
        raise EvidenceInputError(_no_signal(1 - false_reject, 1 - false_accept))
    up, down = (1 - false_accept) / youden, -false_accept / youden
    return np.array(
        [
            sum(comb(x, j) * comb(n - x, k - j) * up**j * down ** (k - j) for j in range(k + 1)) / comb(n, k)
            for x in range(n + 1)
        ]
    )


def corrected_strict(
    groups: Sequence[tuple[int, int, float, float]], k: int, times: Sequence[int] | None = None
) -> Estimate:
    """Pass^k behind the verdicts of groups, each (runs, accepted, false-accept rate, false-reject rate).

    ``times``: how many groups are like each of these, 1 where it is None. Groups with fewer than k runs are left out.
    The interval is that of ``propagation``.
    """
    definition = f"mean over groups of the unbiased Pass^{k} of runs whose verdicts err at the given rates"
    many = [1] * len(groups) if times is None else times
    used = [(one, number) for one, number in zip(groups, many, strict=True) if one[0] >= k]
    total, runs = sum(number for _, number in used), sum(one[0] * number for one, number in used)
    if not used:
        return _estimate("pass_hat_k", None, 0, definition, ROGAN_GLADEN, f"no group has {k} graded runs", k=k)
    for n, fa, fr in {(one[0], one[2], one[3]) for one, _ in used}:
        if unclear := unidentified(n, fa, fr):
            return _estimate("pass_hat_k", None, runs, definition, ROGAN_GLADEN, unclear, k=k, groups=total)
    value = _mean_and_error(used, k)[0]
    return _estimate("pass_hat_k", value, runs, definition, ROGAN_GLADEN, _left(value), k=k, groups=total)


def as_share(
    found: Estimate, groups: Sequence[tuple[int, int, float, float]], k: int, times: Sequence[int]
) -> Estimate:
    """What to tell of ``corrected_strict``'s answer: a share, or none with the reason.

    An estimate just outside of [0, 1] is an estimate of its end: sampling the groups alone moves it so far. One that is
    farther out says that the correction's assumption is wrong, and is told in the reason only.
    """
    if found.value is None or 0 <= found.value <= 1:
        return found
    _, error = _mean_and_error([(one, number) for one, number in zip(groups, times, strict=True) if one[0] >= k], k)
    end = min(1.0, max(0.0, found.value))
    if abs(found.value - end) <= ERRORS_OUTSIDE * error:
        noise = f"less than {ERRORS_OUTSIDE} standard errors ({error:.4f})"
        return replace(found, value=end, reason=f"{end:g} for {found.value:.4f}, which is outside by {noise}")
    why = (
        f"the correction gives {found.value:.4f}, which is no share: it takes the grader's errors within a group as "
        "independent, and they are not, or the audited runs are not like the others. Go by the interval, which does "
        "not take them so, and audit more groups"
    )
    return replace(found, value=None, reason=why)


def _mean_and_error(used: Sequence[tuple[tuple[int, int, float, float], int]], k: int) -> tuple[float, float]:
    """Of the scores of so many groups each; the standard error is that of drawing the groups only."""
    scores = {key: strict_scores(key[0], k, *key[1:]) for key in {(n, fa, fr) for (n, _, fa, fr), _ in used}}
    values = np.array([scores[n, fa, fr][x] for (n, x, fa, fr), _ in used])
    weights = np.array([number for _, number in used], dtype=float)
    total = weights.sum()
    mean = float(weights @ values / total)
    return mean, float(np.sqrt(weights @ (values - mean) ** 2) / total)


def _no_signal(sensitivity: float, specificity: float) -> str:
    return (
        f"the grader accepts {sensitivity:.4g} of the acceptable and {1 - specificity:.4g} of the unacceptable runs: "
        "its verdicts say nothing that could be corrected (Youden index not above 0)"
    )


def _left(value: float) -> str | None:
    if 0 <= value <= 1:
        return None
    return f"the corrected estimate {value:.6f} left [0, 1]: verdicts and measured error do not fit each other"


def _cut(method: str, confidence: float, low: float, high: float) -> Interval:
    cut = [f"{name} bound cut from {raw:.6f}" for name, raw in (("lower", low), ("upper", high)) if not 0 <= raw <= 1]
    bounds = [float(min(1.0, max(0.0, raw))) for raw in (low, high)]
    note = "; ".join(["approximate", *cut])
    return Interval(method, confidence, "two", bounds[0], bounds[1], "run", gate=False, note=note)


def _estimate(
    name: str,
    value: float | None,
    runs: int,
    definition: str,
    source: str,
    reason: str | None,
    intervals: tuple[Interval, ...] = (),
    *,
    k: int | None = None,
    groups: int = 0,
) -> Estimate:
    return Estimate(
        name=name,
        variant="corrected",
        value=value,
        k=k,
        groups=groups,
        runs=runs,
        definition=definition,
        source=source,
        reason=reason,
        intervals=intervals,
    )
