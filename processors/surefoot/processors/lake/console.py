"""One SELECT over the lake's tables, safe to take from anyone who may read them.

Rules: the statement is parsed by DuckDB's own parser and must be exactly one SELECT, which is what keeps it from
writing: neither ``allowed_directories`` nor ``allowed_paths`` does (a COPY could still overwrite a data file or the
Delta log). It then runs in a process of its own (``answering.py``), which ends at the time limit whatever DuckDB is
doing. Starting that process costs 0.6 to 1 s of processor time (n = 1, busy machine).
"""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb

from surefoot.errors import SurefootError
from surefoot.processors.errors import LakeError, LakeFormatError, LakeNotFoundError, QueryError
from surefoot.processors.lake import values

_ERRORS: dict[str, type[SurefootError]] = {
    kind.__name__: kind for kind in (QueryError, LakeNotFoundError, LakeFormatError, LakeError)
}


@dataclass(frozen=True, slots=True)
class Result:
    """Rows as Python values, in the order of ``columns``; ``types`` are DuckDB's names of their types."""

    columns: list[str]
    types: list[str]
    rows: list[tuple[Any, ...]]
    truncated: bool = False  # there were more than ``max_rows``


def query(
    lake_path: Path,
    sql: str,
    *,
    parameters: Mapping[str, Any] | None = None,
    seconds: float = 60.0,
    max_rows: int | None = None,
    memory: str = "1GB",
) -> Result:
    """Answer ``sql``, with values for its ``$name`` parameters, from the lake in ``lake_path`` as it is now.

    Raises QueryError for anything that is not one SELECT over the lake's tables, or that takes longer than ``seconds``
    or more than ``memory``; LakeNotFoundError when there is no lake.
    """
    check(sql)
    asked = {
        "lake": str(lake_path.absolute()),
        "sql": sql,
        "parameters": dict(parameters or {}),
        "seconds": seconds,
        "max_rows": max_rows,
        "memory": memory,
    }
    child = subprocess.run(
        [sys.executable, "-P", "-m", "surefoot.processors.lake.answering"],
        input=values.dumps(asked),
        capture_output=True,
        check=False,
    )
    if child.returncode == -signal.SIGALRM:
        raise QueryError(f"the query was stopped after {seconds:g} s; narrow it, for example by date")
    if child.returncode != 0:
        said = child.stderr.decode(errors="replace").strip().splitlines()[-1:]
        raise QueryError(
            f"the query's process ended with {child.returncode}, which a lack of memory does; narrow it, for example "
            f"by date. {''.join(said)}".strip()
        )
    told = values.loads(child.stdout)
    if "error" in told:
        raise _ERRORS.get(told["error"], LakeError)(told["message"])
    return Result(**told)


def check(sql: str) -> None:
    """Raises QueryError for anything that is not exactly one SELECT."""
    try:
        with duckdb.connect() as con:
            statements = con.extract_statements(sql)
    except duckdb.Error as error:
        raise QueryError(f"the query cannot be parsed: {words(error)}") from error
    kinds = [statement.type.name for statement in statements]
    if kinds != ["SELECT"]:
        raise QueryError(
            f"the query must be one SELECT statement; this is {' and '.join(kinds) if kinds else 'none'}. "
            "To change or export data, read the tables with your own DuckDB"
        )


def words(error: duckdb.Error) -> str:
    """DuckDB's own message, with its candidates and the line it points at."""
    return str(error).strip()
