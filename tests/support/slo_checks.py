"""Reports and rows against the slow reference: every number of every window, stratum and view."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import asdict
from fractions import Fraction
from typing import Any

import pytest

from support import slo_reference as reference
from support.slo_events import Row
from surefoot.processors.slo import Slo
from surefoot.processors.slo.count import dimensions_of, views_of
from surefoot.processors.slo.cube import CLASSES
from surefoot.processors.slo.definition import MATURED
from surefoot.processors.slo.delay import LabelDelay
from surefoot.processors.slo.judge import judge
from surefoot.processors.slo.minutes import ROLL_UP, Minutes
from surefoot.processors.slo.report import Counts, SloReport, StratumReport, WindowReport


def promise_of(slo: Slo, scale: float = 1.0) -> reference.Promise:
    """The same in the reference's terms."""
    bucket = max(1, round(60 * scale))
    sliced = None
    if slo.slice_seconds is not None:
        length = max(1, round(slo.slice_seconds * scale / bucket)) * bucket
        sliced = slo.budgeting, length, Fraction(repr(slo.slice_target or 0.0))
    calendar = None
    if slo.calendar is not None:
        calendar = slo.calendar.start, slo.calendar.count, slo.calendar.unit, slo.calendar.zone
    return reference.Promise(Fraction(repr(slo.objective)), slo.period_seconds, calendar, sliced, views_of(slo))


def strata_of(slo: Slo, events: list[reference.Event]) -> dict[reference.Key, list[reference.Event]]:
    """The events by stratum; the roll-up is ()."""
    divided: dict[reference.Key, list[reference.Event]] = {(): events}
    if slo.by:
        for event in events:
            divided.setdefault(reference.stratum(event, slo.by), []).append(event)
    return divided


Minute = tuple[str, reference.Key, int]


def by_stratum(rows: Iterable[Row]) -> dict[Minute, tuple[int, ...]]:
    names = (*CLASSES, *reference.MICROS)
    return {
        (row["view"], tuple(dimensions_of(row["stratum_key"]).items()), row["start"]): tuple(
            row[name] for name in names
        )
        for row in rows
    }


def expected_minutes(
    slo: Slo, events: list[reference.Event], bucket: int, *, rolled_up: bool
) -> dict[Minute, tuple[int, ...]]:
    return {
        (view, key, start): tuple(counts.values())
        for view in views_of(slo)
        for key, chosen in strata_of(slo, events).items()
        if rolled_up or key or not slo.by
        for start, counts in reference.per_bucket(chosen, bucket, view).items()
    }


def check(
    slo: Slo, minutes: Minutes, events: list[reference.Event], now: float, scale: float = 1.0, lag: float = 0.0
) -> None:
    """Every number of the reports against the reference."""
    for view in views_of(slo):
        report = judge(slo, minutes, now, scale, view, LabelDelay(lag, 40))
        check_report(slo, report, events, now - lag if view == MATURED else now, scale)


def check_report(slo: Slo, report: SloReport, events: list[reference.Event], until: float, scale: float) -> None:
    finite(asdict(report))
    promise, bucket = promise_of(slo, scale), max(1, round(60 * scale))
    divided = strata_of(slo, events)
    after = reference.period_of(promise, until)[0]
    if promise.calendar is None:
        after = until - max(bucket, slo.period_seconds * scale)
    nothing = dict.fromkeys(CLASSES, 0)
    seen = {
        key
        for key, chosen in divided.items()
        if reference.counted(reference.between(chosen, after, until, bucket), report.view) != nothing
    } | {()}
    assert report.strata[0].key == ROLL_UP
    assert report.evaluated_at == until
    said = {(): (), **{tuple((name, value or "(none)") for name, value in key): key for key in divided}}
    assert {said[tuple(stratum.dimensions.items())] for stratum in report.strata} == seen
    for stratum in report.strata:
        chosen = divided[said[tuple(stratum.dimensions.items())]]
        check_stratum(slo, report, stratum, chosen, until, after, scale, len(seen))
    assert report.history[-1].error_budget_remaining_ratio == report.strata[0].error_budget_remaining_ratio
    daily = [point.counts for point in report.history]
    assert sum_of(daily) == report.strata[0].windows[-1].counts


def finite(value: Any) -> None:
    """No NaN and no infinity, wherever they may hide."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple):
        for item in value:
            finite(item)
    elif isinstance(value, float):
        assert math.isfinite(value)


def sum_of(all_counts: list[Counts]) -> Counts:
    return Counts(*(sum(getattr(counts, kind) for counts in all_counts) for kind in CLASSES))


def check_stratum(
    slo: Slo,
    report: SloReport,
    stratum: StratumReport,
    events: list[reference.Event],
    until: float,
    after: float,
    scale: float,
    pages: int,
) -> None:
    promise, bucket, view = promise_of(slo, scale), max(1, round(60 * scale)), report.view
    assert [window.window for window in stratum.windows] == [*promise.windows, report.period]
    for window in stratum.windows[:-1]:
        length = reference.WINDOWS[window.window] * scale
        check_window(window, reference.window(events, length, until, bucket, view, promise), promise)
    period = reference.amount(events, after, until, bucket, view, promise)
    if promise.calendar is not None and promise.slicing is not None:
        # Slices that began with the period or later.
        length = promise.slicing[1]
        late_enough = [e for e in events if reference.bucket(e.ended_us, length) > after]
        period = reference.amount(late_enough, after, until, bucket, view, promise)
        period.counts = reference.counted(reference.between(events, after, until, bucket), view)
    check_window(stratum.windows[-1], period, promise)
    left = reference.remaining(period.good, period.bad, promise.objective)
    assert near(stratum.error_budget_remaining_ratio, left)
    worst = reference.remaining(period.good, period.bad + period.unlabelled, promise.objective)
    assert near(stratum.budget_remaining_low, worst)
    ended = [reference.bucket(event.ended_us, bucket) for event in events]
    assert stratum.last_event_at == max((float(start) for start in ended if start <= until), default=None)
    if scale == 1.0:
        assert stratum.consecutive_bad == reference.streak(events, until, bucket, view)[0]
        decided = reference.decisions(events, until, bucket, view, promise, pages)
        for tier in stratum.tiers:
            found = reference.Decision(tier.burning, tier.frozen)
            assert found == decided[tier.name, tier.severity], (tier, stratum)
        assert len(stratum.tiers) == len(decided)
        answers = [(severity, decision) for (_, severity), decision in decided.items()]
        assert stratum.state == reference.state(period, answers, promise.objective)


def check_window(window: WindowReport, found: reference.Amount, promise: reference.Promise) -> None:
    assert window.counts == Counts(**found.counts)
    assert near(window.burn_rate, reference.burn_rate(found, promise.objective))
    assert near(window.error_ratio, found.bad / found.labelled if found.labelled else None)
    total = found.total
    assert near(window.error_ratio_low, found.bad / total if total else None)
    assert near(window.error_ratio_high, (found.bad + found.unlabelled) / total if total else None)
    assert near(window.label_coverage_ratio, found.labelled / total if total else None)
    assert (window.mass is None) == (found.plain and promise.slicing is None)
    if window.mass is not None:
        assert near(window.mass.effective_n, found.size)


def near(found: float | None, expected: Fraction | None) -> bool:
    """Equal up to rounding: of one float, and of the slices' shares, of which a part is 1e-9."""
    if found is None or expected is None:
        return found is None and expected is None
    return found == pytest.approx(float(expected), rel=1e-9, abs=1e-7)
