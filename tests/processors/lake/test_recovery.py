"""What a power failure leaves of a log, and what opening makes of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from surefoot.processors.lake import Lake

Rows = Callable[..., pa.Table]
Traces = Callable[[Lake], list[str]]


def _entry(lake: Lake, version: int) -> Path:
    return lake.path / "runs" / "_delta_log" / f"{version:020}.json"


@pytest.mark.parametrize("left", [0, 1, 0.5, 0.99])
def test_a_torn_last_entry_is_set_aside_and_the_retry_commits_again(
    lake: Lake, runs: Rows, traces_in: Traces, left: float
) -> None:
    lake.commit("runs", runs("a"), app_id="receiver", app_version=0)
    lake.commit("runs", runs("b"), app_id="receiver", app_version=1)
    entry = _entry(lake, 2)
    whole = entry.read_bytes()
    entry.write_bytes(whole[: left if isinstance(left, int) else int(len(whole) * left)])

    after = Lake.open(lake.path)
    assert len(after.repairs) == 1
    assert "00000000000000000002.json.torn" in after.repairs[0]
    assert traces_in(after) == ["a"]
    assert json.loads((lake.path / "runs" / "_current.json").read_text())["version"] == 1
    assert after.commit("runs", runs("b"), app_id="receiver", app_version=1).committed
    assert traces_in(after) == ["a", "b"]
    assert Lake.open(lake.path).repairs == ()


def test_a_whole_log_is_left_alone(lake: Lake, runs: Rows, traces_in: Traces) -> None:
    lake.commit("runs", runs("a"), app_id="receiver", app_version=0)
    lake.table("runs").checkpoint()
    after = Lake.open(lake.path)
    assert after.repairs == ()
    assert traces_in(after) == ["a"]


@pytest.mark.parametrize("torn", ["checkpoint", "pointer", "missing"])
def test_a_torn_checkpoint_gives_way_to_the_log_that_it_sums_up(
    lake: Lake, runs: Rows, traces_in: Traces, torn: str
) -> None:
    lake.commit("runs", runs("a"), app_id="receiver", app_version=0)
    table = lake.table("runs")
    table.checkpoint()
    checkpoint = table.log_path / f"{1:020}.checkpoint.parquet"
    pointer = table.log_path / "_last_checkpoint"
    if torn == "missing":
        checkpoint.unlink()
    else:
        victim = checkpoint if torn == "checkpoint" else pointer
        victim.write_bytes(victim.read_bytes()[:-7])

    after = Lake.open(lake.path)
    assert after.repairs != ()
    assert traces_in(after) == ["a"]
    assert after.transaction_version("runs", "receiver") == 0
    assert Lake.open(lake.path).repairs == ()
