"""Delete what nobody can need any more: files long replaced, drafts long abandoned, log entries long summed up.

Rules: a replaced file stays for a while after its removal, which the log dates, because DuckDB opens the files of a
running query late: never shorter than a query may take, up to a day unless they become too many bytes, and those that
are replaced every few seconds only the shortest time. What an erasure took out stays the shortest time too. A file that
the log never named may be the draft of a live writer, so it must be an hour old. The table's lock is held from the last
look to the last deletion, and ``commit`` looks for its drafts under that lock.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, NamedTuple

from surefoot.processors.lake.table import OPEN_PREFIX, PARTITION, Table

# From writing a draft to committing it takes a writer seconds; compaction streams for a minute at most.
DRAFT_SECONDS: Final = 3600.0
# What a stopped jobs process can catch up from; beyond it `Lake.added_since` answers with all files.
LOG_SECONDS: Final = 2 * 86400.0
# Each commit lists the log's folder: beyond so many entries those go that are an hour old.
LOG_ENTRIES: Final = 5000
# Its files are replaced whenever a minute's counts change.
_CHURNING: Final = "slo_minutes"
# Opening a table reads the log after the last checkpoint: 100 entries are some 5 ms.
CHECKPOINT_EVERY: Final = 100


@dataclass(frozen=True, slots=True)
class Keep:
    """How long replaced files stay: at most ``seconds`` while a table has at most ``most_bytes`` of them."""

    seconds: float
    reader_seconds: float  # at least, whatever they weigh
    most_bytes: int
    erased_at: float = -math.inf  # what was replaced until then may hold erased rows


class Replaced(NamedTuple):
    """A file on the disk that is in the table no more, or not yet."""

    path: str  # relative
    size: int
    changed_at: float  # unix seconds: of its removal, else of its last change
    is_draft: bool  # the log never named it, or does not know it any more


def replaced_files(table: Table) -> list[Replaced]:
    """The files that no reader of the current version needs, oldest first; call with the table's lock held."""
    table.refresh()
    current, removals = table.files(), table.removals()
    found = []
    for path in table.path.glob(f"{PARTITION}=*/*"):
        name = str(path.relative_to(table.path))
        if name in current:
            continue
        try:
            stat = path.stat()
        except FileNotFoundError:
            continue  # a live writer has just renamed its draft
        removed_at = removals.get(name)
        changed_at = stat.st_mtime if removed_at is None else removed_at / 1000
        found.append(Replaced(name, stat.st_size, changed_at, removed_at is None))
    return sorted(found, key=lambda file: file.changed_at)


def delete_unreferenced(table: Table, now: float, keep: Keep) -> list[tuple[str, int]]:
    """Delete data files that no reader and no writer can need; returns their relative paths and sizes in bytes."""
    deleted = []
    with table.lock():
        waiting = replaced_files(table)
        total = sum(file.size for file in waiting)
        for file in waiting:
            if now - file.changed_at > _stay(table, file, keep, crowded=total > keep.most_bytes):
                (table.path / file.path).unlink()
                total -= file.size
                deleted.append((file.path, file.size))
        table.forget_removals([name for name, _ in deleted])
    return deleted


def _stay(table: Table, file: Replaced, keep: Keep, *, crowded: bool) -> float:
    """How long this file stays, in seconds."""
    churns = table.name == _CHURNING or file.path.rpartition("/")[2].startswith(OPEN_PREFIX)
    seconds = keep.seconds
    if crowded or churns or file.changed_at <= keep.erased_at:
        seconds = min(keep.seconds, keep.reader_seconds)
    return max(seconds, DRAFT_SECONDS) if file.is_draft else seconds


def checkpoint(table: Table) -> bool:
    """Write a checkpoint when enough versions came since the last one; returns whether it did."""
    with table.lock():
        table.refresh()
        if table.version - table.last_checkpoint < CHECKPOINT_EVERY:
            return False
        table.sync_log()
        table.checkpoint()
    return True


def clean_log(table: Table, now: float, keep_seconds: float) -> int:
    """Delete log entries and checkpoints that the last checkpoint sums up and that are old; returns how many.

    Removals that are not old enough for :func:`delete_unreferenced` stay in the log, which is what tells their age, for
    an hour at least; a file whose removal is forgotten stays as long after its last change as a draft.
    """
    limit = now - max(LOG_SECONDS, 2 * keep_seconds)
    deleted = 0
    with table.lock():
        table.sync_checkpoint()
        summed_up = table.last_checkpoint
        crowded = summed_up - LOG_ENTRIES  # entries up to here are too many
        # Oldest first: a crash in between leaves the end of the log whole.
        for path in sorted(table.log_path.iterdir()):
            version = path.name.split(".", 1)[0]
            if not version.isdigit() or int(version) >= summed_up:
                continue
            if path.stat().st_mtime < (now - DRAFT_SECONDS if int(version) <= crowded else limit):
                path.unlink()
                deleted += 1
    return deleted
