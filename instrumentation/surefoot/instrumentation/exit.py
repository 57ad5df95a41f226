"""Nothing is lost at exit without being said: flush at the end of the program and on SIGTERM, within a time limit.

A normal end, ``sys.exit`` and an uncaught exception all reach ``atexit``. SIGTERM's default action would not, so if the
program has no handler of its own one is installed; it flushes and then lets the default action end the process, so the
exit status is what it would have been. ``kill -9`` and ``os._exit`` cannot be helped; the run's start event and the
settle time are for those.
"""

from __future__ import annotations

import atexit
import os
import signal
import sys
import threading
from types import FrameType

from surefoot.instrumentation.pipeline import Pipeline

FLUSH_SECONDS = 5.0
_installed = False


def flush_seconds() -> float:
    """The time limit: SUREFOOT_FLUSH_SECONDS, by default 5."""
    try:
        return float(os.environ.get("SUREFOOT_FLUSH_SECONDS", ""))
    except ValueError:
        return FLUSH_SECONDS


def install(pipeline: Pipeline) -> None:
    """Flush this pipeline at exit and on SIGTERM. The first call counts."""
    global _installed  # noqa: PLW0603 - there is one exit
    if _installed:
        return
    _installed = True
    atexit.register(_finish, pipeline)
    if threading.current_thread() is not threading.main_thread():
        return  # only the main thread may set signal handlers
    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, _on_sigterm(pipeline))


def _on_sigterm(pipeline: Pipeline) -> object:
    def handle(number: int, _frame: FrameType | None) -> None:
        signal.signal(number, signal.SIG_DFL)
        _finish(pipeline)
        os.kill(os.getpid(), number)

    return handle


def _finish(pipeline: Pipeline) -> None:
    """Flush in a thread, because a signal may have interrupted the very code that holds a queue's lock."""
    limit = flush_seconds()
    worker = threading.Thread(target=pipeline.flush, args=(limit,), name="surefoot-flush", daemon=True)
    worker.start()
    worker.join(limit)
    report(pipeline)


def report(pipeline: Pipeline) -> None:
    """Say in one line on stderr what was not delivered, and why."""
    missing = pipeline.ledger.missing()
    if missing:
        what = " and ".join(f"{number} {kind}" for kind, number in missing.items())
        reason = pipeline.ledger.reason or f"not acknowledged within {flush_seconds():g} s"
        _say(f"{what} were not delivered to {pipeline.endpoint}: {reason}")
    if pipeline.cleaner.failures:
        _say(f"the redaction callable failed {pipeline.cleaner.failures} times; those values were replaced")


def _say(text: str) -> None:
    print(f"surefoot: {text}", file=sys.stderr, flush=True)  # noqa: T201 - logging may be gone by now
