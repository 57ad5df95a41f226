"""The lake is proved, shown to a plain DuckDB, upgraded, copied while it is written to, and waits for its disk."""

from __future__ import annotations

import json
import resource
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from surefoot.processors.errors import LakeError, LakeNotFoundError
from surefoot.processors.lake import Lake
from surefoot.processors.lake.inspect import state, verify, views_sql
from surefoot.processors.lake.lake import MARKER, upgrade
from surefoot.processors.lake.schema import FORMAT, LOGS, TABLES
from surefoot.processors.lake.table import Table
from surefoot.processors.settings import Settings

Rows = Callable[..., pa.Table]
Traces = Callable[[Lake], list[str]]


@pytest.mark.parametrize("place", [5, -60])
def test_one_flipped_byte_is_named(lake: Lake, runs: Rows, place: int) -> None:
    lake.commit("runs", runs("a", "b"), app_id="w", app_version=0)
    assert verify(lake) == []
    [path] = lake.files("runs")
    data = bytearray(path.read_bytes())
    data[place] ^= 1
    path.write_bytes(data)
    [said] = verify(lake)
    assert str(path) in said
    assert "checksum" in said


def test_a_missing_file_and_a_short_one_are_named(lake: Lake, runs: Rows) -> None:
    for version in range(2):
        lake.commit("runs", runs(f"r{version}"), app_id="w", app_version=version)
    short, missing = lake.files("runs")
    short.write_bytes(short.read_bytes()[:-1])
    missing.unlink()
    said = verify(lake)
    assert [path for path in (short, missing) if any(str(path) in sentence for sentence in said)] == [short, missing]


def test_what_repeats_and_what_refers_to_nothing_is_named(lake: Lake, runs: Rows, rows: Rows) -> None:
    lake.commit("runs", runs("a", "a"), app_id="w", app_version=0)
    lake.commit("tool_calls", rows("tool_calls", [{"run_id": "none"}]), app_id="w", app_version=0)
    said = "\n".join(verify(lake))
    assert "runs: 1 rows that repeat (run_id), for example run-a" in said
    assert "tool_calls: 1 rows whose run_id is in no row of runs, for example none" in said


def test_status_counts_rows_files_and_what_waits(lake: Lake, runs: Rows) -> None:
    lake.commit("runs", runs("a", "b"), app_id="w", app_version=0)
    [old] = [str(path.relative_to(lake.path / "runs")) for path in lake.files("runs")]
    lake.commit("runs", runs("c"), app_id="w", app_version=1, remove=[old])
    [found] = [table for table in state(lake, Settings(home=lake.path)) if table.table == "runs"]
    assert (found.rows, found.files, found.waiting_files, found.retention_days) == (1, 1, 1, 400)
    assert found.oldest_date == found.newest_date == "2026-11-30"
    assert found.waiting_bytes == (lake.path / "runs" / old).stat().st_size


