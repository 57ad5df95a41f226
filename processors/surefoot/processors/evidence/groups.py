"""Run groups as columns: repeated runs in, one row per group (task x version set) out, and the runs behind them.

Rule: a run without an outcome verdict is missing, and one that the infrastructure ended or that ended in a way that
nobody judges is set apart; none of them is ever a failure. Rows are sorted by group id and runs by (group, repetition,
run id), so that the same runs give the same columns, and the same content hash, in whatever order they were read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import ArrayLike, NDArray

from surefoot.processors.evidence.run_columns import (
    FLAGS,
    NUMBERS,
    Codes,
    FlagArray,
    FloatArray,
    GroupsError,
    IntArray,
    NameArray,
    RunTable,
    Where,
    canonical_order,
    column_codes,
    names_at,
    run_table,
    select_runs,
    stretches,
)

# Users of a GroupTable need its columns' types too.
__all__ = [
    "ALL_ACCEPTABLE",
    "CLASS_NAMES",
    "CONSISTENT_WRONG",
    "EQUIVALENCE_RULE",
    "FLAGS",
    "MIXED",
    "NON_EQUIVALENT",
    "NUMBERS",
    "STRATA",
    "UNCLASSED",
    "Codes",
    "FlagArray",
    "FloatArray",
    "GroupTable",
    "GroupsError",
    "IntArray",
    "NameArray",
    "RunTable",
    "Where",
    "outcome_classes",
]

ALL_ACCEPTABLE, MIXED, CONSISTENT_WRONG, NON_EQUIVALENT = range(4)
CLASS_NAMES = ("all_acceptable", "mixed", "consistent_wrong", "non_equivalent_repeated_failure")
UNCLASSED = -1  # fewer than two judged runs, or failures whose equivalence nobody knows

# Two unacceptable runs are equivalent when their signatures are the same string (docs/estimators.md).
EQUIVALENCE_RULE = "signature-equality/1"

STRATA = ("task_class", "consequence_class", "horizon")


@dataclass(frozen=True, slots=True)
class GroupTable:
    """One row per run group, sorted by ``group_id``."""

    group_id: NameArray
    task_id: NameArray
    strata: Mapping[str, Codes]  # a column for each of STRATA
    n: IntArray  # attempts with an outcome verdict
    c: IntArray  # of those, acceptable
    missing: IntArray  # attempts without an outcome verdict
    infrastructure: IntArray  # attempts that the infrastructure ended: in neither n nor missing
    excluded: IntArray  # attempts that ended in a way that nobody judges: in neither n nor missing
    equivalent: FlagArray  # of a group whose runs were all unacceptable: 1 equivalent, 0 not; -1 unknown or not asked
    equivalence_rule: str
    runs: RunTable | None = None  # None where only counts were published

    def __len__(self) -> int:
        return len(self.n)

    def classes(self) -> FlagArray:
        """Return each group's outcome class, a place in ``CLASS_NAMES``, or ``UNCLASSED``."""
        return outcome_classes(self.n, self.c, self.equivalent)

    @classmethod
    def from_counts(
        cls,
        n: ArrayLike,
        c: ArrayLike,
        *,
        task_id: Sequence[str] | None = None,
        missing: ArrayLike | None = None,
        equivalent: ArrayLike | None = None,
        equivalence_rule: str = "published",
        **strata: Sequence[str | None],
    ) -> Self:
        """Return groups of published counts: attempts ``n`` (or one number for all) and acceptable ones ``c`` per task.

        ``strata``: task_class, consequence_class, horizon. Without task ids, groups are numbered as they come.
        """
        good = np.atleast_1d(np.asarray(c, dtype=np.int64))
        rows = len(good)
        total = np.broadcast_to(np.asarray(n, dtype=np.int64), rows)
        if np.any(good < 0) or np.any(good > total):
            raise GroupsError("reading counts: a group has fewer than 0 or more than n acceptable runs; correct c or n")
        if task_id is not None and not len(task_id) == len(set(task_id)) == rows:
            raise GroupsError(f"reading counts: {rows} groups need as many different task ids, got {len(set(task_id))}")
        _known(strata, STRATA)
        ids = _numbers(rows) if task_id is None else np.array(list(task_id), dtype=object)
        order = np.arange(rows) if task_id is None else np.argsort(ids, kind="stable")
        columns = {name: _codes(strata.get(name), rows).take(order) for name in STRATA}
        flags = np.full(rows, -1) if equivalent is None else np.asarray(equivalent)
        lost = np.zeros(rows, dtype=np.int64) if missing is None else np.asarray(missing, dtype=np.int64)
        return cls(
            group_id=ids[order],
            task_id=ids[order],
            strata=columns,
            n=total[order],
            c=good[order],
            missing=lost[order],
            infrastructure=np.zeros(rows, dtype=np.int64),
            excluded=np.zeros(rows, dtype=np.int64),
            equivalent=flags[order].astype(np.int8),
            equivalence_rule=equivalence_rule,
        )

    @classmethod
    def from_runs(cls, runs: pa.Table, *, equivalence_rule: str = EQUIVALENCE_RULE) -> Self:
        """Return the groups of one row per attempt.

        Needed: ``group_id``, ``acceptable`` (bool, null = no verdict). Used when there: ``task_id``, ``run_id``,
        ``repetition``, the columns of STRATA, of FLAGS (bool) and of NUMBERS, ``signature`` (string: equal means the
        same final state), ``actions`` (list of strings). A group's task and strata are those of its first run.
        """
        for name in ("group_id", "acceptable"):
            if name not in runs.column_names:
                raise GroupsError(f"grouping runs: the column {name!r} is missing; give one row per attempt with it")
        if runs["group_id"].null_count:
            raise GroupsError(f"grouping runs: {runs['group_id'].null_count} runs have no group_id; leave them out")
        groups = Codes.of(runs["group_id"])
        order = canonical_order(runs, groups.codes)
        group = groups.codes[order]
        table = run_table(runs, group, order)
        _, first, _ = stretches(group)
        broken = table.flags["infrastructure"] == 1
        unjudged = (table.flags["excluded"] == 1) & ~broken
        spared = broken | unjudged
        acceptable = table.flags["acceptable"]
        n = _count((acceptable >= 0) & ~spared, first)
        c = _count((acceptable == 1) & ~spared, first)
        ids = np.array(groups.names, dtype=object)
        tasks = names_at(runs, "task_id", order[first])
        return cls(
            group_id=ids,
            task_id=ids if tasks is None else tasks,
            strata={name: column_codes(runs, name).take(order[first]) for name in STRATA},
            n=n,
            c=c,
            missing=_count((acceptable < 0) & ~spared, first),
            infrastructure=_count(broken, first),
            excluded=_count(unjudged, first),
            equivalent=_equivalence(group, column_codes(runs, "signature").codes[order], acceptable, spared, n, c),
            equivalence_rule=equivalence_rule,
            runs=table,
        )

    def select(self, rows: NDArray[Any]) -> GroupTable:
        """Return the groups where ``rows`` (one bool per group) is true, and their runs."""
        runs = None if self.runs is None else select_runs(self.runs, np.asarray(rows, dtype=bool))
        return self._take(np.flatnonzero(rows), runs)

    def repeated(self, times: IntArray) -> GroupTable:
        """Return each group so often, for counts of groups that are alike: one stands for all, with its name."""
        return self._take(np.repeat(np.arange(len(self)), times), None)

    def _take(self, keep: NDArray[Any], runs: RunTable | None) -> GroupTable:
        return GroupTable(
            group_id=self.group_id[keep],
            task_id=self.task_id[keep],
            strata={name: codes.take(keep) for name, codes in self.strata.items()},
            n=self.n[keep],
            c=self.c[keep],
            missing=self.missing[keep],
            infrastructure=self.infrastructure[keep],
            excluded=self.excluded[keep],
            equivalent=self.equivalent[keep],
            equivalence_rule=self.equivalence_rule,
            runs=runs,
        )


