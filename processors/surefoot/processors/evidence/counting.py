"""Run groups to sufficient counts: the few integers by stratum from which every indicator of a profile follows.

Rule: nothing is lost that an indicator needs. Groups that are alike in attempts, acceptable ones, missing verdicts and
equivalence are one row, so that 200,000 groups of five runs make a few dozen.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from surefoot.processors.evidence.groups import STRATA, GroupTable, IntArray
from surefoot.processors.evidence.profile import LISTED, ListedGroup, OutcomeCount, RatioCount, StratumCounts
from surefoot.processors.evidence.run_columns import numbered
from surefoot.processors.evidence.run_rates import Indicator, counts
from surefoot.processors.evidence.template import Published

# The template's name of each rate of runs.
RATES: Final[dict[str, Indicator]] = {
    "policy_compliance_rate": "policy_compliance",
    "recovery_success": "recovery_success",
    "autonomous_coverage": "autonomous_coverage",
    "intervention_success": "intervention_success",
}
_VERDICTS: Final = {1: "1", 0: "0", -1: "?", -2: "-"}


def stratum_codes(groups: GroupTable, dimensions: Sequence[str]) -> tuple[IntArray, list[tuple[str | None, ...]]]:
    """Stratum of each group, and the names of each stratum in the order of STRATA; None where it has none."""
    rows = len(groups)
    columns = [groups.strata[name].codes if name in dimensions else np.full(rows, -1) for name in STRATA]
    distinct, codes, _ = _distinct(columns)
    names = [
        tuple(groups.strata[name].names[code] if code >= 0 else None for name, code in zip(STRATA, row, strict=True))
        for row in distinct.tolist()
    ]
    return codes.astype(np.int64), names


def sufficient_counts(groups: GroupTable, dimensions: Sequence[str]) -> list[StratumCounts]:
    """The counts of each stratum, in the order of ``stratum_codes``."""
    codes, names = stratum_codes(groups, dimensions)
    outcomes = _alike([codes, groups.n, groups.c, groups.missing, groups.equivalent.astype(np.int64)])
    ratios = {}
    if groups.runs is not None:
        for name, rate in RATES.items():
            runs, hits = counts(groups, rate)
            ratios[name] = _alike([codes[runs > 0], runs[runs > 0], hits[runs > 0]])
    return [
        StratumCounts(
            task_class=task,
            consequence_class=consequence,
            horizon=horizon,
            outcomes=[
                OutcomeCount(n=n, c=c, missing=missing, equivalent=None if same < 0 else bool(same), groups=times)
                for code, n, c, missing, same, times in outcomes
                if code == place
            ],
            ratios={
                name: [
                    RatioCount(runs=runs, hits=hits, groups=times) for code, runs, hits, times in rows if code == place
                ]
                for name, rows in ratios.items()
            },
        )
        for place, (task, consequence, horizon) in enumerate(names)
    ]


def published_counts(published: Published) -> list[StratumCounts]:
    """The counts of a publication, by stratum."""
    strata: dict[tuple[str | None, ...], list[OutcomeCount]] = {}
    for row in published.counts:
        same = OutcomeCount(n=row.n, c=row.c, missing=row.missing, equivalent=row.equivalent, groups=row.groups)
        strata.setdefault((row.task_class, row.consequence_class, row.horizon), []).append(same)
    return [
        StratumCounts(task_class=task, consequence_class=consequence, horizon=horizon, outcomes=rows, ratios={})
        for (task, consequence, horizon), rows in sorted(strata.items(), key=lambda item: str(item[0]))
    ]


def listed_groups(groups: GroupTable, dimensions: Sequence[str], most: int = LISTED) -> list[ListedGroup]:
    """Run by run, the worst first: the smallest share of acceptable runs, then those judged least; then by id."""
    runs = groups.runs
    if runs is None:
        return []
    codes, _ = stratum_codes(groups, dimensions)
    share = np.divide(groups.c, groups.n, out=np.full(len(groups), -1.0), where=groups.n > 0)
    order = np.lexsort((np.arange(len(groups)), groups.n, share))[:most]
    ends = np.searchsorted(runs.group, np.arange(len(groups) + 1))
    verdicts = np.where(runs.counted, runs.flags["acceptable"], -2)
    return [
        ListedGroup(
            group_id=str(groups.group_id[row]),
            task_id=str(groups.task_id[row]),
            stratum=int(codes[row]),
            outcomes="".join(_VERDICTS[int(one)] for one in verdicts[ends[row] : ends[row + 1]]),
            run_ids=[str(one) for one in runs.run_id[ends[row] : ends[row + 1]] if one is not None],
        )
        for row in order.tolist()
    ]


def _alike(columns: list[IntArray]) -> list[list[int]]:
    """Distinct rows, and how often each is there, as the last column."""
    rows, _, times = _distinct(columns)
    table: list[list[int]] = np.column_stack([rows, times]).tolist()
    return table


def _distinct(columns: list[IntArray]) -> tuple[IntArray, IntArray, IntArray]:
    """Distinct rows in order, which of them each row is, and how often it is there.

    By one number a row: sorting 200,000 rows as rows took 16 times as much processor time.
    """
    key, span = np.zeros(len(columns[0]), dtype=np.int64), 1
    for column in columns:
        if len(column):
            width = int(column.max()) - int(column.min()) + 1
            key, span = key * width + (column - column.min()), span * width
    which, keys = numbered(key, span)
    one_of = np.empty(len(keys), dtype=np.int64)
    one_of[which] = np.arange(len(which))
    return np.column_stack([column[one_of] for column in columns]), which, np.bincount(which, minlength=len(keys))
