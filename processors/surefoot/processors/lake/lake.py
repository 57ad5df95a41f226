"""The lake: one folder with one Delta table per entry of ``schema.TABLES``, opened by every process alike.

Rules: only ``commit`` writes to a table; readers use the list of current files, never a glob. Opening creates what is
missing, puts right what a power failure left, and adds columns that this program knows and the tables do not, one
process at a time. A lake written in a newer format is refused.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from datetime import date
from pathlib import Path
from typing import Any, Final, NamedTuple

import duckdb
import pyarrow as pa

from surefoot.processors.errors import LakeError, LakeFormatError, LakeNotFoundError
from surefoot.processors.lake import views
from surefoot.processors.lake.commit import Commit, commit
from surefoot.processors.lake.durable import exclusive, make_folder, sync, write_file
from surefoot.processors.lake.history import read_published
from surefoot.processors.lake.lease import lease
from surefoot.processors.lake.recovery import repair
from surefoot.processors.lake.schema import FORMAT, TABLES
from surefoot.processors.lake.table import Table

log = logging.getLogger("surefoot.lake")

MARKER: Final = "surefoot-lake.json"
_SETUP_LOCK: Final = "setup.lock"
_MARKER_REMEDY: Final = f'take it from a backup; of a lake that this version wrote it is {{"format": {FORMAT}}}'


class AddedFile(NamedTuple):
    """A file with new rows."""

    path: Path
    rows: int


class Added(NamedTuple):
    """Files added in (the version asked for, ``version``]; ``complete`` is False when older ones stand in for them."""

    version: int
    files: list[AddedFile]
    complete: bool  # True: exactly the new files. False: the log was cleaned, these are all files of the table


class Upgraded(NamedTuple):
    """What an upgrade changed."""

    before: int
    after: int
    columns: list[str]  # table.column


def upgrade(path: Path) -> Upgraded:
    """Bring the lake in ``path`` to this program's format, as opening it for writing does, and say what that changed.

    Additive: tables get columns, files stay as they are and are null there. Takes the lease, so that no process of an
    older program derives meanwhile; its writer cannot commit any more and ends. A newer format raises LakeFormatError.
    """
    before = check_marker(path)
    with lease(path, "surefoot lake upgrade"):
        missing = [
            f"{name}.{column}"
            for name, schema in TABLES.items()
            if (path / name / "_delta_log").is_dir()
            for column in Table(name, path / name, schema).missing_columns()
        ]
        Lake.open(path)
    return Upgraded(before, FORMAT, missing)


class Lake:
    """The open tables. One instance per thread; it shares nothing with others but the folder."""

    def __init__(self, path: Path, tables: dict[str, Table], repairs: Sequence[str]) -> None:
        self.path = path
        self.repairs = tuple(repairs)  # what opening had to put right or found lost, a sentence each
        self._tables = tables
        self._con: duckdb.DuckDBPyConnection | None = None

    @classmethod
    def open(cls, path: Path, create: bool = True) -> Lake:
        """Open the lake in the folder ``path``.

        With ``create=False`` nothing is written: a missing lake or table raises LakeNotFoundError. A newer format
        raises LakeFormatError; a folder that holds something else raises LakeError.
        """
        if not create:
            check_marker(path)
            return cls(path, {name: _open_existing(path, name) for name in TABLES}, [])
        make_folder(path)
        repairs: list[str] = []
        with exclusive(path / _SETUP_LOCK):
            if not (path / MARKER).exists():
                _check_empty(path)
                _mark(path)
            before = check_marker(path)
            tables = {name: _set_up(path / name, name, schema, repairs) for name, schema in TABLES.items()}
            if before < FORMAT:
                _mark(path)  # last: whoever dies before this finds an older lake and goes on
                log.info("the lake %s has format %d now; it had %d", path, FORMAT, before)
        for sentence in repairs:
            log.warning("%s", sentence)
        return cls(path, tables, repairs)

    def table(self, name: str) -> Table:
        """The handle on a table; LakeError names the tables when there is none of that name."""
        try:
            return self._tables[name]
        except KeyError:
            raise LakeError(f"the lake has no table {name!r}; its tables are {', '.join(self._tables)}") from None

    def tables(self) -> list[Table]:
        """All tables, raw ones first."""
        return list(self._tables.values())

    def lease(self, holder: str) -> AbstractContextManager[None]:
        """The lake's lease as a context manager; LeaseHeldError names who holds it."""
        return lease(self.path, holder)

    def commit(
        self,
        table: str,
        rows: pa.Table | None = None,
        *,
        app_id: str,
        app_version: int,
        open_rows: pa.Table | None = None,
        remove: Iterable[str] = (),
    ) -> Commit:
        """See :func:`surefoot.processors.lake.commit.commit`."""
        return commit(
            self.table(table), rows, app_id=app_id, app_version=app_version, open_rows=open_rows, remove=remove
        )

    def version(self, table: str) -> int:
        """Version of the table now."""
        handle = self.table(table)
        handle.refresh()
        return handle.version

    def transaction_version(self, table: str, app_id: str) -> int | None:
        """The last version that ``app_id`` committed to the table; None if it never did."""
        handle = self.table(table)
        handle.refresh()
        return handle.transaction_version(app_id)

    def files(self, table: str) -> list[Path]:
        """The table's files now, oldest partition first."""
        handle = self.table(table)
        handle.refresh()
        return [handle.path / path for path in handle.files()]

    def added_since(self, table: str, version: int) -> Added:
        """Files with rows that came after ``version`` (-1: all), from the log; moved rows are not new.

        When the log was cleaned beyond ``version``, or upkeep deleted one of the files, all current files are given.
        """
        handle = self.table(table)
        handle.refresh()
        added: dict[Path, int] = {}
        try:
            for _, actions in handle.entries(version):
                for add in (action["add"] for action in actions if "add" in action):
                    if add["dataChange"]:
                        added[handle.path / add["path"]] = json.loads(add["stats"])["numRecords"]
        except FileNotFoundError:
            return _everything(handle)
        if not all(path.exists() for path in added):
            return _everything(handle)
        return Added(handle.version, [AddedFile(path, rows) for path, rows in added.items()], complete=True)

    def read(
        self,
        table: str,
        columns: Sequence[str] | None = None,
        where: str = "true",
        parameters: Sequence[Any] = (),
        files: Iterable[Path] | None = None,
    ) -> pa.Table:
        """Rows of the table as Arrow, of all current files or of ``files``.

        ``where`` is SQL of the caller's own, with ``?`` for each of ``parameters``; a condition on ``date``
        skips files.
        """
        handle = self.table(table)
        handle.refresh()
        views.set_files(self.con, handle, files)
        chosen = ", ".join(f'"{name}"' for name in columns or handle.schema.names)
        query = f"SELECT {chosen} FROM {handle.name} WHERE {where}"  # noqa: S608 - names are the schema's
        return self.con.sql(query, params=list(parameters)).to_arrow_table()

    @property
    def con(self) -> duckdb.DuckDBPyConnection:
        """The lake's own connection, for the lake's own modules; others take :meth:`connect`."""
        if self._con is None:
            self._con = views.connect()
            views.create_views(self._con, self._tables.values())
        return self._con

    def connect(self) -> duckdb.DuckDBPyConnection:
        """A new in-memory DuckDB connection with one view per table, over the tables as they are now."""
        con = views.connect()
        for table in self._tables.values():
            table.refresh()
        views.create_views(con, self._tables.values())
        return con

    def refresh(self, con: duckdb.DuckDBPyConnection, since: date | None = None) -> None:
        """Let the views of a connection from :meth:`connect` see what is committed now, or no older dates than that.

        To plan a query, DuckDB opens each file of a view, those of dates that it does not ask for, too.
        """
        for table in self._tables.values():
            table.refresh()
            chosen = [table.path / file.path for file in table.files().values() if since is None or file.date >= since]
            views.set_files(con, table, chosen)


