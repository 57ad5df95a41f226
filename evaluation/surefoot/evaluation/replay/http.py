"""HTTP calls of models, recorded and replayed beneath the client: transports for httpx and for httpx2, sync and async.

OpenAI's client, pydantic-ai and others take an ``http_client``; give them one with such a transport. The key is made of
method, URL and body, so it holds for every API that is asked by HTTP; a JSON body is compared as JSON. Responses come
back chunk by chunk as they came, streams included. Rule: nothing of a request's headers is written, and in replay no
connection is opened.
"""

from __future__ import annotations

import asyncio
import hashlib
import importlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from surefoot.evaluation.replay.errors import CassetteError
from surefoot.evaluation.replay.streams import Recording, Replaying, raise_recorded, stream_class
from surefoot.evaluation.replay.world import Call, World, current

_LIBRARIES: Final = ("httpx", "httpx2")
# Chunks are kept decoded, so these would be wrong; cookies are credentials; a date is of no use later.
_DROPPED: Final = frozenset({"content-encoding", "content-length", "transfer-encoding", "connection", "set-cookie"})
_BOUNDARY: Final = re.compile(rb'boundary="?([^";\s]+)')


@dataclass(frozen=True, slots=True)
class Matching:
    """What of a request makes its key. ``volatile``: dotted paths in a JSON body that do not, ``*`` for any step."""

    host: bool = True
    volatile: tuple[str, ...] = ()


class _Base:
    """What both transports are: a way to the world, and the transport beneath."""

    def __init__(
        self,
        inner: Any = None,
        *,
        world: World | None = None,
        library: str = "",
        match_host: bool = True,
        volatile: Iterable[str] = (),
    ) -> None:
        named = library or (_library_of(inner) if inner is not None else "httpx")
        if named not in _LIBRARIES:
            raise CassetteError(f"A transport of {named or type(inner)}: write one of {', '.join(_LIBRARIES)}.")
        self._http = importlib.import_module(named)
        self._inner = inner
        self._world = world
        self._matching = Matching(match_host, tuple(volatile))

    def _world_here(self) -> World | None:
        world = self._world or current()
        return None if world is None or world.mode == "off" else world

    def _begin(self, world: World, request: Any, body: bytes) -> Call:
        world.secrets |= world.redaction.secrets_of(_texts(request.headers.raw))
        name, arguments = describe(request, body, self._matching)
        return world.begin(name, arguments, kind="http", effect="unknown")

    def _response(self, recorded: Mapping[str, Any], stream: Any) -> Any:
        return self._http.Response(
            recorded["status"], headers=[tuple(pair) for pair in recorded["headers"]], stream=stream
        )


class Transport(_Base):
    """For sync clients."""

    def handle_request(self, request: Any) -> Any:
        """Answer one request, from the cassette or from beneath."""
        world = self._world_here()
        if world is None:
            return self._beneath.handle_request(request)
        call = self._begin(world, request, request.read())
        if call.entry is not None:
            outcome = call.entry.outcome
            if "error" in outcome:
                raise_recorded(self._http, outcome["error"])
            if outcome.get("cancelled"):
                raise asyncio.CancelledError
            return self._response(outcome["response"], self._stream_type(Replaying(self._http, world, call.entry)))
        try:
            response = self._beneath.handle_request(request)
        except BaseException as error:
            _failed(world, call, error)
            raise
        told = _told(response)
        return self._response(told, self._stream_type(Recording(world, call, response, told)))

    @property
    def _beneath(self) -> Any:
        self._inner = self._inner or self._http.HTTPTransport()
        return self._inner

    def _stream_type(self, stream: Any) -> Any:
        return stream_class(self._http.SyncByteStream, asynchronous=False)(stream)

    def close(self) -> None:
        """Close what is beneath."""
        if self._inner is not None:
            self._inner.close()

    def __enter__(self) -> Transport:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class AsyncTransport(_Base):
    """For async clients."""

    async def handle_async_request(self, request: Any) -> Any:
        """Answer one request, from the cassette or from beneath."""
        world = self._world_here()
        if world is None:
            return await self._beneath.handle_async_request(request)
        call = self._begin(world, request, await request.aread())
        if call.entry is not None:
            outcome = call.entry.outcome
            await asyncio.sleep(0)
            if "error" in outcome:
                raise_recorded(self._http, outcome["error"])
            if outcome.get("cancelled"):
                await asyncio.Event().wait()  # until whoever cancelled it does so again
            return self._response(outcome["response"], self._stream_type(Replaying(self._http, world, call.entry)))
        try:
            response = await self._beneath.handle_async_request(request)
        except BaseException as error:
            _failed(world, call, error)
            raise
        told = _told(response)
        return self._response(told, self._stream_type(Recording(world, call, response, told)))

    @property
    def _beneath(self) -> Any:
        self._inner = self._inner or self._http.AsyncHTTPTransport()
        return self._inner

    def _stream_type(self, stream: Any) -> Any:
        return stream_class(self._http.AsyncByteStream, asynchronous=True)(stream)

    async def aclose(self) -> None:
        """Close what is beneath."""
        if self._inner is not None:
            await self._inner.aclose()

    async def __aenter__(self) -> AsyncTransport:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


