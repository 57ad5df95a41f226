"""Run groups from the lake: runs and their effective verdicts in, a GroupTable and what was left out of it back.

Rule: a run that ended in error or was abandoned is unacceptable without any verdict, as in the SLO
``acceptable_outcome``, because nothing acceptable was left and leaving it out would count survivors only. Every other
run without a verdict is missing. A group never mixes versions: runs of one task on two version sets are two groups.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from functools import cache
from importlib.resources import files
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from surefoot.processors.evidence.groups import EQUIVALENCE_RULE, Codes, FloatArray, GroupsError, GroupTable, IntArray
from surefoot.processors.evidence.horizon import BUCKETS, Horizons, describe

WHERE = (
    "service_name",
    "environment",
    "agent_name",
    "agent_version",
    "task_class",
    "consequence_class",
    "task_id",
    "run_group",
    "variant",
)
# What makes two runs repetitions of each other, beside their versions.
_GROUP = ("run_group", "task_id", "variant", "service_name", "environment", "agent_name", "agent_version")

# How a harness says that the run's end was not the agent's doing.
INFRASTRUCTURE_ERRORS = ("InfrastructureError", "infrastructure_error")
# Modes in which nobody and nothing stands between the agent and its effects, and those in which a machine checks.
UNATTENDED = ("autonomous", "deterministic_check", "replay")

_CRASHED = ("error", "abandoned")
_UNJUDGED = ("cancelled", "deferred", "refused")


@dataclass(frozen=True, slots=True)
class GraderUse:
    """A grader whose outcome verdicts count here, and for how many runs."""

    name: str | None
    version: str | None
    kind: str | None
    runs: int


@dataclass(frozen=True, slots=True)
class Reading:
    """What was found between two dates. ``horizons`` are in the order of ``groups.runs``."""

    groups: GroupTable
    systems: Codes  # per group: agent and versions, as JSON
    horizons: Horizons
    graders: tuple[GraderUse, ...]
    crashed: int  # runs that are unacceptable because they ended in error or were abandoned, without a verdict
    left_out: Mapping[str, int]  # reason: runs
    without_versions: int  # runs that record neither a version set nor an agent's version


def read_groups(
    con: duckdb.DuckDBPyConnection,
    first: date,
    last: date,
    *,
    where: Mapping[str, str] | None = None,
    lookback_days: int = 8,
) -> Reading:
    """Return the groups of runs that ended from ``first`` to ``last`` (UTC dates, both included).

    ``con`` is a connection of ``Lake.connect``. ``where``: equal values of columns of ``WHERE``. A run's steps and
    verdicts are read from ``lookback_days`` before the first date on.
    """
    before = first - timedelta(days=lookback_days)
    dates = {"from_date": first, "to_date": last, "verdicts_from": before}
    runs = _query(con, "run_evidence", dates, columns="*, to_json(versions) AS versions_text")
    runs = _chosen(runs, where or {})
    steps = _query(con, "run_steps", {"steps_from": before}, "run_id, started_at, span_id")
    known = pc.or_(runs["task_id"].is_valid(), runs["run_group"].is_valid())
    left_out = {"neither a task id nor a run group": runs.num_rows - (pc.sum(known).as_py() or 0)}
    runs = runs.filter(known)
    horizons = describe(runs, steps)
    systems = _version_sets(runs)
    group_of = _groups(runs, systems)
    signature, mixed = _signatures(runs, group_of)
    if mixed:
        left_out["signature by more than one comparator in a group, taken as unknown"] = mixed
    attempts = _attempts(runs, steps, horizons, group_of, signature)
    rule = _rule(runs)
    groups = GroupTable.from_runs(attempts, equivalence_rule=rule)
    return Reading(
        groups=groups,
        systems=_system_of_group(systems, group_of),
        horizons=_in_order(horizons, runs, groups),
        graders=_graders(runs),
        crashed=int(np.sum(_crashed(runs))),
        left_out={reason: count for reason, count in left_out.items() if count},
        without_versions=_without_versions(runs),
    )


def _version_sets(runs: pa.Table) -> Codes:
    """Return per run its agent's version and its versions as JSON with sorted keys: equal text, equal version set."""
    agents, written = Codes.of(runs["agent_version"]), Codes.of(runs["versions_text"])
    found, of_run = np.unique(_pairs(agents.codes, written), return_inverse=True)
    texts = []
    for agent, versions in (divmod(int(pair), len(written.names) + 1) for pair in found):
        told = {
            "agent": agents.names[agent] if agent >= 0 else None,
            "versions": json.loads(written.names[versions - 1]) if versions else {},
        }
        texts.append(json.dumps(told | {"versions": dict(sorted(told["versions"].items()))}, ensure_ascii=False))
    return Codes.of(texts).take(of_run)


def _pairs(codes: IntArray, column: Codes) -> IntArray:
    """Return one number for two: of earlier codes and of another column, where 0 is no name."""
    return codes * (len(column.names) + 1) + column.codes + 1


