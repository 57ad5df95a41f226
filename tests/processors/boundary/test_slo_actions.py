"""What an error-budget policy demands is read from its table: open demands of the named SLOs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa

from surefoot.processors.boundary.slo_actions import open_actions
from surefoot.processors.lake import Lake
from surefoot.processors.lake.schema import TABLES

BEGIN = 1_790_000_000_000_000


def row(action: str, **more: Any) -> dict[str, Any]:
    told = {"policy": "p", "slo": "desk", "stratum_key": "", "action": action, "started_at": BEGIN, "date": 20_717}
    return told | {"evidence": "budget spent"} | more


def lake_with(path: Path, *rows: dict[str, Any]) -> Lake:
    lake = Lake.open(path)
    lake.commit("slo_actions", pa.Table.from_pylist(list(rows), TABLES["slo_actions"]), app_id="test", app_version=1)
    return lake


def test_open_demands_of_the_named_slos(tmp_path: Path) -> None:
    lake = lake_with(
        tmp_path / "lake",
        row("tighten_mode", mode="checkpoint"),
        row("require_approval", slo="shop"),
        row("notify"),
        row("require_approval", policy="ended"),
        row("require_approval", policy="ended", ended_at=BEGIN + 1),
    )
    assert [(one.slo, one.policy, one.action, one.mode) for one in open_actions(lake, ["desk", "shop"])] == [
        ("desk", "p", "tighten_mode", "checkpoint"),
        ("shop", "p", "require_approval", "human_approval"),
    ]
    assert open_actions(lake, ["other"]) == []


def test_a_demand_that_begins_again_is_open(tmp_path: Path) -> None:
    lake = lake_with(
        tmp_path / "lake",
        row("require_approval"),
        row("require_approval", ended_at=BEGIN + 1),
        row("require_approval", started_at=BEGIN + 2),
    )
    (one,) = open_actions(lake, ["desk"])
    assert one.mode == "human_approval"
    assert one.evidence == "budget spent"


def test_one_policy_may_demand_two_modes_and_end_one(tmp_path: Path) -> None:
    lake = lake_with(
        tmp_path / "lake",
        row("tighten_mode", mode="checkpoint"),
        row("tighten_mode", mode="refuse"),
        row("tighten_mode", mode="refuse", ended_at=BEGIN + 1),
    )
    assert [one.mode for one in open_actions(lake, ["desk"])] == ["checkpoint"]
