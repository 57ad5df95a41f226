"""How long the way of a run is: eight descriptors from its steps, and a bucket to stratify by.

Rule: length is not one number. State changes, dependencies, borders of authority, time, branches, failures on the way,
irreversible actions and checkpoints are told apart, and what the spans do not tell is unknown (NaN), not 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from surefoot.processors.evidence.groups import Codes, FloatArray, IntArray, Where

BUCKETS = ("short", "medium", "long")
RULE = "horizon/1"

_SECOND = 1_000_000_000
# From where on a descriptor makes a run medium, and long. Not measured on any population: a starting point, to be set
# per task class. Recovery points are left out, because they tell what went wrong rather than what the task asks.
THRESHOLDS: Mapping[str, tuple[float, float]] = {
    "state_changes": (2, 6),
    "dependencies": (2, 4),
    "authority_crossings": (1, 3),
    "elapsed_ns": (60 * _SECOND, 3600 * _SECOND),
    "branches": (2, 5),
    "irreversible": (1, 2),
    "checkpoints": (1, 3),
}


@dataclass(frozen=True, slots=True)
class Horizons:
    """The descriptors of some runs, in the order in which the runs were given.

    ``state_changes``: tool calls with effect write or irreversible. ``dependencies``: different ones that it called.
    ``authority_crossings``: times that the next step is in another authority domain than the one before.
    ``elapsed_ns``. ``branches``: sub-runs, and tool calls that began before the one before them had ended.
    ``recovery_points``: tool calls that failed or asked for another try. ``irreversible``: tool calls with that effect.
    ``checkpoints``: spans that say that they are one.
    """

    values: Mapping[str, FloatArray]
    rule: str = RULE
    thresholds: Mapping[str, tuple[float, float]] = field(default_factory=lambda: THRESHOLDS)

    def bucket(self) -> IntArray:
        """Return per run a place in ``BUCKETS``: the highest that a known descriptor asks for; -1 if none is known."""
        level = np.full(len(self.values["elapsed_ns"]), -1, dtype=np.int64)
        for name, (medium, long) in self.thresholds.items():
            value = self.values[name]
            known = ~np.isnan(value)
            level[known] = np.maximum(level[known], (value[known] >= medium).astype(int) + (value[known] >= long))
        return level


def describe(runs: pa.Table, steps: pa.Table) -> Horizons:
    """Return the descriptors of ``runs`` (run_id, duration_ns, sub_runs) from ``steps``, sorted by run and start.

    ``steps`` are rows of sql/run_steps.sql; those of other runs are left out.
    """
    place = pc.fill_null(pc.index_in(steps["run_id"], value_set=runs["run_id"].combine_chunks()), -1).to_numpy()
    known = place >= 0
    told, run = steps.filter(pa.array(known)), place[known].astype(np.int64)
    rows = runs.num_rows
    effect, outcome = Codes.of(told["effect"]), Codes.of(told["outcome"])
    called = _present(told, "tool_name")
    calls, irreversible = _count(run, called, rows), _is(effect, "irreversible")
    # One call of unknown effect, and nobody knows how much the run changed.
    unclear = _count(run, called & ~(irreversible | _is(effect, "write") | _is(effect, "read")), rows) > 0
    kept = _count(run, told["span_kept"].to_numpy() == 1, rows) > 0
    domain = Codes.of(told["authority_domain"])
    dependency = Codes.of(told["dependency"])
    elapsed = pc.fill_null(runs["duration_ns"].cast(pa.float64(), safe=False), np.nan).to_numpy()
    values = {
        "state_changes": _unknown(_count(run, irreversible | _is(effect, "write"), rows), unclear),
        "dependencies": _unknown(_different(run, dependency, rows), (calls > 0) & ~_any(run, dependency, rows)),
        "authority_crossings": _unknown(_crossings(run, domain, rows), ~_any(run, domain, rows)),
        "elapsed_ns": np.where(elapsed >= 0, elapsed, np.nan),
        "branches": _overlaps(run, told, called, rows) + runs["sub_runs"].cast(pa.float64()).to_numpy(),
        "recovery_points": _count(run, _is(outcome, "error") | _is(outcome, "retry"), rows).astype(np.float64),
        "irreversible": _unknown(_count(run, irreversible, rows), unclear),
        "checkpoints": _unknown(_count(run, _present(told, "checkpoint"), rows), (calls > 0) & ~kept),
    }
    return Horizons(values)


def _present(table: pa.Table, name: str) -> Where:
    present: Where = table[name].is_valid().to_numpy()
    return present


def _is(codes: Codes, word: str) -> Where:
    is_it: Where = codes.codes == (codes.names.index(word) if word in codes.names else -2)
    return is_it


def _count(run: IntArray, where: Where, rows: int) -> IntArray:
    return np.bincount(run[where], minlength=rows).astype(np.int64)


def _any(run: IntArray, codes: Codes, rows: int) -> Where:
    found: Where = _count(run, codes.codes >= 0, rows) > 0
    return found


def _unknown(values: IntArray, where: Where) -> FloatArray:
    return np.where(where, np.nan, values.astype(np.float64))


def _different(run: IntArray, codes: Codes, rows: int) -> IntArray:
    named = codes.codes >= 0
    pairs = np.unique(run[named] * (len(codes.names) + 1) + codes.codes[named])
    return np.bincount(pairs // (len(codes.names) + 1), minlength=rows).astype(np.int64)


def _crossings(run: IntArray, domain: Codes, rows: int) -> IntArray:
    named = domain.codes >= 0
    where, what = run[named], domain.codes[named]
    crossed = (where[1:] == where[:-1]) & (what[1:] != what[:-1])
    return np.bincount(where[1:][crossed], minlength=rows).astype(np.int64)


def _overlaps(run: IntArray, told: pa.Table, called: Where, rows: int) -> IntArray:
    where = run[called]
    begin, end = (told[name].cast(pa.int64()).filter(pa.array(called)) for name in ("started_at", "ended_at"))
    first, last = pc.fill_null(begin, 0).to_numpy(), pc.fill_null(end, 0).to_numpy()
    beside = (where[1:] == where[:-1]) & (first[1:] < last[:-1])
    return np.bincount(where[1:][beside], minlength=rows).astype(np.int64)
