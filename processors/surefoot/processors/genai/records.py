"""Rows of derived tables as dicts, for the few that are handled one by one: verdicts, and what is out of reach.

Times are integers in them, microseconds for timestamps and days since 1970 for dates.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from surefoot.processors.lake.schema import TABLES

Row = dict[str, Any]


def to_table(name: str, rows: list[Row]) -> pa.Table:
    """Rows as Arrow with the schema of the table ``name``; absent keys are null."""
    schema = TABLES[name]
    return pa.table([_column([row.get(field.name) for row in rows], field.type) for field in schema], schema=schema)


def from_table(rows: pa.Table) -> list[Row]:
    """The inverse of :func:`to_table`, for any columns of a table."""
    columns = {name: _integers(column) for name, column in zip(rows.column_names, rows.columns, strict=True)}
    found: list[Row] = pa.table(columns).to_pylist()
    return found


def _integers(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if pa.types.is_timestamp(column.type):
        return column.cast(pa.timestamp("us", "UTC")).cast(pa.int64())
    return column.cast(pa.int32()) if pa.types.is_date(column.type) else column


def _column(values: list[Any], kind: pa.DataType) -> pa.Array:
    if pa.types.is_map(kind):
        values = [None if value is None else list(dict(value).items()) for value in values]
    return pa.array(values, kind)
