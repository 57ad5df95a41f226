"""The writer moves segments into tables exactly once, isolates what it cannot, and waits when the lake refuses."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from support.segments import held, logs, once, points, seal, traces
from surefoot.collector.segment import FRAME_BYTES, HEADER_BYTES, encode_record
from surefoot.collector.spool import Spool
from surefoot.processors import status
from surefoot.processors.errors import WriterBusyError
from surefoot.processors.lake import Lake
from surefoot.processors.settings import Settings
from surefoot.processors.writer import MOST_ATTEMPTS, Writer, only_writer, run


@pytest.fixture
def spool(tmp_path: Path) -> Spool:
    return Spool(tmp_path / "spool")


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake.open(tmp_path / "lake")


def all_signals(*numbers: int) -> list[Any]:
    return [traces(numbers), logs(numbers), points(numbers)]


def drain(writer: Writer) -> None:
    while writer.step():
        pass


def test_every_signal_reaches_its_table_and_segments_go(lake: Lake, spool: Spool) -> None:
    for number in range(3):
        seal(spool, all_signals(2 * number, 2 * number + 1))
    writer = Writer(lake, spool)
    assert writer.published()["sealed_segments"] == 3
    assert writer.published()["lag_seconds"] > 0
    drain(writer)
    assert held(lake) == once(range(6))
    assert spool.sealed() == []
    said = writer.published()
    assert (said["state"], said["lag_seconds"], said["quarantined"], said["last_error"]) == ("ok", 0.0, [], None)
    assert said["totals"] == {"segments": 3, "spans": 6, "contents": 6, "logs": 6, "metric_points": 6}


def test_spans_that_are_sent_again_are_dropped_and_counted(lake: Lake, spool: Spool) -> None:
    seal(spool, [traces([0, 1, 2]), traces([2, 3])])
    writer = Writer(lake, spool)
    drain(writer)
    seal(spool, [traces([0, 3, 4])])
    drain(writer)
    restarted = Writer(lake, spool)
    seal(spool, [traces([4, 5])])
    drain(restarted)
    expected = once(range(6))
    assert {name: held(lake)[name] for name in ("spans", "contents")} == {
        "spans": expected["spans"],
        "contents": expected["contents"],
    }
    assert (writer.published()["duplicates_total"], restarted.published()["duplicates_total"]) == (3, 1)


class Crash(BaseException):
    """Ends the writer as a signal would, at a place of the test's choice."""


