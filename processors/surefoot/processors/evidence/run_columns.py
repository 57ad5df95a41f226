"""The runs behind run groups, as columns.

Rule: what a run does not tell is unknown, -1 of a flag and NaN of a number; no column ever guesses.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from surefoot.processors.errors import ProcessorsError

IntArray = NDArray[np.int64]
FlagArray = NDArray[np.int8]  # 1 yes, 0 no, -1 unknown or not asked
FloatArray = NDArray[np.float64]  # NaN where unknown
NameArray = NDArray[np.object_]
Where = NDArray[np.bool_]

FLAGS = (
    "acceptable",
    "compliant",
    "available",
    "disturbed",  # a tool call of it failed
    "autonomous",
    "intervened",
    "infrastructure",  # the infrastructure ended it
    "excluded",  # it ended in a way that nobody judges: cancelled, deferred, refused
    "abstained",
)
NUMBERS = (
    "repetition",
    "confidence",
    "duration_ns",
    "cost_usd",
    "model_calls",
    "tool_calls",
    "tool_errors",
    "severity",
)


_TABLE = 4  # a table of so many cells a row is faster than sorting


class GroupsError(ProcessorsError):
    """Runs or counts that do not make run groups."""


@dataclass(frozen=True, slots=True)
class Codes:
    """A column of names: ``codes[i]`` is the place of row i's name in ``names`` (sorted), -1 where it has none."""

    codes: IntArray
    names: tuple[str, ...]

    @classmethod
    def of(cls, values: pa.Array | pa.ChunkedArray | Sequence[str | None]) -> Self:
        """Encode names; the order of ``names`` does not depend on the order of the rows."""
        array = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else pa.array(values, pa.string())
        encoded = array.cast(pa.string()).dictionary_encode()
        order = pc.sort_indices(encoded.dictionary).to_numpy(zero_copy_only=False)
        place = np.empty(len(order) + 1, dtype=np.int64)
        place[order] = np.arange(len(order))
        place[-1] = -1
        raw = pc.fill_null(encoded.indices, -1).to_numpy(zero_copy_only=False)
        return cls(place[raw], tuple(encoded.dictionary.take(order).to_pylist()))

    @classmethod
    def unknown(cls, rows: int) -> Self:
        """Return a column in which no row has a name."""
        return cls(np.full(rows, -1, dtype=np.int64), ())

    def take(self, rows: NDArray[Any]) -> Codes:
        """Return these rows, with the same names."""
        return Codes(self.codes[rows], self.names)


@dataclass(frozen=True, slots=True)
class RunTable:
    """The runs of the groups, sorted by ``group``; the columns of ``FLAGS`` and ``NUMBERS``, each -1 or NaN if unknown.

    Run i did the actions ``actions.codes[offsets[i]:offsets[i + 1]]``, in that order.
    """

    group: IntArray  # row of the GroupTable
    run_id: NameArray
    flags: Mapping[str, FlagArray]
    numbers: Mapping[str, FloatArray]
    actions: Codes
    offsets: IntArray

    def __len__(self) -> int:
        return len(self.group)

    @property
    def counted(self) -> Where:
        """The runs that say something about the agent's outcome: neither spared nor excluded."""
        counted: Where = (self.flags["infrastructure"] != 1) & (self.flags["excluded"] != 1)
        return counted


def groups_with(runs: RunTable, where: Where) -> int:
    """Return how many groups have such a run."""
    found = runs.group[where]  # sorted
    return int(np.count_nonzero(found[1:] != found[:-1])) + bool(len(found))


def numbered(keys: IntArray, span: int) -> tuple[IntArray, IntArray]:
    """Return the number of each key (0 <= key < span) among the different ones, and these, ascending."""
    if span > _TABLE * max(len(keys), 1):
        different, numbers = np.unique(keys, return_inverse=True)
        return numbers.astype(np.int64), different
    there = np.bincount(keys, minlength=span) > 0
    return (np.cumsum(there) - 1)[keys], np.flatnonzero(there)


def tallied(keys: IntArray, span: int) -> tuple[IntArray, IntArray]:
    """Return the different keys (0 <= key < span), ascending, and how often each is there."""
    if span > _TABLE * max(len(keys), 1):
        return np.unique(keys, return_counts=True)
    times = np.bincount(keys, minlength=span)
    different = np.flatnonzero(times)
    return different, times[different]


def stretches(values: NDArray[Any]) -> tuple[NDArray[Any], IntArray, IntArray]:
    """Return the different values of a sorted column, where each begins, and how often it is there."""
    begins = np.ones(len(values), dtype=np.bool_)
    np.not_equal(values[1:], values[:-1], out=begins[1:])
    starts = np.flatnonzero(begins)
    return values[starts], starts, np.diff(np.append(starts, len(values)))


