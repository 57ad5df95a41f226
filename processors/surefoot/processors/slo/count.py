"""Events to counts: one scan per indicator and stretch of dates, for all the SLOs that share it.

Rule: no text from an SLO file becomes SQL. Columns come from the indicator's list, everything else is a parameter; the
indicator's own text stays as it is, and ``where``, ``selected`` and ``by`` wrap around it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import date, timedelta
from typing import Any, Final
from urllib.parse import unquote

import duckdb
import pyarrow as pa

from surefoot.processors.slo.definition import FAST, MATURED, Slo
from surefoot.processors.slo.indicator import AT_ONCE, STRATUM

CLASSES: Final = ("good", "bad", "unlabelled", "excluded")
WEIGHED: Final = ("good", "bad", "unlabelled")

# An event counts as 1 if its weight is not a number above 0 or says that it stands for more than a million.
MAX_WEIGHT: Final = 1_000_000
MICRO: Final = 1_000_000

SCHEMA: Final = pa.schema(
    [
        ("start", pa.int64()),
        ("view", pa.string()),
        ("stratum_key", pa.string()),
        *((name, pa.int64()) for name in CLASSES),
        *((f"{name}_micros", pa.int64()) for name in WEIGHED),
        ("weight_squares", pa.float64()),
    ]
)

# What a stratum key uses itself is escaped in values, so that two strata never share a key.
_ESCAPED: Final = "replace(replace(replace(coalesce({value}, ''), '%', '%25'), ',', '%2C'), '=', '%3D')"
_WEIGHT: Final = f"CASE WHEN weight > 0 AND weight <= {MAX_WEIGHT} THEN weight ELSE 1.0 END"
_CUBE: Final = "slo_cube"
# Columns of an indicator's text that it has only if its labels come late, and what stands for them else.
_OF_LATE_LABELS: Final = {
    "fast_class": "class",
    "labelled_at": "CAST(NULL AS TIMESTAMPTZ)",
    "label_imported": "false",
}


def views_of(slo: Slo) -> tuple[str, ...]:
    """The views that its events are counted in."""
    return (FAST,) if slo.source.labels == AT_ONCE else (FAST, MATURED)


def count_events(
    con: duckdb.DuckDBPyConnection, slo: Slo, dates: Iterable[date], bucket: int, lookback_days: int
) -> pa.Table:
    """:func:`count_many` of one SLO."""
    return count_many(con, [slo], dates, bucket, lookback_days)[slo.name]


def count_many(
    con: duckdb.DuckDBPyConnection, slos: Sequence[Slo], dates: Iterable[date], bucket: int, lookback_days: int
) -> dict[str, pa.Table]:
    """Events that ended on these dates, counted per bucket, view and stratum; by the SLO's name, as ``SCHEMA``.

    ``start`` is unix seconds of the bucket of ``bucket`` seconds, ``stratum_key`` is "" without ``by``. Counts are of
    events; ``*_micros`` are sums of their weights in millionths, integers so that no sum drifts; ``weight_squares`` is
    of the good and bad ones. Verdicts count from ``lookback_days`` before the first date of a stretch on: a run that is
    longer than that was not derived either.
    """
    parts: dict[str, list[pa.Table]] = {slo.name: [] for slo in slos}
    chosen = stretches(dates)
    for sharing in _sharing(slos):
        for first, last in chosen:
            _scan(con, sharing, first, last, bucket, lookback_days)
            for slo in sharing:
                parts[slo.name] += [_of_cube(con, slo, view, _dimensions(sharing)) for view in views_of(slo)]
            con.execute(f"DROP TABLE {_CUBE}")
    return {name: pa.concat_tables(found or [SCHEMA.empty_table()]) for name, found in parts.items()}


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

    Columns: ``event_id``, ``trace_id``, ``ended_at``, ``stratum_key``, ``weight``, ``class`` (excluded if the event was
    not selected for grading), ``fast_class`` (the same as ``class`` if labels come at once), ``labelled_at`` (when the
    first verdict that is pass or fail was received), ``label_imported`` (that verdict, or the run, came by an import,
    so the time between them says nothing). ``lookback_days`` as in :func:`count_many`.
    """
    values = _parameters(slo, first, last, lookback_days)
    places = {dimension: _named(slo, dimension, f"d{at}", values) for at, dimension in enumerate(_dimensions([slo]))}
    late = ", ".join(f"{found} AS {name}" for name, found in _late(slo).items())
    # S608: only columns of the whitelist and numbered parameters are put together.
    text = f"""
        SELECT event_id, trace_id, ended_at, {_stratum_key(slo, places, values)} AS stratum_key, {_WEIGHT} AS weight,
          {_class(slo, places, values)} AS class, {late}
        FROM ({slo.source.sql}) AS events
        WHERE {_all_of(slo.where, places, values, "where")}
    """  # noqa: S608
    return text, values


def _sharing(slos: Sequence[Slo]) -> list[list[Slo]]:
    """The SLOs whose events come from one text with one set of parameters, together."""
    groups: dict[tuple[object, ...], list[Slo]] = defaultdict(list)
    for slo in slos:
        groups[slo.source.name, slo.threshold_ns, slo.threshold].append(slo)
    return list(groups.values())