def crash_at(monkeypatch: pytest.MonkeyPatch, target: Any, name: str, call: int, *, after: bool) -> None:
    real, calls = getattr(target, name), 0

    def crashing(*arguments: Any, **named: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == call and not after:
            raise Crash
        result = real(*arguments, **named)
        if calls == call and after:
            raise Crash
        return result

    monkeypatch.setattr(target, name, crashing)


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize(("part", "call"), [("commit", 1), ("commit", 2), ("commit", 3), ("commit", 4), ("remove", 2)])
def test_a_crash_between_any_two_commits_loses_and_doubles_nothing(
    lake: Lake, spool: Spool, monkeypatch: pytest.MonkeyPatch, part: str, call: int, after: bool
) -> None:
    # The batch that crashes knows some of its spans from before, and has one span twice.
    seal(spool, all_signals(0, 1))
    drain(Writer(lake, spool))
    seal(spool, all_signals(2, 3))
    seal(spool, [traces([1, 3, 4]), logs([4]), points([4])])
    seal(spool, all_signals(5))
    with monkeypatch.context() as patch:
        crash_at(patch, lake if part == "commit" else spool, part, call, after=after)
        with pytest.raises(Crash):
            drain(Writer(lake, spool))
    seal(spool, all_signals(6))
    drain(Writer(Lake.open(lake.path), Spool(spool.path)))
    assert held(lake) == once(range(7))
    assert spool.sealed() == []
    assert spool.quarantined() == []


def test_numbers_that_are_used_twice_lose_nothing_in_silence(lake: Lake, spool: Spool) -> None:
    """An older receiver.json put back, as with a backup of the spool, counts again from where it was."""
    receiver = spool.path / "receiver.json"
    seal(spool, [traces([0])])
    older = receiver.read_bytes()
    seal(spool, [traces([1])])
    writer = Writer(lake, spool)
    drain(writer)
    receiver.write_bytes(older)
    restored = Spool(spool.path)
    seal(restored, [traces([2])])
    drain(writer)
    seal(restored, [traces([3])])
    drain(writer)
    assert held(lake)["spans"] == once([0, 1, 3])["spans"]
    (kept,) = spool.quarantined()
    assert "delete" in kept.with_suffix(".reason.txt").read_text()


def test_segments_of_two_receivers(lake: Lake, tmp_path: Path) -> None:
    """A spool that lost its identity gets a new receiver id, and its numbers begin again."""
    spool = Spool(tmp_path / "spool")
    seal(spool, all_signals(0))
    drain(Writer(lake, spool))
    seal(spool, all_signals(1))
    (spool.path / "receiver.json").unlink()
    fresh = Spool(spool.path)
    seal(fresh, all_signals(2))
    seal(fresh, all_signals(3))
    drain(Writer(lake, fresh))
    assert held(lake) == once(range(4))


def test_damage_inside_a_segment_is_set_aside_and_the_rest_is_kept(lake: Lake, spool: Spool) -> None:
    records = [traces([number]) for number in range(3)]
    path = seal(spool, records)
    first, second = (FRAME_BYTES + len(encode_record(item).data) for item in records[:2])
    data = bytearray(path.read_bytes())
    position = HEADER_BYTES + first
    data[position + FRAME_BYTES + 20] ^= 0xFF
    path.write_bytes(data)
    writer = Writer(lake, spool)
    drain(writer)
    assert held(lake)["spans"] == once([0, 2])["spans"]
    (kept,) = spool.quarantined()
    assert kept.name == f"{path.stem}-at-{position}.damage"
    assert kept.read_bytes() == bytes(data[position : position + second])
    assert f"{second} bytes at {position} of {path.name}" in kept.with_suffix(".reason.txt").read_text()
    assert writer.published()["totals"]["damaged_stretches"] == 1
    assert writer.published()["quarantined"] == [kept.name]


def test_a_request_that_cannot_be_decoded_is_set_aside_alone(lake: Lake, spool: Spool) -> None:
    bad = replace(traces([1]), body=b"\xff\xff\xff")
    seal(spool, [traces([0]), bad, *all_signals(2)])
    writer = Writer(lake, spool)
    drain(writer)
    assert held(lake)["spans"] == once([0, 2])["spans"]
    (kept,) = spool.quarantined()
    assert kept.read_bytes() == bad.body
    assert "ExportTraceServiceRequest" in kept.with_suffix(".reason.txt").read_text()
    assert writer.published()["totals"]["undecodable_requests"] == 1


def test_a_segment_that_fails_by_itself_is_set_aside_and_named(lake: Lake, spool: Spool) -> None:
    seal(spool, all_signals(0))
    path = seal(spool, all_signals(1))
    path.write_bytes(b"not a segment at all")
    seal(spool, all_signals(2))
    writer = Writer(lake, spool)
    drain(writer)
    assert held(lake) == once([0, 2])
    (kept,) = spool.quarantined()
    assert kept.name == path.name
    reason = kept.with_suffix(".reason.txt").read_text()
    assert f"{MOST_ATTEMPTS} attempts failed" in reason
    assert "not a Surefoot segment" in reason
    said = writer.published()
    assert said["totals"]["quarantined_segments"] == 1
    assert path.name in said["last_error"]


KILLED = """
import os, signal, sys
from pathlib import Path
from surefoot.processors import writer
from surefoot.processors.settings import Settings
real = writer.decode_spans
def decode(records):
    if any(record.source == "killer" for record in records):
        os.kill(os.getpid(), signal.SIGKILL)
    return real(records)
writer.decode_spans = decode
sys.argv = ["writer", "--once"]
sys.exit(writer.main())
"""


def test_a_segment_that_kills_the_writer_is_set_aside(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path)
    spool = Spool(settings.spool_path)
    seal(spool, all_signals(0))
    killer = seal(spool, [replace(traces([1]), source="killer")])
    seal(spool, all_signals(2))
    environment = os.environ | settings.to_environment()
    codes: list[int] = []
    while not codes or (codes[-1] and len(codes) < 9):
        codes.append(subprocess.run([sys.executable, "-c", KILLED], env=environment, capture_output=True).returncode)
    # Once in a batch with the others, then by itself.
    assert codes == [-signal.SIGKILL] * (1 + MOST_ATTEMPTS) + [0]
    assert held(Lake.open(settings.lake_path)) == once([0, 2])
    assert [path.name for path in spool.quarantined()] == [killer.name]
    said = status.read(settings.status_path, "writer")
    assert said is not None
    assert said["quarantined"] == [killer.name]


def test_a_lake_that_refuses_is_waited_for_and_no_segment_is_blamed(lake: Lake, spool: Spool) -> None:
    obstacle = lake.table("logs").path / "date=2026-11-30"
    obstacle.write_text("a file where a folder has to be")
    for number in range(3):
        seal(spool, all_signals(number))
    writer = Writer(lake, spool)
    for _ in range(2 * MOST_ATTEMPTS):
        assert not writer.step()
    said = writer.published()
    assert (said["state"], said["sealed_segments"], said["quarantined"]) == ("waiting", 3, [])
    assert "date=2026-11-30" in said["reason"]
    obstacle.unlink()
    drain(writer)
    assert writer.published()["state"] == "ok"
    assert held(lake) == once(range(3))


def test_two_writers_never_share_a_spool(spool: Spool) -> None:
    stop = threading.Event()
    with only_writer(spool, stop):
        stop.set()  # so that the second one does not wait for the first to end
        with pytest.raises(WriterBusyError, match=f"process {os.getpid()}"), only_writer(spool, stop):
            pass
    with only_writer(spool, threading.Event()):
        pass


def start(settings: Settings, *flags: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "surefoot.processors.writer", *flags]
    return subprocess.Popen(command, env=os.environ | settings.to_environment(), stdout=subprocess.PIPE, text=True)


def until(condition: Callable[[], bool], seconds: float = 60.0) -> None:
    waited = threading.Event()
    for _ in range(int(seconds / 0.02)):
        if condition():
            return
        waited.wait(0.02)
    raise AssertionError("it did not happen")


def test_the_process_says_that_it_is_ready_and_ends_with_0_on_sigterm(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path)
    spool = Spool(settings.spool_path)
    seal(spool, all_signals(0))
    with start(settings) as process:
        assert process.stdout is not None
        assert json.loads(process.stdout.readline()) == {"ready": True}
        until(lambda: spool.sealed() == [])
        seal(spool, all_signals(1))
        until(lambda: spool.sealed() == [])
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
        assert process.stdout.read() == ""
    assert held(Lake.open(settings.lake_path)) == once(range(2))
    said = status.read(settings.status_path, "writer")
    assert said is not None
    assert said["totals"]["spans"] == 2


def test_once_takes_what_is_there_and_returns(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path)
    seal(Spool(settings.spool_path), all_signals(0, 1, 2))
    run(settings, threading.Event(), once=True)
    assert held(Lake.open(settings.lake_path)) == once(range(3))
