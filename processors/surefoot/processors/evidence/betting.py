"""Lower bounds for the mean of values in [0, 1] that hold for every distribution and every number of groups.

Both are from Waudby-Smith and Ramdas, Estimating means of bounded random variables by betting (JRSS B, 2024). An upper
bound is the lower bound of ``1 - value``, mirrored.

Rule: a bound may be loose, never wrong more often than ``alpha``. For the bets that needs that the capital, the product
of ``1 + b (X - m)``, has a mean of at most 1 at the true ``m`` for each fixed bet ``b``. That holds for independent
groups, also of strata with fixed sizes (a product of factors with mean 1 between them is largest where they are equal).
So bets may depend on ``m``, ``alpha`` and the number of groups, never on the values.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy import optimize

# A bet is the best one for a variance of this share of m(1 - m), the most that a mean m allows. Task averages of k
# independent runs on equal tasks have 1/k of it, tasks that always or never succeed all of it; above 1, because
# failures are rare and large where agents are good. The last bet is the boldest; weights sum to 1.
VARIANCE_SHARES = np.array([1.5, 0.6, 0.25, 0.08])
WEIGHTS = np.array([0.4, 0.3, 0.15, 0.1, 0.05])
BOLDEST = 0.99  # of what could be lost at one group that fails
SHUFFLE = 20260916
FIRST_MEAN, FIRST_VARIANCE, LARGEST = 0.5, 0.25, 0.5  # before any group was seen; the authors' choice


def betting_lower(values: ArrayLike, counts: ArrayLike, alpha: float, weights: ArrayLike | None = None) -> float:
    """The least mean that the bets do not refute: hedged capital with a grid of fixed bets, their mean capital.

    ``counts`` are groups of each of ``values``; they may be fractional when a sample's size is planned. ``weights`` in
    [0, 1] make it the weighted mean, with the weights taken as given (runs of a block by those of the largest one). The
    bound does not depend on any order of the groups.
    """
    x, number = np.asarray(values, dtype=float), np.asarray(counts, dtype=float)
    weight = np.ones_like(x) if weights is None else np.asarray(weights, dtype=float)
    mean = float(x @ (number * weight) / (number @ weight))
    least = 1e-12

    def excess(m: float) -> float:
        return _log_capital(m, x, number, weight, alpha) + float(np.log(alpha))

    if mean <= least or excess(least) <= 0:
        return 0.0
    # The capital falls as m rises, and is at most 1 at the sample's mean.
    return max(0.0, float(optimize.brentq(excess, least, mean, xtol=1e-12)) - 1e-12)


def refuted(m: float, values: ArrayLike, counts: ArrayLike, alpha: float) -> bool:
    """Whether the bets refute the mean ``m``: exactly those below ``betting_lower`` are, at a tenth of its time."""
    x, number = np.asarray(values, dtype=float), np.asarray(counts, dtype=float)
    return bool(_log_capital(m, x, number, np.ones_like(x), alpha) > -np.log(alpha))


def _log_capital(m: float, values: np.ndarray, counts: np.ndarray, weights: np.ndarray, alpha: float) -> float:
    boldest = BOLDEST / m
    room = float(counts @ weights**2) * m * max(1 - m, 1e-300)
    fitted = np.sqrt(-2 * np.log(alpha) / (room * VARIANCE_SHARES))
    bets = np.append(np.minimum(fitted, boldest), boldest)
    capital = np.log1p(bets[:, None] * (weights * (values - m))) @ counts
    return float(np.logaddexp.reduce(capital + np.log(WEIGHTS)))


def empirical_bernstein_lower(values: ArrayLike, counts: ArrayLike, alpha: float, seed: int = SHUFFLE) -> float:
    """Their predictable plug-in empirical-Bernstein bound for a fixed number of groups, in a seeded order.

    The order is drawn from the counts alone, so that equal counts give equal bounds. Groups must be a random sample of
    one population: with strata of fixed sizes use ``betting_lower``.
    """
    x = np.repeat(np.asarray(values, dtype=float), np.asarray(counts, dtype=np.int64))
    np.random.default_rng(seed).shuffle(x)
    number = len(x)
    seen = np.arange(1, number + 1)
    mean = (FIRST_MEAN + np.cumsum(x)) / (seen + 1)
    variance = (FIRST_VARIANCE + np.cumsum((x - mean) ** 2)) / (seen + 1)
    mean_before = np.concatenate(([FIRST_MEAN], mean[:-1]))
    variance_before = np.concatenate(([FIRST_VARIANCE], variance[:-1]))
    weight = np.minimum(np.sqrt(-2 * np.log(alpha) / (variance_before * number)), LARGEST)
    cost = (x - mean_before) ** 2 @ (-np.log1p(-weight) - weight)
    return max(0.0, float((weight @ x + np.log(alpha) - cost) / weight.sum()))
