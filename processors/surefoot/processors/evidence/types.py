"""Group types: what every interval for a mean over run groups needs of the groups, and nothing more.

A group's value (its share of acceptable runs, or its unbiased Pass^k) is one of a few fractions, so that counts of
values by stratum say all that 200,000 groups say. Values are exact fractions: the exact bootstrap needs their lattice.

Rule: a group is one row and has at least one run with a verdict (at least k for Pass^k); who has fewer is left out by
the caller, who says so.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from math import comb

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefoot.processors.errors import ProcessorsError

Counts = NDArray[np.int64]
Floats = NDArray[np.float64]


class EvidenceInputError(ProcessorsError):
    """What was given to an interval cannot be groups of runs."""


@dataclass(frozen=True, slots=True)
class GroupTypes:
    """Distinct values in [0, 1], ascending, and how many groups of each stratum have each."""

    fractions: tuple[Fraction, ...]
    by_stratum: Counts  # strata x values

    @property
    def values(self) -> Floats:
        """The values as floats."""
        return np.array([float(value) for value in self.fractions])

    @property
    def counts(self) -> Counts:
        """Groups of each value, over all strata."""
        counts: Counts = self.by_stratum.sum(axis=0)
        return counts

    @property
    def groups(self) -> int:
        """How many groups there are."""
        return int(self.by_stratum.sum())

    @property
    def mean(self) -> float:
        """The mean over groups; strata weigh what they have groups."""
        return float(self.counts @ self.values / self.groups)

    def mirrored(self) -> GroupTypes:
        """1 - value for each group: an upper bound is the lower bound of the mirror image."""
        return GroupTypes(tuple(1 - value for value in reversed(self.fractions)), self.by_stratum[:, ::-1])


def yield_types(n: ArrayLike, c: ArrayLike, strata: ArrayLike | None = None) -> GroupTypes:
    """Types of c/n: ``n`` runs with a verdict and ``c`` acceptable ones by group, ``strata`` codes from 0."""
    return _types(n, c, strata, 1, lambda runs, good: Fraction(good, runs))


def pass_hat_types(n: ArrayLike, c: ArrayLike, k: int, strata: ArrayLike | None = None) -> GroupTypes:
    """Types of C(c, k) / C(n, k), the unbiased Pass^k of each group; every group has at least ``k`` runs."""
    return _types(n, c, strata, k, lambda runs, good: Fraction(comb(good, k), comb(runs, k)))


def _types(
    n: ArrayLike, c: ArrayLike, strata: ArrayLike | None, least: int, value: Callable[[int, int], Fraction]
) -> GroupTypes:
    runs, good = np.asarray(n, dtype=np.int64), np.asarray(c, dtype=np.int64)
    if runs.ndim != 1 or runs.shape != good.shape or not len(runs):
        raise EvidenceInputError(
            f"group types need n and c of one length, at least 1; got shapes {runs.shape} and {good.shape}"
        )
    if least < 1 or runs.min() < least or good.min() < 0 or (good > runs).any():
        raise EvidenceInputError(
            f"group types need 0 <= c <= n and n >= {max(least, 1)} in every group; leave out the groups with fewer"
        )
    codes = np.zeros(len(runs), dtype=np.int64) if strata is None else np.asarray(strata, dtype=np.int64)
    if codes.shape != runs.shape or codes.min() < 0:
        raise EvidenceInputError("strata need one code, 0 or more, for each group")
    width = int(runs.max()) + 1
    pairs, which = np.unique(runs * width + good, return_inverse=True)
    cells = np.bincount(codes * len(pairs) + which, minlength=(int(codes.max()) + 1) * len(pairs))
    table = cells.reshape(-1, len(pairs))
    found = [value(int(pair) // width, int(pair) % width) for pair in pairs]
    fractions = sorted(set(found))
    place = {fraction: index for index, fraction in enumerate(fractions)}
    by_stratum = np.zeros((len(table), len(fractions)), dtype=np.int64)
    for column, fraction in enumerate(found):
        by_stratum[:, place[fraction]] += table[:, column]
    return GroupTypes(tuple(fractions), by_stratum[by_stratum.any(axis=1)])