def outcome_classes(n: ArrayLike, c: ArrayLike, equivalent: ArrayLike) -> FlagArray:
    """Return each group's class: exclusive, and exhaustive over groups with n >= 2 and known equivalence."""
    total, good, same = np.asarray(n), np.asarray(c), np.asarray(equivalent)
    out = np.full(len(total), UNCLASSED, dtype=np.int8)
    repeated = total >= 2
    out[repeated & (good == total)] = ALL_ACCEPTABLE
    out[repeated & (good > 0) & (good < total)] = MIXED
    out[repeated & (good == 0) & (same == 1)] = CONSISTENT_WRONG
    out[repeated & (good == 0) & (same == 0)] = NON_EQUIVALENT
    return out


def _numbers(rows: int) -> NameArray:
    names = pc.utf8_lpad(pa.array(np.arange(rows)).cast(pa.string()), 9, "0")
    found: NameArray = names.to_numpy(zero_copy_only=False)
    return found


def _known(given: Mapping[str, object], allowed: Sequence[str]) -> None:
    for name in given:
        if name not in allowed:
            raise GroupsError(f"reading counts: no stratum is named {name!r}; use {', '.join(allowed)}")


def _codes(values: Sequence[str | None] | None, rows: int) -> Codes:
    return Codes.unknown(rows) if values is None else Codes.of(values)


def _count(where: Where, first: IntArray) -> IntArray:
    """Return how many of each group's runs are so; ``first`` is where each group, none of them empty, begins."""
    return np.add.reduceat(where, first, dtype=np.int64) if len(first) else np.empty(0, dtype=np.int64)


def _equivalence(
    group: IntArray,
    signature: IntArray,
    acceptable: FlagArray,
    spared: Where,
    n: IntArray,
    c: IntArray,
) -> FlagArray:
    """Return 0 where two known signatures differ, 1 where all are known and the same, -1 where that is not known."""
    out = np.full(len(n), -1, dtype=np.int8)
    asked = (n >= 2) & (c == 0)
    judged = (acceptable == 0) & ~spared & asked[group]
    if not judged.any():
        return out
    where, sign = group[judged], signature[judged]
    starts = np.flatnonzero(np.concatenate([[True], where[1:] != where[:-1]]))
    top = np.maximum.reduceat(sign, starts)
    low = np.minimum.reduceat(np.where(sign < 0, np.iinfo(np.int64).max, sign), starts)
    all_known = np.minimum.reduceat(sign, starts) >= 0
    differs = (top >= 0) & (low != top)
    out[where[starts]] = np.where(differs, 0, np.where(all_known, 1, -1))
    return out
