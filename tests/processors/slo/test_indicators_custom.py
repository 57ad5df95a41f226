"""An indicator of one's own: what it may ask, what it counts, and that it reaches nothing else."""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path

import duckdb
import pytest

from support.slo_events import NOW, SECOND, Row, Tables
from surefoot.processors.errors import QueryError
from surefoot.processors.lake import Lake
from surefoot.processors.slo import Slo
from surefoot.processors.slo.count import count_custom, views_of
from surefoot.processors.slo.custom import columns_of

TODAY = date(2026, 3, 10)
PAGE = (Path(__file__).parents[3] / "docs" / "indicators.md").read_text()
QUERY = PAGE.partition("```sql\n")[2].partition("```")[0]
EVENTS = "SELECT ended_at, task_class, strata, sample_weight AS weight, 'good' AS class FROM runs; -- all of them"


def slo(text: str, **said: object) -> Slo:
    return Slo("mine", "desk", "sql", 0.9, "28d", 28 * 86_400, custom_sql=text, **said)  # type: ignore[arg-type]  # fields


def run(number: int, **said: object) -> Row:
    row = {"run_id": f"r{number}", "trace_id": "t", "outcome": "ok", "tool_calls": 3, "ended_us": NOW * SECOND}
    return {**row, **said}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("DROP TABLE runs", "must be one SELECT"),
        ("SELECT 1; SELECT 2", "must be one SELECT"),
        ("SELEC 1", "cannot be parsed"),
        ("SELECT 1) AS a, (SELECT 2", "cannot be parsed"),
        ("SELECT ended_at FROM runs", "has no column class"),
        ("SELECT 1 AS ended_at, 'good' AS class", "must be a timestamp"),
        ("SELECT ended_at, 1 AS class FROM runs", "must be text"),
        ("SELECT ended_at, outcome AS class FROM rums", "rums"),
        ("SELECT ended_at, outcome AS class FROM runs WHERE date > $since", r"asks for \$since"),
        ("SELECT ended_at, outcome AS class FROM read_csv('/etc/passwd')", "cannot be answered"),
    ],
)
def test_a_query_that_cannot_be_an_indicator_is_refused_with_the_reason(text: str, told: str) -> None:
    with pytest.raises(QueryError, match=told):
        columns_of(text)


def test_the_query_and_the_code_on_the_page_work(capsys: pytest.CaptureFixture[str]) -> None:
    code = PAGE.partition("```python\n")[2].partition("```")[0]
    exec(compile(code, "docs/indicators.md", "exec"), {"QUERY": QUERY})
    assert "('ended_at', 'task_class', 'class')" in capsys.readouterr().out


def test_rows_are_counted_by_stratum_weight_and_class_and_only_on_the_asked_dates(tables: Tables) -> None:
    runs = [run(0, task_class="refund", sample_weight=2.5), run(1, task_class="query"), run(2, strata={"tier": "gold"})]
    tables.hold(runs=[*runs, run(3, ended_us=(NOW - 86_400) * SECOND)])
    with duckdb.connect() as con:
        asked = slo(EVENTS, by=("task_class",))
        found = count_custom(con, tables.lake.path, asked, [TODAY], 60, 8).to_pylist()
        gold = slo(EVENTS, where=(("stratum.tier", ("gold",)),))
        assert sum(row["good"] for row in count_custom(con, tables.lake.path, gold, [TODAY], 60, 8).to_pylist()) == 1
    told = {row["stratum_key"]: (row["good"], row["good_micros"]) for row in found}
    expected = {"task_class=refund": (1, 2_500_000), "task_class=query": (1, 1_000_000), "task_class=": (1, 1_000_000)}
    assert told == expected


def test_the_page_s_query_counts(tables: Tables) -> None:
    tables.hold(runs=[run(0), run(1, tool_calls=11), run(2, outcome="error")])
    with duckdb.connect() as con:
        found = count_custom(con, tables.lake.path, slo(QUERY), [TODAY, TODAY - timedelta(days=1)], 60, 8)
    assert [(row["good"], row["bad"]) for row in found.to_pylist()] == [(1, 1)]


def test_a_class_that_there_is_not_is_told(tables: Tables) -> None:
    tables.hold(runs=[run(0)])
    text = "SELECT ended_at, 'fine' AS class FROM runs"
    with duckdb.connect() as con, pytest.raises(QueryError, match="'fine'; classes are good, bad"):
        count_custom(con, tables.lake.path, slo(text), [TODAY], 60, 8)


def test_a_dimension_that_the_query_has_not_is_told(tables: Tables) -> None:
    tables.hold(runs=[run(0)])
    with duckdb.connect() as con, pytest.raises(QueryError, match="no column 'agent'"):
        count_custom(con, tables.lake.path, slo(EVENTS, by=("agent",)), [TODAY], 60, 8)


def test_a_fast_class_makes_its_labels_late() -> None:
    assert views_of(slo(EVENTS)) == ("fast",)
    text = "SELECT ended_at, 'unlabelled' AS class, 'good' AS fast_class FROM runs"
    assert views_of(slo(text)) == ("fast", "matured")


def test_a_query_cannot_write_beside_the_lake(tables: Tables, tmp_path: Path) -> None:
    lake = Lake.open(tables.lake.path)
    assert lake.path == tables.lake.path
    (tmp_path / "secret.csv").write_text("ended_at,class\n2026-03-10,good\n")
    text = f"SELECT ended_at::TIMESTAMP AS ended_at, class FROM read_csv('{tmp_path}/secret.csv')"
    with duckdb.connect() as con, pytest.raises(QueryError):
        count_custom(con, tables.lake.path, slo(text), [TODAY], 60, 8)
