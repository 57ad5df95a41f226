"""What a power failure can leave in a Delta log, and how it is put right when the lake is opened.

delta-rs syncs nothing, so the last entry that nobody acknowledged, or a checkpoint that upkeep had not synced yet, may
be cut short or empty. Rule: only what no commit has acknowledged is ever set aside, under a name that tells; the log is
synced in order (see ``Table.sync_log``), so this can only be its end.
"""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from surefoot.processors.lake.durable import sync


def repair(log_path: Path) -> list[str]:
    """Set torn ends of the log in ``log_path`` aside, with the table's lock held; returns one sentence for each."""
    said = []
    while (last := _last_entry(log_path)) is not None and not _is_whole(last):
        said.append(_set_aside(last, "an entry cut short by a crash; nobody was told that it was committed"))
    pointer = log_path / "_last_checkpoint"
    if pointer.exists() and not _checkpoint_is_whole(log_path, pointer):
        said.append(_set_aside(pointer, "a checkpoint cut short by a crash; the log that it sums up is still there"))
        said += [
            _set_aside(path, "a checkpoint cut short by a crash")
            for path in sorted(log_path.glob("*.checkpoint.parquet"))
            if not _parquet_is_whole(path)
        ]
    return said


def _last_entry(log_path: Path) -> Path | None:
    entries = sorted(path for path in log_path.glob("*.json") if path.stem.isdigit())
    return entries[-1] if entries else None


def _is_whole(entry: Path) -> bool:
    """An entry has at least its commitInfo, and every line is JSON; an empty file would read as an empty commit."""
    lines = entry.read_bytes().splitlines()
    try:
        return bool(lines) and all(isinstance(json.loads(line), dict) for line in lines)
    except ValueError:
        return False


def _checkpoint_is_whole(log_path: Path, pointer: Path) -> bool:
    try:
        version = int(json.loads(pointer.read_bytes())["version"])
    except (ValueError, KeyError, TypeError):
        return False
    return _parquet_is_whole(log_path / f"{version:020}.checkpoint.parquet")


def _parquet_is_whole(path: Path) -> bool:
    try:
        pq.read_table(path)
    except (pa.ArrowInvalid, OSError):
        return False
    return True


def _set_aside(path: Path, why: str) -> str:
    target = path.with_name(f"{path.name}.torn")
    path.replace(target)
    sync(path.parent)
    return f"set {path} aside as {target.name}: {why}"
