"""Replace everything that a table holds of some traces, or of some dates, in one commit.

Rows of traces that are not settled live in ``open-`` files, which each replacement rewrites whole (they are small);
settled rows are appended once to ``part-`` files. A late span reopens its trace: the part files that hold it are
rewritten without it. Rule: before and after are one version of the table apart, so a reader never sees a trace twice or
not at all, and a view needs no latest-wins.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import date
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from surefoot.processors.errors import CommitConflictError, RowsError
from surefoot.processors.lake.commit import Commit, commit, conform, is_there
from surefoot.processors.lake.lake import Lake
from surefoot.processors.lake.table import DataFile, Table

# How often upkeep can move the rows that a superseding commit is about to rewrite before it gives up.
_ATTEMPTS: Final = 5


def replace_traces(
    lake: Lake,
    table: str,
    trace_ids: Iterable[str],
    rows_open: pa.Table | None,
    rows_settled: pa.Table | None,
    app_id: str,
    app_version: int,
    *,
    since: date | None = None,
) -> Commit:
    """Make ``rows_open`` and ``rows_settled`` all that ``table`` holds of ``trace_ids``; other rows stay.

    Once per ``(app_id, app_version)``: a replay changes nothing. A trace without rows vanishes. ``since`` is the
    caller's promise that no settled row of these traces has an earlier ``date``; it bounds the search. Raises RowsError
    for a row whose trace is not among ``trace_ids``.
    """
    handle = lake.table(table)
    handle.refresh()
    if is_there(handle, app_id, app_version):
        return commit(handle, app_id=app_id, app_version=app_version)
    ids = pa.array(sorted(set(trace_ids)), pa.string())
    opened, settled = (_only_of(ids, rows, handle) for rows in (rows_open, rows_settled))
    open_files, part_files = _split(handle, since)
    hit = _files_with(lake, handle, part_files, ids)
    rewrites = opened.num_rows > 0 or bool(_files_with(lake, handle, open_files, ids))
    carried = _others(lake, handle, open_files if rewrites else [], ids)
    return commit(
        handle,
        settled,
        open_rows=pa.concat_tables([carried, opened]),
        moved={
            day: _kept(handle, [file for file in hit if file.date == day], ids) for day in {file.date for file in hit}
        },
        remove=[file.path for file in (hit + open_files if rewrites else hit)],
        app_id=app_id,
        app_version=app_version,
    )


def replace_dates(
    lake: Lake, table: str, dates: Iterable[date], rows: pa.Table | None, app_id: str, app_version: int
) -> Commit:
    """Make ``rows`` all that ``table`` holds of ``dates``. Raises RowsError for a row of another date."""
    handle = lake.table(table)
    handle.refresh()
    chosen = set(dates)
    if rows is not None:
        strangers = set(rows["date"].unique().to_pylist()) - chosen
        if strangers:
            raise RowsError(
                f"replacing {len(chosen)} dates of table {table}: rows have other dates ({min(map(str, strangers))})"
            )
    remove = [file.path for file in handle.files().values() if file.date in chosen]
    return commit(handle, rows, remove=remove, app_id=app_id, app_version=app_version)


def supersede(
    lake: Lake, table: str, rows: pa.Table, keys: pa.Table, dates: Iterable[date], app_id: str, app_version: int
) -> Commit:
    """Append ``rows`` and take out, in the same commit, the rows of ``dates`` that are like one of ``keys``.

    Alike means equal in the columns of ``keys``, all of them text. Once per ``(app_id, app_version)``. Only the files
    that hold such a row are rewritten, as a stream.
    """
    handle = lake.table(table)
    for attempt in range(_ATTEMPTS):
        handle.refresh()
        if keys.num_rows == 0 or is_there(handle, app_id, app_version):
            return lake.commit(table, rows, app_id=app_id, app_version=app_version)
        chosen = set(dates)
        hit = files_like(lake, handle, [file for file in handle.files().values() if file.date in chosen], keys)
        try:
            return commit(
                handle,
                rows,
                moved=without(handle, hit, keys),
                remove=[file.path for file in hit],
                app_id=app_id,
                app_version=app_version,
            )
        except CommitConflictError:  # upkeep moved the rows meanwhile
            if attempt == _ATTEMPTS - 1:
                raise
    raise AssertionError("the loop returns or raises")


def files_like(lake: Lake, handle: Table, files: list[DataFile], keys: pa.Table) -> list[DataFile]:
    """Those of the files that hold a row like one of ``keys``."""
    if not files or not keys.num_rows:
        return []
    paths = {str(handle.path / file.path): file for file in files}
    lake.con.register("keys", keys)
    try:
        # The names are the schema's.
        query = (
            "SELECT DISTINCT filename FROM read_parquet($1, filename = true, union_by_name = true) "  # noqa: S608
            f"SEMI JOIN keys USING ({', '.join(keys.column_names)})"
        )
        found = lake.con.execute(query, [list(paths)]).fetchall()
    finally:
        lake.con.unregister("keys")
    return [paths[name] for (name,) in found]


def without(handle: Table, files: list[DataFile], keys: pa.Table) -> dict[date, Iterator[pa.Table]]:
    """The rows of the files that are like none of ``keys``, as a stream for each date."""
    known = _joined(keys)

    def stream(day: date) -> Iterator[pa.Table]:
        for body in handle.bodies([file for file in files if file.date == day]):
            yield body.filter(pc.invert(pc.is_in(_joined(body.select(keys.column_names)), known)))

    return {day: stream(day) for day in {file.date for file in files}}


def _joined(keys: pa.Table) -> pa.Array:
    """Each row as one text."""
    texts = [pc.fill_null(keys[name].cast(pa.string()), "\1").combine_chunks() for name in keys.column_names]
    joined = pc.binary_join_element_wise(*texts, "\0") if len(texts) > 1 else texts[0]
    return joined.combine_chunks() if isinstance(joined, pa.ChunkedArray) else joined


def _only_of(ids: pa.Array, rows: pa.Table | None, handle: Table) -> pa.Table:
    if rows is None:
        return handle.schema.empty_table()
    rows = conform(rows, handle).cast(handle.schema)
    strangers = rows.filter(pc.invert(pc.is_in(rows["trace_id"], ids)))
    if strangers.num_rows:
        raise RowsError(
            f"replacing {len(ids)} traces of table {handle.name}: {strangers.num_rows} of {rows.num_rows} rows "
            f"belong to other traces or to none (first: {strangers['trace_id'][0].as_py()})"
        )
    return rows


def _split(handle: Table, since: date | None) -> tuple[list[DataFile], list[DataFile]]:
    files = handle.files().values()
    parts = [file for file in files if not file.is_open and (since is None or file.date >= since)]
    return [file for file in files if file.is_open], parts


def _paths(handle: Table, files: list[DataFile]) -> list[Path]:
    return [handle.path / file.path for file in files]


def _files_with(lake: Lake, handle: Table, files: list[DataFile], ids: pa.Array) -> list[DataFile]:
    """Those of the files that hold a row of one of the traces."""
    if not files or not len(ids):
        return []
    paths = {str(handle.path / file.path): file for file in files}
    query = "SELECT DISTINCT filename FROM read_parquet($1, filename = true) WHERE trace_id IN (SELECT unnest($2))"
    found = lake.con.execute(query, [list(paths), ids.to_pylist()]).fetchall()
    return [paths[name] for (name,) in found]


def _kept(handle: Table, files: Iterable[DataFile], ids: pa.Array) -> Iterator[pa.Table]:
    """The rows of one date's part files that belong to none of the traces, as a stream: the files may be large."""
    for body in handle.bodies(files):
        yield body.filter(pc.invert(pc.is_in(body["trace_id"], ids)))


def _others(lake: Lake, handle: Table, files: list[DataFile], ids: pa.Array) -> pa.Table:
    """The rows of open files that belong to none of the traces."""
    if not files:
        return handle.schema.empty_table()
    rows = lake.read(handle.name, files=_paths(handle, files)).cast(handle.schema)
    return rows.filter(pc.invert(pc.is_in(rows["trace_id"], ids)))
