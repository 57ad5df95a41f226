"""Compaction, retention, deletion and checkpoints: counts stay exact, whoever works beside them."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from surefoot.processors.errors import LakeError
from surefoot.processors.lake import Lake, replace_traces, vacuum
from surefoot.processors.lake import compact as compaction
from surefoot.processors.lake.commit import commit
from surefoot.processors.lake.compact import MIN_FILES, UPKEEP, compact
from surefoot.processors.lake.upkeep import TableUpkeep, upkeep
from surefoot.processors.settings import Settings

Rows = Callable[..., pa.Table]
Traces = Callable[[Lake], list[str]]
DAY = 86400.0
TODAY = datetime.now(UTC).date()  # the age of a removed file is the disk's, so these tests live in the present


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(home=tmp_path, vacuum_hours=24.0)


FEW = 12


@pytest.fixture
def _few_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """Thresholds that a test reaches quickly."""
    monkeypatch.setattr(compaction, "MIN_FILES", FEW)
    monkeypatch.setattr(vacuum, "CHECKPOINT_EVERY", FEW)


quick = pytest.mark.usefixtures("_few_are_many")


def _commit_many(lake: Lake, runs: Rows, count: int, day: date = TODAY) -> list[str]:
    for version in range(count):
        lake.commit("runs", runs(f"{version:04}", day=day), app_id="receiver", app_version=version)
    return [f"{version:04}" for version in range(count)]


def _of_runs(done: list[TableUpkeep]) -> TableUpkeep:
    return next(report for report in done if report.table == "runs")


def _on_disk(lake: Lake) -> set[Path]:
    return set((lake.path / "runs").glob("date=*/*"))


def test_small_files_become_one_and_nothing_else_changes(
    lake: Lake, runs: Rows, traces_in: Traces, settings: Settings
) -> None:
    wanted = _commit_many(lake, runs, MIN_FILES)
    version = lake.version("runs")
    report = _of_runs(upkeep(lake, settings, time.time()))
    assert report.compacted_files == MIN_FILES
    assert len(lake.files("runs")) == 1
    assert traces_in(lake) == wanted
    assert lake.read("runs", where="versions['model'] = 'm1'").num_rows == MIN_FILES
    assert lake.added_since("runs", version).files == []  # moved rows are not new
    assert lake.transaction_version("runs", "receiver") == MIN_FILES - 1
    assert _of_runs(upkeep(lake, settings, time.time())).compacted_files == 0


def test_few_small_files_are_left_alone(lake: Lake, runs: Rows, settings: Settings) -> None:
    _commit_many(lake, runs, MIN_FILES - 1)
    assert _of_runs(upkeep(lake, settings, time.time())).compacted_files == 0


@quick
def test_a_call_stays_within_its_budget(lake: Lake, runs: Rows, traces_in: Traces) -> None:
    wanted = _commit_many(lake, runs, FEW)
    table = lake.table("runs")
    sizes = sorted(file.size for file in table.files().values())
    replaced = compact(table, budget=sum(sizes[:10]))
    assert len(replaced.files) == 10
    assert len(lake.files("runs")) == FEW - 10 + 1
    assert compact(table, budget=sizes[0]).files == []
    assert traces_in(lake) == wanted


@quick
def test_open_files_are_never_compacted(lake: Lake, runs: Rows, traces_in: Traces) -> None:
    wanted = _commit_many(lake, runs, FEW)
    replace_traces(lake, "runs", ["open"], runs("open", day=TODAY, settled=False), None, "derive", 0)
    table = lake.table("runs")
    before = [path for path, file in table.files().items() if file.is_open]
    assert len(compact(table, budget=1 << 30).files) == FEW
    table.refresh()
    assert [path for path, file in table.files().items() if file.is_open] == before
    assert traces_in(lake) == [*wanted, "open"]


def test_a_move_that_would_lose_a_row_is_refused(lake: Lake, runs: Rows, traces_in: Traces) -> None:
    lake.commit("runs", runs("a", "b", day=TODAY), app_id="w", app_version=0)
    table = lake.table("runs")
    file = next(iter(table.files().values()))
    half = [body.slice(0, 1) for body in table.bodies([file])]
    with pytest.raises(LakeError, match="1 files promise 2 rows and hold 1; nothing was committed"):
        commit(table, moved={TODAY: half}, remove=[file.path], data_change=False, app_id=UPKEEP, app_version=0)
    assert traces_in(lake) == ["a", "b"]


@quick
def test_an_open_reader_survives_compaction_until_its_files_are_old(lake: Lake, runs: Rows, settings: Settings) -> None:
    _commit_many(lake, runs, FEW)
    con = lake.connect()
    now = time.time()
    upkeep(lake, settings, now)
    upkeep(lake, settings, now + 23 * 3600)
    assert con.execute("SELECT count(DISTINCT run_id) FROM runs").fetchone() == (FEW,)
    report = _of_runs(upkeep(lake, settings, now + 25 * 3600))
    assert report.deleted_files == FEW
    assert _on_disk(lake) == set(lake.files("runs"))
    lake.refresh(con)
    assert con.execute("SELECT count(DISTINCT run_id) FROM runs").fetchone() == (FEW,)


def test_a_young_draft_of_a_live_writer_is_not_deleted(lake: Lake, settings: Settings) -> None:
    folder = lake.path / "runs" / f"date={TODAY}"
    folder.mkdir()
    draft = folder / "part-of-a-writer-at-work.parquet"
    draft.write_bytes(b"not committed yet")
    at_once = settings.model_copy(update={"vacuum_hours": 0.0})
    assert _of_runs(upkeep(lake, at_once, time.time())).deleted_files == 0
    assert draft.exists()
    os.utime(draft, (time.time() - 7200,) * 2)
    assert _of_runs(upkeep(lake, at_once, time.time())).deleted_files == 1


def test_retention_is_per_table_and_by_partition(lake: Lake, rows: Rows, settings: Settings) -> None:
    ages = {"contents": (7, 8), "spans": (30, 31), "logs": (30, 31), "metric_points": (30, 31), "runs": (400, 401)}
    for table, days in ages.items():
        dated = [{"date": TODAY - timedelta(days=age)} for age in days]
        lake.commit(table, rows(table, dated), app_id="w", app_version=0)
    promised = ("slo_generations", "profiles", "decisions")
    for table in promised:
        lake.commit(table, rows(table, [{"date": TODAY - timedelta(days=4000)}]), app_id="w", app_version=0)
    now = time.time()
    upkeep(lake, settings, datetime(TODAY.year, TODAY.month, TODAY.day, 12, tzinfo=UTC).timestamp())
    assert [lake.read(table).num_rows for table in promised] == [1, 1, 1]
    for table, (kept, _) in ages.items():
        assert lake.read(table, ["date"])["date"].to_pylist() == [TODAY - timedelta(days=kept)]
    done = {report.table: report for report in upkeep(lake, settings, now + 2 * DAY)}
    assert all(done[table].deleted_files >= 1 for table in ages)


@quick
def test_checkpoints_come_and_the_old_log_goes(lake: Lake, runs: Rows, traces_in: Traces, settings: Settings) -> None:
    behind = Lake.open(lake.path)
    wanted = _commit_many(lake, runs, FEW)
    now = time.time()
    report = _of_runs(upkeep(lake, settings, now))
    assert (report.checkpointed, report.cleaned_log_entries) == (True, 0)
    assert not _of_runs(upkeep(lake, settings, now)).checkpointed
    assert _of_runs(upkeep(lake, settings, now + 3 * DAY)).cleaned_log_entries >= FEW
    after = Lake.open(lake.path)
    for reader in (lake, after, behind):
        assert traces_in(reader) == wanted
        assert reader.transaction_version("runs", "receiver") == FEW - 1
    assert not after.commit("runs", runs("x"), app_id="receiver", app_version=0).committed
    assert behind.commit("runs", runs("y", day=TODAY), app_id="receiver", app_version=FEW).committed
    assert traces_in(after) == [*wanted, "y"]
    assert not after.added_since("runs", 0).complete


APPENDER = """
import sys
from datetime import date
from pathlib import Path
import pyarrow as pa
from surefoot.processors.lake import Lake
from surefoot.processors.lake.schema import TABLES

