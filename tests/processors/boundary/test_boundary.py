"""What clears a boundary, what does not, and what is told about it."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest

from support.profiles import boundary, count, profile
from surefoot.processors.boundary.check import Decision, check_boundary
from surefoot.processors.boundary.slo_actions import SloAction
from surefoot.processors.evidence.profile import Profile
from surefoot.processors.evidence.types import EvidenceInputError
from surefoot.processors.yaml_models import FileError

TODAY = date(2026, 10, 1)
GOOD = [count(3, 3, 99), count(3, 2, 1)]
YIELD = {"indicator": "outcome_yield", "comparison": ">=", "bound": 0.9}


def decide(made: Profile, today: date = TODAY, actions: tuple[SloAction, ...] = (), **changes: Any) -> Decision:
    return check_boundary(made, boundary(**changes), today, actions)


def codes(decision: Decision) -> list[str]:
    return [reason.code for reason in decision.reasons]


def test_it_is_cleared_when_nothing_stands_in_the_way() -> None:
    decision = decide(profile(GOOD))
    assert decision.cleared
    assert (decision.mode, decision.answer, decision.reasons) == ("autonomous", "proceed", [])
    assert decision.gates[0].bound is not None
    assert decision.gates[0].observed is not None
    assert decision.gates[0].bound < decision.gates[0].observed


def test_the_bound_decides_and_not_the_observed_value() -> None:
    decision = decide(profile([count(3, 3, 30)]), gates=[{**YIELD, "bound": 0.95}])
    (gate,) = decision.gates
    assert gate.observed == 1.0
    assert gate.status == "failed"
    assert gate.missing is not None
    assert gate.missing.groups is not None
    assert decide(profile([count(3, 3, 30 + gate.missing.groups)]), gates=[{**YIELD, "bound": 0.95}]).cleared
    assert not decide(profile([count(3, 3, 29 + gate.missing.groups)]), gates=[{**YIELD, "bound": 0.95}]).cleared


REVOKED: dict[str, tuple[dict[str, Any], str]] = {
    "a model version": (
        {
            "system": {
                "agent_architecture": "one loop with tools",
                "model_and_serving_configuration": {"model": "m-2", "temperature": "0"},
                "tool_and_schema_versions": {"ledger": 4, "mail": 2},
            }
        },
        "system.model_and_serving_configuration.model: the boundary says m-1, the profile m-2",
    ),
    "a tool's schema that is new": (
        {
            "system": {
                "agent_architecture": "one loop with tools",
                "model_and_serving_configuration": {"model": "m-1", "temperature": "0"},
                "tool_and_schema_versions": {"ledger": 4, "mail": 2, "web": 1},
            }
        },
        "system.tool_and_schema_versions.web: the boundary says nothing, the profile 1",
    ),
    "the grader": (
        {
            "outcome_contract": {
                "outcome_equivalence_rule": "same ledger balance",
                "grader_and_version": "ledger-check 8",
            }
        },
        "outcome_contract.grader_and_version: the boundary says ledger-check 7, the profile ledger-check 8",
    ),
    "the population": (
        {"task_population": {"task_class": "reconcile", "consequence_class": "irreversible"}},
        "task_population.consequence_class: the boundary says reversible, the profile irreversible",
    ),
}


@pytest.mark.parametrize("what", REVOKED)
def test_any_change_revokes_and_the_field_is_named(what: str) -> None:
    changes, expected = REVOKED[what]
    decision = decide(profile(GOOD, **changes))
    assert not decision.cleared
    assert expected in [reason.what for reason in decision.reasons]
    assert {reason.code for reason in decision.reasons} == {"revoked"}
    assert decision.answer == "ask a human"


def test_a_version_that_only_the_boundary_declares_revokes() -> None:
    changed = boundary().model_dump(mode="json")["validity"] | {"versions": {"prompt": "9"}}
    decision = decide(profile(GOOD), validity=changed)
    assert [reason.what for reason in decision.reasons] == ["versions.prompt: the boundary says 9, the profile nothing"]


def test_an_edited_profile_is_not_cleared() -> None:
    edited = profile(GOOD).model_copy(update={"owner": "somebody else"})
    assert codes(decide(edited)) == ["edited"]


@pytest.mark.parametrize(("today", "cleared"), [("2026-12-31", True), ("2027-01-01", False), ("2026-08-31", False)])
def test_it_holds_from_its_declaration_until_it_expires(today: str, cleared: bool) -> None:
    assert decide(profile(GOOD), date.fromisoformat(today)).cleared is cleared


def test_each_kind_of_missing_evidence_is_told() -> None:
    few = [count(3, 3, 10), count(1, 1, 10, missing=2)]
    decision = decide(
        profile(few, repeat_protocol={"k": {"value": 2}}),
        gates=[{**YIELD, "bound": 0.5}],
    )
    assert [reason.what for reason in decision.reasons if reason.code == "evidence"] == [
        "minimum evidence: 20 of 30 groups",
        "minimum evidence: 40 of 90 judged runs",
        "minimum evidence: k is 2, 3 is needed",
        "minimum evidence: 0.6667 of the runs have an outcome verdict, 0.95 is needed",
    ]


def test_a_grader_of_unknown_error_decides_nothing() -> None:
    made = profile(GOOD, published={"source": "a test", "grader_kind": "model"})
    decision = decide(made)
    assert [reason.what for reason in decision.reasons] == ["not decision-grade: grader error not measured"]


def test_the_strictest_mode_of_the_failed_gates_counts() -> None:
    bad = [count(3, 3, 60), count(3, 0, 40, True)]
    gates = [
        {**YIELD, "if_failed": "checkpoint"},
        {"indicator": "consistent_wrong_rate", "comparison": "<=", "bound": 0.01, "if_failed": "refuse"},
    ]
    decision = decide(profile(bad), gates=gates)
    assert (decision.mode, decision.answer) == ("refuse", "refuse")
    assert decide(profile(bad), gates=gates[:1]).answer == "verify"


def test_at_a_rate_that_does_not_clear_no_number_of_groups_is_enough() -> None:
    (gate,) = decide(profile([count(3, 0, 100, True)])).gates
    assert gate.missing is not None
    assert gate.missing.groups is None
    assert "no number of groups" in str(gate.missing.reason)


def test_two_gates_on_one_indicator() -> None:
    gates = [{**YIELD, "name": "whole"}, {**YIELD, "name": "hard", "stratum": {"horizon": "long"}, "bound": 0.8}]
    mixed = [count(3, 3, 500), count(3, 3, 20, horizon="long"), count(3, 0, 20, True, horizon="long")]
    decision = decide(profile(mixed), gates=gates)
    assert [(gate.name, gate.status, gate.groups) for gate in decision.gates] == [
        ("whole", "cleared", 540),
        ("hard", "failed", 40),
    ]


def test_a_stratum_that_the_profile_does_not_have_is_undefined() -> None:
    decision = decide(profile(GOOD), gates=[{**YIELD, "stratum": {"horizon": "long"}}])
    assert decision.gates[0].status == "undefined"
    assert "no stratum with horizon long" in decision.reasons[0].what


def test_an_indicator_that_nobody_recorded_is_undefined() -> None:
    decision = decide(profile(GOOD), gates=[{"indicator": "autonomous_coverage", "comparison": ">=", "bound": 0.5}])
    assert decision.gates[0].status == "undefined"
    assert not decision.cleared


def test_an_undefined_consistent_wrong_rate_is_gated_by_the_worse_case() -> None:
    gate = {"indicator": "consistent_wrong_rate", "comparison": "<=", "bound": 0.05}
    (open_,) = decide(profile([count(3, 3, 198), count(3, 0, 2)]), gates=[gate]).gates
    (known,) = decide(profile([count(3, 3, 198), count(3, 0, 2, True)]), gates=[gate]).gates
    assert open_.observed is None
    assert open_.bound == known.bound
    assert open_.status == "cleared"


def test_a_method_that_does_not_hold_clears_nothing() -> None:
    gate = {**YIELD, "method": "cluster_bootstrap_percentile_exact", "bound": 0.5}
    decision = decide(profile(GOOD), gates=[gate])
    assert decision.gates[0].status == "cleared"
    assert decision.gates[0].reproduction_only
    assert codes(decision) == ["reproduction_only"]


def test_a_method_for_something_else_is_refused() -> None:
    with pytest.raises(EvidenceInputError, match="wilson is no method for outcome_yield; there are betting"):
        decide(profile(GOOD), gates=[{**YIELD, "method": "wilson"}])


def test_bonferroni_asks_more_of_each_gate_than_intersection_union() -> None:
    gates = [YIELD, {"indicator": "consistent_wrong_rate", "comparison": "<=", "bound": 0.05}]
    rule = boundary().model_dump(mode="json")["joint_rule"]
    plain = decide(profile(GOOD), gates=gates).gates[1]
    joint = decide(profile(GOOD), gates=gates, joint_rule={**rule, "multiplicity": "bonferroni"}).gates[1]
    assert (plain.confidence, joint.confidence) == (0.95, 0.975)
    assert plain.bound is not None
    assert joint.bound is not None
    assert plain.bound < joint.bound


ACTIONS = {
    "tighten_mode": ("checkpoint", "verify"),
    "require_approval": ("human_approval", "ask a human"),
}


@pytest.mark.parametrize("action", ACTIONS)
def test_an_error_budget_lowers_the_mode(action: str) -> None:
    mode, answer = ACTIONS[action]
    open_ = SloAction("policy", "desk", action, mode, "2026-09-30", "budget spent")  # type: ignore[arg-type]  # a Mode
    decision = decide(profile(GOOD), actions=(open_,))
    assert (decision.cleared, decision.mode, decision.answer) == (False, mode, answer)
    assert decision.reasons[0].what == f"the error budget of desk demands {action} since 2026-09-30: budget spent"


def test_an_error_budget_never_widens() -> None:
    open_ = SloAction("policy", "desk", "tighten_mode", "deterministic_check", "2026-09-30", "")
    assert decide(profile(GOOD), actions=(open_,), allowed_mode="checkpoint").cleared


def test_a_review_that_is_due_clears_nothing() -> None:
    made = profile(GOOD, review_date="2026-11-30")
    assert decide(made, date(2026, 11, 30)).cleared
    (reason,) = decide(made, date(2026, 12, 1)).reasons
    assert (reason.code, reason.mode) == ("expired", "human_approval")
    assert reason.what == "the profile's review was due on 2026-11-30: ops has to renew it"


MISTAKES: dict[str, tuple[dict[str, Any], str]] = {
    "an unknown indicator": (
        {"gates": [{**YIELD, "indicator": "outcome_yeild"}]},
        "there is no indicator 'outcome_yeild'; did you mean outcome_yield?",
    ),
    "an unknown method": ({"gates": [{**YIELD, "method": "wilsn"}]}, "did you mean wilson?"),
    "an unknown field": ({"gates": [{**YIELD, "treshold": 1}]}, "gates[0].treshold: the field is unknown"),
    "confidence twice": ({"gates": [{**YIELD, "z": 2, "confidence": 0.99}]}, "keep one of the two"),
    "too little confidence": ({"gates": [{**YIELD, "confidence": 0.9}]}, "less confidence than the joint rule claims"),
    "a failure that is laxer": ({"if_failed": "autonomous"}, "if_failed: autonomous is not stricter"),
    "no gate": ({"gates": []}, "gates: "),
    "a per cent": ({"gates": [{**YIELD, "bound": 98}]}, "gates[0].bound: "),
    "an unknown mode": ({"allowed_mode": "autonomus"}, "did you mean autonomous?"),
}


@pytest.mark.parametrize("what", MISTAKES)
def test_a_mistake_in_a_boundary_is_told(what: str) -> None:
    changes, expected = MISTAKES[what]
    with pytest.raises(FileError) as told:
        boundary(**changes)
    assert expected in str(told.value)


def test_more_error_than_bonferroni_allows_is_refused() -> None:
    rule = boundary().model_dump(mode="json")["joint_rule"] | {"multiplicity": "bonferroni"}
    gates = [
        {**YIELD, "confidence": 0.96},
        {"indicator": "consistent_wrong_rate", "comparison": "<=", "bound": 0.1, "confidence": 0.96},
    ]
    with pytest.raises(FileError, match=r"add up to 0\.080000, more than the joint rule's 0\.050000"):
        boundary(joint_rule=rule, gates=gates)
