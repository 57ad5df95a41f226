"""How often each segment was tried, written down before the attempt, so that a crash counts too.

An attempt in a batch only marks its segments, so that they go alone next time: of a batch nobody can say which segment
was the reason. Attempts alone are counted.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from surefoot.collector.spool import write_durably


class Attempts:
    """The counts by segment name, kept in one small file. Methods that write raise OSError and then change nothing."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._counts: dict[str, int] = json.loads(path.read_bytes()) if path.exists() else {}

    def begin(self, segments: Sequence[Path]) -> None:
        """Note, durably, that these segments are about to be tried."""
        by_itself = int(len(segments) == 1)
        # A crash between the removal of a segment and end() leaves its name behind.
        there = {name: count for name, count in self._counts.items() if (segments[0].parent / name).exists()}
        self._save(there | {path.name: self.alone(path) + by_itself for path in segments})

    def end(self, segments: Sequence[Path]) -> None:
        """The segments are done with, or the attempt failed for a reason that is not theirs."""
        gone = {path.name for path in segments}
        self._save({name: count for name, count in self._counts.items() if name not in gone})

    def is_suspect(self, segment: Path) -> bool:
        """Whether an attempt began that never ended well."""
        return segment.name in self._counts

    def alone(self, segment: Path) -> int:
        """Attempts that this segment had by itself."""
        return self._counts.get(segment.name, 0)

    def _save(self, counts: dict[str, int]) -> None:
        write_durably(self._path, json.dumps(counts).encode())
        self._counts = counts
