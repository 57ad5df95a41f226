"""What the budget was spent on: which incidents, which releases, which strata.

Definitions: a minute burns if the hour up to it held at least two bad events and burned more than the budget sustains
(burn rate above 1). An incident is burning minutes with less than an hour between them, from the first bad event of the
first one's hour to the last bad event. A release is the ``agent_version`` of the run that a trace belongs to. Parts are
of all bad events of the period (by weight), and of the budget that is their share of what was spent; so they also hold
where the budget is of time slices.

Rule: pure functions over counts, and one query for releases; every part stands beside its counts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Final

import duckdb
import numpy as np
import numpy.typing as npt

from surefoot.processors.slo.count import events
from surefoot.processors.slo.definition import MATURED, OCCURRENCES, Slo, error_budget
from surefoot.processors.slo.indicator import SQL
from surefoot.processors.slo.report import Counts, SloReport, WindowReport

OUTSIDE: Final = "outside of incidents"
_HOUR: Final = 3600
_LEAST_BAD: Final = 2

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Part:
    """One incident, release or stratum. None where nothing was spent, or no budget is defined."""

    name: str
    counts: Counts
    of_bad: float | None  # share of the period's bad events
    of_budget: float | None  # share of the period's budget
    start: float | None = None  # of incidents, unix seconds: the first bad minute
    end: float | None = None  # the end of the last one


@dataclass(frozen=True, slots=True)
class Spending:
    """The parts, the greatest first. What is in no incident is the last part of ``incidents``."""

    incidents: list[Part]
    releases: list[Part]
    strata: list[Part]


def spending(con: duckdb.DuckDBPyConnection, slo: Slo, report: SloReport, lookback_days: int) -> Spending:
    """What the period of ``report`` was spent on, from the tables of a lake's connection."""
    after, until = report.period_start or 0.0, report.evaluated_at or 0.0
    values = {"slo": report.slo, "generation": report.generation, "view": report.view, "after": after, "until": until}
    minutes = con.execute(_MINUTES, values | {"first": _date(after)}).fetchnumpy()
    spent = _Spent(report)
    return Spending(
        [*incidents(minutes, float(error_budget(slo.objective)), spent)],
        # A query of one's own is not for this connection.
        _greatest(
            iter(()) if slo.indicator == SQL else _releases(con, slo, report, after, until, lookback_days, spent)
        ),
        _greatest(
            spent.part(stratum.key, stratum.windows[-1].counts, spent.bad_of(stratum.windows[-1]))
            for stratum in report.strata[1:]
        ),
    )


class _Spent:
    """What the period spent, and so what a part of its bad events comes to."""

    def __init__(self, report: SloReport) -> None:
        self._weighed = report.budgeting == OCCURRENCES
        self.bad = self.bad_of(report.strata[0].windows[-1])
        left = report.strata[0].error_budget_remaining_ratio
        self._of_budget = None if left is None else 1 - left

    def bad_of(self, window: WindowReport) -> float:
        """Bad events, by weight where they have one."""
        return window.mass.bad if window.mass is not None and self._weighed else float(window.counts.bad)

    def part(self, name: str, counts: Counts, bad: float, start: float | None = None, end: float | None = None) -> Part:
        """A part with so many bad events."""
        of_bad = bad / self.bad if self.bad > 0 else None
        of_budget = None if of_bad is None or self._of_budget is None else of_bad * self._of_budget
        return Part(name, counts, of_bad, of_budget, start, end)


def incidents(minutes: dict[str, Ints], budget: float, spent: _Spent) -> Iterator[Part]:
    """Of minutes in order, columns ``start`` (unix seconds), the classes, ``bad_micros``; then what is in none."""
    starts, good, bad = (minutes[name].astype(np.int64) for name in ("start", "good", "bad"))
    spans = _spans(starts, good, bad, budget)
    found = []
    outside = np.ones(len(starts), bool)
    for low, high in spans:
        outside[low : high + 1] = False
        inside = np.arange(low, high + 1)
        first, last = float(starts[low]), float(starts[high]) + 60
        found.append(_of_minutes(minutes, inside, f"{_clock(first)} to {_clock(last)} UTC", spent, first, last))
    yield from _greatest(iter(found))
    yield _of_minutes(minutes, np.flatnonzero(outside), "outside of incidents", spent, None, None)


