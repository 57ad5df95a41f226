"""Corrections for grader error: published figures, simulations with a fixed seed, and where nothing can be said."""

from __future__ import annotations

import numpy as np
import pytest

from surefoot.processors.evidence.grading.correction import (
    as_share,
    corrected_strict,
    design_effect,
    lang_reiczigel,
    misclassification,
    predictive,
    rogan_gladen,
    rogan_gladen_value,
    strict_scores,
    true_counts,
    unidentified,
)
from surefoot.processors.evidence.types import EvidenceInputError


def test_rogan_gladen_to_the_digit() -> None:
    assert rogan_gladen_value(23 / 150, 0.96, 0.89) == pytest.approx(0.05098039215686287, abs=1e-15)


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        ((800, 1000, (180, 200), (140, 200)), (0.8333333333333333, 0.7635001207050817, 0.912605035131174)),
        ((984, 1000, (198, 200), (97, 100)), (0.99375, 0.97777797982921, 1.0)),
    ],
)
def test_lang_reiczigel_to_the_digit(
    counts: tuple[int, int, tuple[int, int], tuple[int, int]], expected: tuple[float, float, float]
) -> None:
    found = rogan_gladen(*counts)
    (interval,) = found.intervals
    assert (found.value, interval.low, interval.high) == pytest.approx(expected, abs=1e-13)
    assert ("cut from 1." in interval.note) == (expected[2] == 1.0)


def test_an_estimate_outside_is_told_as_it_is() -> None:
    found = rogan_gladen(2, 1000, (198, 200), (90, 100))
    assert found.value is not None
    assert found.value < 0
    assert "left [0, 1]" in (found.reason or "")
    assert "lower bound cut from -" in found.intervals[0].note


def test_a_grader_that_knows_nothing_is_not_corrected() -> None:
    for accepts, rejects in (((50, 100), (50, 100)), ((20, 100), (40, 100))):
        found = rogan_gladen(500, 1000, accepts, rejects)
        assert (found.value, found.intervals) == (None, ())
        assert "Youden" in (found.reason or "")
    assert rogan_gladen(5, 10, (3, 3), (0, 0)).value is None
    with pytest.raises(EvidenceInputError):
        rogan_gladen(11, 10, (3, 3), (3, 3))


def test_lang_reiczigel_covers() -> None:
    random = np.random.default_rng(20260916)
    for truth, se, sp, audited in ((0.8, 0.9, 0.7, 200), (0.98, 0.97, 0.9, 60), (0.5, 0.8, 0.8, 40)):
        covered = 0
        for _ in range(1000):
            share = random.binomial(600, truth * se + (1 - truth) * (1 - sp)) / 600
            accepts, rejects = random.binomial(audited, se), random.binomial(audited, sp)
            bounds = lang_reiczigel(share, 600, (accepts, audited), (rejects, audited))
            covered += bounds.low is not None and bounds.high is not None and bounds.low <= truth <= bounds.high
        assert covered >= 930  # .95 less three standard errors


def test_clusters_without_their_design_effect_cover_too_little() -> None:
    random = np.random.default_rng(20260916)
    truth, se, sp = 0.8, 0.95, 0.9
    covered = {True: 0, False: 0}
    for _ in range(400):
        good = np.where(random.random(100) < truth, 5, 0)  # a task always or never succeeds
        seen = random.binomial(good, se) + random.binomial(5 - good, 1 - sp)
        accepts, rejects = random.binomial(300, se), random.binomial(300, sp)
        effect = design_effect(np.full(100, 5), seen)
        for clustered in (True, False):
            used = 500 / effect if clustered else 500
            bounds = lang_reiczigel(seen.sum() / 500, used, (accepts, 300), (rejects, 300))
            assert bounds.low is not None
            assert bounds.high is not None
            covered[clustered] += bounds.low <= truth <= bounds.high
    assert covered[True] / 400 >= 0.92
    assert covered[False] / 400 < 0.85


def test_design_effect() -> None:
    random = np.random.default_rng(7)
    n = np.full(4000, 3)
    assert design_effect(n, random.binomial(3, 0.6, 4000)) == pytest.approx(1, abs=0.06)
    assert design_effect(n, np.where(random.random(4000) < 0.6, 3, 0)) == pytest.approx(3, abs=0.01)
    assert design_effect(n, n) == 3
    with pytest.raises(EvidenceInputError):
        design_effect([0], [0])


def test_audited_verdicts_need_the_other_form() -> None:
    """Verdicts audited by verdict: the plain form is wrong there, the one of predictive values right, and it covers."""
    random = np.random.default_rng(20260916)
    covered, plain = 0, []
    for _ in range(400):
        good = random.random(2000) < 0.9
        accepted = np.where(good, random.random(2000) < 0.95, random.random(2000) < 0.3)
        picked_accepted = random.choice(np.flatnonzero(accepted), 100, replace=False)
        picked_rejected = random.choice(np.flatnonzero(~accepted), 100, replace=False)
        right = int(good[picked_accepted].sum()), 100
        wrong = int((~good[picked_rejected]).sum()), 100
        found = predictive(int(accepted.sum()), 2000, right, wrong)
        low, high = found.intervals[0].low, found.intervals[0].high
        assert low is not None
        assert high is not None
        covered += low <= 0.9 <= high
        accepts = right[0], right[0] + 100 - wrong[0]
        rejects = wrong[0], wrong[0] + 100 - right[0]
        raw = rogan_gladen(int(accepted.sum()), 2000, accepts, rejects).value
        assert raw is not None
        plain.append(raw)
    assert covered / 400 >= 0.92
    assert np.mean(plain) > 1  # the truth is .9


