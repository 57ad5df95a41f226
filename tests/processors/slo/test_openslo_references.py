"""References lead over the whole folder; what is wrong where they lead is told once, where it stands."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.openslo_documents import EXPECTED, FILES, POLICY, SERVICE, SLI, SLO, write
from surefoot.processors.slo import load_slos


@pytest.mark.parametrize("layout", ["a file each", "one file", "folders"])
def test_references_lead_over_the_whole_folder(layout: str, tmp_path: Path) -> None:
    files = FILES
    if layout == "one file":
        files = {"all": "---\n".join(reversed(FILES.values()))}
    elif layout == "folders":
        files = {f"{name}/deep/{name}": text for name, text in FILES.items()}
    write(tmp_path, files)
    loaded = load_slos(tmp_path)
    assert loaded.problems == []
    assert loaded.slos == [EXPECTED]


def test_what_is_fine_and_does_nothing_is_named(tmp_path: Path) -> None:
    write(
        tmp_path, {**FILES, "spare": POLICY.replace("fast-page", "spare") + "---\n" + SLI.replace("outcome\n", "x\n")}
    )
    told = [str(item).partition(f"{tmp_path}/")[2] for item in load_slos(tmp_path).unused]
    assert told == [
        "slo.yaml:29: alertWhenNoData is not used: the rules alert on silence by themselves",
        "slo.yaml:35: alertAfter is not used: a tier needs a short window to burn, too, which takes care of that",
        "slo.yaml:37: notification targets are not used: Alertmanager decides where a notification goes",
        "source.yaml:4: documents of kind DataSource are not used",
        "spare.yaml:4: nothing refers to the AlertPolicy 'spare'",
        "spare.yaml:16: nothing refers to the SLI 'x'",
        "target.yaml:4: documents of kind AlertNotificationTarget are not used",
    ]


def test_a_service_needs_no_document(tmp_path: Path) -> None:
    write(tmp_path, {name: text for name, text in FILES.items() if name != "service"})
    loaded = load_slos(tmp_path)
    assert (len(loaded.slos), loaded.problems) == (1, [])


# Which file is left out or changed and how; the place, a part of what is wrong and of the remedy; then the SLO's place.
LEADING_NOWHERE = {
    "an SLI with a typing error": (
        "slo", "indicatorRef: outcome", "indicatorRef: outcom",
        "slo.yaml:18", "spec.indicatorRef", "there is no SLI 'outcom'", "did you mean outcome?",
    ),
    "a policy that is missing": (
        "policy", POLICY, SERVICE.replace("desk", "other"),
        "slo.yaml:25", "spec.alertPolicies[0].alertPolicyRef", "no AlertPolicy 'fast-page'", "kind AlertPolicy, in any",
    ),
    "a condition with a typing error": (
        "policy", "conditionRef: fast", "conditionRef: fats",
        "policy.yaml:9", "spec.conditions[0].conditionRef", "there is no AlertCondition 'fats'", "did you mean fast?",
    ),
    "a target that is missing": (
        "policy", "targetRef: on-call", "targetRef: nobody",
        "policy.yaml:11", "spec.notificationTargets[0].targetRef", "no AlertNotificationTarget 'nobody'", "on-call",
    ),
    "a name that is none": (
        "slo", "indicatorRef: outcome", "indicatorRef: My SLI",
        "slo.yaml:18", "spec.indicatorRef", "'My SLI' is not a name", "write my-sli",
    ),
    "a kind that is another": (
        "slo", "indicatorRef: outcome", "indicatorRef: desk",
        "slo.yaml:18", "spec.indicatorRef", "there is no SLI 'desk'", "known here: outcome",
    ),
    "a policy twice": (
        "slo", "    - kind: AlertPolicy", "    - alertPolicyRef: fast-page\n    - kind: AlertPolicy",
        "slo.yaml:26", "spec.alertPolicies[1]", "'fast-page' stands twice", "keep one",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", LEADING_NOWHERE)
def test_a_reference_that_leads_nowhere_is_told_where_it_stands(case: str, tmp_path: Path) -> None:
    file, old, new, place, path, what, remedy = LEADING_NOWHERE[case]
    assert old in FILES[file]
    write(tmp_path, {**FILES, file: FILES[file].replace(old, new, 1)})
    loaded = load_slos(tmp_path)
    assert loaded.slos == []
    problem = loaded.problems[0]
    assert str(problem).startswith(f"{tmp_path}/{place}: {path}: ")
    assert what in problem.what
    assert remedy in problem.remedy


BROKEN = {
    "an SLI of an unknown indicator": ("sli", "acceptable_outcome", "nonsense", "sli.yaml:12"),
    "an SLI of an unknown shape": ("sli", "rawType: success", "rawType: maybe", "sli.yaml:7"),
    "an SLI of an unknown column": ("sli", "[task_class]", "[outcome]", "sli.yaml:15"),
    "a condition with another operator": ("condition", "op: gt", "op: lt", "condition.yaml:10"),
    "a condition of an unknown shape": ("condition", "op: gt", "op: above", "condition.yaml:10"),
    "a policy with a typing error": ("policy", "conditionRef: fast", "conditionRef: fats", "policy.yaml:9"),
}
OWN = """\
apiVersion: surefoot/v1
kind: ErrorBudgetPolicy
metadata: {name: agreed}
spec: {service: desk, rules: [{action: notify, when: {state: exhausted}}]}
---
apiVersion: surefoot/v1
kind: BudgetAdjustment
metadata: {name: moved}
spec: {slo: desk-outcome, from: 2026-11-01T00:00:00Z, to: 2026-11-01T01:00:00Z, author: A, reason: b}
"""


@pytest.mark.parametrize("case", BROKEN)
def test_a_mistake_is_told_once_and_says_which_slos_it_holds_up(case: str, tmp_path: Path) -> None:
    file, old, new, place = BROKEN[case]
    more = SLO.replace("desk-outcome", "desk-too")
    write(tmp_path, {**FILES, file: FILES[file].replace(old, new, 1), "too": more, "own": OWN})
    loaded = load_slos(tmp_path)
    assert loaded.slos == []
    (told,) = [str(problem) for problem in loaded.problems]
    assert told.startswith(f"{tmp_path}/{place}:")
    assert told.endswith(". Until then not used: desk-outcome, desk-too")
    assert [policy.name for policy in loaded.policies] == ["agreed"]


def test_a_mistake_names_five_slos_that_it_holds_up_and_counts_the_others(tmp_path: Path) -> None:
    many = {f"slo{n}": SLO.replace("desk-outcome", f"slo{n}") for n in range(9)}
    write(tmp_path, {**FILES, **many, "sli": SLI.replace("acceptable_outcome", "nonsense")})
    (problem,) = load_slos(tmp_path).problems
    assert str(problem).endswith(". Until then not used: desk-outcome, slo0, slo1, slo2, slo3 and 5 more")


def test_a_name_that_is_taken_is_told_for_every_kind(tmp_path: Path) -> None:
    write(tmp_path, {**FILES, "z": "---\n".join(text for name, text in FILES.items() if name != "slo")})
    loaded = load_slos(tmp_path)
    assert loaded.slos == [EXPECTED]
    kinds = ["SLI", "AlertPolicy", "AlertCondition", "AlertNotificationTarget", "Service", "DataSource"]
    assert [problem.what.split(" ")[3] for problem in loaded.problems] == kinds


def test_slos_that_share_an_indicator_keep_their_own_thresholds(tmp_path: Path) -> None:
    slo = SLO.replace("Timeslices", "Occurrences").replace(
        "      timeSliceTarget: 0.95\n      timeSliceWindow: 5m\n", ""
    )
    sli = SLI.replace("ratioMetric:\n    rawType: success\n    raw:\n      metric", "thresholdMetric:\n      metric")
    sli = sli[: sli.index("          selected")].replace("acceptable_outcome", "latency")
    for name, value in (("fast", "1.5"), ("slow", "60")):
        text = slo.replace("desk-outcome", name).replace("displayName: Good", f"op: lte\n      value: {value}")
        write(tmp_path, {name: text})
    write(tmp_path, {**FILES, "sli": sli, "slo": SERVICE.replace("desk", "other")})
    loaded = load_slos(tmp_path)
    assert loaded.problems == []
    assert {slo.name: slo.threshold_ns for slo in loaded.slos} == {"fast": 1_500_000_000, "slow": 60_000_000_000}
    (tmp_path / "slow.yaml").write_text(slo.replace("desk-outcome", "slow"))
    loaded = load_slos(tmp_path)
    assert [slo.name for slo in loaded.slos] == ["fast"]
    assert {problem.path for problem in loaded.problems} == {"spec.objectives[0].op", "spec.objectives[0].value"}
