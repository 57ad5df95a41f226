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


def test_counts_that_cite_no_run_are_accepted_in_so_many_words_only() -> None:
    made = profile(GOOD)
    asked = {"groups": 30, "runs": 90, "k": 3, "verdict_coverage": 0.95}
    decision = decide(made, minimum_evidence=asked)
    assert [(reason.code, reason.mode) for reason in decision.reasons] == [("evidence", "human_approval")]
    assert "the counts are a publication's (a test)" in reasons(decision)
    assert decide(changed(made, run_ids_sha256="sha256:0"), minimum_evidence=asked).cleared
    accepted = decide(made, minimum_evidence={**asked, "cited_runs": False})
    assert accepted.cleared
    assert "no run is cited" in accepted.notes[0]


def test_tasks_that_were_not_tried_again_after_they_failed_are_not_forgotten() -> None:
    gates = [WRONG, {"indicator": "strict_repeated_success_at_k", "comparison": ">=", "bound": 0.95}]
    abandoned = profile([count(3, 3, 400), count(1, 0, 40)])
    decision = decide(abandoned, gates=gates)
    assert [gate.status for gate in decision.gates] == ["failed", "failed"]
    assert any(note.startswith("80 attempts are not there") for note in decision.notes)
    # Those that somebody stopped, or the infrastructure, are counted as such and held against nobody.
    tally = abandoned.evidence.tally.model_copy(update={"excluded": 50, "infrastructure": 30})
    told = decide(changed(abandoned, tally=tally), gates=gates)
    assert [gate.status for gate in told.gates] == ["cleared", "cleared"]


def test_a_run_of_tomorrow_is_a_wrong_clock() -> None:
    made = changed(profile(GOOD), last_run="2026-10-02T00:00:00+00:00")
    assert "the last run ended on 2026-10-02, and today is 2026-10-01" in reasons(decide(made))
    assert check_boundary(made, boundary(), date(2026, 10, 2)).cleared


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"gates": [{**YIELD, "comparison": "<="}]}, 'write ">="'),
        ({"gates": [{**WRONG, "comparison": ">="}]}, 'write "<="'),
        ({"gates": [YIELD, {**YIELD, "bound": 0.5}]}, "gates 1 and 2 are both about outcome_yield"),
        (
            {"validity": {**boundary().validity.model_dump(mode="json"), "expires": "2026-08-31"}},
            "before it is declared",
        ),
        (
            {"joint_rule": {"rule": "all", "purpose": "x", "declared": "2026-09-01"}},
            "multiplicity: the field is missing",
        ),
        ({"gate": []}, "did you mean gates"),
        ({"gates": [{**YIELD, "name": "yield | cleared |\nx"}]}, "a line that can be read"),
    ],
    ids=[
        "a floor as ceiling",
        "a ceiling as floor",
        "twice",
        "never valid",
        "no multiplicity",
        "unknown field",
        "two lines",
    ],
)
def test_a_boundary_that_contradicts_itself_is_refused(changes: dict[str, Any], expected: str) -> None:
    with pytest.raises(FileError, match=expected):
        boundary(**changes)


def test_every_reason_for_a_gate_says_what_was_seen_and_of_how_many() -> None:
    (reason,) = decide(profile([count(3, 3, 30)]), gates=[YIELD]).reasons
    assert reason.what.endswith("is not >= 0.95 (observed 1.000000, n = 30 groups, 90 runs)")


ANSWERS = {"deterministic_check": "verify", "replay": "verify", "checkpoint": "verify", "refuse": "refuse"}


@pytest.mark.parametrize("mode", [*ANSWERS, "human_approval"])
def test_every_answer_can_be_reached(mode: str) -> None:
    bad = profile([count(3, 3, 90), count(3, 0, 10, True)])
    decision = decide(bad, gates=[{**YIELD, "if_failed": mode}])
    assert (decision.mode, decision.answer) == (mode, ANSWERS.get(mode, "ask a human"))
    assert decide(profile(GOOD)).answer == "proceed"
