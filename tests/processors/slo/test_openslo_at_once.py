"""All mistakes of a folder are told at once: a mended one never shows the next one."""

from __future__ import annotations

from pathlib import Path

from support.openslo_documents import FILES, GOOD, write
from surefoot.processors.slo import load_slos

SLO = """\
apiVersion: openslo/v1
kind: SLO
metadata:
  name: Many Mistakes
  colour: red
spec:
  service: desk
  budgetingMethod: Sometimes
  timeWindow:
    - duration: 1M
      isRolling: true
      calendar: {startTime: "2026-02-30 00:00:00", timeZone: Europe/Berln}
  indicator:
    metadata: {name: mine}
    spec:
      ratioMetric:
        rawType: failure
        raw:
          metricSource:
            type: surefoot
            spec:
              indicator: acceptable_outcome
              were: {service_name: desk}
              where: {servicename: desk}
              by: [outcome]
              labels: {quantile: 2}
              max_age: 1d
  objectives:
    - target: 1.5
      op: most
      value: 3
      timeSliceWindow: 7x
  alertPolicies:
    - alertPolicyRef: nowhere
    - kind: AlertPolicy
      metadata: {name: own}
      spec:
        alertWhenBreaching: false
        conditions:
          - kind: AlertCondition
            metadata: {name: c}
            spec: {severity: page, condition: {kind: burnrate, op: lt, threshold: 0, lookbackWindow: 30d}}
        notificationTargets: []
"""
OWN = """\
apiVersion: surefoot/v1
kind: ErrorBudgetPolicy
metadata: {name: agreed}
spec:
  slos: [nobody]
  service: desk
  rules:
    - {action: tighten_mode, colour: red, when: {budget: {below: 2, until: 0.1}}}
    - {action: notify, mode: replay, when: {}}
---
kind: BudgetAdjustment
metadata: {name: moved}
spec: {slo: nobody, from: 2026-11-02T00:00:00Z, to: 2026-11-01T01:00:00Z, author: "", colour: red}
"""


def test_every_mistake_of_a_folder_is_told_at_once(tmp_path: Path) -> None:
    write(tmp_path, {"own": OWN, "slo": SLO, "good": GOOD})
    told = {(Path(problem.file).stem, problem.path) for problem in load_slos(tmp_path).problems}
    source = "spec.indicator.spec.ratioMetric.raw.metricSource.spec"
    policy = "spec.alertPolicies[1].spec"
    slo = {
        "metadata.name", "metadata.colour", "spec.budgetingMethod", "spec.timeWindow[0].calendar",
        "spec.timeWindow[0].calendar.startTime", "spec.timeWindow[0].calendar.timeZone",
        "spec.indicator.spec.ratioMetric.rawType", f"{source}.were", f"{source}.where.servicename", f"{source}.by[0]",
        f"{source}.labels.quantile", f"{source}.max_age", "spec.objectives[0].op", "spec.objectives[0].target",
        "spec.objectives[0].timeSliceWindow", "spec.alertPolicies[0].alertPolicyRef", f"{policy}.alertWhenBreaching",
        f"{policy}.notificationTargets", f"{policy}.conditions[0].spec.condition.op",
        f"{policy}.conditions[0].spec.condition.threshold", f"{policy}.conditions[0].spec.condition.lookbackWindow",
    }  # fmt: skip
    own = {
        "spec", "spec.slos[0]", "spec.rules[0].colour", "spec.rules[0].mode", "spec.rules[0].when.budget.below",
        "spec.rules[0].when.budget.until", "spec.rules[1].mode", "spec.rules[1].when", "apiVersion", "spec.slo",
        "spec.to", "spec.author", "spec.colour", "spec.reason",
    }  # fmt: skip
    assert told == {("slo", path) for path in slo} | {("own", path) for path in own}


def test_what_is_wrong_with_an_slo_does_not_hide_that_nothing_else_uses_what_it_refers_to(tmp_path: Path) -> None:
    write(tmp_path, {**FILES, "slo": FILES["slo"].replace("displayName: Desk", "title: Desk", 1)})
    loaded = load_slos(tmp_path)
    assert [problem.path for problem in loaded.problems] == ["metadata.title"]
    assert not [item for item in loaded.unused if "nothing refers" in item.what]


def test_a_document_of_another_version_is_told_and_not_read(tmp_path: Path) -> None:
    write(tmp_path, {"slo": SLO.replace("openslo/v1", "openslo/v1alpha"), "own": OWN.replace("surefoot/v1", "v2")})
    told = [(Path(problem.file).stem, problem.path) for problem in load_slos(tmp_path).problems]
    assert told.count(("slo", "apiVersion")) == 1
    assert [path for file, path in told if file == "slo"] == ["apiVersion"]
    assert ("own", "apiVersion") in told
