"""How long labels take: what the watermark of the view ``matured`` lags behind now.

The delay is from the end of a run to its first label that is pass or fail. Runs that wait for one are censored at their
age (Kaplan and Meier), so a grader that is slow today is seen today. Left out: runs that were not selected for grading,
runs and labels that came by an import (their delay says when somebody imported), and runs that need no label because
their own end says that they are bad.

Trap: failures are rare and are labelled slower than successes (a quick check passes, a person looks twice at what
failed), so the quantile over all labels hides them, and a view that matures by it loses the failures of an outage. So
the delay is estimated for labels of each class by itself, too, and the watermark lags the largest. Whether a run that
waits will pass or fail nobody knows, so within one class there is no censoring; there is right truncation: only delays
shorter than the run's age are seen. In reversed time that is left truncation, and the product-limit estimator takes it
(Lagakos, Barraj and De Gruttola, Biometrika 75, 1988; Kalbfleisch and Lawless, JASA 84, 1989).
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Final

import duckdb
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from surefoot.processors.slo.cube import dimensions_of_all
from surefoot.processors.slo.definition import Labels, Slo
from surefoot.processors.slo.source import Parameters, Source, holds

# The runs of twice the longest delay that is waited for teach it; of so many days, if those hold too few labels.
SPAN_DAYS: Final = 14
ENOUGH: Final = 300
# Delays are known to a twentieth, ages to an hour: the sample is then some thousand rows, whatever the traffic.
_STEP: Final = 0.05
_HOUR: Final = 3600.0
# That so many runs wait which should have their label by now has this probability where labels still come.
_STALE_CHANCE: Final = 1e-3

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class LabelDelay:
    """What the watermark lags, in seconds, and why it cannot be trusted if it cannot."""

    seconds: float
    n: int  # delays that it was learnt from; 0 where they were too few and the maximum was taken
    stale: str | None = None


@dataclass(frozen=True, slots=True)
class Delays:
    """Runs alike together: ``labelled`` 1 good, 2 bad, 3 neither any more, 0 not yet (its delay is its age)."""

    labelled: npt.NDArray[np.int64]
    delay: Floats  # seconds, above 0
    age: Floats  # seconds, at least the delay
    count: npt.NDArray[np.int64]

    def of(self, chosen: npt.NDArray[np.bool_]) -> Delays:
        """Some of them."""
        return Delays(self.labelled[chosen], self.delay[chosen], self.age[chosen], self.count[chosen])

    @property
    def n(self) -> int:
        """How many runs."""
        return int(self.count.sum())


def label_delays(
    con: duckdb.DuckDBPyConnection, slos: Iterable[Slo], now: float, scale: float, lookback_days: int
) -> dict[str, LabelDelay]:
    """What the labels of the last days or weeks say, in the views of a lake's connection; by the SLO's name.

    SLOs that share a source and a maximum cost one scan, or two where some of them have few labels.
    """
    found: dict[str, LabelDelay] = {}
    waiting: dict[tuple[Source, int], list[Slo]] = defaultdict(list)
    for slo in slos:
        if slo.custom_sql is None:
            waiting[Source.of(slo), 2 * slo.labels.max_delay_seconds].append(slo)
        else:  # it says when labels are known, not when they came
            found[slo.name] = LabelDelay(slo.labels.max_delay_seconds * scale, 0)
    longest = SPAN_DAYS * 86_400
    for (_, short), sharing in waiting.items():
        learnt = _learn(con, sharing, now, scale, lookback_days, short)
        few = [slo for slo in sharing if learnt[slo.name].n < ENOUGH and short < longest]
        found |= learnt | (_learn(con, few, now, scale, lookback_days, longest) if few else {})
    return found


def _learn(
    con: duckdb.DuckDBPyConnection, slos: Sequence[Slo], now: float, scale: float, lookback_days: int, span: float
) -> dict[str, LabelDelay]:
    """Of SLOs that share a source, from the runs of so many seconds."""
    source = Source.of(slos[0])
    values = source.parameters(_date(now - span), _date(now), lookback_days)
    dimensions = dimensions_of_all(slos)
    columns = [f"{source.column(name, f'd{at}', values)} AS d{at}" for at, name in enumerate(dimensions)]
    con.execute(_SAMPLE.format(dimensions="".join(f"{each}, " for each in columns), relation=source.relation),
                values | {"now": now})  # fmt: skip
    places = {name: f"d{at}" for at, name in enumerate(dimensions)}
    found = {}
    for slo in slos:
        own: Parameters = {}
        # S608: only numbered places and parameters are put together.
        asked = f"""
            SELECT labelled, step, hours, CAST(sum(events) AS BIGINT) AS events, max(last_at) AS last_at
            FROM slo_delays
            WHERE {holds(slo.where, places, own, "where")} AND {holds(slo.selected, places, own, "selected")}
            GROUP BY ALL
        """  # noqa: S608
        found[slo.name] = _delay(con.sql(asked, params=own).to_arrow_table(), slo.labels, now, scale)
    con.execute("DROP TABLE slo_delays")
    return found


_SAMPLE: Final = f"""
    CREATE OR REPLACE TEMP TABLE slo_delays AS
    WITH told AS (
      SELECT {{dimensions}} class, epoch(labelled_at) AS labelled_at, epoch(ended_at) AS ended_at
      FROM ({{relation}})
      WHERE class <> 'excluded' AND NOT label_imported AND epoch(ended_at) <= $now
        AND (labelled_at IS NOT NULL OR class = 'unlabelled')
    ),
    known AS (
      SELECT *, $now - ended_at AS age,
        CASE WHEN labelled_at IS NULL OR labelled_at > $now THEN 0
          WHEN class = 'good' THEN 1
          WHEN class = 'bad' THEN 2 ELSE 3 END AS labelled
      FROM told
    )
    SELECT * EXCLUDE (class, labelled_at, ended_at, age, labelled), labelled,
      CASE WHEN labelled = 0 THEN -1
        ELSE ceil(ln(1 + greatest(labelled_at - ended_at, 0) / 60) / {_STEP}) END AS step,
      ceil((age + 1) / {_HOUR}) AS hours,
      count(*) AS events,
      max(CASE WHEN labelled > 0 THEN labelled_at END) AS last_at
    FROM known
    GROUP BY ALL
