"""Events to counts: one scan per indicator and stretch of dates, for all the SLOs that share it.

Rule: no text from an SLO file becomes SQL in the engine's connection. Columns come from the indicator's list,
everything else is a parameter; the indicator's own text stays as it is, and ``where``, ``selected`` and ``by`` wrap
around it. A query of one's own runs in the console's process (:func:`count_custom`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import date, timedelta
from pathlib import Path
from typing import Final
from urllib.parse import unquote

import duckdb
import numpy as np
import pyarrow as pa

from surefoot.processors.errors import QueryError
from surefoot.processors.lake import console
from surefoot.processors.slo.definition import FAST, MATURED, Slo
from surefoot.processors.slo.source import Parameters, Source, class_of, holds, stratum_key

CLASSES: Final = ("good", "bad", "unlabelled", "excluded")
WEIGHED: Final = ("good", "bad", "unlabelled")
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

# Events by bucket, dimensions d0, d1 ... and classes: what all SLOs of a source sum from.
_CUBE: Final = "slo_cube"
# Days that one scan covers at most, which bounds its memory.
_SCAN_DAYS: Final = 7


def views_of(slo: Slo) -> tuple[str, ...]:
    """The views that its events are counted in."""
    return (FAST, MATURED) if Source.of(slo).is_late else (FAST,)


def touched(slo: Slo, dates: Iterable[date], lookback_days: int) -> set[date]:
    """The dates whose counts can be others when runs or verdicts of ``dates`` are.

    An event made of several runs stands on the date of the last one, up to ``lookback_days`` after or, before that one
    came, before the run that changed.
    """
    reach = lookback_days if slo.source.repeated else 0
    return {day + timedelta(days=offset) for day in dates for offset in range(-reach, reach + 1)}


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
    longer than that was not derived either. SLOs of the indicator ``sql`` are for :func:`count_custom`.
    """
    parts: dict[str, list[pa.Table]] = {slo.name: [SCHEMA.empty_table()] for slo in slos}
    chosen = list(_scans(dates))
    for sharing in _sharing(slos):
        for first, last in chosen:
            text, values = _cube(sharing, first, last, bucket, lookback_days)
            con.execute(f"CREATE OR REPLACE TEMP TABLE {_CUBE} AS {text}", values)
            for name, found in _of_cube(con, sharing).items():
                parts[name].append(found)
            con.execute(f"DROP TABLE {_CUBE}")
    return {name: pa.concat_tables(found) for name, found in parts.items()}


def count_custom(
    con: duckdb.DuckDBPyConnection, lake_path: Path, slo: Slo, dates: Iterable[date], bucket: int, lookback_days: int
) -> pa.Table:
    """As :func:`count_many`, of an SLO whose query stands beside its file. ``con`` does the sums.

    Raises QueryError, with what to change, if the query fails, takes too long, or gives a class that there is not.
    """
    parts = [SCHEMA.empty_table()]
    for first, last in _scans(dates):
        text, values = _cube([slo], first, last, bucket, lookback_days)
        answer = console.query(lake_path, text, parameters=values)
        kinds = {str(row[answer.columns.index(name)]) for row in answer.rows for name in ("class", "fast_class")}
        if not kinds <= set(CLASSES):
            wrong = min(kinds - set(CLASSES))
            raise QueryError(f"the query of {slo.name} gives the class {wrong!r}; classes are {', '.join(CLASSES)}")
        schema = _cube_schema(answer.columns)
        rows = pa.Table.from_pylist([dict(zip(answer.columns, row, strict=True)) for row in answer.rows], schema)
        con.register(_CUBE, rows)
        parts.append(_of_cube(con, [slo])[slo.name])
        con.unregister(_CUBE)
    return pa.concat_tables(parts)


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


def events(slo: Slo, first: date, last: date, lookback_days: int) -> tuple[str, Parameters]:
    """SQL, and its parameters, of one row per event that ended on these dates.

    Columns: ``event_id``, ``trace_id``, ``ended_at``, ``stratum_key``, ``weight``, ``class`` (excluded if the event was
    not selected for grading), ``fast_class`` (the same as ``class`` if labels come at once), ``labelled_at`` (when the
    first verdict that is pass or fail was received; null of a bad event: it was known without one), ``label_imported``
    (that verdict, or the run, came by an import, so the time between them says nothing). ``lookback_days`` as in
    :func:`count_many`. The text of an SLO of the indicator ``sql`` is for the console.
    """
    source = Source.of(slo)
    values = source.parameters(first, last, lookback_days)
    places = {name: source.column(name, f"d{at}", values) for at, name in enumerate(_dimensions([slo]))}
    # S608: only columns of the whitelist and numbered parameters are put together.
    text = f"""
        SELECT event_id, trace_id, ended_at, {stratum_key(slo, places, values, "by")} AS stratum_key, weight,
          {class_of(slo, places, values, "selected")} AS class, fast_class, labelled_at, label_imported
        FROM ({source.relation})
        WHERE {holds(slo.where, places, values, "where")}
    """  # noqa: S608
    return text, values


