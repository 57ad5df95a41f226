"""The cluster bootstrap of a mean over run groups: resampled with a seed, and exactly, without one.

Resampling whole groups within their strata is one multinomial draw of type counts for each stratum. The mean of such a
draw is a sum of independent lattice variables, so that its distribution is also known exactly: the product of the
types' characteristic functions, transformed back. Both return the lowest mean whose cumulative probability reaches the
tail. Strata keep their sizes and weigh what they have groups.

Rule: this is a percentile bootstrap, kept to reproduce published figures. With few groups, and with rare failures also
with many, it covers less than it says (``eligibility.py``), and an all-acceptable sample gets the bound 1.
"""

from __future__ import annotations

from math import ceil, lcm, log, sqrt

import numpy as np
from scipy import fft

from surefoot.processors.evidence.types import EvidenceInputError, Floats, GroupTypes

SEED = 20260916
RESAMPLES = 200_000
FINEST_LATTICE = 10_000  # steps in [0, 1]; finer values are rounded down to it
BATCH = 20_000  # resamples at a time: bounds the memory
LOST = log(2e20)  # what lies outside of the transform's window has a chance below exp(-LOST)


def resampled_bounds(
    types: GroupTypes, alpha: float, seed: int = SEED, resamples: int = RESAMPLES
) -> tuple[float, float]:
    """The lowest and the highest of ``resamples`` means but for ``alpha`` on each side; equal seeds, equal answers."""
    if resamples < 1:
        raise EvidenceInputError(f"a bootstrap needs at least 1 resample, got {resamples}")
    generator = np.random.default_rng(seed)
    means = np.empty(resamples)
    for start in range(0, resamples, BATCH):
        size = min(BATCH, resamples - start)
        totals = np.zeros(size)
        for counts in types.by_stratum:
            draws = generator.multinomial(counts.sum(), counts / counts.sum(), size=size)
            totals += draws @ types.values
        means[start : start + size] = totals / types.groups
    left_out = max(ceil(alpha * resamples), 1) - 1
    means.sort()
    return float(means[left_out]), float(means[resamples - 1 - left_out])


def exact_quantile(types: GroupTypes, alpha: float) -> float:
    """The least mean that resampling reaches with a chance of ``alpha``; the mirror image gives the upper bound."""
    steps = lcm(*(value.denominator for value in types.fractions))
    scale = min(steps, FINEST_LATTICE)
    points = np.array([int(value * scale) for value in types.fractions])  # int() rounds down
    lowest, probability = _distribution(points, types)
    reached = int(np.searchsorted(np.cumsum(probability), alpha))
    return (lowest + min(reached, len(probability) - 1)) / (scale * types.groups)


def _distribution(points: np.ndarray, types: GroupTypes) -> tuple[int, Floats]:
    """The least total in the window, and the probability of it and of each total after it."""
    spread = int(points[-1] - points[0])
    sizes = types.by_stratum.sum(axis=1)
    shares = types.by_stratum / sizes[:, None]
    variance = float(sizes @ (shares @ points**2 - (shares @ points) ** 2))
    # Bernstein's inequality gives how far from its mean the total can be.
    reach = ceil(spread * LOST / 3 + sqrt((spread * LOST / 3) ** 2 + 2 * max(variance, 0.0) * LOST))
    mean = int(types.counts @ points)
    low = max(mean - reach, int(points[0]) * types.groups)
    high = min(mean + reach, int(points[-1]) * types.groups)
    length = fft.next_fast_len(high - low + 1, real=True)
    product = np.ones(length // 2 + 1, dtype=np.complex128)
    for share, size in zip(shares, sizes, strict=True):
        single = np.bincount(points % length, weights=share, minlength=length)
        product *= fft.rfft(single) ** int(size)
    around = fft.irfft(product, length)
    window = around[np.arange(low, high + 1) % length]
    return low, np.clip(window, 0.0, None)
