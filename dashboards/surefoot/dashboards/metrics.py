"""The metrics endpoint: gauges from the tables, counters only of what can never be taken back.

A burn rate is computed over event time from the tables and published as a gauge; it is not derived by Prometheus from
counters, because labels come late and get corrected, which a counter can only show as a reset. Rules: an undefined
number gives no sample and never NaN; a count of zero is a sample; a file that a process has not written yet gives no
sample.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from prometheus_client.samples import Exemplar

from surefoot.dashboards.gauges import SLO_GAUGES, slo_metrics
from surefoot.processors import status
from surefoot.processors.slo.report import StatusReport

PROCESSES: Final = ("supervisor", "collector", "writer", "jobs", "slo")
_OTHERS: Final = (
    "surefoot_runs_ended_total",
    "surefoot_model_calls_unpriced_total",
    "surefoot_collector_items_total",
    "surefoot_collector_requests_total",
    "surefoot_collector_refusals_total",
    "surefoot_collector_backlog_bytes",
    "surefoot_collector_oldest_sealed_seconds",
    "surefoot_collector_accepting",
    "surefoot_quarantined_files",
    "surefoot_writer_rows_total",
    "surefoot_writer_duplicates_total",
    "surefoot_writer_lag_seconds",
    "surefoot_process_published_timestamp_seconds",
    "surefoot_process_restarts_total",
)
METRICS: Final = (*SLO_GAUGES, *_OTHERS)
"""Every metric that the endpoint can show."""


def registry(folder: Path) -> CollectorRegistry:
    """A registry that reads the status files in ``folder`` at each scrape."""
    made = CollectorRegistry()
    made.register(StatusCollector(folder))
    return made


class StatusCollector(Collector):
    """Turns the status files into metrics. Holds no state."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def collect(self) -> Iterable[Metric]:
        """All metrics as they are now."""
        content = {name: status.read(self._folder, name) for name in PROCESSES}
        slo = content["slo"]
        if slo is not None:
            yield from slo_metrics(StatusReport.from_json(slo))
        yield from _runs(content["jobs"] or {})
        yield from _collector(content["collector"] or {})
        yield from _writer(content["writer"] or {})
        yield from _processes(content)

    def describe(self) -> Iterable[Metric]:
        """Nothing: describing would read the files when the registry is made."""
        return []


def _runs(jobs: dict[str, Any]) -> Iterator[Metric]:
    family = CounterMetricFamily(
        "surefoot_runs_ended",
        "User-facing runs first seen ended, by outcome, since the jobs process began.",
        labels=["service_name", "outcome"],
    )
    for counter in jobs.get("counters", []):
        family.add_metric(
            [counter["service_name"] or "", counter["outcome"]],
            counter["runs"],
            exemplar=Exemplar({"trace_id": counter["exemplar_trace_id"]}, 1.0),
        )
    yield family
    unpriced = CounterMetricFamily(
        "surefoot_model_calls_unpriced",
        "Model calls first seen that used tokens at a price nobody knows, since the jobs process began.",
        labels=["service_name"],
    )
    for counter in jobs.get("unpriced", []):
        unpriced.add_metric([counter["service_name"] or ""], counter["calls"])
    yield unpriced


def _collector(collector: dict[str, Any]) -> Iterator[Metric]:
    items = CounterMetricFamily(
        "surefoot_collector_items",
        "Spans, log records and data points by what became of them.",
        labels=["signal", "transport", "result"],
    )
    requests = CounterMetricFamily(
        "surefoot_collector_requests",
        "Requests by what became of them: accepted, refused (never to be sent again), deferred (to be sent again).",
        labels=["signal", "transport", "result"],
    )
    for count in collector.get("counts", []):
        result, _, what = count["name"].rpartition("_")
        family = {"items": items, "requests": requests}.get(what)
        if family is not None:
            family.add_metric([count["signal"], count["transport"], result], count["total"])
    refusals = CounterMetricFamily(
        "surefoot_collector_refusals",
        "Requests and items (spans, log records, data points) that were not taken, by reason.",
        labels=["signal", "transport", "what", "reason"],
    )
    for count in collector.get("refusals", []):
        refusals.add_metric([count["signal"], count["transport"], count["what"], count["reason"]], count["total"])
    yield from (items, requests, refusals)
    if collector:
        yield _gauge(
            "surefoot_collector_backlog_bytes", "Acknowledged, not yet in the lake.", collector["backlog_bytes"]
        )
        age = collector.get("oldest_sealed_seconds")
        if age is not None:
            yield _gauge("surefoot_collector_oldest_sealed_seconds", "Age of the oldest segment for the writer.", age)
        accepting = GaugeMetricFamily(
            "surefoot_collector_accepting",
            "1 while requests are accepted, 0 while they are deferred.",
            labels=["reason"],
        )
        accepting.add_metric([collector["reason"] or ""], 1.0 if collector["state"] == "ok" else 0.0)
        yield accepting
        text = "Segments and stretches that nobody could process; they are kept in the spool's quarantine."
        yield _gauge("surefoot_quarantined_files", text, len(collector["quarantined"]))


def _writer(writer: dict[str, Any]) -> Iterator[Metric]:
    rows = CounterMetricFamily("surefoot_writer_rows", "Rows committed since the writer began.", labels=["table"])
    for name, total in writer.get("totals", {}).items():
        if name in ("spans", "contents", "logs", "metric_points"):
            rows.add_metric([name], total)
    yield rows
    if writer:
        yield _counter(
            "surefoot_writer_duplicates", "Spans dropped because the lake held them.", writer["duplicates_total"]
        )
        yield _gauge("surefoot_writer_lag_seconds", "Age of the oldest segment that waits.", writer["lag_seconds"])


def _processes(content: dict[str, dict[str, Any] | None]) -> Iterator[Metric]:
    published = GaugeMetricFamily(
        "surefoot_process_published_timestamp_seconds", "When a process last said how it is.", labels=["process"]
    )
    for name, key in (("collector", "at"), ("writer", "at"), ("jobs", "cycle_at")):
        found = content[name]
        if found is not None:
            published.add_metric([name], found[key])
    yield published
    restarts = CounterMetricFamily(
        "surefoot_process_restarts", "Times a process was started again.", labels=["process"]
    )
    for name, process in (content["supervisor"] or {}).get("processes", {}).items():
        restarts.add_metric([name], process["restarts"])
    yield restarts


def _gauge(name: str, text: str, value: float) -> Metric:
    return GaugeMetricFamily(name, text, value=value)


def _counter(name: str, text: str, value: float) -> Metric:
    return CounterMetricFamily(name, text, value=value)
