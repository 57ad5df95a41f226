"""One SELECT over the lake's tables, safe to take from anyone who may read them.

Rules: the statement is parsed by DuckDB's own parser and must be exactly one SELECT, which is what keeps it from
writing: neither ``allowed_directories`` nor ``allowed_paths`` does (a COPY could still overwrite a data file or the
Delta log). The engine then reads the current data files and nothing else, in a configuration that the statement cannot
change.
"""

from __future__ import annotations

import difflib
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb

from surefoot.processors.errors import QueryError
from surefoot.processors.lake import views
from surefoot.processors.lake.lake import Lake


@dataclass(frozen=True, slots=True)
class Result:
    """Rows as Python values, in the order of ``columns``; ``types`` are DuckDB's names of their types."""

    columns: list[str]
    types: list[str]
    rows: list[tuple[Any, ...]]
    truncated: bool = False  # there were more than ``max_rows``


def query(
    lake_path: Path, sql: str, *, seconds: float = 60.0, max_rows: int | None = None, memory: str = "1GB"
) -> Result:
    """Answer ``sql`` from the lake in ``lake_path`` as it is now.

    Raises QueryError for anything that is not one SELECT over the lake's tables, or that takes longer than ``seconds``
    or more than ``memory``; LakeNotFoundError when there is no lake.
    """
    lake = Lake.open(lake_path, create=False)
    con = _locked(lake, memory)
    try:
        _check(con, sql)
        with _time_limit(con, seconds), _errors_in_our_words(lake, seconds, memory):
            answer = con.execute(sql)
            rows = answer.fetchall() if max_rows is None else answer.fetchmany(max_rows + 1)
        columns = [(name, str(kind)) for name, kind, *_ in answer.description or []]
    finally:
        con.close()
    return Result(
        columns=[name for name, _ in columns],
        types=[kind for _, kind in columns],
        rows=rows[:max_rows],
        truncated=max_rows is not None and len(rows) > max_rows,
    )


def _locked(lake: Lake, memory: str) -> duckdb.DuckDBPyConnection:
    """A connection with the lake's views that can read their files and change nothing, not even its own settings."""
    con = views.connect(
        {
            "memory_limit": memory,
            "temp_directory": "",  # no spilling: it would be a way to write
            "autoload_known_extensions": False,
            "autoinstall_known_extensions": False,
            "python_enable_replacements": False,  # a table name must not reach this program's variables
        }
    )
    views.create_views(con, lake.tables())
    readable = [path for table in lake.tables() for path in views.paths(table)]
    con.execute("SET allowed_paths = $1", [readable])
    con.execute("SET enable_external_access = false")
    con.execute("SET lock_configuration = true")
    return con


def _check(con: duckdb.DuckDBPyConnection, sql: str) -> None:
    try:
        statements = con.extract_statements(sql)
    except duckdb.Error as error:
        raise QueryError(f"the query cannot be parsed: {_words(error)}") from error
    kinds = [statement.type.name for statement in statements]
    if kinds != ["SELECT"]:
        raise QueryError(
            f"the query must be one SELECT statement; this is {' and '.join(kinds) if kinds else 'none'}. "
            "To change or export data, read the tables with your own DuckDB"
        )


@contextmanager
def _time_limit(con: duckdb.DuckDBPyConnection, seconds: float) -> Iterator[None]:
    timer = threading.Timer(seconds, con.interrupt)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()  # or it could interrupt what comes after


@contextmanager
def _errors_in_our_words(lake: Lake, seconds: float, memory: str) -> Iterator[None]:
    try:
        yield
    except duckdb.InterruptException as error:
        raise QueryError(f"the query was stopped after {seconds:g} s; narrow it, for example by date") from error
    except duckdb.OutOfMemoryException as error:
        raise QueryError(f"the query needs more memory than {memory}; narrow it, for example by date") from error
    except duckdb.PermissionException as error:
        raise QueryError(f"a query reads the lake's tables and no other file: {_words(error)}") from error
    except duckdb.CatalogException as error:
        raise QueryError(_unknown_table(str(error), lake) or _words(error)) from error
    except duckdb.Error as error:
        raise QueryError(_words(error)) from error


def _unknown_table(message: str, lake: Lake) -> str | None:
    found = re.search(r"Table with name (.+?) does not exist", message)
    if found is None:
        return None
    names = [table.name for table in lake.tables()]
    close = difflib.get_close_matches(found[1], names, n=1)
    meant = f" Did you mean {close[0]}?" if close else ""
    return f"there is no table {found[1]}.{meant} The tables are {', '.join(names)} (docs/tables.md)"


def _words(error: duckdb.Error) -> str:
    """DuckDB's own message, with its candidates and the line it points at."""
    return str(error).strip()