def test_both_forms_agree_where_everything_was_audited() -> None:
    found = predictive(80, 100, (76, 80), (15, 20))
    other = rogan_gladen(80, 100, (76, 81), (15, 19))
    assert found.value == pytest.approx(0.81)
    assert found.value == pytest.approx(other.value or 0)


def test_predictive_without_audits() -> None:
    assert predictive(8, 10, (0, 0), (2, 2)).reason == "no accepted run was audited"
    assert predictive(8, 10, (2, 2), (0, 0)).reason == "no rejected run was audited"
    assert predictive(0, 0, (0, 0), (0, 0)).reason == "no run was graded"
    assert predictive(10, 10, (5, 5), (0, 0)).value == 1  # no rejected run is there to be audited
    low = predictive(10_000, 10_000, (50, 50), (0, 0)).intervals[0].low
    assert low is not None
    assert low < 0.98


def test_the_worked_example_through_the_matrix() -> None:
    """Doyle 2026, section 13, graded with FA .03 and FR .01: what the numbers would look like, and back."""
    truth = np.array([0.008, 0.0, 0.024, 0.968])
    graded = misclassification(3, 0.03, 0.01) @ truth
    assert graded.sum() == pytest.approx(1)
    assert graded @ np.arange(4) / 3 == pytest.approx(0.974640)
    back, wrong = true_counts(graded, 0.03, 0.01)
    assert back == pytest.approx(truth, abs=1e-12)
    assert wrong is None
    assert strict_scores(3, 3, 0.03, 0.01) @ graded == pytest.approx(0.968, abs=1e-12)
    assert strict_scores(3, 1, 0.03, 0.01) @ graded == pytest.approx(0.984, abs=1e-12)


@pytest.mark.parametrize(("n", "k"), [(3, 3), (5, 2), (5, 5), (8, 3)])
def test_scores_are_the_solution_of_the_matrix(n: int, k: int) -> None:
    graded = np.random.default_rng(n).dirichlet(np.ones(n + 1))
    solved, _ = true_counts(graded, 0.1, 0.2)
    assert strict_scores(n, k, 0.1, 0.2) @ graded == pytest.approx(strict_scores(n, k, 0, 0) @ solved)


def test_pass_hat_k_is_recovered_with_unequal_groups() -> None:
    random = np.random.default_rng(20260916)
    n = random.integers(3, 7, 60_000)
    chance = random.beta(8, 1, 60_000)
    good = random.binomial(n, chance)
    fa, fr = np.where(np.arange(60_000) % 2, 0.2, 0.05), np.where(np.arange(60_000) % 2, 0.1, 0.02)
    seen = random.binomial(good, 1 - fr) + random.binomial(n - good, fa)
    found = corrected_strict(list(zip(n.tolist(), seen.tolist(), fa.tolist(), fr.tolist(), strict=True)), 3)
    assert found.value == pytest.approx(8 / 11, abs=0.008)
    naive = corrected_strict([(int(a), int(b), 0.0, 0.0) for a, b in zip(n, seen, strict=True)], 3)
    assert naive.value is not None
    assert naive.value < 0.68


def test_where_pass_hat_k_cannot_be_told() -> None:
    assert "Youden" in (unidentified(3, 0.6, 0.4) or "")
    assert "condition" in (unidentified(40, 0.3, 0.3) or "")
    assert corrected_strict([(3, 2, 0.6, 0.5)], 3).value is None
    assert corrected_strict([(2, 2, 0.0, 0.0)], 3).reason == "no group has 3 graded runs"
    found = corrected_strict([(3, 3, 0.1, 0.1)], 3)
    assert found.value is not None
    assert found.value > 1
    assert "left [0, 1]" in (found.reason or "")
    with pytest.raises(EvidenceInputError):
        strict_scores(2, 3, 0, 0)
    with pytest.raises(EvidenceInputError):
        true_counts([0, 0, 0], 0.1, 0.1)
    assert "below 0" in (true_counts([0, 0, 0, 10], 0.1, 0.1)[1] or "")


def test_what_to_make_of_an_estimate_that_is_no_share() -> None:
    # Nine groups in ten are accepted throughout, and the grader is said to reject a tenth: sampling explains it.
    near = [(3, 3, 0.0, 0.01), (3, 2, 0.0, 0.01)]
    found = as_share(corrected_strict(near, 3, [99, 1]), near, 3, [99, 1])
    assert found.value == 1
    assert "standard errors" in (found.reason or "")
    # Never mixed, as if every verdict of a group were the same one: not what independent errors look like.
    far = [(3, 3, 0.3, 0.3), (3, 0, 0.3, 0.3)]
    raw = corrected_strict(far, 3, [900, 100])
    assert raw.value is not None
    assert raw.value > 1
    told = as_share(raw, far, 3, [900, 100])
    assert told.value is None
    assert f"the correction gives {raw.value:.4f}, which is no share" in (told.reason or "")
    inside = corrected_strict(near, 3, [9, 1])
    assert inside.value == pytest.approx(corrected_strict([near[0]] * 9 + [near[1]], 3).value)
    assert as_share(inside, near, 3, [9, 1]) is inside
