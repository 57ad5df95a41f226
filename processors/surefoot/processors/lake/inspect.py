"""Look at a lake without changing it: where its tables stand, and whether everything in it is as it was committed.

:func:`verify` is the proof that a lake (or a copy of one) is whole: every file of the log exists with its size, its
bytes have the checksum that stands in its name, its footer can be read and promises the rows that the log promises,
the log itself is whole (see ``history``), and identities and references hold. It names everything that is wrong and
stops at nothing: a fault is one sentence, and whatever does not rest on it is still proved.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from surefoot.processors.errors import LakeError, LakeFormatError
from surefoot.processors.lake import views
from surefoot.processors.lake.compact import SMALL_BYTES
from surefoot.processors.lake.durable import checksum, stamp_of
from surefoot.processors.lake.history import Holds, Published, check_log, pointer, read_published
from surefoot.processors.lake.lake import MARKER, Lake, check_marker
from surefoot.processors.lake.schema import TABLES
from surefoot.processors.lake.table import CURRENT, DataFile, Table
from surefoot.processors.lake.upkeep import retention_days
from surefoot.processors.lake.vacuum import replaced_files
from surefoot.processors.settings import Settings

# What must not repeat: columns whose values together are an identity. Null identifies nothing.
_UNIQUE: Final = {
    "spans": "trace_id, span_id",
    "runs": "run_id",
    "tool_calls": "trace_id, span_id",
    "model_calls": "trace_id, span_id",
    "verdicts": "verdict_id",
    "logs": "fingerprint",
    "metric_points": "fingerprint",
    "slo_minutes": "slo, generation, view, stratum_key, minute",
    "profiles": "profile_id",
    "decisions": "decision_id",
}
_OF_RUNS: Final = ("tool_calls", "model_calls", "verdicts")


@dataclass(frozen=True, slots=True)
class TableState:
    """Where a table stands."""

    table: str
    rows: int
    files: int
    size_bytes: int
    oldest_date: str | None
    newest_date: str | None
    small_files: int
    waiting_files: int  # replaced ones that are still on the disk
    waiting_bytes: int
    retention_days: int | None  # None: for ever
    version: int
    last_commit: str | None  # UTC


def state(lake: Lake, settings: Settings) -> list[TableState]:
    """Where each table stands."""
    states = []
    for table in lake.tables():
        waiting = replaced_files(table)
        files = list(table.files().values())
        entry = table.log_path / f"{table.version:020}.json"
        committed = datetime.fromtimestamp(entry.stat().st_mtime, UTC).isoformat() if entry.exists() else None
        states.append(
            TableState(
                table=table.name,
                rows=sum(file.rows for file in files),
                files=len(files),
                size_bytes=sum(file.size for file in files),
                oldest_date=str(files[0].date) if files else None,
                newest_date=str(files[-1].date) if files else None,
                small_files=sum(file.size < SMALL_BYTES for file in files),
                waiting_files=len(waiting),
                waiting_bytes=sum(file.size for file in waiting),
                retention_days=retention_days(table.name, settings),
                version=table.version,
                last_commit=committed,
            )
        )
    return states


@dataclass(frozen=True, slots=True)
class Proof:
    """What was looked through, and everything that is wrong, a sentence each; empty if the lake is whole."""

    tables: int
    files: int
    wrong: list[str]


def verify(lake: Lake) -> list[str]:
    """Everything that is wrong with the lake's folder as it is now."""
    return prove(lake.path).wrong


def prove(path: Path) -> Proof:
    """Look through the lake in the folder ``path``; what is damaged is named and the rest is still proved.

    LakeNotFoundError when there is no lake at all, LakeFormatError when it is newer than this program.
    """
    wrong: list[str] = []
    try:
        check_marker(path)
    except LakeFormatError:
        raise
    except LakeError as error:
        if not any((path / name).is_dir() for name in TABLES):
            raise
        wrong.append(f"{path / MARKER}: cannot be read: {error}")
    con = views.connect()
    whole: set[str] = set()
    tables = files = 0
    for name in TABLES:
        table, broken = _opened(path / name, name)
        if table is not None:
            tables, files = tables + 1, files + len(table.files())
            broken += [sentence for file in table.files().values() for sentence in _file(table, file)]
            broken += [] if broken else _viewed(con, table)
        wrong += broken
        if not broken:
            whole.add(name)
    for name, columns in _UNIQUE.items():
        if name in whole:
            wrong += _asked(con, name, _REPEATS.format(table=name, columns=columns), f"rows that repeat ({columns})")
    for name in _OF_RUNS:
        if {name, "runs"} <= whole:
            wrong += _asked(con, name, _ORPHANS.format(table=name), "rows whose run_id is in no row of runs")
    return Proof(tables, files, wrong)


