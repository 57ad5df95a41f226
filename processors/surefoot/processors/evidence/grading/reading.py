"""Graded runs from the lake: who said what about each run's outcome, and what adjudication said.

Rule: an audit (an outcome verdict named ``audited outcome``) measures a grader and is none itself. It never counts as
the run's verdict in evidence, or the numbers would be a mixture that no correction fits. Where two people disagree
about a run, nobody has decided: it is unresolved, not what the later one said.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from functools import cache
from importlib.resources import files
from typing import Any, Final

import duckdb

from surefoot.processors.evidence.grading.audit import side_of
from surefoot.processors.evidence.groups import GroupsError
from surefoot.processors.evidence.profile import ClassAudit
from surefoot.processors.evidence.reading import WHERE

AUDIT: Final = "audited outcome"
_RANKS: Final = {"human": 0, "executable": 1, "model": 2}
_LOWEST: Final = 3
_UNJUDGED: Final = ("cancelled", "deferred", "refused")


@dataclass(frozen=True, slots=True)
class Said:
    """One grader's verdict."""

    verdict_id: str
    verdict: str  # pass fail unresolved
    grader: str
    version: str | None
    kind: str | None
    at: datetime | None
    effective: bool  # the one that counts for the run

    @property
    def rank(self) -> int:
        """0 is the most trusted kind."""
        return _RANKS.get(self.kind or "", _LOWEST)


@dataclass(frozen=True, slots=True)
class GradedRun:
    """A run, its graders' verdicts and its audit if it has one."""

    run_id: str
    trace_id: str
    span_id: str
    service_name: str | None
    task_class: str | None
    task_id: str | None
    group: str  # equal: repetitions of each other
    verdicts: tuple[Said, ...]
    audit: Said | None  # unresolved where auditors disagree
    rivals: tuple[Said, ...] = ()  # what they said then

    @property
    def effective(self) -> Said | None:
        """The verdict that counts for the run; audits do not."""
        return next((one for one in self.verdicts if one.effective), None)

    def reference(self, judged: Said) -> Said | None:
        """What ``judged`` is held against: the audit, else the most trusted verdict of a more trusted kind."""
        better = sorted((one for one in self.verdicts if one.rank < judged.rank), key=lambda one: one.rank)
        return self.audit or (better[0] if better else None)


def read_graded(
    con: duckdb.DuckDBPyConnection,
    first: date,
    last: date,
    *,
    where: Mapping[str, str] | None = None,
    lookback_days: int = 8,
) -> list[GradedRun]:
    """Runs with outcome verdicts that ended from ``first`` to ``last``, by run id; ``where`` as for ``read_groups``."""
    for name in where or {}:
        if name not in WHERE:
            raise GroupsError(f"choosing runs: there is no column {name!r} to choose by; use {', '.join(WHERE)}")
    dates = {"from_date": first, "to_date": last, "verdicts_from": first - timedelta(days=lookback_days)}
    text = f"SELECT * FROM ({_sql()}) AS found ORDER BY run_id, verdict_id"  # noqa: S608 - this package's own text
    rows: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in con.sql(text, params=dates).to_arrow_table().to_pylist():
        if row["outcome"] not in _UNJUDGED and all(row[name] == value for name, value in (where or {}).items()):
            rows[row["run_id"]].append(row)
    return [_run(found) for found in rows.values()]


def class_audits(
    runs: Iterable[GradedRun], accepted_of: Mapping[str, bool], *, by_class: bool = True
) -> list[ClassAudit]:
    """The audit of each task class (or of all together): how each run counts, by its id, against its audit."""
    pairs: defaultdict[str | None, list[tuple[str, bool, Said | None]]] = defaultdict(list)
    for run in runs:
        if run.effective is not None and run.run_id in accepted_of:
            name = run.task_class if by_class else None
            pairs[name].append((run.group, accepted_of[run.run_id], run.audit))
    return [class_audit(name, found) for name, found in sorted(pairs.items(), key=lambda item: str(item[0]))]


def class_audit(task_class: str | None, pairs: Sequence[tuple[str, bool, Said | None]]) -> ClassAudit:
    """Of one class: each run's group, whether the grader accepts it, and what it is held against."""
    sides = {}
    for side in (True, False):
        rows = [(group, said) for group, accepted, said in pairs if accepted is side]
        right = "pass" if side else "fail"
        sides[side] = side_of(
            [group for group, _ in rows],
            [said is not None for _, said in rows],
            [None if said is None or said.verdict == "unresolved" else said.verdict == right for _, said in rows],
        )
    groups = len({group for group, _, _ in pairs})
    return ClassAudit(task_class=task_class, groups=groups, accepted=sides[True], rejected=sides[False])


@cache
def _sql() -> str:
    return (files("surefoot.processors.evidence.grading") / "sql" / "graded_runs.sql").read_text(encoding="utf-8")


def _run(rows: list[dict[str, Any]]) -> GradedRun:
    one = rows[0]
    audit, equals = _audits(rows)
    disputed = len({said.verdict for said in equals}) > 1
    shared = ("run_group", "task_id", "variant", "service_name", "environment", "agent_name", "agent_version")
    known = one["task_id"] is not None or one["run_group"] is not None
    return GradedRun(
        run_id=one["run_id"],
        trace_id=one["trace_id"],
        span_id=one["span_id"],
        service_name=one["service_name"],
        task_class=one["task_class"],
        task_id=one["task_id"],
        group=repr([one[name] for name in shared]) if known else one["run_id"],
        verdicts=tuple(_said(row) for row in rows if not row["audit"]),
        audit=replace(audit, verdict="unresolved") if audit is not None and disputed else audit,
        rivals=equals if disputed else (),
    )


def _audits(rows: list[dict[str, Any]]) -> tuple[Said | None, tuple[Said, ...]]:
    """The effective audit, and all that count as much: as final, by the same kind of auditor."""
    audits = [(row["finality"], _said(row)) for row in rows if row["audit"]]
    best = next((one for one in audits if one[1].effective), None)
    if best is None:
        return None, ()
    return best[1], tuple(said for finality, said in audits if (finality, said.kind) == (best[0], best[1].kind))


def _said(row: dict[str, Any]) -> Said:
    return Said(
        verdict_id=row["verdict_id"],
        verdict=row["verdict"],
        grader=row["grader_name"] or "unnamed",
        version=row["grader_version"],
        kind=row["grader_kind"],
        at=row["occurred_at"],
        effective=bool(row["effective"]),
    )
