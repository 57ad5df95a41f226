"""The tables as DuckDB views over the current file lists.

Rule: a view never globs. It reads the list in a session variable (``files_spans``), so a connection follows the table
by setting the variable again, and a query keeps the files that it began with: they stay on disk for a while
after they were replaced. ``union_by_name`` keeps files readable that are older than a column.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import duckdb

from surefoot.processors.lake.table import PARTITION, Table


def connect(config: dict[str, str | bool | int | float | list[str]] | None = None) -> duckdb.DuckDBPyConnection:
    """An in-memory connection; times are UTC, whatever the machine's zone (``date_trunc`` follows the session's)."""
    con = duckdb.connect(config=config or {})
    con.execute("SET TimeZone = 'UTC'")
    return con


def paths(table: Table) -> list[str]:
    """Absolute paths of the blank file, which carries the columns, and of the current files."""
    return [str(table.blank_path), *(str(table.path / path) for path in table.files())]


def create_views(con: duckdb.DuckDBPyConnection, tables: Iterable[Table]) -> None:
    """One view per table, with the table's columns in the schema's order."""
    for table in tables:
        set_files(con, table, only=[])  # the columns are the blank file's; no other needs to be opened for them
        columns = ", ".join(f'"{name}"' for name in table.schema.names)
        # The identifiers come from schema.py.
        con.execute(
            f"CREATE OR REPLACE VIEW {table.name} AS SELECT {columns} FROM {source(table.name)}"  # noqa: S608
        )
        set_files(con, table)


def source(table: str) -> str:
    """The FROM of a table's view: the files that its session variable lists."""
    return (
        f"read_parquet(getvariable('files_{table}'), union_by_name = true, hive_partitioning = true, "
        f"hive_types = {{'{PARTITION}': DATE}})"
    )


def set_files(con: duckdb.DuckDBPyConnection, table: Table, only: Iterable[Path] | None = None) -> None:
    """Point the view of ``table`` at its current files, or at ``only`` these."""
    chosen = paths(table) if only is None else [str(table.blank_path), *map(str, only)]
    con.execute(f"SET VARIABLE files_{table.name} = $1", [chosen])
