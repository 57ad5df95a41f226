"""Graded runs of a real lake: who is held against whom, and what a profile makes of the audits."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from support.profiles import SPEC
from support.slo_events import NOW, SECOND, Row, Tables
from surefoot.processors.evidence.building import build_profile
from surefoot.processors.evidence.checklist import verify
from surefoot.processors.evidence.grading.adjudication import check
from surefoot.processors.evidence.grading.reading import GradedRun, read_graded
from surefoot.processors.evidence.grading.report import report
from surefoot.processors.evidence.grading.worksheet import Line
from surefoot.processors.evidence.groups import GroupsError
from surefoot.processors.evidence.profile import Profile
from surefoot.processors.evidence.template import Spec
from surefoot.processors.lake import Lake
from surefoot.processors.yaml_models import parse_model

TODAY = datetime.fromtimestamp(NOW, UTC).date()


@pytest.fixture
def tables(tmp_path: Path) -> Tables:
    return Tables(Lake.open(tmp_path / "lake"))


def run(name: str, task: str, **more: Any) -> Row:
    row: Row = {
        "run_id": name,
        "trace_id": f"trace-{name}",
        "span_id": f"span-{name}",
        "service_name": "desk",
        "task_id": task,
        "task_class": "reconcile",
        "consequence_class": "reversible",
        "run_group": "r1",
        "outcome": "ok",
        "mode": "autonomous",
        "versions": [("model", "m-1")],
        "ended_us": NOW * SECOND,
        "started_at": (NOW - 5) * SECOND,
        "duration_ns": 5_000_000_000,
    }
    return row | more


def verdict(of: str, said: str, kind: str = "model", **more: Any) -> Row:
    row: Row = {
        "verdict_id": f"{kind}-{more.get('name', 'outcome')}-{of}-{said}",
        "run_id": of,
        "trace_id": f"trace-{of}",
        "kind": "outcome",
        "name": "outcome",
        "verdict": said,
        "finality": "final",
        "grader_kind": kind,
        "grader_name": {"model": "judge", "human": "ann", "executable": "tests"}[kind],
        "grader_version": "1",
        "occurred_us": NOW * SECOND,
    }
    return row | more


def audited(of: str, said: str, **more: Any) -> Row:
    return verdict(of, said, "human", name="audited outcome", **more)


def graded(tables: Tables, **where: str) -> list[GradedRun]:
    with tables.lake.connect() as con:
        return read_graded(con, TODAY - timedelta(days=2), TODAY, where=where)


def built(tables: Tables) -> Profile:
    data = yaml.safe_load(SPEC)
    del data["published"]
    data["select"] = {"since": (TODAY - timedelta(days=2)).isoformat()}
    return build_profile(parse_model(yaml.safe_dump(data), Spec, "spec.yaml"), tables.lake.path, float(NOW))


def test_what_each_verdict_is_held_against(tables: Tables) -> None:
    tables.hold(
        runs=[run(name, name) for name in "abcd"] + [run("x", "x", outcome="refused")],
        verdicts=[
            *(verdict(name, "pass") for name in "abcdx"),
            verdict("b", "fail", "executable"),
            audited("c", "fail"),
            verdict("c", "pass", "executable"),
            audited("d", "pass"),
            audited("d", "unresolved", supersedes="human-audited outcome-d-pass", occurred_us=NOW * SECOND + 5),
        ],
    )
    found = {one.run_id: one for one in graded(tables)}
    assert sorted(found) == ["a", "b", "c", "d"]
    of_judge = {name: next(said for said in one.verdicts if said.grader == "judge") for name, one in found.items()}
    references = {name: found[name].reference(said) for name, said in of_judge.items()}
    assert references["a"] is None
    assert {name: said.verdict for name, said in references.items() if said is not None} == {
        "b": "fail",
        "c": "fail",
        "d": "unresolved",
    }
    effective = found["b"].effective
    assert effective is not None
    assert effective.grader == "tests"
    assert graded(tables, task_class="other") == []
    with pytest.raises(GroupsError, match="no column"):
        graded(tables, task="a")


def hold_audited(tables: Tables) -> None:
    """60 tasks of three runs: the judge accepts all but those of 10; a person agrees but for task 0."""
    runs, told = [], []
    for task in range(60):
        for number in range(3):
            name = f"{task:02}-{number}"
            runs.append(run(name, f"t{task:02}", repetition=number))
            told.append(verdict(name, "fail" if task >= 50 else "pass"))
        told.append(audited(f"{task:02}-0", "pass" if 0 < task < 50 else "fail"))
    tables.hold(runs=runs, verdicts=told)


def test_a_profile_counts_the_grader_and_corrects_by_the_audit(tables: Tables) -> None:
    hold_audited(tables)
    made = built(tables)
    (audit,) = made.grader.audits
    assert (audit.task_class, audit.groups) == ("reconcile", 60)
    assert (audit.accepted.runs, audit.accepted.audited, audit.accepted.right) == (150, 50, 49)
    assert (audit.rejected.runs, audit.rejected.audited, audit.rejected.right) == (30, 10, 10)
    assert made.grader.decision_grade
    assert made.grader.agreement["adjudicated"] == 60
    assert (
        made.evidence.counts[0].outcomes[-1].c == 3
    )  # task 0 counts as graded: the audit measures, it does not replace
    found = made.indicators.outcome_yield
    assert found.value == pytest.approx(50 / 60 * 49 / 50)
    assert "as graded 0.833333" in (found.reason or "")
    assert made.indicators.grader_false_accept_rate.value == pytest.approx(3 / 33)
    (interval,) = made.indicators.confidence_intervals["outcome_yield"]
    assert interval.method == "betting_and_audit"
    assert {one.kind for one in made.evidence.graders or []} == {"model"}
    answers = {one.question: one.answer for one in verify(made)}
    assert answers["Grader agreement with human adjudication is measured."] == "yes"
    assert "no" not in [one.answer for one in verify(made)][:2]


def test_a_report_by_grader_and_task_class(tables: Tables) -> None:
    hold_audited(tables)
    (one,) = report(graded(tables))
    assert (one.task_class, one.grader, one.version, one.kind) == ("reconcile", "judge", "1", "model")
    assert (one.graded, one.against, one.k) == (180, {"audit": 60}, 3)
    assert one.rates.agreement.value == pytest.approx((150 * 49 / 50 + 30) / 180)
    assert one.strict.value == pytest.approx(0.8166, abs=0.02)
    assert one.strict.intervals
    assert one.decision_grade
    (strict,) = report(graded(tables), budget=0.01)
    assert not strict.decision_grade
    assert "budget of 0.01" in strict.reasons[-1]


def test_a_report_without_audits(tables: Tables) -> None:
    tables.hold(
        runs=[run("a", "a"), run("b", "b", task_class="refund")],
        verdicts=[verdict("a", "pass"), verdict("b", "unresolved")],
    )
    first, second = report(graded(tables))
    assert not first.decision_grade
    assert "none of its verdicts was audited" in first.reasons[0]
    assert (second.graded, second.grader_unresolved, second.graded_yield) == (0, 1, None)
    assert report([]) == []


def test_answers_are_checked_against_the_lake(tables: Tables) -> None:
    tables.hold(
        runs=[run(name, name) for name in "abc"],
        verdicts=[*(verdict(name, "pass") for name in "abc"), audited("b", "pass"), audited("c", "fail")],
    )
    runs = {one.run_id: one for one in graded(tables)}
    lines = [
        Line(2, "a", "fail", "wrong sum"),
        Line(3, "b", "pass", None),
        Line(4, "c", "pass", None),
        Line(5, "z", "pass", None),
        Line(6, "a", None, None),
    ]
    found = check(lines, runs)
    assert [(one.run.run_id, one.verdict, one.comment, one.supersedes) for one in found.answers] == [
        ("a", "fail", "wrong sum", None)
    ]
    assert (found.stored, found.open) == (1, 1)
    assert [one.number for one in found.bad] == [4, 5]
    assert "ann said fail" in found.bad[0].why
    assert "--replace" in found.bad[0].why
    assert "no graded run z" in found.bad[1].why
    replaced = check(lines[2:3], runs, replace=True)
    assert replaced.answers[0].supersedes == "human-audited outcome-c-fail"


def test_people_who_disagree_have_decided_nothing(tables: Tables) -> None:
    second = {"verdict_id": "second", "grader_name": "bob"}
    tables.hold(
        runs=[run(name, name) for name in "ab"],
        verdicts=[
            *(verdict(name, "pass") for name in "ab"),
            audited("a", "pass"),
            audited("a", "fail", **second, occurred_us=(NOW + 60) * SECOND),
            audited("b", "pass"),
            audited("b", "fail", **second | {"verdict_id": "b2"}, finality="provisional"),
        ],
    )
    runs = {one.run_id: one for one in graded(tables)}
    assert runs["a"].audit is not None
    assert runs["b"].audit is not None
    assert (runs["a"].audit.verdict, runs["b"].audit.verdict) == ("unresolved", "pass")
    (found,) = report(runs.values())
    assert (found.rates.unresolved, found.rates.audited, found.disputed) == (1, 1, 1)
    (bad,) = check([Line(2, "a", "pass", None)], runs).bad
    assert "ann said pass" in bad.why
    assert "bob said fail" in bad.why
    (answer,) = check([Line(2, "a", "pass", None)], runs, replace=True).answers
    assert answer.supersedes == "second"
