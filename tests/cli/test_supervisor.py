"""The supervisor with real processes: readiness, restarts that keep their port, order of stopping, orphans."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from surefoot.cli.supervisor import Program, StartError, Supervisor

# Prints its ready line, then notes in a file when and why it ends.
POLITE = textwrap.dedent(
    """
    import json, os, pathlib, signal, sys, time
    name, port, diary = sys.argv[1:4]
    def leave(*_):
        with open(diary, "a") as f: f.write(f"{name} {os.getpid()}\\n")
        sys.exit(0)
    signal.signal(signal.SIGTERM, leave)
    print(json.dumps({name: f"http://127.0.0.1:{port}"}), flush=True)
    while True: time.sleep(0.05)
    """
)


def polite(name: str, diary: Path, seen: list[Mapping[str, Any]] | None = None) -> Program:
    def argv(ready: Mapping[str, Any]) -> Sequence[str]:
        if seen is not None:
            seen.append(dict(ready))
        return ["-c", POLITE, name, "4711", str(diary)]

    return Program(name, argv, os.environ)


def wait_for(condition: Any, seconds: float = 20.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.02)


def test_programs_start_together_and_stop_in_order(tmp_path: Path) -> None:
    diary = tmp_path / "diary"
    reports: list[dict[str, Any]] = []
    supervisor = Supervisor([polite("first", diary), polite("second", diary)], reports.append)
    assert supervisor.start() == {"first": "http://127.0.0.1:4711", "second": "http://127.0.0.1:4711"}
    assert set(supervisor.pids) == {"first", "second"}
    supervisor.stop()
    assert [line.split()[0] for line in diary.read_text().splitlines()] == ["first", "second"]
    assert reports[-1]["processes"]["first"] == {"pid": None, "restarts": 0, "last_exit": 0}


def test_a_killed_program_starts_again_and_learns_its_old_address(tmp_path: Path) -> None:
    seen: list[Mapping[str, Any]] = []
    reports: list[dict[str, Any]] = []
    supervisor = Supervisor([polite("first", tmp_path / "diary", seen)], reports.append)
    supervisor.start()
    old = supervisor.pids["first"]

    def stop_after_restart() -> None:
        wait_for(lambda: supervisor.pids.get("first", old) != old)
        supervisor.request_stop()

    watcher = threading.Thread(target=stop_after_restart)

    os.kill(old, signal.SIGKILL)
    watcher.start()
    supervisor.watch()  # restarts are made by the main thread, which owns the children
    watcher.join()
    assert seen == [{}, {"first": "http://127.0.0.1:4711"}]
    assert reports[-1]["processes"]["first"]["restarts"] == 1
    assert reports[-1]["processes"]["first"]["last_exit"] == -signal.SIGKILL
    supervisor.stop()


def test_a_program_that_fails_stops_the_start_with_its_exit_code(tmp_path: Path) -> None:
    diary = tmp_path / "diary"
    broken = Program("broken", lambda _: ["-c", "import sys; sys.exit(3)"], os.environ)
    reports: list[dict[str, Any]] = []
    supervisor = Supervisor([polite("first", diary), broken], reports.append)
    with pytest.raises(StartError, match="broken process ended with 3") as caught:
        supervisor.start()
    assert caught.value.exit_code == 3
    assert diary.read_text().startswith("first ")  # what had started was stopped
    assert reports == []  # a second server on one home must not speak over the first


def test_a_disk_that_is_full_ends_no_program(tmp_path: Path) -> None:
    def publish(_: dict[str, Any]) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    supervisor = Supervisor([polite("first", tmp_path / "diary")], publish)
    supervisor.start()
    old = supervisor.pids["first"]

    def stop_after_restart() -> None:
        wait_for(lambda: supervisor.pids.get("first", old) != old)
        supervisor.request_stop()

    watcher = threading.Thread(target=stop_after_restart)
    os.kill(old, signal.SIGKILL)
    watcher.start()
    supervisor.watch()
    watcher.join()
    supervisor.stop()


@pytest.mark.skipif(sys.platform != "linux", reason="PR_SET_PDEATHSIG is Linux's")
def test_programs_end_when_their_supervisor_is_killed(tmp_path: Path) -> None:
    diary = tmp_path / "diary"
    script = textwrap.dedent(
        f"""
        import os, sys
        from surefoot.cli.supervisor import Program, Supervisor
        only = Program("only", lambda _: ["-c", {POLITE!r}, "only", "1", {str(diary)!r}], os.environ)
        s = Supervisor([only], lambda _: None)
        s.start(); print(s.pids["only"], flush=True); s.watch()
        """
    )
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        parent.kill()
    wait_for(lambda: diary.exists() and diary.read_text() == f"only {child}\n")
