"""Keep the lake small and quick: compaction, retention, delayed deletion, checkpoints. Called by the lease's holder.

Safe beside writers that do not know of it: compaction and retention are ordinary commits, deletion only touches what no
version names. Everything it did is in what it returns; a call that dies in the middle is finished by the next one.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Final

from surefoot.processors.lake.commit import commit
from surefoot.processors.lake.compact import UPKEEP, compact, next_version
from surefoot.processors.lake.lake import Lake
from surefoot.processors.lake.table import Table
from surefoot.processors.lake.vacuum import checkpoint, clean_log, delete_unreferenced
from surefoot.processors.settings import Settings

# Read and rewritten in some ten seconds on one core, so that a cycle of jobs is not held up for longer.
COMPACT_BYTES: Final = 256 << 20


@dataclass(frozen=True, slots=True)
class TableUpkeep:
    """What one call did to one table."""

    table: str
    compacted_files: int
    compacted_bytes: int
    expired_files: int
    expired_rows: int
    deleted_files: int
    deleted_bytes: int
    checkpointed: bool
    cleaned_log_entries: int


def upkeep(lake: Lake, settings: Settings, now: float, *, budget: int = COMPACT_BYTES) -> list[TableUpkeep]:
    """Do what is due on every table, reading at most ``budget`` bytes for compaction; ``now`` is in unix seconds."""
    done = []
    keep_seconds = settings.vacuum_hours * 3600.0
    for table in lake.tables():
        expired = expire(table, retention_days(table.name, settings), now)
        compacted = compact(table, budget)
        compacted_bytes = sum(file.size for file in compacted)
        budget -= compacted_bytes
        deleted = delete_unreferenced(table, now, keep_seconds)
        done.append(
            TableUpkeep(
                table=table.name,
                compacted_files=len(compacted),
                compacted_bytes=compacted_bytes,
                expired_files=len(expired),
                expired_rows=sum(expired),
                deleted_files=len(deleted),
                deleted_bytes=sum(size for _, size in deleted),
                checkpointed=checkpoint(table),
                cleaned_log_entries=clean_log(table, now, keep_seconds),
            )
        )
    return done


def retention_days(table: str, settings: Settings) -> int:
    """How many days the rows of the table are kept."""
    if table == "contents":
        return settings.retention_days_contents
    if table in ("spans", "logs", "metric_points"):
        return settings.retention_days_spans
    return settings.retention_days_runs


def expire(table: Table, days: int, now: float) -> list[int]:
    """Take partitions older than ``days`` out of the table; returns the rows of each file that went."""
    table.refresh()
    oldest = first_day(days, now)
    expired = [file for file in table.files().values() if file.date < oldest]
    if not expired:
        return []
    made = commit(table, remove=[file.path for file in expired], app_id=UPKEEP, app_version=next_version(table))
    return [file.rows for file in expired] if made.committed else []


def first_day(days: int, now: float) -> date:
    """The oldest date that is kept."""
    return (datetime.fromtimestamp(now, UTC) - timedelta(days=days)).date()
