"""Nothing is lost at exit without being said: flush at the end of the program and on SIGTERM, within a time limit.

A normal end, ``sys.exit`` and an uncaught exception all reach ``atexit``. SIGTERM's default action would not, so if the
program has no handler of its own one is installed; it flushes and then lets the default action end the process, so the
exit status is what it would have been. Children of ``multiprocessing`` skip ``atexit``; they have an end of their own.
``kill -9`` and ``os._exit`` cannot be helped; the run's start event is for those.
"""

from __future__ import annotations

import atexit
import os
import signal
import sys
import threading
from types import FrameType, ModuleType

import wrapt

from surefoot.instrumentation.pipeline import Pipeline, log

VARIABLE = "SUREFOOT_FLUSH_SECONDS"
DEFAULT_SECONDS = 5.0


def flush_seconds() -> float:
    """The time limit: SUREFOOT_FLUSH_SECONDS, by default 5."""
    text = os.environ.get(VARIABLE, "").strip()
    if not text:
        return DEFAULT_SECONDS
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < threading.TIMEOUT_MAX:
        log.warning("%s is %r, which is no number of seconds; %g is used.", VARIABLE, text, DEFAULT_SECONDS)
        return DEFAULT_SECONDS
    return seconds


def install(pipeline: Pipeline) -> None:
    """Flush this pipeline when the process ends. Call once per pipeline."""
    atexit.register(finish, pipeline)
    wrapt.register_post_import_hook(lambda module: _end_of_children(module, pipeline), "multiprocessing.util")
    if threading.current_thread() is not threading.main_thread():
        log.warning("Set up outside of the main thread: SIGTERM will not flush, since only that thread may handle it.")
    elif signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, _Sigterm(pipeline))


def finish(pipeline: Pipeline) -> None:
    """Flush within the time limit, say what is missing, and take nothing more in."""
    pipeline.flush(flush_seconds())
    report(pipeline)
    for delivery in pipeline.deliveries:
        delivery.sender.close()


def report(pipeline: Pipeline) -> None:
    """Say in one line per destination on stderr what was not delivered, and why."""
    for destination in dict.fromkeys(delivery.destination for delivery in pipeline.deliveries):
        short = [d for d in pipeline.deliveries if d.destination == destination and d.sender.missing]
        if short:
            what = " and ".join(_counted(delivery.sender.missing, delivery.kind) for delivery in short)
            were = "was" if sum(delivery.sender.missing for delivery in short) == 1 else "were"
            reasons = [delivery.trouble for delivery in short if delivery.trouble is not None]
            reason = reasons[0] if reasons else f"not acknowledged within {flush_seconds():g} s"
            _say(f"{what} {were} not delivered to {destination}: {reason}")
    if pipeline.cleaner.failures:
        _say(f"the redaction failed on {pipeline.cleaner.failures} texts, which were replaced")


class _Sigterm:
    """SIGTERM's handler: flush, then die of it."""

    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline

    def __call__(self, number: int, _frame: FrameType | None) -> None:
        signal.signal(number, signal.SIG_DFL)
        self._pipeline.flush(flush_seconds())
        report(self._pipeline)
        # Only process 1 of a container survives this; it goes on recording, as it would go on without Surefoot.
        os.kill(os.getpid(), number)


def _end_of_children(module: ModuleType, pipeline: Pipeline) -> None:
    """Children that ``multiprocessing`` forks run its finalizers at their end, and nothing else."""
    module.register_after_fork(pipeline, lambda child: module.Finalize(None, finish, args=(child,), exitpriority=0))


def _counted(number: int, kind: str) -> str:
    return f"{number} {kind.removesuffix('s') if number == 1 else kind}"


def _say(text: str) -> None:
    print(f"surefoot: {text}", file=sys.stderr, flush=True)  # noqa: T201 - logging may be gone by now
