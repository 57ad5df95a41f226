"""Bounds what a connection to the HTTP port may cost: how many there are, and how long a request's head may take.

The HTTP library counts no connections and waits for the end of a request's head for ever, so a client that sends one
byte a minute holds a connection as long as it likes. Rule: a connection is either serving a request (whose body has a
time limit of its own), or waiting for one within a time limit.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import cast

from aiohttp import web

_IDLE_SECONDS = 75.0  # a connection that is kept for the next request
_BUSY = (
    b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 5\r\nConnection: close\r\nContent-Type: application/json\r\n"
    b"Content-Length: 72\r\n\r\n"
    b'{"code":14,"message":"Too many connections at a time; come back later."}'
)


class Connections:
    """A factory of protocols for ``create_server``. ``refused`` is told a reason for each connection that is cut."""

    def __init__(
        self, server: Callable[[], asyncio.Protocol], most: int, seconds: float, refused: Callable[[str], None]
    ) -> None:
        self.server = server
        self.most = most
        self.seconds = seconds
        self.refused = refused
        self.open: dict[asyncio.Protocol, Connection] = {}

    def __call__(self) -> asyncio.Protocol:
        """The protocol of one more connection."""
        return Connection(self, self.server())

    def serving(self, request: web.Request) -> Connection:
        """The connection of a request."""
        return self.open[request.protocol]


class Connection(asyncio.Protocol):
    """Passes everything on to the HTTP library, and keeps the time. As a context: a request is being served."""

    def __init__(self, all_of_them: Connections, inner: asyncio.Protocol) -> None:
        self._all = all_of_them
        self._inner = inner
        self._transport: asyncio.Transport | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._is_idle = False

    def __enter__(self) -> None:
        self._wait(None)

    def __exit__(self, *_: object) -> None:
        self._is_idle = True
        self._wait(_IDLE_SECONDS)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the connection, or refuse it with a sentence."""
        real = cast(asyncio.Transport, transport)
        if len(self._all.open) >= self._all.most:
            self._all.refused("connections")
            real.write(_BUSY)
            real.close()
            return
        self._transport = real
        self._all.open[self._inner] = self
        self._wait(self._all.seconds)
        self._inner.connection_made(transport)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget it."""
        if self._transport is not None:
            self._transport = None
            self._wait(None)
            del self._all.open[self._inner]
            self._inner.connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """From the first byte on, the head of a request has a time limit."""
        if self._transport is None:
            return
        if self._is_idle:
            self._is_idle = False
            self._wait(self._all.seconds)
        self._inner.data_received(data)

    def eof_received(self) -> bool | None:
        """The client sends no more."""
        return self._inner.eof_received() if self._transport is not None else None

    def pause_writing(self) -> None:
        """The client reads too slowly."""
        self._inner.pause_writing()

    def resume_writing(self) -> None:
        """It reads again."""
        self._inner.resume_writing()

    def _wait(self, seconds: float | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if seconds is not None and self._transport is not None:
            self._timer = asyncio.get_running_loop().call_later(seconds, self._expire)

    def _expire(self) -> None:
        if self._transport is not None:
            if not self._is_idle:
                self._all.refused("slow")
            self._transport.abort()
