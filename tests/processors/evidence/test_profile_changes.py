"""What differs between two profiles, and what revokes."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest

from support.profiles import count, profile
from surefoot.processors.evidence.changes import changes
from surefoot.processors.evidence.profile import Profile
from surefoot.processors.evidence.template import Selection

GOOD = [count(3, 3, 99), count(3, 2, 1)]


def test_equal_profiles_do_not_differ() -> None:
    found = changes(profile(GOOD), profile(GOOD))
    assert not found.revokes
    assert found.other == []
    assert all(moved.before == moved.after for moved in found.indicators)


# A change of the second profile, the fields that it revokes, and the other fields that differ.
CHANGES: dict[str, tuple[dict[str, Any], list[str], list[str]]] = {
    "another tool version": (
        {"system": {"tool_and_schema_versions": {"ledger": 5, "mail": 2}}},
        [
            "system.agent_architecture",
            "system.model_and_serving_configuration",
            "system.tool_and_schema_versions.ledger",
        ],
        [],
    ),
    "another rule of equivalence": (
        {"outcome_contract": {"outcome_equivalence_rule": "same text", "grader_and_version": "ledger-check 7"}},
        ["outcome_contract.outcome_equivalence_rule"],
        [],
    ),
    "another owner": ({"owner": "dev"}, [], ["owner"]),
    "another k": (
        {"repeat_protocol": {"k": {"value": 2, "why": "three posts a day"}}},
        [],
        ["repeat_protocol.k.value"],
    ),
    "another rollback": ({"change_control": {"rollback": "by hand"}}, [], ["change_control.rollback"]),
}


@pytest.mark.parametrize("what", CHANGES)
def test_what_revokes_and_what_does_not(what: str) -> None:
    change, revoking, other = CHANGES[what]
    found = changes(profile(GOOD), profile(GOOD, **change))
    assert [one.field for one in found.revoking] == revoking
    assert [one.field for one in found.other if not one.field.endswith("interval_method")] == other
    assert found.revokes is bool(revoking)


def test_numbers_that_moved_are_told_and_revoke_nothing() -> None:
    found = changes(profile(GOOD), profile([count(3, 3, 20), count(3, 0, 80, True)]))
    moved = {one.indicator: one for one in found.indicators}
    assert moved["outcome_yield"].apart is True
    assert moved["non_equivalent_repeated_failure_rate"].apart is False
    assert moved["autonomous_coverage"].apart is None
    assert not found.revokes


def test_other_work_revokes_and_another_sample_of_it_does_not() -> None:
    made = profile(GOOD)

    def chosen(environments: dict[str, int] | None = None, **where: str) -> Profile:
        selection = Selection(since=date(2026, 9, 1), where=where)
        update = {"selection": selection, "environments": environments or {"staging": 300}}
        return made.model_copy(update={"evidence": made.evidence.model_copy(update=update)})

    first = chosen(run_group="r1", task_class="reconcile")
    again = changes(first, chosen(run_group="r2", task_class="reconcile"))
    assert not again.revokes
    assert [one.field for one in again.other] == ["evidence.selection.where.run_group"]
    for other in (chosen(run_group="r1"), chosen({"production": 300}, run_group="r1", task_class="reconcile")):
        assert changes(first, other).revokes
    hard = profile([*GOOD, count(3, 1, 5, consequence_class="irreversible")])
    assert [one.field for one in changes(hard, made).revoking] == ["evidence.strata"]
