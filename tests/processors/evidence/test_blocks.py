"""Production: whole blocks, declared before looking, or descriptive."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from surefoot.processors.evidence.blocks import Blocks, production_interval
from surefoot.processors.evidence.estimate import Interval
from surefoot.processors.evidence.types import EvidenceInputError

RELEASES = np.repeat(np.arange(40), 6)
RNG = np.random.default_rng(11)
TOTAL = RNG.integers(5, 60, 240)
CHANCE = np.where(RNG.random(40) < 0.1, 0.6, 0.99)[RELEASES]  # every tenth release is bad
GOOD = RNG.binomial(TOTAL, CHANCE)


def interval(good: Any = GOOD, total: Any = TOTAL, **rest: Any) -> Interval:
    return production_interval(good, total, **{"sides": "two", **rest})


def width(found: Interval) -> float:
    assert found.low is not None
    assert found.high is not None
    assert found.low < GOOD.sum() / TOTAL.sum() < found.high
    return found.high - found.low


def test_without_declared_blocks_an_interval_is_descriptive_and_opens_nothing() -> None:
    found = interval(blocks=None)
    assert not found.gate
    assert found.note.startswith("descriptive")
    assert found.unit == "run"


@pytest.mark.parametrize("method", ["betting", "block_bootstrap"])
def test_blocks_that_fail_together_widen_the_interval(method: str) -> None:
    whole = interval(blocks=Blocks("release", RELEASES), method=method)
    assert whole.unit == "block"
    assert width(whole) > 2 * width(interval(blocks=None))
    assert whole.gate is (method == "betting")


def test_the_bootstrap_says_where_it_failed() -> None:
    note = interval(blocks=Blocks("release", RELEASES), method="block_bootstrap").note
    assert "covered" in note
    assert "nominal" in note


def test_fewer_than_ten_blocks_are_descriptive() -> None:
    found = interval(blocks=Blocks("incident", RELEASES // 5))
    assert not found.gate
    assert found.note == "descriptive: 8 blocks, fewer than 10"


def test_time_in_declared_stretches_and_estimated_ones() -> None:
    declared = interval(blocks=Blocks("time", length=6))
    assert declared.method == "betting_by_time"
    assert declared.gate
    drawn = interval(blocks=Blocks("time", length=6), method="block_bootstrap")
    assert width(drawn) > 1.5 * width(interval(blocks=Blocks("time", length=1), method="block_bootstrap"))
    estimated = interval(blocks=Blocks("time"), method="block_bootstrap")
    assert not estimated.gate
    assert "estimated" in estimated.note
    with pytest.raises(EvidenceInputError, match="declared"):
        interval(blocks=Blocks("time"))


def test_one_seed_one_answer() -> None:
    blocks = Blocks("release", RELEASES)
    first = interval(blocks=blocks, method="block_bootstrap", seed=3, resamples=500)
    assert first == interval(blocks=blocks, method="block_bootstrap", seed=3, resamples=500)


def test_months_without_a_failure_are_not_proof() -> None:
    found = interval(TOTAL, TOTAL, blocks=Blocks("release", RELEASES), sides="lower")
    assert found.low is not None
    assert 0.85 < found.low < 0.95
    boot = interval(TOTAL, TOTAL, blocks=Blocks("release", RELEASES), sides="lower", method="block_bootstrap")
    assert not boot.gate
    assert "not seen" in boot.note


def test_empty_periods_and_blocks_without_runs_are_left_out() -> None:
    total = np.where(RELEASES == 3, 0, TOTAL)
    good = np.where(RELEASES == 3, 0, GOOD)
    kept = RELEASES != 3
    blocks = Blocks("release", RELEASES)
    assert interval(good, total, blocks=blocks) == interval(
        GOOD[kept], TOTAL[kept], blocks=Blocks("release", RELEASES[kept])
    )
    assert interval(good, total, blocks=Blocks("time", length=4), method="block_bootstrap").high is not None


@pytest.mark.parametrize(("good", "total"), [([], []), ([3], [2]), ([0], [0]), ([-1], [2])])
def test_rows_that_cannot_be_are_refused(good: list[int], total: list[int]) -> None:
    with pytest.raises(EvidenceInputError):
        interval(good, total, blocks=None)


def test_codes_and_lengths_must_fit() -> None:
    with pytest.raises(EvidenceInputError, match="one code"):
        interval(blocks=Blocks("release", RELEASES[:5]))
    with pytest.raises(EvidenceInputError, match="does not fit"):
        interval(blocks=Blocks("time", length=500))
