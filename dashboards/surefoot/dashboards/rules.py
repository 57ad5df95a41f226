"""Prometheus rules for the SLOs: what pages, what opens a ticket, and what says that nobody is looking any more.

The windows are computed by Surefoot over event time and come as gauges, so a rule only compares. One alert per SLO,
stratum and severity keeps its identity over a whole incident, whichever tier burns: the tier is aggregated away before
the alert, because a label that changes with the tier would resolve one alert and fire another.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

import yaml

from surefoot.processors.slo import Slo, Tier, tiers_for

OVER_THRESHOLD: Final = "surefoot:slo_burn_rate_over_threshold:ratio"
STALE_SECONDS: Final = 300
_RUNBOOK: Final = "docs/alerts.md"
# A gauge goes stale when its scrape fails, which would resolve a page in the middle of an incident.
_KEEP_FIRING: Final = "5m"


def build_rules(slos: Iterable[Slo]) -> str:
    """The rule file as YAML text: one group per SLO, one for Surefoot's own health."""
    groups = [slo_group(slo) for slo in slos]
    header = "# Written by `surefoot rules build`. Change the SLO files and build again.\n"
    return header + yaml.safe_dump({"groups": [*groups, health_group()]}, sort_keys=False, width=10_000)


def slo_group(slo: Slo) -> dict[str, Any]:
    """Recording rules for each tier and the alerts on them."""
    tiers = tiers_for(slo.period, slo.objective)
    return {
        "name": f"surefoot-{slo.name}",
        "rules": [
            *(_recording(slo, tier) for tier in tiers),
            _burn_alert(slo, "page", tiers),
            _burn_alert(slo, "ticket", tiers),
            _exhausted_alert(slo),
            _absent_alert(slo),
        ],
    }


def _recording(slo: Slo, tier: Tier) -> dict[str, Any]:
    series = f'surefoot_slo_burn_rate{{slo="{slo.name}",window=~"{tier.long_window}|{tier.short_window}"}}'
    # Both windows must have events: the least of one window alone is not the least of the two.
    both = f"min without (window) ({series}) and count without (window) ({series}) == 2"
    return {
        "record": OVER_THRESHOLD,
        "expr": f"({both}) / {tier.factor!r}",
        "labels": {"slo": slo.name, "tier": tier.name, "severity": tier.severity},
    }


def _burn_alert(slo: Slo, severity: str, tiers: list[Tier]) -> dict[str, Any]:
    name = "SurefootSloBurnRatePage" if severity == "page" else "SurefootSloBurnRateTicket"
    conditions = " or ".join(
        f"above {tier.factor:g} in both {tier.long_window} and {tier.short_window}"
        for tier in tiers
        if tier.severity == severity
    )
    return {
        "alert": name,
        "expr": f'max without (tier) ({OVER_THRESHOLD}{{slo="{slo.name}",severity="{severity}"}}) > 1',
        "keep_firing_for": _KEEP_FIRING,
        "labels": {"slo": slo.name, "severity": severity},
        "annotations": {
            "summary": f"{slo.name}: the error budget is burning too fast",
            "description": (
                f"The burn rate of {slo.name} (objective {100 * slo.objective:g} % over {slo.period}) is "
                f"{conditions}; it is {{{{ $value | humanize }}}} times the threshold now. "
                "A burn rate of 1 spends the budget exactly within the period."
            ),
            "runbook": f"{_RUNBOOK}#{name.lower()}",
        },
    }


def _exhausted_alert(slo: Slo) -> dict[str, Any]:
    return {
        "alert": "SurefootSloBudgetExhausted",
        "expr": f'surefoot_slo_error_budget_remaining_ratio{{slo="{slo.name}"}} < 0',
        "for": "10m",
        "labels": {"slo": slo.name, "severity": "ticket"},
        "annotations": {
            "summary": f"{slo.name}: the error budget is spent",
            "description": (
                f"{slo.name} (objective {100 * slo.objective:g} % over {slo.period}) has "
                "{{ $value | humanizePercentage }} of its error budget left."
            ),
            "runbook": f"{_RUNBOOK}#surefootslobudgetexhausted",
        },
    }


def _absent_alert(slo: Slo) -> dict[str, Any]:
    return {
        "alert": "SurefootSloAbsent",
        "expr": f'absent(surefoot_slo_objective_ratio{{slo="{slo.name}"}})',
        "for": "10m",
        "labels": {"severity": "ticket", "slo": slo.name, "service": slo.service},
        "annotations": {
            "summary": f"{slo.name}: not computed any more",
            "description": "Prometheus sees no objective for it: its file is gone or broken.",
            "runbook": f"{_RUNBOOK}#surefootsloabsent",
        },
    }


def health_group() -> dict[str, Any]:
    """Alerts about Surefoot itself. A blind watcher is an outage of its own."""
    return {
        "name": "surefoot-health",
        "rules": [
            _health(
                "SurefootSloEvaluationStale",
                f"time() - min(surefoot_slo_last_run_timestamp_seconds) > {STALE_SECONDS}",
                "page",
                "SLOs have not been computed for {{ $value | humanizeDuration }}",
                "Burn rates on dashboards and in alerts are those of back then. Look at the jobs process.",
            ),
            _health(
                "SurefootMetricsAbsent",
                "absent(surefoot_process_published_timestamp_seconds)",
                "page",
                "Surefoot's metrics are gone",
                "No burn-rate alert can fire until Prometheus can scrape Surefoot's web port again.",
                wait="5m",
            ),
            _health(
                "SurefootProcessSilent",
                f"time() - surefoot_process_published_timestamp_seconds > {STALE_SECONDS}",
                "ticket",
                "The {{ $labels.process }} process has said nothing for {{ $value | humanizeDuration }}",
                "It hangs, or it cannot write its status file.",
            ),
            _health(
                "SurefootCollectorRefusing",
                "surefoot_collector_accepting == 0",
                "ticket",
                "The collector asks senders to come again: {{ $labels.reason }}",
                "Agents keep their telemetry for a while and then drop it. Make room, or look at the writer.",
                wait="2m",
            ),
            _health(
                "SurefootWriterBehind",
                f"surefoot_writer_lag_seconds > {STALE_SECONDS}",
                "ticket",
                "Telemetry has been waiting for the tables for {{ $value | humanizeDuration }}",
                "It is safe on disk, but runs and SLOs are that late. Look at the writer.",
            ),
            _health(
                "SurefootQuarantine",
                "surefoot_quarantined_files > 0",
                "ticket",
                "{{ $value }} files are in quarantine",
                "They hold acknowledged telemetry that is missing from the tables; the reason stands beside each.",
            ),
        ],
    }


def _health(
    name: str, expr: str, severity: str, summary: str, description: str, wait: str | None = None
) -> dict[str, Any]:
    timing: Mapping[str, str] = {} if wait is None else {"for": wait}
    return {
        "alert": name,
        "expr": expr,
        **timing,
        "labels": {"severity": severity},
        "annotations": {
            "summary": summary,
            "description": description,
            "runbook": f"{_RUNBOOK}#{name.lower()}",
        },
    }
