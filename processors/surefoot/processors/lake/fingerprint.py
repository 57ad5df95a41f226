"""Drop log records and metric points that the lake holds already: a resent request changes no count anywhere.

They have no identity of their own, so it is the hash of what was sent: all columns but those of the arrival. It is
stored as ``fingerprint``, from which the filter is read back after a restart. Contract: within the dates of a batch,
as far as ``budget`` reaches, a row with a known fingerprint is dropped. 64 bits decide: among 10 M rows of a date, two
different ones are taken for the same with a chance of 3 in a million. A row without any time is never dropped, since
two heartbeats without a time are two heartbeats. Rule, as for spans: remembered when committed, never before.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Final

import duckdb
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from surefoot.processors.lake.commit import Commit
from surefoot.processors.lake.identity import Generation, Hashes
from surefoot.processors.lake.lake import Lake
from surefoot.processors.lake.table import PARTITION

COLUMN: Final = "fingerprint"
# When and how a row arrived, and what follows from it.
_ARRIVAL: Final = ("received_at", "source", PARTITION, COLUMN)
_TIMES: Final = ("time_unix_nano", "observed_unix_nano")
_MULTIPLIER: Final = np.uint64(0x9E3779B97F4A7C15)


class FingerprintFilter:
    """What the table ``logs`` or ``metric_points`` holds of recent dates; ``budget`` is in bytes, 8 of them a row."""

    def __init__(self, lake: Lake, table: str, budget: int = 128 << 20) -> None:
        self.duplicates = 0  # rows dropped so far
        self._lake = lake
        self._table = table
        self._capacity = budget // 8
        self._con = duckdb.connect(config={"threads": 1})
        self._generations: OrderedDict[date, Generation] = OrderedDict()  # least recently used first
        self._version = -1
        self._own: set[Path] = set()

    def fresh(self, rows: pa.Table) -> pa.Table:
        """The rows as they were decoded, with their ``fingerprint``, without those that the table holds."""
        if rows.num_rows == 0:
            return rows.append_column(COLUMN, pa.array([], pa.int64()))
        self._follow()
        hashes = fingerprints(self._con, rows)
        rows = rows.append_column(COLUMN, pa.array(hashes.view(np.int64)))
        gone = np.ones(rows.num_rows, dtype=np.bool_)
        gone[np.unique(hashes, return_index=True)[1]] = False
        for day, of_day in _days(rows):
            generation = self._generation(day)
            if generation is not None:
                gone[of_day] |= generation.holds(hashes[of_day])
        gone &= _timed(rows)
        self.duplicates += int(gone.sum())
        return rows.filter(pa.array(~gone)) if gone.any() else rows

    def remember(self, rows: pa.Table, commit: Commit) -> None:
        """``rows`` were committed by ``commit``; without this call the filter reads them back from the disk."""
        if commit.committed:
            self._own.update(self._lake.table(self._table).path / file.path for file in commit.added)
            self._add(rows)

    def _add(self, rows: pa.Table) -> None:
        hashes = rows[COLUMN].to_numpy().view(np.uint64)
        for day, of_day in _days(rows):
            if day in self._generations:
                self._generations[day].add(hashes[of_day])

    def _follow(self) -> None:
        """Learn what was added to the table since the last call."""
        if not self._generations:
            self._version = self._lake.version(self._table)
        else:
            added = self._lake.added_since(self._table, self._version)
            if not added.complete:
                self._generations.clear()  # read again when asked
            for path, _ in added.files if added.complete else ():
                if path not in self._own:
                    self._add(_read(path))
            self._version = added.version
        self._own.clear()

    def _generation(self, day: date) -> Generation | None:
        """The fingerprints of the date, read now if need be; None when they exceed the budget alone."""
        if day in self._generations:
            self._generations.move_to_end(day)
            return self._generations[day]
        handle = self._lake.table(self._table)
        files = [file for file in handle.files().values() if file.date == day]
        if sum(file.rows for file in files) > self._capacity:
            return None
        generation = Generation()
        for file in files:
            generation.add(_read(handle.path / file.path)[COLUMN].to_numpy().view(np.uint64))
        self._generations[day] = generation
        while len(self._generations) > 1 and sum(map(len, self._generations.values())) > self._capacity:
            self._generations.popitem(last=False)
        return generation


def fingerprints(con: duckdb.DuckDBPyConnection, rows: pa.Table) -> Hashes:
    """A hash of each row but for its arrival, some 2.5 us a row (6 attributes each, median of 7 calls).

    The order of attributes does not count. Maps are hashed by entry, since
    DuckDB takes ten times as long to scan them from Arrow.
    """
    chosen = rows.select([name for name in rows.column_names if name not in _ARRIVAL])
    maps = [field.name for field in chosen.schema if pa.types.is_map(field.type)]
    plain = chosen.drop_columns(maps)
    names = ", ".join(f'"{name}"' for name in plain.column_names)
    hashes = _hash(con, plain, names)
    for place, name in enumerate(maps, start=1):
        column = chosen[name].combine_chunks()
        column = pa.concat_arrays(column.chunks) if isinstance(column, pa.ChunkedArray) else column
        offsets = np.asarray(column.offsets)
        entries = pa.table({"key": column.keys, "value": column.items}).slice(offsets[0], offsets[-1] - offsets[0])
        sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(_hash(con, entries, f"key, value, {place}"))])
        hashes = hashes * _MULTIPLIER + np.diff(sums[offsets - offsets[0]])
    return hashes


def _hash(con: duckdb.DuckDBPyConnection, rows: pa.Table, names: str) -> Hashes:
    con.register("hashed", rows)
    try:
        # The names are columns of this program's own.
        answer = con.sql(f"SELECT hash({names}) AS hash FROM hashed").to_arrow_table()  # noqa: S608
    finally:
        con.unregister("hashed")
    hashes: Hashes = answer["hash"].to_numpy()
    return hashes


def _read(path: Path) -> pa.Table:
    """Fingerprints and date of the file's rows that have one; files from before format 2 have none."""
    day = pa.scalar(date.fromisoformat(path.parent.name.removeprefix(f"{PARTITION}=")), pa.date32())
    with pq.ParquetFile(path) as file:
        has = COLUMN in file.schema_arrow.names
        found = file.read([COLUMN]) if has else pa.table({COLUMN: pa.array([], pa.int64())})
    found = found.drop_null()
    return found.append_column(PARTITION, pa.repeat(day, found.num_rows))


def _days(rows: pa.Table) -> Iterator[tuple[date, npt.NDArray[np.bool_]]]:
    for day in rows[PARTITION].unique().to_pylist():
        yield day, pc.equal(rows[PARTITION], day).to_numpy()


def _timed(rows: pa.Table) -> npt.NDArray[np.bool_]:
    timed = np.zeros(rows.num_rows, dtype=np.bool_)
    for name in _TIMES:
        if name in rows.column_names:
            timed |= pc.greater(rows[name], 0).fill_null(False).to_numpy()
    return timed
