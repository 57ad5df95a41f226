"""The correlation of failures in an hour is found where it was put in, and only there."""

from __future__ import annotations

import numpy as np
import pytest

from surefoot.processors.slo.overdispersion import Overdispersion, overdispersion


def simulated(rho: float, ratio: float, per_hour: float, hours: int, seed: int) -> Overdispersion:
    rng = np.random.default_rng(seed)
    events = rng.poisson(per_hour, hours)
    scale = (1 - rho) / rho if rho else None
    failing = ratio if scale is None else rng.beta(ratio * scale, (1 - ratio) * scale, hours)
    bad = rng.binomial(events, failing)
    return overdispersion(events - bad, bad)


@pytest.mark.parametrize("rho", [0.0, 0.02, 0.1, 0.3])
@pytest.mark.parametrize(("ratio", "per_hour"), [(0.2, 4), (0.05, 12), (0.1, 125)])
def test_a_known_correlation_is_found_over_28_days(rho: float, ratio: float, per_hour: float) -> None:
    """The mean of 40 simulated periods is within 0.01 or a tenth of the truth."""
    found = [simulated(rho, ratio, per_hour, 28 * 24, seed).correlation for seed in range(40)]
    assert None not in found
    assert np.mean([value for value in found if value is not None]) == pytest.approx(rho, abs=0.01, rel=0.1)


def test_only_hours_with_two_events_say_something() -> None:
    assert overdispersion([1, 0, 5, 4], [0, 1, 0, 1]).hours == 2
    assert overdispersion([1, 1], [0, 0]) == Overdispersion(None, 0)
    assert overdispersion([], []) == Overdispersion(None, 0)


def test_extremes_are_defined() -> None:
    assert overdispersion([5, 5, 0], [0, 0, 5]).correlation == 1.0
    assert overdispersion([5, 5, 5], [0, 0, 0]).correlation is None  # nothing failed: nothing to tell
    alike = overdispersion([1] * 50, [1] * 50).correlation
    assert alike is not None
    assert alike < 0  # more alike than chance would have it
