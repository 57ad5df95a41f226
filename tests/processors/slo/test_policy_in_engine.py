"""From files in slos/ to what is demanded and recorded: a spent budget, an adjustment that gives it back, a restart."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from support.slo_events import Row, Tables
from surefoot.processors.lake import Lake
from surefoot.processors.settings import Settings
from surefoot.processors.slo import SloEngine

NOW = 1_773_144_000.0  # 2026-03-10 12:00:00 UTC
ANSWERS = """\
apiVersion: openslo/v1
kind: SLO
metadata: {name: answers}
spec:
  service: desk
  budgetingMethod: Occurrences
  timeWindow: [{duration: 28d, isRolling: true}]
  indicator:
    metadata: {name: answers}
    spec:
      ratioMetric:
        rawType: success
        raw: {metricSource: {type: surefoot, spec: {indicator: availability, where: {service_name: desk}}}}
  objectives: [{target: 0.9}]
"""
POLICY = """\
apiVersion: surefoot/v1
kind: ErrorBudgetPolicy
metadata: {name: desk}
spec:
  slos: [answers]
  rules:
    - {action: freeze_rollout, when: {budget: {below: 0.1, until: 0.25}}}
"""
MIGRATION = """\
apiVersion: surefoot/v1
kind: BudgetAdjustment
metadata: {name: migration}
spec: {slo: answers, from: 2026-03-10T10:00:00Z, to: 2026-03-10T11:00:00Z, author: Ada, reason: the ledger moves}
"""


def run(number: int, ago: float, outcome: str) -> Row:
    return {
        "run_id": f"r{number}",
        "trace_id": f"t{number}",
        "parent_run_id": None,
        "service_name": "desk",
        "task_class": "refund",
        "outcome": outcome,
        "ended_us": int((NOW - ago) * 1_000_000),
    }


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    settings = Settings(home=tmp_path)
    settings.slos_path.mkdir()
    (settings.slos_path / "answers.yaml").write_text(ANSWERS)
    (settings.slos_path / "policy.yaml").write_text(POLICY)
    outage = [run(number, 5_400 + number, "error") for number in range(20)]  # 10:29 to 10:30 UTC
    good = [run(100 + number, 40_000 + 60 * number, "ok") for number in range(100)]
    Tables(Lake.open(settings.lake_path)).hold(runs=[*outage, *good])
    return settings


def recorded(settings: Settings) -> list[tuple[Any, ...]]:
    with Lake.open(settings.lake_path).connect() as con:
        query = "SELECT policy, slo, action, epoch(started_at), epoch(ended_at) FROM slo_actions ORDER BY started_at, 5"
        return con.execute(query).fetchall()


def test_a_spent_budget_demands_and_an_adjustment_gives_it_back(settings: Settings) -> None:
    engine = SloEngine(Lake.open(settings.lake_path), settings)

    (spent,) = engine.step(NOW, set()).slos
    (action,) = spent.actions
    assert (action.policy, action.action, action.since) == ("desk", "freeze_rollout", NOW)
    assert "20 bad of n 120" in action.evidence
    assert recorded(settings)[0][:4] == ("desk", "answers", "freeze_rollout", NOW)

    (settings.slos_path / "migration.yaml").write_text(MIGRATION)
    (given_back,) = engine.step(NOW + 60, set()).slos
    period = given_back.strata[0].windows[-1].counts
    assert (period.good, period.bad, period.excluded) == (100, 0, 20)
    assert given_back.strata[0].error_budget_remaining_ratio == 1
    assert given_back.actions == []
    assert given_back.adjustments == ["2026-03-10 10:00 to 2026-03-10 11:00 UTC: the ledger moves (Ada)"]
    assert NOW + 60 in [row[4] for row in recorded(settings)]


def test_an_action_in_force_survives_a_restart_with_the_time_at_which_it_began(settings: Settings) -> None:
    SloEngine(Lake.open(settings.lake_path), settings).step(NOW, set())

    (again,) = SloEngine(Lake.open(settings.lake_path), settings).step(NOW + 600, set()).slos

    assert [action.since for action in again.actions] == [NOW]
    assert len(recorded(settings)) == 1


def test_a_mistake_in_a_policy_takes_no_slo_down(settings: Settings) -> None:
    (settings.slos_path / "policy.yaml").write_text(POLICY.replace("freeze_rollout", "freeze"))

    report = SloEngine(Lake.open(settings.lake_path), settings).step(NOW, set())

    assert [slo.slo for slo in report.slos] == ["answers"]
    (problem,) = report.problems
    assert "policy.yaml:7: spec.rules[0].action: 'freeze' is not known here" in problem


def test_a_mistake_in_a_file_ends_no_action_and_frees_no_other_slo(settings: Settings) -> None:
    other = ANSWERS.replace("{name: answers}", "{name: others}", 1)
    (settings.slos_path / "others.yaml").write_text(other)
    (settings.slos_path / "policy.yaml").write_text(POLICY.replace("[answers]", "[answers, others]"))
    engine = SloEngine(Lake.open(settings.lake_path), settings)
    both = {report.slo: [action.since for action in report.actions] for report in engine.step(NOW, set()).slos}
    assert both == {"answers": [NOW], "others": [NOW]}
    (settings.slos_path / "answers.yaml").write_text(ANSWERS + "oops: [")
    broken = engine.step(NOW + 60, set())
    assert broken.problems
    assert {report.slo: [action.since for action in report.actions] for report in broken.slos} == {"others": [NOW]}
    (settings.slos_path / "policy.yaml").write_text("{")
    assert [len(report.actions) for report in engine.step(NOW + 120, set()).slos] == [1]
    (settings.slos_path / "answers.yaml").write_text(ANSWERS)
    (settings.slos_path / "policy.yaml").write_text(POLICY.replace("[answers]", "[answers, others]"))
    mended = SloEngine(Lake.open(settings.lake_path), settings).step(NOW + 180, set())
    assert {report.slo: [action.since for action in report.actions] for report in mended.slos} == both
    (settings.slos_path / "policy.yaml").unlink()
    assert [report.actions for report in engine.step(NOW + 240, set()).slos] == [[], []]
    assert len(recorded(settings)) == 4  # each began once and ended once


def test_a_folder_that_is_away_ends_no_action_and_is_a_problem(settings: Settings, tmp_path: Path) -> None:
    engine = SloEngine(Lake.open(settings.lake_path), settings)
    engine.step(NOW, set())
    settings.slos_path.rename(tmp_path / "away")

    away = engine.step(NOW + 60, set())
    assert away.slos == []
    (problem,) = away.problems
    assert "no SLO file is there, and actions are in force on answers" in problem
    assert [row[4] for row in recorded(settings)] == [None]

    (tmp_path / "away").rename(settings.slos_path)
    (back,) = engine.step(NOW + 120, set()).slos
    assert [action.since for action in back.actions] == [NOW]
    (settings.slos_path / "policy.yaml").unlink()
    assert engine.step(NOW + 180, set()).slos[0].actions == []  # taken back, and a file says so
