"""Replacement by trace and by date, against plain Python."""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from collections.abc import Callable
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from surefoot.processors.errors import RowsError
from surefoot.processors.lake import Lake, replace_dates, replace_traces
from surefoot.processors.lake.schema import TABLES

Rows = Callable[..., pa.Table]
Traces = Callable[[Lake], list[str]]
DAY = date(2026, 11, 30)

TRACES = ["t0", "t1", "t2", "t3", "t4"]
ROW = st.tuples(st.integers(0, 2), st.integers(0, 3))  # days before DAY, a value
STEP = st.tuples(
    st.dictionaries(st.sampled_from(TRACES), st.tuples(st.booleans(), st.lists(ROW, max_size=3)), max_size=4),
    st.booleans(),  # replay the step from a fresh handle afterwards
)


def _table(rows: list[tuple[str, int, int]]) -> pa.Table:
    made: list[dict[str, Any]] = [
        {"trace_id": trace, "tool_calls": value, "date": DAY - timedelta(days=days)} for trace, days, value in rows
    ]
    return pa.Table.from_pylist(made, schema=TABLES["runs"])


def _held(lake: Lake) -> Counter[tuple[str, int, int]]:
    rows = lake.read("runs", ["trace_id", "date", "tool_calls"]).to_pylist()
    return Counter((row["trace_id"], (DAY - row["date"]).days, row["tool_calls"]) for row in rows)


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(steps=st.lists(STEP, min_size=1, max_size=6))
def test_replacing_traces_is_what_a_dictionary_does(blank_lake: Path, steps: list[tuple[dict[str, Any], bool]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        lake = Lake.open(Path(shutil.copytree(blank_lake, Path(folder) / "lake")))
        reference: dict[str, tuple[bool, list[tuple[int, int]]]] = {}
        for version, (step, replay) in enumerate(steps):
            reference.update(step)
            rows: dict[bool, list[tuple[str, int, int]]] = {False: [], True: []}
            for trace, (settled, of_trace) in step.items():
                rows[settled] += [(trace, *row) for row in of_trace]
            arguments = ("runs", list(step), _table(rows[False]), _table(rows[True]), "derive", version)
            assert replace_traces(lake, *arguments).committed
            if replay:
                assert not replace_traces(Lake.open(lake.path), *arguments).committed
            wanted = Counter((trace, *row) for trace, (_, of_trace) in reference.items() for row in of_trace)
            assert _held(lake) == wanted
            opened = Counter(
                (trace, *row) for trace, (settled, of_trace) in reference.items() if not settled for row in of_trace
            )
            files = [lake.path / "runs" / file.path for file in lake.table("runs").files().values() if file.is_open]
            read = lake.read("runs", ["trace_id", "date", "tool_calls"], files=files).to_pylist()
            assert Counter((row["trace_id"], (DAY - row["date"]).days, row["tool_calls"]) for row in read) == opened


def test_settled_files_without_the_traces_are_not_rewritten(lake: Lake, runs: Rows, traces_in: Traces) -> None:
    replace_traces(lake, "runs", ["a"], None, runs("a"), "derive", 0)
    replace_traces(lake, "runs", ["b", "c"], None, runs("b", "c"), "derive", 1)
    untouched, rewritten = sorted(lake.files("runs"), key=lambda path: path.stat().st_mtime_ns)
    replace_traces(lake, "runs", ["c"], runs("c", settled=False), None, "derive", 2)
    files = lake.files("runs")
    assert untouched in files
    assert rewritten not in files
    assert traces_in(lake) == ["a", "b", "c"]


def test_open_files_stay_when_no_open_trace_changes(lake: Lake, runs: Rows) -> None:
    replace_traces(lake, "runs", ["a"], runs("a", settled=False), None, "derive", 0)
    before = lake.files("runs")
    replace_traces(lake, "runs", ["b"], None, runs("b"), "derive", 1)
    assert set(before) < set(lake.files("runs"))


def test_a_reader_sees_one_version_or_the_other(lake: Lake, runs: Rows) -> None:
    replace_traces(lake, "runs", ["a", "b"], runs("a", "b", settled=False), None, "derive", 0)
    con = lake.connect()
    replace_traces(lake, "runs", ["a"], None, runs("a"), "derive", 1)
    old = con.execute("SELECT trace_id, settled FROM runs ORDER BY 1").fetchall()
    lake.refresh(con)
    new = con.execute("SELECT trace_id, settled FROM runs ORDER BY 1").fetchall()
    assert old == [("a", False), ("b", False)]
    assert new == [("a", True), ("b", False)]


def test_the_promise_since_bounds_the_search(lake: Lake, runs: Rows, traces_in: Traces) -> None:
    old = DAY - timedelta(days=5)
    replace_traces(lake, "runs", ["a"], None, runs("a", day=old), "derive", 0)
    replace_traces(lake, "runs", ["a"], None, runs("a"), "derive", 1, since=old)
    assert traces_in(lake) == ["a"]


@pytest.mark.parametrize("stranger", ["b", None])
def test_rows_of_other_traces_are_refused(lake: Lake, runs: Rows, stranger: str | None) -> None:
    table = runs("a", "a")
    place = table.schema.get_field_index("trace_id")
    table = table.set_column(place, "trace_id", pa.array(["a", stranger], pa.string()))
    with pytest.raises(RowsError, match="1 of 2 rows belong to other traces or to none"):
        replace_traces(lake, "runs", ["a"], None, table, "derive", 0)
    assert lake.version("runs") == 0


def test_replacing_dates(lake: Lake, runs: Rows, traces_in: Traces) -> None:
    before = DAY - timedelta(days=1)
    lake.commit("runs", runs("a", day=before), app_id="w", app_version=0)
    lake.commit("runs", runs("b"), app_id="w", app_version=1)
    assert replace_dates(lake, "runs", [DAY], runs("c", "d"), "slo", 0).committed
    assert traces_in(lake) == ["a", "c", "d"]
    assert not replace_dates(lake, "runs", [DAY], runs("e"), "slo", 0).committed
    replace_dates(lake, "runs", [before, DAY], None, "slo", 1)
    assert traces_in(lake) == []
    with pytest.raises(RowsError, match="rows have other dates"):
        replace_dates(lake, "runs", [DAY], runs("a", day=before), "slo", 2)
