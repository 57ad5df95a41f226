"""What docs/estimators.md says is true."""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow as pa
import pytest

from surefoot.processors.evidence import (
    classes,
    consistency,
    horizon,
    prediction,
    repeated,
    robustness,
    run_rates,
    safety,
    variation,
)
from surefoot.processors.evidence.estimate import Estimate
from surefoot.processors.evidence.groups import EQUIVALENCE_RULE, GroupTable

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "estimators.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


def test_the_example_prints_what_the_page_shows(capsys: pytest.CaptureFixture[str]) -> None:
    (code,) = blocks("python")
    exec(compile(code, "docs/estimators.md", "exec"), {})
    assert blocks("text") == [capsys.readouterr().out]


def estimates() -> list[Estimate]:
    runs = {
        "group_id": ["a", "a", "b", "b"],
        "acceptable": [True, True, False, True],
        "confidence": [0.9, 0.8, 0.2, 0.8],
        "actions": [["x"], ["x"], ["y"], ["x"]],
        "duration_ns": [1, 2, 3, 4],
    }
    groups = GroupTable.from_runs(pa.table(runs))
    outcome = consistency.outcome_consistency(groups)
    parts = (
        consistency.trajectory_distribution(groups),
        consistency.trajectory_sequence(groups),
        consistency.resource_consistency(groups),
    )
    robust = [robustness.robustness(groups, groups, kind).ratio for kind in ("fault", "environment", "prompt")]
    scores, errors = safety.safety(groups), variation.standard_errors(groups)
    return [
        repeated.outcome_yield(groups),
        repeated.pass_hat_k(groups, 2),
        repeated.pass_at_k(groups, 2),
        repeated.consistency_gap(groups, 2),
        repeated.normalised_consistency(groups, 2),
        repeated.homogeneous_pass_hat_k(groups, 2),
        variation.intraclass_correlation(groups),
        *(errors.run_level, errors.task_level, errors.naive, errors.design_effect),
        classes.all_acceptable_rate(groups),
        classes.mixed_outcome_rate(groups),
        classes.mixed_outcome_rate_at(groups, 2),
        *(outcome, *parts, consistency.consistency_index(outcome, *parts)),
        *(prediction.calibration(groups), prediction.discrimination(groups), prediction.brier(groups)),
        prediction.risk_coverage(groups).score,
        prediction.risk_coverage(groups, variant="ties_by_order").score,
        *robust,
        robustness.robustness_index(robust),
        robustness.aggregate(outcome, prediction.brier(groups), robust[0]),
        *(scores.compliance, scores.harm, scores.score),
        *safety.severity_rates(groups).values(),
        *safety.abstention(groups).values(),
        *(run_rates.run_rate(groups, name) for name in run_rates.INDICATORS),
    ]


def test_every_estimate_and_its_variant_are_on_the_page() -> None:
    endings = tuple(re.findall(r"`(_\w+)`", PAGE))
    of_parts = ("consistency_index", "robustness_index", "aggregate_without_safety", "resource_consistency")
    for estimate in estimates():
        assert f"`{estimate.name}`" in PAGE or estimate.name.endswith(endings), estimate.name
        if estimate.name not in of_parts and estimate.name not in run_rates.INDICATORS:
            assert f"`{estimate.variant}`" in PAGE, estimate
        assert estimate.definition
        assert estimate.source


def test_rules_and_names_on_the_page() -> None:
    assert f"`{EQUIVALENCE_RULE}`" in PAGE
    assert f"`{horizon.RULE}`" in PAGE
    for name in horizon.BUCKETS:
        assert f"`{name}`" in PAGE
