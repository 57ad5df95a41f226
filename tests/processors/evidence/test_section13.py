"""The worked example of the paper's section 13, every number by its method, and what the boundary says by ours."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from surefoot.processors.evidence.groups import GroupTable
from surefoot.processors.evidence.intervals import MeanMethod, ShareMethod, mean_interval, share_interval
from surefoot.processors.evidence.multiplicity import multiplicity
from surefoot.processors.evidence.planner import groups_for_mean, groups_for_share
from surefoot.processors.evidence.types import yield_types
from surefoot.processors.evidence.variation import standard_errors

# 1,000 task groups of 3 runs; the last five failed thrice, four of them equivalently.
ACCEPTABLE = np.repeat([3, 2, 1, 0], [968, 21, 6, 5])
RUNS = np.full(1000, 3)
CONSISTENT_WRONG = 4
LEVEL = multiplicity("bonferroni", 3).per_gate
PRINTED_Z = float(stats.norm.cdf(2.128))  # the level of the z that the paper prints


def lower(method: MeanMethod, confidence: float = LEVEL) -> float:
    found = mean_interval(yield_types(RUNS, ACCEPTABLE), sides="lower", confidence=confidence, method=method)
    assert found.low is not None
    return found.low


def share(hits: int, side: str, method: ShareMethod, confidence: float) -> float:
    if side == "lower":
        low = share_interval(hits, 1000, sides="lower", confidence=confidence, method=method).low
        assert low is not None
        return low
    high = share_interval(hits, 1000, sides="upper", confidence=confidence, method=method).high
    assert high is not None
    return high


def test_the_yield_and_its_lower_bound_by_200_000_resamples_and_exactly() -> None:
    assert yield_types(RUNS, ACCEPTABLE).mean == pytest.approx(0.984, abs=1e-12)
    assert f"{lower('cluster_bootstrap_percentile'):.6f}" == "0.977000"
    assert lower("cluster_bootstrap_percentile_exact") == 2931 / 3000
    assert lower("cluster_bootstrap_percentile_exact", 0.95) == 2936 / 3000


def test_the_two_sided_95_percent_interval_of_the_yield() -> None:
    found = mean_interval(
        yield_types(RUNS, ACCEPTABLE),
        sides="two",
        method="cluster_bootstrap_percentile_exact",
    )
    assert found.low == pytest.approx(2933 / 3000)
    assert found.high == pytest.approx(2969 / 3000)


@pytest.mark.parametrize(
    ("hits", "side", "bound"),
    [
        (968, "lower", 0.953886527),
        (968, "upper", 0.9778940129),
        (CONSISTENT_WRONG, "lower", 0.0014443731),
        (CONSISTENT_WRONG, "upper", 0.0110275333),
        (27, "lower", 0.0180428398),
        (27, "upper", 0.0402217),
        (1, "lower", 0.0001569685),
        (1, "upper", 0.0063419857),
    ],
)
def test_wilson_with_the_printed_z(hits: int, side: str, bound: float) -> None:
    assert share(hits, side, "wilson", PRINTED_Z) == pytest.approx(bound, abs=5e-10)


def test_exact_and_jeffreys_bounds_beside_the_printed_ones() -> None:
    assert multiplicity("bonferroni", 3).z == pytest.approx(2.128045234185, abs=1e-12)
    assert share(968, "lower", "clopper_pearson", LEVEL) == pytest.approx(0.95396143, abs=5e-9)
    assert share(CONSISTENT_WRONG, "upper", "clopper_pearson", LEVEL) == pytest.approx(0.01081655, abs=5e-9)
    assert share(968, "lower", "jeffreys", LEVEL) == pytest.approx(0.95454818, abs=5e-9)
    assert share(CONSISTENT_WRONG, "upper", "jeffreys", LEVEL) == pytest.approx(0.01007108, abs=5e-9)


def test_groups_to_clear_the_ceilings_and_the_floor() -> None:
    def ceiling(rate: float, bound: float, confidence: float = PRINTED_Z, method: ShareMethod = "wilson") -> int | None:
        return groups_for_share(rate, bound, side="ceiling", confidence=confidence, method=method).groups

    assert ceiling(0.004, 0.005) == 22_529
    assert ceiling(0.004, 0.01) == 1_246
    assert (ceiling(0, 0.005), ceiling(0, 0.01)) == (902, 449)
    assert ceiling(0.004, 0.005, LEVEL, "clopper_pearson") == 22_327
    assert (ceiling(0, 0.005, LEVEL, "clopper_pearson"), ceiling(0, 0.01, LEVEL, "clopper_pearson")) == (817, 408)
    assert (ceiling(0, 0.005, 0.95, "clopper_pearson"), ceiling(0, 0.01, 0.95, "clopper_pearson")) == (598, 299)
    types = yield_types(RUNS, ACCEPTABLE)
    assert groups_for_mean(types, 0.98, confidence=PRINTED_Z, method="normal").groups == 2_758
    assert groups_for_mean(types, 0.98, confidence=0.95, method="normal").groups == 1_648


def test_standard_errors_by_run_and_by_task() -> None:
    found = standard_errors(GroupTable.from_counts(RUNS, ACCEPTABLE))
    assert found.task_level.value == pytest.approx(0.0031215380824202677 * (1000 / 999) ** 0.5, rel=1e-12)
    assert found.naive.value == pytest.approx(0.0022908513701242177, rel=1e-12)
    assert found.design_effect.value == pytest.approx(1.8567073170731692, rel=1e-12)


def test_by_the_published_methods_and_by_those_for_gates_the_same_two_gates_fail() -> None:
    published = (
        lower("cluster_bootstrap_percentile_exact") >= 0.98,
        share(CONSISTENT_WRONG, "upper", "wilson", PRINTED_Z) <= 0.005,
        share(968, "lower", "wilson", PRINTED_Z) >= 0.95,
    )
    ours = (
        lower("betting") >= 0.98,
        share(CONSISTENT_WRONG, "upper", "clopper_pearson", LEVEL) <= 0.005,
        share(968, "lower", "clopper_pearson", LEVEL) >= 0.95,
    )
    assert published == ours == (False, False, True)