"""  # noqa: S608 - columns of the whitelist, numbered parameters and numbers of this file


def _delay(table: pa.Table, labels: Labels, now: float, scale: float) -> LabelDelay:
    labelled = table["labelled"].to_numpy().astype(np.int64)
    age = np.asarray(table["hours"].to_numpy(), float) * _HOUR
    steps = np.asarray(table["step"].to_numpy(), float)
    delay = np.where(labelled > 0, np.maximum(np.expm1(np.maximum(steps, 0) * _STEP) * 60, 1.0), age)
    delays = Delays(labelled, delay, np.maximum(age, delay), table["events"].to_numpy().astype(np.int64))
    seconds = delay_of(delays, labels, scale)
    last = pc.max(table["last_at"]).as_py()
    due, since = age - _HOUR > seconds, now - age >= (last or now)
    waiting = delays.of((labelled == 0) & due & since).n
    before = delays.of(due & ~since)
    # A grader that looks at some runs only has not stopped because many have no label.
    share = before.of(before.labelled > 0).n / before.n if before.n else 1.0
    seen = int(delays.count[labelled > 0].sum())
    n = seen if seen >= labels.min_labelled else 0  # with fewer the maximum was taken, and nothing learnt
    return LabelDelay(seconds, n, _stale(labels, share, last, waiting, seconds, now))


def delay_of(delays: Delays, labels: Labels, scale: float = 1.0) -> float:
    """Seconds within which the ``quantile`` of labels has come, of all and of each class; at most the maximum.

    The maximum, too, while all runs are so young that twice the delay was never seen.
    """
    longest = labels.max_delay_seconds * scale
    known = delays.of(delays.labelled > 0)
    if known.n < labels.min_labelled:
        return longest
    found = []
    for kind in (1, 2, 3):
        chosen = known.of(known.labelled == kind)
        # Too few for a quantile: as long as the longest of them took.
        if chosen.n:
            enough = chosen.n >= labels.min_labelled
            found.append(_truncated(chosen, labels.quantile) if enough else float(chosen.delay.max()))
    # Infinite: so many have no label at any age that waiting does not help. The bounds and the coverage show them.
    of_all = _censored(delays, labels.quantile)
    delay = max([*found, *([of_all] if math.isfinite(of_all) else [])])
    return min(delay, longest) if 2 * delay <= float(delays.age.max()) else longest


def _censored(delays: Delays, quantile: float) -> float:
    """Kaplan and Meier's quantile; infinite if so many have not been labelled at any age."""
    from statsmodels.duration.survfunc import SurvfuncRight  # slow to import, and few programs learn a delay

    survival = SurvfuncRight(delays.delay, (delays.labelled > 0).astype(float), freq_weights=delays.count.astype(float))
    found = float(survival.quantile(quantile))
    return found if math.isfinite(found) else math.inf


def _truncated(delays: Delays, quantile: float) -> float:
    """The quantile of delays of which only those below the run's age can be seen."""
    from statsmodels.duration.survfunc import SurvfuncRight

    horizon = float(delays.age.max()) + 2.0
    back, entry = horizon - delays.delay, horizon - delays.age - 1.0
    known = SurvfuncRight(back, np.ones(len(back)), entry=entry, freq_weights=delays.count.astype(float))
    # P(back >= t) is P(delay <= horizon - t): times go up, so these delays go down from the longest.
    at_most = np.concatenate([[1.0], known.surv_prob[:-1]])
    return horizon - float(known.surv_times[np.flatnonzero(at_most >= quantile)[-1]])


def _stale(labels: Labels, share: float, last: float | None, waiting: int, seconds: float, now: float) -> str | None:
    """Runs that ended after the last label, and each should have one by now with probability ``share * quantile``."""
    if last is None or (1 - share * labels.quantile) ** waiting >= _STALE_CHANCE:
        return None
    hours = (now - last) / _HOUR
    return (
        f"no label came for {hours:.1f} h, and {waiting} runs that ended since wait for one although {share:.0%} of "
        f"runs get one and {labels.quantile:.0%} of labels take at most {seconds / _HOUR:.1f} h"
    )


def _date(instant: float) -> date:
    return datetime.fromtimestamp(instant, UTC).date()
