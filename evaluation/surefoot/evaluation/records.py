"""One line of JSON per event of an attempt, appended to ``attempts.jsonl`` of a run folder.

Rule: what is in the file is never changed, and a finished attempt is on the disk (fsync) before anybody is told of it.
So ``kill -9`` loses at most attempts that were under way; those are marked lost when the run is resumed, and run again.
An attempt that the infrastructure ended is tried again by a resume, too: its slot then has several tries, of which the
last one counts, and all of which stay in the file.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Literal, Self

from surefoot.evaluation.as_json import as_json
from surefoot.evaluation.errors import RecordsError

FILE: Final = "attempts.jsonl"
REPLAYS: Final = "replays.jsonl"  # no reader of attempts opens it
MANIFEST: Final = "manifest.json"

Outcome = Literal["ok", "error", "timeout", "lost", "infrastructure"]
# An attempt that ended in one of these says nothing about the agent.
SPARED: Final = frozenset({"lost", "infrastructure"})


@dataclass(frozen=True, slots=True)
class Failure:
    """Why an attempt did not end well."""

    type: str
    message: str
    traceback: str | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    """What one checker found."""

    name: str
    kind: Literal["outcome", "process", "other"]
    verdict: Literal["pass", "fail", "unresolved"]
    explanation: str | None = None
    grader_name: str | None = None
    grader_version: str | None = None
    grader_kind: Literal["human", "executable", "model"] | None = None
    severity: str | None = None
    score: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One call of the agent for (variant, task, repetition). None: not known, which is never a failure.

    An attempt that has only begun has the outcome ``lost``: that is what it is if nothing follows.
    """

    attempt_id: str
    suite: str
    variant: str
    task_id: str
    repetition: int
    outcome: Outcome
    suite_hash: str | None = None
    seed: int | None = None
    started_at: float | None = None  # unix seconds
    ended_at: float | None = None
    error: Failure | None = None
    output: Any = None
    verdicts: tuple[Verdict, ...] = ()
    acceptable: bool | None = None
    signature: str | None = None  # equal signatures: equivalent final states, by the task's rule
    equivalence: str | None = None  # that rule
    task_class: str | None = None
    consequence_class: str | None = None
    confidence: float | None = None  # 0..100
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost_usd: float | None = None
    model_calls: int | None = None
    tool_calls: int | None = None
    tool_errors: int | None = None
    actions: tuple[str, ...] | None = None  # names of the tools that were called, in order
    trace_id: str | None = None
    run_id: str | None = None  # the run in the lake: its span
    provenance_id: str | None = None
    tried: int | None = None  # how many tries of this slot the infrastructure ended before
    extra: Mapping[str, Any] = field(default_factory=dict)  # what only one source tells

    @property
    def slot(self) -> tuple[str, str, int]:
        """What a run has to do once."""
        return self.variant, self.task_id, self.repetition

    @property
    def seconds(self) -> float | None:
        """How long it took."""
        return None if self.started_at is None or self.ended_at is None else self.ended_at - self.started_at


@dataclass(frozen=True, slots=True)
class Records:
    """A file of attempts. ``lost`` are those that a later resume marked; ``open`` began and nobody ended them yet.

    ``earlier`` are finished tries that the infrastructure ended and that a later one of the slot replaces.
    """

    finished: tuple[Attempt, ...]
    lost: tuple[Attempt, ...]
    open: tuple[Attempt, ...]
    torn: int  # lines that a crash cut off
    earlier: tuple[Attempt, ...] = ()


def to_json(attempt: Attempt) -> dict[str, Any]:
    """Return the attempt as plain data, without what is not known."""
    told: dict[str, Any] = {name: getattr(attempt, name) for name in _FIELDS}
    told |= {
        "error": None if attempt.error is None else asdict(attempt.error),
        "output": as_json(attempt.output),
        "verdicts": [asdict(verdict) for verdict in attempt.verdicts] or None,
        "extra": as_json(attempt.extra) or None,
    }
    return {name: value for name, value in told.items() if value is not None}


def from_json(data: Mapping[str, Any]) -> Attempt:
    """Return the attempt of plain data; fields that a newer version wrote are kept under ``extra``."""
    known = {name: value for name, value in data.items() if name in _FIELDS}
    unknown = {name: value for name, value in data.items() if name not in _FIELDS and name != "event"}
    if known.get("error") is not None:
        known["error"] = Failure(**known["error"])
    known["verdicts"] = tuple(Verdict(**verdict) for verdict in known.get("verdicts", ()))
    if known.get("actions") is not None:
        known["actions"] = tuple(known["actions"])
    if unknown:
        known["extra"] = {**known.get("extra", {}), **unknown}
    return Attempt(**known)


_FIELDS: Final = frozenset(part.name for part in fields(Attempt))


def attempts_file(path: Path) -> Path:
    """Return the file of a run folder, or the file itself."""
    return path / FILE if path.is_dir() else path


def read_attempts(path: Path) -> list[Attempt]:
    """Return the finished attempts of a run folder or file, the last try of each, in the order in which they ended."""
    return list(read_records(path).finished)


