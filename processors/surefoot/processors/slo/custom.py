"""One's own indicator: a SELECT beside the SLO file, checked when it is read and run where it can only read.

Rule: the text is the only part of an SLO file that is run as SQL, so it goes the way of ``surefoot sql``: DuckDB's own
parser must find exactly one SELECT in it, and it runs in the console's process, which sees the lake's tables and no
other file and ends after its time. The engine's own connection never sees it.
"""

from __future__ import annotations

import re
from datetime import date
from functools import lru_cache
from typing import Final

import duckdb

from surefoot.processors.errors import QueryError
from surefoot.processors.lake import console
from surefoot.processors.lake.schema import TABLES
from surefoot.processors.slo.indicator import parameters_of

PARAMETERS: Final = ("from_date", "to_date", "verdicts_from")
REQUIRED: Final = ("ended_at", "class")


@lru_cache(maxsize=64)
def columns_of(text: str) -> tuple[str, ...]:
    """The columns that the query gives.

    Raises QueryError if it is not one SELECT over the lake's tables with the columns ``ended_at`` (a timestamp) and
    ``class`` (text), or names a parameter that is not one of ``PARAMETERS``. Nothing is run to find that out.
    """
    console.check(text)
    unknown = sorted(parameters_of(text) - {*PARAMETERS})
    if unknown:
        raise QueryError(
            f"the query asks for ${unknown[0]}, which nobody gives; there are "
            f"{', '.join(f'${name}' for name in PARAMETERS)}, of type date"
        )
    found = dict(_described(text))
    missing = [name for name in REQUIRED if name not in found]
    if missing:
        raise QueryError(
            f"the query has no column {missing[0]}; it needs ended_at and class, and has {', '.join(found)}"
        )
    if not found["ended_at"].startswith("TIMESTAMP"):
        raise QueryError(f"ended_at is {found['ended_at']}, and must be a timestamp")
    for name in ("class", "fast_class"):
        if found.get(name, "VARCHAR") != "VARCHAR":
            raise QueryError(f"{name} is {found[name]}, and must be text: good, bad, unlabelled or excluded")
    return tuple(found)


def embedded(text: str) -> str:
    """The query so that it can stand between parentheses: without a semicolon, and no comment hides the one behind."""
    return re.sub(r";\s*(?:--[^\n]*\s*|;\s*)*\Z", "", text) + "\n"


def _described(text: str) -> list[tuple[str, str]]:
    """Names and types of the query's columns, over empty tables."""
    with duckdb.connect(config={"python_enable_replacements": False, "autoload_known_extensions": False}) as con:
        for name, schema in TABLES.items():
            con.register("blank", schema.empty_table())
            con.execute(f"CREATE TABLE {name} AS FROM blank")  # the lake's own names
            con.unregister("blank")
        con.execute("SET enable_external_access = false")
        con.execute("SET lock_configuration = true")
        values = {name: date(2026, 1, 1) for name in parameters_of(text)}
        try:
            rows = con.execute(f"DESCRIBE FROM ({embedded(text)})", values).fetchall()
        except duckdb.Error as error:
            raise QueryError(f"the query cannot be answered: {console.words(error)}") from error
    return [(name, kind) for name, kind, *_ in rows]
