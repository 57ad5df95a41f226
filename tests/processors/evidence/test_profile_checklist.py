"""The checklist of appendix B: what is recorded is yes, what contradicts it is no, the rest is not recorded."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest

from support.profiles import count, profile
from surefoot.processors.evidence.checklist import verify
from surefoot.processors.evidence.profile import Evidence, ListedGroup, Profile, Spread, sealed
from surefoot.processors.evidence.suspects import suspects

GOOD = [count(3, 3, 99), count(3, 0, 1, True)]


def answers(made: Profile) -> dict[str, str]:
    return {item.question: item.answer for item in verify(made)}


def with_evidence(made: Profile, **changes: Any) -> Profile:
    """The same, had the evidence been like that."""
    evidence = Evidence(**{**dict(made.evidence), **changes})
    return sealed(
        {name: getattr(made, name) for name in Profile.model_fields if name != "content_hash"} | {"evidence": evidence}
    )


def test_it_has_the_items_of_the_paper_in_its_order() -> None:
    questions = [item.question for item in verify(profile(GOOD))]
    assert questions[:2] == ["The profile is as it was built.", "Its numbers follow from its counts."]
    assert len(questions[2:]) == 23
    assert questions[2] == "The task population maps to real production work."
    assert questions[-1] == "Model, prompt, tool or schema changes trigger review."


def test_every_answer_says_why() -> None:
    assert all(item.why for item in verify(profile(GOOD)))


def test_an_edited_number_is_found_even_when_the_hash_was_made_again() -> None:
    made = profile(GOOD)
    better = made.indicators.outcome_yield.model_copy(update={"value": 1.0})
    parts = {name: getattr(made, name) for name in Profile.model_fields if name != "content_hash"}
    forged = sealed(parts | {"indicators": made.indicators.model_copy(update={"outcome_yield": better})})
    found = answers(forged)
    assert found["The profile is as it was built."] == "yes"
    assert found["Its numbers follow from its counts."] == "no"


def test_an_edited_interval_is_found() -> None:
    made = profile(GOOD)
    parts = {name: getattr(made, name) for name in Profile.model_fields if name != "content_hash"}
    intervals = dict(made.indicators.confidence_intervals)
    intervals["outcome_yield"] = [intervals["outcome_yield"][0].model_copy(update={"low": 0.999})]
    forged = sealed(parts | {"indicators": made.indicators.model_copy(update={"confidence_intervals": intervals})})
    (item,) = [item for item in verify(forged) if item.question == "Its numbers follow from its counts."]
    assert item.answer == "no"
    assert "interval of outcome_yield" in item.why


# What is changed in the evidence, the item, and its answer before and after.
RECORDS: dict[str, tuple[dict[str, Any], str, str]] = {
    "production work": (
        {"production_runs": {"reconcile": 12}},
        "The task population maps to real production work.",
        "yes",
    ),
    "no production work of one class": (
        {"production_runs": {"reconcile": 0}},
        "The task population maps to real production work.",
        "no",
    ),
    "only steps": (
        {"horizon": {"steps": Spread(runs=3, least=1, median=1, most=1)}},
        "Horizon descriptors include more than raw step count.",
        "no",
    ),
    "structure": (
        {"horizon": {"state_changes": Spread(runs=3, least=1, median=1, most=1)}},
        "Horizon descriptors include more than raw step count.",
        "yes",
    ),
    "reads only": ({"tool_effects": {"read": 9}}, "Repeated effects are simulated or withheld.", "yes"),
    "writes in production": (
        {"tool_effects": {"write": 9}, "environments": {"production": 300}},
        "Repeated effects are simulated or withheld.",
        "no",
    ),
    "writes somewhere without a fixture": (
        {"tool_effects": {"write": 9}, "environments": {"staging": 300}},
        "Repeated effects are simulated or withheld.",
        "not recorded",
    ),
    "effects that nobody told": (
        {"tool_effects": {"read": 9, "unknown": 1}},
        "Repeated effects are simulated or withheld.",
        "not recorded",
    ),
}


@pytest.mark.parametrize("what", RECORDS)
def test_a_record_decides_the_answer(what: str) -> None:
    changes, question, expected = RECORDS[what]
    assert answers(with_evidence(profile(GOOD), **changes))[question] == expected


def test_what_nobody_wrote_is_not_recorded() -> None:
    bare = profile(GOOD, repeat_protocol={"k": {"value": 3}}, outcome_contract={})
    found = answers(bare)
    for question in (
        "k is stated and justified.",
        "Environment reset rules are explicit.",
        "Equivalent inputs and outcomes are defined.",
        "Multiple boundary gates use a pre-specified joint decision rule.",
    ):
        assert found[question] == "not recorded", question


def test_unknown_equivalence_is_no() -> None:
    assert answers(profile([count(3, 3, 9), count(3, 0, 1)]))["Consistent-wrong outcomes are counted."] == "no"


def test_strata_without_a_consequence_class_are_no() -> None:
    unnamed = profile([{"n": 3, "c": 3, "groups": 9, "task_class": "reconcile"}])
    assert answers(unnamed)["Results are stratified by task and consequence class."] == "no"


@pytest.mark.parametrize(
    ("triggers", "expected"),
    [("any change of model, prompt, tool or schema", "yes"), (["model", "prompt"], "no"), (None, "not recorded")],
)
def test_drift_triggers_name_what_may_change(triggers: Any, expected: str) -> None:
    found = answers(profile(GOOD, change_control={"drift_triggers": triggers}))
    assert found["Model, prompt, tool or schema changes trigger review."] == expected


def forged(made: Profile, **parts: Any) -> str:
    """What is said of a profile with these parts and with a hash that fits."""
    kept = {name: getattr(made, name) for name in Profile.model_fields if name != "content_hash"}
    items = {item.question: item for item in verify(sealed(kept | parts))}
    assert items["The profile is as it was built."].answer == "yes"
    item = items["Its numbers follow from its counts."]
    return f"{item.answer}: {item.why}"


def test_an_edited_stratum_and_an_edited_sample_size_are_found() -> None:
    counts = [*GOOD, count(3, 3, 20, consequence_class="irreversible")]
    made = profile(counts, task_population={"task_class": "reconcile"})
    assert "those of 2 strata" in forged(made)
    first, *others = made.strata
    better = first.indicators.outcome_yield.model_copy(update={"value": 0.5})
    edited = first.model_copy(update={"indicators": first.indicators.model_copy(update={"outcome_yield": better})})
    assert forged(made, strata=[edited, *others]).startswith("no: not what the counts give: outcome_yield of reconcile")
    assert "the strata" in forged(made, strata=others)
    many = made.indicators.outcome_yield.model_copy(update={"groups": 9999})
    assert "outcome_yield" in forged(made, indicators=made.indicators.model_copy(update={"outcome_yield": many}))
    assert "it tells 7 groups" in forged(made, evidence=made.evidence.model_copy(update={"groups": 7}))


def test_listed_runs_must_be_the_cited_and_the_counted_ones() -> None:
    made = profile([count(3, 3, 1), count(3, 1, 1)])
    ids = [["a", "b", "c"], ["d", "e", "f"]]
    text = "".join(f"{one}\n" for one in "abcdef")
    listed = [
        ListedGroup(group_id=one[0], task_id=one[0], stratum=0, outcomes=said, run_ids=one)
        for one, said in zip(ids, ["111", "010"], strict=True)
    ]
    cited = {"run_ids_sha256": f"sha256:{hashlib.sha256(text.encode()).hexdigest()}", "listed_groups": listed}
    assert forged(made, evidence=made.evidence.model_copy(update=cited)).startswith("yes")
    better = [listed[0], listed[1].model_copy(update={"outcomes": "111"})]
    assert "listed outcomes" in forged(
        made, evidence=made.evidence.model_copy(update=cited | {"listed_groups": better})
    )
    other = [listed[0], listed[1].model_copy(update={"run_ids": ["x", "y", "z"]})]
    assert "listed run ids" in forged(made, evidence=made.evidence.model_copy(update=cited | {"listed_groups": other}))


def test_production_is_recognised_by_more_than_its_name() -> None:
    made = profile(GOOD)
    tally = made.evidence.tally.model_copy(update={"production": 300})
    live = with_evidence(made, tally=tally, tool_effects={"write": 3}, environments={"prod-eu": 300})
    found = answers(live)
    assert found["Repeated effects are simulated or withheld."] == "no"
    assert found["The task population maps to real production work."] == "yes"


def test_tasks_to_look_at_first() -> None:
    made = profile([count(3, 3, 200), count(3, 0, 2, True), count(3, 1, 1), count(3, 2, 5)])
    listed = [
        ListedGroup(group_id=name, task_id=name, stratum=0, outcomes=said, run_ids=[])
        for name, said in (("w", "000"), ("x", "010"), ("y", "110"), ("z", "???"))
    ]
    found = suspects(with_evidence(made, listed_groups=listed))
    assert [one.task_id for one in found.groups] == ["w", "x"]
    assert found.total == 3
    assert suspects(profile([count(3, 3, 9)])).total == 0
