"""Files that survive power loss: written under a draft name, fsynced, renamed, and the folder fsynced.

Rule: a name that readers may open is only ever created by a rename of complete, synced bytes, because one zero-length
data file fails every query on a Delta table and delta-rs itself never calls fsync.
"""

from __future__ import annotations

import fcntl
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path


def sync(path: Path) -> None:
    """Wait until the file's bytes, or the folder's names, are on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def make_folder(path: Path) -> None:
    """Create ``path`` and its missing parents durably."""
    if path.is_dir():
        return
    make_folder(path.parent)
    path.mkdir(exist_ok=True)
    sync(path.parent)


def write_file(target: Path, write: Callable[[Path], None]) -> None:
    """Let ``write`` fill a draft beside ``target``, then put it in place; an existing target is replaced.

    The caller syncs the folder, once for all the files that it puts there. A draft that could not be finished is
    removed; one that a crash left behind is deleted by upkeep. Each thread of each process has its own draft, since two
    that write one target (racing compactors) must not write into one file.
    """
    draft = target.with_name(f".{target.name}.{threading.get_native_id()}.draft")
    try:
        write(draft)
        sync(draft)
        draft.replace(target)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise


@contextmanager
def exclusive(path: Path) -> Iterator[None]:
    """Hold the lock file ``path`` against other processes and threads; the kernel frees it when the holder dies."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
