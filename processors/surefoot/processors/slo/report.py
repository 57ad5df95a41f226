"""What the SLO engine says about an SLO, as immutable records: the contract with metrics, page and command line.

Undefined numbers are None (never 0, never NaN); every ratio stands beside the counts that it came from.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields
from typing import Any


@dataclass(frozen=True, slots=True)
class Counts:
    """Events of a window. ``excluded`` events are in no denominator."""

    good: int = 0
    bad: int = 0
    unlabelled: int = 0
    excluded: int = 0


@dataclass(frozen=True, slots=True)
class Mass:
    """What ratios are computed from where an event is not simply one: sample weights, or time slices.

    Good, bad and unlabelled in events (or slices); ``effective_n`` is Kish's (sum w)^2 / sum w^2 of the labelled ones,
    the sample size that a test may claim.
    """

    good: float = 0.0
    bad: float = 0.0
    unlabelled: float = 0.0
    effective_n: float = 0.0


@dataclass(frozen=True, slots=True)
class WindowReport:
    """One window of one stratum.

    ``error_ratio`` is bad / (good + bad), of ``mass`` where there is one, else of ``counts``. ``error_ratio_low`` and
    ``error_ratio_high`` are the bounds bad / total and (bad + unlabelled) / total with total = good + bad + unlabelled.
    ``burn_rate`` is error_ratio / (1 - objective). ``label_coverage_ratio`` is (good + bad) / total. All None without
    events.
    """

    window: str  # nominal: "5m", "1h", "28d"
    counts: Counts
    error_ratio: float | None
    error_ratio_low: float | None
    error_ratio_high: float | None
    burn_rate: float | None
    label_coverage_ratio: float | None
    mass: Mass | None = None


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
    frozen: bool = False  # with the missing labels good it does not burn, with them bad it does; or nothing is known
    reason: str = ""  # why it burns, does not or cannot be told, with numbers and sample sizes, in one sentence
    p_value: float | None = None  # of the exact binomial test on the long window against the budget
    note: str = ""  # why factor is not nominal_factor, in one sentence


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
    state: str  # ok burning_ticket burning_page exhausted frozen no_data
    budget_remaining_low: float | None = None  # were every missing label bad; equal to the budget if none is missing
    time_to_exhaustion_seconds: float | None = None  # at the burn of the last day; None: not burning, or spent already
    overdispersion: float | None = None  # intra-hour correlation of failures over the period; 0 = independent
    overdispersion_n: int = 0  # hours with at least two events
    consecutive_bad: int = 0  # bad events up to now with no good and no unlabelled one among them
    last_event_at: float | None = None  # unix seconds
    silence_limit_seconds: float | None = None  # a longer silence is unusual for this SLO; None: too little is known


@dataclass(frozen=True, slots=True)
class BudgetPoint:
    """What was left of the period's budget at the end of a day, and that day's counts, for the charts.

    A burn-down: 1 - bad so far / allowed over the whole period. It begins near 1 and ends at what remains now.
    """

    date: str  # UTC; the first and the last day of the period are parts of days
    error_budget_remaining_ratio: float | None
    counts: Counts


@dataclass(frozen=True, slots=True)
class ActionReport:
    """What an error-budget policy demands now, and the evidence."""

    policy: str
    action: str  # notify freeze_rollout tighten_mode require_approval
    mode: str | None  # of tighten_mode: the mode that is the most now
    stratum_key: str
    since: float  # unix seconds
    evidence: str  # the threshold and the numbers that crossed it, in one sentence


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
    views: tuple[str, ...] = ("fast",)  # all views of this SLO; each has a SloReport of its own
    severities: tuple[str, ...] = ("page", "ticket")  # of the tiers that alert from this view
    budgeting: str = "Occurrences"
    period_start: float | None = None  # unix seconds; of a calendar window its beginning
    evaluated_at: float | None = None  # unix seconds: the end of this view's windows; now, or the watermark
    label_delay_seconds: float | None = None  # that the watermark lags; None of an indicator whose labels come at once
    label_delay_n: int = 0  # observed delays that it was learnt from
    watermark_stale: str | None = None  # why the watermark cannot be trusted, in one sentence
    actions: list[ActionReport] = field(default_factory=list)  # that error-budget policies demand now
    adjustments: list[str] = field(default_factory=list)  # planned exclusions in the period, in one sentence each
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
    names = {known.name for known in fields(cls)}
    return {key: value for key, value in data.items() if key in names}


def _window(data: dict[str, Any]) -> WindowReport:
    mass = data.get("mass")
    parts = {"counts": Counts(**data["counts"]), "mass": None if mass is None else Mass(**_known(Mass, mass))}
    return WindowReport(**{**_known(WindowReport, data), **parts})


def _stratum(data: dict[str, Any]) -> StratumReport:
    parts = {
        "windows": [_window(item) for item in data["windows"]],
        "tiers": [TierReport(**_known(TierReport, item)) for item in data["tiers"]],
    }
    return StratumReport(**{**_known(StratumReport, data), **parts})


def _slo(data: dict[str, Any]) -> SloReport:
    parts: dict[str, Any] = {
        **{name: tuple(data[name]) for name in ("views", "severities") if name in data},
        "actions": [ActionReport(**_known(ActionReport, item)) for item in data.get("actions", [])],
        "strata": [_stratum(item) for item in data["strata"]],
        "history": [
            BudgetPoint(**{**_known(BudgetPoint, item), "counts": Counts(**item["counts"])}) for item in data["history"]
        ],
    }
    return SloReport(**{**_known(SloReport, data), **parts})