def _spans(starts: Ints, good: Ints, bad: Ints, budget: float) -> list[tuple[int, int]]:
    """First and last minute of each incident, as places."""
    failed = np.concatenate([[0], np.cumsum(bad)])
    events_ = np.concatenate([[0], np.cumsum(good + bad)])
    since = starts.searchsorted(starts - _HOUR, side="right")
    place = np.arange(len(starts))
    in_hour, of_hour = failed[place + 1] - failed[since], events_[place + 1] - events_[since]
    burning = np.flatnonzero((bad > 0) & (in_hour >= _LEAST_BAD) & (in_hour > budget * of_hour))
    spans: list[tuple[int, int]] = []
    for at in burning.tolist():
        if spans and starts[at] - starts[spans[-1][1]] < _HOUR:
            spans[-1] = spans[-1][0], at
        else:
            first = int(since[at] + np.flatnonzero(bad[since[at] : at + 1])[0])
            spans.append((max(first, spans[-1][1] + 1) if spans else first, at))
    return spans


def _of_minutes(
    minutes: dict[str, Ints], inside: Ints, name: str, spent: _Spent, start: float | None, end: float | None
) -> Part:
    counts = Counts(*(int(minutes[kind][inside].sum()) for kind in ("good", "bad", "unlabelled", "excluded")))
    return spent.part(name, counts, int(minutes["bad_micros"][inside].sum()) / 1e6, start, end)


def _releases(
    con: duckdb.DuckDBPyConnection,
    slo: Slo,
    report: SloReport,
    after: float,
    until: float,
    lookback_days: int,
    spent: _Spent,
) -> Iterator[Part]:
    if slo.indicator == SQL:
        return  # a query of one's own is not for this connection
    text, values = events(slo, _date(after), _date(until), lookback_days)
    kind = "class" if report.view == MATURED else "fast_class"
    query = f"""
        WITH of_trace AS (
          SELECT trace_id, max(agent_version) AS release FROM runs
          WHERE parent_run_id IS NULL AND date >= $first_run AND trace_id IS NOT NULL GROUP BY trace_id
        )
        SELECT coalesce(release, '(none)') AS release,
          count(*) FILTER ({kind} = 'good') AS good, count(*) FILTER ({kind} = 'bad') AS bad,
          count(*) FILTER ({kind} = 'unlabelled') AS unlabelled, count(*) FILTER ({kind} = 'excluded') AS excluded,
          coalesce(sum(weight) FILTER ({kind} = 'bad'), 0) AS bad_weight
        FROM ({text}) AS event LEFT JOIN of_trace ON event.trace_id = of_trace.trace_id
        WHERE epoch(date_trunc('minute', ended_at)) > $after AND epoch(date_trunc('minute', ended_at)) <= $until
        GROUP BY 1
    """  # noqa: S608 - the text is the indicator's, see count.py
    bounds = {"after": after, "until": until, "first_run": _date(after)}
    for release, good, bad, unlabelled, excluded, weight in con.execute(query, values | bounds).fetchall():
        yield spent.part(release, Counts(good, bad, unlabelled, excluded), weight)


def _greatest(parts: Iterator[Part]) -> list[Part]:
    return sorted(parts, key=lambda part: (-(part.of_bad or 0.0), -part.counts.bad, part.name))


def _date(at: float) -> date:
    return datetime.fromtimestamp(at, UTC).date()


def _clock(at: float) -> str:
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M}"


_MINUTES: Final = """
SELECT epoch_us(minute) // 1000000 AS start, good, bad, unlabelled, excluded,
  coalesce(bad_micros, 1000000 * bad) AS bad_micros
FROM slo_minutes
WHERE slo = $slo AND generation = $generation AND view = $view AND stratum_key = '' AND date >= $first
  AND epoch(minute) > $after AND epoch(minute) <= $until
ORDER BY minute
"""
