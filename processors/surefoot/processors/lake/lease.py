"""The lake's lease: at most one process derives, compacts and retains.

Rule: the lease is a ``flock``, so the kernel frees it when its holder dies, however it dies; the file's text only says
who holds it and is never trusted for anything but the message of a refusal.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from surefoot.processors.errors import LeaseHeldError

LEASE: Final = "lease.lock"


@contextmanager
def lease(lake: Path, holder: str) -> Iterator[None]:
    """Hold the lease of the lake in ``lake`` as ``holder`` (a word such as ``jobs``); LeaseHeldError if it is taken."""
    descriptor = os.open(lake / LEASE, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise LeaseHeldError(
                f"{holder} needs the lease of the lake {lake}, which {_holder(descriptor)} holds; "
                "stop that process, or let it do the work"
            ) from None
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, json.dumps({"pid": os.getpid(), "holder": holder}).encode(), 0)
        yield
    finally:
        os.close(descriptor)


def _holder(descriptor: int) -> str:
    try:
        said = json.loads(os.pread(descriptor, 1024, 0))
    except ValueError:
        return "another process"  # between its lock and its text
    return f"{said['holder']} (pid {said['pid']})"
