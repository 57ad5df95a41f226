"""A profile's file, its hash, and its numbers, from published counts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from support.profiles import SPEC, count, profile
from surefoot.processors.evidence.profile import (
    INDICATORS,
    Profile,
    content_hash,
    is_intact,
    parse_profile,
    to_json,
    to_yaml,
)
from surefoot.processors.evidence.template import Spec
from surefoot.processors.yaml_models import FileError, parse_model, read_model

MANY = [count(3, 3, 40), count(3, 1, 5), count(3, 0, 2, True), count(3, 0, 1, False)]
SHARES = ("mixed_outcome_rate", "consistent_wrong_rate", "non_equivalent_repeated_failure_rate")


def values(found: Profile) -> dict[str, float | None]:
    return {name: getattr(found.indicators, name).value for name in INDICATORS}


@pytest.mark.parametrize("ending", ["yaml", "json"])
def test_a_file_holds_all_of_a_profile(ending: str) -> None:
    made = profile(MANY)
    text = to_json(made) if ending == "json" else to_yaml(made)
    assert parse_profile(text, f"p.{ending}") == made
    assert is_intact(parse_profile(text, f"p.{ending}"))


def test_the_template_is_there_field_by_field() -> None:
    """Doyle 2026, appendix A, in its order; `evidence`, `strata`, `grader` and the hash are ours."""
    data = yaml.safe_load(to_yaml(profile(MANY)))
    assert list(data)[:4] == ["profile_id", "version", "owner", "review_date"]
    assert list(data["system"]) == [
        "agent_architecture",
        "model_and_serving_configuration",
        "prompt_and_policy_version",
        "tool_and_schema_versions",
        "environment",
        "principal_and_authority_scope",
    ]
    assert list(data["repeat_protocol"]) == [
        "k",
        "environment_reset",
        "state_fixture",
        "concurrency",
        "sampling_settings",
        "evaluation_window",
        "clustering_unit",
        "stratification",
        "interval_method",
        "confidence_level",
        "multiple_gate_adjustment",
    ]
    assert list(data["indicators"]) == [
        "outcome_yield",
        "strict_repeated_success_at_k",
        "normalised_consistency_at_k",
        "mixed_outcome_rate",
        "equivalent_outcome_agreement",
        "consistent_wrong_rate",
        "non_equivalent_repeated_failure_rate",
        "policy_compliance_rate",
        "grader_false_accept_rate",
        "grader_false_reject_rate",
        "recovery_success",
        "autonomous_coverage",
        "intervention_success",
        "confidence_intervals",
    ]


def test_any_edit_breaks_the_hash() -> None:
    text = to_yaml(profile(MANY))
    edited = text.replace("owner: ops", "owner: dev")
    assert edited != text
    assert not is_intact(parse_profile(edited, "p.yaml"))


def test_another_build_of_the_same_evidence_is_the_same_profile() -> None:
    made = profile([count(3, 3, 10)])
    later = made.evidence.model_copy(update={"built_at": "2027-01-01T00:00:00+00:00", "table_versions": {"runs": 9}})
    assert content_hash(made.model_copy(update={"evidence": later})) == made.content_hash
    more = made.evidence.model_copy(update={"last_run": "2027-01-01T00:00:00+00:00"})
    assert content_hash(made.model_copy(update={"evidence": more})) != made.content_hash


def test_the_hash_is_of_the_content_and_not_of_the_spelling() -> None:
    made = profile(MANY)
    shuffled = json.dumps(json.loads(to_json(made)), sort_keys=True)
    assert content_hash(parse_profile(shuffled, "p.json")) == made.content_hash


def test_the_numbers() -> None:
    found = values(profile(MANY))
    assert found["outcome_yield"] == pytest.approx((40 + 5 / 3) / 48)
    assert found["strict_repeated_success_at_k"] == pytest.approx(40 / 48)
    assert found["mixed_outcome_rate"] == pytest.approx(5 / 48)
    assert found["consistent_wrong_rate"] == pytest.approx(2 / 48)
    assert found["non_equivalent_repeated_failure_rate"] == pytest.approx(1 / 48)
    assert found["equivalent_outcome_agreement"] == pytest.approx(42 / 48)
    assert found["grader_false_accept_rate"] is None


def test_strata_have_numbers_of_their_own() -> None:
    made = profile([count(3, 3, 40), count(3, 0, 2, True, consequence_class="irreversible")])
    assert [(one.consequence_class, one.indicators.outcome_yield.value) for one in made.strata] == [
        ("irreversible", 0.0),
        ("reversible", 1.0),
    ]
    small = made.strata[0].indicators
    (interval,) = small.confidence_intervals["consistent_wrong_rate"]
    assert small.consistent_wrong_rate.groups == 2
    assert interval.low is not None
    assert interval.low < 0.2  # two groups show little
    assert interval.high == 1.0


# Edge cases: none of them is a crash, a 0 that nobody measured, or an interval that claims certainty.
EDGES: dict[str, tuple[list[dict[str, Any]], dict[str, float | None]]] = {
    "one task": ([count(3, 2, 1)], {"outcome_yield": 2 / 3, "strict_repeated_success_at_k": 0.0}),
    "all pass": ([count(3, 3, 9)], {"outcome_yield": 1.0, "consistent_wrong_rate": 0.0, "mixed_outcome_rate": 0.0}),
    "all fail": ([count(3, 0, 9, True)], {"outcome_yield": 0.0, "normalised_consistency_at_k": None}),
    "k above n": ([count(2, 2, 9)], {"strict_repeated_success_at_k": None, "outcome_yield": 1.0}),
    "unequal n": ([count(3, 3, 9), count(2, 1, 3)], {"strict_repeated_success_at_k": 1.0}),
    "no verdict": ([count(0, 0, 4, missing=3)], {"outcome_yield": None, "mixed_outcome_rate": None}),
    "some verdicts": ([count(3, 3, 8), count(2, 2, 1, missing=1)], {"outcome_yield": 1.0}),
    "unknown equivalence": ([count(3, 3, 8), count(3, 0, 1)], {"consistent_wrong_rate": None}),
}


@pytest.mark.parametrize("name", EDGES)
def test_edges(name: str) -> None:
    counts, expected = EDGES[name]
    made = profile(counts)
    found = values(made)
    for indicator, value in expected.items():
        assert found[indicator] == pytest.approx(value) if value is not None else found[indicator] is None, indicator
        if value is None:
            assert getattr(made.indicators, indicator).reason
    for indicator, (interval,) in made.indicators.confidence_intervals.items():
        assert interval.low is None or interval.high is None or interval.low < interval.high, indicator


def test_zero_consistent_wrong_has_an_honest_upper_bound() -> None:
    (interval,) = profile([count(3, 3, 30)]).indicators.confidence_intervals["consistent_wrong_rate"]
    assert interval.high == pytest.approx(1 - 0.025 ** (1 / 30))
    assert interval.low == 0


def test_unknown_equivalence_widens_the_bound_to_the_worse_case() -> None:
    known = profile([count(3, 3, 98), count(3, 0, 2, True)])
    unknown = profile([count(3, 3, 98), count(3, 0, 1, True), count(3, 0, 1)])
    (sure,) = known.indicators.confidence_intervals["consistent_wrong_rate"]
    (open_,) = unknown.indicators.confidence_intervals["consistent_wrong_rate"]
    assert open_.high == sure.high
    assert open_.low is not None
    assert sure.low is not None
    assert open_.low < sure.low
    assert "unknown equivalence" in open_.note


def test_k_is_1() -> None:
    made = profile([count(1, 1, 9), count(1, 0, 1)], repeat_protocol={"k": {"value": 1}})
    found = values(made)
    assert found["strict_repeated_success_at_k"] == found["outcome_yield"] == pytest.approx(0.9)
    assert found["mixed_outcome_rate"] is None
    assert "nothing was repeated" in str(made.indicators.mixed_outcome_rate.reason)


MISTAKES = {
    "owner: ops": (
        "ownr: ops",
        ["spec.yaml:4: ownr: the field is unknown; did you mean owner?", "owner: the field is missing"],
    ),
    "agent_architecture: one loop with tools": (
        "environment: 3.0",
        ["spec.yaml:7: system.environment: 3.0 is a number"],
    ),
    "k: {value: 3, why: three posts a day}": ("k: {value: 0}", ["spec.yaml:17: repeat_protocol.k.value:"]),
    "review_date: 2027-01-31": ("review_date: soon", ["spec.yaml:5: review_date: 'soon' is not a date; write it as"]),
    "version: 3": (
        "version: 1.10",
        ["spec.yaml:3: version: 1.1 is a number, and 1.10 would become 1.1; put it in quotes"],
    ),
    "task_class: reconcile": ("task_class: []", ["task_population.task_class: it is empty"]),
    "version: 3\nowner": ("version: a/b\nowner", ["spec.yaml:3: version: 'a/b' is not a name", "write a-b"]),
    "profile_id: reconcile": ("profile_id: &a [*a]", ["spec.yaml:2: profile_id: "]),
    "source: a test": ("source: !!python/object/apply:os.system [ls]", ["not YAML"]),
}


@pytest.mark.parametrize("right", MISTAKES)
def test_a_mistake_is_told_by_line_and_remedy(right: str) -> None:
    wrong, expected = MISTAKES[right]
    text = SPEC.replace("counts: []", "counts: [{n: 3, c: 3, groups: 1}]").replace(right, wrong, 1)
    with pytest.raises(FileError) as told:
        parse_model(text, Spec, "spec.yaml")
    for part in expected:
        assert part in str(told.value)
    assert told.value.exit_code == 2


def test_json_is_read_strictly_too(tmp_path: Path) -> None:
    twice = tmp_path / "spec.json"
    twice.write_text('{"profile_id": "a", "profile_id": "b"}')
    with pytest.raises(FileError, match="profile_id: the key stands twice"):
        read_model(twice, Spec)
    with pytest.raises(FileError, match="Cannot read"):
        read_model(tmp_path / "absent.yaml", Spec)


def test_more_acceptable_runs_than_runs_is_a_mistake() -> None:
    with pytest.raises(FileError, match=r"published.counts\[0\].c: 4 of 3 runs"):
        profile([count(3, 4, 1)])


def test_normalised_consistency_and_its_interval_are_about_the_same_groups() -> None:
    reaching = [count(3, 3, 50), count(3, 2, 20)]
    alone, beside = profile(reaching), profile([*reaching, count(1, 0, 400)])
    name = "normalised_consistency_at_k"
    assert values(beside)[name] == values(alone)[name]
    assert beside.indicators.confidence_intervals[name] == alone.indicators.confidence_intervals[name]


def test_a_file_that_is_nested_too_deeply_is_a_mistake_and_no_crash() -> None:
    with pytest.raises(FileError, match="nested too deeply; write it flat"):
        parse_profile("[" * 100_000, "p.json")
