"""What both transports share: check, admit, append; and what happened, counted."""

from __future__ import annotations

import threading
import time
from collections import Counter
from concurrent.futures import Future
from dataclasses import dataclass

from surefoot.collector.admission import Admission
from surefoot.collector.errors import BadRequestError, UnavailableError
from surefoot.collector.log import DurableLog
from surefoot.collector.segment import Encoding, Record, Signal
from surefoot.collector.validate import check


@dataclass(frozen=True, slots=True)
class Receipt:
    """A request on its way to the disk: acknowledge it with ``response`` once ``stored`` resolves."""

    stored: Future[None]
    rejected: int
    message: str


class Receiver:
    """Takes request bodies. Safe to call from many threads."""

    def __init__(self, log: DurableLog, admission: Admission) -> None:
        self._log = log
        self._admission = admission
        self._lock = threading.Lock()
        self._counts: Counter[tuple[str, str, str]] = Counter()

    def receive(self, signal: Signal, body: bytes, *, transport: str, is_json: bool = False) -> Receipt:
        """Check a body and queue it for the disk.

        Raises BadRequestError (never send again) or UnavailableError (send again later).
        """
        try:
            checked = check(signal, body, is_json=is_json)
            if checked.items:
                self._admission.admit(len(checked.body))
        except BadRequestError:
            self._count(signal, transport, refused_requests=1)
            raise
        except UnavailableError:
            self._count(signal, transport, deferred_requests=1)
            raise
        stored: Future[None]
        if checked.items:
            record = Record(signal, Encoding.PROTOBUF, time.time_ns(), transport, checked.body)
            stored = self._log.append(record)
        else:  # an empty request is a success and nothing to keep
            stored = Future()
            stored.set_result(None)
        stored.add_done_callback(lambda done: self._finish(signal, transport, checked.items, checked.rejected, done))
        return Receipt(stored, checked.rejected, checked.message)

    def counts(self) -> list[dict[str, str | int]]:
        """Totals since the start by signal, transport and what was counted."""
        with self._lock:
            return [
                {"signal": signal, "transport": transport, "name": name, "total": total}
                for (signal, transport, name), total in sorted(self._counts.items())
            ]

    def refuse(self, signal: Signal, transport: str) -> None:
        """Count a request that was refused before it got here (too large, wrong type)."""
        self._count(signal, transport, refused_requests=1)

    def _finish(self, signal: Signal, transport: str, items: int, rejected: int, done: Future[None]) -> None:
        if done.exception() is None:
            self._count(signal, transport, accepted_requests=1, accepted_items=items, rejected_items=rejected)
        else:
            self._count(signal, transport, deferred_requests=1)

    def _count(self, signal: Signal, transport: str, **amounts: int) -> None:
        with self._lock:
            for name, amount in amounts.items():
                self._counts[(signal.name.lower(), transport, name)] += amount
