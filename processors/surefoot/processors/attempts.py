"""How often each segment was tried, written down before the attempt, so that a crash counts too.

An attempt in a batch marks its segments as suspect, so that they go alone next time; only attempts alone are counted,
because of a batch nobody can say which segment was the reason.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from surefoot.collector.spool import write_durably


class Attempts:
    """The counts by segment name, kept in one small file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._counts: dict[str, int] = json.loads(path.read_text()) if path.exists() else {}

    def begin(self, paths: Iterable[Path], *, alone: bool) -> None:
        """Note that these segments are about to be tried."""
        for path in paths:
            self._counts[path.name] = self._counts.get(path.name, 0) + (1 if alone and path.name in self._counts else 0)
        self._save()

    def has_failed(self, path: Path) -> bool:
        """Whether an attempt began that never ended well."""
        return path.name in self._counts

    def alone(self, path: Path) -> int:
        """Attempts that this segment had by itself after it became suspect."""
        return self._counts.get(path.name, 0)

    def done(self, paths: Iterable[Path]) -> None:
        """These segments are no longer there."""
        for path in paths:
            self._counts.pop(path.name, None)
        self._save()

    def forgive(self, paths: Iterable[Path]) -> None:
        """The attempt failed for a reason that is not the segments'."""
        self.done(paths)

    def _save(self) -> None:
        write_durably(self._path, json.dumps(self._counts).encode())
