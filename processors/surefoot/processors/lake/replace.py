"""Replace everything that a table holds of some traces, or of some dates, in one commit.

Rows of traces that are not settled live in ``open-`` files. Those that are expected to change (a run is still going on)
are in one such file for each date, rewritten whole. Those that rest, because all that they wait for is their time, are
in a file for each replacement: it is rewritten only when one of its traces changes, and settles as it is. So a
replacement costs what changed and what is going on, not what waits. Settled rows are appended once to ``part-`` files.
A late span reopens its trace: the part files that hold it are rewritten without it. Rule: before and after are one
version of the table apart, so a reader never sees a trace twice or not at all, and a view needs no latest-wins.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import date
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from surefoot.processors.errors import CommitConflictError, RowsError
from surefoot.processors.lake.commit import Commit, Resting, commit, conform, is_there
from surefoot.processors.lake.lake import Lake
from surefoot.processors.lake.table import PARTITION, DataFile, Table
from surefoot.processors.lake.trace_files import TraceFiles

# How often upkeep can move the rows that a superseding commit is about to rewrite before it gives up.
_ATTEMPTS: Final = 5

# So many resting files of a date, then so many of them become one: queries slow down from some hundred files on.
_MOST_RESTING: Final = 96
_MERGED: Final = 8


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
    resting: pa.Table | None = None,
    where: TraceFiles | None = None,
) -> Commit:
    """Make ``rows_open``, ``resting`` and ``rows_settled`` all that ``table`` holds of ``trace_ids``; other rows stay.

    Once per ``(app_id, app_version)``: a replay changes nothing. A trace without rows vanishes. ``since`` is the
    caller's promise that no settled row of these traces has an earlier ``date``; it bounds the search. ``resting`` are
    open rows that will hardly change again. ``where`` knows the table's files, so they need not be read for the search.
    Raises RowsError for a row whose trace is not among ``trace_ids``.
    """
    handle = lake.table(table)
    handle.refresh()
    if is_there(handle, app_id, app_version):
        return commit(handle, app_id=app_id, app_version=app_version)
    ids = pa.array(sorted(set(trace_ids)), pa.string())
    opened, rested, settled = (_only_of(ids, rows, handle) for rows in (rows_open, resting, rows_settled))
    hit = _files_with(handle, ids, since, where)
    parts, live = [file for file in hit if not file.is_open], [file for file in hit if file.is_open]
    if opened.num_rows:  # the rows that change all the time are in one file for each date
        live += [file for file in handle.files().values() if file.is_live and file not in live]
    crowd = _crowd(handle, live) if rested.num_rows else []
    return commit(
        handle,
        settled,
        open_rows=pa.concat_tables([_others(handle, [file for file in live if file.is_live], ids), opened]),
        moved=_without_traces(handle, parts, ids),
        resting=[*_kept_resting(handle, live, ids), *_merged(handle, crowd), *_resting(rested, app_version)],
        remove=[file.path for file in (*parts, *live, *crowd)],
        app_id=app_id,
        app_version=app_version,
    )


def settle_traces(
    lake: Lake,
    table: str,
    trace_ids: Iterable[str],
    app_id: str,
    app_version: int,
    *,
    where: TraceFiles | None = None,
) -> pa.Table:
    """Take the open rows of these traces for settled as they are, and return them as they are then.

    Once per ``(app_id, app_version)``; of rows that are settled already none is returned.
    """
    handle = lake.table(table)
    handle.refresh()
    ids = pa.array(sorted(set(trace_ids)), pa.string())
    hit = [file for file in _files_with(handle, ids, date.max, where) if file.is_open]
    live = [file for file in hit if file.is_live]
    rows = _rows(handle, hit)
    rows = rows.filter(pc.is_in(rows["trace_id"], ids))
    place = handle.schema.get_field_index("settled")
    rows = rows.set_column(place, handle.schema.field(place), pa.repeat(True, rows.num_rows))
    if hit and not is_there(handle, app_id, app_version):
        commit(
            handle,
            rows,
            open_rows=_others(handle, live, ids),
            resting=_kept_resting(handle, hit, ids),
            remove=[file.path for file in hit],
            app_id=app_id,
            app_version=app_version,
        )
    return rows


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


def _files_with(handle: Table, ids: pa.Array, since: date | None, where: TraceFiles | None) -> list[DataFile]:
    """The files that hold a row of one of the traces: among all open ones, and of the others from ``since`` on."""
    searched = [file for file in handle.files().values() if file.is_open or since is None or file.date >= since]
    found = (TraceFiles(handle) if where is None else where).find(ids.to_pylist(), searched)
    return [file for file in found if _holds(handle, file, ids)]


def _holds(handle: Table, file: DataFile, ids: pa.Array) -> bool:
    """Whether the file does; a hash may say so of one that does not, and settled files are not to be rewritten then."""
    column = pq.read_table(handle.path / file.path, columns=["trace_id"], partitioning=None, use_threads=False)
    return bool(pc.any(pc.is_in(column["trace_id"], ids)).as_py())


def _without_traces(handle: Table, files: list[DataFile], ids: pa.Array) -> dict[date, Iterator[pa.Table]]:
    """The rows of part files that belong to none of the traces, by date, as streams: the files may be large."""

    def stream(day: date) -> Iterator[pa.Table]:
        for body in handle.bodies([file for file in files if file.date == day]):
            yield body.filter(pc.invert(pc.is_in(body["trace_id"], ids)))

    return {day: stream(day) for day in {file.date for file in files}}


def _rows(handle: Table, files: Iterable[DataFile]) -> pa.Table:
    """All rows of these (open, so small) files."""
    place = handle.schema.get_field_index(PARTITION)
    tables = [
        body.add_column(place, handle.schema.field(place), pa.repeat(pa.scalar(file.date), body.num_rows))
        for file in files
        for body in handle.bodies([file])
    ]
    return pa.concat_tables([handle.schema.empty_table(), *tables])


def _others(handle: Table, files: list[DataFile], ids: pa.Array) -> pa.Table:
    """The rows of open files that belong to none of the traces."""
    rows = _rows(handle, files)
    return rows.filter(pc.invert(pc.is_in(rows["trace_id"], ids)))


def _resting(rows: pa.Table, age: int) -> list[Resting]:
    days, bodies = rows[PARTITION].unique().to_pylist(), rows.drop_columns([PARTITION])
    if len(days) == 1:
        return [Resting(age, days[0], bodies)]
    return [Resting(age, day, bodies.filter(pc.equal(rows[PARTITION], day))) for day in days]


def _kept_resting(handle: Table, files: list[DataFile], ids: pa.Array) -> list[Resting]:
    """What is left of each resting file without these traces, in a file each: rows of an age settle together."""
    left = []
    for file in files:
        if not file.is_live:
            rows = pa.concat_tables(handle.bodies([file]))
            left.append(Resting(file.age, file.date, rows.filter(pc.invert(pc.is_in(rows["trace_id"], ids)))))
    return [one for one in left if one.rows.num_rows]


def _crowd(handle: Table, but: list[DataFile]) -> list[DataFile]:
    """Of a date with too many resting files, some neighbours in age with the fewest rows: these become one file."""
    resting = [file for file in handle.files().values() if file.is_open and not file.is_live and file not in but]
    for day in {file.date for file in resting}:
        of_day = sorted((file for file in resting if file.date == day), key=lambda file: file.age)
        if len(of_day) >= _MOST_RESTING:
            groups = [of_day[start : start + _MERGED] for start in range(len(of_day) - _MERGED + 1)]
            return min(groups, key=lambda group: sum(file.rows for file in group))
    return []


def _merged(handle: Table, files: list[DataFile]) -> list[Resting]:
    return [Resting(files[0].age, files[0].date, pa.concat_tables(handle.bodies(files)))] if files else []
