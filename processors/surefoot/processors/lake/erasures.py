"""The record of erasures, and the tombstones that keep what was erased from coming back.

One append-only file in the lake, ``erasures.jsonl``, a synced line per event: ``begun`` (what kind, the hash of its
key, hashes of its traces, by whom), ``erased`` (rows by table), ``deleted`` (bytes that left the disk), and ``again``
when a trace that was erased had arrived once more. Rules: no key and no trace id is ever written, only hashes keyed
with the lake's own ``erasures.key``; the tombstone is on the disk before the first row goes, so whatever dies in
between, nothing comes back.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from surefoot.processors.lake.durable import sync, write_file

RECORD: Final = "erasures.jsonl"
_KEY: Final = "erasures.key"
# The files of an erasure are replaced a little after the time that it was given.
_COMMITS_SECONDS: Final = 60.0


class Erasures:
    """What was erased from the lake in the folder ``lake``. Call its writing methods under the lake's lease."""

    def __init__(self, lake: Path) -> None:
        self._path = lake / RECORD
        self._key_path = lake / _KEY
        self._size = -1
        self._key: bytes | None = None
        self.tombstones: frozenset[str] = frozenset()  # hashes of trace ids
        self.erased_at = float("-inf")  # the time of the last erasure, unix seconds
        self.refresh()

    def refresh(self) -> None:
        """See what other processes erased."""
        size = self._path.stat().st_size if self._path.exists() else 0
        if size == self._size:
            return
        tombstones: set[str] = set()
        for event in self.events():
            tombstones.update(event.get("traces", ()))
            if event["event"] in ("erased", "again"):
                self.erased_at = max(self.erased_at, event["at"] + _COMMITS_SECONDS)
        self.tombstones, self._size = frozenset(tombstones), size

    def events(self) -> Iterator[dict[str, Any]]:
        """The record, oldest event first. A line that a crash cut short is the last one and was not acted upon."""
        if not self._path.exists():
            return
        for line in self._path.read_text().splitlines():
            try:
                yield json.loads(line)
            except ValueError:
                continue

    def unfinished(self, key: str) -> bool:
        """Whether an erasure of ``key`` began whose files were not deleted yet: who asks again still waits for them."""
        if not self._path.exists():
            return False
        events = [event["event"] for event in self.events() if event.get("key_hash") == self.hash_of(key)]
        return events[-1:] == ["begun"]

    def hash_of(self, text: str) -> str:
        """What stands in the record for a key or a trace id."""
        if self._key is None:
            if not self._key_path.exists():
                write_file(self._key_path, _write_key)
                sync(self._key_path.parent)
            self._key = self._key_path.read_bytes()
        return hashlib.blake2b(text.encode(), key=self._key, digest_size=16).hexdigest()

    def erased(self, trace_ids: Iterable[str]) -> list[str]:
        """Those of the traces that were erased."""
        return [trace_id for trace_id in trace_ids if self.hash_of(trace_id) in self.tombstones]

    def append(self, event: str, now: float, **content: Any) -> None:
        """Add an event durably."""
        line = json.dumps({"event": event, "at": now, **content})
        with self._path.open("ab+") as file:
            size = file.seek(0, os.SEEK_END)
            if size:
                file.seek(size - 1)
                if file.read(1) != b"\n":
                    line = "\n" + line  # the one before was cut short
            file.write(line.encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())
        sync(self._path.parent)
        self.refresh()


def _write_key(draft: Path) -> None:
    draft.touch(0o600)
    draft.write_bytes(secrets.token_bytes(32))
