"""The world of one attempt: what its calls met, recorded or replayed.

Rule: in replay nothing is ever called: a call that the cassette does not hold is an error that says so, however
harmless the tool. A world counts its own occurrences, so repetitions that replay one cassette all meet the same world.
Calls with different keys may come in any order; those with one key get their results in the order of the recording.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import datetime
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

from surefoot.evaluation.replay.canonical import NotPlainError, call_key, plain
from surefoot.evaluation.replay.cassette import Cassette, Entry, Recorder, read_cassette
from surefoot.evaluation.replay.errors import CassetteError, CassetteMissError, IrreversibleError
from surefoot.evaluation.replay.nearest import nearest
from surefoot.evaluation.replay.redaction import BUILT_IN, Redaction
from surefoot.evaluation.replay.values import encode_error

Mode = Literal["record", "replay", "off"]
Effect = Literal["read", "write", "irreversible", "unknown"]
MODES: Final[tuple[Mode, ...]] = ("record", "replay", "off")
# A thread that an agent starts has no context of its own maker's; what it calls must not reach the world unseen.
_OPEN: Final[dict[int, World]] = {}
_CURRENT: Final[contextvars.ContextVar[World | None]] = contextvars.ContextVar("surefoot_replay_world", default=None)


@dataclass(frozen=True, slots=True)
class Call:
    """A call under way. ``entry`` is its recording, in replay."""

    key: str
    occurrence: int
    name: str
    kind: str
    effect: str
    arguments: Any
    entry: Entry | None = None


@dataclass(frozen=True, slots=True)
class Report:
    """What a world met. In replay ``unused`` are recorded calls that nobody made; a replay of the same way has none."""

    mode: Mode
    cassette: str
    content_hash: str | None
    calls: int
    misses: tuple[str, ...] = ()
    unused: tuple[str, ...] = ()
    unfinished: tuple[str, ...] = ()  # began while recording and never ended: not in the cassette
    problems: tuple[str, ...] = ()  # calls that could not be recorded

    def to_json(self) -> dict[str, Any]:
        """Return it as plain data, for an attempt's record."""
        lists = {name: list(getattr(self, name)) for name in ("misses", "unused", "unfinished", "problems")}
        told = {"mode": self.mode, "cassette": self.cassette, "content_hash": self.content_hash, "calls": self.calls}
        return {**told, **{name: given for name, given in lists.items() if given}}


