"""Keep the lake small and quick: compaction, retention, a disk budget, delayed deletion, checkpoints. Under the lease.

Safe beside writers that do not know of it: compaction and retention are ordinary commits, deletion only touches what no
version names. Everything it did is in what it returns; a call that dies in the middle is finished by the next one.
Rows grow old by a clock that is believed, see :mod:`surefoot.processors.lake.clock`.
"""

from __future__ import annotations

import contextlib
import logging
import math
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from typing import Final

from surefoot.processors.lake.clock import believed
from surefoot.processors.lake.commit import commit
from surefoot.processors.lake.compact import UPKEEP, compact, next_version
from surefoot.processors.lake.lake import Lake
from surefoot.processors.lake.schema import KEPT
from surefoot.processors.lake.table import PARTITION, DataFile, Table
from surefoot.processors.lake.vacuum import Keep, checkpoint, clean_log, delete_unreferenced, replaced_files
from surefoot.processors.settings import Settings

log = logging.getLogger("surefoot.lake")

# Read and rewritten in some ten seconds on one core, so that a cycle of jobs is not held up for longer.
COMPACT_BYTES: Final = 256 << 20


# What a disk budget may cost before its time, in the order of need within a day; never runs, calls or verdicts.
SACRIFICED: Final = ("contents", "metric_points", "logs", "spans")


@dataclass(frozen=True, slots=True)
class TableUpkeep:
    """What one call did to one table."""

    table: str
    compacted_files: int
    compacted_bytes: int
    duplicate_rows: int  # that compaction found; 0 as long as the filters before the table work
    expired_files: int
    expired_rows: int
    doubted_rows: int  # that would have expired by a clock that has jumped ahead and is not believed yet
    early_rows: int  # of those, the ones that went before their time because of the disk budget
    deleted_files: int
    deleted_bytes: int
    waiting_bytes: int  # of replaced files that are still there
    checkpointed: bool
    cleaned_log_entries: int


def upkeep(
    lake: Lake, settings: Settings, now: float, *, budget: int = COMPACT_BYTES, erased_at: float = -math.inf
) -> list[TableUpkeep]:
    """Do what is due on every table, reading at most ``budget`` bytes for compaction; ``now`` is in unix seconds.

    Files that were replaced until ``erased_at`` may hold erased rows, so they stay no longer than they must.
    """
    done = []
    known = believed(lake, now)
    keep_seconds = settings.vacuum_hours * 3600.0
    keep = Keep(keep_seconds, settings.reader_seconds, settings.replaced_bytes, erased_at)
    early: dict[str, list[int]] = {}
    if settings.max_lake_bytes is not None and disk_bytes(lake) > settings.max_lake_bytes:
        keep = replace(keep, most_bytes=0)
        early = expire_early(lake, settings.max_lake_bytes, known)
    for table in lake.tables():
        gone = early.get(table.name, [])
        days = retention_days(table.name, settings)
        expired = gone + (expire(table, days, known) if days is not None else [])
        compacted = compact(table, budget)
        compacted_bytes = sum(file.size for file in compacted.files)
        budget -= compacted_bytes
        deleted = delete_unreferenced(table, now, keep)
        with table.lock():
            waiting = replaced_files(table)
        done.append(
            TableUpkeep(
                table=table.name,
                compacted_files=len(compacted.files),
                compacted_bytes=compacted_bytes,
                duplicate_rows=compacted.twice,
                expired_files=len(expired),
                expired_rows=sum(expired),
                doubted_rows=sum(file.rows for file in older(table, days, now)) if days is not None else 0,
                early_rows=sum(gone),
                deleted_files=len(deleted),
                deleted_bytes=sum(size for _, size in deleted),
                waiting_bytes=sum(file.size for file in waiting),
                checkpointed=checkpoint(table),
                cleaned_log_entries=clean_log(table, now, keep_seconds),
            )
        )
    return done


def disk_bytes(lake: Lake) -> int:
    """Bytes of all data files that are on the disk, replaced ones included."""
    total = 0
    for table in lake.tables():
        for path in table.path.glob(f"{PARTITION}=*/*"):
            with contextlib.suppress(FileNotFoundError):  # a draft that was renamed meanwhile
                total += path.stat().st_size
    return total


def expire_early(lake: Lake, most_bytes: int, now: float) -> dict[str, list[int]]:
    """Take the oldest days of raw tables out until the current files fit; the present day and the future stay.

    Returns the rows of each file that went, by table. Replaced files are not counted: they go by themselves.
    """
    for table in lake.tables():
        table.refresh()
    total = sum(file.size for table in lake.tables() for file in table.files().values())
    raw = [lake.table(name) for name in SACRIFICED]
    today = first_day(0, now)
    gone: dict[str, list[int]] = {}
    days = sorted({file.date for table in raw for file in table.files().values() if file.date < today})
    for day, table in ((day, table) for day in days for table in raw):
        files = [file for file in table.files().values() if file.date == day]
        if total <= most_bytes or not files:
            continue
        rows = _remove(table, files)
        log.warning("the lake is above its disk budget: %d rows of %s of %s went early", sum(rows), table.name, day)
        gone.setdefault(table.name, []).extend(rows)
        total -= sum(file.size for file in files)
    return gone


def retention_days(table: str, settings: Settings) -> int | None:
    """How many days the rows of the table are kept; None is for ever."""
    if table in KEPT:
        return None
    if table == "contents":
        return settings.retention_days_contents
    if table in ("spans", "logs", "metric_points"):
        return settings.retention_days_spans
    return settings.retention_days_runs


def expire(table: Table, days: int, now: float) -> list[int]:
    """Take partitions older than ``days`` out of the table; returns the rows of each file that went."""
    table.refresh()
    return _remove(table, older(table, days, now))


def older(table: Table, days: int, now: float) -> list[DataFile]:
    """The table's files with rows that are older than ``days``."""
    oldest = first_day(days, now)
    return [file for file in table.files().values() if file.date < oldest]


def _remove(table: Table, files: list[DataFile]) -> list[int]:
    if not files:
        return []
    made = commit(table, remove=[file.path for file in files], app_id=UPKEEP, app_version=next_version(table))
    return [file.rows for file in files] if made.committed else []


def first_day(days: int, now: float) -> date:
    """The oldest date that is kept."""
    return (datetime.fromtimestamp(now, UTC) - timedelta(days=days)).date()
