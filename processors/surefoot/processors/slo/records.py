"""What the engine keeps in tables beside the counts: definitions that SLOs ever had, and what policies demanded.

Rule: append-only. A definition is recorded when the past was counted by it, an action when it begins and again when it
ends; so both survive a restart, and nothing that was said is taken back.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any, Final

import pyarrow as pa

from surefoot.processors.lake import Lake
from surefoot.processors.lake.schema import TABLES
from surefoot.processors.slo.definition import Slo
from surefoot.processors.slo.policy import Change
from surefoot.processors.slo.report import ActionReport

APPLICATION: Final = "slo"
Definition = tuple[str, str, float]  # SLO, generation, objective
Row = dict[str, Any]


class Records:
    """The tables ``slo_generations`` and ``slo_actions`` of a lake. They are read once."""

    def __init__(self, lake: Lake) -> None:
        self._lake = lake
        columns = ["slo", "generation", "objective"]
        known = lake.read("slo_generations", columns).to_pylist()
        self._known: set[Definition] = {(row["slo"], row["generation"], row["objective"]) for row in known}
        self.actions = _in_force(lake.read("slo_actions").sort_by("started_at").to_pylist())

    def define(self, slos: Iterable[Slo], now: float) -> None:
        """Record the definitions that are new."""
        new = [slo for slo in slos if (slo.name, slo.generation, slo.objective) not in self._known]
        moment = datetime.fromtimestamp(now, UTC)
        rows = [
            {
                "slo": slo.name,
                "generation": slo.generation,
                "definition": json.dumps(asdict(slo) | {"file": "", "line": 0}, sort_keys=True),
                "objective": slo.objective,
                "first_seen_at": moment,
                "computed_at": moment,
                "date": moment.date(),
            }
            for slo in new
        ]
        self._append("slo_generations", rows)
        self._known |= {(slo.name, slo.generation, slo.objective) for slo in new}

    def act(self, active: dict[str, list[ActionReport]], changes: Iterable[Change], now: float) -> None:
        """Record what began and ended."""
        today = datetime.fromtimestamp(now, UTC).date()
        rows = [
            {
                "policy": change.action.policy,
                "slo": change.slo,
                "stratum_key": change.action.stratum_key,
                "action": change.action.action,
                "mode": change.action.mode,
                "started_at": datetime.fromtimestamp(change.action.since, UTC),
                "ended_at": None if change.ended_at is None else datetime.fromtimestamp(change.ended_at, UTC),
                "evidence": change.evidence,
                "date": today,
            }
            for change in changes
        ]
        self._append("slo_actions", rows)
        self.actions = active

    def _append(self, table: str, rows: list[Row]) -> None:
        if rows:
            version = (self._lake.transaction_version(table, APPLICATION) or 0) + 1
            new = pa.Table.from_pylist(rows, TABLES[table])
            self._lake.commit(table, new, app_id=APPLICATION, app_version=version)


def _in_force(rows: list[Row]) -> dict[str, list[ActionReport]]:
    """The actions that began and did not end, by SLO."""
    ended = {_identity(row) for row in rows if row["ended_at"] is not None}
    found: dict[str, list[ActionReport]] = {}
    for row in rows:
        if row["ended_at"] is None and _identity(row) not in ended:
            since = row["started_at"].timestamp()
            action = ActionReport(
                row["policy"], row["action"], row["mode"], row["stratum_key"], since, row["evidence"] or ""
            )
            found.setdefault(row["slo"], []).append(action)
    return found


def _identity(row: Row) -> tuple[object, ...]:
    return tuple(row[name] for name in ("policy", "slo", "stratum_key", "action", "mode", "started_at"))
