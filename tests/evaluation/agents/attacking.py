"""Agents that leave the process worse than they found it, each in its own way; the next one says if it meets that."""

from __future__ import annotations

import locale
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any, NoReturn

from surefoot.evaluation import Checker, Protocol, Suite, Task

HOME = Path.cwd()


async def agent(way: str) -> Any:
    met = [
        what
        for what, there in {
            "another folder": Path.cwd() != HOME,
            "a variable": "LEFT_BEHIND" in os.environ,
            "a signal handler": signal.getsignal(signal.SIGUSR1) is not signal.SIG_DFL,
            "a locale": locale.setlocale(locale.LC_NUMERIC) != "C",
            "a closed stream": sys.stdout.closed or not _open(1) or not _open(2),
            "a process": any(task.read_text() for task in Path("/proc/self/task").glob("*/children")),
        }.items()
        if there
    ]
    return f"met {met}" if met else WAYS[way]()


def _open(descriptor: int) -> bool:
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True


def changes_everything() -> str:
    os.chdir("/")
    os.environ["LEFT_BEHIND"] = "1"
    signal.signal(signal.SIGUSR1, lambda *_: None)
    locale.setlocale(locale.LC_NUMERIC, "C.UTF-8")
    return "fine"


def closes_its_streams() -> str:
    os.close(1)
    os.close(2)
    return "fine"


def forks_and_both_come_back() -> str:
    os.fork()
    return "fine"


def forks_and_dies() -> str:
    if os.fork() == 0:
        _note(os.getpid())
        time.sleep(600)
    os._exit(7)


def leaves_a_process() -> str:
    _note(subprocess.Popen(["sleep", "600"]).pid)
    return "fine"


def _note(pid: int) -> None:
    with Path("processes").open("a") as file:
        file.write(f"{pid}\n")


def answers_oddly() -> Any:
    circle: dict[Any, Any] = {"fine": True, (1, 2): float("nan"), "lock": threading.Lock(), "huge": 10**5000}
    circle["itself"] = circle
    return circle


def kills_its_fixture() -> NoReturn:
    os._exit(9)


WAYS = {
    function.__name__: function
    for function in (
        changes_everything,
        closes_its_streams,
        forks_and_both_come_back,
        forks_and_dies,
        leaves_a_process,
        answers_oddly,
    )
}


def is_fine(answer: Any) -> bool:
    return answer == "fine" or (isinstance(answer, dict) and answer["fine"])


fine = Checker(type="callable", expected=is_fine)
suite = Suite(
    name="attacking",
    agent=agent,
    protocol=Protocol(k=2, effects="none", concurrency=1, timeout_seconds=30),
    tasks=(
        *(Task(id=way, input=way, checkers=(fine,)) for way in WAYS),
        Task(id="kills_its_fixture", input="", fixture=kills_its_fixture),
    ),
)
