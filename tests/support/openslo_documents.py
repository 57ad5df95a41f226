"""One document of OpenSLO v1 of every kind, by reference and written out, and the SLO that they make."""

from __future__ import annotations

from pathlib import Path

from surefoot.processors.slo.definition import Alerting, Calendar, Labels, Slo, TierSpec

SLO = """\
apiVersion: openslo/v1
kind: SLO
metadata:
  name: desk-outcome
  displayName: Desk outcome
  labels: {team: [desk, support], tier: gold}
  annotations: {example.com/runbook: "https://example.com/desk"}
spec:
  description: Books are right.
  service: desk
  budgetingMethod: Timeslices
  timeWindow:
    - duration: 1M
      isRolling: false
      calendar:
        startTime: 2026-01-01 00:00:00
        timeZone: Europe/Berlin
  indicatorRef: outcome
  objectives:
    - displayName: Good
      targetPercent: 99.5
      timeSliceTarget: 0.95
      timeSliceWindow: 5m
  alertPolicies:
    - alertPolicyRef: fast-page
    - kind: AlertPolicy
      metadata: {name: slow-ticket}
      spec:
        alertWhenNoData: true
        conditions:
          - kind: AlertCondition
            metadata: {name: slow}
            spec:
              severity: low
              condition: {kind: burnrate, op: gt, threshold: 1, lookbackWindow: 72h, alertAfter: 5m}
        notificationTargets:
          - kind: AlertNotificationTarget
            metadata: {name: mail}
            spec: {target: email}
"""
SLI = """\
apiVersion: openslo/v1
kind: SLI
metadata:
  name: outcome
spec:
  ratioMetric:
    rawType: success
    raw:
      metricSource:
        type: surefoot
        spec:
          indicator: acceptable_outcome
          where: {service_name: desk}
          selected: {variant: [graded, audited]}
          by: [task_class]
          labels: {quantile: 0.9, max_delay: 2d, min_labelled: 50}
          alerting: {alpha: 0.0001, reach: 0.4, consecutive: 0, min_bad_events: 3}
"""
POLICY = """\
apiVersion: openslo/v1
kind: AlertPolicy
metadata:
  name: fast-page
spec:
  alertWhenBreaching: true
  alertWhenResolved: false
  conditions:
    - conditionRef: fast
  notificationTargets:
    - targetRef: on-call
"""
CONDITION = """\
apiVersion: openslo/v1
kind: AlertCondition
metadata:
  name: fast
spec:
  description: The month's budget is gone in two days.
  severity: Critical
  condition:
    kind: burnrate
    op: gt
    threshold: 14.4
    lookbackWindow: 60m
"""
TARGET = """\
apiVersion: openslo/v1
kind: AlertNotificationTarget
metadata:
  name: on-call
spec:
  target: pager
"""
SERVICE = """\
apiVersion: openslo/v1
kind: Service
metadata:
  name: desk
spec:
  description: It answers customers.
"""
DATA_SOURCE = """\
apiVersion: openslo/v1
kind: DataSource
metadata:
  name: elsewhere
spec:
  type: Prometheus
  connectionDetails: {url: "http://127.0.0.1:9090", anything: [1, 2]}
"""
# An SLO that needs no other document.
GOOD = """\
apiVersion: openslo/v1
kind: SLO
metadata: {name: good}
spec:
  service: shop
  budgetingMethod: Occurrences
  timeWindow: [{duration: 28d, isRolling: true}]
  indicator:
    metadata: {name: good}
    spec: {ratioMetric: {rawType: success, raw: {metricSource: {type: surefoot, spec: {indicator: availability}}}}}
  objectives: [{target: 0.99}]
"""
FILES = {
    "slo": SLO,
    "sli": SLI,
    "policy": POLICY,
    "condition": CONDITION,
    "target": TARGET,
    "service": SERVICE,
    "source": DATA_SOURCE,
}


def write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = folder / f"{name}.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


EXPECTED = Slo(
    name="desk-outcome",
    service="desk",
    indicator="acceptable_outcome",
    objective=0.995,
    period="1M",
    period_seconds=31 * 86_400 + 3600,
    where=(("service_name", ("desk",)),),
    by=("task_class",),
    calendar=Calendar("2026-01-01 00:00:00", "Europe/Berlin", 1, "M"),
    budgeting="Timeslices",
    slice_seconds=300,
    slice_target=0.95,
    selected=(("variant", ("graded", "audited")),),
    labels=Labels(0.9, 2 * 86_400, 50),
    alerting=Alerting(
        0.0001,
        0.4,
        0,
        3,
        (TierSpec("fast-page", "page", "1h", "5m", 14.4), TierSpec("slow-ticket", "ticket", "3d", "6h", 1.0)),
    ),
    display_name="Desk outcome",
    description="Books are right.",
)
