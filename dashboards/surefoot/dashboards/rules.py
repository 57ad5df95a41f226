"""Prometheus rules for the SLOs: what pages, what opens a ticket, and what says that nobody is looking any more.

The engine decides whether a tier burns, or whether that cannot be told, and publishes both as gauges; a rule only
compares. Two rules hold for every alert on a burn or a budget:

- It has one identity through an incident, whichever tier burns and whichever process is scraped: tier, instance and job
  are aggregated away, because a label that changes would resolve one alert and fire another.
- Not to know neither fires nor resolves. While the engine cannot tell, or publishes nothing, an alert that is firing
  stays (it finds itself in ALERTS) and one that is not stays quiet.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import yaml

from surefoot.dashboards import alert_texts
from surefoot.dashboards.alert_texts import Texts, dimensions, promise, where
from surefoot.dashboards.health_rules import RUNBOOK, health_group
from surefoot.processors.slo import Slo
from surefoot.processors.slo.definition import FAST, MATURED

# Against flapping around a threshold. A failed scrape needs none of it: what is absent does not resolve.
_KEEP_FIRING: Final = "5m"
# Longer than a total outage takes to page where so much runs that a ticket can be certain of it first
# (docs/slo-statistics.md): so a page comes before the ticket on the same outage.
_TICKET_WAITS: Final = "35m"
_FIRING: Final = 'alertstate="firing"'


def build_rules(slos: Iterable[Slo]) -> str:
    """The rule file as YAML text: one group per SLO, one for Surefoot's own health."""
    groups = [slo_group(slo) for slo in slos]
    header = "# Written by `surefoot rules build`. Change the SLO files and build again.\n"
    return header + yaml.safe_dump({"groups": [*groups, health_group()]}, sort_keys=False, width=10_000)


def slo_group(slo: Slo) -> dict[str, Any]:
    """The alerts on one SLO."""
    rules = [
        _burn_alert(slo, "SurefootSloBurnRatePage", "page"),
        _burn_alert(slo, "SurefootSloBurnRateTicket", "ticket"),
        _exhausted_alert(slo),
        _policy_alert(slo),
        _frozen_alert(slo),
        _watermark_alert(slo),
        _silent_alert(slo),
        _absent_alert(slo),
    ]
    return {"name": f"surefoot-{slo.name}", "rules": rules}


def _burn_alert(slo: Slo, name: str, severity: str) -> dict[str, Any]:
    tiers = f'{{slo="{slo.name}",severity="{severity}"}}'
    worst = _worst(slo)
    fires = f"{worst} (surefoot_slo_tier_burning{tiers}) == 1"
    unknown = f"{_held(slo, name)} and {worst} (surefoot_slo_tier_frozen{tiers}) == 1"
    timing = ({} if severity == "page" else {"for": _TICKET_WAITS}) | {"keep_firing_for": _KEEP_FIRING}
    texts = alert_texts.burn_texts(slo, severity)
    return _alert(slo, name, severity, f"{fires} or {unknown} or {_held_while_absent(slo, name)}", texts, timing)


def _exhausted_alert(slo: Slo) -> dict[str, Any]:
    """Spent for certain fires; spent only if the missing labels are bad, or a stale watermark, changes nothing."""
    name = "SurefootSloBudgetExhausted"
    view = MATURED if slo.source.labels == "late" else FAST
    stale = f'on () (max(surefoot_slo_watermark_stale{{slo="{slo.name}",view="{view}"}}) == 1)'
    held = _held(slo, name)

    def spent(bound: str) -> str:
        chosen = f'{{slo="{slo.name}",view="{view}",bound="{bound}"}}'
        return f"{_worst(slo)} (surefoot_slo_error_budget_remaining_bound_ratio{chosen}) < 0"

    fires = f"(({spent('high')}) unless {stale})"
    unknown = f"({held} and ({spent('low')})) or ({held} and {stale})"
    timing = {"for": "10m", "keep_firing_for": _KEEP_FIRING}
    expr = f"{fires} or {unknown} or {_held_while_absent(slo, name)}"
    return _alert(slo, name, "ticket", expr, alert_texts.exhausted_texts(slo), timing)


def _policy_alert(slo: Slo) -> dict[str, Any]:
    name, more = "SurefootPolicyAction", ("policy", "action", "allowed_mode")
    expr = f'{_worst(slo, *more)} (surefoot_slo_policy_action{{slo="{slo.name}"}}) == 1'
    texts = Texts(
        f"{where(slo)}: policy {{{{ $labels.policy }}}} demands {{{{ $labels.action }}}}"
        "{{ with $labels.allowed_mode }} to {{ . }}{{ end }}",
        f"{promise(slo)} {alert_texts.budget_left()} of its error budget is left (n "
        f"{alert_texts.events('good|bad', slo.period)}). The evidence stands on the SLO's page and in the table "
        "slo_actions.",
    )
    held = _held_while_absent(slo, name, *more)
    return _alert(slo, name, "ticket", f"{expr} or {held}", texts, {"keep_firing_for": _KEEP_FIRING})


