"""The only function that changes what a table holds.

Contract: when :func:`commit` returns, the rows are in the table exactly once and on the disk, whether this call put
them there or an earlier one with the same ``(app_id, app_version)`` did. A crash at any instruction leaves either the
old version or the new one, and the retry finishes the work.

How: data files get names that are a function of (app id, version, table, removed files) and of their bytes, so a retry
replaces its own uncommitted file; they are synced before the log names them. Under the table's lock the application's
last version is read and the commit made with the *same* handle, as exactly the next version: Delta's application
transactions refuse nothing by themselves (the same or a lower version is accepted from a fresh handle). Then log and
folders are synced, since delta-rs does not.
"""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from deltalake.exceptions import CommitFailedError, DeltaError
from deltalake.transaction import AddAction, RemoveAction, Transaction

from surefoot.processors.dictionaries import plain_type
from surefoot.processors.errors import CommitConflictError, LakeError, RowsError
from surefoot.processors.lake.durable import make_folder, sync, write_file
from surefoot.processors.lake.parquet import write_parquet
from surefoot.processors.lake.table import (
    HOLDS_BYTES,
    HOLDS_FILES,
    MOVED_PREFIX,
    OPEN_PREFIX,
    PART_PREFIX,
    PARTITION,
    RESTING_PREFIX,
    DataFile,
    Table,
)

# A writer that ignores the lock (another engine) can win the next version this often before we give up.
_ATTEMPTS: Final = 20


@dataclass(frozen=True, slots=True)
class Commit:
    """What :func:`commit` did. ``added`` is empty when the version was found already there."""

    committed: bool
    version: int  # of the table, with these rows in it
    added: tuple[DataFile, ...] = ()


@dataclass(frozen=True, slots=True)
class Resting:
    """A file of open rows that wait: the age tells neighbours, the rows have no partition column."""

    age: int
    day: date
    rows: pa.Table


def commit(
    table: Table,
    rows: pa.Table | None = None,
    *,
    app_id: str,
    app_version: int,
    open_rows: pa.Table | None = None,
    moved: Mapping[date, Iterable[pa.Table]] | None = None,
    resting: Iterable[Resting] = (),
    remove: Iterable[str] = (),
    data_change: bool = True,
    dropped: int = 0,
) -> Commit:
    """Add rows to the table and take files out of it, once per ``(app_id, app_version)``.

    ``rows`` go to ``part-`` files, ``open_rows`` to ``open-`` files, one file per date each; both have the table's
    columns. Each of ``resting`` becomes an ``open-`` file. ``moved`` streams rows that other files held, without the
    partition column, into one ``part-`` file per date; :meth:`Lake.added_since` does not take them for new. ``remove``
    names current files by relative path. ``data_change=False`` says that rows only move, ``dropped`` of them excepted.
    Without rows and removals the transaction alone is recorded. Raises RowsError when columns do not fit,
    CommitConflictError when a file to remove is not current any more, LakeError when the disk refuses.
    """
    table.refresh()
    if is_there(table, app_id, app_version):
        return _found(table)
    removed = sorted(set(remove))
    name = _digest(table, app_id, app_version, removed)
    drafts: list[tuple[str, Iterable[tuple[date, Iterable[pa.Table]]]]] = [
        (PART_PREFIX, _by_date(rows, table)),
        (OPEN_PREFIX, _by_date(open_rows, table)),
        (MOVED_PREFIX, (moved or {}).items()),
        *(
            (f"{RESTING_PREFIX}{file.age:012}-{place}-", [(file.day, [file.rows])])
            for place, file in enumerate(resting)
        ),
    ]
    added = [
        file
        for prefix, bodies in drafts
        for day, body in bodies
        if (file := _write_draft(table, day, f"{prefix}{name}.parquet", body)).rows
    ]
    with _disk_errors(table), table.lock():
        for _ in range(_ATTEMPTS):
            table.refresh()
            if is_there(table, app_id, app_version):
                break
            _check_removed(table, removed)
            _check_drafts(table, added)
            if not data_change:
                _check_moved(table, added, removed, dropped)
            table.sync_log()
            base = table.version
            try:
                actions = _actions(table, added, removed, data_change)
                table.transact(actions, Transaction(app_id, app_version), _holds(table, added, removed))
            except CommitFailedError:
                continue
            table.refresh()
            table.sync_log()
            table.publish()
            return Commit(committed=True, version=base + 1, added=tuple(added))
        else:
            raise LakeError(
                f"committing to {table.path} failed {_ATTEMPTS} times because another program keeps writing to it; "
                "stop that program"
            )
    return _found(table)


@contextmanager
def _disk_errors(table: Table) -> Iterator[None]:
    """A full or read-only disk, met while the log is written: the retry finds out whether the entry is there."""
    try:
        yield
    except (OSError, DeltaError) as error:
        table.reload()  # a handle that failed in the middle may not be trusted to know what it sees
        words = " ".join(re.sub(r"\x1b\[\d*m|\u21b3", "", str(error)).split())
        raise LakeError(f"writing the log of {table.path} failed: {words}; free the disk and retry") from error


def is_there(table: Table, app_id: str, app_version: int) -> bool:
    """Whether ``app_id`` committed this version or a later one, as the handle sees the table."""
    last = table.transaction_version(app_id)
    return last is not None and last >= app_version


