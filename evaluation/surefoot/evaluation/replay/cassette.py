"""A cassette: the calls of one recorded attempt, in a file of one JSON object per line.

The first line is the header, the last one says how many lines there are and what their hash is; between them stands one
line per call, in the order in which the calls ended. Rule: a file under its own name is whole. A recording is written
to ``NAME.recording`` and gets its name when it is closed, by one rename; what a killed recording left is kept under
another name and is read only by who asks for a torn file.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import threading
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from surefoot.evaluation.replay.canonical import call_key
from surefoot.evaluation.replay.errors import CassetteError, ReplayedError
from surefoot.evaluation.replay.values import decode

FORMAT: Final = 1
RECORDING: Final = ".recording"
OUTCOMES: Final = frozenset({"result", "error", "response", "cancelled", "missing"})


@dataclass(frozen=True, slots=True)
class Entry:
    """One recorded call. ``outcome`` has one of: result, error, response (of HTTP), cancelled, missing."""

    key: str  # 64 hex digits, of name and arguments
    occurrence: int  # 0 for the first call with this key
    name: str
    kind: str  # tool | http
    effect: str  # read | write | irreversible | unknown
    arguments: Any
    outcome: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Cassette:
    """A cassette as read. ``torn``: lines that a kill cut off, 0 in a whole file."""

    path: Path
    header: Mapping[str, Any]
    entries: tuple[Entry, ...]
    content_hash: str
    torn: int = 0

    @property
    def from_trace(self) -> bool:
        """Whether it was made from a trace, which tells arguments as the model gave them, without defaults."""
        return self.header.get("source") == "trace"


def to_line(entry: Entry) -> dict[str, Any]:
    """Return the entry as its line says it."""
    told = {"name": entry.name, "kind": entry.kind, "effect": entry.effect, "arguments": entry.arguments}
    return {"key": entry.key, "occurrence": entry.occurrence, **told, **entry.outcome}


def _entry(line: Mapping[str, Any]) -> Entry:
    told = {name: line[name] for name in ("key", "occurrence", "name", "kind", "effect", "arguments")}
    return Entry(**told, outcome={name: value for name, value in line.items() if name not in told})


def _dumped(data: Mapping[str, Any]) -> bytes:
    # ASCII: a lone surrogate is no UTF-8, and composed and decomposed letters stay apart for who reads the file.
    return json.dumps(data, ensure_ascii=True, allow_nan=False).encode("ascii") + b"\n"


def read_cassette(path: Path, *, torn: bool = False) -> Cassette:
    """Read a cassette; with ``torn`` also one whose recording was killed. Raises CassetteError."""
    try:
        lines = path.read_bytes().splitlines(keepends=True)
    except OSError as error:
        left = path.with_name(path.name + RECORDING)
        more = f" {left.name} is a recording that was not closed." if left.exists() else ""
        raise CassetteError(
            f"Reading the cassette {path}: {error.strerror}.{more} Record it first, or name another file."
        ) from error
    header = _header(path, lines)
    parsed = [_parsed(line) for line in lines[1:]]
    footer = parsed[-1] if parsed and parsed[-1] is not None and {"end", "sha256"} <= parsed[-1].keys() else None
    if footer is None:
        if not torn:
            raise CassetteError(
                f"Reading the cassette {path}: its end is missing: the recording was killed, or the file was cut. "
                "Record it again; read_cassette(path, torn=True) shows what is there."
            )
        whole = [line for line in parsed if line is not None]
        return Cassette(path, header, _checked(path, whole), _hash(lines), len(parsed) - len(whole))
    found = _hash(lines[:-1])
    if footer["sha256"] != found or footer["end"] != len(lines) - 2:
        raise CassetteError(
            f"Reading the cassette {path}: it is not as it was recorded ({len(lines) - 2} calls, {found[:12]}; it says "
            f"{footer['end']}, {str(footer['sha256'])[:12]}). Restore it; if you edited it on purpose, "
            f"run: surefoot case seal {path}"
        )
    return Cassette(path, header, _checked(path, parsed[:-1]), found)


def _header(path: Path, lines: list[bytes]) -> dict[str, Any]:
    header = _parsed(lines[0]) if lines else None
    version = None if header is None else header.get("cassette")
    if header is None or not isinstance(version, int):
        raise CassetteError(f"Reading the cassette {path}: its first line is not a cassette's header. Name a cassette.")
    if version > FORMAT:
        raise CassetteError(
            f"Reading the cassette {path}: it has format {version}, this Surefoot knows up to {FORMAT}. "
            "Upgrade Surefoot, or record the cassette again."
        )
    return header


def _checked(path: Path, parsed: Sequence[Mapping[str, Any] | None]) -> tuple[Entry, ...]:
    entries = []
    for number, line in enumerate(parsed, start=2):
        try:
            entry = _entry(line or {})
        except KeyError as error:
            raise CassetteError(
                f"Reading the cassette {path}:{number}: there is no {error}. Record it again."
            ) from error
        if entry.key != call_key(entry.name, entry.arguments):
            raise CassetteError(
                f"Reading the cassette {path}:{number}: the key is not that of {entry.name} with these arguments. "
                f"If you edited them on purpose, run: surefoot case seal {path}"
            )
        entries.append(entry)
    return tuple(entries)


def _parsed(line: bytes) -> dict[str, Any] | None:
    try:
        found = json.loads(line)
    except ValueError:
        return None
    return found if isinstance(found, dict) and line.endswith(b"\n") else None


def _hash(lines: Iterable[bytes]) -> str:
    return hashlib.sha256(b"".join(lines)).hexdigest()


def write_cassette(path: Path, header: Mapping[str, Any], entries: Iterable[Entry]) -> None:
    """Write a whole cassette at once."""
    recorder = Recorder(path, header)
    for entry in entries:
        recorder.add(entry)
    recorder.close()


def seal(path: Path) -> int:
    """Give a cassette that was edited by hand its keys, occurrences and end again; returns its number of calls."""
    lines = path.read_bytes().splitlines(keepends=True) if path.is_file() else []
    header = _header(path, lines)
    seen: Counter[str] = Counter()
    entries = []
    for number, raw in enumerate(lines[1:], start=2):
        line = _parsed(raw if raw.endswith(b"\n") else raw + b"\n")
        if line is not None and "end" in line:
            continue
        if line is None or not {"name", "arguments"} <= line.keys():
            raise CassetteError(
                f"Sealing the cassette {path}:{number}: it is not JSON with name and arguments. Correct it."
            )
        _check_edited(path, number, line)
        key = call_key(line["name"], line["arguments"])
        given = {"kind": "tool", "effect": "unknown", **line, "key": key, "occurrence": seen[key]}
        if given.get("missing") and "result" in given:
            del given["missing"]
        entries.append(_entry(given))
        seen[key] += 1
    write_cassette(path, header, entries)
    return len(entries)


def _check_edited(path: Path, number: int, line: Mapping[str, Any]) -> None:
    """Raise CassetteError if this line could not be replayed, before anything is written."""
    where = f"Sealing the cassette {path}:{number}"
    if not isinstance(line["name"], str):
        raise CassetteError(f"{where}: its name is {line['name']!r}; write the tool's name.")
    if OUTCOMES.isdisjoint(line):
        raise CassetteError(f"{where}: nothing says how the call ended; write one of {', '.join(sorted(OUTCOMES))}.")
    told = line.get("error", {"type": "", "message": ""})
    if not isinstance(told, dict) or not all(isinstance(told.get(part), str) for part in ("type", "message")):
        raise CassetteError(f'{where}: an error is {{"type": "builtins:ValueError", "message": "why"}}; write it so.')
    try:
        _dumped(line)
        with contextlib.suppress(ReplayedError):  # a type that is there only where the case is run
            decode(line.get("result"))
    except Exception as error:
        raise CassetteError(f"{where}: its result cannot be given back ({error}); correct it.") from error


@dataclass(slots=True)
class Recorder:
    """Writes a cassette; a lock keeps a second recording of the same file out. Safe for threads."""

    path: Path
    header: Mapping[str, Any] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)
    _descriptor: int = field(default=-1, repr=False)
    _hash: Any = field(default_factory=hashlib.sha256, repr=False)
    _count: int = field(default=0, repr=False)
    _closed: bool = field(default=False, repr=False)

    def __post_init__(self) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._descriptor = os.open(self._open_path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if not os.path.samestat(os.fstat(self._descriptor), self._open_path.stat()):
                raise FileExistsError  # it was closed and renamed between our open and our lock
        except OSError as error:
            os.close(self._descriptor)
            raise CassetteError(
                f"Another recording writes to {self.path}. A cassette holds one attempt: record one attempt at a time, "
                "or give each a file of its own."
            ) from error
        if os.fstat(self._descriptor).st_size:
            self._keep_what_a_kill_left()
        self._write({"cassette": FORMAT, **self.header})

    @property
    def _open_path(self) -> Path:
        return self.path.with_name(self.path.name + RECORDING)

    def _keep_what_a_kill_left(self) -> None:
        number = 1
        while (kept := self.path.with_name(f"{self.path.name}.killed-{number}")).exists():
            number += 1
        self._open_path.rename(kept)
        os.close(self._descriptor)
        self._descriptor = os.open(self._open_path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o644)
        fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def add(self, entry: Entry) -> None:
        """Append a call. Raises CassetteError once the recording is closed."""
        with self._lock:
            if self._closed:
                # A thread that a time limit left behind. Its descriptor's number may be another file's by now.
                raise CassetteError(f"Recording {self.path}: {entry.name} ended after the recording was closed.")
            self._write(to_line(entry))
            self._count += 1

    def close(self) -> None:
        """Write the end, make it durable, and give the file its name."""
        with self._lock:
            self._closed = True
            self._append(_dumped({"end": self._count, "sha256": self._hash.hexdigest()}))
            os.fsync(self._descriptor)
            self._open_path.replace(self.path)
            os.close(self._descriptor)
        folder = os.open(self.path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def _write(self, data: Mapping[str, Any]) -> None:
        line = _dumped(data)
        self._hash.update(line)
        self._append(line)

    def _append(self, line: bytes) -> None:
        left = memoryview(line)
        while left:
            left = left[os.write(self._descriptor, left) :]
