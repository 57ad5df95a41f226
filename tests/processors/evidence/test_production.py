"""Production in declared blocks, from the lake to the boundary."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from support.profiles import SPEC, boundary
from support.slo_events import NOW, SECOND, Row, Tables
from surefoot.processors.boundary.check import check_boundary
from surefoot.processors.evidence.build import BuildError
from surefoot.processors.evidence.building import build_profile
from surefoot.processors.evidence.checklist import verify
from surefoot.processors.evidence.profile import IntervalPart, Profile
from surefoot.processors.evidence.template import Spec
from surefoot.processors.lake import Lake
from surefoot.processors.yaml_models import FileError, parse_model

TODAY = datetime.fromtimestamp(NOW, UTC).date()
DAY = 86_400
YIELD = {"indicator": "outcome_yield", "comparison": ">=", "bound": 0.7}
BY_DAY = {"blocks": "time", "hours": 24, "declared": "2026-01-01"}


@pytest.fixture
def tables(tmp_path: Path) -> Tables:
    return Tables(Lake.open(tmp_path / "lake"))


def run(name: str, ended: int, /, **more: Any) -> tuple[Row, Row]:
    """A run of production that is a task of its own, and its verdict."""
    of = {"run_id": name, "trace_id": f"trace-{name}"}
    made: Row = {
        **of,
        "span_id": f"span-{name}",
        "service_name": "desk",
        "environment": "production",
        "task_id": f"task {name}",
        "task_class": "reconcile",
        "consequence_class": "reversible",
        "outcome": "ok",
        "mode": "autonomous",
        "versions": [("model", "m-1")],
        "ended_us": ended * SECOND,
        "started_at": (ended - 5) * SECOND,
        "duration_ns": 5_000_000_000,
    }
    told: Row = {
        **of,
        "verdict_id": f"outcome-{name}",
        "kind": "outcome",
        "name": "outcome",
        "verdict": "pass",
        "finality": "final",
        "grader_kind": "executable",
        "grader_name": "tests",
        "grader_version": "1",
        "occurred_us": ended * SECOND,
    }
    return made | more, told


def live(tables: Tables, days: int, bad: frozenset[tuple[int, int]] = frozenset()) -> None:
    """Ten runs a day; ``bad`` are (day, run)."""
    rows = []
    for day in range(days):
        for number in range(10):
            made, told = run(f"d{day:02}-{number}", NOW - day * DAY)
            rows.append((made, {**told, "verdict": "fail" if (day, number) in bad else "pass"}))
    tables.hold(runs=[made for made, _ in rows], verdicts=[told for _, told in rows])


def built(tables: Tables, unit: dict[str, Any] | None) -> Profile:
    data = yaml.safe_load(SPEC)
    del data["published"]
    data["select"] = {"since": (TODAY - timedelta(days=60)).isoformat()}
    data["repeat_protocol"]["k"] = {"value": 1}
    if unit is not None:
        data["repeat_protocol"]["clustering_unit"] = unit
    return build_profile(parse_model(yaml.safe_dump(data), Spec, "spec.yaml"), tables.lake.path, float(NOW))


def interval(made: Profile, name: str = "outcome_yield") -> IntervalPart:
    return made.indicators.confidence_intervals[name][0]


def cleared(made: Profile) -> bool:
    least = {"groups": 30, "runs": 30, "k": 1, "verdict_coverage": 0.9}
    rule = {"rule": "all", "multiplicity": "intersection_union", "purpose": "a test", "declared": "2026-01-01"}
    validity = {**boundary().validity.model_dump(mode="json"), "versions": made.evidence.versions}
    check = boundary(gates=[YIELD], minimum_evidence=least, joint_rule=rule, validity=validity)
    decision = check_boundary(made, check, date(2026, 10, 1))
    assert decision.cleared is (decision.reasons == [])
    return decision.cleared


def test_declared_blocks_can_clear_a_boundary(tables: Tables) -> None:
    live(tables, 20)
    made = built(tables, BY_DAY)
    found = interval(made)
    assert (found.method, found.unit, found.gate) == ("betting_by_time", "block", True)
    assert found.low is not None
    assert cleared(made)
    strict = interval(made, "strict_repeated_success_at_k")
    assert not strict.gate  # of repeated groups nothing is said
    (answer,) = (item for item in verify(made) if item.question.startswith("Production dependence"))
    assert answer.answer == "yes"


@pytest.mark.parametrize(
    ("days", "unit"),
    [(20, None), (20, {**BY_DAY, "declared": "2026-12-31"}), (8, BY_DAY)],
    ids=["not declared", "declared after the first run", "too few"],
)
def test_otherwise_production_is_descriptive(tables: Tables, days: int, unit: dict[str, Any] | None) -> None:
    live(tables, days)
    made = built(tables, unit)
    assert not interval(made).gate
    assert interval(made).note.startswith("descriptive")
    assert not cleared(made)


def test_a_bad_day_widens_more_than_ten_bad_runs(tmp_path: Path) -> None:
    alone, together = Tables(Lake.open(tmp_path / "a")), Tables(Lake.open(tmp_path / "b"))
    live(alone, 20, frozenset((day, 0) for day in range(10)))
    live(together, 20, frozenset((0, number) for number in range(10)))
    one, other = interval(built(alone, BY_DAY)), interval(built(together, BY_DAY))
    assert one.low is not None
    assert other.low is not None
    assert other.low < one.low - 0.02


def test_runs_that_do_not_say_their_block_are_one(tables: Tables) -> None:
    live(tables, 20)
    made = built(tables, {"blocks": "incident", "stratum": "incident", "declared": "2026-01-01"})
    (stratum,) = made.evidence.counts
    assert [(one.block, one.runs) for one in stratum.blocks["outcome_yield"]] == [("unknown", 200)]
    assert not interval(made).gate


def test_repeated_groups_have_no_blocks(tables: Tables) -> None:
    made, told = run("a-0", NOW, environment="staging", run_group="r1", repetition=0)
    tables.hold(runs=[made], verdicts=[told])
    with pytest.raises(BuildError, match="Remove repeat_protocol"):
        built(tables, BY_DAY)


def test_a_unit_that_says_half_is_refused() -> None:
    text = SPEC.replace("counts: []", "counts: [{n: 1, c: 1, groups: 1}]")
    half = text.replace("repeat_protocol:", "repeat_protocol:\n  clustering_unit: {blocks: time, declared: 2026-01-01}")
    with pytest.raises(FileError, match="hours"):
        parse_model(half, Spec, "spec.yaml")
