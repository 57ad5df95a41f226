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
from surefoot.processors.lake.inspect import prove, state, verify, views_sql
from surefoot.processors.lake.lake import MARKER, upgrade
from surefoot.processors.lake.schema import FORMAT, LOGS, SLO_MINUTES, TABLES
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


def test_a_lake_of_format_2_gets_weights_and_the_tables_of_promises_and_decisions(lake: Lake, rows: Rows) -> None:
    new = ["slo_generations", "slo_actions", "profiles", "decisions"]
    sums = ["good_micros", "bad_micros", "unlabelled_micros"]
    for name in [*new, "slo_minutes"]:
        shutil.rmtree(lake.path / name)
    narrow = pa.schema([field for field in SLO_MINUTES if field.name not in sums])
    old = Table.create("slo_minutes", lake.path / "slo_minutes", narrow)
    old.write_blank()
    writer = Lake(lake.path, {**{table.name: table for table in lake.tables()}, "slo_minutes": old}, [])
    row = {"slo": "a", "minute": 0, "good": 3}
    writer.commit("slo_minutes", rows("slo_minutes", [row]).drop_columns(sums), app_id="slo", app_version=0)
    (lake.path / MARKER).write_text(json.dumps({"format": 2}))
    done = upgrade(lake.path)
    assert (done.before, done.after) == (2, FORMAT)
    assert done.columns == [f"slo_minutes.{name}" for name in sums]
    upgraded = Lake.open(lake.path, create=False)
    weighed = rows("slo_minutes", [{**row, "minute": 60_000_000, "good_micros": 3_000_000}])
    upgraded.commit("slo_minutes", weighed, app_id="slo", app_version=1)
    found = upgraded.read("slo_minutes", ["good", "good_micros"]).sort_by("good_micros").to_pylist()
    assert found == [{"good": 3, "good_micros": 3_000_000}, {"good": 3, "good_micros": None}]
    assert [upgraded.read(name).num_rows for name in new] == [0, 0, 0, 0]
    assert verify(upgraded) == []


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


LOG_DAMAGE: dict[str, tuple[Callable[[Path], object], str]] = {
    "last entry deleted": (lambda log: _entry(log, 4).unlink(), "versions are missing: 4 (version 4 was published)"),
    "last entry emptied": (lambda log: _entry(log, 4).write_bytes(b""), "4.json: is empty"),
    "last entry torn": (lambda log: _cut(_entry(log, 4), 99), "4.json: is cut short"),
    "middle entry emptied": (lambda log: _entry(log, 2).write_bytes(b""), "2.json: is empty"),
    "middle entry deleted": (lambda log: _entry(log, 2).unlink(), "versions are missing: 2;"),
    "middle entry without its file": (lambda log: _drop(_entry(log, 2), '{"add"'), "2.json: says that the table holds"),
    "first entry deleted": (lambda log: _entry(log, 0).unlink(), "versions are missing: 0;"),
    "entry that removes replaced": (lambda log: _drop(_entry(log, 4), '{"remove"'), "4.json: says that the table"),
    "published list of another version": (lambda log: _publish(log, 4, 1), "_current.json: its files are not those"),
    "published list emptied": (lambda log: (log.parent / "_current.json").write_text(""), "_current.json: cannot be"),
    "blank file gone": (lambda log: next(log.parent.glob("_schema/*/*")).unlink(), "blank.parquet: cannot be read"),
    "table gone": (lambda log: shutil.rmtree(log.parent), "the table is missing"),
    "marker torn": (lambda log: (log.parents[1] / MARKER).write_text('{"for'), f"{MARKER}: cannot be read"),
}


def _entry(log: Path, version: int) -> Path:
    return log / f"{version:020}.json"


def _cut(path: Path, size: int) -> None:
    path.write_bytes(path.read_bytes()[:size])


def _drop(path: Path, start: str) -> None:
    lines = path.read_text().splitlines(keepends=True)
    kept = [line for line in lines if not line.startswith(start)]
    assert len(kept) < len(lines)
    path.write_text("".join(kept))


