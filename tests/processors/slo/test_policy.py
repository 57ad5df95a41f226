"""Error-budget policies: read strictly, begun by evidence, ended only when clear, left alone when nothing is known."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from support.reports import slo, stratum
from surefoot.processors.documents import dotted, read_documents
from surefoot.processors.slo import adjustments, policy, policy_schema
from surefoot.processors.slo.policy import ErrorBudgetPolicy, Evaluation, evaluate
from surefoot.processors.slo.report import ActionReport, Counts, SloReport

DOCS = Path(__file__).parents[3] / "docs" / "error-budget-policy.md"
NOW = 1_000_000.0
POLICY = """
apiVersion: surefoot/v1
kind: ErrorBudgetPolicy
metadata: {name: desk}
spec:
  slos: [answers]
  rules:
"""
FREEZE = "    - {action: freeze_rollout, when: {budget: {below: 0.1, until: 0.25}}}\n"
BURN = "    - {action: notify, when: {burn: {above: 6, window: 6h, until: 3}}}\n"
PAGE = "    - {action: tighten_mode, mode: human_approval, when: {state: burning_page}}\n"


def read(rules: str, head: str = POLICY) -> ErrorBudgetPolicy:
    (document,) = read_documents(head + rules)
    found = policy.read(document, "slos/policy.yaml")
    assert isinstance(found, ErrorBudgetPolicy), found
    return found


def report(state: str = "ok", bad: int = 0, n: int = 1_000, *, name: str = "answers", view: str = "fast") -> SloReport:
    """Objective 99 %: of n events 1 % may be bad, so ``bad`` in thousands of n is ten times the burn."""
    return replace(slo(name, state, Counts(n - bad, bad)), view=view)


def after(previous: Evaluation | None, rules: str, *reports: SloReport, now: float = NOW) -> Evaluation:
    return evaluate([read(rules)], reports, {} if previous is None else previous.active, now)


def actions(found: Evaluation) -> list[str]:
    return [action.action for held in found.active.values() for action in held]


def test_an_action_begins_below_its_threshold_with_numbers_and_sample_size() -> None:
    assert after(None, FREEZE, report(bad=9)).active == {}  # 10 % are left, and that is not below 10 %
    found = after(None, FREEZE, report(bad=10))
    (action,) = found.active["answers"]
    assert (action.policy, action.action, action.mode, action.stratum_key) == ("desk", "freeze_rollout", None, "")
    assert action.since == NOW
    expected = "error budget left of answers (fast) is 0.0 % (below 10 %, until 25 %), 10 bad of n 1,000"
    assert action.evidence == expected
    assert [(change.slo, change.action, change.ended_at) for change in found.changes] == [("answers", action, None)]


def test_an_action_ends_only_when_it_is_clear_of_its_threshold() -> None:
    begun = after(None, FREEZE, report(bad=10))
    held = after(begun, FREEZE, report(bad=8), now=NOW + 60)  # 20 % are left: neither below 10 % nor clear at 25 %
    assert actions(held) == ["freeze_rollout"]
    assert held.changes == []
    assert held.active["answers"][0].since == NOW
    ended = after(held, FREEZE, report(bad=7), now=NOW + 120)
    assert actions(ended) == []
    (change,) = ended.changes
    assert change.ended_at == NOW + 120
    assert "is 30.0 %" in change.evidence


def test_a_burn_rate_in_a_window_has_its_own_margin() -> None:
    begun = after(None, BURN, report(bad=61))
    assert actions(begun) == ["notify"]
    assert actions(after(begun, BURN, report(bad=31))) == ["notify"]
    assert actions(after(begun, BURN, report(bad=30))) == []
    assert actions(after(None, BURN, report(bad=60))) == []


@pytest.mark.parametrize("state", ["frozen", "no_data"])
def test_what_is_not_known_neither_begins_nor_ends_an_action(state: str) -> None:
    unknown = report(state, n=0) if state == "no_data" else report(state, bad=10)
    for rules, bad in ((FREEZE, 10), (BURN, 61), (PAGE, 300)):
        begun = after(None, rules, report("burning_page", bad))
        assert len(actions(begun)) == 1
        held = after(begun, rules, unknown)
        assert actions(held) == actions(begun)
        assert held.changes == []
        assert actions(after(None, rules, unknown)) == []


def test_a_stale_watermark_neither_begins_nor_ends_an_action() -> None:
    begun = after(None, FREEZE, report(bad=10))
    stale = replace(report(bad=0), watermark_stale="no label for 9 h")
    assert actions(after(begun, FREEZE, stale)) == ["freeze_rollout"]
    assert actions(after(None, FREEZE, replace(report(bad=10), watermark_stale="no label for 9 h"))) == []


def test_a_page_is_looked_for_in_the_view_that_pages_and_the_budget_in_the_one_that_holds_it() -> None:
    fast = replace(report("burning_page", 300), severities=("page",), views=("fast", "matured"))
    matured = replace(report("ok", 5, view="matured"), severities=("ticket",), views=("fast", "matured"))
    assert actions(after(None, PAGE + FREEZE, fast, matured)) == ["tighten_mode"]
    spent = replace(report("exhausted", 20, view="matured"), severities=("ticket",))
    calm = replace(report("ok", 0), severities=("page",))
    found = after(None, PAGE + FREEZE, calm, spent)
    assert actions(found) == ["freeze_rollout"]
    assert "(matured)" in found.active["answers"][0].evidence


def test_a_spent_budget_does_not_end_its_action_because_it_pages_as_well() -> None:
    rules = "    - {action: require_approval, when: {state: exhausted}}\n"
    begun = after(None, rules, report("exhausted", 30))
    assert actions(after(begun, rules, report("burning_page", 300))) == ["require_approval"]
    assert actions(after(begun, rules, report("ok", 1))) == []


def test_an_action_lasts_at_least_as_long_as_it_was_told_to() -> None:
    rules = PAGE.replace("when:", "atLeast: 1h, when:")
    begun = after(None, rules, report("burning_page", 300))
    assert actions(after(begun, rules, report(), now=NOW + 3_599)) == ["tighten_mode"]
    assert actions(after(begun, rules, report(), now=NOW + 3_600)) == []


def test_all_conditions_of_a_rule_must_hold_and_one_that_is_clear_ends_it() -> None:
    rules = "    - {action: notify, when: {budget: {below: 0.5}, state: burning_page}}\n"
    assert actions(after(None, rules, report("ok", 10))) == []
    begun = after(None, rules, report("burning_page", 300))
    assert actions(begun) == ["notify"]
    assert actions(after(begun, rules, report("ok", 10))) == []


def test_strata_are_judged_each_by_itself_where_it_is_asked_for() -> None:
    refunds = stratum("exhausted", Counts(90, 10), 0.99, "task_class=refund", {"task_class": "refund"})
    shown = replace(report(), strata=[report().strata[0], refunds])
    each = POLICY.replace("  rules:", "  strata: each\n  rules:")
    found = evaluate([read(FREEZE, each)], [shown], {}, NOW)
    assert [action.stratum_key for action in found.active["answers"]] == ["task_class=refund"]
    assert "in task_class=refund" in found.active["answers"][0].evidence
    assert evaluate([read(FREEZE)], [shown], {}, NOW).active == {}
    # Without events in the period the stratum leaves the report, which says nothing about it.
    assert evaluate([read(FREEZE, each)], [report()], found.active, NOW).active.keys() == {"answers"}


def test_an_action_ends_with_its_policy_its_rule_and_its_slo() -> None:
    begun = after(None, FREEZE, report(bad=10)).active
    gone = [
        (evaluate([], [report(bad=10)], begun, NOW), "the policy desk is gone"),
        (evaluate([read(PAGE)], [report(bad=10)], begun, NOW), "does not ask for it any more"),
        (evaluate([read(FREEZE)], [], begun, NOW), "the SLO answers is gone"),
    ]
    for found, why in gone:
        assert found.active == {}
        (change,) = found.changes
        assert why in change.evidence


def test_evaluating_is_a_function_of_its_input() -> None:
    first = after(None, FREEZE + BURN, report(bad=70))
    assert after(None, FREEZE + BURN, report(bad=70)) == first
    assert after(first, FREEZE + BURN, report(bad=70)).changes == []


def test_a_policy_for_a_service_is_about_all_its_slos() -> None:
    head = POLICY.replace("slos: [answers]", "service: desk")
    found = evaluate([read(FREEZE, head)], [report(bad=10), report(bad=10, name="latency")], {}, NOW)
    assert found.active.keys() == {"answers", "latency"}
    other = [replace(report(bad=10), service="shop")]
    assert evaluate([read(FREEZE, head)], other, {}, NOW).active == {}


@pytest.mark.parametrize(
    ("right", "wrong", "line", "path", "what"),
    [
        ("freeze_rollout", "freeze", 8, "spec.rules[0].action", "'freeze' is not known"),
        ("below: 0.1", "below: 25", 8, "spec.rules[0].when.budget.below", "always holds"),
        ("until: 0.25", "until: 0.05", 8, "spec.rules[0].when.budget.until", "end before it begins"),
        ("until: 0.25", "til: 0.25", 8, "spec.rules[0].when.budget.til", "unknown"),
        ("until: 0.25", "until: .nan", 8, "spec.rules[0].when.budget.until", "number"),
        ("{budget: {below: 0.1, until: 0.25}}", "{}", 8, "spec.rules[0].when", "no condition"),
        ("{budget: {below: 0.1, until: 0.25}}", "{state: [ok]}", 8, "spec.rules[0].when.state[0]", "'ok' is not known"),
        (
            "{budget: {below: 0.1, until: 0.25}}",
            "{burn: {above: 0, window: 6h}}",
            8,
            "spec.rules[0].when.burn.above",
            "no burn rate",
        ),
        (
            "{budget: {below: 0.1, until: 0.25}}",
            "{burn: {above: 6, window: six}}",
            8,
            "spec.rules[0].when.burn.window",
            "not a duration",
        ),
        ("freeze_rollout,", "tighten_mode,", 8, "spec.rules[0].mode", "needs the mode"),
        ("freeze_rollout,", "freeze_rollout, mode: refuse,", 8, "spec.rules[0].mode", "has no mode"),
        ("slos: [answers]", "service: desk\n  slos: [answers]", 5, "spec", "both are there"),
        ("  slos: [answers]\n", "", 5, "spec", "neither is there"),
        (FREEZE, FREEZE + FREEZE.replace("0.1", "0.2"), 7, "spec.rules", "stands twice"),
    ],
)
def test_a_mistake_in_a_policy_is_named_by_place_and_line(
    right: str, wrong: str, line: int, path: str, what: str
) -> None:
    text = POLICY + FREEZE
    assert right in text
    (document,) = read_documents(text.replace(right, wrong))
    found = policy.read(document, "x.yaml")
    assert isinstance(found, list), found
    assert [(dotted(item.path), document.line(item.path)) for item in found if what in item.what] == [(path, line)], (
        found
    )
    assert all(item.remedy for item in found)


def test_an_action_ends_when_the_whole_budget_is_left_whatever_its_threshold() -> None:
    rule = "    - {action: notify, when: {budget: {below: 0.98}}}\n"
    begun = evaluate([read(rule)], [report(bad=3)], {}, NOW).active
    assert begun
    assert evaluate([read(rule)], [report(bad=0)], begun, NOW + 60).active == {}
    (document,) = read_documents(POLICY + rule.replace("0.98", "0.98, until: 1.03"))
    found = policy.read(document, "x.yaml")
    assert isinstance(found, list)
    assert ["never end" in wrong.what for wrong in found] == [True]


def test_what_does_not_fit_the_slos_is_told() -> None:
    known = {"answer": ("desk", 0.9, "28d")}
    (wrong,) = policy.check_names({"spec": {"slos": ["answers"]}}, ["answer"], ["desk"])
    assert (wrong.path, "did you mean answer?" in wrong.remedy) == (("spec", "slos", 0), True)
    head = POLICY.replace("slos: [answers]", "service: desk")
    beyond = "    - {action: notify, when: {burn: {above: 10, window: 6h}}}\n"
    (wrong,) = policy.check(read(beyond, head), known)
    assert "can never be above 10" in wrong.what
    (wrong,) = policy.check(read(beyond.replace("6h", "7h").replace("10", "9"), head), known)
    assert "no window 7h" in wrong.what
    (wrong,) = policy.check_names({"spec": {"service": "shop"}}, ["answer"], ["desk"])
    assert wrong.path == ("spec", "service")
    assert list(policy.check(read(BURN, head), known)) == []


def test_the_examples_of_the_docs_are_read_and_do_what_the_page_says() -> None:
    first, second = re.findall(r"```yaml\n(.*?)```", DOCS.read_text(), re.DOTALL)
    (document,) = read_documents(first)
    found = policy.read(document, "docs")
    assert isinstance(found, ErrorBudgetPolicy), found
    assert {rule.action for rule in found.rules} == set(policy_schema.ACTIONS)
    shown = replace(report(bad=46, n=5_000, name="support-desk-availability"), service="support-desk")
    evaluated = evaluate([found], [shown], {}, NOW)
    sentences = [action.evidence for action in evaluated.active["support-desk-availability"]]
    (quoted,) = re.findall(r"^> (.*)$", DOCS.read_text(), re.MULTILINE)
    assert quoted in sentences
    (document,) = read_documents(second)
    assert isinstance(adjustments.read(document, "docs"), adjustments.BudgetAdjustment)
    text = DOCS.read_text()
    assert all(f"`{name}`" in text for name in (*policy_schema.ACTIONS, *policy_schema.MODES, *policy_schema.STATES))


def test_every_action_report_is_hashable_evidence_of_its_rule() -> None:
    found = after(None, FREEZE + BURN + PAGE, report("burning_page", 300))
    assert [type(action) for action in found.active["answers"]] == [ActionReport] * 3
    assert [action.mode for action in found.active["answers"]] == [None, None, "human_approval"]
