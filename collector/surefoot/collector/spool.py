"""The spool: the folder in which segments wait for the writer.

    receiver.json   this receiver's id, made once per spool (a reused id would make new segments look committed), and
                    the last sequence number that was used
    lock            held by the one collector that may write here
    open/           the segment being written, one at most
    sealed/         whole segments, oldest first by sequence
    quarantine/     segments and stretches that nobody could process, with the reason beside them

Rule: a sequence number is used once, and segments become visible in ``sealed/`` in the order of their numbers: the
writer takes every number below the highest that it has committed for one that it has committed too.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from surefoot.collector.errors import SegmentError, SpoolError, SpoolLockedError
from surefoot.collector.segment import HEADER_BYTES, Segment, SegmentWriter, read_segment

SUFFIX = ".segment"


def sync_folder(path: Path) -> None:
    """Make renames and new names in a folder survive a power loss."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_durably(path: Path, data: bytes) -> None:
    """Replace ``path`` by ``data``, all or nothing, synced."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    with draft.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)
    sync_folder(path.parent)


class Spool:
    """A spool folder; made if it is missing. Safe to use from several processes as the methods say.

    Raises SpoolError if the folder cannot be used.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.open_folder = path / "open"
        self.sealed_folder = path / "sealed"
        self.quarantine_folder = path / "quarantine"
        try:
            for folder in (self.open_folder, self.sealed_folder, self.quarantine_folder):
                folder.mkdir(parents=True, exist_ok=True)
            self.receiver_id = uuid.UUID(self._identity()["receiver_id"])
        except OSError as error:
            raise SpoolError(f"Cannot use {path} as a spool: {error}. Choose a folder that can be written.") from error

    def sealed(self) -> list[Path]:
        """Whole segments, oldest first, none missing before the last. Any process.

        A folder is listed in several steps, and one listing may show a segment but not an older one that was moved
        in meanwhile. A second listing shows whatever is older than what the first one showed.
        """
        last = {_receiver_of(path): path for path in self._listed()}
        return [path for path in self._listed() if _receiver_of(path) in last and path <= last[_receiver_of(path)]]

    def unsealed(self) -> list[Path]:
        """The segment being written, and what an earlier collector left open. Any process."""
        return sorted(self.open_folder.glob(f"*{SUFFIX}"))

    def remove(self, segment: Path) -> None:
        """Delete a sealed segment that every table holds. The writer only."""
        segment.unlink()
        sync_folder(segment.parent)

    def quarantine(self, segment: Path, reason: str) -> Path:
        """Set a sealed segment aside, with the reason in a file beside it. The writer only."""
        target = self.quarantine_folder / segment.name
        write_durably(target.with_suffix(".reason.txt"), f"{reason}\n".encode())
        segment.replace(target)
        sync_folder(target.parent)
        sync_folder(segment.parent)
        return target

    def quarantine_bytes(self, name: str, data: bytes, reason: str) -> Path:
        """Set a stretch of a segment aside. ``name`` says which and where. Any process."""
        target = self.quarantine_folder / name
        write_durably(target, data)
        write_durably(target.with_suffix(".reason.txt"), f"{reason}\n".encode())
        return target

    def quarantined(self) -> list[Path]:
        """What was set aside. Any process."""
        return sorted(path for path in self.quarantine_folder.iterdir() if path.suffix != ".txt")

    def backlog_bytes(self) -> int:
        """Bytes that are acknowledged but not yet in the lake. Any process; a file may vanish meanwhile."""
        total = 0
        for folder in (self.open_folder, self.sealed_folder):
            for entry in os.scandir(folder):
                with contextlib.suppress(FileNotFoundError):  # the writer removed it between listing and asking
                    total += entry.stat().st_size
        return total

    def name_of(self, sequence: int) -> str:
        """File name of a segment; names sort like sequences, and differ between receiver ids."""
        return f"{sequence:016d}-{self.receiver_id.hex[:8]}{SUFFIX}"

    def begin_segment(self) -> SegmentWriter:
        """Start the next segment; its name survives a power loss. The collector only. Raises OSError."""
        sequence = self._next_sequence()
        writer = SegmentWriter(self.open_folder / self.name_of(sequence), self.receiver_id, sequence, time.time_ns())
        try:
            sync_folder(self.open_folder)
        except OSError:
            writer.close()
            writer.path.unlink()
            raise
        return writer

    def _next_sequence(self) -> int:
        """A number above every one used so far, also by segments that were removed since.

        It is kept in the same file as the receiver id: whoever loses the one loses the other, and a fresh id makes
        every number new again.
        """
        identity = self._identity()
        identity["sequence"] = int(identity["sequence"]) + 1
        write_durably(self.path / "receiver.json", json.dumps(identity).encode())
        return int(identity["sequence"])

    def recover(self) -> list[str]:
        """Seal what an earlier collector left open. The collector only, while it holds the lock.

        Returns a sentence for each thing that was cut or set aside; what is cut was never acknowledged.
        """
        told = []
        for path in self.unsealed():
            try:
                segment = read_segment(path)
            except SegmentError as error:
                if path.stat().st_size >= HEADER_BYTES:
                    self.quarantine_bytes(path.name, path.read_bytes(), str(error))
                    told.append(f"{error} It was set aside.")
                path.unlink()
                continue
            told += _cut_torn_tail(path, segment)
            self.seal(path)
        sync_folder(self.open_folder)
        return told

    def seal(self, path: Path) -> bool:
        """Move an open segment, already synced, to the sealed ones; one without records is deleted (False).

        The collector only. May be called again after it failed half way.
        """
        if not path.exists():
            kept = (self.sealed_folder / path.name).exists()
        elif path.stat().st_size <= HEADER_BYTES:
            path.unlink()
            kept = False
        else:
            path.replace(self.sealed_folder / path.name)
            kept = True
        sync_folder(self.sealed_folder)
        sync_folder(self.open_folder)
        return kept

    @contextlib.contextmanager
    def lock(self) -> Iterator[None]:
        """Hold the spool as its only collector. Raises SpoolError naming the process that holds it already."""
        with self._lock_file() as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                file.seek(0)
                holder = file.read().strip() or "unknown"
                raise SpoolLockedError(
                    f"The spool {self.path} is used by another collector (process {holder}). "
                    "Stop it, or give this one its own folder with SUREFOOT_HOME or --spool."
                ) from None
            file.truncate(0)
            file.write(str(os.getpid()))
            file.flush()
            yield

    def _lock_file(self) -> IO[str]:
        try:
            return (self.path / "lock").open("a+")
        except OSError as error:
            raise SpoolError(
                f"Cannot lock the spool {self.path}: {error}. Choose a folder that can be written."
            ) from error

    def _listed(self) -> list[Path]:
        return sorted(self.sealed_folder.glob(f"*{SUFFIX}"))

    def _identity(self) -> dict[str, Any]:
        path = self.path / "receiver.json"
        if not path.exists():
            made = {"receiver_id": str(uuid.uuid4()), "created_unix": time.time(), "sequence": 0}
            draft = path.with_name(f".receiver.new.{os.getpid()}")
            write_durably(draft, json.dumps(made).encode())
            with contextlib.suppress(FileExistsError):  # another process was first: its id counts
                os.link(draft, path)
            draft.unlink()
            sync_folder(self.path)
        try:
            identity: dict[str, Any] = json.loads(path.read_bytes())
        except json.JSONDecodeError as error:
            raise SpoolError(
                f"{path} is damaged ({error}). Delete it: a fresh receiver id is made, and segments keep their own."
            ) from error
        return identity


def _receiver_of(segment: Path) -> str:
    return segment.name.partition("-")[2]


def _cut_torn_tail(path: Path, segment: Segment) -> list[str]:
    """Cut what can only be a write that was not finished. Other damage stays in place for the writer to set aside."""
    told = []
    for damage in segment.damage:
        if damage.torn:
            with path.open("rb+") as file:
                file.truncate(damage.offset)
                os.fsync(file.fileno())
            told.append(
                f"{path.name}: cut {damage.length} bytes at {damage.offset}, never acknowledged ({damage.reason})."
            )
        else:
            told.append(f"{path.name}: {damage.length} bytes at {damage.offset} are damaged ({damage.reason}).")
    return told