@dataclass(slots=True)
class World:
    """One attempt's world; ``opened`` makes it. Safe for threads and tasks."""

    mode: Mode
    path: Path
    redaction: Redaction = BUILT_IN
    allow_irreversible: bool = False
    cassette: Cassette | None = None
    recorder: Recorder | None = None
    secrets: set[str] = field(default_factory=set, repr=False)
    closed: bool = False
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)
    _seen: Counter[str] = field(default_factory=Counter, repr=False)
    _entries: dict[tuple[str, int], Entry] = field(default_factory=dict, repr=False)
    _open: dict[tuple[str, int], str] = field(default_factory=dict, repr=False)
    _misses: list[str] = field(default_factory=list, repr=False)
    _problems: list[str] = field(default_factory=list, repr=False)

    def __post_init__(self) -> None:
        self.secrets |= self.redaction.secrets()
        if self.cassette is not None:
            self._entries = {(entry.key, entry.occurrence): entry for entry in self.cassette.entries}

    def clean(self, data: Any) -> Any:
        """Return JSON data as it may be written."""
        return self.redaction.clean(data, self.secrets)

    def begin(self, name: str, arguments: Any, *, kind: str, effect: str, others: tuple[Any, ...] = ()) -> Call:
        """Note that a call begins; in replay find its recording. ``others``: arguments that mean the same call.

        Raises CassetteMissError in replay; IrreversibleError and CassetteError while recording.
        """
        if self.closed:  # by a thread that a time limit left behind
            raise CassetteError(f"{name} was called when the attempt of {self.path} had ended. Nothing was called.")
        name = self.redaction.clean_text(name, self.secrets)  # of a URL's path it may be a part
        told = self._plain(name, arguments)
        if self.mode == "replay":
            return self._find(name, told, kind, effect, [self._plain(name, other) for other in others])
        if effect == "irreversible" and not self.allow_irreversible:
            self._problems.append(f"{name} is irreversible and was not called")
            raise IrreversibleError(
                f"Recording {self.path}: {name} is irreversible and would really be called. Record with "
                "allow_irreversible=True where that is meant, or record against a sandbox."
            )
        key = call_key(name, told)
        with self._lock:
            call = Call(key, self._seen[key], name, kind, effect, told)
            self._seen[key] += 1
            self._open[key, call.occurrence] = name
        return call

    def _plain(self, name: str, arguments: Any) -> Any:
        try:
            return self.clean(plain(arguments, "arguments"))
        except NotPlainError as error:
            raise self.problem(
                f"{name}: {error}, of which a cassette can make no key. Leave the argument out of the key with "
                f"ignore=({error.path.split('.')[1] if '.' in error.path else 'its name'!r},), or give plain data."
            ) from error

    def problem(self, text: str) -> CassetteError:
        """Remember what could not be recorded or replayed; agents' frameworks like to swallow what tools raise."""
        self._problems.append(text)
        return CassetteError(f"{'Replaying' if self.mode == 'replay' else 'Recording'} {self.path}: {text}")

    def _find(self, name: str, told: Any, kind: str, effect: str, others: list[Any]) -> Call:
        keys = [call_key(name, one) for one in (told, *others)]
        with self._lock:
            key = next((key for key in keys if (key, 0) in self._entries), keys[0])
            occurrence = self._seen[key]
            self._seen[key] += 1
        entry = self._entries.get((key, occurrence))
        if entry is None or entry.outcome.get("missing"):
            raise self.miss(self._why(name, told, key, occurrence, entry))
        return Call(key, occurrence, name, kind, effect, told, entry)

    def miss(self, text: str) -> CassetteMissError:
        """Remember a miss and return it as an error."""
        with self._lock:
            self._misses.append(text)
        return CassetteMissError(f"Replaying {self.path}: {text}")

    def _why(self, name: str, told: Any, key: str, occurrence: int, entry: Entry | None) -> str:
        if entry is not None:
            return (
                f"the call {name} is in the cassette without its result, which the trace did not tell. Nothing was "
                f'called. Write "result" into its line (key {key[:12]}) and run: surefoot case seal {self.path}'
            )
        remedy = f"Nothing was called. If the new call is meant, record {self.path.name} again (mode 'record')"
        if occurrence:
            times = "once" if occurrence == 1 else f"{occurrence} times"
            return f"{name} with these arguments was recorded {times}; this is call {occurrence + 1}. {remedy}."
        near = nearest(name, told, list(self._entries.values()))
        return (
            f"no call {name} with these arguments was recorded (key {key}).\n{near}\n{remedy}; if what differs "
            "never matters, leave it out of the key (ignore of a tool, volatile of a transport)."
        )

    def ended(self, call: Call, outcome: Mapping[str, Any]) -> None:
        """Write what a call gave, cleaned. Arguments were cleaned when it began."""
        if self.recorder is None:
            raise CassetteError(f"{self.path} is not being recorded: only recorded calls are told how they ended.")
        cleaned = self.clean(dict(outcome))
        entry = Entry(call.key, call.occurrence, call.name, call.kind, call.effect, call.arguments, cleaned)
        with self._lock:
            self._open.pop((call.key, call.occurrence), None)
        self.recorder.add(entry)

    def failed(self, call: Call, error: BaseException) -> None:
        """Write that a call raised."""
        cancelled = isinstance(error, asyncio.CancelledError)
        self.ended(call, {"cancelled": True} if cancelled else {"error": encode_error(error)})

    def tool(
        self, name: str, function: Callable[..., Any], *, effect: Effect | None = None, ignore: tuple[str, ...] = ()
    ) -> Callable[..., Any]:
        """Return the tool as this world has it. ``ignore``: parameters that are no part of the call."""
        from surefoot.evaluation.replay.tools import wrap

        return wrap(self, name, function, effect=effect, ignore=ignore)

    def tools(self, functions: Mapping[str, Callable[..., Any]]) -> dict[str, Callable[..., Any]]:
        """Return several tools as this world has them."""
        return {name: self.tool(name, function) for name, function in functions.items()}

    def report(self) -> Report:
        """Return what has been met until now."""
        with self._lock:
            entries = sorted(self._entries.values(), key=lambda entry: (entry.name, entry.occurrence))
            unused = [
                f"{entry.name} {entry.key[:12]}#{entry.occurrence}"
                for entry in entries
                if entry.occurrence >= self._seen[entry.key]
            ]
            return Report(
                self.mode,
                self.path.name,
                None if self.cassette is None else self.cassette.content_hash,
                self._seen.total(),
                tuple(self._misses),
                tuple(unused),
                tuple(f"{name} {key[:12]}#{occurrence}" for (key, occurrence), name in self._open.items()),
                tuple(self._problems),
            )


def current() -> World | None:
    """Return the world of the attempt that runs here, or None. Raises CassetteError where it cannot be told."""
    here, there = _CURRENT.get(), list(_OPEN.values())
    if here is not None or not there:
        return here
    if len(there) > 1:
        raise CassetteError(
            f"A call from a thread of which nobody knows to which of {len(there)} attempts it belongs. Nothing was "
            "called. Isolate attempts by process, or start the thread with contextvars.copy_context().run."
        )
    return there[0]


@contextlib.contextmanager
def opened(
    path: Path | str,
    mode: Mode = "replay",
    *,
    redaction: Redaction = BUILT_IN,
    allow_irreversible: bool = False,
    about: Mapping[str, str] | None = None,
) -> Iterator[World]:
    """Open the world of one attempt: record its calls into a cassette, or replay them from there.

    It is the ``current`` one until it is closed. A recording is kept however the attempt ends: a failing attempt is the
    one to keep; ``about`` stands in its header. Raises CassetteMissError at the end if a miss was swallowed on the way,
    CassetteError if calls could not be recorded.
    """
    if mode not in MODES:
        raise CassetteError(f"Opening the cassette {path}: {mode!r} is no mode; write one of {', '.join(MODES)}.")
    path = Path(path)
    cassette = read_cassette(path) if mode == "replay" else None
    recorder = None
    if mode == "record":
        recorded_at = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
        recorder = Recorder(path, {"source": "recorded", "recorded_at": recorded_at, **(about or {})})
    world = World(mode, path, redaction, allow_irreversible, cassette, recorder)
    token = _CURRENT.set(world)
    _OPEN[id(world)] = world  # one step each, as worlds open and close in several threads
    try:
        yield world
    finally:
        world.closed = True
        _OPEN.pop(id(world), None)
        _CURRENT.reset(token)
        if recorder is not None:
            recorder.close()
    found = world.report()
    if found.misses:
        count = f"{len(found.misses)} calls were not recorded" if len(found.misses) > 1 else "a call was not recorded"
        raise CassetteMissError(f"Replaying {path}: {count}, and the agent went on without: {found.misses[0]}")
    if found.problems:
        raise CassetteError(f"{path}: {'; '.join(found.problems)}")
