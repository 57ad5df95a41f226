"""OTLP over HTTP: protobuf and JSON, plain or gzip, on one port.

Bodies are decompressed here and not by the HTTP library, which answers 500 to a corrupt gzip stream and passes an
unknown encoding through as if it were plain. Every 4xx and 5xx carries a ``google.rpc.Status`` in the request's own
encoding.
"""

from __future__ import annotations

import asyncio
import socket
import threading
import zlib
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor

from aiohttp import web
from google.protobuf.json_format import MessageToJson
from google.rpc.code_pb2 import (
    INVALID_ARGUMENT,
    NOT_FOUND,
    RESOURCE_EXHAUSTED,
    UNIMPLEMENTED,
)
from google.rpc.status_pb2 import Status

from surefoot.collector.errors import AddressError, BadRequestError, UnavailableError
from surefoot.collector.grpc_server import bad_request_status, taken, unavailable_status
from surefoot.collector.receiver import Receiver, response_bytes
from surefoot.collector.segment import Signal
from surefoot.collector.validate import RESPONSES

PROTOBUF = "application/x-protobuf"
JSON = "application/json"
_PATHS = {"/v1/traces": Signal.TRACES, "/v1/logs": Signal.LOGS, "/v1/metrics": Signal.METRICS}
_WINDOW_BITS = {"gzip": 31, "deflate": 15}
_CODES = {404: NOT_FOUND, 405: UNIMPLEMENTED, 413: RESOURCE_EXHAUSTED, 415: INVALID_ARGUMENT}


class _Refused(Exception):  # noqa: N818 - control flow inside this module, never seen outside
    def __init__(self, http_status: int, message: str) -> None:
        super().__init__(message)
        self.http_status = http_status


class HttpServer:
    """Serves from a thread of its own until :meth:`stop`."""

    def __init__(self, receiver: Receiver, host: str, port: int, max_request_bytes: int) -> None:
        self._receiver = receiver
        self._limit = max_request_bytes
        self._socket = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            self._socket.bind((host, port))
        except OSError as error:
            self._socket.close()
            raise AddressError(taken(host, port, "--port-http")) from error
        self.port: int = self._socket.getsockname()[1]
        # Checking a body is CPU work: it must not stop the loop from answering others.
        self._pool = ThreadPoolExecutor(4, thread_name_prefix="otlp-http")
        self._loop = asyncio.new_event_loop()
        self._runner = web.AppRunner(self._application(), auto_decompress=False, access_log=None, shutdown_timeout=5.0)
        self._thread = threading.Thread(target=self._serve, name="otlp-http")
        started = threading.Event()
        self._loop.call_soon(started.set)
        self._thread.start()
        started.wait()

    def stop(self) -> None:
        """Take nothing new, finish what is in hand."""
        asyncio.run_coroutine_threadsafe(self._runner.cleanup(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        self._pool.shutdown()

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_until_complete(self._runner.setup())
        self._loop.run_until_complete(web.SockSite(self._runner, self._socket, backlog=1024).start())
        self._loop.run_forever()

    def _application(self) -> web.Application:
        # The library's own limit counts compressed bytes here; one byte more lets ours answer.
        application = web.Application(client_max_size=self._limit + 1, middlewares=[_status_bodies])
        for path, signal in _PATHS.items():
            application.router.add_post(path, self._handler(signal))
        return application

    def _handler(self, signal: Signal) -> Callable[[web.Request], Awaitable[web.Response]]:
        async def handle(request: web.Request) -> web.Response:
            try:
                encoding = _content_type(request)
                body = await self._body(request)
                receipt = await asyncio.get_running_loop().run_in_executor(
                    self._pool,
                    lambda: self._receiver.receive(signal, body, transport="http", is_json=encoding == JSON),
                )
                await asyncio.wrap_future(receipt.stored)
            except _Refused as error:
                self._receiver.refuse(signal, "http")
                return _status_response(request, error.http_status, _status(error.http_status, str(error)))
            except BadRequestError as error:
                return _status_response(request, 400, bad_request_status(str(error)))
            except UnavailableError as error:
                response = _status_response(request, 503, unavailable_status(str(error), error.retry_seconds))
                response.headers["Retry-After"] = str(max(1, round(error.retry_seconds)))
                return response
            return _success(signal, encoding, response_bytes(signal, receipt))

        return handle

    async def _body(self, request: web.Request) -> bytes:
        try:
            body = await request.read()
        except web.HTTPRequestEntityTooLarge:
            raise _Refused(413, f"The body is larger than {self._limit:,} bytes.") from None
        encoding = request.headers.get("Content-Encoding", "identity").strip().lower()
        if encoding in ("", "identity"):
            if len(body) > self._limit:
                raise _Refused(413, f"The body is larger than {self._limit:,} bytes.")
            return body
        if encoding not in _WINDOW_BITS:
            raise _Refused(415, f"Content-Encoding {encoding[:40]!r} is not known; send gzip, deflate or none.")
        return _inflate(body, _WINDOW_BITS[encoding], self._limit)


def _inflate(body: bytes, window_bits: int, limit: int) -> bytes:
    """Decompress with a bound, so that a small bomb cannot fill the memory. Handles several gzip members."""
    parts: list[bytes] = []
    size = 0
    while body:
        inflater = zlib.decompressobj(window_bits)
        try:
            part = inflater.decompress(body, limit + 1 - size)
        except zlib.error as error:
            raise _Refused(400, f"The compressed body is corrupt: {error}.") from error
        size += len(part)
        parts.append(part)
        if size > limit:
            raise _Refused(413, f"The body is larger than {limit:,} bytes after decompression.")
        if not inflater.eof:
            raise _Refused(400, "The compressed body ends too early.")
        body = inflater.unused_data
    return b"".join(parts)


def _content_type(request: web.Request) -> str:
    kind = request.headers.get("Content-Type", "").partition(";")[0].strip().lower()
    if kind not in (PROTOBUF, JSON):
        raise _Refused(415, f"Content-Type {kind[:60]!r} is not known; send {PROTOBUF} or {JSON}.")
    return kind


def _success(signal: Signal, encoding: str, body: bytes) -> web.Response:
    if encoding == JSON:
        text = MessageToJson(RESPONSES[signal].FromString(body), indent=None) if body else "{}"
        return web.Response(text=text, content_type=JSON)
    return web.Response(body=body, content_type=PROTOBUF)


def _status(http_status: int, message: str) -> Status:
    return bad_request_status(message) if http_status == 400 else Status(code=_CODES[http_status], message=message)


def _status_response(request: web.Request, http_status: int, status: Status) -> web.Response:
    kind = request.headers.get("Content-Type", "").partition(";")[0].strip().lower()
    if kind == PROTOBUF:
        return web.Response(status=http_status, body=status.SerializeToString(), content_type=PROTOBUF)
    return web.Response(status=http_status, text=MessageToJson(status, indent=None), content_type=JSON)


@web.middleware
async def _status_bodies(
    request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
) -> web.StreamResponse:
    """Give the library's own refusals (unknown path, wrong method) a Status body too."""
    try:
        return await handler(request)
    except web.HTTPException as error:
        if error.status not in _CODES:
            raise
        message = {404: f"There is nothing at {request.path}; OTLP goes to {', '.join(_PATHS)}.", 405: "Use POST."}
        response = _status_response(
            request, error.status, Status(code=_CODES[error.status], message=message.get(error.status, error.reason))
        )
        if "Allow" in error.headers:
            response.headers["Allow"] = error.headers["Allow"]
        return response