lake = Lake.open(Path(sys.argv[1]))
for version in range(int(sys.argv[3])):
    rows = [{"trace_id": f"{sys.argv[2]}-{version}", "date": date.fromisoformat(sys.argv[4])}]
    lake.commit("runs", pa.Table.from_pylist(rows, schema=TABLES["runs"]), app_id=sys.argv[2], app_version=version)
"""
COMPACTOR = """
import sys
import time
from pathlib import Path
from surefoot.processors.lake import Lake
from surefoot.processors.lake import compact

compact.MIN_FILES = 5
lake = Lake.open(Path(sys.argv[1]))
merged = 0
print("ready", flush=True)
while not (Path(sys.argv[1]) / "stop").exists():
    merged += len(compact.compact(lake.table("runs"), 1 << 20).files)
    time.sleep(0.02)
print(merged, flush=True)
"""


def _start(*arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-c", *arguments], stdout=subprocess.PIPE, text=True)


def test_racing_appenders_and_compactors_keep_counts_exact(lake: Lake, traces_in: Traces) -> None:
    """Two compactors without a lease, which doubled a table under delta-rs' own compaction, and two appenders."""
    path, count = str(lake.path), 40
    compactors = [_start(COMPACTOR, path) for _ in range(2)]
    for process in compactors:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    appenders = [_start(APPENDER, path, name, str(count), TODAY.isoformat()) for name in ("one", "two")]
    wanted = sorted(f"{name}-{version}" for name in ("one", "two") for version in range(count))
    while any(process.poll() is None for process in appenders):
        found = traces_in(lake)
        assert len(found) == len(set(found))
        time.sleep(0.1)
    (lake.path / "stop").touch()
    merged = [int(process.communicate(timeout=60)[0]) for process in compactors]
    for process in appenders:
        process.communicate()
    assert [process.returncode for process in [*appenders, *compactors]] == [0, 0, 0, 0]
    assert sum(merged) > count
    assert traces_in(lake) == wanted


