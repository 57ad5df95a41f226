"""OTLP over HTTP: protobuf and JSON, plain or compressed, on one port.

Bodies are decompressed by us and not by the HTTP library, which answers 500 to a corrupt gzip stream and passes an
unknown encoding through as if it were plain. Rule: every 4xx and 5xx carries a ``google.rpc.Status`` in the request's
own encoding.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor

from aiohttp import web
from google.protobuf.message import Message
from google.rpc.code_pb2 import INTERNAL, INVALID_ARGUMENT, NOT_FOUND, RESOURCE_EXHAUSTED, UNIMPLEMENTED
from google.rpc.status_pb2 import Status

from surefoot.collector import responses
from surefoot.collector.compression import CODINGS, decompress
from surefoot.collector.errors import AddressError, BadRequestError, TooLargeError, UnavailableError
from surefoot.collector.grpc_server import taken
from surefoot.collector.receiver import Receipt, Receiver
from surefoot.collector.segment import Signal

log = logging.getLogger("surefoot.collector")

PROTOBUF = "application/x-protobuf"
JSON = "application/json"
_PATHS = {"/v1/traces": Signal.TRACES, "/v1/logs": Signal.LOGS, "/v1/metrics": Signal.METRICS}
_CODES = {404: NOT_FOUND, 405: UNIMPLEMENTED, 413: RESOURCE_EXHAUSTED}
# A connection that is made just then and says nothing holds the library for all of it (1 of 12 stops under load).
_GRACE_SECONDS = 2.0

_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


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
        # Decompressing and checking are CPU work: they must not stop the loop from answering others.
        self._pool = ThreadPoolExecutor(4, thread_name_prefix="otlp-http")
        self._loop = asyncio.new_event_loop()
        self._runner = web.AppRunner(
            self._application(), auto_decompress=False, access_log=None, shutdown_timeout=_GRACE_SECONDS
        )
        self._loop.run_until_complete(self._runner.setup())
        self._loop.run_until_complete(web.SockSite(self._runner, self._socket, backlog=1024).start())
        self._thread = threading.Thread(target=self._loop.run_forever, name="otlp-http")
        self._thread.start()

    def stop(self) -> None:
        """Take nothing new, finish what is in hand within a few seconds."""
        asyncio.run_coroutine_threadsafe(self._runner.cleanup(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        self._pool.shutdown()

    def _application(self) -> web.Application:
        # One byte more than the limit, because the library refuses a body that reaches its own.
        application = web.Application(client_max_size=self._limit + 1, middlewares=[_status_bodies])
        for path, signal in _PATHS.items():
            application.router.add_post(path, self._handler(signal))
        return application

    def _handler(self, signal: Signal) -> _Handler:
        async def handle(request: web.Request) -> web.Response:
            try:
                is_json, coding = _content_type(request) == JSON, _content_coding(request)
                body = await request.read()
            except web.HTTPException:
                self._receiver.refuse(signal, "http")
                raise
            receipt = await asyncio.get_running_loop().run_in_executor(
                self._pool, self._take, signal, body, coding, is_json
            )
            await asyncio.wrap_future(receipt.stored)
            return _response(request, 200, responses.success(signal, receipt))

        return handle

    def _take(self, signal: Signal, body: bytes, coding: str, is_json: bool) -> Receipt:
        try:
            plain = decompress(body, coding, self._limit)
        except (BadRequestError, TooLargeError):
            self._receiver.refuse(signal, "http")
            raise
        return self._receiver.receive(signal, plain, transport="http", is_json=is_json)


@web.middleware
async def _status_bodies(request: web.Request, handler: _Handler) -> web.StreamResponse:
    """Turn what went wrong into a response with a Status."""
    try:
        return await handler(request)
    except BadRequestError as error:
        return _response(request, 400, responses.bad_request(str(error)))
    except TooLargeError as error:
        return _response(request, 413, responses.failure(RESOURCE_EXHAUSTED, str(error)))
    except UnavailableError as error:
        response = _response(request, 503, responses.unavailable(str(error), error.retry_seconds))
        response.headers["Retry-After"] = str(max(1, round(error.retry_seconds)))
        return response
    except web.HTTPException as error:
        return _refusal(request, error)
    except (ConnectionError, web.RequestPayloadError) as error:
        return _response(request, 400, responses.bad_request(f"The body did not arrive whole: {error}."))
    except Exception:
        log.exception("Could not process a request to %s.", request.path)
        return _response(request, 500, responses.failure(INTERNAL, "The collector failed; see its log."))


def _refusal(request: web.Request, error: web.HTTPException) -> web.Response:
    """A refusal by the library or by the header checks below."""
    messages = {
        404: f"There is nothing at {request.path}; OTLP goes to {', '.join(_PATHS)}.",
        405: f"{request.method} is not possible here, use POST.",
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
