"""Profiles of runs in a real lake."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from support.profiles import SPEC, boundary
from support.slo_events import NOW, SECOND, Row, Tables
from surefoot.processors.boundary.check import check_boundary
from surefoot.processors.evidence.build import BuildError
from surefoot.processors.evidence.building import build_profile
from surefoot.processors.evidence.profile import Profile, is_intact
from surefoot.processors.evidence.template import Spec
from surefoot.processors.lake import Lake
from surefoot.processors.yaml_models import parse_model

TODAY = datetime.fromtimestamp(NOW, UTC).date()
V1, V2 = [("model", "m-1")], [("model", "m-2")]


@pytest.fixture
def tables(tmp_path: Path) -> Tables:
    return Tables(Lake.open(tmp_path / "lake"))


def run(name: str, task: str, repetition: int, /, **more: Any) -> Row:
    row: Row = {
        "run_id": name,
        "trace_id": f"trace-{name}",
        "span_id": f"span-{name}",
        "service_name": "desk",
        "environment": "staging",
        "task_id": task,
        "task_class": "reconcile",
        "consequence_class": "reversible",
        "run_group": "r1",
        "repetition": repetition,
        "outcome": "ok",
        "mode": "autonomous",
        "versions": V1,
        "ended_us": NOW * SECOND,
        "started_at": (NOW - 5) * SECOND,
        "duration_ns": 5_000_000_000,
        "cost_usd": 0.5,
    }
    return row | more


def verdict(of: str, said: str, **more: Any) -> Row:
    row: Row = {
        "verdict_id": f"{more.get('kind', 'outcome')}-{more.get('name', 'outcome')}-{of}",
        "run_id": of,
        "trace_id": f"trace-{of}",
        "kind": "outcome",
        "name": "outcome",
        "verdict": said,
        "finality": "final",
        "grader_kind": "executable",
        "grader_name": "tests",
        "grader_version": "1",
        "occurred_us": NOW * SECOND,
    }
    return row | more


def built(tables: Tables, **select: Any) -> Profile:
    data = yaml.safe_load(SPEC)
    del data["published"]
    data["select"] = {"since": (TODAY - timedelta(days=2)).isoformat(), **select}
    return build_profile(parse_model(yaml.safe_dump(data), Spec, "spec.yaml"), tables.lake.path, float(NOW))


def three(task: str, said: str, **more: Any) -> tuple[list[Row], list[Row]]:
    """A group of three runs; ``said`` has p, f or - (no verdict) for each."""
    runs = [run(f"{task}-{number}", task, number, **more) for number in range(3)]
    words = {"p": "pass", "f": "fail"}
    return runs, [verdict(one["run_id"], words[word]) for one, word in zip(runs, said, strict=True) if word != "-"]


def hold(tables: Tables, *groups: tuple[list[Row], list[Row]], extra: list[Row] | None = None) -> None:
    runs = [row for group, _ in groups for row in group]
    tables.hold(runs=runs, verdicts=[row for _, told in groups for row in told] + (extra or []))


def test_what_is_counted_and_cited(tables: Tables) -> None:
    signatures = [
        verdict(f"c-{number}", "unresolved", name="outcome signature", kind="other", label="same")
        for number in range(3)
    ]
    hold(tables, three("a", "ppp"), three("b", "pfp"), three("c", "fff"), extra=signatures)
    made = built(tables)
    found, evidence = made.indicators, made.evidence
    assert is_intact(made)
    assert found.outcome_yield.value == pytest.approx(5 / 9)
    assert found.consistent_wrong_rate.value == pytest.approx(1 / 3)
    assert (evidence.groups, evidence.tally.runs, evidence.tally.judged) == (3, 9, 9)
    assert evidence.versions == {"model": "m-1"}
    assert evidence.environments == {"staging": 9}
    assert (evidence.cost_per_run, evidence.seconds_per_run) == (0.5, 5.0)
    assert evidence.first_run == datetime.fromtimestamp(NOW - 5, UTC).isoformat()
    assert str(made.repeat_protocol.evaluation_window).startswith(f"{evidence.first_run} to {evidence.last_run}")
    ids = sorted(f"{task}-{number}" for task in "abc" for number in range(3))
    text = "".join(f"{one}\n" for one in ids)
    assert evidence.run_ids_sha256 == f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"
    assert [(one.task_id, one.outcomes) for one in evidence.listed_groups] == [("c", "000"), ("b", "101"), ("a", "111")]
    assert evidence.listed_groups[1].run_ids == ["b-0", "b-1", "b-2"]
    assert set(evidence.table_versions) == {"runs", "tool_calls", "verdicts"}
    assert made.grader.decision_grade


def test_missing_verdicts_are_neither_good_nor_bad_and_a_crash_is_bad(tables: Tables) -> None:
    runs, told = three("a", "p--")
    runs[2] |= {"outcome": "error"}
    hold(tables, (runs, told))
    made = built(tables)
    tally = made.evidence.tally
    assert (tally.judged, tally.crashed, tally.runs) == (2, 1, 3)
    assert made.evidence.listed_groups[0].outcomes == "1?0"
    assert made.indicators.outcome_yield.value == 0.5
    assert made.indicators.strict_repeated_success_at_k.value is None  # k = 3, two are judged


def test_runs_that_nobody_judges_are_set_apart(tables: Tables) -> None:
    runs, told = three("a", "pp-")
    runs[2] |= {"outcome": "deferred"}
    hold(tables, (runs, told))
    made = built(tables)
    assert made.evidence.tally.excluded == 1
    assert made.evidence.listed_groups[0].outcomes == "11-"
    assert made.indicators.autonomous_coverage.value == pytest.approx(2 / 3)


def test_several_version_sets_are_refused_with_a_way_out(tables: Tables) -> None:
    hold(tables, three("a", "ppp"), three("b", "fff", versions=V2))
    with pytest.raises(BuildError, match=r"2 version sets: .*m-1.*m-2.*select\.versions"):
        built(tables)
    chosen = built(tables, versions={"model": "m-2"})
    assert chosen.indicators.outcome_yield.value == 0
    assert chosen.evidence.versions == {"model": "m-2"}


def test_nothing_selected_is_told(tables: Tables) -> None:
    hold(tables, three("a", "ppp"))
    with pytest.raises(BuildError, match=r"no run with a task id or run group .* with task_class other"):
        built(tables, where={"task_class": "other"})
    with pytest.raises(BuildError, match="no run"):
        built(tables, since="2026-01-01", until="2026-01-02")


def test_a_human_or_model_grader_is_not_decision_grade_until_it_is_measured(tables: Tables) -> None:
    runs, told = three("a", "ppp")
    hold(tables, (runs, [row | {"grader_kind": "model"} for row in told]))
    made = built(tables)
    assert not made.grader.decision_grade
    assert made.grader.reasons[0].startswith("grader error not measured: none of its verdicts was audited")


def test_production_work_of_the_class_is_counted(tables: Tables) -> None:
    outside = [
        run(f"live-{number}", "x", 0, run_group=None, task_id=None, environment="production") for number in range(4)
    ]
    hold(tables, three("a", "ppp"), (outside, []))
    assert built(tables).evidence.production_runs == {"reconcile": 4}


@pytest.mark.parametrize("live", [{"environment": "production"}, {"run_group": None, "repetition": None}])
def test_intervals_of_production_runs_are_descriptive_and_open_no_gate(tables: Tables, live: dict[str, Any]) -> None:
    groups = [three(f"t{number:02}", "ppp", **live) for number in range(40)]
    hold(tables, *groups)
    made = built(tables)
    assert made.evidence.tally.production == 120
    for (interval,) in made.indicators.confidence_intervals.values():
        assert not interval.gate
        assert interval.note.startswith("descriptive: 120 runs")
    gate = {"indicator": "outcome_yield", "comparison": ">=", "bound": 0.5}
    decision = check_boundary(made, boundary(gates=[gate]), TODAY)
    assert decision.gates[0].status == "undefined"
    assert "descriptive" in decision.gates[0].why


def test_the_same_evidence_gives_the_same_numbers(tables: Tables) -> None:
    hold(tables, three("a", "ppp"), three("b", "pfp"))
    first = built(tables)
    assert built(tables) == first


def test_a_task_of_two_groups_is_not_two_tasks(tables: Tables) -> None:
    again = [run(f"a2-{number}", "a", number, run_group="r2") for number in range(3)]
    hold(tables, three("a", "ppp"), three("b", "ppp"), (again, []))
    with pytest.raises(BuildError, match="1 tasks are in more than one group each, such as a"):
        built(tables)
    assert built(tables, where={"run_group": "r1"}).evidence.groups == 2


def test_runs_of_two_agents_are_refused(tables: Tables) -> None:
    hold(tables, three("a", "ppp", agent_name="first"), three("b", "ppp", agent_name="second"))
    with pytest.raises(BuildError, match="2 agents: first, second"):
        built(tables)
    assert built(tables, where={"agent_name": "first"}).evidence.groups == 1


def test_runs_that_were_done_again_are_counted(tables: Tables) -> None:
    runs, told = three("a", "pfp")
    again = run("a-again", "a", 1)
    hold(tables, (runs, told), ([again], [verdict("a-again", "pass")]))
    assert built(tables).evidence.tally.same_number == 2


@pytest.mark.parametrize(
    ("environment", "production"),
    [("production-eu", 3), ("Prod", 3), ("live", 3), ("pre-production", 0), ("nonprod", 0), ("delivery", 0)],
)
def test_which_environments_are_production(tables: Tables, environment: str, production: int) -> None:
    hold(tables, three("a", "ppp", environment=environment))
    assert built(tables).evidence.tally.production == production


def test_a_group_that_still_runs_is_told_and_clears_nothing(tables: Tables) -> None:
    runs, told = three("a", "pp-")
    runs[2] |= {"outcome": "running", "ended_us": None}
    others = [three(f"t{number}", "ppp") for number in range(40)]
    elsewhere = run("x", "x", 0, run_group="other", outcome="running", ended_us=None)
    ahead = run("y", "y", 0, ended_us=(NOW + 3 * 86_400) * SECOND)
    hold(tables, (runs, told), *others, ([elsewhere, ahead], []))
    made = built(tables, where={"run_group": "r1"}, versions={"model": "m-1"})
    assert made.evidence.left_out == {"still running": 1, "ended after the day of the build: a clock is wrong": 1}
    asked = boundary(gates=[{"indicator": "outcome_yield", "comparison": ">=", "bound": 0.5}])
    assert any(
        "1 of the selected runs were still running" in one.what for one in check_boundary(made, asked, TODAY).reasons
    )
    assert built(tables, where={"run_group": "r1"}, until=TODAY.isoformat()).evidence.left_out == {"still running": 1}
