"""The buckets of an SLO to its report at ``now``: windows, burn rates, budget, state, history.

Rule: a pure function of the buckets, the definition and ``now``; every number is computed from counts that the report
shows beside it.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

from surefoot.processors.slo import burn
from surefoot.processors.slo.count import dimensions_of
from surefoot.processors.slo.definition import FAST, Slo, error_budget
from surefoot.processors.slo.minutes import OTHER, ROLL_UP, Minutes, Series
from surefoot.processors.slo.report import BudgetPoint, Counts, SloReport, StratumReport, TierReport, WindowReport
from surefoot.processors.slo.windows import WINDOWS, seconds, window_seconds


def judge(slo: Slo, minutes: Minutes, now: float, scale: float) -> SloReport:
    """The report on ``slo``: its roll-up, then its strata with events in the period by key, ``other`` last."""
    judged = [_stratum(slo, key, minutes.series(key), now, scale) for key in minutes.strata()]
    strata = [stratum for stratum in judged if stratum.key == ROLL_UP or stratum.windows[-1].counts != Counts()]
    period = strata[0].windows[-1].counts
    problem = None
    if period == Counts():
        problem = f"no event of the last {slo.period} is about it; it counts {slo.population}"
    elif period.good + period.bad == 0:
        problem = (
            f"none of the last {slo.period}'s events is good or bad: "
            f"{period.unlabelled} unlabelled, {period.excluded} excluded"
        )
    return SloReport(
        slo=slo.name,
        service=slo.service,
        display_name=slo.display_name or slo.name,
        description=slo.description,
        indicator=slo.indicator,
        objective=slo.objective,
        period=slo.period,
        view=FAST,
        generation=slo.generation,
        strata=strata,
        history=list(_history(slo, minutes.series(ROLL_UP), now, scale)),
        problem=problem,
    )


def _stratum(slo: Slo, key: str, series: Series, now: float, scale: float) -> StratumReport:
    budget = error_budget(slo.objective)
    windows = [
        _window(name, series.between(now - window_seconds(seconds(name), scale), now), budget)
        for name in (*WINDOWS, slo.period)
    ]
    burns = {window.window: window.burn_rate for window in windows}
    tiers = [_tier(tier, burns) for tier in burn.tiers_for(slo.period, slo.objective)]
    period = windows[-1].counts
    labelled = period.good + period.bad
    remaining = burn.budget_remaining(period.bad, labelled, budget)
    low, high = burn.wilson(period.good, labelled)
    return StratumReport(
        key=key,
        dimensions=_dimensions(slo, key),
        windows=windows,
        tiers=tiers,
        error_budget_remaining_ratio=remaining,
        interval_low=low,
        interval_high=high,
        state=burn.state(remaining, {tier.severity for tier in tiers if tier.burning}),
    )


def _dimensions(slo: Slo, key: str) -> dict[str, str]:
    """Never an empty value: to Prometheus an empty label is none, and the stratum would be taken for the roll-up."""
    if key == OTHER:
        return dict.fromkeys(slo.by, f"({OTHER})")
    return {name: value or "(none)" for name, value in dimensions_of(key).items()}


def _window(name: str, counts: Counts, budget: Decimal) -> WindowReport:
    labelled = counts.good + counts.bad
    total = labelled + counts.unlabelled
    return WindowReport(
        window=name,
        counts=counts,
        error_ratio=burn.error_ratio(counts),
        error_ratio_low=counts.bad / total if total else None,
        error_ratio_high=(counts.bad + counts.unlabelled) / total if total else None,
        burn_rate=burn.burn_rate(counts, budget),
        label_coverage_ratio=labelled / total if total else None,
    )


def _tier(tier: burn.Tier, burns: dict[str, float | None]) -> TierReport:
    rates = (burns[tier.long_window], burns[tier.short_window])
    return TierReport(
        name=tier.name,
        severity=tier.severity,
        long_window=tier.long_window,
        short_window=tier.short_window,
        factor=tier.factor,
        nominal_factor=tier.nominal_factor,
        burning=all(rate is not None and rate > tier.factor for rate in rates),
    )


def _history(slo: Slo, series: Series, now: float, scale: float) -> Iterator[BudgetPoint]:
    """The burn-down of the period's budget, a point per UTC date; the last one is what remains now."""
    start = now - window_seconds(slo.period_seconds, scale)
    whole = series.between(start, now)
    budget = error_budget(slo.objective)
    bad = 0
    after = start
    for day in _dates(start, now):
        # A bucket that starts at midnight is the next date's, and `between` includes its upper edge.
        until = min(now, datetime.combine(day + timedelta(days=1), datetime.min.time(), UTC).timestamp() - 0.5)
        counts = series.between(after, until)
        bad += counts.bad
        yield BudgetPoint(day.isoformat(), burn.budget_remaining(bad, whole.good + whole.bad, budget), counts)
        after = until


def _dates(start: float, now: float) -> Iterator[date]:
    day, last = (datetime.fromtimestamp(time, UTC).date() for time in (start, now))
    while day <= last:
        yield day
        day += timedelta(days=1)