def _frozen_alert(slo: Slo) -> dict[str, Any]:
    texts = Texts(
        f"{where(slo)}: for six hours nobody could tell whether it burns",
        f"{promise(slo)} In {slo.period} {alert_texts.events('unlabelled', slo.period)} events have no label yet, "
        f"beside n {alert_texts.events('good|bad', slo.period)} that have. Either labels are missing, or there was no "
        "event since it burned; the SLO's page says which.",
    )
    expr = f'{_worst(slo)} (surefoot_slo_tier_frozen{{slo="{slo.name}"}}) == 1'
    return _alert(slo, "SurefootSloFrozen", "ticket", expr, texts, {"for": "6h", "keep_firing_for": "1h"})


def _watermark_alert(slo: Slo) -> dict[str, Any]:
    delay = alert_texts.number("surefoot_slo_label_delay_seconds", "humanizeDuration")
    texts = Texts(
        f"{slo.name}: labels do not come any more",
        f"{promise(slo)} The {{{{ $labels.view }}}} view waits {delay} for labels, and that is not to be trusted now: "
        "no alert of it fires or resolves. Look at what gives the verdicts.",
    )
    expr = f'max by (slo, service, view) (surefoot_slo_watermark_stale{{slo="{slo.name}"}}) == 1'
    return _alert(slo, "SurefootSloWatermarkStuck", "ticket", expr, texts, {"for": "15m"})


def _silent_alert(slo: Slo) -> dict[str, Any]:
    """Measured at the last computation, so that a dead jobs process does not look like a dead agent."""
    rollup = "".join(f',{name}=""' for name in dimensions(slo))

    def of(metric: str) -> str:
        return f'max by (slo, service, view) ({metric}{{slo="{slo.name}",view="{FAST}"{rollup}}})'

    silence = f"{of('surefoot_slo_last_run_timestamp_seconds')} - {of('surefoot_slo_last_event_timestamp_seconds')}"
    limit = alert_texts.number("surefoot_slo_silence_limit_seconds", "humanizeDuration")
    texts = Texts(
        f"{slo.name}: nothing has ended for {{{{ $value | humanizeDuration }}}}",
        f"{promise(slo)} It counts {slo.population}; a silence above {limit} is unusual for it. Either the agent has "
        "stopped, or its telemetry does not arrive. An SLO without events cannot burn.",
    )
    expr = f"({silence}) > {of('surefoot_slo_silence_limit_seconds')}"
    return _alert(slo, "SurefootAgentSilent", "ticket", expr, texts, {"for": "2m"})


def _absent_alert(slo: Slo) -> dict[str, Any]:
    texts = Texts(
        f"{slo.name}: not computed any more",
        "Prometheus sees no objective for it: its file is gone or broken, or Surefoot is not scraped. Its other alerts "
        "neither fire nor resolve.",
    )
    expr = f'absent(surefoot_slo_objective_ratio{{slo="{slo.name}"}})'
    made = _alert(slo, "SurefootSloAbsent", "ticket", expr, texts, {"for": "10m"})
    made["labels"]["service"] = slo.service
    made["annotations"]["query"] = "surefoot slo validate; surefoot slo status"
    return made


def _worst(slo: Slo, *more: str) -> str:
    return f"max by ({', '.join(['slo', 'service', 'view', *dimensions(slo), *more])})"


def _held(slo: Slo, name: str, *more: str) -> str:
    """The alert itself, while it is firing, with the labels that it has."""
    return f'{_worst(slo, *more)} (ALERTS{{alertname="{name}",{_FIRING},slo="{slo.name}"}})'


def _held_while_absent(slo: Slo, name: str, *more: str) -> str:
    return f'({_held(slo, name, *more)} and on () absent(surefoot_slo_objective_ratio{{slo="{slo.name}"}}))'


def _alert(slo: Slo, name: str, severity: str, expr: str, texts: Texts, timing: dict[str, str]) -> dict[str, Any]:
    return {
        "alert": name,
        "expr": expr,
        **timing,
        "labels": {"slo": slo.name, "severity": severity},
        "annotations": {
            "summary": texts.summary,
            "description": texts.description,
            "query": alert_texts.query(slo),
            "runbook": f"{RUNBOOK}#{name.lower()}",
        },
    }
