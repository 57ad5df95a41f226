"""Opening a lake, reading it, and following it."""

from __future__ import annotations

import json
import multiprocessing
from collections.abc import Callable
from datetime import UTC, date, datetime
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest
from deltalake import DeltaTable

from surefoot.processors.errors import LakeError, LakeFormatError, LakeNotFoundError
from surefoot.processors.lake import Lake
from surefoot.processors.lake.lake import MARKER
from surefoot.processors.lake.schema import FORMAT, TABLES
from surefoot.processors.lake.table import Table

Rows = Callable[..., pa.Table]
Traces = Callable[[Lake], list[str]]


def test_an_empty_lake_has_every_table_and_column(lake: Lake) -> None:
    con = lake.connect()
    for name, schema in TABLES.items():
        described = con.execute(f"SELECT * FROM {name}").description
        assert [column[0] for column in described or []] == schema.names
        assert con.execute(f"SELECT count(*) FROM {name}").fetchone() == (0,)


def test_opening_again_changes_nothing(lake: Lake) -> None:
    again = Lake.open(lake.path)
    assert again.repairs == ()
    assert [again.version(name) for name in TABLES] == [0] * len(TABLES)


def test_what_comes_back_is_what_went_in(lake: Lake, rows: Rows) -> None:
    span = {
        "trace_id": "a" * 32,
        "span_id": "b" * 16,
        "start_time": datetime(2026, 11, 30, 1, 2, 3, 4, tzinfo=UTC),
        "start_unix_nano": 2**62 + 1,
        "duration_ns": -5,
        "clock_skew": True,
        "time_to_first_chunk": 0.25,
        "attributes": [("k", "v"), ("empty", "")],
        "events": [{"name": "e", "time_unix_nano": 1, "attributes": [("x", "y")]}],
        "links": [],
    }
    written = rows("spans", [span])
    lake.commit("spans", written, app_id="w", app_version=0)
    assert lake.read("spans").cast(TABLES["spans"]).to_pylist() == written.to_pylist()


def test_views_work_under_a_path_with_signs_in_it(tmp_path: Path, runs: Rows) -> None:
    lake = Lake.open(tmp_path / "it's a date=2001-01-01 lake")
    lake.commit("runs", runs("a"), app_id="w", app_version=0)
    assert lake.connect().execute("SELECT trace_id, date FROM runs").fetchall() == [("a", date(2026, 11, 30))]


def test_a_connection_follows_at_refresh_and_keeps_its_files_until_then(lake: Lake, runs: Rows) -> None:
    con = lake.connect()
    lake.commit("runs", runs("a"), app_id="w", app_version=0)
    assert con.execute("SELECT count(*) FROM runs").fetchone() == (0,)
    lake.refresh(con)
    assert con.execute("SELECT count(*) FROM runs").fetchone() == (1,)


def test_days_are_utc_in_every_connection(lake: Lake, runs: Rows) -> None:
    lake.commit("runs", runs("a"), app_id="w", app_version=0)
    query = "SELECT current_setting('TimeZone'), date_trunc('hour', started_at)::VARCHAR FROM runs"
    assert lake.connect().execute(query).fetchone() == ("UTC", "2026-11-30 12:00:00+00")


def test_a_condition_on_the_date_reads_no_other_file(lake: Lake, runs: Rows) -> None:
    lake.commit("runs", runs("a", day=date(2026, 11, 29)), app_id="w", app_version=0)
    lake.commit("runs", runs("b"), app_id="w", app_version=1)
    other = lake.files("runs")[0]
    assert other.parent.name == "date=2026-11-29"
    with other.open("r+b") as file:
        file.seek(4)
        file.write(bytes(40))  # its footer stays whole
    with pytest.raises(duckdb.Error):
        lake.connect().execute("SELECT run_id FROM runs").fetchall()
    assert lake.read("runs", ["run_id"], "date = ?", [date(2026, 11, 30)])["run_id"].to_pylist() == ["run-b"]


def test_the_plain_shell_can_follow_the_published_list(lake: Lake, runs: Rows) -> None:
    lake.commit("runs", runs("a", "b"), app_id="w", app_version=0)
    folder = lake.path / "runs"
    con = duckdb.connect()
    con.execute(
        f"SET VARIABLE files = (SELECT list_transform(files, lambda f: '{folder}/' || f) "
        f"FROM read_json('{folder}/_current.json'))"
    )
    found = con.execute(
        "SELECT count(*) FROM read_parquet(getvariable('files'), union_by_name = true, hive_partitioning = true)"
    )
    assert found.fetchone() == (2,)


