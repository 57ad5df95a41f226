"""Which files of a table hold rows of which traces, from memory.

Contract: :meth:`TraceFiles.find` never leaves out a file that holds a row of one of the traces; it may name one that
holds none. So a trace that is new costs a search in memory and no look into the table, however large that is. Rule: a
file never changes, so what was learned of it stays true; a file that upkeep put in the place of others is learned when
it is first asked about. Another ``column`` of ids than that of traces may be asked about in the same way.

Memory holds a 64-bit hash per trace and file, newest partitions first, up to a budget.
Files beyond it are always named.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from surefoot.processors.lake.identity import Generation, Hashes
from surefoot.processors.lake.table import DataFile, Table

TRACE: Final = "trace_id"
BUDGET: Final = 8_000_000  # hashes, of 16 bytes each with the search structure over all files
_ENOUGH_TO_REBUILD: Final = 100_000


class TraceFiles:
    """What is known of one table's files."""

    def __init__(self, table: Table, budget: int = BUDGET, column: str = TRACE) -> None:
        self._table = table
        self._column = column
        self._budget = budget
        self._held: dict[str, Hashes] = {}  # by file, sorted and distinct
        self._size = 0
        self._any = Generation()  # the hashes of all files so far, those of replaced files too

    def find(self, trace_ids: Collection[str], files: Iterable[DataFile]) -> list[DataFile]:
        """Those of these current files that may hold rows of one of the traces."""
        chosen = list(files)
        if not chosen or not trace_ids:
            return []
        self._learn(chosen)
        asked = hashes_of(trace_ids)
        suspects = np.sort(asked[self._any.holds(asked)])
        return [file for file in chosen if self._may_hold(file, suspects)]

    def _may_hold(self, file: DataFile, suspects: Hashes) -> bool:
        held = self._held.get(file.path)
        if held is None:
            return True
        if not len(suspects) or not len(held):
            return False
        few, many = (suspects, held) if len(suspects) < len(held) else (held, suspects)
        places = np.searchsorted(many, few)
        places[places == len(many)] = 0
        return bool((many[places] == few).any())

    def _learn(self, files: list[DataFile]) -> None:
        """Read what is not known yet, newest first, as far as the budget goes."""
        if all(file.path in self._held for file in files):
            return
        self._forget()
        new = [file for file in files if file.path not in self._held]
        for file in sorted(new, key=lambda file: file.date, reverse=True):
            if self._size >= self._budget:
                break
            hashes = _read(self._table.path / file.path, self._column)
            self._held[file.path] = hashes
            self._size += len(hashes)
            self._any.add(hashes)

    def _forget(self) -> None:
        """Drop files that are not current any more, and their hashes once these are most of all."""
        current = self._table.files()
        for path in [path for path in self._held if path not in current]:
            self._size -= len(self._held.pop(path))
        if len(self._any) > 2 * self._size + _ENOUGH_TO_REBUILD:
            self._any = Generation()
            self._any.add(np.concatenate([np.empty(0, np.uint64), *self._held.values()]))


def hashes_of(trace_ids: Iterable[str | None]) -> Hashes:
    """A hash of each trace id, the same within this process."""
    return np.array([hash(trace_id) for trace_id in trace_ids], np.int64).view(np.uint64)


def _read(path: Path, name: str) -> Hashes:
    with pq.ParquetFile(path, read_dictionary=[name]) as file:
        found = [
            hashes_of(column.combine_chunks().dictionary.to_pylist())
            for group in range(file.num_row_groups)
            for column in [pa.chunked_array(file.read_row_group(group, columns=[name], use_threads=False)[name])]
        ]
    hashes = np.sort(np.concatenate([np.empty(0, np.uint64), *found]))
    return hashes[np.append(True, hashes[1:] != hashes[:-1])] if len(hashes) else hashes
