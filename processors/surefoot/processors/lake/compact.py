"""Merge the many small files of a partition into one, as a commit of our own that only moves rows.

Never delta-rs' ``optimize.compact``: two of them at one version doubled the table without an error. Ours names the
files that it removes, and :func:`commit` refuses under the table's lock when one of them is not current any more. A
table grows a file per commit and date, and queries slow down from some hundred files on; hence the threshold. ``open-``
files are left alone, their own writer replaces them every few seconds.
"""

from __future__ import annotations

from itertools import groupby
from typing import Final

from surefoot.processors.errors import CommitConflictError
from surefoot.processors.lake.commit import Commit, commit
from surefoot.processors.lake.table import DataFile, Table

UPKEEP: Final = "upkeep"  # the application of all upkeep commits
MIN_FILES: Final = 50
SMALL_BYTES: Final = 32 << 20
# Bounds what one merge has to do again when it fails, and keeps files small enough to rewrite for a late span.
MERGE_BYTES: Final = 128 << 20


def compact(table: Table, budget: int) -> list[DataFile]:
    """Merge files of at most ``budget`` bytes, newest partition first; returns the files that were replaced.

    Rows are streamed, so memory holds a row group and not the partition. A partition that another process changes at
    the same time is left for the next call.
    """
    table.refresh()
    replaced: list[DataFile] = []
    for small in _due(table):
        chosen = _smallest(small, min(budget, MERGE_BYTES))
        if len(chosen) < 2:
            continue
        try:
            merged = _merge(table, chosen)
        except CommitConflictError:
            continue
        if merged.committed:
            replaced += chosen
            budget -= sum(file.size for file in chosen)
    return replaced


def next_version(table: Table) -> int:
    """The version that the next upkeep commit on this table takes."""
    last = table.transaction_version(UPKEEP)
    return 0 if last is None else last + 1


def _due(table: Table) -> list[list[DataFile]]:
    """The small files of each partition that has enough of them, newest partition first."""
    small = [file for file in table.files().values() if not file.is_open and file.size < SMALL_BYTES]
    by_date = groupby(sorted(small, key=lambda file: file.date, reverse=True), key=lambda file: file.date)
    return [files for _, group in by_date if len(files := list(group)) >= MIN_FILES]


def _smallest(files: list[DataFile], limit: int) -> list[DataFile]:
    chosen: list[DataFile] = []
    for file in sorted(files, key=lambda file: file.size):
        limit -= file.size
        if limit < 0:
            break
        chosen.append(file)
    return chosen


def _merge(table: Table, chosen: list[DataFile]) -> Commit:
    return commit(
        table,
        moved={chosen[0].date: table.bodies(chosen)},
        remove=[file.path for file in chosen],
        data_change=False,
        app_id=UPKEEP,
        app_version=next_version(table),
    )
