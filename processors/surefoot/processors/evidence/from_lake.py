"""A profile from the runs of the lake that its spec selects.

Rule: a profile is about one version set. Runs of several are refused, with the sets and how to choose one, because an
average over two systems is a claim about neither.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final

import duckdb
import numpy as np
import pyarrow as pa

from surefoot.processors.evidence.build import BuildError, assemble, built_at, grader_of_kind
from surefoot.processors.evidence.counting import listed_groups, sufficient_counts
from surefoot.processors.evidence.grading.decision_grade import measured
from surefoot.processors.evidence.grading.reading import GradedRun, class_audits, read_graded
from surefoot.processors.evidence.groups import FloatArray, GroupTable, RunTable
from surefoot.processors.evidence.horizon import Horizons
from surefoot.processors.evidence.production import block_names, with_blocks
from surefoot.processors.evidence.profile import Evidence, GraderError, GraderUse, Profile, Spread, Tally
from surefoot.processors.evidence.reading import Reading, read_groups
from surefoot.processors.evidence.template import BlockUnit, RepeatProtocol, Selection, Spec
from surefoot.processors.evidence.unfinished import unfinished
from surefoot.processors.lake import Lake

_TABLES: Final = ("runs", "tool_calls", "verdicts")
_PRODUCTION_DAYS: Final = 28  # before the evidence: work of these task classes outside of any run group

_ENVIRONMENTS: Final = """
select coalesce(environment, 'unknown'), count(*) from runs where run_id in (select run_id from evidence_runs)
group by all order by all
"""
_EFFECTS: Final = """
select coalesce(effect, 'unknown'), count(*) from tool_calls
where trace_id in (select trace_id from runs where run_id in (select run_id from evidence_runs))
group by all order by all
"""
# Runs that nobody repeated on purpose, or in an environment that is called so, fail together: by hour, by release.
_LIVE: Final = """
select count(*) from runs
where run_id in (select run_id from evidence_runs)
  and (
    (
      regexp_matches(lower(coalesce(environment, '')), '(^|[^a-z])(production|prod|prd|live)([^a-z]|$)')
      and not regexp_matches(lower(environment), '(pre|non)[^a-z]?pr(o?d|oduction)([^a-z]|$)')
    )
    or (run_group is null and repetition is null)
  )
"""
_AGENTS: Final = """
select coalesce(agent_name, 'unnamed') from runs where run_id in (select run_id from evidence_runs)
group by all order by all
"""
_SPAN: Final = """
select min(started_at), max(ended_at) from runs where run_id in (select run_id from evidence_runs)
"""
_PROCESS: Final = """
select coalesce(grader_name, 'unnamed'), grader_version, grader_kind, count(*) from verdicts
where kind = 'process' and run_id in (select run_id from evidence_runs)
group by all order by all
"""
_PRODUCTION: Final = """
select task_class, count(*) from runs
where date >= $1 and date <= $2 and run_group is null and parent_run_id is null
  and run_id not in (select run_id from evidence_runs) and task_class is not null
