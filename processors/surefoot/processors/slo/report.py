"""What the SLO engine says about an SLO, as immutable records: the contract with metrics, page and command line.

Undefined numbers are None (never 0, never NaN); every ratio stands beside the counts that it came from.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import Any


@dataclass(frozen=True, slots=True)
class Counts:
    """Events of a window. ``excluded`` events are in no denominator."""

    good: int = 0
    bad: int = 0
    unlabelled: int = 0
    excluded: int = 0


@dataclass(frozen=True, slots=True)
class WindowReport:
    """One window of one stratum.

    ``error_ratio`` is bad / (good + bad). ``error_ratio_low`` and ``error_ratio_high`` are the bounds
    bad / total and (bad + unlabelled) / total with total = good + bad + unlabelled. ``burn_rate`` is
    error_ratio / (1 - objective). ``label_coverage_ratio`` is (good + bad) / total. All None without events.
    """

    window: str  # nominal: "5m", "1h", "28d"
    counts: Counts
    error_ratio: float | None
    error_ratio_low: float | None
    error_ratio_high: float | None
    burn_rate: float | None
    label_coverage_ratio: float | None


@dataclass(frozen=True, slots=True)
class TierReport:
    """One multi-window burn-rate condition: it burns when both windows are above ``factor``."""

    name: str  # page_fast page_slow ticket_fast ticket_slow
    severity: str  # page ticket
    long_window: str
    short_window: str
    factor: float
    nominal_factor: float  # before it was made reachable; equal to factor otherwise
    burning: bool


@dataclass(frozen=True, slots=True)
class StratumReport:
    """One stratum of an SLO; ``key`` "" is the roll-up over all strata."""

    key: str  # "" roll-up, "task_class=refund,..." or "other": all strata beyond the 50 with most events
    dimensions: dict[str, str]  # {} of the roll-up; "(none)" where it has no value, all "(other)" of other
    windows: list[WindowReport]  # shortest first; the last one is the SLO's period
    tiers: list[TierReport]
    # (allowed - bad) / allowed over the period, allowed = (1 - objective) * (good + bad); signed, never clamped.
    error_budget_remaining_ratio: float | None
    interval_low: float | None  # Wilson 95 % interval of the good ratio over the period; descriptive
    interval_high: float | None
    state: str  # ok burning_ticket burning_page exhausted no_data


@dataclass(frozen=True, slots=True)
class BudgetPoint:
    """What was left of the period's budget at the end of a day, and that day's counts, for the charts.

    A burn-down: 1 - bad so far / allowed over the whole period. It begins near 1 and ends at what remains now.
    """

    date: str  # UTC; the first and the last day of the period are parts of days
    error_budget_remaining_ratio: float | None
    counts: Counts


@dataclass(frozen=True, slots=True)
class SloReport:
    """One SLO, all its strata; ``strata[0]`` is the roll-up."""

    slo: str
    service: str
    display_name: str
    description: str
    indicator: str
    objective: float  # 0 < objective < 1
    period: str  # "28d"
    view: str
    generation: str
    strata: list[StratumReport]
    history: list[BudgetPoint]  # of the roll-up, oldest first
    problem: str | None = None  # why there are no numbers, in one sentence


@dataclass(frozen=True, slots=True)
class StatusReport:
    """One evaluation of all SLOs."""

    computed_at: float  # unix seconds
    slos: list[SloReport]
    problems: list[str]  # files that could not be read, and why

    def to_json(self) -> dict[str, Any]:
        """As plain data for ``json.dumps``."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> StatusReport:
        """The inverse of :meth:`to_json`; keys that this version does not know are ignored."""
        return cls(data["computed_at"], [_slo(item) for item in data["slos"]], list(data.get("problems", [])))


def _known(cls: type, data: dict[str, Any]) -> dict[str, Any]:
    names = {field.name for field in fields(cls)}
    return {key: value for key, value in data.items() if key in names}


def _window(data: dict[str, Any]) -> WindowReport:
    return WindowReport(**{**_known(WindowReport, data), "counts": Counts(**data["counts"])})


def _stratum(data: dict[str, Any]) -> StratumReport:
    parts = {
        "windows": [_window(item) for item in data["windows"]],
        "tiers": [TierReport(**_known(TierReport, item)) for item in data["tiers"]],
    }
    return StratumReport(**{**_known(StratumReport, data), **parts})


def _slo(data: dict[str, Any]) -> SloReport:
    parts = {
        "strata": [_stratum(item) for item in data["strata"]],
        "history": [
            BudgetPoint(**{**_known(BudgetPoint, item), "counts": Counts(**item["counts"])}) for item in data["history"]
        ],
    }
    return SloReport(**{**_known(SloReport, data), **parts})
