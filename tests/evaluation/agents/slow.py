"""An agent that takes long enough to be killed in the middle, and says which processes it lived in."""

from __future__ import annotations

import os
import time
from pathlib import Path

from surefoot.evaluation import Checker, Protocol, Suite, Task


def agent(_: int) -> str:
    with Path("pids").open("a") as file:
        file.write(f"{os.getpid()}\n")
    time.sleep(0.15)
    return "yes"


suite = Suite(
    name="slow",
    agent=agent,
    protocol=Protocol(k=4, effects="none", concurrency=2),
    tasks=tuple(Task(id=f"t{n}", input=n, checkers=(Checker(type="exact", expected="yes"),)) for n in range(3)),
)