def column_codes(runs: pa.Table, name: str) -> Codes:
    """Return the names of a column, all unknown where there is no such column."""
    return Codes.of(runs[name]) if name in runs.column_names else Codes.unknown(runs.num_rows)


def names_at(runs: pa.Table, name: str, rows: IntArray) -> NameArray | None:
    """Return the names of these rows, None where there is no such column."""
    if name not in runs.column_names:
        return None
    column = runs[name].combine_chunks().cast(pa.string())
    names: NameArray = column.take(pa.array(rows)).to_numpy(zero_copy_only=False)
    return names


def canonical_order(runs: pa.Table, group: IntArray) -> IntArray:
    """Return the order by (group, repetition, run id)."""
    if "repetition" in runs.column_names and len(group):
        # A million runs sort in 0.15 s by numbers and in 0.5 s by numbers and names (CPU). Where the numbers tell all
        # runs apart, the names change nothing.
        number = pc.fill_null(runs["repetition"].cast(pa.int64()), -1).to_numpy()
        span = int(number.max()) - int(number.min()) + 1
        if span * (int(group.max()) + 1) < 2**62:
            key = group * span + (number - number.min())
            by_number: IntArray = np.argsort(key, kind="stable").astype(np.int64)
            if not np.any(np.diff(key[by_number]) == 0):
                return by_number
    keys = {"group": pa.array(group)}
    keys |= {name: runs[name] for name in ("repetition", "run_id") if name in runs.column_names}
    order: IntArray = pc.sort_indices(pa.table(keys), sort_keys=[(name, "ascending") for name in keys]).to_numpy()
    return order.astype(np.int64)


def run_table(runs: pa.Table, group: IntArray, order: IntArray) -> RunTable:
    """Return the runs in this order; ``group`` is in it already."""
    rows = runs.num_rows
    untold, unknown = np.full(rows, -1, dtype=np.int8), np.full(rows, np.nan)
    flags = {
        name: _filled(runs, name, pa.bool_(), pa.int8(), -1, order) if name in runs.column_names else untold
        for name in FLAGS
    }
    numbers = {
        name: _filled(runs, name, pa.float64(), pa.float64(), np.nan, order) if name in runs.column_names else unknown
        for name in NUMBERS
    }
    actions, offsets = _actions(runs, order)
    names = names_at(runs, "run_id", order)
    ids = np.full(rows, None, dtype=object) if names is None else names
    return RunTable(group=group, run_id=ids, flags=flags, numbers=numbers, actions=actions, offsets=offsets)


def _filled(runs: pa.Table, name: str, read: pa.DataType, to: pa.DataType, null: float, order: IntArray) -> Any:
    # Not safe on purpose: a long duration in nanoseconds is no exact float, and need not be.
    return pc.fill_null(runs[name].cast(read, safe=False).cast(to), pa.scalar(null, to)).to_numpy()[order]


def _actions(runs: pa.Table, order: IntArray) -> tuple[Codes, IntArray]:
    if "actions" not in runs.column_names:
        return Codes.unknown(0), np.zeros(runs.num_rows + 1, dtype=np.int64)
    column = runs["actions"].combine_chunks()
    lengths = pc.fill_null(pc.list_value_length(column), 0).to_numpy(zero_copy_only=False)
    starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    codes = Codes.of(pc.list_flatten(column))
    if np.array_equal(order, np.arange(len(order))):  # they stand in order already: a fifth of the time of all columns
        return codes, starts
    places, offsets = _gather(starts, order)
    return codes.take(places), offsets


def _gather(starts: IntArray, rows: IntArray) -> tuple[IntArray, IntArray]:
    """Return the places of the elements of these rows of a list column, and the offsets of the new column."""
    lengths = (starts[1:] - starts[:-1])[rows]
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    return np.repeat(starts[:-1][rows] - offsets[:-1], lengths) + np.arange(offsets[-1]), offsets


def select_runs(runs: RunTable, groups: Where) -> RunTable:
    """Return the runs of these groups, whose rows are numbered anew."""
    keep = np.flatnonzero(groups[runs.group])
    renumbered = (np.cumsum(groups) - 1)[runs.group[keep]]
    places, offsets = _gather(runs.offsets, keep)
    return RunTable(
        group=renumbered.astype(np.int64),
        run_id=runs.run_id[keep],
        flags={name: column[keep] for name, column in runs.flags.items()},
        numbers={name: column[keep] for name, column in runs.numbers.items()},
        actions=runs.actions.take(places),
        offsets=offsets,
    )
