"""Delete what nobody can need any more: files long replaced, drafts long abandoned, log entries long summed up.

Rules: a replaced file stays for ``keep_seconds`` after its removal, which the log dates, because DuckDB opens the files
of a running query late. A file that the log never named may be the draft of a live writer, so it must be an hour old.
The table's lock is held from the last look to the last deletion, and ``commit`` looks for its drafts under that lock.
"""

from __future__ import annotations

from typing import Final

from surefoot.processors.lake.table import PARTITION, Table

# From writing a draft to committing it takes a writer seconds; compaction streams for a minute at most.
DRAFT_SECONDS: Final = 3600.0
# What a stopped jobs process can catch up from; beyond it `Lake.added_since` answers with all files.
LOG_SECONDS: Final = 2 * 86400.0
# Opening a table reads the log after the last checkpoint: 100 entries are some 5 ms.
CHECKPOINT_EVERY: Final = 100


def delete_unreferenced(table: Table, now: float, keep_seconds: float) -> list[tuple[str, int]]:
    """Delete data files that no reader and no writer can need; returns their relative paths and sizes in bytes."""
    deleted = []
    with table.lock():
        table.refresh()
        current, removals = table.files(), table.removals()
        for path in table.path.glob(f"{PARTITION}=*/*"):
            name = str(path.relative_to(table.path))
            if name in current:
                continue
            try:
                stat = path.stat()
            except FileNotFoundError:
                continue  # a live writer has just renamed its draft
            removed_at = removals.get(name)
            age, limit = (
                (now - stat.st_mtime, max(DRAFT_SECONDS, keep_seconds))
                if removed_at is None
                else (now - removed_at / 1000, keep_seconds)
            )
            if age > limit:
                path.unlink()
                deleted.append((name, stat.st_size))
        table.forget_removals([name for name, _ in deleted])
    return deleted


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

    Removals that are not old enough for :func:`delete_unreferenced` stay in the log, which is what tells their age.
    """
    limit = now - max(LOG_SECONDS, 2 * keep_seconds)
    deleted = 0
    with table.lock():
        table.sync_checkpoint()
        # Oldest first: a crash in between leaves the end of the log whole.
        for path in sorted(table.log_path.iterdir()):
            version = path.name.split(".", 1)[0]
            if version.isdigit() and int(version) < table.last_checkpoint and path.stat().st_mtime < limit:
                path.unlink()
                deleted += 1
    return deleted
