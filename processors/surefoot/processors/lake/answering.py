"""The child process of ``console.query``: answers one SELECT and ends.

Rules: the statement was found to be one SELECT before. The engine reads the current data files and nothing else, in a
configuration that the statement cannot change. The kernel ends the process at the time limit, because DuckDB looks for
an interrupt only between chunks: one call like ``repeat('a', 4000000000)`` ran on for ever.
"""

from __future__ import annotations

import difflib
import re
import resource
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import Any, Final

import duckdb

from surefoot.processors.errors import LakeError, QueryError
from surefoot.processors.lake import values, views
from surefoot.processors.lake.console import Result, words
from surefoot.processors.lake.lake import Lake

_HEAP_BYTES: Final = 3 << 30  # DuckDB's own limit does not see the strings of a vector, nor Python the rows


def main() -> None:
    """Read the question from stdin, write the Result or the error to stdout."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Python's handler would wait for DuckDB to return
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    wanted = _HEAP_BYTES if hard == resource.RLIM_INFINITY else min(hard, _HEAP_BYTES)
    resource.setrlimit(resource.RLIMIT_DATA, (wanted, hard))
    asked = values.loads(sys.stdin.buffer.read())
    try:
        answer = _answer(
            Path(asked["lake"]), asked["sql"], asked["parameters"], asked["seconds"], asked["max_rows"], asked["memory"]
        )
        told = values.dumps({field.name: getattr(answer, field.name) for field in fields(answer)})
    except TypeError as error:
        told = values.dumps({"error": QueryError.__name__, "message": str(error)})
    except (QueryError, LakeError) as error:
        told = values.dumps({"error": type(error).__name__, "message": str(error)})
    sys.stdout.buffer.write(told)


def _answer(
    lake_path: Path, sql: str, parameters: dict[str, Any], seconds: float, max_rows: int | None, memory: str
) -> Result:
    lake = Lake.open(lake_path, create=False)
    con = _locked(lake, memory)
    with _errors_in_our_words(lake, memory), _killed_after(seconds):
        answer = con.execute(sql, parameters)
        rows = answer.fetchall() if max_rows is None else answer.fetchmany(max_rows + 1)
    columns = [(name, str(kind)) for name, kind, *_ in answer.description or []]
    return Result(
        columns=[name for name, _ in columns],
        types=[kind for _, kind in columns],
        rows=rows[:max_rows],
        truncated=max_rows is not None and len(rows) > max_rows,
    )


@contextmanager
def _killed_after(seconds: float) -> Iterator[None]:
    """SIGALRM without a handler ends the process, whatever its threads do."""
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)


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


@contextmanager
def _errors_in_our_words(lake: Lake, memory: str) -> Iterator[None]:
    try:
        yield
    except (duckdb.OutOfMemoryException, MemoryError) as error:
        raise QueryError(f"the query needs more memory than {memory}; narrow it, for example by date") from error
    except duckdb.PermissionException as error:
        raise QueryError(f"a query reads the lake's tables and no other file: {words(error)}") from error
    except duckdb.CatalogException as error:
        raise QueryError(_unknown_table(str(error), lake) or words(error)) from error
    except duckdb.Error as error:
        raise QueryError(words(error)) from error


def _unknown_table(message: str, lake: Lake) -> str | None:
    found = re.search(r"Table with name (.+?) does not exist", message)
    if found is None:
        return None
    names = [table.name for table in lake.tables()]
    close = difflib.get_close_matches(found[1], names, n=1)
    meant = f" Did you mean {close[0]}?" if close else ""
    return f"there is no table {found[1]}.{meant} The tables are {', '.join(names)} (docs/tables.md)"


if __name__ == "__main__":
    main()
