"""A cycle: what arrives is derived, and the SLOs count it, by the hours that the deriver tells."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from support.traces import T0, agent, evaluation, put
from surefoot.processors.jobs import Jobs
from surefoot.processors.lake import Lake
from surefoot.processors.settings import Settings

SLO = """\
apiVersion: openslo/v1
kind: SLO
metadata: {name: graded}
spec:
  service: desk
  budgetingMethod: Occurrences
  timeWindow: [{duration: 28d, isRolling: true}]
  indicator:
    metadata: {name: mine}
    spec:
      ratioMetric:
        rawType: success
        raw: {metricSource: {type: surefoot, spec: {indicator: acceptable_outcome}}}
  objectives: [{target: 0.9}]
"""


def test_a_run_and_then_a_verdict_from_hours_later_reach_the_slos(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path)
    settings.slos_path.mkdir(parents=True)
    (settings.slos_path / "graded.yaml").write_text(SLO)
    lake = Lake.open(settings.lake_path)
    jobs = Jobs(lake, settings)

    def counts(now: float) -> dict[str, int]:
        jobs.cycle(now)
        told: dict[str, Any] = json.loads((settings.status_path / "slo.json").read_text())
        (fast,) = [slo for slo in told["slos"] if slo["view"] == "fast"]
        found: dict[str, int] = fast["strata"][0]["windows"][-1]["counts"]
        return found

    assert counts(T0)["good"] == 0
    put(lake, agent("desk"))
    after = counts(T0 + 20)
    assert (after["good"], after["bad"]) == (1, 0)
    put(lake, evaluation("desk", 3 * 3600, attributes={"score.label": "fail"}))
    after = counts(T0 + 3 * 3600 + 10)
    assert (after["good"], after["bad"]) == (0, 1)
