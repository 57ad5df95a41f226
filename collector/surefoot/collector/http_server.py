"""OTLP over HTTP: protobuf and JSON, plain or compressed, on one port.

Bodies are decompressed by us and not by the HTTP library, which answers 500 to a corrupt gzip stream and passes an
unknown encoding through as if it were plain. Rule: every 4xx and 5xx carries a ``google.rpc.Status`` in the request's
own encoding.
"""

from __future__ import annotations

import asyncio
import logging
import math
import socket
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import unquote

from aiohttp import web
from aiohttp.typedefs import Handler
from google.protobuf.message import Message
from google.rpc.code_pb2 import (
    INTERNAL,
    INVALID_ARGUMENT,
    NOT_FOUND,
    RESOURCE_EXHAUSTED,
    UNIMPLEMENTED,
)
from google.rpc.status_pb2 import Status

from surefoot.collector import responses
from surefoot.collector.compression import CODINGS, decompress
from surefoot.collector.config import Config
from surefoot.collector.connections import Connections
from surefoot.collector.cors import cors
from surefoot.collector.errors import (
    AddressError,
    BackloggedError,
    BadRequestError,
    RefusedError,
    RetryableError,
    SlowError,
    ThrottledError,
    TooLargeError,
    UnauthenticatedError,
    UnavailableError,
)
from surefoot.collector.exposure import Certificates, tls_context
from surefoot.collector.grpc_server import taken
from surefoot.collector.receiver import Receipt, Receiver
from surefoot.collector.segment import Signal

log = logging.getLogger("surefoot.collector")

PROTOBUF = "application/x-protobuf"
JSON = "application/json"
IMPORT_HEADER = "Surefoot-Import"  # the name of the file that a request comes from, percent-encoded
_PATHS = {"/v1/traces": Signal.TRACES, "/v1/logs": Signal.LOGS, "/v1/metrics": Signal.METRICS}
_CODES = {404: NOT_FOUND, 405: UNIMPLEMENTED, 413: RESOURCE_EXHAUSTED}
_REASONS = {413: "too_large", 415: "content_type"}
_STATUS: dict[type[RefusedError], int] = {
    BadRequestError: 400,
    UnauthenticatedError: 401,
    TooLargeError: 413,
    ThrottledError: 429,
    UnavailableError: 503,
    BackloggedError: 503,
    SlowError: 503,
}
# A connection that is made just then and says nothing holds the library for all of it (1 of 12 stops under load).
_GRACE_SECONDS = 2.0
_RETRY_SECONDS = 5.0
_LINGER_SECONDS = 10.0  # a sender in the middle of a body that is refused gets so long to see the refusal


