"""Which runs did the same: trajectories numbered so that equal ones have one number.

Rule: whoever compares runs compares kinds of pairs, not pairs. A million runs of a few hundred trajectories have some
thousand kinds; a loop over the runs took 40 times as long as this.
"""

from __future__ import annotations

from math import log2

import numpy as np

from surefoot.processors.evidence.run_columns import IntArray, RunTable

_BITS = 62  # of a number that stands for several actions
_TABLE = 4  # a table of so many cells a row is faster than sorting


def distinct_sequences(runs: RunTable, rows: IntArray, *, in_order: bool) -> tuple[IntArray, list[IntArray]]:
    """Return the number of each row's trajectory, and the trajectories; without order they are sorted actions.

    Actions are their codes + 1: 0 is one without a name.
    """
    lengths = (runs.offsets[1:] - runs.offsets[:-1])[rows]
    order = np.argsort(lengths, kind="stable")
    found, starts = np.unique(lengths[order], return_index=True)
    ids = np.empty(len(rows), dtype=np.int64)
    sequences: list[IntArray] = []
    for length, where in zip(found.tolist(), np.split(order, starts[1:]), strict=len(rows) > 0):
        block = runs.actions.codes[runs.offsets[rows[where]][:, None] + np.arange(length)] + 1
        numbers, first = _rows_numbered(block, len(runs.actions.names) + 1)
        different = block[first]
        if not in_order:  # few are left to sort
            different.sort(axis=1)
            alike, first = _rows_numbered(different, len(runs.actions.names) + 1)
            numbers, different = alike[numbers], different[first]
        ids[where] = len(sequences) + numbers
        sequences.extend(different)
    return ids, sequences


def numbered(keys: IntArray, span: int) -> tuple[IntArray, IntArray]:
    """Return the number of each key (0 <= key < span) among the different ones, and these, ascending."""
    if span > _TABLE * max(len(keys), 1):
        different, numbers = np.unique(keys, return_inverse=True)
        return numbers.astype(np.int64), different
    there = np.bincount(keys, minlength=span) > 0
    return (np.cumsum(there) - 1)[keys], np.flatnonzero(there)


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
