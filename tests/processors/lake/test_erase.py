"""Erasure: no row and no byte stays, nothing comes back, and neighbours lose nothing, also under a live server."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support.segments import seal, traces
from support.serving import SUREFOOT
from surefoot.collector.spool import Spool
from surefoot.processors import requests
from surefoot.processors.errors import LakeError
from surefoot.processors.inbox import Inbox, have_done
from surefoot.processors.lake import Lake
from surefoot.processors.lake.erase import Sweep, erase, find
from surefoot.processors.lake.erasures import RECORD, Erasures
from surefoot.processors.lake.inspect import verify
from surefoot.processors.lake.schema import TABLES
from surefoot.processors.settings import Settings

EVE, BOB = "e" * 32, "b" * 32


def fill(lake: Lake, version: int = 0) -> None:
    """Eve's trace and Bob's, in every table, each with an open and a settled run, all in one file a table."""
    of: dict[str, list[dict[str, Any]]] = {name: [] for name in TABLES}
    for trace, user in ((EVE, "eve"), (BOB, "bob")):
        attributes = [("user.id", user)]
        own = {"trace_id": trace, "span_id": "1" * 16, "run_id": f"{trace}-{'1' * 16}", "settled": True}
        of["spans"].append(own | {"attributes": attributes, "conversation_id": f"talk-{user}"})
        of["contents"].append(own | {"content": f"I am {user}"})
        of["logs"] += [
            own | {"event_name": "of the trace"},
            {"event_name": "without a trace", "attributes": attributes},
            {"event_name": "judgement", "attributes": [("gen_ai.response.id", f"answer-{user}")]},
        ]
        of["metric_points"].append({"metric_name": user, "attributes": attributes})
        of["runs"].append(own)
        of["tool_calls"].append(own)
        of["model_calls"].append(own | {"response_id": f"answer-{user}"})
        of["verdicts"] += [own, {"trace_id": "elsewhere", "run_id": own["run_id"], "settled": True}]
    for name, rows in of.items():
        schema = TABLES[name]
        known = [{"date": time_date(), **{k: v for k, v in row.items() if k in schema.names}} for row in rows]
        table = pa.Table.from_pylist(known, schema=schema)
        lake.commit(name, table, app_id="w", app_version=version)


def time_date() -> Any:
    from datetime import UTC, datetime

    return datetime.now(UTC).date()


@pytest.mark.parametrize(
    ("kind", "key", "loose"),
    [("trace", EVE, 0), ("run", f"{EVE}-{'1' * 16}", 0), ("conversation", "talk-eve", 0), ("user", "eve", 1)],
)
def test_every_table_forgets_the_one_and_keeps_the_other(lake: Lake, kind: str, key: str, loose: int) -> None:
    fill(lake)
    found = find(lake, kind, key)
    done = erase(lake, Erasures(lake.path), kind, key, time.time(), "a test")
    assert done.found == found
    assert found.trace_ids == (EVE,)
    assert dict(sorted(found.rows.items())) == {
        **dict.fromkeys(("contents", "model_calls", "runs", "spans", "tool_calls"), 1),
        "logs": 2 + loose,
        "verdicts": 2,
        **({"metric_points": loose} if kind in ("user", "conversation") else {}),
    }
    assert done.dirty_dates == {time_date()}
    for name in ("spans", "contents", "runs", "tool_calls", "model_calls"):
        assert lake.read(name, ["trace_id"])["trace_id"].to_pylist() == [BOB]
    assert sum(find(lake, kind, key).rows.values()) == 0
    assert find(lake, "user", "bob").rows["logs"] == 3
    assert verify(lake) == []


@pytest.mark.parametrize(
    ("kind", "key"),
    [
        ("trace", EVE.upper()),
        ("trace", f" {EVE[:8]}-{EVE[:4]}-{EVE[:4]}-{EVE[:4]}-{EVE[:12]}"),
        ("run", f"{EVE.upper()}-{'1' * 16}"),
    ],
)
def test_an_id_may_be_written_as_other_tools_show_it(lake: Lake, kind: str, key: str) -> None:
    fill(lake)
    assert erase(lake, Erasures(lake.path), kind, key, time.time(), "a test").found.rows["spans"] == 1


@pytest.mark.parametrize(("kind", "key"), [("trace", EVE[:-1]), ("trace", ""), ("run", "1" * 16), ("run", "eve")])
def test_an_id_that_can_be_in_no_table_does_not_look_erased(lake: Lake, kind: str, key: str) -> None:
    with pytest.raises(LakeError, match="nothing was erased"):
        erase(lake, Erasures(lake.path), kind, key, time.time(), "a test")
    assert not (lake.path / RECORD).exists()


def test_an_open_row_that_stays_is_still_open(lake: Lake) -> None:
    """Else the next replacement of its trace would not find it, and there would be two."""
    rows = [{"trace_id": trace, "run_id": trace, "settled": False, "date": time_date()} for trace in (EVE, BOB)]
    lake.commit("runs", open_rows=pa.Table.from_pylist(rows, schema=TABLES["runs"]), app_id="w", app_version=0)
    erase(lake, Erasures(lake.path), "trace", EVE, time.time(), "a test")
    table = lake.table("runs")
    table.refresh()
    assert [(file.is_open, file.rows) for file in table.files().values()] == [(True, 1)]


def test_rows_that_stay_are_no_news(lake: Lake) -> None:
    fill(lake)
    before = lake.version("spans")
    erase(lake, Erasures(lake.path), "trace", EVE, time.time(), "a test")
    assert lake.added_since("spans", before).files == []


def test_an_erased_trace_that_comes_again_goes_again_and_is_counted(lake: Lake) -> None:
    fill(lake)
    erasures = Erasures(lake.path)
    sweep = Sweep(lake, erasures)
    sweep.step(time.time())
    erase(Lake.open(lake.path), Erasures(lake.path), "trace", EVE, time.time(), "another process")
    sweep.step(time.time())
    assert sweep.rows == 0
    fill(lake, version=1)
    sweep.step(time.time())
    assert sweep.rows == 3  # span, content, log
    assert set(lake.read("spans", ["trace_id"])["trace_id"].to_pylist()) == {BOB}
    # A new process that has never seen the record looks through all files.
    fill(lake, version=2)
    again = Sweep(Lake.open(lake.path), Erasures(lake.path))
    again.step(time.time())
    assert again.rows == 3


def test_the_record_says_when_what_and_by_whom_and_names_nobody(lake: Lake) -> None:
    fill(lake)
    erase(lake, Erasures(lake.path), "user", "eve", 1_796_000_000.0, "a test")
    text = (lake.path / RECORD).read_text()
    events = [json.loads(line) for line in text.splitlines()]
    assert [(event["event"], event["at"]) for event in events] == [("begun", 1796000000.0), ("erased", 1796000000.0)]
    assert (events[0]["kind"], events[0]["by"], events[1]["rows"]["spans"]) == ("user", "a test", 1)
    assert not any(word in text for word in ('"eve"', EVE))
    other = Lake.open(lake.path.parent / "other")
    assert Erasures(other.path).hash_of("eve") != events[0]["key_hash"]


def test_a_line_of_the_record_that_a_crash_cut_short_is_passed_over(lake: Lake) -> None:
    erasures = Erasures(lake.path)
    erasures.append("begun", 1.0, traces=["x"])
    with (lake.path / RECORD).open("a") as file:
        file.write('{"event": "begu')
    Erasures(lake.path).append("begun", 2.0, traces=["y"])
    assert Erasures(lake.path).tombstones == {"x", "y"}


def ask(settings: Settings, command: str, **arguments: str) -> dict[str, Any]:
    return have_done(settings, command, arguments, "a test", tell=lambda _: None, clock=time.time, sleep=time.sleep)


def test_without_a_server_the_command_writes_the_spool_erases_and_deletes_the_bytes(lake: Lake, tmp_path: Path) -> None:
    settings = Settings(home=tmp_path, reader_seconds=0.2)
    seal(Spool(settings.spool_path), [traces([0, 1])])
    key = f"{1:032x}"
    said = ask(settings, "erase", kind="trace", key=key)
    assert said["rows"] == {name: 1 if name in ("spans", "contents") else 0 for name in said["rows"]}
    assert said["deleted_files"] == 2
    assert Spool(settings.spool_path).sealed() == []
    for path in lake.path.glob("*/date=*/*"):
        assert key not in pq.read_table(path, partitioning=None)["trace_id"].to_pylist()
    assert "waiting" not in ask(settings, "vacuum")


@pytest.mark.parametrize(("kind", "key"), [("user", "nobody"), ("trace", "f" * 32)])
def test_what_is_nowhere_is_said_at_once_and_leaves_no_record(lake: Lake, tmp_path: Path, kind: str, key: str) -> None:
    fill(lake)
    told: list[str] = []
    hour = iter(range(0, 10**6, 3600))
    settings = Settings(home=tmp_path)
    said = have_done(
        settings, "erase", {"kind": kind, "key": key}, "x", tell=told.append, clock=lambda: next(hour), sleep=_never
    )
    assert (said["traces"], set(said["rows"].values()), said["record"]) == (0, {0}, None)
    assert not [text for text in told if "waiting" in text]
    assert not (lake.path / RECORD).exists()


def _never(seconds: float) -> None:
    pytest.fail("there was nothing to wait for")


def test_an_erasure_that_died_before_its_files_went_is_finished_when_asked_again(lake: Lake, tmp_path: Path) -> None:
    """Its rows are gone already, so nothing is found; the bytes are still there."""
    fill(lake)
    erase(lake, Erasures(lake.path), "user", "eve", time.time(), "who died")
    settings = Settings(home=tmp_path, reader_seconds=0.2)
    said = ask(settings, "erase", kind="user", key="eve")
    assert (set(said["rows"].values()), said["deleted_files"] > 0) == ({0}, True)
    assert said["record"] == str(lake.path / RECORD)
    assert ask(settings, "erase", kind="user", key="eve")["record"] is None


def test_a_piped_command_says_what_it_waits_for_and_where_the_record_is(lake: Lake, tmp_path: Path) -> None:
    fill(lake)
    settings = Settings(home=tmp_path, reader_seconds=1.1)

    def surefoot(user: str) -> subprocess.CompletedProcess[str]:
        command = [*SUREFOOT, "lake", "erase", "--user", user, "--yes"]
        environment = os.environ | settings.to_environment()
        return subprocess.run(command, capture_output=True, text=True, check=True, env=environment)

    done = surefoot("eve")
    assert f"record: {lake.path / RECORD}" in done.stdout
    waits = [line for line in done.stderr.splitlines() if "for open readers (SUREFOOT_READER_SECONDS)" in line]
    assert len(waits) == 1
    record = (lake.path / RECORD).read_bytes()
    nothing = surefoot("nobody")
    assert "Found 0 traces and 0 rows of user 'nobody': nothing was erased" in nothing.stdout
    assert "for open readers" not in nothing.stderr
    assert (lake.path / RECORD).read_bytes() == record


def test_a_request_that_nobody_takes_up_is_withdrawn(lake: Lake, tmp_path: Path) -> None:
    from surefoot.processors.errors import RequestError

    settings = Settings(home=tmp_path)
    hours = iter(range(0, 10**6, 30))
    with lake.lease("a test"), pytest.raises(RequestError, match="did not take up `vacuum`"):
        have_done(settings, "vacuum", {}, "x", tell=lambda _: None, clock=lambda: next(hours), sleep=lambda _: None)
    assert requests.pending(settings.requests_path) == []


@pytest.mark.parametrize(
    "text",
    [
        '{"command": "erase", "argu',
        "[]",
        '{"command": "erase", "arguments": {}, "by": "x", "id": "elsewhere"}',
        '{"command": "erase", "arguments": {"kind": "trace", "key": 1}, "by": "x", "id": ""}',
        '{"command": "erase", "arguments": {}, "by": "x", "newer": 1}',
    ],
)
def test_what_is_no_request_is_answered_and_stops_nobody(lake: Lake, tmp_path: Path, text: str) -> None:
    settings = Settings(home=tmp_path)
    folder = settings.requests_path
    folder.mkdir()
    (folder / "it.request.json").write_text(text)
    inbox = Inbox(lake, settings)
    for now in range(3):
        inbox.step(float(now))
    assert "error" in (requests.take_answer(folder, "it") or {})
    assert list(folder.iterdir()) == []


def _start(module: str, settings: Settings) -> subprocess.Popen[str]:
    environment = os.environ | settings.to_environment()
    process = subprocess.Popen(
        [sys.executable, "-m", module], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline(), process.communicate()[1]
    return process


def test_commands_that_race_a_live_writer_and_jobs_lose_double_and_resurrect_nothing(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path, reader_seconds=0.2, jobs_interval_seconds=0.1, settle_seconds=1.0)
    spool = Spool(settings.spool_path)
    Lake.open(settings.lake_path)
    processes = [_start(f"surefoot.processors.{name}", settings) for name in ("writer", "jobs")]
    try:
        erased: list[int] = []
        for turn in range(4):
            seal(spool, [traces(range(turn * 20, turn * 20 + 20)), traces(erased)])  # what was erased comes again
            if turn % 2:
                erased.append(turn * 20)
                said = ask(settings, "erase", kind="trace", key=f"{turn * 20 + 1:032x}")
                assert said["rows"]["spans"] == 1
            ask(settings, "compact" if turn % 3 else "vacuum")
        seal(spool, [traces(erased)])
        deadline = time.monotonic() + 60
        wanted = Counter(f"span {number}" for number in range(80) if number not in erased)
        while spool.sealed() or Counter(names := _names(settings)) != wanted:
            assert time.monotonic() < deadline, (Counter(names) - wanted, wanted - Counter(names))
            time.sleep(0.1)
    finally:
        for process in processes:
            process.terminate()
        ends = [(process.communicate(timeout=60)[1], process.returncode) for process in processes]
    assert [code for _, code in ends] == [0, 0], ends
    assert verify(Lake.open(settings.lake_path)) == []


def _names(settings: Settings) -> list[str]:
    names: list[str] = Lake.open(settings.lake_path, create=False).read("spans", ["name"])["name"].to_pylist()
    return names