def test_exported_views_work_in_a_fresh_duckdb_and_follow_when_read_again(
    lake: Lake, runs: Rows, tmp_path: Path
) -> None:
    lake.commit("runs", runs("a"), app_id="w", app_version=0)
    out = tmp_path / "views.sql"
    out.write_text(views_sql(lake))
    program = (
        "import duckdb, sys; con = duckdb.connect(); con.execute(open(sys.argv[1]).read());"
        "print(con.sql('SELECT count(*), min(date) FROM runs').fetchall(), con.sql('FROM spans').fetchall())"
    )

    def ask() -> str:
        command = [sys.executable, "-c", program, str(out)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert ask() == "[(1, datetime.date(2026, 11, 30))] []\n"
    lake.commit("runs", runs("b"), app_id="w", app_version=1)
    assert ask().startswith("[(2,")


def test_a_lake_of_format_1_is_upgraded_and_its_files_stay_readable(lake: Lake, rows: Rows) -> None:
    shutil.rmtree(lake.path / "logs")
    narrow = LOGS.remove(LOGS.get_field_index("fingerprint"))
    old = Table.create("logs", lake.path / "logs", narrow)
    old.write_blank()
    writer = Lake(lake.path, {**{table.name: table for table in lake.tables()}, "logs": old}, [])
    old_rows = rows("logs", [{"event_name": "old"}]).drop_columns(["fingerprint"])
    writer.commit("logs", old_rows, app_id="w", app_version=0)
    (lake.path / MARKER).write_text(json.dumps({"format": 1}))
    with pytest.raises(LakeNotFoundError, match="surefoot lake upgrade"):
        Lake.open(lake.path, create=False)
    done = upgrade(lake.path)
    assert (done.before, done.after, done.columns) == (1, FORMAT, ["logs.fingerprint"])
    assert json.loads((lake.path / MARKER).read_text()) == {"format": FORMAT}
    new = Lake.open(lake.path, create=False)
    new.commit("logs", rows("logs", [{"event_name": "new", "fingerprint": 7}]), app_id="w", app_version=1)
    found = new.read("logs", ["event_name", "fingerprint"]).sort_by("event_name").to_pylist()
    assert found == [{"event_name": "new", "fingerprint": 7}, {"event_name": "old", "fingerprint": None}]
    assert upgrade(lake.path).columns == []
    assert verify(new) == []


def test_a_log_that_cannot_be_written_is_told_and_the_retry_finds_its_way(
    lake: Lake, runs: Rows, traces_in: Traces, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A limit on the size of files is a full disk that every library meets for real."""
    lake.commit("runs", runs("a"), app_id="w", app_version=0)
    real = Table.transact
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)

    def full(self: Table, *arguments: object) -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, hard))
        try:
            real(self, *arguments)  # type: ignore[arg-type]  # passed on as they are
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))

    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        with monkeypatch.context() as patch:
            patch.setattr(Table, "transact", full)
            with pytest.raises(LakeError, match=r"writing the log of .* failed: .*File too large.*; free the disk"):
                lake.commit("runs", runs("b"), app_id="w", app_version=1)
    finally:
        signal.signal(signal.SIGXFSZ, before)
    lake.commit("runs", runs("b"), app_id="w", app_version=1)
    assert traces_in(lake) == ["a", "b"]
    assert verify(lake) == []


def copied(source: Path, target: Path) -> None:
    """The recipe of docs/lake.md: of each table the log, then the data, so that whatever the log names is there."""
    for table in TABLES:
        (target / table).mkdir(parents=True)
        shutil.copytree(source / table / "_delta_log", target / table / "_delta_log")
        shutil.copytree(
            source / table, target / table, dirs_exist_ok=True, ignore=shutil.ignore_patterns("_delta_log", ".*.draft")
        )
    for path in source.iterdir():
        if path.is_file():
            shutil.copy2(path, target)


def test_a_copy_made_while_a_writer_commits_is_whole(lake: Lake, runs: Rows, traces_in: Traces, tmp_path: Path) -> None:
    """The log first, then the data: every file that the copied log names is still there, as nothing was deleted."""
    stop = threading.Event()
    written: list[int] = []

    def commit_on() -> None:
        writer = Lake.open(lake.path)
        while not stop.is_set():
            writer.commit("runs", runs(f"{len(written):04}"), app_id="w", app_version=len(written))
            written.append(len(written))

    thread = threading.Thread(target=commit_on)
    thread.start()
    while len(written) < 5:
        stop.wait(0.01)
    known = len(written)
    copied(lake.path, tmp_path / "backup")
    while len(written) < known + 5:
        stop.wait(0.01)
    stop.set()
    thread.join()
    restored = Lake.open(tmp_path / "backup")
    assert verify(restored) == []
    found = traces_in(restored)
    assert found == [f"{number:04}" for number in range(len(found))]
    assert len(found) >= known