def transport(**options: Any) -> Any:
    """Return a transport for a sync client, ``httpx.Client(transport=replay.transport())``.

    ``library``: "httpx" or "httpx2"; ``inner``: what answers while recording, a plain HTTP transport if none is given;
    ``match_host``, ``volatile``: as ``Matching`` says; ``world``: if not the current one. Any: it fits both.
    """
    return Transport(**options)


def async_transport(**options: Any) -> Any:
    """Return a transport for an async client; options as for ``transport``."""
    return AsyncTransport(**options)


def describe(request: Any, body: bytes, matching: Matching) -> tuple[str, dict[str, Any]]:
    """Return a request's name and arguments, as its key is made of them."""
    url = request.url
    port = f":{url.port}" if url.port else ""
    host = f"{url.scheme}://{url.host}{port}" if matching.host else ""
    told: dict[str, Any] = {}
    if url.query:
        told["query"] = {name: url.params.get_list(name) for name in url.params}
    if body:
        told["body"] = _body(body, request.headers.get("content-type", ""), matching.volatile)
    return f"{request.method} {host}{url.path}", told


def _body(body: bytes, content_type: str, volatile: tuple[str, ...]) -> Any:
    boundary = _BOUNDARY.search(content_type.encode("latin-1"))
    if boundary is not None:  # drawn at random for each request
        body = body.replace(boundary[1], b"boundary")
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError:
        return {"bytes": len(body), "sha256": hashlib.sha256(body).hexdigest()}
    try:
        data = json.loads(text)
    except ValueError:
        return text
    for path in volatile:
        _drop(data, path.split("."))
    return data


def _drop(data: Any, steps: list[str]) -> None:
    step, rest = steps[0], steps[1:]
    if isinstance(data, list):
        numbers = range(len(data)) if step == "*" else [int(step)] if step.isdigit() and int(step) < len(data) else []
        for number in numbers:
            if rest:
                _drop(data[number], rest)
    elif isinstance(data, dict):
        for key in list(data) if step == "*" else [step] if step in data else []:
            if rest:
                _drop(data[key], rest)
            else:
                del data[key]


def _told(response: Any) -> dict[str, Any]:
    headers = [[name, value] for name, value in _texts(response.headers.raw) if name.lower() not in _DROPPED]
    return {"status": response.status_code, "headers": headers}


def _texts(raw: Iterable[tuple[bytes, bytes]]) -> list[tuple[str, str]]:
    return [(name.decode("latin-1"), value.decode("latin-1")) for name, value in raw]


def _failed(world: World, call: Call, error: BaseException) -> None:
    if isinstance(error, asyncio.CancelledError):
        world.failed(call, error)
    else:
        # By its bare name: httpx and httpx2 have the same ones, and a recording by one replays in the other.
        world.ended(call, {"error": {"type": type(error).__name__, "message": str(error)}})


def _library_of(inner: Any) -> str:
    roots = [kind.__module__.partition(".")[0] for kind in type(inner).__mro__]
    return next((root for root in roots if root in _LIBRARIES), "")
