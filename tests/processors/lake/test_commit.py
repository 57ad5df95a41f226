"""One function commits: exactly once, on the disk, or not at all."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable
from datetime import date
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

from surefoot.processors.errors import CommitConflictError, LakeError, RowsError
from surefoot.processors.lake import Lake

Rows = Callable[..., pa.Table]
Traces = Callable[[Lake], list[str]]
DAY = date(2026, 11, 30)


def test_a_version_is_committed_once(lake: Lake, runs: Rows, traces_in: Traces) -> None:
    first = lake.commit("runs", runs("a"), app_id="receiver", app_version=7)
    again = lake.commit("runs", runs("a"), app_id="receiver", app_version=7)
    assert (first.committed, first.version) == (True, 1)
    assert (again.committed, again.version, again.added) == (False, 1, ())
    assert traces_in(lake) == ["a"]


def test_a_lower_version_is_found_there_even_from_a_fresh_handle(lake: Lake, runs: Rows, traces_in: Traces) -> None:
    lake.commit("runs", runs("a"), app_id="receiver", app_version=7)
    other = Lake.open(lake.path)
    assert not other.commit("runs", runs("b"), app_id="receiver", app_version=6).committed
    assert other.transaction_version("runs", "receiver") == 7
    assert traces_in(lake) == ["a"]


def test_applications_do_not_see_each_other(lake: Lake, runs: Rows, traces_in: Traces) -> None:
    stale = Lake.open(lake.path)
    lake.commit("runs", runs("a"), app_id="one", app_version=0)
    assert stale.commit("runs", runs("b"), app_id="two", app_version=0).committed
    assert traces_in(lake) == ["a", "b"]
    assert lake.transaction_version("runs", "three") is None


def test_a_retry_with_other_rows_leaves_the_committed_file_alone(lake: Lake, runs: Rows, traces_in: Traces) -> None:
    """A writer that dropped duplicates meanwhile retries with fewer rows under the same name."""
    lake.commit("runs", runs("a", "b"), app_id="receiver", app_version=0)
    lake.commit("runs", runs("a"), app_id="receiver", app_version=0)
    assert traces_in(lake) == ["a", "b"]


def test_a_transaction_without_rows_is_recorded(lake: Lake) -> None:
    assert lake.commit("runs", app_id="derive", app_version=3).committed
    assert lake.transaction_version("runs", "derive") == 3
    assert lake.files("runs") == []


def test_one_file_per_date_and_the_date_only_in_the_path(lake: Lake, runs: Rows) -> None:
    both = pa.concat_tables([runs("a"), runs("b", day=date(2026, 11, 29))])
    made = lake.commit("runs", both, app_id="receiver", app_version=0)
    assert [(file.date, file.rows) for file in made.added] == [(date(2026, 11, 29), 1), (DAY, 1)]
    for path in lake.files("runs"):
        with pq.ParquetFile(path) as file:
            assert "date" not in file.schema_arrow.names
    found = lake.connect().execute("SELECT trace_id, date, versions FROM runs ORDER BY trace_id").fetchall()
    assert found == [("a", DAY, {"model": "m1"}), ("b", date(2026, 11, 29), {"model": "m1"})]


def test_other_delta_readers_agree(lake: Lake, runs: Rows) -> None:
    lake.commit("runs", runs("a", "b"), app_id="receiver", app_version=0)
    delta = DeltaTable(lake.path / "runs")
    assert delta.to_pyarrow_table().select(["trace_id", "date"]).to_pylist() == [
        {"trace_id": "a", "date": DAY},
        {"trace_id": "b", "date": DAY},
    ]


def test_everything_is_on_the_disk_before_the_answer(lake: Lake, runs: Rows, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[str] = []
    real = os.fsync

    def fsync(descriptor: int) -> None:
        synced.append(str(Path(f"/proc/self/fd/{descriptor}").readlink().relative_to(lake.path / "runs")))
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    made = lake.commit("runs", runs("a"), app_id="receiver", app_version=0)
    folder, name = made.added[0].path.split("/")
    entry = "_delta_log/00000000000000000001.json"
    draft = f".{name.rpartition('-')[0]}.parquet.{threading.get_native_id()}.draft"  # not stamped with its checksum yet
    wanted = [f"{folder}/{draft}", folder, entry, "_delta_log"]
    places = [max(index for index, step in enumerate(synced) if step == want) for want in wanted]
    assert places == sorted(places)  # the file before its folder, both before the log's entry, the log's folder last


def test_dictionary_encoded_text_is_plain_text_on_the_disk(lake: Lake, runs: Rows) -> None:
    plain = runs("a", "a", "b")
    place = plain.schema.get_field_index("trace_id")
    encoded = plain.set_column(place, "trace_id", plain["trace_id"].dictionary_encode())
    lake.commit("runs", encoded, app_id="receiver", app_version=0)
    assert pq.read_schema(lake.files("runs")[0]).field("trace_id").type == pa.string()
    assert lake.read("runs", ["trace_id"])["trace_id"].to_pylist() == ["a", "a", "b"]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda table: table.drop_columns(["outcome"]), r"missing \['outcome'\]"),
        (lambda table: table.append_column("extra", pa.nulls(1)), r"unknown \['extra'\]"),
        (
            lambda table: table.set_column(table.schema.get_field_index("tool_calls"), "tool_calls", [["many"]]),
            "cannot be cast",
        ),
        (
            lambda table: table.set_column(table.schema.get_field_index("date"), "date", pa.nulls(1, pa.date32())),
            "have no date",
        ),
    ],
)
def test_rows_that_do_not_fit_are_refused_whole(
    lake: Lake, runs: Rows, change: Callable[[pa.Table], pa.Table], says: str
) -> None:
    with pytest.raises(RowsError, match=says):
        lake.commit("runs", change(runs("a")), app_id="receiver", app_version=0)
    assert lake.version("runs") == 0


def test_removing_a_file_that_another_commit_removed_is_refused(lake: Lake, runs: Rows, traces_in: Traces) -> None:
    made = lake.commit("runs", runs("a"), app_id="receiver", app_version=0)
    path = made.added[0].path
    lake.commit("runs", runs("b"), remove=[path], app_id="jobs", app_version=0)
    with pytest.raises(CommitConflictError, match="1 of 1 are not current any more"):
        lake.commit("runs", runs("c"), remove=[path], app_id="other", app_version=0)
    assert traces_in(lake) == ["b"]


def test_a_foreign_writer_between_two_commits_is_no_problem(lake: Lake, runs: Rows, traces_in: Traces) -> None:
    lake.commit("runs", runs("a"), app_id="receiver", app_version=0)
    write_deltalake(lake.path / "runs", runs("b"), mode="append")
    assert lake.commit("runs", runs("c"), app_id="receiver", app_version=1).version == 3
    assert traces_in(lake) == ["a", "b", "c"]


def test_the_published_list_follows_each_commit(lake: Lake, runs: Rows) -> None:
    lake.commit("runs", runs("a"), app_id="receiver", app_version=0)
    published = json.loads((lake.path / "runs" / "_current.json").read_text())
    assert published["version"] == 1
    assert published["files"][1:] == [str(path.relative_to(lake.path / "runs")) for path in lake.files("runs")]


def test_a_disk_that_refuses_leaves_the_table_as_it_was(lake: Lake, runs: Rows, traces_in: Traces) -> None:
    (lake.path / "runs" / "date=2026-11-30").write_text("a file where a folder must be")
    with pytest.raises(LakeError, match="nothing was committed"):
        lake.commit("runs", runs("a"), app_id="receiver", app_version=0)
    (lake.path / "runs" / "date=2026-11-30").unlink()
    assert lake.commit("runs", runs("a"), app_id="receiver", app_version=0).committed
    assert traces_in(lake) == ["a"]
