"""After the sending: until what was sent can be queried as runs and verdicts.

Traces of which everything was imported are settled as soon as they are derived, because nobody sends their next span
(see ``genai.traces``). So it is enough that the writer has put everything into the lake and that one cycle of the jobs
began after that. Both are done here when no server runs, and waited for when one does.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection
from functools import partial
from pathlib import Path
from typing import Any, Final

from surefoot.collector.spool import Spool
from surefoot.errors import UnreachableError
from surefoot.processors import status
from surefoot.processors.errors import LakeError
from surefoot.processors.settings import Settings

_LOOK_SECONDS: Final = 0.2
_PATIENCE_SECONDS: Final = 300.0  # without any progress


def settle_here(settings: Settings) -> int:
    """Write and derive what lies in the spool, as writer and jobs of this lake. Returns the duplicates dropped."""
    # All that the server's processes load, which a sender to a running server does without.
    from surefoot.processors.jobs import Jobs
    from surefoot.processors.lake import Lake
    from surefoot.processors.writer import Writer, only_writer

    spool = Spool(settings.spool_path)
    before = set(spool.quarantined())
    with only_writer(spool, threading.Event()):
        lake = Lake.open(settings.lake_path)
        writer = Writer(lake, spool)
        while writer.step():
            pass
        if writer.waiting:
            raise LakeError(f"{writer.waiting}. {len(spool.sealed())} segments wait in {spool.path}.")
    _raise_if_set_aside(spool, before)
    with lake.lease("jobs"):
        Jobs(lake, settings).cycle(time.time())
    return int(writer.published()["duplicates_total"])


def wait_for_server(settings: Settings, is_running: Callable[[], bool]) -> None:
    """Wait until the running server has written and derived what its spool holds now."""
    spool = Spool(settings.spool_path)
    before = set(spool.quarantined())
    waiting = {path.name for path in (*spool.unsealed(), *spool.sealed())}

    def left() -> int:
        present = {path.name for path in (*spool.unsealed(), *spool.sealed())}
        return len(waiting & present)

    _until(lambda: left() == 0, left, is_running, "writer")
    _raise_if_set_aside(spool, before)
    written = time.time()

    for process, key in (("writer", "at"), ("jobs", "cycle_at")):
        told = partial(_said, settings, process, key)
        _until(partial(_is_after, told, written), told, is_running, process)


def _raise_if_set_aside(spool: Spool, before: Collection[Path]) -> None:
    new = [path.name for path in spool.quarantined() if path not in before]
    if new:
        raise LakeError(
            f"The writer could not put everything into the lake and set {len(new)} aside in "
            f"{spool.quarantine_folder}, with the reason beside each: {', '.join(new[:3])}."
        )


def _is_after(told: Callable[[], float], moment: float) -> bool:
    return told() >= moment


def _said(settings: Settings, process: str, key: str) -> float:
    return float((status.read(settings.status_path, process) or {}).get(key, 0.0))


def _until(done: Callable[[], bool], progress: Callable[[], Any], is_running: Callable[[], bool], who: str) -> None:
    seen, since = progress(), time.monotonic()
    while not done():
        now = progress()
        if now != seen:
            seen, since = now, time.monotonic()
        if not is_running() or time.monotonic() - since > _PATIENCE_SECONDS:
            raise UnreachableError(
                f"Everything is kept by the collector, but the server's {who} did not get on with it. Look at its log; "
                "what was sent appears once it works, and importing the files again changes no count."
            )
        time.sleep(_LOOK_SECONDS)
