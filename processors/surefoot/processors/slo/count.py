"""Events to counts: one query per SLO and stretch of dates, over the indicator's text.

Rule: no text from an SLO file becomes SQL. Columns come from the indicator's list, everything else is a parameter; the
indicator's own text stays as it is, and ``where`` and ``by`` wrap around it.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date, timedelta
from typing import Any, Final
from urllib.parse import unquote

import duckdb
import pyarrow as pa

from surefoot.processors.slo.definition import Slo
from surefoot.processors.slo.indicator import STRATUM

CLASSES: Final = ("good", "bad", "unlabelled", "excluded")
_COUNTS: Final = ", ".join(f"count(*) FILTER (WHERE class = '{name}') AS {name}" for name in CLASSES)

# What a stratum key uses itself is escaped in values, so that two strata never share a key.
_ESCAPED: Final = "replace(replace(replace(coalesce({value}, ''), '%', '%25'), ',', '%2C'), '=', '%3D')"


def count_events(
    con: duckdb.DuckDBPyConnection, slo: Slo, dates: Iterable[date], bucket: int, lookback_days: int
) -> pa.Table:
    """Events that ended on these dates, counted per bucket and stratum.

    Columns: ``start`` (unix seconds of the bucket of ``bucket`` seconds), ``stratum_key`` ("" without ``by``), and a
    count per class. Verdicts count from ``lookback_days`` before the first date on: a run that is longer than that was
    not derived either.
    """
    parts = [_count(con, slo, first, last, bucket, lookback_days) for first, last in stretches(dates)]
    return pa.concat_tables(parts or [_SCHEMA.empty_table()])


_SCHEMA: Final = pa.schema(
    [("start", pa.int64()), ("stratum_key", pa.string()), *((name, pa.int64()) for name in CLASSES)]
)


def stretches(dates: Iterable[date]) -> list[tuple[date, date]]:
    """The dates as pairs of first and last of each run of consecutive ones."""
    found: list[tuple[date, date]] = []
    for day in sorted(set(dates)):
        if found and day - found[-1][1] == timedelta(days=1):
            found[-1] = (found[-1][0], day)
        else:
            found.append((day, day))
    return found


def dimensions_of(stratum_key: str) -> dict[str, str]:
    """The dimensions and values that a stratum key was made from."""
    pairs = (part.partition("=") for part in stratum_key.split(",")) if stratum_key else ()
    return {name: unquote(value) for name, _, value in pairs}


def events(slo: Slo, first: date, last: date, lookback_days: int) -> tuple[str, dict[str, Any]]:
    """SQL, and its parameters, of one row per event that ended on these dates.

    Columns: ``trace_id``, ``ended_at``, ``stratum_key``, ``class``. ``lookback_days`` as in :func:`count_events`.
    """
    offered: dict[str, Any] = {
        "from_date": first,
        "to_date": last,
        "verdicts_from": first - timedelta(days=lookback_days),
        "threshold_ns": slo.threshold_ns,
    }
    values: dict[str, Any] = {name: offered[name] for name in slo.source.parameters}
    conditions = [_condition(slo, position, values) for position in range(len(slo.where))]
    # S608: only columns of the whitelist and numbered parameters are put together.
    text = f"""
        SELECT trace_id, ended_at, {_stratum_key(slo, values)} AS stratum_key, class
        FROM ({slo.source.sql}) AS events
        WHERE {" AND ".join(["true", *conditions])}
    """  # noqa: S608
    return text, values


def _count(
    con: duckdb.DuckDBPyConnection, slo: Slo, first: date, last: date, bucket: int, lookback_days: int
) -> pa.Table:
    text, values = events(slo, first, last, lookback_days)
    query = f"""
        SELECT second - (second % 86400) % $bucket AS start, stratum_key, {_COUNTS}
        FROM (SELECT epoch_us(ended_at) // 1000000 AS second, stratum_key, class FROM ({text}))
        GROUP BY start, stratum_key
    """  # noqa: S608 - see above
    return con.sql(query, params=values | {"bucket": bucket}).to_arrow_table().cast(_SCHEMA)


def _column(slo: Slo, dimension: str, parameter: str, values: dict[str, Any]) -> str:
    """SQL for the value of a dimension; ``parameter`` is the name that a stratum's own name gets."""
    if dimension in slo.source.columns:
        return dimension
    values[parameter] = dimension.removeprefix(STRATUM)
    return f"strata[${parameter}]"


def _condition(slo: Slo, position: int, values: dict[str, Any]) -> str:
    dimension, allowed = slo.where[position]
    names = [f"where_{position}_{index}" for index in range(len(allowed))]
    values.update(zip(names, allowed, strict=True))
    column = _column(slo, dimension, f"where_{position}", values)
    return f"{column} IN ({', '.join(f'${name}' for name in names)})"


def _stratum_key(slo: Slo, values: dict[str, Any]) -> str:
    parts = ["''"]
    for position, dimension in enumerate(slo.by):
        values[f"by_{position}_prefix"] = f"{',' if position else ''}{dimension}="
        column = _column(slo, dimension, f"by_{position}", values)
        parts += [f"$by_{position}_prefix", _ESCAPED.format(value=column)]
    return " || ".join(parts)