@cache
def _sql(name: str) -> str:
    return (files("surefoot.processors.evidence") / "sql" / f"{name}.sql").read_text(encoding="utf-8")


def _query(
    con: duckdb.DuckDBPyConnection,
    name: str,
    parameters: Mapping[str, date],
    order: str = "run_id",
    columns: str = "*",
) -> pa.Table:
    text = f"SELECT {columns} FROM ({_sql(name)}) AS found ORDER BY {order}"  # noqa: S608 - this package's own text
    return con.sql(text, params=dict(parameters)).to_arrow_table()


def _chosen(runs: pa.Table, where: Mapping[str, str]) -> pa.Table:
    for name, value in where.items():
        if name not in WHERE:
            raise GroupsError(f"choosing runs: there is no column {name!r} to choose by; use {', '.join(WHERE)}")
        runs = runs.filter(pc.equal(runs[name], value))
    return runs


def _groups(runs: pa.Table, systems: Codes) -> Codes:
    """Return per run its group, whose id says what the runs of the group share."""
    code = systems.codes
    for name in _GROUP:
        code = np.unique(_pairs(code, Codes.of(runs[name])), return_inverse=True)[1]
    first = np.unique(code, return_index=True)[1]
    versions = [json.loads(name)["versions"] for name in systems.names]
    ids = []
    for system, shared in zip(systems.codes[first].tolist(), runs.select(_GROUP).take(first).to_pylist(), strict=True):
        told = {name: value for name, value in shared.items() if value is not None}
        ids.append(json.dumps(told | {"versions": versions[system]}, ensure_ascii=False))
    return Codes.of(ids).take(code)


def _system_of_group(systems: Codes, group_of: Codes) -> Codes:
    first = np.unique(group_of.codes, return_index=True)[1]
    return systems.take(first)