def _everything(handle: Table) -> Added:
    files = [AddedFile(handle.path / file.path, file.rows) for file in handle.files().values()]
    return Added(handle.version, files, complete=False)


def _check_empty(path: Path) -> None:
    others = sorted(entry.name for entry in path.iterdir() if entry.name != _SETUP_LOCK)
    if others:
        raise LakeError(
            f"{path} is not a lake and not empty (it holds {others[0]}); "
            "choose another folder with SUREFOOT_LAKE or --lake"
        )


def _mark(path: Path) -> None:
    def write(draft: Path) -> None:
        draft.write_text(json.dumps({"format": FORMAT}))

    write_file(path / MARKER, write)
    sync(path)


def check_marker(path: Path) -> int:
    """The lake's format; LakeError or one of its kinds if there is none, it is damaged or newer than this program."""
    try:
        found = int(json.loads((path / MARKER).read_bytes())["format"])
    except FileNotFoundError:
        raise LakeNotFoundError(
            f"there is no lake in {path}; `surefoot serve` or `surefoot import` creates one, "
            "SUREFOOT_HOME or SUREFOOT_LAKE names another"
        ) from None
    except (ValueError, KeyError, TypeError):
        raise LakeError(f"{path / MARKER} is damaged; {_MARKER_REMEDY}") from None
    if found > FORMAT:
        raise LakeFormatError(
            f"the lake in {path} has format {found}, this program knows formats up to {FORMAT}; "
            "install the version of Surefoot that wrote it, or a newer one"
        )
    return found


def _open_existing(path: Path, name: str) -> Table:
    if not (path / name / "_delta_log").is_dir():
        raise LakeNotFoundError(f"the lake in {path} has no table {name} yet; `surefoot serve` creates it")
    table = Table(name, path / name, TABLES[name])
    if missing := table.missing_columns():
        raise LakeNotFoundError(
            f"table {name} of the lake in {path} is older than this program and has no column {missing[0]} yet; "
            "`surefoot lake upgrade` or `surefoot serve` adds it"
        )
    return table


def _set_up(path: Path, name: str, schema: pa.Schema, repairs: list[str]) -> Table:
    if not (path / "_delta_log").is_dir():
        table = Table.create(name, path, schema)
        table.write_blank()
        with table.lock():
            table.publish()
        return table
    with exclusive(path / "_commit.lock"):
        repaired = repair(path / "_delta_log")
        table = Table.create(name, path, schema)
        repairs += repaired or _lost(table)
        if table.add_missing_columns() or not table.blank_path.exists():
            table.write_blank()
        table.sync_log()
        table.publish()
    return table


def _lost(table: Table) -> list[str]:
    """Whether the log ends before what was published; publishing anew removes the trace of it, so it is said now."""
    try:
        published = read_published(table.path).version
    except (OSError, ValueError):
        return []  # it is not synced, so a power loss may empty it; it is written anew
    if published <= table.version:
        return []
    ends = f"{table.log_path} ends with version {table.version}, but version {published} was published"
    return [f"{ends}: the commits after it are lost; restore the table from a backup"]
