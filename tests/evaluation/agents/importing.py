"""An agent that does things when it is imported: draws, starts a thread, prints; and tells what came of it."""

from __future__ import annotations

import os
import random
import threading
import time
from typing import Any

from surefoot.evaluation import Protocol, Suite, Task

DRAWN = random.Random().random()
GLOBAL = random.random()
print("imported")
threading.Thread(target=time.sleep, args=(600,), daemon=True, name="of-the-import").start()


def agent(seconds: float) -> dict[str, Any]:
    time.sleep(seconds)
    return {
        "pid": os.getpid(),
        "session": os.getsid(0) == os.getpid(),
        "drawn": DRAWN,
        "global": GLOBAL,
        "threads": [thread.name for thread in threading.enumerate() if thread.name == "of-the-import"],
        "hash": hash("surefoot"),
        "seeded": "PYTHONHASHSEED" in os.environ,
    }


def made(seconds: float, k: int, **protocol: Any) -> Suite:
    rules = Protocol(k=k, effects="none", **protocol)
    return Suite(name="importing", agent=agent, protocol=rules, tasks=(Task(id="tell", input=seconds),))


slow = made(0.5, 8, concurrency=8)
fast = made(0.0, 120, concurrency=40)
apart = made(0.0, 3, isolation="fresh")
