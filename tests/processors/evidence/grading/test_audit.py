"""The grader's error from an audit of its verdicts, what it does to bounds, and when it is too large to decide."""

from __future__ import annotations

import dataclasses
from datetime import date

import numpy as np
import pytest

from support.profiles import boundary, count
from support.profiles import profile as published
from surefoot.processors.boundary.check import check_boundary
from surefoot.processors.evidence.grading.audit import rates, side_of, wrong_share
from surefoot.processors.evidence.grading.decision_grade import contradiction, measured, too_coarse
from surefoot.processors.evidence.grading.propagation import bounds_behind, estimate_behind, indicators_behind
from surefoot.processors.evidence.measure import Counted
from surefoot.processors.evidence.profile import AuditedVerdicts, ClassAudit, GraderError, GraderUse, Profile, sealed


def side(runs: int, audited: int, right: int, unresolved: int = 0, effective: int | None = None) -> AuditedVerdicts:
    worth = audited if effective is None else effective
    return AuditedVerdicts(runs=runs, groups=runs, audited=audited, right=right, unresolved=unresolved, effective=worth)


def audit(accepted: AuditedVerdicts, rejected: AuditedVerdicts, name: str | None = "reconcile") -> ClassAudit:
    return ClassAudit(task_class=name, groups=accepted.groups + rejected.groups, accepted=accepted, rejected=rejected)


GOOD = audit(side(900, 300, 299), side(100, 100, 90))
USELESS = audit(side(500, 100, 50), side(500, 100, 50))


def test_error_rates_are_weighted_by_how_often_a_verdict_is_given() -> None:
    found = rates(GOOD)
    bad, good = 900 / 300 + 90, 900 * 299 / 300 + 10
    assert found.false_accept.value == pytest.approx(3 / bad)
    assert found.false_reject.value == pytest.approx(10 / good)
    assert found.agreement.value == pytest.approx((897 + 90) / 1000)
    assert found.corrected_yield.value == pytest.approx(0.907)
    for one in (found.false_accept, found.false_reject, found.youden, found.agreement):
        low, high = one.intervals[0].low, one.intervals[0].high
        assert low is not None
        assert high is not None
        assert one.value is not None
        assert low < one.value < high


def test_runs_of_a_group_are_no_independent_witnesses() -> None:
    together = side_of(["a"] * 5 + ["b"] * 5, [True] * 10, [True] * 10)
    apart = side_of(list("abcdefghij"), [True] * 10, [True] * 10)
    assert (together.groups, together.effective, apart.effective) == (2, 2, 10)
    assert wrong_share(together, 0.95)[1] > wrong_share(apart, 0.95)[1]


def test_what_adjudication_could_not_tell_counts_against_the_grader() -> None:
    clear, unclear = side(100, 50, 50), side(100, 45, 45, unresolved=5)
    assert wrong_share(unclear, 0.95)[1] > wrong_share(clear, 0.95)[1]
    assert rates(audit(unclear, side(10, 10, 10))).unresolved == 5
    assert rates(audit(unclear, side(10, 10, 10))).accepted_right.value == 1


def test_nothing_is_known_of_verdicts_that_nobody_audited() -> None:
    assert wrong_share(side(10, 0, 0), 0.95) == (0, 1)
    assert wrong_share(side(0, 0, 0), 0.95) == (0, 0)
    assert rates(audit(side(10, 0, 0), side(5, 5, 5))).youden.reason == "no accepted run was audited"
    assert "nothing shows whether it can tell" in (rates(audit(side(10, 9, 9), side(0, 0, 0))).youden.reason or "")
    assert rates(audit(side(0, 0, 0), side(0, 0, 0))).youden.reason == "no run was graded"


def test_decision_grade_in_words() -> None:
    good = measured([GOOD])
    assert good.decision_grade
    assert "400 audited runs; Youden index reconcile 0.95" in good.reasons[0]
    assert good.smallest_budget == pytest.approx(2 * 0.0387, abs=0.01)
    assert good.agreement["adjudicated"] == 400
    useless = measured([GOOD, audit(*(USELESS.accepted, USELESS.rejected), name="refund")])
    assert not useless.decision_grade
    assert useless.reasons == [
        one for one in useless.reasons if one.startswith("task class refund: the grader's Youden")
    ]
    assert "not above 0" in useless.reasons[0]
    assert not measured([]).decision_grade
    assert "audited" in measured([audit(side(10, 0, 0), side(5, 0, 0))]).reasons[0]


