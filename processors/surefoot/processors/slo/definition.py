"""One SLO as the engine needs it, whatever file it came from.

Rule: the error budget is decimal, as it was written. ``1 - 0.999`` in binary is 0.0010000000000000009, and a budget
that is wrong in the sixteenth digit shows as 99.90000000000001 % and misses equality at the threshold.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Final

from surefoot.processors.slo.indicator import INDICATORS, Indicator

# The only view so far: every event in its minute, with the labels known now.
FAST: Final = "fast"


def error_budget(objective: float) -> Decimal:
    """Share of events that may be bad, exactly: 0.01 for 0.99."""
    return 1 - Decimal(repr(objective))


@dataclass(frozen=True, slots=True)
class Slo:
    """A service level objective: 0 < objective < 1 of the indicator's events are to be good over a rolling period."""

    name: str
    service: str
    indicator: str
    objective: float
    period: str  # as written: "28d"
    period_seconds: int
    where: tuple[tuple[str, tuple[str, ...]], ...] = ()  # each: the column has one of the values
    by: tuple[str, ...] = ()  # dimensions of the strata
    threshold_ns: int | None = None  # of indicators that compare a duration
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
        parts = [self.source.sql, self.where, self.by, self.threshold_ns, self.period_seconds]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]

    @property
    def population(self) -> str:
        """In words, for messages: ``runs where service_name is support-desk``."""
        conditions = [f"{column} is {' or '.join(values)}" for column, values in self.where]
        return " where ".join(
            [self.source.population.replace("_", " "), *([" and ".join(conditions)] * bool(conditions))]
        )