class HttpServer:
    """Serves from a thread of its own until :meth:`stop`. ``health`` gives a state, ``ok`` or another, and a reason."""

    def __init__(
        self,
        receiver: Receiver,
        config: Config,
        certificates: Certificates | None,
        health: Callable[[], tuple[str, str | None]],
    ) -> None:
        self._receiver = receiver
        self._limit = config.max_request_bytes
        self._patience = config.read_timeout_seconds
        self._health = health
        self._socket = _bound(config.host.strip("[]"), config.port_http)
        self.port: int = self._socket.getsockname()[1]
        # Decompressing and checking are CPU work: they must not stop the loop from answering others.
        self._pool = ThreadPoolExecutor(4, thread_name_prefix="otlp-http")
        self._loop = asyncio.new_event_loop()
        self._runner = web.AppRunner(
            self._application(config),
            auto_decompress=False,
            access_log=None,
            shutdown_timeout=_GRACE_SECONDS,
            lingering_time=min(_LINGER_SECONDS, self._patience),
        )
        self._loop.run_until_complete(self._listen(config, certificates))
        self._thread = threading.Thread(target=self._loop.run_forever, name="otlp-http")
        self._thread.start()

    async def _listen(self, config: Config, certificates: Certificates | None) -> None:
        await self._runner.setup()
        server = self._runner.server
        assert server is not None  # noqa: S101 - setup makes it
        self._connections = Connections(
            server, config.max_connections, self._patience, lambda reason: self._receiver.refuse(None, "http", reason)
        )
        self._server = await self._loop.create_server(
            self._connections,
            sock=self._socket,
            backlog=1024,
            ssl=tls_context(certificates) if certificates is not None else None,
            ssl_handshake_timeout=self._patience if certificates is not None else None,
        )

    def stop(self) -> None:
        """Take nothing new, finish what is in hand within a few seconds."""
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        self._pool.shutdown()

    async def _end(self) -> None:
        self._server.close()
        await self._runner.cleanup()

    def _application(self, config: Config) -> web.Application:
        # One byte more than the limit, because the library refuses a body that reaches its own.
        application = web.Application(
            client_max_size=self._limit + 1, middlewares=[self._timed, *cors(config), _status_bodies]
        )
        for path, signal in _PATHS.items():
            application.router.add_post(path, self._handler(signal))
        application.router.add_get("/healthz", self._healthz)
        application.router.add_get("/readyz", self._readyz)
        return application

    @web.middleware
    async def _timed(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        with self._connections.serving(request):
            return await handler(request)

    async def _healthz(self, _request: web.Request) -> web.Response:
        """Alive: it answers."""
        return web.json_response({"state": "ok"})

    async def _readyz(self, _request: web.Request) -> web.Response:
        """Ready: it can write, and is not too far ahead of the writer."""
        state, reason = self._health()
        return web.json_response({"state": state, "reason": reason}, status=200 if state == "ok" else 503)

    def _handler(self, signal: Signal) -> Callable[[web.Request], Awaitable[web.Response]]:
        async def handle(request: web.Request) -> web.Response:
            source = _source(request, self._receiver.enter(signal, "http", request.headers.get("Authorization")))
            try:
                is_json, coding = _content_type(request) == JSON, _content_coding(request)
                body = await self._read(request)
            except web.HTTPException as error:
                self._receiver.refuse(signal, "http", _REASONS.get(error.status, "malformed"))
                raise
            except SlowError as error:
                self._receiver.refuse(signal, "http", error.reason, again=True)
                raise
            receipt = await asyncio.get_running_loop().run_in_executor(
                self._pool, self._take, signal, body, coding, is_json, source
            )
            await asyncio.wrap_future(receipt.stored)
            return _response(request, 200, responses.success(signal, receipt))

        return handle

    async def _read(self, request: web.Request) -> bytes:
        if request.content.is_eof():  # it came with its head, as small ones do: no need for a timer
            return await request.read()
        try:
            async with asyncio.timeout(self._patience):
                return await request.read()
        except TimeoutError:
            raise SlowError(f"The body did not arrive within {self._patience:g} s.", _RETRY_SECONDS) from None

    def _take(self, signal: Signal, body: bytes, coding: str, is_json: bool, source: str) -> Receipt:
        try:
            plain = decompress(body, coding, self._limit)
        except RefusedError as error:
            self._receiver.refuse(signal, "http", error.reason)
            raise
        return self._receiver.receive(signal, plain, transport="http", source=source, is_json=is_json)


def _bound(host: str, port: int) -> socket.socket:
    found = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        found.bind((host, port))
    except OSError as error:
        found.close()
        raise AddressError(taken(host, port, "--port-http")) from error
    return found


@web.middleware
async def _status_bodies(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Turn what went wrong into a response with a Status."""
    try:
        return await handler(request)
    except RefusedError as error:
        response = _response(request, _STATUS[type(error)], responses.refusal(error))
        if isinstance(error, RetryableError):
            response.headers["Retry-After"] = str(max(1, math.ceil(error.retry_seconds)))
        if isinstance(error, UnauthenticatedError):
            response.headers["WWW-Authenticate"] = 'Bearer realm="surefoot"'
        if isinstance(error, (UnauthenticatedError, SlowError)):
            response.force_close()  # what comes yet is a body that nobody reads
        return response
    except web.HTTPException as error:
        return _refusal(request, error)
    except (ConnectionError, web.RequestPayloadError) as error:
        return _response(request, 400, responses.refusal(BadRequestError(f"The body did not arrive whole: {error}.")))
    except Exception:
        log.exception("Could not process a request to %s.", request.path)
        return _response(request, 500, responses.failure(INTERNAL, "The collector failed; see its log."))


def _refusal(request: web.Request, error: web.HTTPException) -> web.Response:
    """A refusal by the library or by the header checks below."""
    messages = {
        404: f"There is nothing at {request.path}; OTLP goes to {', '.join(_PATHS)}.",
        405: f"{request.method} is not possible here, use {error.headers.get('Allow', 'POST')}.",
        413: "The body is larger than this collector's limit; send smaller batches.",
    }
    message = messages.get(error.status, error.text or error.reason)
    response = _response(request, error.status, responses.failure(_CODES.get(error.status, INVALID_ARGUMENT), message))
    if "Allow" in error.headers:
        response.headers["Allow"] = error.headers["Allow"]
    return response


def _media_type(request: web.Request) -> str:
    return request.headers.get("Content-Type", "").partition(";")[0].strip().lower()


def _content_type(request: web.Request) -> str:
    kind = _media_type(request)
    if kind not in (PROTOBUF, JSON):
        raise web.HTTPUnsupportedMediaType(text=f"Content-Type {kind[:60]!r} is not known; send {PROTOBUF} or {JSON}.")
    return kind


def _source(request: web.Request, source: str) -> str:
    """What is kept as the source of the rows: for `surefoot import` the file, and who sent it if not just anybody."""
    header = request.headers.get(IMPORT_HEADER)
    if header is None:
        return source
    file = unquote(header).encode(errors="replace").decode()  # raw bytes in a header come as surrogates
    return f"import:{file}" if source == "http" else f"import:{file} by {source}"


def _content_coding(request: web.Request) -> str:
    coding = request.headers.get("Content-Encoding", "").strip().lower() or "identity"
    if coding not in CODINGS:
        raise web.HTTPUnsupportedMediaType(
            text=f"Content-Encoding {coding[:40]!r} is not known; send {', '.join(CODINGS)}."
        )
    return coding


def _response(request: web.Request, http_status: int, message: Message | Status) -> web.Response:
    """A message in the request's own encoding, or in JSON if that was neither."""
    if _media_type(request) == PROTOBUF:
        return web.Response(status=http_status, body=message.SerializeToString(), content_type=PROTOBUF)
    return web.Response(status=http_status, body=responses.to_json(message), content_type=JSON)
