"""Which runs did the same: trajectories numbered so that equal ones have one number.

Rule: whoever compares runs compares kinds of pairs, not pairs. A million runs of a few hundred trajectories have some
thousand kinds; a loop over the runs took 40 times as long as this.
"""

from __future__ import annotations

from math import log2

import numpy as np

from surefoot.processors.evidence.run_columns import IntArray, RunTable, numbered, stretches

_BITS = 62  # of a number that stands for several actions


def distinct_sequences(runs: RunTable, rows: IntArray) -> tuple[IntArray, list[IntArray]]:
    """Return the number of each row's trajectory, and the trajectories.

    Actions are their codes + 1: 0 is one without a name.
    """
    lengths = (runs.offsets[1:] - runs.offsets[:-1])[rows]
    order = np.argsort(lengths, kind="stable")
    found, starts, _ = stretches(lengths[order])
    ids = np.empty(len(rows), dtype=np.int64)
    sequences: list[IntArray] = []
    for length, where in zip(found.tolist(), np.split(order, starts[1:]), strict=len(rows) > 0):
        block = runs.actions.codes[runs.offsets[rows[where]][:, None] + np.arange(length)] + 1
        numbers, first = _rows_numbered(block, len(runs.actions.names) + 1)
        ids[where] = len(sequences) + numbers
        sequences.extend(block[first])
    return ids, sequences


def without_order(sequences: list[IntArray]) -> tuple[IntArray, list[IntArray]]:
    """Return for each trajectory which of the returned ones has the same actions, in whatever order."""
    kept: dict[bytes, int] = {}
    different: list[IntArray] = []
    numbers = np.empty(len(sequences), dtype=np.int64)
    for place, actions in enumerate(sequences):
        alike = np.sort(actions)
        numbers[place] = kept.setdefault(alike.tobytes(), len(different))
        if numbers[place] == len(different):
            different.append(alike)
    return numbers, different


def _rows_numbered(block: IntArray, actions: int) -> tuple[IntArray, IntArray]:
    """Return the number of each row among the different ones, and a row that has each number."""
    base = max(actions, 2)
    columns = max(1, int(_BITS / log2(base)))
    numbers = np.zeros(len(block), dtype=np.int64)
    for start in range(0, block.shape[1], columns):
        word, span = np.zeros(len(block), dtype=np.int64), 1
        for column in block.T[start : start + columns]:
            word, span = word * base + column, span * base
        kinds, different = numbered(word, span)
        numbers, _ = numbered(numbers * len(different) + kinds, (int(numbers.max()) + 1) * len(different))
    first = np.empty(int(numbers.max()) + 1, dtype=np.int64)
    first[numbers[::-1]] = np.arange(len(block))[::-1]
    return numbers, first