def _found(table: Table) -> Commit:
    """The commit is there already; its author may have died before it synced or published."""
    with _disk_errors(table), table.lock():
        table.refresh()
        table.sync_log()
        table.publish()
    return Commit(committed=False, version=table.version)


def _digest(table: Table, app_id: str, app_version: int, removed: list[str]) -> str:
    """What names this commit's files.

    The removed ones belong to it: two compactors that race to the same version of ``upkeep`` would otherwise overwrite
    each other's file with different rows.
    """
    text = "\0".join([table.name, app_id, str(app_version), *removed])
    return hashlib.blake2b(text.encode(), digest_size=12).hexdigest()


def _write_draft(table: Table, day: date, name: str, bodies: Iterable[pa.Table]) -> DataFile:
    """Put one file in its place, synced and not committed; without rows there is no file."""
    folder = table.path / f"{PARTITION}={day.isoformat()}"
    target = folder / name
    written = 0

    def write(draft: Path) -> None:
        nonlocal written
        written = write_parquet(bodies, draft)

    try:
        make_folder(folder)
        target = write_file(target, write, stamped=True)
        if not written:
            target.unlink()
            return DataFile(target.name, 0, 0, day)
        sync(folder)
    except OSError as error:
        raise LakeError(f"writing {target} failed: {error}; nothing was committed, free the disk and retry") from error
    return DataFile(f"{folder.name}/{target.name}", written, target.stat().st_size, day)


def conform(rows: pa.Table, table: Table) -> pa.Table:
    """The rows in the table's column order and types; RowsError if they do not fit.

    Dictionary-encoded text stays as it is, which writes faster and reads as plain text.
    """
    missing = [name for name in table.schema.names if name not in rows.column_names]
    unknown = [name for name in rows.column_names if name not in table.schema.names]
    if missing or unknown:
        raise RowsError(
            f"rows for table {table.name} do not have its columns: missing {missing or 'none'}, "
            f"unknown {unknown or 'none'}; see surefoot.processors.lake.schema"
        )
    fields = []
    for field in table.schema:
        given = rows.schema.field(field.name).type
        fields.append(pa.field(field.name, given if plain_type(given) == field.type else field.type))
    try:
        return rows.select(table.schema.names).cast(pa.schema(fields))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise RowsError(f"rows for table {table.name} cannot be cast to its types: {error}") from error


def _by_date(rows: pa.Table | None, table: Table) -> Iterator[tuple[date, list[pa.Table]]]:
    """The rows of each date, without the column."""
    if rows is None or rows.num_rows == 0:
        return
    rows = conform(rows, table)
    dates = rows[PARTITION]
    if dates.null_count:
        raise RowsError(f"{dates.null_count} of {rows.num_rows} rows for table {table.name} have no {PARTITION}")
    body = rows.drop_columns([PARTITION])
    days = sorted(dates.unique().to_pylist())
    if len(days) == 1:
        yield days[0], [body]
        return
    for day in days:
        yield day, [body.filter(pc.equal(dates, pa.scalar(day, pa.date32())))]


def _check_removed(table: Table, removed: list[str]) -> None:
    gone = [path for path in removed if path not in table.files()]
    if gone:
        raise CommitConflictError(
            f"replacing files of {table.path} failed: {len(gone)} of {len(removed)} are not current any more "
            f"(first: {gone[0]}); nothing was committed, read the table again and retry"
        )


def _check_drafts(table: Table, added: list[DataFile]) -> None:
    """Upkeep deletes old unreferenced files under this same lock; a draft that it took must not be committed."""
    for file in added:
        path = table.path / file.path
        if not path.is_file() or path.stat().st_size != file.size:
            raise CommitConflictError(f"the draft {path} was changed before it was committed; retry")


def _check_moved(table: Table, added: list[DataFile], removed: list[str], dropped: int) -> None:
    before = sum(table.files()[path].rows for path in removed)
    after = sum(file.rows for file in added) + dropped
    if before != after:
        raise LakeError(
            f"moving rows of {table.path}: {len(removed)} files promise {before} rows and hold {after}; nothing was "
            "committed, compare the files with their backup"
        )


def _holds(table: Table, added: list[DataFile], removed: list[str]) -> dict[str, int]:
    gone = set(removed)
    stay = [file for path, file in table.files().items() if path not in gone] + added
    return {HOLDS_FILES: len(stay), HOLDS_BYTES: sum(file.size for file in stay)}


def _actions(
    table: Table, added: list[DataFile], removed: list[str], data_change: bool
) -> list[AddAction | RemoveAction]:
    # Delta wants wall-clock times. Nothing that Surefoot computes depends on them but the age of a removed file.
    clock = time.time_ns() // 1_000_000
    removals = [
        RemoveAction(path, data_change, clock, file.size, {PARTITION: file.date.isoformat()})
        for path in removed
        for file in (table.files()[path],)
    ]
    additions = [
        AddAction(
            path=file.path,
            size=file.size,
            partition_values={PARTITION: file.date.isoformat()},
            modification_time=clock,
            data_change=data_change and not file.is_moved,
            stats=json.dumps({"numRecords": file.rows}),
        )
        for file in added
    ]
    return [*removals, *additions]
