"""The SLO report as gauges.

Rules: an undefined number gives no sample, never NaN and never infinity; a count of zero is a sample. Every line has
the same labels: slo, service, view and one per dimension of any SLO, empty where an SLO does not have it, so that a
``max`` or a join never meets two label sets. What belongs to an SLO and not to a stratum stands on its roll-up only.

Cardinality: a line (a view of a stratum) has 10 samples, 7 per window and 4 per tier: 82 with the usual eight windows
and four tiers. A stratum is one of at most 51 (50 with most events, and other).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final

from prometheus_client.core import GaugeMetricFamily, Metric

from surefoot.processors.slo.indicator import label
from surefoot.processors.slo.report import SloReport, StatusReport, StratumReport, TierReport

STATES: Final = {"frozen": -2, "no_data": -1, "ok": 0, "burning_ticket": 1, "burning_page": 2, "exhausted": 3}
_IDENTITY: Final = ("slo", "service", "view")
_WINDOW: Final = ("window",)
_TIER: Final = ("tier", "severity", "long_window", "short_window")

SLO_GAUGES: Final[dict[str, tuple[str, tuple[str, ...]]]] = {
    "surefoot_slo_objective_ratio": ("Share of events that is to be good.", ()),
    "surefoot_slo_events": ("Events in the window by outcome: good, bad, unlabelled, excluded.", ("window", "outcome")),
    "surefoot_slo_error_ratio": ("Bad events / labelled events in the window.", _WINDOW),
    "surefoot_slo_burn_rate": ("Error ratio / error budget in the window.", _WINDOW),
    "surefoot_slo_burn_rate_threshold": ("Burn rate above which a tier burns.", ("tier", "severity")),
    "surefoot_slo_tier_burning": ("1 while a tier burns: both windows, and more than chance explains.", _TIER),
    "surefoot_slo_tier_frozen": ("1 while it cannot be told whether a tier burns.", _TIER),
    "surefoot_slo_tier_p_value": ("Of the exact binomial test of a tier's long window against the budget.", _TIER),
    "surefoot_slo_error_budget_remaining_ratio": ("Share of the period's error budget that is left; signed.", ()),
    "surefoot_slo_error_budget_remaining_bound_ratio": (
        "The same, were every missing label bad (low) or good (high); equal when none is missing.",
        ("bound",),
    ),
    "surefoot_slo_time_to_exhaustion_seconds": ("Until the budget is spent, at the burn rate of the last day.", ()),
    "surefoot_slo_label_coverage_ratio": ("Labelled events / events in the window.", _WINDOW),
    "surefoot_slo_overdispersion_ratio": ("Correlation of failures within an hour; 0 = independent.", ()),
    "surefoot_slo_last_event_timestamp_seconds": ("When the latest event ended.", ()),
    "surefoot_slo_silence_limit_seconds": ("A longer silence is unusual for this SLO.", ()),
    "surefoot_slo_policy_action": (
        "1 while an error-budget policy demands the action.",
        ("policy", "action", "allowed_mode"),
    ),
    "surefoot_slo_state": (
        "-2 frozen, -1 no data, 0 ok, 1 burning (ticket), 2 burning (page), 3 budget exhausted.",
        (),
    ),
    "surefoot_slo_watermark_timestamp_seconds": ("Where the windows of the view end.", ()),
    "surefoot_slo_watermark_stale": ("1 while the watermark cannot be trusted.", ()),
    "surefoot_slo_label_delay_seconds": ("How far the watermark lags behind now.", ()),
    "surefoot_slo_last_run_timestamp_seconds": ("When the SLO was last computed.", ()),
}

Value = tuple[str, list[str], float | None]


def slo_metrics(report: StatusReport) -> Iterator[Metric]:
    """The gauges of all SLOs, views and strata."""
    dimensions = sorted({label(name) for slo in report.slos for item in slo.strata for name in item.dimensions})
    families = {
        name: GaugeMetricFamily(name, text, labels=[*_IDENTITY, *dimensions, *extra])
        for name, (text, extra) in SLO_GAUGES.items()
    }
    for slo in report.slos:
        for place, stratum in enumerate(slo.strata):
            found = {label(name): value for name, value in stratum.dimensions.items()}
            base = [slo.slo, slo.service, slo.view, *(found.get(name, "") for name in dimensions)]
            values = [*_of_stratum(slo, stratum, report.computed_at), *([] if place else _of_slo(slo))]
            for name, extra, value in values:
                if value is not None and math.isfinite(value):
                    families[name].add_metric([*base, *extra], value)
    return iter(families.values())


def _of_slo(slo: SloReport) -> Iterator[Value]:
    yield "surefoot_slo_watermark_timestamp_seconds", [], slo.evaluated_at
    yield "surefoot_slo_watermark_stale", [], float(slo.watermark_stale is not None)
    yield "surefoot_slo_label_delay_seconds", [], slo.label_delay_seconds


def _of_stratum(slo: SloReport, stratum: StratumReport, computed_at: float) -> Iterator[Value]:
    yield "surefoot_slo_objective_ratio", [], slo.objective
    yield "surefoot_slo_error_budget_remaining_ratio", [], stratum.error_budget_remaining_ratio
    low, high = budget_bounds(slo, stratum)
    yield "surefoot_slo_error_budget_remaining_bound_ratio", ["low"], low
    yield "surefoot_slo_error_budget_remaining_bound_ratio", ["high"], high
    yield "surefoot_slo_time_to_exhaustion_seconds", [], stratum.time_to_exhaustion_seconds
    yield "surefoot_slo_overdispersion_ratio", [], stratum.overdispersion
    yield "surefoot_slo_last_event_timestamp_seconds", [], stratum.last_event_at
    yield "surefoot_slo_silence_limit_seconds", [], stratum.silence_limit_seconds
    yield "surefoot_slo_state", [], STATES[stratum.state]
    yield "surefoot_slo_last_run_timestamp_seconds", [], computed_at
    for action in slo.actions:
        if action.stratum_key == stratum.key:
            yield "surefoot_slo_policy_action", [action.policy, action.action, action.mode or ""], 1.0
    for tier in stratum.tiers:
        if tier.severity in slo.severities:  # the others alert from another view
            yield from _of_tier(tier)
    yield from _of_windows(stratum)


def _of_tier(tier: TierReport) -> Iterator[Value]:
    which = [tier.name, tier.severity, tier.long_window, tier.short_window]
    yield "surefoot_slo_burn_rate_threshold", which[:2], tier.factor
    yield "surefoot_slo_tier_burning", which, float(tier.burning)
    yield "surefoot_slo_tier_frozen", which, float(tier.frozen)
    yield "surefoot_slo_tier_p_value", which, tier.p_value


def _of_windows(stratum: StratumReport) -> Iterator[Value]:
    for window in stratum.windows:
        for outcome in ("good", "bad", "unlabelled", "excluded"):
            yield "surefoot_slo_events", [window.window, outcome], float(getattr(window.counts, outcome))
        yield "surefoot_slo_error_ratio", [window.window], window.error_ratio
        yield "surefoot_slo_burn_rate", [window.window], window.burn_rate
        yield "surefoot_slo_label_coverage_ratio", [window.window], window.label_coverage_ratio


def budget_bounds(slo: SloReport, stratum: StratumReport) -> tuple[float | None, float | None]:
    """What is left of the period's budget, were every missing label bad, and were it good.

    The high one is 1 - (bad / total) / (1 - objective) with total = good + bad + unlabelled: a missing label that turns
    out good adds to what is allowed.
    """
    remaining, period = stratum.error_budget_remaining_ratio, stratum.windows[-1]
    if period.error_ratio_low is None or remaining is None:
        return stratum.budget_remaining_low, remaining
    high = max(remaining, 1 - period.error_ratio_low / (1 - slo.objective)) if period.counts.unlabelled else remaining
    low = remaining if stratum.budget_remaining_low is None else stratum.budget_remaining_low
    return low, high
