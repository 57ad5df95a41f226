"""An agent that tells what it sees of the world, and suites that freeze it and leave it."""

from __future__ import annotations

import asyncio
import random
import secrets
import time
import uuid
from dataclasses import replace
from datetime import datetime
from typing import Any
from uuid import uuid4

from surefoot.evaluation import AttemptContext, Frozen, Protocol, Suite, Task
from surefoot.instrumentation import tool


async def agent(_: Any, ctx: AttemptContext) -> dict[str, Any]:
    await asyncio.sleep(0.01)  # timers go on in a world whose clock stands still
    with tool("look"):
        now = datetime.now().astimezone()
    return {
        "now": now.isoformat(),
        "time": time.time(),
        "zone": time.tzname[0],
        "random": random.random(),
        "uuid4": str(uuid4()),
        "uuid1": str(uuid.uuid1()),
        "hash": hash("surefoot"),
        "session": ctx.session_id,
        "secret": secrets.token_hex(4),
    }


frozen = Suite(
    name="worldly",
    agent=agent,
    protocol=Protocol(
        k=3,
        effects="none",
        isolation="fresh",
        concurrency=2,
        freeze=Frozen(clock="2026-01-15T09:00:00+00:00", timezone="America/New_York", locale="C", hash_seed=5),
    ),
    tasks=(Task(id="look", input=0), Task(id="look-again", input=0)),
)
left = replace(frozen, protocol=replace(frozen.protocol, freeze=None))
