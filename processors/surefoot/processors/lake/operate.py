"""What a person can ask to be done to a lake, step by step, under its lease, whoever holds it.

An operation is a generator: it yields what it is doing or waiting for, is sent the time, and returns its answer. The
jobs process moves it on once a cycle, a command that holds the lease itself does so in a loop. Rule: an operation may
be given up at any step and begun again.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from datetime import date
from typing import Any, Final

import pyarrow as pa

from surefoot.collector.spool import Spool
from surefoot.processors.errors import LakeError
from surefoot.processors.lake.compact import compact
from surefoot.processors.lake.erase import erase, find
from surefoot.processors.lake.erasures import RECORD, Erasures
from surefoot.processors.lake.lake import Lake
from surefoot.processors.lake.schema import TABLES
from surefoot.processors.lake.vacuum import Keep, delete_unreferenced, replaced_files
from surefoot.processors.settings import Settings

Note = Callable[[Iterable[date]], None]
Operation = Generator[str, float, dict[str, Any]]
WAITING: Final = "waiting until"
# Records that a command adds: the table, and the column that tells one from another.
_RECORDED: Final = {"profiles": "profile_id", "decisions": "decision_id"}
# Reads and rewrites of one step.
_STEP_BYTES: Final = 512 << 20


def begin(command: str, arguments: dict[str, Any], by: str, lake: Lake, settings: Settings, note: Note) -> Operation:
    """The operation for a command; ``note`` is told the dates whose runs or verdicts it changes."""
    if command == "erase":
        return _erase(arguments["kind"], arguments["key"], by, lake, settings, note)
    if command == "compact":
        return _compact(lake)
    if command == "vacuum":
        return _vacuum(lake, settings)
    if command == "record":
        return _record(lake, arguments["table"], arguments["row"])
    raise LakeError(f"there is no command {command!r} for a lake; the server may be older than the command line")


def segments(settings: Settings) -> frozenset[str]:
    """Names of the segments that are not in the lake yet."""
    spool = Spool(settings.spool_path)
    return frozenset(path.name for folder in (spool.open_folder, spool.sealed_folder) for path in folder.glob("*"))


def _erase(kind: str, key: str, by: str, lake: Lake, settings: Settings, note: Note) -> Operation:
    now = yield "looking into the spool"
    before = segments(settings)
    while left := before & segments(settings):
        now = yield f"{WAITING} {len(left)} segments of the spool are in the lake"
    erasures = Erasures(lake.path)
    quarantined = [path.name for path in Spool(settings.spool_path).quarantined()]
    found = find(lake, kind, key)
    if not any(found.rows.values()) and not erasures.unfinished(key):  # a typing error must not look like an erasure
        nothing = {"deleted_files": 0, "deleted_bytes": 0, "quarantined": quarantined, "record": None}
        return {"traces": 0, "rows": found.rows, **nothing}
    erased = erase(lake, erasures, kind, key, now, by)
    note(erased.dirty_dates)
    wait = settings.reader_seconds
    due = (yield "rows are gone") + wait  # counted from after the last commit
    while now < due:
        now = yield f"rows are gone; waiting {due - now:.0f} s for open readers (SUREFOOT_READER_SECONDS)"
    files = size = 0
    for table in lake.tables():
        deleted = delete_unreferenced(table, now, Keep(wait, wait, 0))
        files, size = files + len(deleted), size + sum(bytes_ for _, bytes_ in deleted)
    erasures.append("deleted", now, key_hash=erasures.hash_of(key), files=files, bytes=size)
    return {
        "traces": len(erased.found.trace_ids),
        "rows": erased.found.rows,
        "deleted_files": files,
        "deleted_bytes": size,
        "quarantined": quarantined,
        "record": str(lake.path / RECORD),
    }


def _record(lake: Lake, table: str, row: dict[str, Any]) -> Operation:
    if table not in _RECORDED:
        raise LakeError(f"rows of {table!r} are not recorded on request; only those of {', '.join(_RECORDED)} are")
    yield f"recording into {table}"
    identity = row[_RECORDED[table]]
    rows = pa.Table.from_pylist([row], TABLES[table])
    done = lake.commit(table, rows, app_id=f"record {identity}", app_version=1)  # the same one twice is one row
    return {"recorded": done.committed, "version": done.version}


def _compact(lake: Lake) -> Operation:
    totals = {}
    for table in lake.tables():
        files = twice = 0
        while (done := compact(table, _STEP_BYTES, min_files=2)).files:
            files, twice = files + len(done.files), twice + done.twice
            yield f"{table.name}: {files} files merged"
        totals[table.name] = {"merged_files": files, "duplicate_rows": twice}
        yield f"{table.name} is done"
    return {"tables": totals}


def _vacuum(lake: Lake, settings: Settings) -> Operation:
    now = yield "looking for replaced files"
    keep = Keep(settings.reader_seconds, settings.reader_seconds, 0)
    totals = {}
    for table in lake.tables():
        deleted = delete_unreferenced(table, now, keep)
        with table.lock():
            waiting = replaced_files(table)
        totals[table.name] = {
            "deleted_files": len(deleted),
            "deleted_bytes": sum(size for _, size in deleted),
            "waiting_files": len(waiting),
        }
        now = yield f"{table.name} is done"
    return {"tables": totals}
