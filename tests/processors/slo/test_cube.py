"""Combinations of dimensions count as the same, be they so few that what they count as is kept, or more."""

from __future__ import annotations

import duckdb
import pytest

from support.slo_events import NOW, SECOND, Row, day_of, table
from surefoot.processors.slo import Slo, cube
from surefoot.processors.slo.count import count_many


def run(number: int) -> Row:
    task = None if number % 3 == 0 else f"task-{number % 7}"
    ended = (NOW - 60 * number) * SECOND
    return {"run_id": f"r{number}", "trace_id": "t", "outcome": "ok", "task_class": task, "ended_us": ended}


def test_many_combinations_count_as_few_do(monkeypatch: pytest.MonkeyPatch) -> None:
    runs = [run(number) for number in range(60)]
    slos = [Slo("all", "desk", "availability", 0.9, "28d", 28 * 86_400)]
    slos.append(Slo("by", "desk", "availability", 0.9, "28d", 28 * 86_400, by=("task_class",)))
    with duckdb.connect() as con:
        con.execute("SET TimeZone = 'UTC'")
        for name, rows in (("runs", runs), ("tool_calls", []), ("verdicts", [])):
            con.register(name, table(name, rows))
        dates = {day_of(row) for row in runs}
        few, again = (count_many(con, slos, dates, 60, 8) for _ in range(2))
        monkeypatch.setattr(cube, "_MOST_SEEN", 2)
        many = count_many(con, slos, dates, 60, 8)
    assert len(set(few["by"]["stratum_key"].to_pylist())) == 8
    assert few == again == many