def read_records(path: Path) -> Records:
    """Return everything that a run folder or file tells. Raises RecordsError if it cannot be read or is damaged."""
    file = attempts_file(path)
    if file.name == REPLAYS:
        raise RecordsError(f"{file} holds what was run again to be looked at: no evidence. Name a run's folder.")
    started: dict[str, Attempt] = {}
    ended: dict[str, Attempt] = {}
    lost: dict[str, Attempt] = {}
    torn = 0
    for number, event in _events(file):
        if event is None:
            torn += 1
            continue
        try:
            kind, attempt = event["event"], from_json(event)
            into = {"started": started, "finished": ended, "lost": lost}[kind]
            _check_types(attempt)
        except (AttributeError, LookupError, TypeError, ValueError) as error:
            raise RecordsError(
                f"Reading {file}:{number}: not an attempt's event ({error}). Restore the file."
            ) from error
        into[attempt.attempt_id] = attempt
    still = [attempt for key, attempt in started.items() if key not in ended and key not in lost]
    finished, earlier = last_tries(ended.values())
    return Records(finished, tuple(lost.values()), tuple(still), torn, earlier)


def last_tries(attempts: Iterable[Attempt]) -> tuple[tuple[Attempt, ...], tuple[Attempt, ...]]:
    """Return the attempts that count, and the tries that the infrastructure ended and that were made again later."""
    counting: dict[str, Attempt] = {}
    earlier: list[Attempt] = []
    retryable: dict[tuple[str, str, int], str] = {}
    for attempt in attempts:
        before = retryable.pop(attempt.slot, None)
        if before is not None:
            earlier.append(counting.pop(before))
        counting[attempt.attempt_id] = attempt
        if attempt.outcome == "infrastructure":
            retryable[attempt.slot] = attempt.attempt_id
    return tuple(counting.values()), tuple(earlier)


def _check_types(attempt: Attempt) -> None:
    """Raise TypeError where a file that somebody wrote by hand would give wrong figures instead of none."""
    wanted = {"attempt_id": str, "variant": str, "task_id": str, "outcome": str, "repetition": int}
    for name, kind in wanted.items():
        if not isinstance(getattr(attempt, name), kind):
            raise TypeError(f"{name} is {getattr(attempt, name)!r}")
    if attempt.acceptable is not None and not isinstance(attempt.acceptable, bool):
        raise TypeError(f"acceptable is {attempt.acceptable!r}")


def _events(file: Path) -> Iterator[tuple[int, dict[str, Any] | None]]:
    """Yield (line, event); None where a crash cut a line off: it is the last, or a resume marked it so."""
    try:
        with file.open("rb") as lines:
            waiting: int | None = None
            for number, line in enumerate(lines, start=1):
                event = _parsed(line)
                if waiting is not None:
                    if event is None or event.get("event") != "torn":
                        raise RecordsError(f"Reading {file}:{waiting}: the line is damaged. Restore the file.")
                    yield waiting, None
                    waiting = None
                elif event is None:
                    waiting = number
                elif event.get("event") != "torn":
                    yield number, event
            if waiting is not None:
                yield waiting, None
    except OSError as error:
        raise RecordsError(f"Reading attempts: {error}. Name a run folder or its {FILE}.") from error


def _parsed(line: bytes) -> dict[str, Any] | None:
    try:
        found = json.loads(line)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


class RecordsWriter:
    """Appends events; one writer per file (a lock keeps a second one out)."""

    def __init__(self, folder: Path, name: str = FILE) -> None:
        self.path = folder / name
        with failing("Opening", self.path):
            folder.mkdir(parents=True, exist_ok=True)
            self._descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(self._descriptor)
            raise RecordsError(f"Another run writes to {self.path}: wait for it, or use another folder.") from error
        self._mark_torn()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the file and give the lock back."""
        os.close(self._descriptor)

    def started(self, attempt: Attempt) -> None:
        """Note that an attempt begins."""
        self._append("started", attempt)

    def finished(self, attempt: Attempt) -> None:
        """Note an attempt's end, durably."""
        self.ended(attempt)
        self.sync()

    def ended(self, attempt: Attempt) -> None:
        """Note an attempt's end; durable only after the next :meth:`sync`."""
        self._append("finished", attempt)

    def sync(self) -> None:
        """Make everything that is written durable. May be called from another thread."""
        with failing("Writing", self.path):
            os.fsync(self._descriptor)

    def lost(self, attempts: Iterable[Attempt]) -> None:
        """Note attempts that began and that nobody ended, durably."""
        for attempt in attempts:
            self._append("lost", attempt)
        self.sync()

    def _append(self, event: str, attempt: Attempt) -> None:
        self._write(json.dumps({"event": event, **to_json(attempt)}, ensure_ascii=False))

    def _write(self, text: str) -> None:
        # A lone surrogate, which an agent's text may hold, is no UTF-8: it is written as JSON's escape.
        left = memoryview((text + "\n").encode("utf-8", "backslashreplace"))
        with failing("Writing", self.path):
            size = os.fstat(self._descriptor).st_size
            try:
                while left:
                    left = left[os.write(self._descriptor, left) :]
            except OSError:
                # A full disk may take a part of a line, and the next line would be joined to it.
                os.ftruncate(self._descriptor, size)
                raise

    def _mark_torn(self) -> None:
        size = os.fstat(self._descriptor).st_size
        if size and os.pread(self._descriptor, 1, size - 1) != b"\n":
            self._write('\n{"event": "torn"}')


@contextlib.contextmanager
def failing(doing: str, path: Path) -> Iterator[None]:
    """Turn what a file system refuses into an error that says what to do."""
    try:
        yield
    except OSError as error:
        raise RecordsError(
            f"{doing} {path}: {error.strerror}. What was recorded before is kept. Make room or make it writable, and "
            "continue with the same folder."
        ) from error
