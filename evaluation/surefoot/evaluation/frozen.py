"""A world that every attempt finds the same: clock, time zone, locale, random, uuid, and what was left to vary.

All of it is per process, so it needs isolation by process. Spans keep real times: a run of the year that the agent
believes in would land in a partition that nobody looks at. Not frozen: ``secrets`` and ``os.urandom``, generators made
without a seed (``numpy.random.default_rng()``), monotonic clocks, the order of threads, the network.
"""

from __future__ import annotations

import contextlib
import hashlib
import locale
import os
import random
import sys
import time
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from surefoot.evaluation.errors import SuiteError
from surefoot.evaluation.suite import Frozen
from surefoot.instrumentation.clock import VirtualClock, use_clock


def real_time() -> float:
    """Return unix seconds, whatever clock the attempt believes in."""
    return real_time_ns() / 1e9


def real_time_ns() -> int:
    """Return nanoseconds, whatever clock the attempt believes in."""
    # Whoever stops a clock imported it; it imports pytest where there is one, which takes its time.
    machine = sys.modules.get("time_machine")
    if machine is not None and machine.escape_hatch.is_travelling():
        return int(machine.escape_hatch.time.time_ns())
    return time.time_ns()


def environment(frozen: Frozen | None) -> dict[str, str]:
    """Return the variables that a process needs from its first instruction on."""
    if frozen is None:
        return {}
    found: dict[str, str] = {}
    if frozen.hash_seed is not None:
        found["PYTHONHASHSEED"] = str(frozen.hash_seed)
    if frozen.timezone is not None:
        found["TZ"] = frozen.timezone
    if frozen.locale is not None:
        found["LC_ALL"] = frozen.locale
    return found


@contextlib.contextmanager
def frozen_world(frozen: Frozen | None, seed: int) -> Iterator[None]:
    """Hold the world still inside. ``seed`` is that of the task: equal for all its repetitions and variants."""
    if frozen is None:
        yield
        return
    with contextlib.ExitStack() as stack:
        if frozen.locale is not None:
            stack.enter_context(_locale(frozen.locale))
        if frozen.uuid:
            stack.enter_context(_uuids(seed))
        if frozen.random:
            stack.enter_context(_random(seed))
        if frozen.clock is not None:
            stack.enter_context(_clock(frozen.clock, frozen.timezone))
        yield


def check(frozen: Frozen) -> None:
    """Raise SuiteError if this world cannot be made here."""
    if frozen.clock is not None:
        _instant(frozen.clock)
    if frozen.timezone is not None:
        _zone(frozen.timezone)
    if frozen.locale is not None:
        with _locale(frozen.locale):
            pass


def seen() -> dict[str, str]:
    """Return what an attempt sees of the world, to be compared between attempts. Draws nothing from any generator."""
    state = random.getstate()
    draw = random.random()  # noqa: S311 - a look at the generator, which is then put back
    random.setstate(state)
    return {
        "clock": datetime.now(UTC).isoformat(timespec="seconds"),
        "timezone": "/".join(time.tzname),
        "locale": str(locale.setlocale(locale.LC_ALL)),
        "random": f"{draw:.12f}",
        "hash": str(hash("surefoot")),
        "environment": _hashed({name: value for name, value in os.environ.items() if not name.startswith("OTEL_")}),
        "working directory": str(Path.cwd()),
    }


def _hashed(values: dict[str, str]) -> str:
    return hashlib.sha256(repr(sorted(values.items())).encode()).hexdigest()[:12]


def _instant(text: str) -> datetime:
    try:
        found = datetime.fromisoformat(text)
    except ValueError as error:
        raise SuiteError(f"freeze.clock: {text!r} is no instant; write 2026-01-15T09:00:00+00:00.") from error
    if found.tzinfo is None:
        raise SuiteError(f"freeze.clock: {text!r} has no zone; write {text}+00:00.")
    return found


def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError) as error:
        raise SuiteError(f"freeze.timezone: there is no zone {name!r}; write one such as Europe/Berlin.") from error


@contextlib.contextmanager
def _clock(instant: str, zone: str | None) -> Iterator[None]:
    import time_machine

    _keep_telemetry_in_real_time()
    at = _instant(instant)
    # A destination with a ZoneInfo also sets the local zone.
    destination = at if zone is None else at.astimezone(_zone(zone))
    with time_machine.travel(destination, tick=False), use_clock(_RealClock(0)):
        yield


class _RealClock(VirtualClock):
    def now_unix_nano(self) -> int:
        return real_time_ns()


def _keep_telemetry_in_real_time() -> None:
    """Give OpenTelemetry's modules clocks that do not stand still."""
    real = {"time": real_time, "time_ns": real_time_ns}
    for name, module in list(sys.modules.items()):
        if name.startswith(("opentelemetry.sdk", "opentelemetry.exporter")):
            for attribute, function in real.items():
                if vars(module).get(attribute) is getattr(time, attribute):
                    setattr(module, attribute, function)


@contextlib.contextmanager
def _locale(name: str) -> Iterator[None]:
    before = locale.setlocale(locale.LC_ALL)
    try:
        locale.setlocale(locale.LC_ALL, name)
    except locale.Error as error:
        raise SuiteError(
            f"freeze.locale: this machine has no locale {name!r}; `locale -a` lists what it has."
        ) from error
    try:
        yield
    finally:
        locale.setlocale(locale.LC_ALL, before)


@contextlib.contextmanager
def _random(seed: int) -> Iterator[None]:
    before = random.getstate()
    random.seed(seed)
    legacy = getattr(sys.modules.get("numpy"), "random", None)
    kept = None if legacy is None else legacy.get_state()
    if legacy is not None:
        legacy.seed(seed % 2**32)
    try:
        yield
    finally:
        random.setstate(before)
        if legacy is not None:
            legacy.set_state(kept)


class _SeededOs:
    """The module ``os`` as ``uuid`` sees it: everything as it is but ``urandom``.

    Replacing ``uuid.uuid4`` itself would miss whoever imported it by name before.
    """

    def __init__(self, seed: int) -> None:
        self._draw = random.Random(seed)  # noqa: S311 - the point is that it repeats

    def urandom(self, size: int) -> bytes:
        return self._draw.randbytes(size)

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name)


@contextlib.contextmanager
def _uuids(seed: int) -> Iterator[None]:
    before = vars(uuid)["os"]
    vars(uuid)["os"] = _SeededOs(seed)
    try:
        yield
    finally:
        vars(uuid)["os"] = before
