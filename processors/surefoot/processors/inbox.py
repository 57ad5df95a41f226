"""The requests of commands, done by the holder of the lease, a step of each a cycle (see ``requests``, ``operate``)."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable
from datetime import date
from typing import Any, Final

from surefoot.errors import SurefootError
from surefoot.processors import requests
from surefoot.processors.errors import LeaseHeldError, RequestError
from surefoot.processors.lake import Lake
from surefoot.processors.lake.operate import WAITING, Operation, begin
from surefoot.processors.requests import Request
from surefoot.processors.settings import Settings
from surefoot.processors.writer import run

log = logging.getLogger("surefoot.jobs")


class Inbox:
    """What was asked for and how far it is. Memory is a cache: a new inbox begins every open request again."""

    def __init__(self, lake: Lake, settings: Settings) -> None:
        self._lake = lake
        self._settings = settings
        self._folder = settings.requests_path
        self._active: dict[str, Operation] = {}
        self._dirty: set[date] = set()

    def step(self, now: float) -> set[date]:
        """Move every request on; returns the dates whose runs or verdicts changed."""
        for request in requests.pending(self._folder):
            try:
                self._move_on(request, now)
            except SurefootError as error:
                log.error("Could not do what %s asked for (%s): %s", request.by, request.command, error)
                self._refuse(request, str(error), error.exit_code)
            except Exception as error:  # it would come again after every restart, and nothing else be done any more
                log.exception("Could not do what %s asked for (%s).", request.by, request.command)
                self._refuse(request, f"{type(error).__name__}: {error}", 1)
        changed, self._dirty = self._dirty, set()
        return changed

    def _move_on(self, request: Request, now: float) -> None:
        try:
            if request.id not in self._active:
                work = begin(request.command, request.arguments, request.by, self._lake, self._settings, self._note)
                told = next(work)
                self._active[request.id] = work
            else:
                told = self._active[request.id].send(now)
        except StopIteration as end:
            self._active.pop(request.id, None)
            requests.answer(self._folder, request.id, end.value)
        else:
            requests.tell(self._folder, request.id, told)

    def _refuse(self, request: Request, reason: str, exit_code: int) -> None:
        self._active.pop(request.id, None)
        requests.answer(self._folder, request.id, {"error": reason, "exit_code": exit_code})

    def _note(self, dates: Iterable[date]) -> None:
        self._dirty.update(dates)


# A server takes a request up within a cycle; one that has not after this many seconds looks into another folder.
TAKE_UP_SECONDS: Final = 60.0
# What is still open in the spool when no server runs is only written when one does.
SPOOL_SECONDS: Final = 60.0
_POLL_SECONDS: Final = 0.2


def have_done(
    settings: Settings,
    command: str,
    arguments: dict[str, Any],
    by: str,
    *,
    tell: Callable[[str], None],
    clock: Callable[[], float],
    sleep: Callable[[float], None],
) -> dict[str, Any]:
    """Have a command done by the process that holds the lease, or do it here when there is none; returns its answer.

    Raises RequestError with what the other process said, or if it does not take the request up.
    """
    lake = Lake.open(settings.lake_path, create=False)
    folder, asked, since = settings.requests_path, "", clock()
    while True:
        try:
            with lake.lease(f"surefoot lake {command}"):
                if asked:
                    requests.withdraw(folder, asked)
                    if (said := requests.take_answer(folder, asked)) is not None:
                        return _checked(said)
                return _do_here(settings, command, arguments, by, tell, clock, sleep)
        except LeaseHeldError:
            if not asked:
                asked = requests.submit(folder, Request(command, arguments, by))
        if (said := requests.take_answer(folder, asked)) is not None:
            return _checked(said)
        told = requests.progress(folder, asked)
        tell(told or "asking the server")
        if told is None and clock() - since > TAKE_UP_SECONDS:
            requests.withdraw(folder, asked)
            raise RequestError(
                f"The process that holds the lease of {settings.lake_path} did not take up `{command}` in "
                f"{TAKE_UP_SECONDS:.0f} s. Is its SUREFOOT_HOME {settings.home} too? Is it alive?"
            )
        sleep(_POLL_SECONDS)


def _do_here(
    settings: Settings,
    command: str,
    arguments: dict[str, Any],
    by: str,
    tell: Callable[[str], None],
    clock: Callable[[], float],
    sleep: Callable[[float], None],
) -> dict[str, Any]:
    if command == "erase":
        tell("writing what the spool holds")
        run(settings, threading.Event(), once=True, announce=False)
    lake = Lake.open(settings.lake_path)
    work = begin(command, arguments, by, lake, settings, lambda _: None)  # a server counts everything when it starts
    since = clock()
    try:
        told = next(work)
        while True:
            tell(told)
            if WAITING in told and clock() - since > SPOOL_SECONDS:
                raise RequestError(
                    f"Nothing was erased: {told}, and no server writes them. Start `surefoot serve` and ask again."
                )
            if told.startswith((WAITING, "rows are gone")):
                sleep(_POLL_SECONDS)
            told = work.send(clock())
    except StopIteration as end:
        answer: dict[str, Any] = end.value
        return answer


def _checked(said: dict[str, Any]) -> dict[str, Any]:
    if "error" in said:
        raise RequestError(f"The server could not do it: {said['error']}")
    return said
