"""One SLO as the engine needs it, whatever file it came from.

Rule: the error budget is decimal, as it was written. ``1 - 0.999`` in binary is 0.0010000000000000009, and a budget
that is wrong in the sixteenth digit shows as 99.90000000000001 % and misses equality at the threshold.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, field
from decimal import Decimal
from functools import cache
from typing import Final

from surefoot.processors.slo.indicator import INDICATORS, Indicator

# Views of an SLO. Fast: every event in its minute, bad if anything known by now says so, else good. Matured: windows
# end at a watermark behind which labels are expected to be there; only for indicators whose labels arrive late.
FAST: Final = "fast"
MATURED: Final = "matured"

OCCURRENCES: Final = "Occurrences"
TIMESLICES: Final = "Timeslices"
RATIO_TIMESLICES: Final = "RatioTimeslices"


@cache
def error_budget(objective: float) -> Decimal:
    """Share of events that may be bad, exactly: 0.01 for 0.99."""
    return 1 - Decimal(repr(objective))


@dataclass(frozen=True, slots=True)
class Calendar:
    """Fixed windows: ``count`` units long, one beginning at ``start`` on the wall clock of ``zone``."""

    start: str  # "2026-01-01 00:00:00", local
    zone: str  # IANA name
    count: int
    unit: str  # m h d w M Q Y, M is a month


@dataclass(frozen=True, slots=True)
class Labels:
    """How long to wait for labels that arrive late (``metricSource.spec.labels``)."""

    quantile: float = 0.95  # share of labels that has arrived at the watermark
    max_delay_seconds: int = 3 * 86_400  # the watermark never lags more than this
    min_labelled: int = 30  # with fewer observed delays, max_delay_seconds is the delay


@dataclass(frozen=True, slots=True)
class TierSpec:
    """A burn-rate condition that an AlertPolicy asks for; an SLO without policies has the four default tiers."""

    name: str
    severity: str  # page ticket
    long_window: str
    short_window: str
    factor: float


@dataclass(frozen=True, slots=True)
class Alerting:
    """When burn is news (``metricSource.spec.alerting``). docs/slo-statistics.md measures the defaults."""

    alpha: float = 1e-5  # of the exact binomial test, divided by the strata that page
    reach: float = 0.5  # error ratio that must reach every tier: factor <= reach / (1 - objective)
    consecutive: int | None = None  # bad events in a row that page; None: by the objective, 0: never
    min_bad_events: int = 2  # in the long window, so that one bad event never alerts
    tiers: tuple[TierSpec, ...] = ()
    correlation: float = 0.0  # of the failures of an hour: widens the test, see StratumReport.overdispersion


@dataclass(frozen=True, slots=True)
class Slo:
    """A service level objective: 0 < objective < 1 of the indicator's events are to be good over a rolling period."""

    name: str
    service: str
    indicator: str
    objective: float
    period: str  # as written: "28d"
    period_seconds: int  # of a calendar window: of the longest one, so what must be kept
    where: tuple[tuple[str, tuple[str, ...]], ...] = ()  # each: the column has one of the values
    by: tuple[str, ...] = ()  # dimensions of the strata
    threshold_ns: int | None = None  # of indicators that compare a duration
    threshold: float | None = None  # of indicators that compare another number, in its unit (USD)
    calendar: Calendar | None = None  # None: rolling
    budgeting: str = OCCURRENCES
    slice_seconds: int | None = None  # of Timeslices and RatioTimeslices
    slice_target: float | None = None  # of Timeslices: share of good events that makes a slice good
    selected: tuple[tuple[str, tuple[str, ...]], ...] = ()  # runs selected for grading, like `where`; () = all
    custom_sql: str | None = None  # of the indicator `sql`: the text, not its path
    max_age_seconds: int | None = None  # of repeated indicators: without a newer event the state is frozen
    labels: Labels = Labels()
    alerting: Alerting = Alerting()
    display_name: str = ""
    description: str = ""
    file: str = field(default="", compare=False)
    line: int = field(default=0, compare=False)

    @property
    def source(self) -> Indicator:
        """The indicator's population, columns and SQL."""
        return INDICATORS[self.indicator]

    @property
    def generation(self) -> str:
        """Hash of all that decides which events count and how, the text of the indicator included; not the target."""
        calendar = None if self.calendar is None else asdict(self.calendar)
        slices = [self.budgeting, self.slice_seconds, self.slice_target]
        events = [
            self.custom_sql or self.source.sql,
            self.where,
            self.by,
            self.selected,
            self.threshold_ns,
            self.threshold,
        ]
        parts = [*events, self.period_seconds, calendar, slices]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]

    @property
    def population(self) -> str:
        """In words, for messages: ``runs where service_name is support-desk``."""
        conditions = [f"{column} is {' or '.join(values)}" for column, values in self.where]
        return " where ".join(
            [self.source.population.replace("_", " "), *([" and ".join(conditions)] * bool(conditions))]
        )
