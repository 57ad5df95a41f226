"""Whether a table's Delta log is whole: nothing of it lost, nothing of it emptied, nothing of it taken back.

Contract: :func:`check_log` names each fault once and never raises for one. Entries are looked at one by one, since
engines read an empty one as a commit of nothing and do not miss the last one at all. What shows such a loss is what
stands beside the log (the version that ``_current.json`` published) and in it (each commit says how many files and
bytes the table holds after it). Rule: read what was published before the log, which is only ever ahead of it.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from surefoot.processors.lake.table import CURRENT, HOLDS_BYTES, HOLDS_FILES

_SAVE: Final = "restore it from a backup"


class Published(NamedTuple):
    """What ``_current.json`` says: the version and its data files, relative to the table."""

    version: int
    files: frozenset[str]


class Holds(NamedTuple):
    """How much a table holds."""

    files: int
    size: int  # bytes

    def __str__(self) -> str:
        return f"{self.files} files of {self.size} bytes"


class History(NamedTuple):
    """The log's last version, what it holds by its own count (None: nobody counted), and what is wrong."""

    version: int
    holds: Holds | None
    wrong: list[str]


def read_published(table: Path) -> Published:
    """What the table in this folder published; OSError or ValueError if it cannot be read."""
    found = json.loads((table / CURRENT).read_bytes())
    try:
        version, (_, *files) = int(found["version"]), found["files"]  # the first is the blank file
    except (KeyError, TypeError) as error:
        raise ValueError(f"{error!r} in {table / CURRENT}") from error
    return Published(version, frozenset(files))


def check_log(log: Path, published: int) -> History:
    """Look through the log in the folder ``log``, which must reach the version ``published`` at least."""
    wrong, start = _checkpoint(log)
    found = sorted(int(path.stem) for path in log.glob("*.json") if path.stem.isdigit())
    last = max(found, default=-1)
    missing: list[int] = []
    holds: Holds | None = None
    for version in [*(old for old in found if old < start), *range(start, max(last, published) + 1)]:
        path = log / f"{version:020}.json"
        try:
            actions = _actions(path)
        except FileNotFoundError:
            if version >= start:  # an older one was cleaned meanwhile
                missing.append(version)
                holds = None
            continue
        except (OSError, ValueError) as error:
            wrong.append(f"{path}: {error}; {_SAVE}")
            holds = None
            continue
        if version >= start:
            holds, counted = _after(actions, holds if version else Holds(0, 0))
            if counted is not None and holds not in (None, counted):
                wrong.append(f"{path}: says that the table holds {counted}; with the entries before it, it is {holds}")
            holds = counted or holds
    if missing:
        names = ", ".join(map(str, missing[:5])) + (", ..." if len(missing) > 5 else "")
        told = f" (version {published} was published)" if published > last else ""
        wrong.append(f"{log}: the entries of {len(missing)} versions are missing: {names}{told}; {_SAVE}")
    return History(last, holds, wrong)


def _actions(path: Path) -> list[dict[str, Any]]:
    """The entry's actions; ValueError says what it is instead of an entry."""
    lines = path.read_bytes().splitlines()
    if not lines:
        raise ValueError("is empty, so its commit is lost")
    try:
        actions = [json.loads(line) for line in lines]
    except ValueError:
        raise ValueError("is cut short or damaged") from None
    if not all(isinstance(action, dict) for action in actions):
        raise ValueError("is damaged")
    return actions


def _after(actions: list[dict[str, Any]], before: Holds | None) -> tuple[Holds | None, Holds | None]:
    """What the table holds after these actions: by counting on from ``before``, and as its author counted."""
    counted = None
    for info in (action["commitInfo"] for action in actions if "commitInfo" in action):
        if HOLDS_FILES in info:
            counted = Holds(info[HOLDS_FILES], info[HOLDS_BYTES])
    added = [action["add"]["size"] for action in actions if "add" in action]
    removed = [action["remove"].get("size") for action in actions if "remove" in action]
    if before is None or None in removed:  # other engines need not say how large a removed file was
        return None, counted
    return Holds(before.files + len(added) - len(removed), before.size + sum(added) - sum(removed)), counted


def pointer(log: Path) -> bytes | None:
    """What names the last checkpoint; as long as it stays the same, nothing of the log is cleaned."""
    try:
        return (log / "_last_checkpoint").read_bytes()
    except FileNotFoundError:
        return None


def _checkpoint(log: Path) -> tuple[list[str], int]:
    """What is wrong with the last checkpoint, and the version from which the entries must be there."""
    named = pointer(log)
    if named is None:
        return [], 0
    try:
        version = int(json.loads(named)["version"])
    except (ValueError, KeyError, TypeError):
        first = min((int(path.stem) for path in log.glob("*.json") if path.stem.isdigit()), default=0)
        return [f"{log / '_last_checkpoint'}: is damaged; opening the lake for writing sets it aside"], first
    path = log / f"{version:020}.checkpoint.parquet"
    try:
        pq.read_table(path)
    except (pa.ArrowInvalid, OSError) as error:
        return [f"{path}: the last checkpoint cannot be read: {error}"], version
    return [], version
