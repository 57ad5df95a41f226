"""Intervals for production, where runs come in blocks that fail together: a day, a release, a dependency, an incident.

Two methods over whole blocks. ``betting`` bounds the share of runs for every distribution, the blocks' numbers of runs
taken as given and the blocks independent of each other. ``block_bootstrap`` resamples them with the arch library; time
goes on, so that stretches of consecutive periods of random length are drawn (stationary bootstrap, Politis and Romano
1994), of a declared mean length or the one that Politis and White (2004) estimate.

Rule: without blocks that were declared before looking, an interval treats runs as independent, says *descriptive* and
opens no gate. So do fewer than 10 blocks, and an estimated length: it was chosen by looking.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from surefoot.processors.evidence.betting import betting_lower
from surefoot.processors.evidence.bootstrap import SEED
from surefoot.processors.evidence.eligibility import gate_note
from surefoot.processors.evidence.estimate import Interval, Sides
from surefoot.processors.evidence.intervals import share_interval, tail
from surefoot.processors.evidence.types import EvidenceInputError

BlockMethod = Literal["betting", "block_bootstrap"]
BlockKind = Literal["time", "release", "dependency", "incident"]
FEWEST = 10
RESAMPLES = 5_000


@dataclass(frozen=True, slots=True)
class Blocks:
    """How production was divided, declared before looking."""

    kind: BlockKind
    codes: ArrayLike | None = None  # of each row, which block it is in; not for time, whose rows are periods in order
    length: int | None = None  # stretch in periods, for time; None: estimated from the data, bootstrap only


def production_interval(
    good: ArrayLike,
    total: ArrayLike,
    *,
    sides: Sides,
    blocks: Blocks | None,
    confidence: float = 0.95,
    method: BlockMethod = "betting",
    seed: int = SEED,
    resamples: int = RESAMPLES,
) -> Interval:
    """Bounds for the share of ``good`` among ``total`` runs, given by row: a period, a release, an incident."""
    rows = np.column_stack([np.asarray(good, dtype=float), np.asarray(total, dtype=float)])
    if not len(rows) or (rows < 0).any() or (rows[:, 0] > rows[:, 1]).any() or not rows[:, 1].any():
        raise EvidenceInputError("a production interval needs rows with 0 <= good <= total, and runs in one at least")
    if blocks is None:
        return _descriptive(rows, sides, confidence)
    alpha = tail(confidence, sides)
    note = ""
    if method == "betting":
        gathered = _gathered(rows, blocks)
        number = len(gathered)
        low, high = _bet(gathered, alpha), 1 - _bet(_failures(gathered), alpha)
    elif method == "block_bootstrap":
        kept = rows if blocks.kind == "time" else _gathered(rows, blocks)
        length = _stretch(rows, blocks.length) if blocks.kind == "time" else 1
        number = len(kept) // length
        shares = _resampled(kept, length, seed, resamples)
        low, high = (float(np.quantile(shares, q, method="inverted_cdf")) for q in (alpha, 1 - alpha))
        if rows[:, 0].sum() in (0, rows[:, 1].sum()):
            note = "descriptive: all blocks are alike, resampling cannot show what was not seen"
    else:
        raise EvidenceInputError(f"no method {method!r} over blocks; there are {', '.join(get_args(BlockMethod))}")
    note = note or _note(blocks, number) or gate_note(method, number, confidence) or ""
    name = f"{method}_by_{blocks.kind}"
    low_, high_ = (low if sides != "upper" else None), (high if sides != "lower" else None)
    return Interval(name, confidence, sides, low_, high_, "block", gate=not note, note=note)


def _bet(rows: np.ndarray, alpha: float) -> float:
    good, total = rows.T
    return betting_lower(good / total, np.ones(len(rows)), alpha, weights=total / total.max())


def _failures(rows: np.ndarray) -> np.ndarray:
    return np.column_stack([rows[:, 1] - rows[:, 0], rows[:, 1]])


def _descriptive(rows: np.ndarray, sides: Sides, confidence: float) -> Interval:
    good, total = rows.sum(axis=0)
    plain = share_interval(int(good), int(total), sides=sides, confidence=confidence, method="wilson", unit="run")
    note = "descriptive: no blocks were declared, runs are treated as independent"
    return Interval("wilson", confidence, sides, plain.low, plain.high, "run", gate=False, note=note)


def _note(blocks: Blocks, number: int) -> str:
    if number < FEWEST:
        return f"descriptive: {number} blocks, fewer than {FEWEST}"
    if blocks.kind == "time" and blocks.length is None:
        return "descriptive: the stretches' length was estimated, not declared"
    return ""


def _gathered(rows: np.ndarray, blocks: Blocks) -> np.ndarray:
    """Good and total runs by block; blocks without runs are left out."""
    if blocks.kind == "time":
        if blocks.length is None:
            raise EvidenceInputError("betting over time needs a declared number of periods in a block")
        which = np.arange(len(rows)) // _stretch(rows, blocks.length)
    else:
        codes = np.arange(len(rows)) if blocks.codes is None else np.asarray(blocks.codes)
        if codes.shape != (len(rows),):
            raise EvidenceInputError(f"blocks by {blocks.kind} need one code for each of {len(rows)} rows")
        which = np.unique(codes, return_inverse=True)[1]
    sums = np.column_stack([np.bincount(which, rows[:, column]) for column in (0, 1)])
    return sums[sums[:, 1] > 0]


def _stretch(rows: np.ndarray, declared: int | None) -> int:
    if declared is not None:
        if not 1 <= declared <= len(rows):
            raise EvidenceInputError(f"a stretch of {declared} periods does not fit into {len(rows)}")
        return declared
    from arch.bootstrap import optimal_block_length  # takes 2.6 s to import

    rate = rows[:, 0].sum() / rows[:, 1].sum()
    errors = rows[:, 0] - rate * rows[:, 1]
    if not errors.any():
        return 1
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # it divides by the variance of parts that may have none
        found = float(optimal_block_length(errors)["stationary"].iloc[0])
    return min(max(1, round(found)), len(rows)) if np.isfinite(found) else len(rows)


def _resampled(rows: np.ndarray, length: int, seed: int, resamples: int) -> np.ndarray:
    from arch.bootstrap import IIDBootstrap, StationaryBootstrap

    def sums(resample: Any) -> Any:
        return resample.sum(axis=0)

    generator = np.random.default_rng(seed)
    drawn = IIDBootstrap(rows, seed=generator) if length == 1 else StationaryBootstrap(length, rows, seed=generator)
    totals = drawn.apply(sums, resamples)
    totals = totals[totals[:, 1] > 0]  # a resample of empty periods has no share
    return np.asarray(totals[:, 0] / totals[:, 1])
