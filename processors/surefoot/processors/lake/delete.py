"""Delete rows by a condition: the files that hold one are rewritten without it, in one commit. Under the lake's lease.

Rule: rows of ``open-`` files stay in an ``open-`` file, because whoever replaces unsettled rows looks for them there;
all others are moved as a stream, so memory does not hold a file.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date
from typing import Any, Final

import pyarrow as pa

from surefoot.processors.errors import CommitConflictError
from surefoot.processors.lake import views
from surefoot.processors.lake.commit import commit
from surefoot.processors.lake.compact import UPKEEP, next_version
from surefoot.processors.lake.lake import Lake
from surefoot.processors.lake.table import PARTITION, DataFile, Table

# How often other processes can replace the files before we give up.
_ATTEMPTS: Final = 10
_BATCH: Final = 100_000  # rows in memory


def delete_rows(lake: Lake, table: str, where: str, parameters: Sequence[Any]) -> int:
    """Take the rows that meet ``where`` out of the table; returns how many there were.

    ``where`` is SQL of the caller's own, with ``?`` for each of ``parameters``. Raises CommitConflictError when other
    processes replaced the files each time.
    """
    handle = lake.table(table)
    for attempt in range(_ATTEMPTS):
        handle.refresh()
        hit = _hit(lake, handle, where, parameters)
        if not hit:
            return 0
        try:
            _without(lake, handle, list(hit), where, parameters)
        except CommitConflictError:
            if attempt == _ATTEMPTS - 1:
                raise
        else:
            return sum(hit.values())
    raise AssertionError("the loop returns or raises")


def _hit(lake: Lake, handle: Table, where: str, parameters: Sequence[Any]) -> dict[DataFile, int]:
    """The files that hold such rows, and how many."""
    files = {str(handle.path / path): file for path, file in handle.files().items()}
    query = (
        "SELECT filename, count(*) FROM read_parquet(?, filename = true, union_by_name = true, "  # noqa: S608
        f"hive_partitioning = true, hive_types = {{'{PARTITION}': DATE}}) WHERE {where} GROUP BY filename"
    )
    found = lake.con.execute(query, [[str(handle.blank_path), *files], *parameters]).fetchall()
    return {files[name]: rows for name, rows in found}


def _without(lake: Lake, handle: Table, files: list[DataFile], where: str, parameters: Sequence[Any]) -> None:
    opened = [file for file in files if file.is_open]
    settled = [file for file in files if not file.is_open]
    rest = f"NOT coalesce({where}, false)"

    def stream(day: date) -> Iterator[pa.Table]:
        con = lake.connect()
        yield handle.body_schema.empty_table()
        views.set_files(con, handle, [handle.path / file.path for file in settled if file.date == day])
        columns = ", ".join(f'"{name}"' for name in handle.body_schema.names)
        query = f"SELECT {columns} FROM {handle.name} WHERE {rest}"  # noqa: S608 - the schema's names
        for batch in con.sql(query, params=list(parameters)).to_arrow_reader(_BATCH):
            yield pa.Table.from_batches([batch]).cast(handle.body_schema)
        con.close()

    kept = lake.read(handle.name, None, rest, parameters, [handle.path / file.path for file in opened])
    commit(
        handle,
        open_rows=kept.cast(handle.schema) if opened else None,
        moved={day: stream(day) for day in {file.date for file in settled}},
        remove=[file.path for file in files],
        app_id=UPKEEP,
        app_version=next_version(handle),
    )
