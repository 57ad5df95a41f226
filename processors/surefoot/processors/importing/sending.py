"""Requests from files to a collector, several at a time, at the pace that the collector asks for.

Rule: what is asked to come again comes again, for minutes if need be; what is refused for good is told with its file
and place, and the rest goes on. A missing token or a certificate that does not verify ends the import at once: no
other request would fare better, however long one waits.
"""

from __future__ import annotations

import http.client
import json
import os
import ssl
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, urlsplit

from google.rpc.status_pb2 import Status
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceResponse
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceResponse
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from surefoot.errors import UnreachableError
from surefoot.processors.importing.reading import JSON, Refused, Unit

IMPORT_HEADER: Final = "Surefoot-Import"  # makes import:<file> the source of the rows
SENDERS: Final = 8  # at a time, so that they share syncs
_AGAIN: Final = frozenset({429, 502, 503, 504})
_NOT_LET_IN: Final = frozenset({http.client.UNAUTHORIZED, http.client.FORBIDDEN})
_PATIENCE_SECONDS: Final = 600.0
_LONGEST_PAUSE_SECONDS: Final = 30.0
_TIMEOUT_SECONDS: Final = 120.0
_ANSWERS: Final[dict[str, Any]] = {
    "traces": (ExportTraceServiceResponse, "rejected_spans", "rejectedSpans"),
    "logs": (ExportLogsServiceResponse, "rejected_log_records", "rejectedLogRecords"),
    "metrics": (ExportMetricsServiceResponse, "rejected_data_points", "rejectedDataPoints"),
}


@dataclass(slots=True)
class Report:
    """What became of the files: items accepted by signal, and what was refused."""

    accepted: Counter[str] = field(default_factory=Counter)
    refused: list[Refused] = field(default_factory=list)


class Sender:
    """Sends units to the OTLP/HTTP endpoint ``url``. Safe to use from many threads."""

    def __init__(self, url: str, token: str | None = None, certificate: Path | None = None) -> None:
        parts = urlsplit(url)
        self._url, self._address = url, parts.netloc
        self._tls = _tls(certificate) if parts.scheme == "https" else None
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._own = threading.local()

    def send_all(self, units: Iterable[Unit | Refused], progress: Callable[[Unit | Refused], None]) -> Report:
        """Send everything. Raises UnreachableError if the collector lets nobody in, or does not answer for minutes."""
        report = Report()
        under_way: deque[tuple[Unit, Future[Refused | None]]] = deque()
        with ThreadPoolExecutor(SENDERS, thread_name_prefix="import") as pool:
            for unit in units:
                progress(unit)
                if isinstance(unit, Refused):
                    report.refused.append(unit)
                    continue
                under_way.append((unit, pool.submit(self._send, unit)))
                if len(under_way) >= 2 * SENDERS:
                    _note(report, *under_way.popleft())
            for unit, answer in under_way:
                _note(report, unit, answer)
        return report

    def _send(self, unit: Unit) -> Refused | None:
        deadline = time.monotonic() + _PATIENCE_SECONDS
        pause = 0.1
        while True:
            try:
                status, headers, body = self._post(unit)
            except (OSError, http.client.HTTPException) as error:
                if isinstance(error, ssl.SSLError) and not isinstance(error, ssl.SSLEOFError):
                    raise UnreachableError(self._not_trusted(error)) from error
                self._own.connection.close()
                why, wanted = str(error), pause
            else:
                if status in _NOT_LET_IN:
                    raise UnreachableError(self._not_let_in(unit, status, body))
                if status not in _AGAIN:
                    return _judged(unit, status, body)
                why, wanted = f"HTTP {status}", float(headers.get("Retry-After") or pause)
            if time.monotonic() + wanted > deadline:
                raise UnreachableError(
                    f"The collector at {self._url} did not take {unit.file}, {unit.place}, for "
                    f"{_PATIENCE_SECONDS:.0f} s ({why}). What was sent is kept; import the files again later."
                )
            time.sleep(min(wanted, _LONGEST_PAUSE_SECONDS))
            pause = min(2 * pause, 5.0)

    def _not_trusted(self, error: ssl.SSLError) -> str:
        why = getattr(error, "verify_message", "") or error.reason or str(error)
        return (
            f"No TLS connection to the collector at {self._url}: {why}. Set SUREFOOT_TLS_CERTIFICATE to the "
            "certificate file that the server was started with. If it asks for client certificates, stop it and "
            "import again: without a running server the command does all of it itself."
        )

    def _not_let_in(self, unit: Unit, status: int, body: bytes) -> str:
        shown = "does not take this token" if self._headers else "wants a token and none was given"
        return (
            f"The collector at {self._url} {shown}: {_message(unit, status, body)} Make one with `surefoot token add "
            "NAME` and give it with --token or SUREFOOT_TOKEN."
        )

    def _post(self, unit: Unit) -> tuple[int, http.client.HTTPMessage, bytes]:
        connection: http.client.HTTPConnection | None = getattr(self._own, "connection", None)
        if connection is None:
            connection = (
                http.client.HTTPConnection(self._address, timeout=_TIMEOUT_SECONDS)
                if self._tls is None
                else http.client.HTTPSConnection(self._address, timeout=_TIMEOUT_SECONDS, context=self._tls)
            )
            self._own.connection = connection
        headers = {
            **self._headers,
            "Content-Type": unit.content_type,
            IMPORT_HEADER: quote(os.fsencode(unit.file.name)),
        }
        connection.request("POST", f"/v1/{unit.signal}", unit.body, headers)
        response = connection.getresponse()
        return response.status, response.headers, response.read()


def _tls(certificate: Path | None) -> ssl.SSLContext:
    """Trust in the one certificate that the server on this home uses, whatever names it bears; else the system's."""
    if certificate is None:
        return ssl.create_default_context()
    end = "-----END CERTIFICATE-----"
    try:
        first, found, _ = certificate.read_text().partition(end)
        context = ssl.create_default_context(cadata=first + found)
    except (OSError, ValueError) as error:  # SSLError is an OSError
        raise UnreachableError(
            f"Cannot read the server's certificate {certificate}: {error}. Set SUREFOOT_TLS_CERTIFICATE to its file."
        ) from error
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN  # its issuer need not be known
    context.check_hostname = False  # it may be for the name under which others reach this machine
    return context


def _note(report: Report, unit: Unit, answer: Future[Refused | None]) -> None:
    refused = answer.result()
    if refused is not None:
        report.refused.append(refused)
    report.accepted[unit.signal] += unit.items - (refused.items if refused is not None else 0)


def _judged(unit: Unit, status: int, body: bytes) -> Refused | None:
    if status != http.client.OK:
        return Refused(unit.file, unit.place, _message(unit, status, body), unit.items)
    kind, rejected, rejected_json = _ANSWERS[unit.signal]
    if unit.content_type == JSON:
        partial = json.loads(body).get("partialSuccess", {})
        count, text = int(partial.get(rejected_json, 0)), partial.get("errorMessage", "")
    else:
        answer = kind.FromString(body).partial_success
        count, text = getattr(answer, rejected), answer.error_message
    return Refused(unit.file, unit.place, text, count) if count else None


def _message(unit: Unit, status: int, body: bytes) -> str:
    try:
        text = json.loads(body)["message"] if unit.content_type == JSON else Status.FromString(body).message
    except Exception:  # noqa: BLE001 - something between us and the collector answered, in whatever form
        text = ""
    return text or f"HTTP {status}"