def _replace_often(lake: Lake, runs: Rows, times: int, *, opened: bool) -> None:
    old: list[str] = []
    for version in range(times):
        rows = runs(f"{version:04}", day=TODAY, settled=not opened)
        given = {"open_rows": rows} if opened else {"rows": rows}
        made = lake.commit("runs", app_id="w", app_version=version, remove=old, **given)
        old = [file.path for file in made.added]


def test_open_files_that_were_replaced_stay_minutes_and_not_a_day(lake: Lake, runs: Rows, settings: Settings) -> None:
    _replace_often(lake, runs, 4, opened=True)
    now = time.time()
    assert _of_runs(upkeep(lake, settings, now + settings.reader_seconds - 30)).deleted_files == 0
    assert _of_runs(upkeep(lake, settings, now + settings.reader_seconds + 30)).deleted_files == 3


def test_replaced_bytes_have_a_budget_and_the_oldest_go_first(lake: Lake, runs: Rows, settings: Settings) -> None:
    _replace_often(lake, runs, 4, opened=False)
    size = next(iter(lake.table("runs").files().values())).size
    tight = settings.model_copy(update={"replaced_bytes": 2 * size + size // 2})
    now = time.time()
    assert _of_runs(upkeep(lake, tight, now)).deleted_files == 0  # too young for any reader to be done
    done = _of_runs(upkeep(lake, tight, now + settings.reader_seconds + 30))
    assert done.deleted_files == 1
    assert done.waiting_bytes <= tight.replaced_bytes


def test_a_disk_budget_takes_the_oldest_raw_days_says_so_and_never_runs(
    lake: Lake, rows: Rows, settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    for table in ("spans", "contents", "runs"):
        days = [{"date": TODAY - timedelta(days=age)} for age in (3, 2, 0)]
        lake.commit(table, rows(table, days), app_id="w", app_version=0)
    tiny = settings.model_copy(update={"max_lake_bytes": 1})
    done = {report.table: report for report in upkeep(lake, tiny, time.time())}
    assert {table: done[table].early_rows for table in ("spans", "contents", "runs")} == {
        "spans": 2, "contents": 2, "runs": 0,
    }  # fmt: skip
    assert lake.read("spans", ["date"])["date"].to_pylist() == [TODAY]
    assert lake.read("runs").num_rows == 3
    assert "above its disk budget" in caplog.text
    enough = settings.model_copy(update={"max_lake_bytes": 1 << 30})
    assert all(report.early_rows == 0 for report in upkeep(lake, enough, time.time()))


def test_a_large_file_is_not_moved_with_every_merge(lake: Lake, rows: Rows) -> None:
    """A growing file that joined every merge would be rewritten hundreds of times a day."""
    many = [{"run_id": os.urandom(16).hex()} for _ in range(5000)]
    lake.commit("runs", rows("runs", [row | {"date": TODAY} for row in many]), app_id="w", app_version=0)
    [large] = lake.table("runs").files() or lake.files("runs")
    for version in range(1, 9):
        lake.commit("runs", rows("runs", [{"date": TODAY}]), app_id="w", app_version=version)
    table = lake.table("runs")
    assert len(compact(table, 1 << 30, min_files=5).files) == 8
    table.refresh()
    assert large in table.files()


def test_a_clock_that_jumps_ahead_expires_nothing_until_it_has_stood_for_a_day(
    lake: Lake, rows: Rows, settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    def spans_after(now: float) -> tuple[int, int]:
        """How many are left, and how many only because the clock is not believed."""
        done = next(report for report in upkeep(lake, settings, now) if report.table == "spans")
        return lake.read("spans").num_rows, done.doubted_rows

    lake.commit("spans", rows("spans", [{"date": TODAY}]), app_id="w", app_version=0)
    now, ahead = time.time(), time.time() + 400 * DAY
    assert spans_after(ahead) == (1, 1)
    assert "the clock is 400.0 days ahead" in caplog.text
    # What arrives meanwhile has dates of the wrong clock, which prove nothing.
    late = [{"date": TODAY + timedelta(days=392)}]
    lake.commit("spans", rows("spans", late), app_id="w", app_version=1)
    assert spans_after(ahead + 0.9 * DAY) == (2, 1)
    assert spans_after(now + 60) == (2, 0)  # put right: the doubt is forgotten
    assert spans_after(ahead + 2 * DAY) == (2, 1)
    assert spans_after(ahead + 3.1 * DAY) == (1, 0)  # it stands: a server that was off for so long, or a quiet lake


def test_a_quiet_lake_goes_on_to_expire(lake: Lake, rows: Rows, settings: Settings) -> None:
    lake.commit("contents", rows("contents", [{"date": TODAY}]), app_id="w", app_version=0)
    now = time.time()
    for day in range(9):
        upkeep(lake, settings, now + day * DAY)
        assert lake.read("contents").num_rows == (day <= settings.retention_days_contents)


def test_a_server_that_runs_once_a_week_expires_too(lake: Lake, rows: Rows, settings: Settings) -> None:
    lake.commit("contents", rows("contents", [{"date": TODAY}]), app_id="w", app_version=0)
    now = time.time()
    left = []
    for week in range(4):
        upkeep(lake, settings, now + week * 7 * DAY)
        left.append(lake.read("contents").num_rows)
    assert left == [1, 1, 0, 0]
