"""Alerts about Surefoot itself: a blind watcher is an outage of its own.

Rule: none fires because something was just started again; what has not been scraped or computed yet gets its time.
"""

from __future__ import annotations

from typing import Any, Final

RUNBOOK: Final = "docs/alerts.md"
STALE_SECONDS: Final = 300


def health_group() -> dict[str, Any]:
    """The rules that no SLO has to be there for."""
    return {
        "name": "surefoot-health",
        "rules": [
            _health(
                "SurefootSloEvaluationStale",
                f"time() - min(surefoot_slo_last_run_timestamp_seconds) > {STALE_SECONDS}",
                "page",
                "SLOs have not been computed for {{ $value | humanizeDuration }}",
                "Burn rates on dashboards and in alerts are those of back then. Look at the jobs process.",
                # After a start the status file of the last computation is there before the next one.
                wait="2m",
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
                f"time() - max by (process) (surefoot_process_published_timestamp_seconds) > {STALE_SECONDS}",
                "ticket",
                "The {{ $labels.process }} process has said nothing for {{ $value | humanizeDuration }}",
                "It hangs, or it cannot write its status file.",
                wait="2m",
            ),
            _health(
                "SurefootCollectorRefusing",
                "min(surefoot_collector_accepting) == 0",  # the reason may change while it refuses
                "ticket",
                "The collector asks senders to come again"
                "{{ range query `surefoot_collector_accepting == 0` }}: {{ .Labels.reason }}{{ end }}",
                "Agents keep their telemetry for a while and then drop it. Make room, or look at the writer.",
                wait="2m",
            ),
            _health(
                "SurefootWriterBehind",
                f"max(surefoot_writer_lag_seconds) > {STALE_SECONDS}",
                "ticket",
                "Telemetry has been waiting for the tables for {{ $value | humanizeDuration }}",
                "It is safe on disk, but runs and SLOs are that late. Look at the writer.",
                wait="2m",
            ),
            _health(
                "SurefootQuarantine",
                "max(surefoot_quarantined_files) > 0",
                "ticket",
                "{{ $value }} files are in quarantine",
                "They hold acknowledged telemetry that is missing from the tables; the reason stands beside each.",
            ),
            _health(
                "SurefootWatchdog",
                "vector(1)",
                "none",
                "Prometheus evaluates rules and Alertmanager delivers",
                "It always fires. Send it to a heartbeat monitor elsewhere, which calls you when it stops coming.",
            ),
        ],
    }


def _health(
    name: str, expr: str, severity: str, summary: str, description: str, wait: str | None = None
) -> dict[str, Any]:
    return {
        "alert": name,
        "expr": expr,
        **({} if wait is None else {"for": wait}),
        "labels": {"severity": severity},
        "annotations": {
            "summary": summary,
            "description": description,
            "runbook": f"{RUNBOOK}#{name.lower()}",
        },
    }
