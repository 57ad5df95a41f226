"""Budgets, burn rates and the tiers that alert on them: the one place for these numbers, the Prometheus rules' too.

A burn rate is the error ratio over the error budget: at 1 the budget lasts exactly the period. A tier burns when the
burn rate is above its factor in a long window, so that enough of the budget is at stake, and in one of a twelfth of
it, so that it stops soon after the trouble does (Site Reliability Workbook, chapter 5).

Rule: ratios are computed from counts in decimal and rounded once, so that equality at a threshold means equality, and
what is undefined is None.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from typing import Final

from surefoot.processors.slo.definition import Alerting, TierSpec, error_budget
from surefoot.processors.slo.report import Counts
from surefoot.processors.slo.windows import DAY, seconds

PAGE: Final = "page"
TICKET: Final = "ticket"


@dataclass(frozen=True, slots=True)
class Tier:
    """One condition: burning when both windows burn faster than ``factor``."""

    name: str
    severity: str  # page ticket
    long_window: str
    short_window: str
    factor: float
    nominal_factor: float  # what the share of the budget or an AlertPolicy asks for
    note: str = ""  # why the factor is another one, in one sentence


# Name, severity, long and short window, share of the period's budget that the long window may burn. The workbook's
# three rows and the kubernetes-mixin's ticket at 1 d.
_TIERS: Final = (
    ("page_fast", PAGE, "1h", "5m", Decimal("0.02")),
    ("page_slow", PAGE, "6h", "30m", Decimal("0.05")),
    ("ticket_fast", TICKET, "1d", "2h", Decimal("0.10")),
    ("ticket_slow", TICKET, "3d", "6h", Decimal("0.10")),
)
# The slowest tier of 28 days. Over shorter periods the shares alone would alert on burn that the budget sustains.
_LOWEST_FACTOR: Final = Decimal(28) / 30
# Of a page where the period is a day or a few: nobody gets up for a budget that nearly lasts until midnight.
_LOWEST_PAGE_FACTOR: Final = Decimal(2)
_FEW_DAYS: Final = 4 * DAY
_NORMAL_975: Final = 1.9599639845400545  # quantile of the normal distribution


def tiers_for(period: str | int, objective: float, alerting: Alerting | None = None) -> list[Tier]:
    """The tiers of an SLO with this period (``28d``, or seconds), fastest first.

    The nominal factor is the share of the budget x period / long window: 13.44, 5.6, 2.8 and 0.9333 over 28 days. The
    greatest burn rate there can be is 1 / (1 - objective), so at 90 % a factor of 13.44 never burns. The factor is
    therefore at most reach / (1 - objective), by default that of an outage of half of all events, yet not below 1, at
    which the budget is just sustained; nor is a default tier's below 0.9333, whatever the period, or a page's below 2
    where the period is shorter than 4 days. A default tier that looks back as long as the period, or longer, is left
    out. Tiers of an AlertPolicy replace the default ones and are made reachable in the same way.
    """
    alerting = alerting or Alerting()
    if alerting.tiers:
        return [
            _tier(asked, Decimal(repr(asked.factor)), Decimal(0), objective, alerting.reach) for asked in alerting.tiers
        ]
    length = seconds(period) if isinstance(period, str) else period
    tiers = []
    for name, severity, long_window, short_window, share in _TIERS:
        if seconds(long_window) >= length:
            continue
        nominal = share * length / seconds(long_window)
        spec = TierSpec(name, severity, long_window, short_window, float(nominal))
        lowest = _LOWEST_PAGE_FACTOR if severity == PAGE and length < _FEW_DAYS else _LOWEST_FACTOR
        tiers.append(_tier(spec, nominal, lowest, objective, alerting.reach))
    return tiers


def _tier(asked: TierSpec, nominal: Decimal, lowest: Decimal, objective: float, reach: float) -> Tier:
    budget = error_budget(objective)
    reachable = max(Decimal(1), Decimal(repr(reach)) / budget)
    factor = min(max(nominal, lowest), reachable)
    note = ""
    if factor < nominal:
        note = (
            f"lowered from {float(nominal):.4g}, which would take {float(nominal * budget):.0%} of events to be bad, "
            f"to {float(factor):.4g}, which an outage of {float(factor * budget):.0%} of them exceeds"
        )
    elif factor > nominal:
        note = f"raised from {float(nominal):.4g}, a burn that the budget of so short a period sustains"
    return Tier(asked.name, asked.severity, asked.long_window, asked.short_window, float(factor), float(nominal), note)


def error_ratio(counts: Counts) -> float | None:
    """Bad / (good + bad); None without labelled events."""
    labelled = counts.good + counts.bad
    return counts.bad / labelled if labelled else None


def burn_rate(counts: Counts, budget: Decimal) -> float | None:
    """Error ratio over the budget; None without labelled events."""
    labelled = counts.good + counts.bad
    return float(counts.bad / (labelled * budget)) if labelled else None


def budget_remaining(bad: int, labelled: int, budget: Decimal) -> float | None:
    """Share of the allowed bad events that is left, negative when overspent; None without labelled events."""
    if not labelled:
        return None
    allowed = labelled * budget
    return float((allowed - bad) / allowed)


@lru_cache(maxsize=8192)  # most strata do not change between two steps
def wilson(good: int, labelled: int) -> tuple[float, float] | tuple[None, None]:
    """Wilson's 95 % interval of the good ratio; Nones without events.

    Wilson 1927, J. Am. Stat. Assoc. 22, 209-212. It stands here because statsmodels' took a millisecond, a fifth of
    all judging; a test holds the two together.
    """
    if not labelled:
        return None, None
    ratio, square = good / labelled, _NORMAL_975**2
    whole = 1 + square / labelled
    center = (ratio + square / (2 * labelled)) / whole
    reach = _NORMAL_975 * math.sqrt(ratio * (1 - ratio) / labelled + square / (4.0 * labelled**2)) / whole
    return max(center - reach, 0.0), min(center + reach, 1.0)


def state(remaining: float | None, burning: set[str], frozen: bool = False) -> str:
    """What to call it, the most urgent first.

    ``no_data``: no labelled event in the period, so no budget. ``burning_page``: a page tier burns; somebody should act
    now. ``exhausted``: no budget is left, whatever burns slower. ``burning_ticket``: a ticket tier burns. ``frozen``:
    none burns, and of some nobody can tell. Else ``ok``. ``burning`` holds the severities of the tiers that burn;
    ``remaining`` is the budget were every missing label good, so what is exhausted stays so whatever they will say.
    """
    if remaining is None:
        return "no_data"
    if PAGE in burning:
        return "burning_page"
    if remaining <= 0:
        return "exhausted"
    if TICKET in burning:
        return "burning_ticket"
    return "frozen" if frozen else "ok"
