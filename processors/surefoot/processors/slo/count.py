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
import pyarrow as pa

from surefoot.processors.errors import QueryError
from surefoot.processors.lake import console
from surefoot.processors.slo import near
from surefoot.processors.slo.cube import (
    CLASSES,
    CUBE,
    SCHEMA,
    cube_schema,
    cube_text,
    dimensions_of_all,
    shares,
    within,
)
from surefoot.processors.slo.definition import Slo
from surefoot.processors.slo.near import Narrow
from surefoot.processors.slo.source import Parameters, Source, class_of, holds, stratum_key

_EPOCH: Final = date(1970, 1, 1)
# Days that one scan covers at most, which bounds its memory.
_SCAN_DAYS: Final = 7


def views_of(slo: Slo) -> tuple[str, ...]:
    """The views that its events are counted in."""
    return Source.of(slo).views


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
    return _counted(con, slos, [(*scan, ()) for scan in _scans(dates)], bucket, lookback_days)


def count_hours(
    con: duckdb.DuckDBPyConnection,
    slos: Sequence[Slo],
    hours: Iterable[int],
    bucket: int,
    lookback_days: int,
    narrow: Narrow | None = None,
) -> dict[str, pa.Table]:
    """As :func:`count_many`, of the events that ended in these hours since 1970: a minute of data costs its hour.

    ``narrow`` knows which files need not be read. Not for indicators whose event is made of several runs: a run of
    this hour can change an event of another one.
    """
    of_date: dict[date, list[int]] = defaultdict(list)
    for hour in sorted(set(hours)):
        of_date[_EPOCH + timedelta(hours=hour)].append(hour)
    scans = []
    for first, last in _scans(of_date):
        days = [first + timedelta(days=day) for day in range((last - first).days + 1)]
        scans.append((first, last, [hour for day in days for hour in of_date[day]]))
    return _counted(con, slos, scans, bucket, lookback_days, narrow)


def count_custom(
    con: duckdb.DuckDBPyConnection, lake_path: Path, slo: Slo, dates: Iterable[date], bucket: int, lookback_days: int
) -> pa.Table:
    """As :func:`count_many`, of an SLO whose query stands beside its file. ``con`` does the sums.

    Raises QueryError, with what to change, if the query fails, takes too long, or gives a class that there is not.
    """
    parts = [SCHEMA.empty_table()]
    for first, last in _scans(dates):
        text, values = cube_text([slo], first, last, bucket, lookback_days)
        answer = console.query(lake_path, text, parameters=values)
        kinds = {str(row[answer.columns.index(name)]) for row in answer.rows for name in ("class", "fast_class")}
        if not kinds <= set(CLASSES):
            wrong = min(kinds - set(CLASSES))
            raise QueryError(f"the query of {slo.name} gives the class {wrong!r}; classes are {', '.join(CLASSES)}")
        schema = cube_schema(answer.columns)
        rows = pa.Table.from_pylist([dict(zip(answer.columns, row, strict=True)) for row in answer.rows], schema)
        con.register(CUBE, rows)
        parts.append(shares(con, [slo])[slo.name])
        con.unregister(CUBE)
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
    places = {name: source.column(name, f"d{at}", values) for at, name in enumerate(dimensions_of_all([slo]))}
    # S608: only columns of the whitelist and numbered parameters are put together.
    text = f"""
        SELECT event_id, trace_id, ended_at, {stratum_key(slo, places, values, "by")} AS stratum_key, weight,
          {class_of(slo, places, values, "selected")} AS class, fast_class, labelled_at, label_imported
        FROM ({source.relation})
        WHERE {holds(slo.where, places, values, "where")}
    """  # noqa: S608
    return text, values


def _counted(
    con: duckdb.DuckDBPyConnection,
    slos: Sequence[Slo],
    scans: Sequence[tuple[date, date, Sequence[int]]],
    bucket: int,
    lookback_days: int,
    narrow: Narrow | None = None,
) -> dict[str, pa.Table]:
    """By the SLO's name: what the scans (first date, last one, hours or none for all) of its source find."""
    parts: dict[str, list[pa.Table]] = {slo.name: [SCHEMA.empty_table()] for slo in slos}
    sources = _sharing(slos)
    for first, last, hours in scans:
        held = 0 < len(hours) <= near.MOST_HOURS
        if held:
            each = [Source.of(sharing[0]) for sharing in sources]
            near.hold(con, each, first, last, within(hours), lookback_days, narrow)
        for sharing in sources:
            text, values = cube_text(sharing, first, last, bucket, lookback_days, hours, held)
            con.execute(f"CREATE OR REPLACE TEMP TABLE {CUBE} AS {text}", values)
            for name, found in shares(con, sharing).items():
                parts[name].append(found)
            con.execute(f"DROP TABLE {CUBE}")
    return {name: pa.concat_tables(found) for name, found in parts.items()}


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
