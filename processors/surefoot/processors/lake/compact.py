"""Merge the many small files of a partition into one, as a commit of our own that only moves rows.

Never delta-rs' ``optimize.compact``: two of them at one version doubled the table without an error. Ours names the
files that it removes, and :func:`commit` refuses under the table's lock when one of them is not current any more. A
file that is larger than all the smaller ones together is left out, so a byte is moved some log2(merges) times and not
with every merge: a day of steady traffic would otherwise rewrite its growing file hundreds of times. A
table grows a file per commit and date, and queries slow down from some hundred files on; hence the threshold. ``open-``
files are left alone, their own writer replaces them every few seconds.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from surefoot.processors.errors import CommitConflictError
from surefoot.processors.lake.commit import Commit, commit
from surefoot.processors.lake.identity import identity_hashes, repeats
from surefoot.processors.lake.table import DataFile, Table

UPKEEP: Final = "upkeep"  # the application of all upkeep commits
MIN_FILES: Final = 50
DEDUPLICATED: Final = "spans"
_IDENTITY: Final = ["trace_id", "span_id"]
SMALL_BYTES: Final = 32 << 20
# Bounds what one merge has to do again when it fails, and keeps files small enough to rewrite for a late span.
MERGE_BYTES: Final = 128 << 20


class Compacted(NamedTuple):
    """The files that were replaced, and the rows that were in them twice."""

    files: list[DataFile]
    twice: int


def compact(table: Table, budget: int, *, min_files: int | None = None) -> Compacted:
    """Merge files of at most ``budget`` bytes, newest partition first.

    Rows are streamed, so memory holds a row group (and of spans 8 bytes a row) and not the partition. Of spans with one
    identity the first is kept: a second line of defence, which has nothing to do as long as the filters before the
    table work. A partition that another process changes at the same time is left for the next call.
    """
    table.refresh()
    replaced: list[DataFile] = []
    twice = 0
    for small in _due(table, MIN_FILES if min_files is None else min_files):
        chosen = _smallest(small, min(budget, MERGE_BYTES))
        if len(chosen) < 2:
            continue
        copies = _Copies(table, chosen)
        try:
            merged = _merge(table, chosen, copies)
        except CommitConflictError:
            continue
        if merged.committed:
            replaced += chosen
            twice += copies.count
            budget -= sum(file.size for file in chosen)
    return Compacted(replaced, twice)


def next_version(table: Table) -> int:
    """The version that the next upkeep commit on this table takes."""
    last = table.transaction_version(UPKEEP)
    return 0 if last is None else last + 1


def _due(table: Table, min_files: int) -> list[list[DataFile]]:
    """The small files of each partition that has enough of them, newest partition first."""
    small = [file for file in table.files().values() if not file.is_open and file.size < SMALL_BYTES]
    by_date = groupby(sorted(small, key=lambda file: file.date, reverse=True), key=lambda file: file.date)
    return [files for _, group in by_date if len(files := list(group)) >= min_files]


def _smallest(files: list[DataFile], limit: int) -> list[DataFile]:
    ordered = sorted(files, key=lambda file: file.size)
    smaller = sum(file.size for file in ordered)
    while len(ordered) > 2 and 2 * ordered[-1].size > smaller:
        smaller -= ordered.pop().size
    chosen: list[DataFile] = []
    for file in ordered:
        limit -= file.size
        if limit < 0:
            break
        chosen.append(file)
    return chosen


class _Copies:
    """The spans that the files hold twice. A hash that repeats only raises the question, the texts answer it."""

    def __init__(self, table: Table, files: list[DataFile]) -> None:
        self._suspects = np.array([], np.uint64)
        self._seen: set[tuple[str, str]] = set()
        self.count = 0
        if table.name == DEDUPLICATED and files:
            ids = [pq.read_table(table.path / file.path, columns=_IDENTITY, partitioning=None) for file in files]
            hashes = [identity_hashes(rows) for rows in ids]
            self._suspects = repeats(np.concatenate(hashes))
            if len(self._suspects):
                asked = pa.concat_tables([rows.filter(self._suspect(rows)) for rows in ids])
                self.count = asked.num_rows - asked.group_by(_IDENTITY).aggregate([]).num_rows

    def _suspect(self, rows: pa.Table) -> pa.Array:
        return pa.array(np.isin(identity_hashes(rows), self._suspects))

    def without(self, bodies: Iterator[pa.Table]) -> Iterator[pa.Table]:
        """The rows of the files, each span once."""
        for body in bodies:
            if not self.count:
                yield body
                continue
            keep = np.ones(body.num_rows, dtype=np.bool_)
            for place in np.flatnonzero(self._suspect(body)):
                identity = (body["trace_id"][int(place)].as_py(), body["span_id"][int(place)].as_py())
                keep[place] = identity not in self._seen
                self._seen.add(identity)
            yield body.filter(pa.array(keep))


def _merge(table: Table, chosen: list[DataFile], copies: _Copies) -> Commit:
    return commit(
        table,
        moved={chosen[0].date: copies.without(table.bodies(chosen))},
        remove=[file.path for file in chosen],
        data_change=False,
        dropped=copies.count,
        app_id=UPKEEP,
        app_version=next_version(table),
    )