def _sharing(slos: Sequence[Slo]) -> list[list[Slo]]:
    """The SLOs whose events come from one text with one set of parameters, together."""
    groups: dict[Source, list[Slo]] = defaultdict(list)
    for slo in slos:
        groups[Source.of(slo)].append(slo)
    return list(groups.values())


def _scans(dates: Iterable[date]) -> Iterator[tuple[date, date]]:
    """The stretches in pieces that one scan covers."""
    for first, last in stretches(dates):
        for begin in range(0, (last - first).days + 1, _SCAN_DAYS):
            yield first + timedelta(days=begin), min(last, first + timedelta(days=begin + _SCAN_DAYS - 1))


def _dimensions(slos: Sequence[Slo]) -> list[str]:
    """What the SLOs choose and divide by."""
    named = [[name for name, _ in (*slo.where, *slo.selected)] + [*slo.by] for slo in slos]
    return sorted({name for names in named for name in names})


def _cube(slos: Sequence[Slo], first: date, last: date, bucket: int, lookback_days: int) -> tuple[str, Parameters]:
    """SQL, and its parameters, of the cube of SLOs that share a source."""
    source = Source.of(slos[0])
    values = source.parameters(first, last, lookback_days) | {"bucket": bucket}
    dimensions = _dimensions(slos)
    columns = [f"{source.column(name, f'd{at}', values)} AS d{at}" for at, name in enumerate(dimensions)]
    places = {name: f"d{at}" for at, name in enumerate(dimensions)}
    wanted = dict.fromkeys(holds(slo.where, places, values, f"w{number}") for number, slo in enumerate(slos))
    text = f"""
        SELECT second - (second % 86400) % $bucket AS start, {", ".join([*places.values(), "class", "fast_class"])},
          count(*) AS events, CAST(sum(CAST(round(weight * {MICRO}) AS BIGINT)) AS BIGINT) AS micros,
          sum(weight * weight) AS squares
        FROM (
          SELECT {", ".join(["epoch_us(ended_at) // 1000000 AS second", "weight", "class", "fast_class", *columns])}
          FROM ({source.relation})
        )
        WHERE {" OR ".join(f"({each})" for each in wanted)}
        GROUP BY ALL
    """  # noqa: S608 - see above
    return text, values


def _cube_schema(columns: Iterable[str]) -> pa.Schema:
    kinds = {"start": pa.int64(), "events": pa.int64(), "micros": pa.int64(), "squares": pa.float64()}
    return pa.schema([(name, kinds.get(name, pa.string())) for name in columns])


def _of_cube(con: duckdb.DuckDBPyConnection, slos: Sequence[Slo]) -> dict[str, pa.Table]:
    """The counts of each SLO, by name. One query for all: planning one for each of a hundred took most of the time."""
    dimensions = _dimensions(slos)
    values: Parameters = {}
    parts = [_part(number, slo, view, dimensions, values) for number, slo in enumerate(slos) for view in views_of(slo)]
    same = [f"{_CUBE}.{name} IS NOT DISTINCT FROM parts.{name}" for name in _combination(dimensions)]
    counts = [f"coalesce(sum(events) FILTER (kind = '{name}'), 0) AS {name}" for name in CLASSES]
    micros = [f"coalesce(sum(micros) FILTER (kind = '{name}'), 0) AS {name}_micros" for name in WEIGHED]
    text = f"""
        WITH combinations AS (SELECT DISTINCT {", ".join(_combination(dimensions))} FROM {_CUBE}),
        parts AS ({" UNION ALL ".join(parts)})
        SELECT number, start, view, stratum_key, {", ".join([*counts, *micros])},
          coalesce(sum(squares) FILTER (kind IN ('good', 'bad')), 0.0) AS weight_squares
        FROM {_CUBE} INNER JOIN parts ON {" AND ".join(same)}
        GROUP BY number, start, view, stratum_key
        ORDER BY number
    """  # noqa: S608 - see above
    found = con.sql(text, params=values).to_arrow_table()
    numbers = found["number"].to_numpy()
    cuts = np.searchsorted(numbers, np.arange(len(slos) + 1))
    rows = found.drop_columns(["number"]).cast(SCHEMA)
    return {slo.name: rows.slice(cuts[at], cuts[at + 1] - cuts[at]) for at, slo in enumerate(slos)}


def _combination(dimensions: Sequence[str]) -> list[str]:
    return [*(f"d{at}" for at in range(len(dimensions))), "class", "fast_class"]


def _part(number: int, slo: Slo, view: str, dimensions: Sequence[str], values: Parameters) -> str:
    """SQL of the combinations that an SLO counts in a view, each with its stratum and what it counts as."""
    places = {name: f"d{at}" for at, name in enumerate(dimensions)}
    late = MATURED in views_of(slo)
    kind = "fast_class" if late and view == FAST else class_of(slo, places, values, f"selected{number}")
    return f"""
        SELECT {number} AS number, '{view}' AS view, {stratum_key(slo, places, values, f"by{number}")} AS stratum_key,
          {kind} AS kind, {", ".join(_combination(dimensions))}
        FROM combinations
        WHERE {holds(slo.where, places, values, f"where{number}")}
    """  # noqa: S608 - see above
