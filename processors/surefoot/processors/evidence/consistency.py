"""Consistency after Rabanser et al.: how alike repeated runs of a task end, act and spend.

Rule: every figure names its variant. The published code changed two formulas in June 2026, so figures of different
variants must not be compared. A task with fewer than two usable runs has no consistency and is left out, counted.
The ``*_each`` functions give the values per group (NaN where undefined), which intervals over tasks need.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from rapidfuzz.distance import Levenshtein
from rapidfuzz.process import cpdist
from scipy.sparse import csr_array
from scipy.spatial.distance import jensenshannon

from surefoot.processors.evidence.estimate import Estimate
from surefoot.processors.evidence.groups import FloatArray, GroupsError, GroupTable, IntArray, RunTable, Where
from surefoot.processors.evidence.repeated import common_n
from surefoot.processors.evidence.run_columns import numbered, stretches
from surefoot.processors.evidence.trajectories import distinct_sequences, without_order

OutcomeVariant = Literal["plug_in", "unbiased", "legacy_ddof1"]
DistributionVariant = Literal["divergence_base2", "distance_nat"]
Which = Literal["successful", "all"]

RABANSER = "arXiv:2602.16666"
RESOURCES = ("duration_ns", "cost_usd", "model_calls", "tool_calls", "tool_errors")
_ZERO_COUNTS = ("tool_errors",)  # no error is a count of errors; no cost and no time are missing measurements
_PAIRS_AT_ONCE = 4096

_OUTCOME = {
    "plug_in": ("mean of (2p-1)^2", f"{RABANSER}v3, since code 004b6b9"),
    "unbiased": ("mean of 1 - 4 n/(n-1) p(1-p); below 0 where p is near 1/2", "unbiased form of the plug-in"),
    "legacy_ddof1": ("mean of clip(1 - var_ddof1/(p(1-p) + 1e-8), 0, 1)", f"{RABANSER}v2, code before 004b6b9"),
}


def outcome_consistency(groups: GroupTable, *, variant: OutcomeVariant = "plug_in") -> Estimate:
    """Return C_out. The plug-in grows smaller with n at the same p, so it is comparable at equal n only.

    The legacy form is the share of unanimous tasks, because every mixed task gets 0.
    """
    return _mean(
        groups, "outcome_consistency", variant, outcome_consistency_each(groups, variant), *_OUTCOME[variant], "judged"
    )


def outcome_consistency_each(groups: GroupTable, variant: OutcomeVariant = "plug_in") -> FloatArray:
    """Return C_out per group."""
    out = np.full(len(groups), np.nan)
    enough = groups.n >= 2
    n, p = groups.n[enough], groups.c[enough] / groups.n[enough]
    variance = p * (1 - p)
    if variant == "plug_in":
        out[enough] = (2 * p - 1) ** 2
    elif variant == "unbiased":
        out[enough] = 1 - 4 * n / (n - 1) * variance
    else:
        out[enough] = np.clip(1 - n / (n - 1) * variance / (variance + 1e-8), 0, 1)
    return out


def trajectory_consistency(
    groups: GroupTable, *, variant: DistributionVariant = "divergence_base2", which: Which = "successful"
) -> tuple[Estimate, Estimate]:
    """Return C_traj_d and C_traj_s; to pair the runs costs more than either, so they share it."""
    pairs = _pairs(groups, which)
    return _distribution(groups, pairs, variant, which), _sequence(groups, pairs, which)


def trajectory_distribution(
    groups: GroupTable, *, variant: DistributionVariant = "divergence_base2", which: Which = "successful"
) -> Estimate:
    """Return C_traj_d: how alike runs are in which actions they take, whatever the order."""
    return _distribution(groups, _pairs(groups, which), variant, which)


def trajectory_distribution_each(
    groups: GroupTable, variant: DistributionVariant = "divergence_base2", which: Which = "successful"
) -> FloatArray:
    """Return C_traj_d per group."""
    return _distribution_each(_pairs(groups, which), variant)


def trajectory_sequence(groups: GroupTable, *, which: Which = "successful") -> Estimate:
    """Return C_traj_s: how alike runs are in the order of their actions (names only, no arguments)."""
    return _sequence(groups, _pairs(groups, which), which)


def trajectory_sequence_each(groups: GroupTable, which: Which = "successful") -> FloatArray:
    """Return C_traj_s per group."""
    return _sequence_each(_pairs(groups, which))


def _distribution(groups: GroupTable, pairs: _Pairs, variant: DistributionVariant, which: Which) -> Estimate:
    values = _distribution_each(pairs, variant)
    formula = "JSD in base 2" if variant == "divergence_base2" else "sqrt of JSD in nats"
    source = f"{RABANSER}, " + ("code since 4e22f10" if variant == "divergence_base2" else "code before 4e22f10")
    definition = f"mean over tasks of 1 - mean over pairs of runs of {formula}"
    return _mean(
        groups, "trajectory_consistency_distribution", f"{variant};{which}", values, definition, source, _acted(which)
    )


def _distribution_each(pairs: _Pairs, variant: DistributionVariant) -> FloatArray:
    if not pairs.sequences:
        return np.full(pairs.groups, np.nan)
    numbers, bags = without_order(pairs.sequences)
    lengths = [len(one) for one in bags]
    actions = np.concatenate(bags)
    rows = np.repeat(np.arange(len(lengths)), lengths)
    table = csr_array((np.ones(len(actions)), (rows, actions)), shape=(len(lengths), int(actions.max()) + 1))
    kind, left, right = _kinds(numbers[pairs.left], numbers[pairs.right], len(bags))
    distance = np.zeros(len(left))
    for start in range(0, len(left), _PAIRS_AT_ONCE):
        part = slice(start, start + _PAIRS_AT_ONCE)
        one, other = table[left[part]].toarray(), table[right[part]].toarray()
        if variant == "divergence_base2":
            distance[part] = jensenshannon(one, other, base=2, axis=1) ** 2
        else:
            distance[part] = jensenshannon(one, other, axis=1)
    return pairs.mean(1 - distance[kind])


def _sequence(groups: GroupTable, pairs: _Pairs, which: Which) -> Estimate:
    definition = "mean over tasks of mean over pairs of runs of 1 - Levenshtein / longer length"
    name = "trajectory_consistency_sequence"
    return _mean(groups, name, f"levenshtein;{which}", _sequence_each(pairs), definition, RABANSER, _acted(which))


def _sequence_each(pairs: _Pairs) -> FloatArray:
    # One letter an action: cpdist compares texts in one call, a call for each pair took twice as long.
    texts = ["".join(map(chr, one.tolist())) for one in pairs.sequences]
    left, right = ([texts[place] for place in side.tolist()] for side in (pairs.left, pairs.right))
    alike = cpdist(left, right, scorer=Levenshtein.normalized_similarity, dtype=np.float64)
    return pairs.mean(np.asarray(alike))


def resource_consistency(groups: GroupTable, *, resources: Sequence[str] = RESOURCES) -> Estimate:
    """Return C_res over all runs of a task, successful or not; costs that nobody knows are not made up."""
    values = resource_consistency_each(groups, resources)
    definition = "mean over tasks of exp(-mean over resources of sd_ddof1/mean)"
    return _mean(groups, "resource_consistency", "+".join(resources), values, definition, RABANSER, "measured")


def resource_consistency_each(groups: GroupTable, resources: Sequence[str] = RESOURCES) -> FloatArray:
    """Return C_res per group."""
    runs = _runs(groups)
    counted = runs.counted
    total, known = np.zeros(len(groups)), np.zeros(len(groups))
    for name in resources:
        values = runs.numbers[name]
        usable = counted & (values >= 0 if name in _ZERO_COUNTS else values > 0)
        if not usable.any():
            continue
        variation = _variation(runs.group[usable], values[usable], len(groups))
        defined = ~np.isnan(variation)
        total[defined] += variation[defined]
        known += defined
    out = np.full(len(groups), np.nan)
    out[known > 0] = np.exp(-total[known > 0] / known[known > 0])
    return out


def consistency_index(outcome: Estimate, distribution: Estimate, sequence: Estimate, resource: Estimate) -> Estimate:
    """Return R_Con: a third each for outcome, trajectory (mean of its two) and resources, without what is undefined."""
    paths = [one.value for one in (distribution, sequence) if one.value is not None]
    parts = {
        "outcome": outcome.value,
        "trajectory": float(np.mean(paths)) if paths else None,
        "resource": resource.value,
    }
    known = [value for value in parts.values() if value is not None]
    absent = [name for name, value in parts.items() if value is None]
    return Estimate(
        name="consistency_index",
        variant=f"{outcome.variant}|{distribution.variant}|{sequence.variant}|{resource.variant}",
        value=float(np.mean(known)) if known else None,
        k=outcome.k,
        groups=outcome.groups,
        runs=outcome.runs,
        definition="mean of C_out, mean(C_traj_d, C_traj_s) and C_res",
        source=RABANSER,
        reason=f"weights spread over the rest: {', '.join(absent)} undefined" if absent else None,
    )


@dataclass(frozen=True, slots=True)
class _Pairs:
    """All pairs of runs of the same group, each kind of pair once."""

    sequences: list[IntArray]  # the different trajectories
    left: IntArray  # kinds of pairs, places in ``sequences``
    right: IntArray
    kind: IntArray  # per pair of runs: its kind
    group: IntArray  # per pair of runs: its group
    groups: int

    def mean(self, by_kind: FloatArray) -> FloatArray:
        """Return the mean over the pairs of each group, NaN where it has none."""
        count = np.bincount(self.group, minlength=self.groups)
        total = np.bincount(self.group, weights=by_kind[self.kind], minlength=self.groups)
        means: FloatArray = np.divide(total, count, out=np.full(self.groups, np.nan), where=count > 0)
        return means


def _pairs(groups: GroupTable, which: Which) -> _Pairs:
    runs = _runs(groups)
    usable = runs.counted & (runs.offsets[1:] > runs.offsets[:-1])
    if which == "successful":
        usable &= runs.flags["acceptable"] == 1
    # A group with one usable run has no pair.
    usable &= np.bincount(runs.group[usable], minlength=len(groups))[runs.group] > 1
    rows = np.flatnonzero(usable)
    ids, sequences = distinct_sequences(runs, rows)
    one, other, group = _combine(runs.group[rows], ids)
    kind, left, right = _kinds(one, other, len(sequences))
    return _Pairs(sequences, left, right, kind, group, len(groups))


def _kinds(one: IntArray, other: IntArray, names: int) -> tuple[IntArray, IntArray, IntArray]:
    """Return the kind of each unordered pair, and the two of each kind."""
    width = max(names, 1)
    kind, kinds = numbered(np.minimum(one, other) * width + np.maximum(one, other), width**2)
    return kind, kinds // width, kinds % width


def _combine(group: IntArray, ids: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    """Return all pairs of rows of the same group; ``group`` is sorted."""
    found, start, size = stretches(group)
    nothing = np.empty(0, dtype=np.int64)
    left, right, where = [nothing], [nothing], [nothing]
    for members in np.unique(size[size >= 2]):
        alike = size == members
        block = ids[start[alike][:, None] + np.arange(members)]
        i, j = np.triu_indices(int(members), 1)
        left.append(block[:, i].ravel())
        right.append(block[:, j].ravel())
        where.append(np.repeat(found[alike], len(i)))
    return np.concatenate(left), np.concatenate(right), np.concatenate(where)


def _variation(group: IntArray, values: FloatArray, rows: int) -> FloatArray:
    """Return sd(ddof=1)/mean per group, NaN below two values or where their mean is 0."""
    count = np.bincount(group, minlength=rows)
    mean = np.bincount(group, weights=values, minlength=rows) / np.maximum(count, 1)
    squares = np.bincount(group, weights=(values - mean[group]) ** 2, minlength=rows)
    defined = (count >= 2) & (mean > 0)
    out = np.full(rows, np.nan)
    out[defined] = np.sqrt(squares[defined] / (count[defined] - 1)) / mean[defined]
    return out


def _runs(groups: GroupTable) -> RunTable:
    if groups.runs is None:
        raise GroupsError("computing consistency: these groups are counts only; build them with GroupTable.from_runs")
    return groups.runs


def _acted(which: Which) -> str:
    return "acceptable and not empty" if which == "successful" else "not empty"


def _mean(
    groups: GroupTable, name: str, variant: str, values: FloatArray, definition: str, source: str, usable: str
) -> Estimate:
    defined: Where = ~np.isnan(values)
    left_out = int((~defined).sum())
    reason = f"{left_out} groups left out: fewer than 2 runs that are {usable}" if left_out else None
    return Estimate(
        name=name,
        variant=variant,
        value=float(values[defined].mean()) if defined.any() else None,
        k=common_n(groups.n[defined]),
        groups=int(defined.sum()),
        runs=int(groups.n[defined].sum()),
        definition=definition,
        source=source,
        reason=reason if defined.any() else f"no group has 2 runs that are {usable}",
    )
