"""The worked example of Doyle 2026, section 13, with the files of ``examples/section13``: every number of it."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path

import pytest

from surefoot.processors.boundary.check import Decision, check_boundary
from surefoot.processors.boundary.definition import read_boundary
from surefoot.processors.evidence.build import build_published
from surefoot.processors.evidence.estimate import Interval
from surefoot.processors.evidence.measure import Counted, bounds
from surefoot.processors.evidence.profile import Profile
from surefoot.processors.evidence.template import Spec
from surefoot.processors.yaml_models import read_model

ROOT = Path(__file__).parents[3]
EXAMPLE = ROOT / "examples" / "section13"
ORACLES = ROOT / "../shared/data/oracles.json"
TODAY = date(2026, 10, 1)


@pytest.fixture(scope="module")
def made() -> Profile:
    return build_published(read_model(EXAMPLE / "spec.yaml", Spec), 1_790_000_000.0)


def decided(made: Profile, name: str) -> Decision:
    return check_boundary(made, read_boundary(EXAMPLE / name), TODAY)


def test_the_indicators(made: Profile) -> None:
    found = made.indicators
    assert found.outcome_yield.value == pytest.approx(0.984)
    assert found.strict_repeated_success_at_k.value == pytest.approx(0.968)
    assert found.mixed_outcome_rate.value == pytest.approx(0.027)
    assert found.consistent_wrong_rate.value == pytest.approx(0.004)
    assert found.non_equivalent_repeated_failure_rate.value == pytest.approx(0.001)
    assert found.normalised_consistency_at_k.value == pytest.approx(0.983739837)


def test_by_the_published_methods_exactly_the_published_gates_fail(made: Profile) -> None:
    decision = decided(made, "as-published.yaml")
    assert not decision.cleared
    told = {
        gate.name: (gate.status, f"{gate.bound:.6f}", gate.method, gate.reproduction_only) for gate in decision.gates
    }
    assert told == {
        "yield": ("failed", "0.977000", "cluster_bootstrap_percentile", True),
        "Pass^3": ("cleared", "0.953887", "wilson", True),
        "consistent-wrong": ("failed", "0.011028", "wilson", True),
    }
    groups = {gate.name: gate.missing.total_groups for gate in decision.gates if gate.missing}
    assert groups == {"yield": 2_758, "consistent-wrong": 22_529}
    assert [reason.what.split(":")[0] for reason in decision.reasons if reason.code == "gate"] == [
        "yield",
        "consistent-wrong",
    ]


def test_by_methods_that_hold_the_same_gates_fail(made: Profile) -> None:
    decision = decided(made, "boundary.yaml")
    assert not decision.cleared
    assert [(gate.name, gate.status) for gate in decision.gates] == [
        ("yield", "failed"),
        ("Pass^3", "cleared"),
        ("consistent-wrong", "failed"),
    ]
    assert not any(gate.reproduction_only for gate in decision.gates)
    bound = {gate.name: gate.bound for gate in decision.gates}
    assert bound["Pass^3"] == pytest.approx(0.95396143, abs=1e-8)
    assert bound["consistent-wrong"] == pytest.approx(0.01081655, abs=1e-8)
    assert bound["yield"] is not None
    assert bound["yield"] < 0.977  # what holds claims less than what undercovers
    assert (decision.mode, decision.answer) == ("human_approval", "ask a human")
    assert len(decision.reasons) == 2


def test_the_claim_is_one_sentence_with_every_interval(made: Profile) -> None:
    claim = decided(made, "boundary.yaml").claim
    assert claim.count(". ") == 0
    assert "outcome yield is 0.9840 (0.9724 to 0.9913, 95 % betting, n = 1,000 groups, 3,000 runs)" in claim
    assert "strict repeated success at k = 3 is 0.9680 (0.9551 to 0.9780" in claim
    assert "consistent-wrong rate is 0.0040 (0.0011 to 0.0102" in claim
    assert "autonomous coverage is not known" in claim


@pytest.mark.skipif(not ORACLES.exists(), reason="the oracles are not here")
def test_the_other_published_bounds(made: Profile) -> None:
    oracle = json.loads(ORACLES.read_text())["section13"]
    counted = Counted.of(made.evidence, 3)

    def wilson(name: str) -> Interval:
        found = bounds(counted, name, "two", 2 * 0.9833314582099839 - 1, "wilson")
        assert found is not None
        return found

    for name, key in (
        ("mixed_outcome_rate", "mixed_wilson_z2128"),
        ("consistent_wrong_rate", "consistent_wrong_wilson_z2128"),
        ("non_equivalent_repeated_failure_rate", "noneq_wilson_z2128"),
        ("strict_repeated_success_at_k", "pass3_wilson_z2128"),
    ):
        assert (wilson(name).low, wilson(name).high) == pytest.approx(oracle[key], abs=1e-9)
    exact = bounds(counted, "outcome_yield", "lower", 1 - 0.05 / 3, "cluster_bootstrap_percentile_exact")
    assert exact is not None
    assert exact.low == pytest.approx(oracle["yield_lb_exact_bootstrap"])