def _signatures(runs: pa.Table, group_of: Codes) -> tuple[pa.Array, int]:
    """Return signatures that can be compared: those of two comparators, or two versions of one, cannot."""
    comparator = Codes.of(runs["comparator"])
    told = comparator.codes >= 0
    pairs = np.unique(group_of.codes[told] * (len(comparator.names) + 1) + comparator.codes[told])
    several = np.bincount(pairs // (len(comparator.names) + 1), minlength=len(group_of.names)) > 1
    unusable = several[group_of.codes] & told if len(group_of.names) else np.zeros(0, dtype=bool)
    column = runs["signature"].combine_chunks()
    return pc.if_else(pa.array(unusable), pa.scalar(None, pa.string()), column), int(unusable.sum())


def _rule(runs: pa.Table) -> str:
    comparators = sorted({name for name in runs["comparator"].to_pylist() if name is not None})
    return EQUIVALENCE_RULE + "".join(f";{name}" for name in comparators)


def _crashed(runs: pa.Table) -> np.ndarray[Any, np.dtype[np.bool_]]:
    alone = pc.and_(runs["verdict"].is_null(), pc.is_in(runs["outcome"], value_set=pa.array(_CRASHED)))
    crashed: np.ndarray[Any, np.dtype[np.bool_]] = pc.and_not(alone, _infrastructure(runs)).to_numpy()
    return crashed


def _infrastructure(runs: pa.Table) -> pa.ChunkedArray:
    return pc.is_in(runs["error_type"], value_set=pa.array(INFRASTRUCTURE_ERRORS))


def _attempts(
    runs: pa.Table,
    steps: pa.Table,
    horizons: Horizons,
    group_of: Codes,
    signature: pa.Array,
) -> pa.Table:
    outcome, verdict = runs["outcome"], runs["verdict"]
    unjudged = pc.is_in(outcome, value_set=pa.array(_UNJUDGED))
    acceptable = _when((pc.equal(verdict, "pass"), True), (pc.equal(verdict, "fail"), False))
    acceptable = pc.if_else(pa.array(_crashed(runs)), False, acceptable)
    acceptable = pc.if_else(unjudged, pa.scalar(None, pa.bool_()), acceptable)
    held = pc.is_in(outcome, value_set=pa.array(("deferred", "refused")))
    attended = pc.and_(runs["mode"].is_valid(), pc.invert(pc.is_in(runs["mode"], value_set=pa.array(UNATTENDED))))
    stopped = pc.or_(pc.or_(held, attended), _handed_over(runs, steps))
    gone = pc.equal(outcome, "cancelled")
    broken, kept = pc.greater(runs["rules_broken"], 0), pc.greater(runs["rules_kept"], 0)
    failures = pc.add(pc.fill_null(runs["tool_errors"], 0), pc.fill_null(runs["tool_retries"], 0))
    columns = {
        "group_id": pa.DictionaryArray.from_arrays(pa.array(group_of.codes), pa.array(group_of.names, pa.string())),
        "horizon": _horizon_of_group(horizons, group_of),
        "acceptable": acceptable,
        "signature": signature,
        "compliant": _when((broken, False), (kept, True)),
        "available": _when((pc.equal(outcome, "ok"), True), (pc.is_in(outcome, value_set=pa.array(_CRASHED)), False)),
        "disturbed": pc.greater(failures, 0),
        "autonomous": pc.if_else(
            gone, pa.scalar(None, pa.bool_()), _when((stopped, False), (runs["mode"].is_valid(), True))
        ),
        "intervened": _when((stopped, True), (runs["mode"].is_valid(), False)),
        # A verdict is about the run as it ended: to set it apart for its error would hide failures that somebody saw.
        "infrastructure": pc.and_not(
            _infrastructure(runs), pc.fill_null(pc.is_in(verdict, value_set=pa.array(("pass", "fail"))), False)
        ),
        "excluded": unjudged,
        "abstained": _when(
            (pc.is_in(runs["abstention"], value_set=pa.array(("yes", "true", "abstained"))), True),
            (pc.is_in(runs["abstention"], value_set=pa.array(("no", "false", "answered"))), False),
        ),
        "severity": pa.array(_severity(runs), from_pandas=True),
        "duration_ns": runs["duration_ns"],
        "actions": _actions(runs, steps),
    }
    shared = ("run_id", "task_id", "repetition", "task_class", "consequence_class", "confidence", "cost_usd")
    counts = ("model_calls", "tool_calls", "tool_errors")
    return pa.table(columns | {name: runs[name] for name in (*shared, *counts)})


def _when(*cases: tuple[Any, bool]) -> Any:
    """Return the value of the first case that holds, null where none does."""
    chosen: Any = pa.scalar(None, pa.bool_())
    for condition, value in reversed(cases):
        chosen = pc.if_else(pc.fill_null(condition, False), value, chosen)
    return chosen


def _handed_over(runs: pa.Table, steps: pa.Table) -> pa.ChunkedArray:
    held = steps.filter(pc.is_in(steps["outcome"], value_set=pa.array(("deferred", "refused"))))
    return pc.is_in(runs["run_id"], value_set=held["run_id"].combine_chunks())


def _severity(runs: pa.Table) -> FloatArray:
    worst = pc.fill_null(runs["worst_severity"].cast(pa.float64()), np.nan).to_numpy()
    unclear = pc.greater(runs["unknown_severities"], 0).to_numpy()
    # Beside a violation of unknown severity the worst is only known if the known one is as bad as can be.
    return np.where(unclear & ~(worst >= 1), np.nan, worst)


def _actions(runs: pa.Table, steps: pa.Table) -> pa.Array:
    """Return per run the names of its tool calls in the order of their start; ``steps`` are sorted by run."""
    called = steps.filter(steps["tool_name"].is_valid())
    place = pc.fill_null(pc.index_in(called["run_id"], value_set=runs["run_id"].combine_chunks()), -1).to_numpy()
    ours = place >= 0
    counts = np.bincount(place[ours], minlength=runs.num_rows)
    # Both are sorted by run id, so the names come run after run as the offsets ask.
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
    return pa.ListArray.from_arrays(offsets, called["tool_name"].combine_chunks().filter(pa.array(ours)))


def _horizon_of_group(horizons: Horizons, group_of: Codes) -> pa.Array:
    """Return per run the longest bucket of its group: what the task can ask, not what a run that failed early did."""
    top: IntArray = np.full(len(group_of.names), -1, dtype=np.int64)
    np.maximum.at(top, group_of.codes, horizons.bucket())
    of_run = top[group_of.codes]
    return pa.array([BUCKETS[level] if level >= 0 else None for level in of_run.tolist()], pa.string())


def _in_order(horizons: Horizons, runs: pa.Table, groups: GroupTable) -> Horizons:
    if groups.runs is None or not len(groups.runs):
        return horizons
    order = pc.index_in(pa.array(groups.runs.run_id, pa.string()), value_set=runs["run_id"].combine_chunks()).to_numpy()
    return Horizons({name: values[order] for name, values in horizons.values.items()})


def _graders(runs: pa.Table) -> tuple[GraderUse, ...]:
    judged = runs.filter(runs["verdict"].is_valid())
    keys = ["grader_name", "grader_version", "grader_kind"]
    counted = judged.group_by(keys).aggregate([("run_id", "count")]).select([*keys, "run_id_count"])
    uses = [GraderUse(*row) for row in zip(*counted.to_pydict().values(), strict=True)]
    return tuple(sorted(uses, key=lambda use: (-use.runs, str(use.name), str(use.version), str(use.kind))))


def _without_versions(runs: pa.Table) -> int:
    empty = pc.fill_null(pc.equal(pc.list_value_length(runs["versions"].cast(_PAIRS)), 0), True)
    return int(pc.sum(pc.and_(empty, runs["agent_version"].is_null())).as_py() or 0)


_PAIRS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.string())]))
