"""The deriver on a real lake: arrivals, settlement, late spans, verdicts, restarts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support.traces import T0, agent, chat, put, run_started, tool
from surefoot.processors.genai.derive import Deriver
from surefoot.processors.lake import Lake
from surefoot.processors.settings import Settings

Rows = Callable[[str], list[dict[str, Any]]]


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(home=tmp_path)


@pytest.fixture
def lake(settings: Settings) -> Lake:
    return Lake.open(settings.lake_path)


@pytest.fixture
def rows(lake: Lake) -> Rows:
    return lambda table: lake.read(table).to_pylist()


def test_a_run_arrives_children_first_and_settles(lake: Lake, settings: Settings, rows: Rows) -> None:
    deriver = Deriver(lake, settings)
    put(lake, run_started("desk"), tool("search", "desk"), chat("c", "desk", input_tokens=11, output_tokens=7))
    derived = deriver.step(T0 + 5)
    (run,) = rows("runs")
    assert (run["outcome"], run["ended_at"], run["tool_calls"], run["settled"]) == ("running", None, 1, False)
    assert derived.rows == {"runs": 1, "tool_calls": 1, "model_calls": 1, "verdicts": 0}

    put(lake, agent("desk"))
    derived = deriver.step(T0 + 15)
    (run,) = rows("runs")
    assert (run["outcome"], run["tool_calls"], run["input_tokens"], run["settled"]) == ("ok", 1, 11, False)
    assert derived.dirty_dates == {run["date"]}
    assert derived.next_deadline == T0 + 10 + settings.settle_seconds

    assert deriver.step(derived.next_deadline - 1).changed_traces == frozenset()
    deriver.step(derived.next_deadline)
    (run,) = rows("runs")
    assert run["settled"]
    assert deriver.step(derived.next_deadline + 9e6).next_deadline is None
