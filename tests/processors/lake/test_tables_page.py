"""docs/tables.md says what schema.py says, and its queries run."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

from surefoot.processors.lake import Lake
from surefoot.processors.lake.console import query
from surefoot.processors.lake.schema import TABLES

Rows = Callable[..., pa.Table]
PAGE = (Path(__file__).parents[3] / "docs" / "tables.md").read_text()
QUERIES = re.findall(r"```sql\n(.*?)```", PAGE, re.DOTALL)
WORDS = [
    (pa.types.is_string, "text"),
    (pa.types.is_int64, "int64"),
    (pa.types.is_float64, "float64"),
    (pa.types.is_boolean, "bool"),
    (pa.types.is_timestamp, "timestamp"),
    (pa.types.is_date, "date"),
    (pa.types.is_map, "map"),
    (pa.types.is_list, "list"),
]


def _word(kind: pa.DataType) -> str:
    return next(word for is_kind, word in WORDS if is_kind(kind))


def _documented(table: str) -> list[tuple[str, str]]:
    section = re.search(rf"^## {table}\n(.*?)(?=^## |\Z)", PAGE, re.DOTALL | re.MULTILINE)
    assert section is not None, f"docs/tables.md has no section {table}"
    found = re.findall(r"^\| (\w+) \| (\w+) \| \S.*[.)] \|$", section[1], re.MULTILINE)
    return [(name, kind) for name, kind in found if (name, kind) != ("column", "type")]


@pytest.mark.parametrize("table", TABLES)
def test_every_column_has_its_type_and_a_sentence(table: str) -> None:
    assert _documented(table) == [(field.name, _word(field.type)) for field in TABLES[table]]


@pytest.fixture
def filled(lake: Lake, rows: Rows) -> Lake:
    run = {"run_id": "r1", "agent_name": "desk", "outcome": "ok", "recovered": True, "trace_id": "t"}
    lake.commit("runs", rows("runs", [run, {**run, "run_id": "r2", "outcome": "error"}]), app_id="w", app_version=0)
    calls = [{"run_id": "r1", "tool_name": "refund", "outcome": outcome} for outcome in ("error", "ok")]
    lake.commit("tool_calls", rows("tool_calls", calls), app_id="w", app_version=0)
    verdict = {"run_id": "r1", "name": "right amount", "verdict": "fail", "severity": "high", "grader_kind": "human"}
    lake.commit("verdicts", rows("verdicts", [verdict]), app_id="w", app_version=0)
    return lake


def test_the_queries_answer(filled: Lake) -> None:
    answers = [query(filled.path, sql).rows for sql in QUERIES[:3]]
    assert answers == [
        [(date(2026, 11, 30), "desk", 2, 1)],
        [("refund", 2, 1, 1)],
        [("r1", "right amount", "high", "human", None)],
    ]


def test_the_recipe_for_ones_own_duckdb(filled: Lake) -> None:
    con = duckdb.connect()
    con.execute(QUERIES[3].replace("/path/to/lake", str(filled.path)))
    assert con.execute("SELECT run_id, date FROM runs ORDER BY run_id").fetchall() == [
        ("r1", date(2026, 11, 30)),
        ("r2", date(2026, 11, 30)),
    ]
