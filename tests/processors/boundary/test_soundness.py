"""Attempts to get a boundary cleared that must not be."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest

from support.profiles import boundary, count, profile
from surefoot.processors.boundary.check import Decision, check_boundary
from surefoot.processors.evidence.profile import Profile, content_hash
from surefoot.processors.yaml_models import FileError

GOOD = [count(3, 3, 400)]
WRONG = {"indicator": "consistent_wrong_rate", "comparison": "<=", "bound": 0.02}
YIELD = {"indicator": "outcome_yield", "comparison": ">=", "bound": 0.95}


def decide(made: Profile, **changes: Any) -> Decision:
    return check_boundary(made, boundary(**changes), date(2026, 10, 1))


def changed(made: Profile, **evidence: Any) -> Profile:
    """With other evidence, and with a hash that fits: built so, or forged with care."""
    other = made.model_copy(update={"evidence": made.evidence.model_copy(update=evidence)})
    return other.model_copy(update={"content_hash": content_hash(other)})


def reasons(decision: Decision) -> str:
    return "; ".join(reason.what for reason in decision.reasons)


def test_runs_without_a_verdict_count_against_the_agent() -> None:
    whole = decide(profile(GOOD), gates=[YIELD, WRONG])
    assert whole.cleared
    # 4 % of the runs are not judged, all of the same groups: as they were dropped, the rest was flawless.
    dropped = profile([count(3, 3, 384), count(0, 0, 16, missing=3)])
    decision = decide(dropped, gates=[YIELD, WRONG])
    assert [gate.status for gate in decision.gates] == ["failed", "failed"]
    assert decision.gates[0].bound is not None
    assert decision.gates[0].bound < 0.96
    assert "48 runs without a verdict count as what makes each bound worse" in decision.notes


@pytest.mark.parametrize(
    ("indicator", "comparison"),
    [
        ("mixed_outcome_rate", "<="),
        ("consistent_wrong_rate", "<="),
        ("non_equivalent_repeated_failure_rate", "<="),
        ("equivalent_outcome_agreement", ">="),
        ("strict_repeated_success_at_k", ">="),
    ],
)
def test_without_a_verdict_is_what_makes_the_bound_worse(indicator: str, comparison: str) -> None:
    # Of one group in ten, failed twice in the same way, the third verdict is missing, and of one all are.
    made = profile([count(3, 3, 320), count(2, 0, 40, True, missing=1), count(0, 0, 40, missing=3)])
    gate = {"indicator": indicator, "comparison": comparison, "bound": 0.5}
    (found,) = decide(made, gates=[gate]).gates
    assert found.bound is not None
    assert found.bound < 0.8 if comparison == ">=" else found.bound > 0.2


def test_a_stratum_whose_verdicts_are_missing_does_not_hide_behind_the_others() -> None:
    counts = [count(3, 3, 400), count(1, 1, 40, missing=2, consequence_class="irreversible")]
    population = {"task_class": "reconcile", "consequence_class": ["irreversible", "reversible"]}
    made = profile(counts, task_population=population)
    validity = {**boundary().validity.model_dump(mode="json"), "task_population": population}
    gate = {**YIELD, "bound": 0.9, "stratum": {"consequence_class": "irreversible"}}
    decision = decide(made, gates=[gate], validity=validity)
    assert decision.gates[0].bound is not None
    assert decision.gates[0].bound < 0.5


def test_failing_all_of_more_runs_than_k_is_not_failing_k() -> None:
    made = profile([count(10, 10, 396), count(10, 1, 4)])
    decision = decide(made, gates=[WRONG])
    assert decision.gates[0].status == "undefined"
    assert "more than k = 3" in decision.gates[0].why
    asked = {"groups": 30, "runs": 90, "k": 2, "verdict_coverage": 0.95}
    assert any("rarer" in note for note in decide(profile(GOOD), gates=[WRONG], minimum_evidence=asked).notes)


@pytest.mark.parametrize(
    ("population", "expected"),
    [
        ({"task_class": "other"}, "task_population.task_class is other, and runs are of reconcile"),
        (
            {"consequence_class": ["reversible", "irreversible"]},
            "task_population.consequence_class has irreversible, and no run is of it",
        ),
    ],
    ids=["other work", "the easy stratum only"],
)
def test_the_runs_must_be_of_the_declared_population(population: dict[str, Any], expected: str) -> None:
    declared = {"task_class": "reconcile", "consequence_class": "reversible", **population}
    validity = {**boundary().validity.model_dump(mode="json"), "task_population": declared}
    decision = decide(profile(GOOD, task_population=declared), validity=validity)
    assert not decision.cleared
    assert reasons(decision) == expected


def test_forged_numbers_are_found_although_the_hash_fits() -> None:
    made = profile(GOOD)
    more = changed(made, groups=4000)
    assert "its counts 400 and 1200" in reasons(decide(more))
    told = made.indicators.model_copy(
        update={"outcome_yield": made.indicators.outcome_yield.model_copy(update={"value": 0.5})}
    )
    forged = made.model_copy(update={"indicators": told})
    forged = forged.model_copy(update={"content_hash": content_hash(forged)})
    assert "do not follow from its counts" in reasons(decide(forged))


def test_evidence_of_the_lake_needs_versions_and_one_run_a_repetition() -> None:
    made = profile(GOOD)
    assert "recorded no versions" in reasons(decide(changed(made, source="lake")))
    tally = made.evidence.tally.model_copy(update={"same_number": 2})
    assert "2 runs share their repetition number" in reasons(decide(changed(made, tally=tally)))


def test_rules_that_were_checked_on_few_runs_say_little_of_the_rest() -> None:
    made = profile(GOOD)
    tally = made.evidence.tally.model_copy(update={"with_process_verdict": 60})
    gate = {"indicator": "policy_compliance_rate", "comparison": ">=", "bound": 0.9}
    assert "0.05 of the runs have a process verdict" in reasons(decide(changed(made, tally=tally), gates=[gate]))


@pytest.mark.parametrize("gate", [{**YIELD, "bound": 0.0}, {**WRONG, "bound": 1.0}])
def test_a_gate_that_cannot_fail_is_refused(gate: dict[str, Any]) -> None:
    with pytest.raises(FileError, match="the gate decides nothing"):
        boundary(gates=[gate])


def test_counts_that_nobody_can_have_are_refused() -> None:
    with pytest.raises(FileError, match="groups"):
        profile([count(3, 3, 10**12)])