def _publish(log: Path, version: int, files: int) -> None:
    path = log.parent / "_current.json"
    current = json.loads(path.read_text())
    assert current["version"] == version
    path.write_text(json.dumps(current | {"files": current["files"][: 1 + files]}))


@pytest.mark.parametrize("damage", LOG_DAMAGE)
def test_damage_is_one_named_problem_and_the_rest_is_still_proved(
    lake: Lake, runs: Rows, rows: Rows, damage: str
) -> None:
    for version in range(3):
        lake.commit("runs", runs(f"r{version}"), app_id="w", app_version=version)
    lake.commit("runs", app_id="w", app_version=3, remove=[_relative(lake, lake.files("runs")[0])])
    lake.commit("logs", rows("logs", [{"fingerprint": 7}, {"fingerprint": 7}]), app_id="w", app_version=0)
    elsewhere = "logs: 1 rows that repeat (fingerprint), for example 7"
    do, words = LOG_DAMAGE[damage]
    do(lake.path / "runs" / "_delta_log")
    [said, other] = prove(lake.path).wrong
    assert words in said
    assert other == elsewhere


def _relative(lake: Lake, path: Path) -> str:
    return str(path.relative_to(lake.path / "runs"))


def test_what_a_log_lost_shows_after_its_list_was_published_anew(lake: Lake, runs: Rows) -> None:
    """Opening for writing publishes what the log says; each commit says what the table held, and that stays."""
    for version in range(3):
        lake.commit("runs", runs(f"r{version}"), app_id="w", app_version=version)
    _drop(_entry(lake.path / "runs" / "_delta_log", 2), '{"add"')
    [said] = verify(Lake.open(lake.path))
    assert "2.json: says that the table holds 2 files" in said


def test_opening_says_that_the_end_of_a_log_was_lost(lake: Lake, runs: Rows) -> None:
    for version in range(2):
        lake.commit("runs", runs(f"r{version}"), app_id="w", app_version=version)
    assert Lake.open(lake.path).repairs == ()
    _entry(lake.path / "runs" / "_delta_log", 2).unlink()
    [said] = Lake.open(lake.path).repairs
    assert "ends with version 1, but version 2 was published" in said


def test_a_log_that_was_summed_up_and_cleaned_is_whole_until_its_checkpoint_is_damaged(lake: Lake, runs: Rows) -> None:
    table = lake.table("runs")
    for version in range(3):
        lake.commit("runs", runs(f"r{version}"), app_id="w", app_version=version)
    table.checkpoint()
    for version in range(3):
        _entry(table.log_path, version).unlink()
    assert verify(lake) == []
    lake.commit("runs", runs("r3"), app_id="w", app_version=3)
    assert verify(lake) == []
    _cut(table.log_path / f"{3:020}.checkpoint.parquet", 99)
    [said] = verify(lake)
    assert "the last checkpoint cannot be read" in said


def test_a_commit_whose_author_died_before_publishing_is_no_damage(lake: Lake, runs: Rows) -> None:
    lake.commit("runs", runs("a"), app_id="w", app_version=0)
    published = (lake.path / "runs" / "_current.json").read_text()
    lake.commit("runs", runs("b"), app_id="w", app_version=1)
    (lake.path / "runs" / "_current.json").write_text(published)
    assert verify(lake) == []


def test_a_folder_without_a_lake_is_not_proved(tmp_path: Path) -> None:
    with pytest.raises(LakeNotFoundError, match="there is no lake"):
        prove(tmp_path)


def copied(source: Path, target: Path) -> None:
    """The recipe of docs/lake.md: of each table what is published, then the log, then the data."""
    for table in TABLES:
        (target / table).mkdir(parents=True)
        shutil.copy2(source / table / "_current.json", target / table)
        shutil.copytree(source / table / "_delta_log", target / table / "_delta_log")
        shutil.copytree(
            source / table,
            target / table,
            dirs_exist_ok=True,
            ignore=shutil.ignore_patterns("_delta_log", "_current.json", ".*.draft"),
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
    assert prove(tmp_path / "backup").wrong == []
    restored = Lake.open(tmp_path / "backup")
    found = traces_in(restored)
    assert found == [f"{number:04}" for number in range(len(found))]
    assert len(found) >= known
