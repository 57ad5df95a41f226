"""The file: whole or not there, told apart when damaged, and never from the future."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from surefoot.evaluation import replay
from surefoot.evaluation.replay.cassette import FORMAT, RECORDING, Recorder, read_cassette, seal
from surefoot.evaluation.replay.errors import CassetteError

KILLED = """
import os, signal, sys
from surefoot.evaluation import replay
with replay.opened(sys.argv[1], "record") as world:
    double = world.tool("double", lambda x: 2 * x)
    for number in range(50):
        double(number)
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "deep" / "a.jsonl"
    with replay.opened(path, "record") as world:
        for number in (1, 2, 2):
            world.tool("double", lambda x: 2 * x)(number)
    return path


def replayed(path: Path, number: int) -> Any:
    with replay.opened(path) as world:
        return world.tool("double", lambda x: pytest.fail("called"))(number)


def test_a_file_says_what_it_is(path: Path) -> None:
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert lines[0]["cassette"] == FORMAT == 1
    assert lines[0]["source"] == "recorded"
    assert lines[-1]["end"] == 3
    assert [path.name] == [file.name for file in path.parent.iterdir()]
    assert replayed(path, 2) == 4


def test_a_torn_file_is_refused_and_can_be_looked_at(path: Path) -> None:
    whole = path.read_bytes()
    for size in range(len(whole) - 1, whole.index(b"\n"), -7):
        path.write_bytes(whole[:size])
        with pytest.raises(CassetteError, match="its end is missing"):
            replayed(path, 1)
        found = read_cassette(path, torn=True)
        assert len(found.entries) == max(0, min(3, whole[:size].count(b"\n") - 1))
    path.write_bytes(whole[:20])
    with pytest.raises(CassetteError, match="not a cassette's header"):
        replayed(path, 1)


@pytest.mark.parametrize("change", [(b'"result": 4', b'"result": 5'), (b'{"x": 1}', b'{"x": 9}'), (b"tool", b"http")])
def test_a_changed_file_is_refused(path: Path, change: tuple[bytes, bytes]) -> None:
    path.write_bytes(path.read_bytes().replace(*change))
    with pytest.raises(CassetteError, match=r"not as it was recorded.*surefoot case seal"):
        replayed(path, 1)


def test_a_lost_line_is_refused(path: Path) -> None:
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:2] + lines[3:]))
    with pytest.raises(CassetteError, match="2 calls"):
        replayed(path, 1)


def test_a_file_edited_on_purpose_is_sealed_again(path: Path) -> None:
    path.write_bytes(path.read_bytes().replace(b'{"x": 1}', b'{"x": 9}').replace(b'"result": 2', b'"result": 18'))
    assert seal(path) == 3
    assert replayed(path, 9) == 18


def test_a_file_from_the_future_is_refused(path: Path) -> None:
    path.write_text(path.read_text().replace('"cassette": 1', '"cassette": 2'))
    for work in (lambda: replayed(path, 1), lambda: read_cassette(path, torn=True), lambda: seal(path)):
        with pytest.raises(CassetteError, match=r"format 2.*up to 1.*Upgrade"):
            work()


def test_recording_again_replaces_the_file_only_at_its_end(path: Path) -> None:
    before = path.read_bytes()
    with replay.opened(path, "record") as world:
        world.tool("double", lambda x: 2 * x)(7)
        assert path.read_bytes() == before
    assert replayed(path, 7) == 14


def test_a_failing_attempt_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"

    def fail() -> None:
        with replay.opened(path, "record") as world:
            world.tool("double", lambda x: 2 * x)(3)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert replayed(path, 3) == 6


def test_a_second_recording_of_one_file_is_kept_out(path: Path) -> None:
    recorder = Recorder(path)
    with pytest.raises(CassetteError, match="Another recording"):
        Recorder(path)
    recorder.close()
    Recorder(path).close()


def test_what_a_killed_recording_left_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    done = subprocess.run([sys.executable, "-c", KILLED, str(path)], check=False, timeout=60)
    assert done.returncode == -signal.SIGKILL
    assert not path.exists()
    left = path.with_name(path.name + RECORDING)
    with left.open("ab") as file:
        file.write(b'{"key": "cut o')
    with pytest.raises(CassetteError, match=r"a\.jsonl\.recording is a recording that was not closed"):
        replayed(path, 1)
    found = read_cassette(left, torn=True)
    assert (len(found.entries), found.torn) == (50, 1)
    with replay.opened(path, "record") as world:
        world.tool("double", lambda x: 2 * x)(1)
    assert len(read_cassette(tmp_path / "a.jsonl.killed-1", torn=True).entries) == 50
    assert sorted(file.name for file in tmp_path.iterdir()) == ["a.jsonl", "a.jsonl.killed-1"]


def test_there_is_none(tmp_path: Path) -> None:
    with pytest.raises(CassetteError, match=r"No such file or directory\. Record it first"):
        replayed(tmp_path / "none.jsonl", 1)
    with pytest.raises(CassetteError, match="'on' is no mode"), replay.opened(tmp_path / "none.jsonl", "on"):  # type: ignore[arg-type]  # what is tested
        pass
