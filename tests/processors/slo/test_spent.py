"""What the budget was spent on adds up, and incidents are the stretches in which it burned."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.slo_events import Row, Tables
from surefoot.processors.settings import Settings
from surefoot.processors.slo import SloEngine, load_slos
from surefoot.processors.slo.report import Counts
from surefoot.processors.slo.spent import Spending, spending

NOW = 1_773_144_000.0  # 2026-03-10 12:00:00 UTC
HOUR = 3600
SLO = """\
apiVersion: openslo/v1
kind: SLO
metadata: {name: desk}
spec:
  service: desk
  budgetingMethod: Occurrences
  timeWindow: [{duration: 28d, isRolling: true}]
  indicator:
    metadata: {name: mine}
    spec:
      ratioMetric:
        rawType: success
        raw: {metricSource: {type: surefoot, spec: {indicator: availability, by: [task_class]}}}
  objectives: [{target: 0.9}]
"""


def run(number: int, ago: float, outcome: str, version: str, task: str = "refund", weight: float | None = None) -> Row:
    return {
        "run_id": f"r{number}",
        "trace_id": f"t{number}",
        "parent_run_id": None,
        "agent_version": version,
        "task_class": task,
        "outcome": outcome,
        "sample_weight": weight,
        "ended_us": int((NOW - ago) * 1_000_000),
    }


def spent(tables: Tables, settings: Settings, rows: list[Row]) -> Spending:
    Path(settings.slos_path / "desk.yaml").write_text(SLO)
    tables.hold(runs=rows)
    (report,) = SloEngine(tables.lake, settings).step(NOW, set()).slos
    (slo,) = load_slos(settings.slos_path).slos
    with tables.lake.connect() as con:
        return spending(con, slo, report, 8)


def test_incidents_releases_and_strata_add_up(tables: Tables, settings: Settings) -> None:
    quiet = [run(n, n * HOUR, "ok", "v1") for n in range(1, 97)]
    first = [run(100 + n, 50 * HOUR + 60 * n, "error", "v1") for n in range(6)]
    second = [run(200 + n, 5 * HOUR + 600 * n, "error", "v2", "query") for n in range(3)]
    lonely = [run(300, 80 * HOUR + 30, "error", "v1")]
    found = spent(tables, settings, [*quiet, *first, *second, *lonely])
    assert [part.counts.bad for part in found.incidents] == [6, 3, 1]
    assert found.incidents[0].name == "2026-03-08 09:55 to 2026-03-08 10:01 UTC"
    assert found.incidents[-1].name == "outside of incidents"
    assert {part.name: part.counts for part in found.releases} == {
        "v1": Counts(good=96, bad=7),
        "v2": Counts(bad=3),
    }
    assert [(part.name, part.counts.bad) for part in found.strata] == [
        ("task_class=refund", 7),
        ("task_class=query", 3),
    ]
    # 10 of 106 are bad where 10.6 may be: 94 % of the budget are spent.
    for parts in (found.incidents, found.releases, found.strata):
        assert sum(part.of_bad or 0 for part in parts) == pytest.approx(1)
        assert sum(part.of_budget or 0 for part in parts) == pytest.approx(10 / 10.6)


def test_weights_count(tables: Tables, settings: Settings) -> None:
    rows = [run(n, n * HOUR, "ok", "v1", weight=2.0) for n in range(1, 50)]
    rows += [run(100, 60, "error", "v1", weight=9.0), run(101, 61, "error", "v2", weight=1.0)]
    found = spent(tables, settings, rows)
    assert [(part.name, part.of_bad) for part in found.releases] == [("v1", 0.9), ("v2", 0.1)]


def test_nothing_spent_is_no_share_of_nothing(tables: Tables, settings: Settings) -> None:
    found = spent(tables, settings, [run(1, 60, "ok", "v1")])
    assert [(part.of_bad, part.of_budget) for part in [*found.incidents, *found.releases]] == [(None, None)] * 2
    assert spent(tables, settings, []).releases == []