def test_a_judge_of_three_per_cent_cannot_govern_one_per_cent() -> None:
    judge = measured([audit(side(98_000, 9800, 9506), side(2000, 2000, 1940))])
    assert judge.decision_grade
    assert "more than 0.5 of the budget of 0.01" in (too_coarse(judge, 0.01) or "")
    assert too_coarse(judge, 0.1) is None
    assert too_coarse(GraderError(decision_grade=True, reasons=["an exact oracle"]), 0.0001) is None


def graded(grader: GraderError, counts: list[dict[str, object]]) -> Profile:
    made = published(counts)
    fields = {name: getattr(made, name) for name in Profile.model_fields if name != "content_hash"}
    counted = Counted.of(made.evidence, 3)
    told = indicators_behind(counted, grader, 0.95)
    (stratum,) = made.strata
    strata = [stratum.model_copy(update={"indicators": told})]
    return sealed({**fields, "grader": grader, "indicators": told, "strata": strata})


COUNTS: list[dict[str, object]] = [
    {"n": 3, "c": 3, "groups": 950, "task_class": "reconcile"},
    {"n": 3, "c": 2, "groups": 40, "task_class": "reconcile"},
    {"n": 3, "c": 0, "groups": 10, "equivalent": True, "task_class": "reconcile"},
]
AUDITED = audit(side(2930, 900, 900), side(70, 60, 50))


def test_bounds_carry_the_error() -> None:
    grader = measured([AUDITED])
    counted = Counted.of(published(COUNTS).evidence, 3)
    exact = GraderError(decision_grade=True, reasons=["exact"])
    for name in ("outcome_yield", "strict_repeated_success_at_k", "normalised_consistency_at_k"):
        with_error = bounds_behind(counted, name, "lower", 0.95, grader)
        without = bounds_behind(counted, name, "lower", 0.95, exact)
        assert with_error is not None
        assert without is not None
        assert with_error.low is not None
        assert without.low is not None
        assert with_error.low < without.low
        assert with_error.gate
    worse = bounds_behind(counted, "consistent_wrong_rate", "upper", 0.95, grader)
    assert worse is not None
    assert worse.high is not None
    assert worse.high > 0.02
    mixed = bounds_behind(counted, "mixed_outcome_rate", "upper", 0.95, grader)
    assert mixed is not None
    assert (mixed.high, mixed.gate) == (None, False)
    assert "not carried" in mixed.note
    found = estimate_behind(counted, "strict_repeated_success_at_k", grader)
    assert found.value is not None
    assert found.value > 0.95  # false rejects hid some of it
    assert "as graded 0.950000" in (found.reason or "")


def test_a_class_that_nobody_audited_has_no_bound() -> None:
    counted = Counted.of(published([{**one, "task_class": "refund"} for one in COUNTS]).evidence, 3)
    found = bounds_behind(counted, "outcome_yield", "lower", 0.95, measured([AUDITED]))
    assert found is not None
    assert found.low == 0
    assert "not corrected" in (estimate_behind(counted, "outcome_yield", measured([AUDITED])).reason or "")


def test_bounds_cover_also_when_a_task_fools_the_grader_each_time() -> None:
    """A tenth of the tasks is never done; of a quarter of those the grader accepts every run."""
    random = np.random.default_rng(20260916)
    covered = {"outcome_yield": 0, "strict_repeated_success_at_k": 0, "consistent_wrong_rate": 0}
    replications = 15  # of 200 in each of four populations none failed (docs/graders.md)
    for _ in range(replications):
        good = np.where(random.random(300) < 0.9, 3, 0)
        fooled = (good == 0) & (random.random(300) < 0.25)
        seen = np.where(fooled, 3, random.binomial(good, 0.98))
        accepted, rejected = [], []
        for group in range(300):
            accepted += [(group, good[group] == 3)] * seen[group]
            rejected += [(group, good[group] == 0)] * (3 - seen[group])
        sides = []
        for rows in (accepted, rejected):
            first = {group: place for place, (group, _) in enumerate(rows)}  # one run of each group
            drawn = set(random.permutation(list(first.values()))[:100].tolist())
            asked = [place in drawn for place in range(len(rows))]
            sides.append(side_of([group for group, _ in rows], asked, [bool(right) for _, right in rows]))
        classes = ClassAudit(task_class="reconcile", groups=300, accepted=sides[0], rejected=sides[1])
        sizes = np.bincount(seen, minlength=4)
        counts: list[dict[str, object]] = [
            {"n": 3, "c": c, "groups": int(size), "task_class": "reconcile"} for c, size in enumerate(sizes) if size
        ]
        counted = Counted.of(published(counts).evidence, 3)
        grader = measured([classes])
        for name in covered:
            found = bounds_behind(counted, name, "upper" if name == "consistent_wrong_rate" else "lower", 0.95, grader)
            assert found is not None
            covered[name] += (found.low or 0) <= 0.9 if found.high is None else found.high >= 0.1
    assert min(covered.values()) >= 0.9 * replications


