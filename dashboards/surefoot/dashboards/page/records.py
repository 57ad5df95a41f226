"""What the pages read from the lake: the latest runs, the burn rate of the last day, the latest bad events.

Rule: a connection lives as long as one page is made, and a lake that cannot be read is a sentence on the page and not
an error, because the SLOs' state does not depend on it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from typing import Any, Final

import duckdb
import numpy as np

from surefoot.errors import SurefootError
from surefoot.processors.lake import Lake
from surefoot.processors.settings import Settings
from surefoot.processors.slo import Slo, error_budget
from surefoot.processors.slo.count import events
from surefoot.processors.slo.judge import burn_of
from surefoot.processors.slo.minutes import ROLL_UP, series_of_rows
from surefoot.processors.slo.report import SloReport
from surefoot.processors.slo.windows import DAY, seconds, window_seconds

MOST_ROWS: Final = 8
# The long windows of the two tiers that page.
BURN_WINDOWS: Final = ("1h", "6h")
BURN_POINTS: Final = 288  # every five minutes of a day
# As far back as the longest window of an alert: what is older explains none.
BAD_EVENTS_DAYS: Final = 3

Row = dict[str, Any]

_RUNS: Final = """
SELECT run_id, trace_id, agent_name, task_class, outcome, error_type, started_at, duration_ns, tool_calls, tool_errors,
       input_tokens, output_tokens
FROM runs WHERE parent_run_id IS NULL
"""
_ORDER: Final = " ORDER BY started_at DESC LIMIT $most"
_LATEST: Final = _RUNS + _ORDER
_FAILED: Final = _RUNS + " AND outcome IN ('error', 'abandoned')" + _ORDER
_MINUTES: Final = """
SELECT epoch_us(minute) // 1000000 AS start, good, bad, unlabelled, excluded,
       coalesce(good_micros, 1000000 * good) AS good_micros, coalesce(bad_micros, 1000000 * bad) AS bad_micros,
       coalesce(unlabelled_micros, 1000000 * unlabelled) AS unlabelled_micros
FROM slo_minutes
WHERE slo = $slo AND generation = $generation AND view = $view AND stratum_key = $key AND date >= $first
ORDER BY minute
"""


@dataclass(frozen=True, slots=True)
class LatestRuns:
    """Rows of ``runs`` without sub-runs, the latest first; ``trouble`` says why there are none."""

    latest: list[Row] = field(default_factory=list)
    failed: list[Row] = field(default_factory=list)
    trouble: str | None = None


@dataclass(frozen=True, slots=True)
class BurnPoint:
    """The burn rate of a window at a time (unix seconds); None where the window had no labelled event."""

    at: float
    window: str
    burn_rate: float | None


@dataclass(frozen=True, slots=True)
class Past:
    """How an SLO came to where it is."""

    burn: list[BurnPoint] = field(default_factory=list)
    bad_events: list[Row] = field(default_factory=list)
    trouble: str | None = None


def latest_runs(settings: Settings) -> LatestRuns:
    """The latest runs and the latest failed ones."""
    try:
        with _connection(settings) as con:
            return LatestRuns(_rows(con, _LATEST, {"most": MOST_ROWS}), _rows(con, _FAILED, {"most": MOST_ROWS}))
    except (SurefootError, duckdb.Error) as error:
        return LatestRuns(trouble=str(error))


def past(settings: Settings, report: SloReport, slo: Slo | None, at: float) -> Past:
    """What led to ``report``, which was computed ``at``.

    ``slo`` is its definition; without one (its file was changed since) there are no bad events to look for.
    """
    try:
        with _connection(settings) as con:
            return Past(
                burn_history(con, report, slo, report.evaluated_at or at, settings.window_scale),
                [] if slo is None else bad_events(con, slo, at, settings.lookback_days),
            )
    except (SurefootError, duckdb.Error) as error:
        return Past(trouble=str(error))


def burn_history(
    con: duckdb.DuckDBPyConnection, report: SloReport, slo: Slo | None, at: float, scale: float
) -> list[BurnPoint]:
    """Burn rates of the roll-up over the day before ``at``, by window; the last points are the report's own numbers."""
    day = window_seconds(DAY, scale)
    lengths = {name: window_seconds(seconds(name), scale) for name in BURN_WINDOWS}
    values = {
        "slo": report.slo,
        "generation": report.generation,
        "view": report.view,
        "key": ROLL_UP,
        "first": _date(at - day - max(lengths.values())),
    }
    columns = con.execute(_MINUTES, values).fetchnumpy()
    series = series_of_rows(slo, columns, scale)
    budget = error_budget(report.objective)
    return [
        BurnPoint(time, name, burn_of(series.amounts(time - max(length, series.slice_length or 0), time), budget))
        for name, length in lengths.items()
        for time in np.linspace(at - day, at, BURN_POINTS + 1).tolist()
    ]


def bad_events(con: duckdb.DuckDBPyConnection, slo: Slo, at: float, lookback_days: int) -> list[Row]:
    """The latest bad events of ``slo``, each with the run of its trace, if it has one."""
    first, last = _date(at - BAD_EVENTS_DAYS * DAY), _date(at)
    text, values = events(slo, first, last, lookback_days)
    # The text is the indicator's file; see count.py.
    query = f"""
        WITH bad AS (SELECT * FROM ({text}) WHERE class = 'bad' ORDER BY ended_at DESC LIMIT $most),
        run AS (
            SELECT trace_id, agent_name, task_class, outcome, error_type
            FROM runs
            WHERE parent_run_id IS NULL AND date >= $from_date AND trace_id IN (SELECT trace_id FROM bad)
            QUALIFY row_number() OVER (PARTITION BY trace_id ORDER BY started_at) = 1
        )
        SELECT bad.ended_at, bad.stratum_key, bad.trace_id, agent_name, task_class, outcome, error_type
        FROM bad LEFT JOIN run ON bad.trace_id = run.trace_id
        ORDER BY bad.ended_at DESC
    """  # noqa: S608
    return _rows(con, query, values | {"most": MOST_ROWS})


@contextmanager
def _connection(settings: Settings) -> Iterator[duckdb.DuckDBPyConnection]:
    with Lake.open(settings.lake_path, create=False).connect() as con:
        yield con


def _rows(con: duckdb.DuckDBPyConnection, query: str, values: dict[str, Any]) -> list[Row]:
    answer = con.execute(query, values)
    names = [name for name, *_ in answer.description or []]
    return [dict(zip(names, row, strict=True)) for row in answer.fetchall()]


def _date(at: float) -> date:
    return datetime.fromtimestamp(at, UTC).date()
