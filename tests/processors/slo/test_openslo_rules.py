"""Every rule of the documents that has no case of its own elsewhere: what is changed, and what is said to it."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.openslo_documents import CONDITION, DATA_SOURCE, EXPECTED, FILES, GOOD, SLI, SLO, write
from surefoot.processors.slo import load_slos

_SOURCE = "spec.ratioMetric.raw.metricSource.spec"
_CONDITIONS = "spec.alertPolicies[1].spec.conditions[0]"
_LONG = "x" * 64

# The file, what is replaced in it, by what; then the line, the field, a part of what is wrong, a part of the remedy.
WRONG = {
    # metadata, of any kind
    "a long display name": (
        "slo", "displayName: Desk outcome", f"displayName: {_LONG}", 5, "metadata.displayName", "64 characters",
        "short",
    ),
    "a label's key with a blank": (
        "slo", "{team:", "{my team:", 6, "metadata.labels.my team", "not a key of a label", "such as team",
    ),
    "a label that is a number": ("slo", "tier: gold", "tier: 1", 6, "metadata.labels.tier", "found 1", "hyphen"),
    "an annotation's key without a name": (
        "slo", "example.com/runbook", "example.com/", 7, "metadata.annotations.example.com/", "not a key",
        "example.com",
    ),
    "an annotation's domain with capitals": (
        "slo", "example.com/runbook", "Example.com/runbook", 7, "metadata.annotations.Example.com/runbook", "not a key",
        "such as",
    ),
    "an annotation that is a list": (
        "slo", '"https://example.com/desk"', "[a]", 7, "metadata.annotations.example.com/runbook", "a list", "text",
    ),
    "metadata that is missing": ("service", "metadata:\n  name: desk\n", "", 1, "metadata", "missing", "add metadata"),
    "a field of metadata that is unknown": (
        "service", "  name: desk", "  name: desk\n  nme: x", 5, "metadata.nme", "unknown", "did you mean name?",
    ),
    # Service, DataSource, AlertNotificationTarget
    "a long description of a service": (
        "service", "It answers customers.", "x" * 1051, 6, "spec.description", "1051", "shorten",
    ),
    "an unknown field of a service": ("service", "description:", "owner:", 6, "spec.owner", "unknown", "description"),
    "a data source without a type": ("source", "  type: Prometheus\n", "", 5, "spec.type", "missing", "add type"),
    "a data source without connection": (
        "source", DATA_SOURCE[DATA_SOURCE.index("  connection") :], "", 5, "spec.connectionDetails", "missing", "add",
    ),
    "a target without target": ("target", "target: pager", "description: x", 5, "spec.target", "missing", "add target"),
    "a target of nothing": ("target", "target: pager", "target: ''", 6, "spec.target", "empty", "write it"),
    # AlertCondition
    "a condition without severity": (
        "condition", "  severity: Critical\n", "", 5, "spec.severity", "missing", "add severity",
    ),
    "a severity of nothing": ("condition", "severity: Critical", "severity: ''", 7, "spec.severity", "empty", "write"),
    "a condition of another kind": (
        "condition", "kind: burnrate", "kind: burn", 9, "spec.condition.kind", "'burn'", "kind: burnrate",
    ),
    "a condition without operator": ("condition", "    op: gt\n", "", 8, "spec.condition.op", "missing", "add op"),
    "an unknown operator": ("condition", "op: gt", "op: above", 10, "spec.condition.op", "'above'", "known here: gt"),
    "an operator that includes the threshold": (
        "condition", "op: gt", "op: gte", 10, "spec.condition.op", "burns above", "op: gt",
    ),
    "an operator the other way around": (
        "condition", "op: gt", "op: lt", 10, "spec.condition.op", "not supported", "op: gt",
    ),
    "a condition without threshold": (
        "condition", "    threshold: 14.4\n", "", 8, "spec.condition.threshold", "missing", "add threshold",
    ),
    "a threshold of nothing": (
        "condition", "threshold: 14.4", "threshold: 0", 11, "spec.condition.threshold", "no burn rate", "14.4",
    ),
    "a condition without window": (
        "condition", "    lookbackWindow: 60m\n", "", 8, "spec.condition.lookbackWindow", "missing", "add look",
    ),
    "a window that is no duration": (
        "condition", "60m", "1 hour", 12, "spec.condition.lookbackWindow", "not a duration", "write",
    ),
    "a window of nothing": ("condition", "60m", "0m", 12, "spec.condition.lookbackWindow", "above 0", "write"),
    "a window of a month": ("condition", "60m", "1M", 12, "spec.condition.lookbackWindow", "between 5m and 7d", "1h"),
    "a window that is too long": ("condition", "60m", "8d", 12, "spec.condition.lookbackWindow", "and 7d", "1h"),
    "a window that is too short": ("condition", "60m", "4m", 12, "spec.condition.lookbackWindow", "between 5m", "1h"),
    "an unknown field of a condition": (
        "condition", "    op: gt", "    op: gt\n    window: 1h", 11, "spec.condition.window", "unknown",
        "lookbackWindow",
    ),
    # AlertPolicy
    "a policy without condition": (
        "policy", "  conditions:\n    - conditionRef: fast\n", "", 5, "spec.conditions", "missing", "add conditions",
    ),
    "a policy with an empty list": (
        "policy", "    - conditionRef: fast\n", "    []\n", 8, "spec.conditions", "there are 0", "keep one",
    ),
    "a policy with two conditions": (
        "policy", "    - conditionRef: fast\n", "    - conditionRef: fast\n    - conditionRef: fast\n",
        8, "spec.conditions", "there are 2", "a policy per condition",
    ),
    "a policy without target": (
        "policy", "  notificationTargets:\n    - targetRef: on-call\n", "", 5, "spec.notificationTargets", "missing",
        "add",
    ),
    "a policy with no target in the list": (
        "policy", "    - targetRef: on-call\n", "    []\n", 10, "spec.notificationTargets", "at least one", "targetRef",
    ),
    "a policy that never alerts": (
        "policy", "alertWhenBreaching: true", "alertWhenBreaching: false",
        6, "spec.alertWhenBreaching", "never alert", "alertWhenBreaching: true",
    ),
    "a policy with a word for a truth": (
        "policy", "alertWhenResolved: false", "alertWhenResolved: 'no'", 7, "spec.alertWhenResolved", "'no'", "quotes",
    ),
    "a condition by reference and in place": (
        "policy", "- conditionRef: fast", "- conditionRef: fast\n      spec: {}",
        9, "spec.conditions[0]", "both are there", "keep one",
    ),
    "a condition neither by reference nor in place": (
        "policy", "- conditionRef: fast", "- kind: AlertCondition", 9, "spec.conditions[0]", "neither is",
        "conditionRef",
    ),
    "a kind beside a reference": (
        "policy", "- conditionRef: fast", "- conditionRef: fast\n      kind: AlertCondition",
        10, "spec.conditions[0].kind", "belongs to an object written out", "remove it",
    ),
    "a target by reference and in place": (
        "policy", "- targetRef: on-call", "- targetRef: on-call\n      spec: {target: x}",
        11, "spec.notificationTargets[0]", "both are there", "keep one",
    ),
    "a condition's name that is none": (
        "policy", "conditionRef: fast", "conditionRef: Fast One",
        9, "spec.conditions[0].conditionRef", "'Fast One' is not a name", "write fast-one",
    ),
    "a target's name that is none": (
        "policy", "targetRef: on-call", "targetRef: ''",
        11, "spec.notificationTargets[0].targetRef", "not a name", "write",
    ),
    # SLI
    "an SLI of two metrics": (
        "sli", "  ratioMetric:", "  thresholdMetric: {}\n  ratioMetric:", 5, "spec", "two", "one",
    ),
    "an SLI of no metric": (
        "sli", SLI[SLI.index("  ratioMetric") :], "  description: x\n", 5, "spec", "no indicator", "keep one",
    ),
    "bad and total": (
        "sli", "    rawType: success", "    bad: {}\n    total: {}", 7, "spec.ratioMetric.bad", "not read", "rawType",
    ),
    "raw without its type": ("sli", "    rawType: success\n", "", 6, "spec.ratioMetric.rawType", "missing", "add raw"),
    "a type that OpenSLO does not know": (
        "sli", "rawType: success", "rawType: sucess", 7, "spec.ratioMetric.rawType", "not a type of OpenSLO", "success",
    ),
    "a data source by reference": (
        "sli", "        type: surefoot", "        metricSourceRef: elsewhere",
        10, "spec.ratioMetric.raw.metricSource.metricSourceRef", "always the lake", "type: surefoot",
    ),
    "a source without spec": (
        "sli", SLI[SLI.index("        spec:") :], "", 9, "spec.ratioMetric.raw.metricSource.spec", "missing",
        "add spec",
    ),
    "a source that names no indicator": (
        "sli", "          indicator: acceptable_outcome\n", "", 11, f"{_SOURCE}.indicator", "missing", "add indicator",
    ),
    "a selection by an unknown column": (
        "sli", "{variant:", "{varant:", 14, f"{_SOURCE}.selected.varant", "runs have no", "did you mean variant?",
    ),
    "a selection of nothing": (
        "sli", "[graded, audited]", "[]", 14, f"{_SOURCE}.selected.variant", "matches nothing", "at least one",
    ),
    "a share of labels above 1": (
        "sli", "quantile: 0.9", "quantile: 95", 16, f"{_SOURCE}.labels.quantile", "95", "0.95",
    ),
    "a delay that is no duration": (
        "sli", "max_delay: 2d", "max_delay: soon", 16, f"{_SOURCE}.labels.max_delay", "'soon'", "28d",
    ),
    "a delay of a month": (
        "sli", "max_delay: 2d", "max_delay: 1M", 16, f"{_SOURCE}.labels.max_delay", "no fixed length", "days",
    ),
    "a delay of a year": ("sli", "max_delay: 2d", "max_delay: 90d", 16, f"{_SOURCE}.labels.max_delay", "31d", "3d"),
    "half a label": (
        "sli", "min_labelled: 50", "min_labelled: 0.5", 16, f"{_SOURCE}.labels.min_labelled", "whole number", "whole",
    ),
    "no label at all": (
        "sli", "min_labelled: 50", "min_labelled: 0", 16, f"{_SOURCE}.labels.min_labelled", "0", "1 or",
    ),
    "a field of labels that is unknown": (
        "sli", "max_delay: 2d", "maxDelay: 2d", 16, f"{_SOURCE}.labels.maxDelay", "unknown", "did you mean max_delay?",
    ),
    "an alpha that always alerts": (
        "sli", "alpha: 0.0001", "alpha: 0.5", 17, f"{_SOURCE}.alerting.alpha", "0.5", "0.0",
    ),
    "an alpha of nothing": ("sli", "alpha: 0.0001", "alpha: 0", 17, f"{_SOURCE}.alerting.alpha", "above 0", "0.0"),
    "a reach above 1": ("sli", "reach: 0.4", "reach: 40", 17, f"{_SOURCE}.alerting.reach", "error ratio", "0.5"),
    "fewer than no events in a row": (
        "sli", "consecutive: 0", "consecutive: -1", 17, f"{_SOURCE}.alerting.consecutive", "less than 0", "0 or more",
    ),
    "no bad event": (
        "sli", "min_bad_events: 3", "min_bad_events: 0", 17, f"{_SOURCE}.alerting.min_bad_events", "0", "1 or more",
    ),
    "an age that is no length": (
        "sli", "          by:", "          max_age: 1Q\n          by:", 15, f"{_SOURCE}.max_age", "no fixed length",
        "days",
    ),
    "an age of what comes with the traffic": (
        "sli", "          by:", "          max_age: 7d\n          by:", 15, f"{_SOURCE}.max_age", "not age", "groups",
    ),
    "a query of an indicator that has one": (
        "sli", "          by:", "          file: mine.sql\n          by:", 15, f"{_SOURCE}.file", "of its own",
        "remove",
    ),
    # windows of an SLO
    "an SLO without duration": (
        "slo", "    - duration: 1M\n      isRolling", "    - isRolling", 13, "spec.timeWindow[0].duration", "missing",
        "add",
    ),
    "a month that rolls": (
        "slo", SLO[SLO.index("      isRolling") : SLO.index("  indicatorRef")], "      isRolling: true\n",
        13, "spec.timeWindow[0].duration", "cannot roll", "add a calendar",
    ),
    "a calendar that is too long": ("slo", "1M", "2Y", 13, "spec.timeWindow[0].duration", "366d", "write 28d"),
    "a calendar without end": ("slo", "1M", f"{10**9}Y", 13, "spec.timeWindow[0].duration", "366d", "write 28d"),
    "a calendar that is too short": ("slo", "1M", "12h", 13, "spec.timeWindow[0].duration", "between 1d", "write 28d"),
    "a window of zero": ("slo", "1M", "0M", 13, "spec.timeWindow[0].duration", "above 0", "write 28d"),
    "a zone with a typing error": (
        "slo", "Europe/Berlin", "Europe/Berln", 17, "spec.timeWindow[0].calendar.timeZone", "IANA", "Europe/Berlin?",
    ),
    "a zone that leads out of the database": (
        "slo", "Europe/Berlin", "../../etc/localtime", 17, "spec.timeWindow[0].calendar.timeZone", "IANA", "write one",
    ),
    "a zone that is an offset": (
        "slo", "Europe/Berlin", "'+01:00'", 17, "spec.timeWindow[0].calendar.timeZone", "IANA", "Europe/Berlin",
    ),
    "no zone": (
        "slo", "        timeZone: Europe/Berlin\n", "", 15, "spec.timeWindow[0].calendar.timeZone", "missing", "add",
    ),
    "no start": (
        "slo", "        startTime: 2026-01-01 00:00:00\n", "", 15, "spec.timeWindow[0].calendar.startTime", "missing",
        "add",
    ),
    "a start without a time": (
        "slo", "2026-01-01 00:00:00", "2026-01-01", 16, "spec.timeWindow[0].calendar.startTime", "with a time",
        "00:00:00",
    ),
    "a start with a zone": (
        "slo", "2026-01-01 00:00:00", "2026-01-01T00:00:00Z",
        16, "spec.timeWindow[0].calendar.startTime", "zone of its own", "timeZone",
    ),
    "a start that is no date": (
        "slo", "2026-01-01 00:00:00", "'2026-02-30 00:00:00'",
        16, "spec.timeWindow[0].calendar.startTime", "2026-02-30", "like",
    ),
    "a start in another age": (
        "slo", "2026-01-01 00:00:00", "'0001-01-01 00:00:00'",
        16, "spec.timeWindow[0].calendar.startTime", "1970 and 2200", "like",
    ),
    "an unknown field of a calendar": (
        "slo", "        timeZone:", "        zone: x\n        timeZone:", 17, "spec.timeWindow[0].calendar.zone",
        "unknown",
        "startTime, timeZone",
    ),
    # slices and targets of an SLO
    "a slice without length": (
        "slo", "      timeSliceWindow: 5m\n", "", 20, "spec.objectives[0].timeSliceWindow", "needs the length", "5m",
    ),
    "a slice without target": (
        "slo", "      timeSliceTarget: 0.95\n", "", 20, "spec.objectives[0].timeSliceTarget", "needs the share", "0.95",
    ),
    "a slice that needs nothing": (
        "slo", "timeSliceTarget: 0.95", "timeSliceTarget: 0", 22, "spec.objectives[0].timeSliceTarget", "above 0",
        "0.95",
    ),
    "a slice that needs more than all": (
        "slo", "timeSliceTarget: 0.95", "timeSliceTarget: 1.01", 22, "spec.objectives[0].timeSliceTarget", "1.01",
        "0.95",
    ),
    "a slice of seven minutes": (
        "slo", "timeSliceWindow: 5m", "timeSliceWindow: 7m", 23, "spec.objectives[0].timeSliceWindow", "divide a day",
        "5m",
    ),
    "a slice of a month": (
        "slo", "timeSliceWindow: 5m", "timeSliceWindow: 1M", 23, "spec.objectives[0].timeSliceWindow", "divide", "1d",
    ),
    "a slice that is no duration": (
        "slo", "timeSliceWindow: 5m", "timeSliceWindow: five", 23, "spec.objectives[0].timeSliceWindow", "'five'",
        "28d",
    ),
    "a slice's target where slices have none": (
        "slo", "budgetingMethod: Timeslices", "budgetingMethod: RatioTimeslices",
        22, "spec.objectives[0].timeSliceTarget", "RatioTimeslices has no target", "remove it",
    ),
    "a slice where there are none": (
        "slo", "budgetingMethod: Timeslices", "budgetingMethod: Occurrences",
        23, "spec.objectives[0].timeSliceWindow", "no time slices", "Timeslices",
    ),
    "no budgeting method": (
        "slo", "  budgetingMethod: Timeslices\n", "", 8, "spec.budgetingMethod", "missing", "add budgetingMethod",
    ),
    "no indicator": ("slo", "  indicatorRef: outcome\n", "", 8, "spec", "neither is", "add one"),
    "an indicator in an objective": (
        "slo", "    - displayName: Good", "    - displayName: Good\n      indicatorRef: outcome",
        21, "spec.objectives[0].indicatorRef", "composite", "spec.indicator",
    ),
    "a weight": (
        "slo", "    - displayName: Good", "    - displayName: Good\n      compositeWeight: 1",
        21, "spec.objectives[0].compositeWeight", "composite", "spec.indicator",
    ),
    "targetPercent below 0": (
        "slo", "targetPercent: 99.5", "targetPercent: -1", 21, "spec.objectives[0].targetPercent", "-1", "more than 0",
    ),
    # policies written into an SLO
    "a policy by reference and in place": (
        "slo", "    - alertPolicyRef: fast-page", "    - alertPolicyRef: fast-page\n      spec: {}",
        25, "spec.alertPolicies[0]", "both are there", "keep one",
    ),
    "a policy's name that is none": (
        "slo", "alertPolicyRef: fast-page", "alertPolicyRef: fast page",
        25, "spec.alertPolicies[0].alertPolicyRef", "'fast page' is not a name", "write fast-page",
    ),
    "a policy in place of another kind": (
        "slo", "- kind: AlertPolicy", "- kind: DataSource", 26, "spec.alertPolicies[1].kind", "'DataSource'",
        "AlertPolicy",
    ),
    "a policy in place without metadata": (
        "slo", "      metadata: {name: slow-ticket}\n", "", 26, "spec.alertPolicies[1].metadata", "missing",
        "add metadata",
    ),
    "a condition in place of another kind": (
        "slo", "- kind: AlertCondition", "- kind: SLO", 31, f"{_CONDITIONS}.kind", "'SLO'", "AlertCondition",
    ),
    "a condition in place with a fault": (
        "slo", "threshold: 1,", "threshold: -1,", 35, f"{_CONDITIONS}.spec.condition.threshold", "-1", "more than 0",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_a_mistake_is_told_by_file_line_field_and_remedy(case: str, tmp_path: Path) -> None:
    file, old, new, line, path, what, remedy = WRONG[case]
    assert old in FILES[file]
    write(tmp_path, {**FILES, file: FILES[file].replace(old, new, 1), "good": GOOD})
    loaded = load_slos(tmp_path)
    whole = file in {"service", "source"}  # which the SLO does without
    assert [slo.name for slo in loaded.slos] == [*["desk-outcome"] * whole, "good"]
    places = {(problem.file, problem.line, problem.path): problem for problem in loaded.problems}
    assert (str(tmp_path / f"{file}.yaml"), line, path) in places
    problem = places[str(tmp_path / f"{file}.yaml"), line, path]
    assert what in problem.what
    assert remedy in problem.remedy


# What looks unusual and is right: the file, what is replaced in it, by what, and what is then another of the SLO.
RIGHT: dict[str, tuple[str, str, str, dict[str, object]]] = {
    "a description of 1050": ("slo", "Books are right.", "x" * 1050, {"description": "x" * 1050}),
    "a start in quotes": ("slo", "2026-01-01 00:00:00", "'2026-01-01 00:00:00'", {}),
    "isRolling left out beside a calendar": ("slo", "      isRolling: false\n", "", {}),
    "a slice in bare minutes": ("slo", "timeSliceWindow: 5m", "timeSliceWindow: 5", {}),
    "a slice that wants all": ("slo", "timeSliceTarget: 0.95", "timeSliceTarget: 1", {"slice_target": 1.0}),
    "a share instead of per cent": ("slo", "targetPercent: 99.5", "target: 0.995", {}),
    "a service without spec": ("service", "spec:\n  description: It answers customers.\n", "", {}),
    "counter of a raw metric": ("sli", "    rawType: success", "    counter: true\n    rawType: success", {}),
    "the window by another name": ("condition", "60m", "1h", {}),
    "alertAfter of nothing": ("condition", "60m", "60m\n    alertAfter: 1m", {}),
}


@pytest.mark.parametrize("case", RIGHT)
def test_what_is_right_is_read(case: str, tmp_path: Path) -> None:
    file, old, new, other = RIGHT[case]
    assert old in FILES[file]
    write(tmp_path, {**FILES, file: FILES[file].replace(old, new, 1)})
    loaded = load_slos(tmp_path)
    assert loaded.problems == []
    (slo,) = loaded.slos
    for name, value in other.items():
        assert getattr(slo, name) == value
    if not other:
        assert slo == EXPECTED


@pytest.mark.parametrize(
    ("severity", "expected"), [("page", "page"), ("High", "page"), ("CRITICAL", "page"), ("warning", "ticket")]
)
def test_a_severity_pages_or_makes_a_ticket(severity: str, expected: str, tmp_path: Path) -> None:
    write(tmp_path, {**FILES, "condition": CONDITION.replace("Critical", severity)})
    (slo,) = load_slos(tmp_path).slos
    assert slo.alerting.tiers[0].severity == expected


@pytest.mark.parametrize(("lookback", "short"), [("5m", "1m"), ("30m", "3m"), ("24h", "2h"), ("7d", "14h")])
def test_the_short_window_is_a_twelfth_in_whole_minutes(lookback: str, short: str, tmp_path: Path) -> None:
    write(tmp_path, {**FILES, "condition": CONDITION.replace("60m", lookback)})
    (slo,) = load_slos(tmp_path).slos
    assert slo.alerting.tiers[0].short_window == short