group by all order by all
"""


@dataclass(frozen=True, slots=True)
class _Chosen:
    """The reading, narrowed to one version set."""

    groups: GroupTable
    runs: RunTable
    horizons: Horizons
    versions: dict[str, str]
    reading: Reading


def build_from_lake(spec: Spec, lake: Lake, now: float) -> Profile:
    """Raises BuildError if no run is selected, or several version sets are."""
    if spec.select is None:
        raise BuildError("Cannot build a profile from the lake: the spec has no `select`.")
    today = datetime.fromtimestamp(now, UTC).date()
    first, last = spec.select.since, spec.select.until or today
    table_versions = {name: lake.version(name) for name in _TABLES}
    connection = lake.connect()
    try:
        chosen = _choose(read_groups(connection, first, last, where=spec.select.where), spec.select, first, last)
        evidence = _evidence(connection, chosen, spec, (first, last), table_versions, now)
        # Audits say nothing of an executable oracle, so that its runs need not be read a second time, one by one.
        graded = [] if _exact(chosen) else read_graded(connection, first, last, where=spec.select.where)
    finally:
        connection.close()
    return assemble(spec, evidence, _grader(chosen, graded, spec.repeat_protocol))


def _choose(reading: Reading, select: Selection, first: date, last: date) -> _Chosen:
    systems = [json.loads(name) for name in reading.systems.names]
    fits = [all(one["versions"].get(name) == value for name, value in select.versions.items()) for one in systems]
    keep = np.array([fits[code] for code in reading.systems.codes], dtype=bool)
    used = sorted(set(reading.systems.codes[keep].tolist()))
    if not used:
        asked = ", ".join(f"{name} {value}" for name, value in {**select.where, **select.versions}.items())
        raise BuildError(
            f"Cannot build a profile: no run with a task id or run group ended from {first} to {last}"
            f"{f' with {asked}' if asked else ''}. Widen `select`, or see `surefoot sql` on runs."
        )
    if len(used) > 1:
        sets = "; ".join(json.dumps(systems[code], ensure_ascii=False) for code in used)
        raise BuildError(
            f"Cannot build a profile: the runs are of {len(used)} version sets: {sets}. A profile is about one: name "
            "it in `select.versions`, or the agent's version in `select.where.agent_version`."
        )
    groups = reading.groups.select(keep)
    if groups.runs is None or reading.groups.runs is None:
        raise BuildError("Cannot build a profile: the lake's groups came without their runs.")
    kept = keep[reading.groups.runs.group]
    horizons = Horizons({name: values[kept] for name, values in reading.horizons.values.items()})
    return _Chosen(groups, groups.runs, horizons, _versions(systems[used[0]]), reading)


def _versions(system: dict[str, Any]) -> dict[str, str]:
    agent = {} if system["agent"] is None else {"agent": system["agent"]}
    return {**agent, **system["versions"]}


def _evidence(
    connection: duckdb.DuckDBPyConnection,
    chosen: _Chosen,
    spec: Spec,
    days: tuple[date, date],
    table_versions: dict[str, int],
    now: float,
) -> Evidence:
    groups, runs = chosen.groups, chosen.runs
    dimensions: Sequence[str] = spec.repeat_protocol.stratification
    connection.register("evidence_runs", pa.table({"run_id": pa.array(runs.run_id, pa.string())}))
    _refuse_mixtures(groups, [name for (name,) in connection.sql(_AGENTS).fetchall()])
    process = connection.sql(_PROCESS).fetchall()
    live = connection.sql(_LIVE).fetchall()[0][0]
    began, ended = connection.sql(_SPAN).fetchall()[0]
    counts = sufficient_counts(groups, dimensions)
    unit = spec.repeat_protocol.clustering_unit
    if isinstance(unit, BlockUnit):
        if not live:
            raise BuildError(
                "Cannot build a profile by blocks: none of the runs is production's, and repeated task groups are "
                "resampled as such. Remove repeat_protocol.clustering_unit."
            )
        counts = with_blocks(counts, groups, dimensions, block_names(connection, unit, runs))
    return Evidence(
        source="lake",
        publication=None,
        selection=spec.select,
        built_at=built_at(now),
        first_run=None if began is None else began.isoformat(),
        last_run=None if ended is None else ended.isoformat(),
        groups=len(groups),
        tally=_tally(chosen, live, sum(number for _, _, kind, number in process if kind == "executable")),
        left_out={**chosen.reading.left_out, **_waiting(connection, spec.select, days)},
        run_ids_sha256=_hash(runs),
        table_versions=table_versions,
        versions=chosen.versions,
        equivalence_rule=groups.equivalence_rule,
        graders=_graders(chosen.reading, process),
        environments=dict(connection.sql(_ENVIRONMENTS).fetchall()),
        tool_effects=dict(connection.sql(_EFFECTS).fetchall()),
        horizon=_spreads(chosen.horizons),
        production_runs=_production(connection, [one.task_class for one in counts], days),
        cost_per_run=_mean(runs.numbers["cost_usd"]),
        seconds_per_run=_mean(runs.numbers["duration_ns"] / 1e9),
        counts=counts,
        listed_groups=listed_groups(groups, dimensions),
        block_unit=unit if isinstance(unit, BlockUnit) else None,
    )


def _waiting(
    connection: duckdb.DuckDBPyConnection, select: Selection | None, days: tuple[date, date]
) -> dict[str, int]:
    if select is None:
        return {}
    return unfinished(connection, days, select.where, select.versions, until_now=select.until is None)


def _tally(chosen: _Chosen, live: int, executable: int) -> Tally:
    groups, runs = chosen.groups, chosen.runs
    named = np.array([task is not None for task in groups.task_id])
    return Tally(
        runs=len(runs),
        infrastructure=int(groups.infrastructure.sum()),
        excluded=int(groups.excluded.sum()),
        production=live,
        judged=int(groups.n.sum()),
        crashed=chosen.reading.crashed,
        with_process_verdict=int((runs.flags["compliant"] >= 0).sum()),
        with_versions=len(runs) if chosen.versions else 0,
        with_task_id=int(named[runs.group].sum()),
        executable_process_verdicts=executable,
        same_number=_same_number(runs),
    )


def _refuse_mixtures(groups: GroupTable, agents: list[str]) -> None:
    """One agent, each task once: an average over two agents is about neither, and a task run elsewhere is no other."""
    if len(agents) > 1:
        raise BuildError(
            f"Cannot build a profile: the runs are of {len(agents)} agents: {', '.join(agents)}. A profile is about "
            "one: name it in `select.where.agent_name`."
        )
    times = Counter(task for task in groups.task_id if task is not None)
    twice = sorted(task for task, number in times.items() if number > 1)
    if twice:
        these = "; ".join(str(one) for one in groups.group_id[groups.task_id == twice[0]][:2])
        raise BuildError(
            f"Cannot build a profile: {len(twice)} tasks are in more than one group each, such as {twice[0]}: {these}. "
            "Intervals take groups as independent, and those of one task are not. Choose one run_group, variant, "
            "environment and service in `select.where`."
        )


def _same_number(runs: RunTable) -> int:
    """Judged runs that share group and number (they stand in that order): one was done again after looking, perhaps."""
    judged = runs.counted & (runs.flags["acceptable"] >= 0) & ~np.isnan(runs.numbers["repetition"])
    group, number = runs.group[judged], runs.numbers["repetition"][judged]
    same = (np.diff(group) == 0) & (np.diff(number) == 0)
    return int(np.sum(np.append(same, False) | np.append(False, same))) if len(group) else 0


def _hash(runs: RunTable) -> str:
    lines = "".join(f"{one}\n" for one in sorted(runs.run_id.tolist()))
    return f"sha256:{hashlib.sha256(lines.encode()).hexdigest()}"


def _graders(reading: Reading, process: list[tuple[str, str | None, str | None, int]]) -> list[GraderUse]:
    outcome = [
        GraderUse(name=one.name or "unnamed", version=one.version, kind=one.kind, judges="outcome", verdicts=one.runs)
        for one in reading.graders
    ]
    return outcome + [
        GraderUse(name=name, version=version, kind=kind, judges="process", verdicts=verdicts)
        for name, version, kind, verdicts in process
    ]


def _grader(chosen: _Chosen, graded: Sequence[GradedRun], protocol: RepeatProtocol) -> GraderError:
    """An executable oracle decides by definition; of any other grader the audits of these runs say what it is worth."""
    if _exact(chosen):
        return grader_of_kind("executable")
    counted, verdicts = chosen.runs.counted, chosen.runs.flags["acceptable"]
    accepted = {
        str(name): bool(verdict == 1)
        for name, verdict, counts in zip(chosen.runs.run_id, verdicts, counted, strict=True)
        if counts and verdict >= 0
    }
    by_class = "task_class" in protocol.stratification
    return measured(class_audits(graded, accepted, by_class=by_class), protocol.confidence_level)


def _exact(chosen: _Chosen) -> bool:
    return {one.kind for one in chosen.reading.graders} == {"executable"}


def _spreads(horizons: Horizons) -> dict[str, Spread]:
    found = {}
    for name, values in horizons.values.items():
        known = values[~np.isnan(values)]
        if len(known):
            found[name] = Spread(
                runs=len(known), least=float(known.min()), median=float(np.median(known)), most=float(known.max())
            )
    return found


def _production(
    connection: duckdb.DuckDBPyConnection, classes: list[str | None], days: tuple[date, date]
) -> dict[str, int] | None:
    """Runs outside of any run group, by the evidence's task classes; None if these have no name."""
    wanted = sorted({name for name in classes if name is not None})
    since = days[0] - timedelta(days=_PRODUCTION_DAYS)
    found = dict(connection.execute(_PRODUCTION, [since, days[1]]).fetchall())
    if not wanted or not found:
        return None
    return {name: found.get(name, 0) for name in wanted}


def _mean(values: FloatArray) -> float | None:
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else None