def test_files_added_since_a_version(lake: Lake, runs: Rows) -> None:
    first = lake.commit("runs", runs("a"), app_id="w", app_version=0)
    start = lake.added_since("runs", -1)
    assert [file.rows for file in start.files] == [1]
    second = lake.commit("runs", runs("b", "c"), app_id="w", app_version=1)
    lake.commit("runs", app_id="w", app_version=2)
    added = lake.added_since("runs", first.version)
    assert (added.version, added.complete) == (3, True)
    assert [(str(file.path.relative_to(lake.path / "runs")), file.rows) for file in added.files] == [
        (second.added[0].path, 2)
    ]
    assert lake.added_since("runs", added.version).files == []


def test_files_added_since_a_version_that_the_log_has_forgotten(lake: Lake, runs: Rows) -> None:
    lake.commit("runs", runs("a"), app_id="w", app_version=0)
    lake.commit("runs", runs("b"), app_id="w", app_version=1)
    lake.table("runs").checkpoint()
    (lake.path / "runs" / "_delta_log" / f"{1:020}.json").unlink()
    added = lake.added_since("runs", 0)
    assert not added.complete
    assert sorted(file.path for file in added.files) == sorted(lake.files("runs"))


def test_an_unknown_table_is_answered_with_the_tables(lake: Lake) -> None:
    with pytest.raises(LakeError, match="no table 'run'; its tables are spans, contents"):
        lake.files("run")


def test_a_newer_format_is_refused_with_a_remedy(lake: Lake) -> None:
    (lake.path / MARKER).write_text(json.dumps({"format": FORMAT + 1}))
    for create in (True, False):
        with pytest.raises(LakeFormatError, match=rf"format {FORMAT + 1}.*install"):
            Lake.open(lake.path, create=create)


def test_a_folder_that_is_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(LakeError, match=r"not a lake and not empty \(it holds thesis.txt\)"):
        Lake.open(tmp_path)
    assert not (tmp_path / "spans").exists()


def test_reading_does_not_create(tmp_path: Path) -> None:
    with pytest.raises(LakeNotFoundError, match="`surefoot serve` or `surefoot import` creates one"):
        Lake.open(tmp_path / "nowhere", create=False)
    assert not (tmp_path / "nowhere").exists()


def test_a_table_from_before_a_column_grows_it(tmp_path: Path, runs: Rows, traces_in: Traces) -> None:
    """An old lake, its old writer still at work, is opened by a newer program."""
    path = tmp_path / "lake"
    full = TABLES["runs"]
    narrow = pa.schema([field for field in full if field.name != "cost_usd"])
    lake = Lake.open(path)
    for file in (path / "runs").rglob("*"):
        if file.is_file():
            file.unlink()
    (path / "runs" / "_delta_log").rmdir()
    old = Table.create("runs", path / "runs", narrow)
    old.write_blank()
    writer = Lake(path, {**{table.name: table for table in lake.tables()}, "runs": old}, [])
    writer.commit("runs", runs("a").drop_columns(["cost_usd"]), app_id="old", app_version=0)

    with pytest.raises(LakeNotFoundError, match="has no column cost_usd yet; `surefoot lake upgrade` or"):
        Lake.open(path, create=False)
    new = Lake.open(path)
    assert {field.name for field in DeltaTable(path / "runs").schema().fields} == set(full.names)
    new.commit("runs", runs("b"), app_id="new", app_version=0)
    writer.commit("runs", runs("c").drop_columns(["cost_usd"]), app_id="old", app_version=1)
    assert traces_in(new) == ["a", "b", "c"]
    assert new.read("runs", ["cost_usd"])["cost_usd"].null_count == 3
    assert writer.read("runs", ["trace_id"]).num_rows == 3


def _open(path: str, count: "multiprocessing.Queue[int]") -> None:  # noqa: UP037 - a Queue is not generic at run time
    count.put(len(Lake.open(Path(path)).tables()))


def test_processes_may_open_a_new_lake_at_the_same_time(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    count: multiprocessing.Queue[int] = context.Queue()
    processes = [context.Process(target=_open, args=(str(tmp_path / "lake"), count)) for _ in range(3)]
    for process in processes:
        process.start()
    assert [count.get(timeout=60) for _ in processes] == [len(TABLES)] * 3
    for process in processes:
        process.join()
    assert Lake.open(tmp_path / "lake").version("runs") == 0