def _dimensions(slos: Sequence[Slo]) -> list[str]:
    """What the SLOs choose and divide by."""
    named = [[name for name, _ in (*slo.where, *slo.selected)] + [*slo.by] for slo in slos]
    return sorted({name for names in named for name in names})


def _scan(
    con: duckdb.DuckDBPyConnection, slos: Sequence[Slo], first: date, last: date, bucket: int, lookback_days: int
) -> None:
    """Make the cube: events by bucket, dimensions and classes."""
    values = _parameters(slos[0], first, last, lookback_days) | {"bucket": bucket}
    dimensions = _dimensions(slos)
    columns = [f"{_named(slos[0], dimension, f'd{at}', values)} AS d{at}" for at, dimension in enumerate(dimensions)]
    places = {dimension: f"d{at}" for at, dimension in enumerate(dimensions)}
    wanted = [_all_of(slo.where, places, values, f"w{number}") for number, slo in enumerate(slos)]
    text = f"""
        CREATE OR REPLACE TEMP TABLE {_CUBE} AS
        SELECT second - (second % 86400) % $bucket AS start, {", ".join([*places.values(), "class", "fast_class"])},
          count(*) AS events, sum(CAST(round(weight * {MICRO}) AS BIGINT)) AS micros, sum(weight * weight) AS squares
        FROM (
          SELECT epoch_us(ended_at) // 1000000 AS second, {_WEIGHT} AS weight, class,
            {", ".join([f"{_late(slos[0])['fast_class']} AS fast_class", *columns])}
          FROM ({slos[0].source.sql}) AS events
        )
        WHERE {" OR ".join(f"({each})" for each in dict.fromkeys(wanted))}
        GROUP BY ALL
    """  # noqa: S608 - see above
    con.execute(text, values)


def _of_cube(con: duckdb.DuckDBPyConnection, slo: Slo, view: str, dimensions: Sequence[str]) -> pa.Table:
    values: dict[str, Any] = {}
    places = {dimension: f"d{at}" for at, dimension in enumerate(dimensions)}
    kind = "fast_class" if view == FAST else _class(slo, places, values)
    counts = [f"coalesce(sum(events) FILTER (kind = '{name}'), 0) AS {name}" for name in CLASSES]
    micros = [f"coalesce(sum(micros) FILTER (kind = '{name}'), 0) AS {name}_micros" for name in WEIGHED]
    text = f"""
        SELECT start, '{view}' AS view, stratum_key, {", ".join([*counts, *micros])},
          coalesce(sum(squares) FILTER (kind IN ('good', 'bad')), 0.0) AS weight_squares
        FROM (
          SELECT start, {_stratum_key(slo, places, values)} AS stratum_key, {kind} AS kind, events, micros, squares
          FROM {_CUBE}
          WHERE {_all_of(slo.where, places, values, "where")}
        )
        GROUP BY start, stratum_key
    """  # noqa: S608 - see above
    return con.sql(text, params=values).to_arrow_table().cast(SCHEMA)


def _parameters(slo: Slo, first: date, last: date, lookback_days: int) -> dict[str, Any]:
    """What the indicator's text asks for."""
    offered: dict[str, Any] = {
        "from_date": first,
        "to_date": last,
        "verdicts_from": first - timedelta(days=lookback_days),
        "threshold_ns": slo.threshold_ns,
        "threshold": slo.threshold,
    }
    return {name: offered[name] for name in slo.source.parameters}


def _late(slo: Slo) -> dict[str, str]:
    return {name: name if slo.source.labels != AT_ONCE else else_ for name, else_ in _OF_LATE_LABELS.items()}


def _class(slo: Slo, places: dict[str, str], values: dict[str, Any]) -> str:
    """SQL for the class in the matured view, where a verdict on what nobody meant to grade (a complaint) would bias."""
    if not slo.selected or MATURED not in views_of(slo):
        return "class"
    return f"CASE WHEN {_all_of(slo.selected, places, values, 'selected')} THEN class ELSE 'excluded' END"


def _named(slo: Slo, dimension: str, parameter: str, values: dict[str, Any]) -> str:
    """SQL for the value of a dimension; ``parameter`` is the name that a stratum's own name gets."""
    if dimension in slo.source.columns:
        return dimension
    values[parameter] = dimension.removeprefix(STRATUM)
    return f"strata[${parameter}]"


def _all_of(
    conditions: Iterable[tuple[str, tuple[str, ...]]], places: dict[str, str], values: dict[str, Any], prefix: str
) -> str:
    """SQL that is true where each dimension has one of its values; ``places`` say where a dimension's value is."""
    parts = []
    for position, (dimension, allowed) in enumerate(conditions):
        names = [f"{prefix}_{position}_{index}" for index in range(len(allowed))]
        values.update(zip(names, allowed, strict=True))
        parts.append(f"{places[dimension]} IN ({', '.join(f'${name}' for name in names)})")
    return " AND ".join(parts) or "true"


def _stratum_key(slo: Slo, places: dict[str, str], values: dict[str, Any]) -> str:
    parts = ["''"]
    for position, dimension in enumerate(slo.by):
        values[f"by_{position}_prefix"] = f"{',' if position else ''}{dimension}="
        parts += [f"$by_{position}_prefix", _ESCAPED.format(value=places[dimension])]
    return " || ".join(parts)