def test_an_honest_grader_s_slips_do_not_pass_for_hidden_failures() -> None:
    """Three groups graded as mixed for each one that fails: an audit that found little says that they are mixed."""
    counts = [count(3, 3, 930), count(3, 2, 60), count(3, 0, 10, True)]
    audits = [audit(side(2910, 600, 594, effective=600), side(90, 60, 30, effective=60))]
    counted = Counted.of(published(counts).evidence, 3)
    found = bounds_behind(counted, "consistent_wrong_rate", "upper", 0.95, measured(audits))
    falsely_accepted = 2910 / 3000 * wrong_share(audits[0].accepted, 0.95)[1]
    assert found is not None
    assert found.high is not None
    # Each of the groups' own shares of rejected runs is in it, and the false accepts count once and not three times.
    assert (10 + 60 / 3) / 1000 + falsely_accepted < found.high < 10 / 1000 + 3 * falsely_accepted
    others = bounds_behind(counted, "non_equivalent_repeated_failure_rate", "upper", 0.95, measured(audits))
    assert others is not None
    assert others.high is not None
    assert others.high < found.high


def test_a_boundary_says_that_the_grader_is_too_coarse() -> None:
    gates = {"indicator": "outcome_yield", "comparison": ">=", "bound": 0.9}
    coarse = {**gates, "name": "fine", "bound": 0.995}
    profile = graded(measured([AUDITED]), COUNTS)
    decision = check_boundary(profile, boundary(gates=[gates]), date(2026, 10, 1))
    assert [one.what for one in decision.reasons] == []
    assert "_and_audit" in decision.gates[0].method
    decision = check_boundary(profile, boundary(gates=[coarse]), date(2026, 10, 1))
    assert "grader" in {one.code for one in decision.reasons}
    assert any("not decision-grade for fine" in one.what for one in decision.reasons)
    refused = check_boundary(graded(measured([USELESS]), COUNTS), boundary(gates=[gates]), date(2026, 10, 1))
    assert not refused.cleared
    assert any("not decision-grade: task class reconcile: the grader's Youden" in one.what for one in refused.reasons)


def test_a_profile_cannot_vouch_for_its_own_grader() -> None:
    gates = {"indicator": "outcome_yield", "comparison": ">=", "bound": 0.9}
    good = measured([AUDITED])
    forged = [
        measured([USELESS]).model_copy(update={"decision_grade": True}),
        good.model_copy(update={"smallest_budget": 0.0001}),
    ]
    for grader in forged:
        decision = check_boundary(graded(grader, COUNTS), boundary(gates=[gates]), date(2026, 10, 1))
        assert any("not what its audits give" in one.what for one in decision.reasons)
    honest = published(COUNTS)
    judge = GraderUse(name="judge", version="1", kind="model", judges="outcome", verdicts=3000)
    evidence = honest.evidence.model_copy(update={"graders": [judge]})
    fields = {name: getattr(honest, name) for name in Profile.model_fields if name != "content_hash"}
    decision = check_boundary(sealed({**fields, "evidence": evidence}), boundary(gates=[gates]), date(2026, 10, 1))
    assert any("judge judged 3000 runs, is no executable check" in one.what for one in decision.reasons)
    assert contradiction(honest) is None
    assert contradiction(graded(good, COUNTS)) is None


def test_a_profile_with_audits_can_be_read_again() -> None:
    made = graded(measured([AUDITED]), COUNTS)
    again = Profile.model_validate(made.model_dump(mode="json"))
    assert again.grader.audits == [AUDITED]
    assert dataclasses.is_dataclass(rates(again.grader.audits[0]))
