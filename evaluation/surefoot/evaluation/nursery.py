"""A process that has the harness loaded and forks children that make attempts: a fork costs a tenth of a start.

Rule: nothing of the suite is loaded in here, and no thread runs. A generator seeded, a connection opened or a thread
started when the agent's module is imported would be the same in all children, and k attempts would not be k. What is
loaded is this project's and OpenTelemetry's, whose state at import says nothing of chance; ``random`` seeds itself anew
in a forked child. The secret of ``hash`` cannot be changed by a fork, so the pool has more than one of these.

The parent sends ``START`` with a child's socket and log as descriptors, and gets its pid; or ``END`` with a pid, and
gets the exit code of what was killed with all that it started. A child is not reaped before the parent says so, so no
other process can have its pid meanwhile. When the parent is gone, all children are killed.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import signal
import socket
import struct
import sys
import threading
from typing import Final, NoReturn

from surefoot.evaluation import worker
from surefoot.evaluation.worker import instrument

# Of the parent's request: START or END, and a pid. Of the answer: a pid or an exit code.
REQUEST: Final = struct.Struct(">Bq")
ANSWER: Final = struct.Struct(">q")
START: Final = 1
END: Final = 2
CANNOT_FORK: Final = -1
# What a child needs that sends its spans somewhere; each is what the set-up itself would import.
_SENDING: Final = (
    "opentelemetry.exporter.otlp.proto.http._log_exporter",
    "opentelemetry.exporter.otlp.proto.http.trace_exporter",
)
_ALWAYS: Final = ("opentelemetry.instrumentation.auto_instrumentation", "surefoot.instrumentation.setup")


def main(descriptor: int, source: str, variant: str, endpoint: str | None, *, drawn: bool) -> None:
    """Fork children until the parent closes the socket. ``drawn``: nobody asked for the hash seed that is set."""
    control = socket.socket(fileno=descriptor)
    if drawn:
        del os.environ["PYTHONHASHSEED"]  # the agent's own children have a secret of their own, as without a harness
    for name in (*_ALWAYS, *(_SENDING if endpoint else ())):
        importlib.import_module(name)
    gc.freeze()  # a collection in a child would copy every page of what is loaded
    living: set[int] = set()
    # A thread that something started at import (sitecustomize of the user's) would not be in a fork, but its locks.
    control.sendall(ANSWER.pack(os.getpid() if threading.active_count() == 1 else CANNOT_FORK))
    while True:
        message, descriptors, _, _ = socket.recv_fds(control, REQUEST.size, 2)
        if len(message) < REQUEST.size:
            break
        kind, pid = REQUEST.unpack(message)
        if kind == START:
            made = os.fork()
            if made == 0:
                channel, log = descriptors
                _become_child(control, channel, log, source, variant, endpoint)
            for each in descriptors:
                os.close(each)
            living.add(made)
            control.sendall(ANSWER.pack(made))
        else:
            living.discard(pid)
            control.sendall(ANSWER.pack(_end(pid)))
    for pid in living:
        _end(pid)


def _become_child(
    control: socket.socket, channel: int, log: int, source: str, variant: str, endpoint: str | None
) -> NoReturn:
    code = 1
    try:
        control.close()
        os.setsid()  # one signal ends all that the agent started
        os.dup2(log, 1)
        os.dup2(log, 2)
        os.close(log)
        instrument()
        worker.main(channel, source, variant, endpoint)
        code = 0
    except BaseException:  # noqa: BLE001 - as an interpreter's own end: to its log, and out, never back into the loop
        sys.excepthook(*sys.exc_info())
    finally:
        with contextlib.suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def _end(pid: int) -> int:
    """Kill a child with all that it started; return its exit code, negative for a signal."""
    for kill in (os.killpg, os.kill):  # by itself, where it had no time yet to lead a group
        with contextlib.suppress(ProcessLookupError, PermissionError):
            kill(pid, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], sys.argv[3], sys.argv[4] or None, drawn=bool(sys.argv[5]))
