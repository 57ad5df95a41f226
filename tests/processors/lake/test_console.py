"""One SELECT over the tables; nothing else can be read, nothing can be written."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

from surefoot.processors.errors import LakeNotFoundError, QueryError
from surefoot.processors.lake import Lake
from surefoot.processors.lake.console import query
from surefoot.processors.lake.schema import TABLES


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    """One for all: the tests assert that no query changes it."""
    lake = Lake.open(tmp_path_factory.mktemp("console") / "lake")
    rows = [{"trace_id": name, "date": date(2026, 11, 30)} for name in "ab"]
    lake.commit("runs", pa.Table.from_pylist(rows, schema=TABLES["runs"]), app_id="w", app_version=0)
    return lake


def _bytes(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_columns_types_and_rows(filled: Lake) -> None:
    result = query(filled.path, "SELECT trace_id, date, tool_calls FROM runs ORDER BY trace_id")
    assert result.columns == ["trace_id", "date", "tool_calls"]
    assert result.types == ["VARCHAR", "DATE", "BIGINT"]
    assert result.rows == [("a", date(2026, 11, 30), None), ("b", date(2026, 11, 30), None)]


@pytest.mark.parametrize(
    "sql",
    [
        "FROM runs",
        "WITH x AS (SELECT * FROM runs) SELECT * FROM x",
        "SELECT * FROM runs -- a comment; with a semicolon",
        "SELECT * FROM runs UNION ALL SELECT * FROM runs LIMIT 2;",
    ],
)
def test_a_select_has_many_forms(filled: Lake, sql: str) -> None:
    assert len(query(filled.path, sql).rows) == 2


def test_max_rows_cuts_and_says_so(filled: Lake) -> None:
    cut = query(filled.path, "FROM runs", max_rows=1)
    assert (len(cut.rows), cut.truncated) == (1, True)
    assert not query(filled.path, "FROM runs", max_rows=2).truncated


@pytest.mark.parametrize(
    "sql",
    [
        "COPY runs TO '{lake}/runs/out.parquet'",
        "COPY (SELECT 1 AS trace_id) TO '{file}' (FORMAT parquet, USE_TMP_FILE false)",
        "COPY (SELECT 1) TO '{lake}/runs/_delta_log/00000000000000000009.json'",
        "EXPORT DATABASE '{lake}/out'",
        "ATTACH '{lake}/x.db'",
        "INSTALL httpfs",
        "LOAD httpfs",
        "SET enable_external_access = true",
        "SET VARIABLE files_runs = ['/etc/passwd']",
        "RESET lock_configuration",
        "PRAGMA enable_logging",
        "CALL enable_logging(storage = 'file', storage_path = '{lake}')",
        "CREATE TABLE x AS SELECT 1",
        "INSERT INTO runs SELECT * FROM runs",
        "DELETE FROM runs",
        "EXPLAIN ANALYZE SELECT 1",
        "SELECT 1; SELECT 2",
        "SELECT 1; COPY runs TO '{lake}/x'",
        "",
        "-- nothing",
    ],
)
def test_anything_but_one_select_is_refused_and_changes_nothing(filled: Lake, sql: str) -> None:
    before = _bytes(filled.path)
    with pytest.raises(QueryError, match="must be one SELECT statement"):
        query(filled.path, sql.format(lake=filled.path, file=filled.files("runs")[0]))
    assert _bytes(filled.path) == before


@pytest.mark.parametrize(
    "source",
    [
        "read_text('/etc/passwd')",
        "read_blob('/etc/passwd')",
        "read_csv('/etc/passwd')",
        "'/etc/passwd'",
        "glob('/etc/*')",
        "sniff_csv('/etc/passwd')",
        "read_text('{lake}/runs/_delta_log/00000000000000000000.json')",
        "read_json('{lake}/surefoot-lake.json')",
        "read_parquet('{lake}/*/*/*.parquet')",
        "read_text('{lake}/runs/../surefoot-lake.json')",
        "parquet_metadata('{lake}/runs/other.parquet')",
        "query('SELECT * FROM read_text(''/etc/passwd'')')",
        "json_execute_serialized_sql(json_serialize_sql('SELECT * FROM read_text(''/etc/passwd'')'))",
        "enable_logging(storage = 'file', storage_config = {{'path': '{lake}/log'}})",
        "secret_rows",
    ],
)
def test_a_select_reads_the_tables_and_no_other_file(filled: Lake, source: str) -> None:
    secret_rows = pa.table({"password": ["x"]})  # noqa: F841 - DuckDB would find it by its name
    before = _bytes(filled.path)
    with pytest.raises(QueryError):
        query(filled.path, f"SELECT * FROM {source.format(lake=filled.path)}")
    assert _bytes(filled.path) == before


def test_an_unknown_table_is_answered_with_the_tables(filled: Lake) -> None:
    with pytest.raises(QueryError, match=r"no table run\. Did you mean runs\? The tables are spans, contents"):
        query(filled.path, "SELECT * FROM run")


def test_an_unknown_column_is_answered_with_candidates(filled: Lake) -> None:
    with pytest.raises(QueryError, match=r'"outcom" not found(.|\n)*"outcome"'):
        query(filled.path, "SELECT outcom FROM runs")


def test_what_does_not_parse_says_where(filled: Lake) -> None:
    with pytest.raises(QueryError, match=r"cannot be parsed(.|\n)*\^"):
        query(filled.path, "SELEC 1")


def test_a_query_that_takes_too_long_is_stopped(filled: Lake) -> None:
    with pytest.raises(QueryError, match=r"stopped after 0\.2 s"):
        query(filled.path, "SELECT sum(a * b) FROM range(10000000) t(a), range(100000) u(b)", seconds=0.2)


@pytest.mark.parametrize(
    "sql", ["SELECT list_sum(range(200000000))", "SELECT count(*) FROM (SELECT unnest(range(3000000000)) ORDER BY 1)"]
)
def test_one_long_call_is_stopped_too(filled: Lake, sql: str) -> None:
    """DuckDB sees an interrupt only between chunks; either limit may come first."""
    with pytest.raises(QueryError, match=r"stopped after 0\.2 s|memory"):
        query(filled.path, sql, seconds=0.2)


@pytest.mark.parametrize("sql", ["SELECT repeat('a', 4000000000)", "SELECT repeat('a', 50000000) FROM range(1000)"])
def test_long_strings_fill_no_memory(filled: Lake, sql: str) -> None:
    with pytest.raises(QueryError, match=r"stopped after|memory|maximum"):
        query(filled.path, sql, seconds=3.0)


def test_values_come_back_as_they_are(filled: Lake) -> None:
    (row,) = query(filled.path, "SELECT sum(x), MAP {'a': 1}, 1.50, [date '2026-11-30'] FROM range(3) t(x)").rows
    assert row == (3, {"a": 1}, Decimal("1.50"), [date(2026, 11, 30)])
    assert isinstance(row[0], int)


def test_a_query_that_needs_too_much_memory_is_stopped(filled: Lake) -> None:
    with pytest.raises(QueryError, match="needs more memory than 30MB"):
        query(
            filled.path, "SELECT count(DISTINCT a::VARCHAR || 'xxxxxxxxxxxx') FROM range(5000000) t(a)", memory="30MB"
        )


def test_no_lake_is_told_apart(tmp_path: Path) -> None:
    with pytest.raises(LakeNotFoundError, match="there is no lake in"):
        query(tmp_path / "nowhere", "SELECT 1")
