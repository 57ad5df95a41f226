"""Faults at named points of a real process: ``python -m support.faults MODULE [FLAG...]`` runs a module with them.

The environment variable ``FAULT`` says ``POINT ACTION [NTH [TIMES]]``: at the NTH (from 1) passage of POINT the action
happens, and at the following ones until it happened TIMES times. The program itself knows nothing of it: the points are
the system calls that it makes, named by what they are made on. When the first action happens, the file named by
``FAULT_HAPPENED`` is created, so that a test can tell a fault survived from a fault that never came.

Actions: ``kill`` before the call, ``kill-after`` it, ``torn`` (half of the write, then kill; for the log entry: half of
the entry stays), and ``eio``, ``enospc``, ``erofs`` (the call fails with that error).
"""

from __future__ import annotations

import errno
import os
import re
import runpy
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

# Point -> name of the function in `os` that is made to fail, and what the path that it works on looks like.
POINTS: dict[str, tuple[str, str]] = {
    # the collector
    "segment-number": ("replace", r"/spool/receiver\.json$"),
    "segment-write": ("write", r"/spool/open/"),
    "segment-sync": ("fdatasync", r"/spool/open/"),
    "segment-seal": ("replace", r"/spool/sealed/"),
    "sealed-folder-sync": ("fsync", r"/spool/sealed$"),
    # the writer
    "attempt-noted": ("replace", r"/spool/attempts\.json$"),
    "data-sync": ("fsync", r"/lake/.*/\..*\.parquet\.\d+\.draft$"),
    "data-placed": ("replace", r"/lake/.*/part-.*\.parquet$"),
    "data-folder-sync": ("fsync", r"/lake/.*/date=[^/]+$"),
    "log-entry-sync": ("fsync", r"/_delta_log/\d+\.json$"),
    "log-folder-sync": ("fsync", r"/_delta_log$"),
    "files-published": ("replace", r"/_current\.json$"),
    "segment-removed": ("unlink", r"/spool/sealed/"),
}
COMMIT = "log-entry"  # the Delta commit itself, which Rust makes
ERRORS = {"eio": errno.EIO, "enospc": errno.ENOSPC, "erofs": errno.EROFS}


def environment(point: str, action: str, happened: Path, *, nth: int = 1, times: int = 1) -> dict[str, str]:
    """What to add to the environment of the process."""
    return {"FAULT": f"{point} {action} {nth} {times}", "FAULT_HAPPENED": str(happened)}


class Fault:
    """Counts passages of one point and says when to act."""

    def __init__(self, text: str, happened: str) -> None:
        self.point, self.action, nth, times = text.split()
        self._due = range(int(nth), int(nth) + int(times))
        self._passed = 0
        self._happened = happened

    def passes(self) -> bool:
        """One more passage; whether the fault is to happen now."""
        self._passed += 1
        if self._passed not in self._due:
            return False
        os.close(os.open(self._happened, os.O_CREAT | os.O_WRONLY))
        return True

    def refuse(self) -> None:
        """Fail as the disk would; returns if the action is not an error."""
        if self.action in ERRORS:
            raise OSError(ERRORS[self.action], os.strerror(ERRORS[self.action]))


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _path_of(call: str, arguments: tuple[Any, ...]) -> str:
    what = arguments[1 if call == "replace" else 0]
    return str(Path(f"/proc/self/fd/{what}").readlink() if isinstance(what, int) else what)


def _wrapped(fault: Fault, call: str, pattern: re.Pattern[str], real: Callable[..., Any]) -> Callable[..., Any]:
    def wrapper(*arguments: Any, **options: Any) -> Any:
        if not pattern.search(_path_of(call, arguments)) or not fault.passes():
            return real(*arguments, **options)
        fault.refuse()
        if fault.action == "torn":
            real(arguments[0], bytes(arguments[1])[: len(arguments[1]) // 2])
        elif fault.action == "kill-after":
            real(*arguments, **options)
        return die()

    return wrapper


def _break_commits(fault: Fault) -> None:
    from deltalake import DeltaTable

    real = DeltaTable.create_write_transaction

    def wrapper(self: DeltaTable, *arguments: Any, **options: Any) -> None:
        if not fault.passes():
            return real(self, *arguments, **options)
        fault.refuse()
        if fault.action != "kill":
            real(self, *arguments, **options)
        if fault.action == "torn":
            entry = max(Path(self.table_uri.removeprefix("file://")).glob("_delta_log/*.json"))
            os.truncate(entry, entry.stat().st_size // 2)
        return die()

    DeltaTable.create_write_transaction = wrapper  # type: ignore[method-assign]  # what this module is for


def install(text: str, happened: str) -> None:
    fault = Fault(text, happened)
    if fault.point == COMMIT:
        _break_commits(fault)
        return
    call, pattern = POINTS[fault.point]
    setattr(os, call, _wrapped(fault, call, re.compile(pattern), getattr(os, call)))


if __name__ == "__main__":
    install(os.environ["FAULT"], os.environ["FAULT_HAPPENED"])
    module, sys.argv = sys.argv[1], sys.argv[1:]
    runpy.run_module(module, run_name="__main__", alter_sys=True)
