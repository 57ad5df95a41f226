"""What both transports share: who sends, check, admit, append; and what happened, counted."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass

from surefoot.collector.admission import Admission
from surefoot.collector.auth import Authenticator
from surefoot.collector.errors import RefusedError, RetryableError
from surefoot.collector.limits import Limits
from surefoot.collector.log import DurableLog
from surefoot.collector.rate import Rate
from surefoot.collector.segment import Record, Signal
from surefoot.collector.validate import Checked, check


@dataclass(frozen=True, slots=True)
class Receipt:
    """A request on its way to the disk: acknowledge it with ``response`` once ``stored`` resolves."""

    stored: Future[None]
    rejected: int
    message: str


class Receiver:
    """Takes request bodies. Safe to call from many threads. Without an authenticator everybody may send."""

    def __init__(
        self,
        log: DurableLog,
        admission: Admission,
        limits: Limits,
        rate: Rate,
        authenticator: Authenticator | None = None,
    ) -> None:
        self._log = log
        self._admission = admission
        self._limits = limits
        self._rate = rate
        self._authenticator = authenticator
        self._lock = threading.Lock()
        self._counts: Counter[tuple[str, str, str]] = Counter()
        self._refusals: Counter[tuple[str, str, str, str]] = Counter()

    @property
    def takes_tokens(self) -> bool:
        """Whether :meth:`enter` looks at the authorization."""
        return self._authenticator is not None

    def enter(self, signal: Signal, transport: str, authorization: str | None) -> str:
        """The source of a request, before anything of its body is read: its token's name, or the transport.

        Raises UnauthenticatedError or ThrottledError.
        """
        try:
            source = transport if self._authenticator is None else self._authenticator.source(authorization)
            self._rate.take(source)
        except RefusedError as error:
            self.refuse(signal, transport, error.reason, again=isinstance(error, RetryableError))
            raise
        return source

    def receive(self, signal: Signal, body: bytes, *, transport: str, source: str, is_json: bool = False) -> Receipt:
        """Check a body and queue it for the disk.

        Raises BadRequestError (never send again) or UnavailableError (send again later).
        """
        try:
            checked = check(signal, body, is_json=is_json, limits=self._limits)
            if checked.items:
                self._admission.admit(len(checked.body))
        except RefusedError as error:
            self.refuse(signal, transport, error.reason, again=isinstance(error, RetryableError))
            raise
        stored: Future[None]
        if checked.items:
            record = Record(signal, checked.encoding, time.time_ns(), source, checked.body)
            stored = self._log.append(record)
        else:  # an empty request is a success and nothing to keep
            stored = Future()
            stored.set_result(None)
        stored.add_done_callback(lambda done: self._finish(signal, transport, checked, done))
        return Receipt(stored, checked.rejected, checked.message)

    def counts(self) -> list[dict[str, str | int]]:
        """Totals since the start by signal, transport and what was counted."""
        with self._lock:
            return [
                {"signal": signal, "transport": transport, "name": name, "total": total}
                for (signal, transport, name), total in sorted(self._counts.items())
            ]

    def refusals(self) -> list[dict[str, str | int]]:
        """Totals since the start of what was not taken: ``what`` is requests or items, ``reason`` says why."""
        with self._lock:
            return [
                {"signal": signal, "transport": transport, "what": what, "reason": reason, "total": total}
                for (signal, transport, what, reason), total in sorted(self._refusals.items())
            ]

    def refuse(self, signal: Signal | None, transport: str, reason: str, *, again: bool = False) -> None:
        """Count a request that was not taken; ``again`` if its sender was asked to come again."""
        name = _name(signal)
        with self._lock:
            self._counts[(name, transport, "deferred_requests" if again else "refused_requests")] += 1
            self._refusals[(name, transport, "requests", reason)] += 1

    def _finish(self, signal: Signal, transport: str, checked: Checked, done: Future[None]) -> None:
        error = done.exception()
        if error is not None:
            reason = error.reason if isinstance(error, RefusedError) else "failure"
            self.refuse(signal, transport, reason, again=True)
            return
        amounts = {"accepted_requests": 1, "accepted_items": checked.items, "rejected_items": checked.rejected}
        self._count(_name(signal), transport, amounts, checked.reasons)

    def _count(self, signal: str, transport: str, amounts: Mapping[str, int], reasons: Mapping[str, int]) -> None:
        with self._lock:
            for name, amount in amounts.items():
                self._counts[(signal, transport, name)] += amount
            for reason, amount in reasons.items():
                self._refusals[(signal, transport, "items", reason)] += amount


def _name(signal: Signal | None) -> str:
    return "unknown" if signal is None else signal.name.lower()