def _opened(path: Path, name: str) -> tuple[Table | None, list[str]]:
    """The table, if its log can be read, and what is wrong with its log and its published list."""
    while True:
        before = pointer(path / "_delta_log")
        table, wrong = _open(path, name)
        if not wrong or before == pointer(path / "_delta_log"):  # else upkeep summed up and cleaned meanwhile
            return table, wrong


def _open(path: Path, name: str) -> tuple[Table | None, list[str]]:
    if not (path / "_delta_log").is_dir():
        return None, [f"{path}: the table is missing; `surefoot serve` creates an empty one, a backup has its rows"]
    wrong = []
    published: Published | None = None
    try:
        published = read_published(path)
    except (OSError, ValueError) as error:
        wrong.append(f"{path / CURRENT}: cannot be read: {error}; `surefoot serve` writes it anew")
    history = check_log(path / "_delta_log", published.version if published else -1)
    wrong += history.wrong
    try:
        table = Table(name, path, TABLES[name])
        table.files()
        if missing := table.missing_columns():
            wrong.append(f"{path}: is older than this program and has no column {missing[0]}; `surefoot lake upgrade`")
        if published and not history.wrong:
            wrong += _differs(table, published)
    except (DeltaError, OSError, ValueError) as error:
        return None, wrong or [f"{path}: the table cannot be opened: {error}"]
    if not wrong and history.holds is not None and table.version == history.version:
        holds = Holds(len(table.files()), sum(file.size for file in table.files().values()))
        if holds != history.holds:
            wrong.append(f"{table.log_path}: the table holds {holds}, its last commit says {history.holds}")
    return table, wrong


def _differs(table: Table, published: Published) -> Iterator[str]:
    """Readers without Delta must find what the log says: the files of the version that was published."""
    then = DeltaTable(table.path, version=published.version)
    files = frozenset(pa.table(then.get_add_actions(flatten=True))["path"].to_pylist())
    if files != published.files:
        example = min(files ^ published.files)
        yield (
            f"{table.path / CURRENT}: its files are not those that the log has in version {published.version}: "
            f"{len(files - published.files)} are missing, {len(published.files - files)} too many (first: {example})"
        )


def _viewed(con: duckdb.DuckDBPyConnection, table: Table) -> Iterator[str]:
    try:
        views.create_views(con, [table])
    except duckdb.Error as error:
        yield f"{table.blank_path}: cannot be read, so no query can: {error}"


_REPEATS: Final = """
SELECT coalesce(sum(n - 1), 0), any_value(identity)
FROM (SELECT count(*) AS n, ({columns})::VARCHAR AS identity FROM {table} GROUP BY ({columns}) HAVING count(*) > 1)
WHERE identity IS NOT NULL
"""
_ORPHANS: Final = """
SELECT count(*), any_value(run_id) FROM {table} ANTI JOIN runs USING (run_id) WHERE run_id IS NOT NULL
"""


def _asked(con: duckdb.DuckDBPyConnection, table: str, query: str, what: str) -> Iterator[str]:
    try:
        count, example = con.execute(query).fetchone() or (0, None)
    except duckdb.Error as error:
        yield f"{table}: cannot be queried: {error}"
        return
    if count:
        yield f"{table}: {count} {what}, for example {example}"


def _file(table: Table, file: DataFile) -> Iterator[str]:
    path = table.path / file.path
    try:
        size = path.stat().st_size
        stamp, found = stamp_of(path.name), checksum(path)
    except OSError as error:
        yield f"{path}: cannot be read: {error}"
        return
    if size != file.size:
        yield f"{path}: has {size} bytes, the log says {file.size}"
    elif stamp is not None and stamp != found:
        yield f"{path}: its bytes have the checksum {found:08x}, its name says {stamp:08x}"
    else:
        try:
            rows = pq.read_metadata(path).num_rows
        except (pa.ArrowInvalid, OSError) as error:
            yield f"{path}: its footer cannot be read: {error}"
            return
        if rows != file.rows:
            yield f"{path}: holds {rows} rows, the log says {file.rows}"


def views_sql(lake: Lake) -> str:
    """SQL that gives the plain ``duckdb`` shell one view per table; run it again to see later commits."""
    # Identifiers are the schema's, the path is quoted.
    lines = [
        "-- Views over a Surefoot lake. Read this file again to see what was committed since.",
        "SET TimeZone = 'UTC';",
        f"SET VARIABLE surefoot_lake = {_quoted(str(lake.path))};",
    ]
    for table in lake.tables():
        columns = ", ".join(f'"{name}"' for name in table.schema.names)
        folder = f"getvariable('surefoot_lake') || '/{table.name}/'"
        files = f"SELECT list_transform(files, lambda file: {folder} || file) FROM read_json({folder} || '{CURRENT}')"  # noqa: S608
        lines.append(f"SET VARIABLE files_{table.name} = ({files});")
        lines.append(f"CREATE OR REPLACE VIEW {table.name} AS SELECT {columns} FROM {views.source(table.name)};")  # noqa: S608
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
