"""The memory of which files hold which traces: it may name too many files, never too few."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, timedelta

import pyarrow as pa
import pytest

from surefoot.processors.lake import Lake, replace_traces, settle_traces
from surefoot.processors.lake import replace as replace_module
from surefoot.processors.lake.compact import compact
from surefoot.processors.lake.trace_files import TraceFiles

Rows = Callable[..., pa.Table]
Traces = Callable[[Lake], list[str]]
DAY = date(2026, 11, 30)


def _named(lake: Lake, where: TraceFiles, *traces: str) -> int:
    lake.table("runs").refresh()
    return len(where.find(traces, lake.table("runs").files().values()))


def test_only_files_with_the_traces_are_named_also_after_a_merge(lake: Lake, runs: Rows) -> None:
    where = TraceFiles(lake.table("runs"))
    lake.commit("runs", runs("a", "b", day=DAY), app_id="w", app_version=0)
    lake.commit("runs", runs("b", day=DAY), app_id="w", app_version=1)
    assert [_named(lake, where, *traces) for traces in ("a", "b", "c", "ac", "")] == [1, 2, 0, 1, 0]
    compact(lake.table("runs"), 1 << 20, min_files=2)
    assert [_named(lake, where, *traces) for traces in ("a", "b", "c")] == [1, 1, 0]


def test_files_beyond_the_budget_are_always_named_oldest_first(lake: Lake, runs: Rows) -> None:
    where = TraceFiles(lake.table("runs"), budget=1)
    lake.commit("runs", runs("a", day=DAY), app_id="w", app_version=0)
    lake.commit("runs", runs("b", day=DAY - timedelta(days=1)), app_id="w", app_version=1)
    assert [_named(lake, where, *traces) for traces in ("a", "b", "c")] == [2, 1, 1]


def test_resting_rows_stay_in_their_files_until_their_traces_change_or_settle(
    lake: Lake, runs: Rows, traces_in: Traces
) -> None:
    def open_files() -> set[str]:
        return {path for path, file in lake.table("runs").files().items() if file.is_open}

    where = TraceFiles(lake.table("runs"))
    for version, trace in enumerate("abc"):
        rows = runs(trace, trace + "2", settled=False)
        replace_traces(lake, "runs", [trace, trace + "2"], None, None, "d", version, resting=rows, where=where)
    assert len(open_files()) == 3
    before = open_files()
    replace_traces(lake, "runs", ["d"], runs("d", settled=False), None, "d", 3, where=where)
    replace_traces(lake, "runs", ["a"], runs("a", settled=False), None, "d", 4, where=where)
    assert len(before & open_files()) == 2
    for _ in range(2):  # again after a crash
        settled = settle_traces(lake, "runs", ["a2", "b"], "d", 5, where=where)
    assert settled.num_rows in (0, 2)
    assert traces_in(lake) == ["a", "a2", "b", "b2", "c", "c2", "d"]
    rows = lake.read("runs", ["trace_id"], "settled")["trace_id"].to_pylist()
    assert sorted(rows) == ["a2", "b"]
    assert len(before & open_files()) == 1


def test_too_many_resting_files_are_merged_with_their_neighbours(
    lake: Lake, runs: Rows, traces_in: Traces, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replace_module, "_MOST_RESTING", 4)
    monkeypatch.setattr(replace_module, "_MERGED", 3)
    for version in range(8):
        trace = str(version)
        replace_traces(lake, "runs", [trace], None, None, "d", version, resting=runs(trace, settled=False))
        files = lake.table("runs").files().values()
        assert len(files) <= 4
        assert sum(file.rows for file in files) == version + 1
    assert traces_in(lake) == [str(number) for number in range(8)]
