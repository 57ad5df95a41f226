"""What an engine counts by the hour, from the files about its runs, is what a new engine counts by the date."""

from __future__ import annotations

from typing import Any

import pytest

from support.slo_events import NOW, SECOND, Row, Tables, table
from surefoot.processors.settings import Settings
from surefoot.processors.slo import SloEngine

SLO = """\
apiVersion: openslo/v1
kind: SLO
metadata: {{name: {name}}}
spec:
  service: desk
  budgetingMethod: Occurrences
  timeWindow: [{{duration: 4d, isRolling: true}}]
  indicator:
    metadata: {{name: mine}}
    spec:
      ratioMetric:
        rawType: success
        raw: {{metricSource: {{type: surefoot, spec: {{indicator: {indicator}}}}}}}
  objectives: [{{target: 0.9}}]
"""
DAY = 86_400
INDICATORS = ("acceptable_outcome", "policy_compliance", "intervention_success", "autonomous_coverage", "availability")


def run(name: str, ago: int) -> Row:
    return {"run_id": name, "trace_id": "t", "service_name": "desk", "outcome": "ok", "mode": "autonomous",
            "ended_us": (NOW - ago) * SECOND}  # fmt: skip


def verdict(name: str, run_id: str, kind: str, verdict: str, ago: int, supersedes: str | None = None) -> Row:
    return {"verdict_id": name, "run_id": run_id, "name": "judge", "kind": kind, "verdict": verdict,
            "finality": "final", "grader_kind": "human", "occurred_us": (NOW - ago) * SECOND,
            "supersedes": supersedes}  # fmt: skip


def held(tables: Tables) -> list[dict[str, Any]]:
    rows = tables.lake.read("slo_minutes").drop_columns(["computed_at"]).to_pylist()
    return sorted(rows, key=lambda row: (row["slo"], row["view"], row["minute"]))


@pytest.mark.parametrize("change", ["superseded from another run", "a call was refused", "a verdict days before"])
def test_a_row_in_a_file_of_another_date_changes_an_event_of_a_dirty_hour(
    tables: Tables, settings: Settings, change: str
) -> None:
    for indicator in INDICATORS:
        (settings.slos_path / f"{indicator}.yaml").write_text(
            SLO.format(indicator=indicator, name=indicator.replace("_", "-"))
        )
    first = [verdict(f"v-{kind}", "r0", kind, "pass", 60) for kind in ("outcome", "process")]
    tables.hold(runs=[run("r0", 60), run("r1", 2 * DAY)], verdicts=first, tool_calls=[])
    engine = SloEngine(tables.lake, settings)
    engine.step(NOW, set())
    before = held(tables)
    hour = {(NOW - 60) // 3600}
    engine.step(NOW + 100, set(), hour)
    assert held(tables) == before
    new: dict[str, list[Row]] = {
        "superseded from another run": {"verdicts": [verdict("v9", "r1", "outcome", "fail", DAY, "v-outcome")]},
        "a call was refused": {
            "tool_calls": [{"run_id": "r0", "trace_id": "t", "outcome": "refused", "ended_us": (NOW - DAY) * SECOND}]
        },
        "a verdict days before": {"verdicts": [{**verdict("v8", "r0", "process", "fail", 3 * DAY), "name": "b"}]},
    }[change]
    for name, rows in new.items():
        tables.lake.commit(name, table(name, rows), app_id="new", app_version=1)
    engine.step(NOW + 200, set(), hour)
    after = held(tables)
    assert after != before
    SloEngine(tables.lake, settings).step(NOW + 300, {row["date"] for row in after})
    assert [row for row in held(tables) if row["minute"].timestamp() // 3600 in hour] == [
        row for row in after if row["minute"].timestamp() // 3600 in hour
    ]
