"""Erase traces from every table, because of their id, a run, a conversation or a user.

The unit is the trace, since everything that is derived is a function of a whole trace: who names a run erases all of
its trace. Rows that name the conversation or the user without being in a trace go too. Contract: after :func:`erase`
no table holds a row of what was found, and after the next upkeep that is ``reader_seconds`` later no file does. Moves
are one commit a table, so a reader sees a trace or does not; counts of SLOs follow (``Erased.dirty_dates``).

Rule: the tombstones come first (see ``erasures``). What arrives afterwards, or was in a writer's hands, is taken out
by :class:`Sweep` before anything is derived from it. Call everything here under the lake's lease.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date
from typing import Any, Final
from uuid import uuid4

from surefoot.instrumentation import semconv
from surefoot.processors.errors import LakeError
from surefoot.processors.lake.delete import delete_rows
from surefoot.processors.lake.erasures import Erasures
from surefoot.processors.lake.lake import Lake
from surefoot.processors.lake.schema import RAW_TABLES, TABLES

KINDS: Final = ("trace", "run", "conversation", "user")
# Where a user is named: by conventions old and new, and by Surefoot.
USER_ATTRIBUTES: Final = (
    "user.id", "user.name", "user.email", "user.hash", "enduser.id", "enduser.pseudo.id", semconv.PRINCIPAL,
)  # fmt: skip
_CONVERSATION: Final = (semconv.CONVERSATION_ID, "session.id")
_RESPONSE: Final = semconv.RESPONSE_ID
_TRACE_ID: Final = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True, slots=True)
class Found:
    """What an erasure would take out: rows by table, and the traces that they are of."""

    trace_ids: tuple[str, ...]
    rows: dict[str, int]


@dataclass(frozen=True, slots=True)
class Erased:
    """What an erasure took out. ``dirty_dates`` are those of runs and verdicts that are gone."""

    found: Found
    dirty_dates: frozenset[date]


def find(lake: Lake, kind: str, key: str) -> Found:
    """Look for what belongs to ``key``; changes nothing. LakeError for an unknown kind."""
    plan = _plan(lake, kind, key)
    rows = {name: lake.read(name, ["date"], *condition).num_rows for name, condition in plan.conditions.items()}
    return Found(plan.trace_ids, rows)


def erase(lake: Lake, erasures: Erasures, kind: str, key: str, now: float, by: str) -> Erased:
    """Take out all that belongs to ``key``; ``by`` says who asked. Doing it twice takes out nothing more."""
    plan = _plan(lake, kind, key)
    identity = uuid4().hex
    traces = sorted({erasures.hash_of(trace_id) for trace_id in plan.trace_ids} - erasures.tombstones)
    erasures.append("begun", now, id=identity, kind=kind, key_hash=erasures.hash_of(key), traces=traces, by=by)
    rows: dict[str, int] = {}
    dirty: set[date] = set()
    for name, (where, parameters) in plan.conditions.items():
        if name in ("runs", "verdicts"):
            dirty.update(lake.read(name, ["date"], where, parameters)["date"].unique().to_pylist())
        rows[name] = delete_rows(lake, name, where, parameters)
    erasures.append("erased", now, id=identity, traces=[], count=len(plan.trace_ids), rows=rows)
    return Erased(Found(plan.trace_ids, rows), frozenset(dirty))


class Sweep:
    """Takes erased traces out again that arrived once more. Memory holds how far each raw table was looked through."""

    def __init__(self, lake: Lake, erasures: Erasures) -> None:
        self._lake = lake
        self._erasures = erasures
        self._read = dict.fromkeys(RAW_TABLES, -1)
        self._for: frozenset[str] = frozenset()
        self.rows = 0  # taken out again, since this process began

    def step(self, now: float) -> None:
        """Look through what was added since the last step; costs nothing while nothing was ever erased."""
        self._erasures.refresh()
        if not self._erasures.tombstones:
            return
        if self._for != self._erasures.tombstones:  # files of before may hold what is a tombstone only now
            self._read, self._for = dict.fromkeys(RAW_TABLES, -1), self._erasures.tombstones
        rows = {}
        for name in RAW_TABLES:
            added = self._lake.added_since(name, self._read[name])
            if "trace_id" in TABLES[name].names and added.files:
                files = [file.path for file in added.files]
                came = self._lake.read(name, ["trace_id"], "trace_id <> ''", files=files)["trace_id"].unique()
                gone = self._erasures.erased(came.to_pylist())
                if gone:
                    rows[name] = delete_rows(self._lake, name, _OF_TRACES, [gone])
            self._read[name] = added.version
        if any(rows.values()):
            self.rows += sum(rows.values())
            self._erasures.append("again", now, rows=rows)


@dataclass(frozen=True, slots=True)
class _Plan:
    trace_ids: tuple[str, ...]
    conditions: dict[str, tuple[str, list[Any]]]  # by table, with ? for the parameters


_OF_RESPONSES: Final = "response_id IN (SELECT unnest(?))"
_OF_TRACES: Final = "trace_id IN (SELECT unnest(?))"


def _plan(lake: Lake, kind: str, key: str) -> _Plan:
    if kind not in KINDS:
        raise LakeError(f"cannot erase by {kind!r}; choose one of {', '.join(KINDS)}")
    keyed = _keyed(kind, key)
    traces: set[str] = {_trace_of(kind, key)} if kind in ("trace", "run") else set()
    for name, (where, parameters) in keyed.items():
        if "trace_id" in TABLES[name].names:
            traces.update(lake.read(name, ["trace_id"], where, parameters)["trace_id"].unique().to_pylist())
    trace_ids = tuple(sorted(trace for trace in traces if trace))
    responses = lake.read("model_calls", ["response_id"], f"response_id IS NOT NULL AND {_OF_TRACES}", [trace_ids])
    answers = responses["response_id"].unique().to_pylist()
    conditions: dict[str, tuple[str, list[Any]]] = {}
    for name, schema in TABLES.items():
        where, parameters = keyed.get(name, ("false", []))
        if "trace_id" in schema.names:
            where, parameters = f"({where} OR {_OF_TRACES})", [*parameters, trace_ids]
        if name == "logs":  # a judgement that names only the answer that it judges
            where, parameters = f"({where} OR attributes['{_RESPONSE}'] IN (SELECT unnest(?)))", [*parameters, answers]
        if name == "verdicts":
            where = f"({where} OR split_part(run_id, '-', 1) IN (SELECT unnest(?)) OR {_OF_RESPONSES})"
            parameters = [*parameters, trace_ids, answers]
        if parameters:
            conditions[name] = (where, parameters)
    return _Plan(trace_ids, conditions)


def _trace_of(kind: str, key: str) -> str:
    """The trace that an id names, as it stands in the tables. One that cannot be there must not look erased."""
    text = key.strip().lower()
    trace = text.partition("-")[0] if kind == "run" else text.replace("-", "")
    if _TRACE_ID.fullmatch(trace) is None:
        form = "trace_id-span_id" if kind == "run" else "32 hex digits"
        raise LakeError(f"cannot erase {kind} {key!r}: its id is {form}, as in the table runs; nothing was erased")
    return trace


def _keyed(kind: str, key: str) -> dict[str, tuple[str, list[Any]]]:
    """Which rows name the conversation or the user themselves."""
    if kind in ("trace", "run"):
        return {}
    names = USER_ATTRIBUTES if kind == "user" else _CONVERSATION
    attributes = " OR ".join(f"attributes['{name}'] = ?" for name in names)
    resource = " OR ".join(f"resource_attributes['{name}'] = ?" for name in names)
    anywhere = (f"({attributes} OR {resource})", [key] * 2 * len(names))
    keyed: dict[str, tuple[str, list[Any]]] = dict.fromkeys(("spans", "logs", "metric_points"), anywhere)
    column = "principal" if kind == "user" else "conversation_id"
    keyed["spans"] = (f"({anywhere[0]} OR {column} = ?)", [*anywhere[1], key])
    if kind == "conversation":
        keyed["runs"] = ("conversation_id = ?", [key])
    return keyed
