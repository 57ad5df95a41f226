"""The web process: metrics, page and API on one port. Reads, writes nothing.

Loopback is not authentication: a page on the internet can make a browser ask this port. So the Host header must name
this machine (DNS rebinding), a request from another origin that is not a plain read is refused, and every answer
forbids content from elsewhere.
"""

from __future__ import annotations

import json
import logging
import signal
import socket
import sys
from collections.abc import Awaitable, Callable
from types import FrameType
from typing import Final
from urllib.parse import urlsplit

import uvicorn
from prometheus_client.exposition import choose_encoder
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from surefoot.dashboards.metrics import registry
from surefoot.dashboards.page.pages import Pages
from surefoot.errors import SurefootError, UnreachableError
from surefoot.processors import status
from surefoot.processors.settings import Settings

log = logging.getLogger("surefoot.web")

_LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "[::1]", "::1"})
_HEADERS: Final = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}

_BACKLOG: Final = 128

Handler = Callable[[Request], Awaitable[Response]]


def create_app(settings: Settings) -> Starlette:
    """The application. Status files and lake are read at each request."""
    pages = Pages(settings)
    metrics = registry(settings.status_path)

    def show_metrics(request: Request) -> Response:
        encode, content_type = choose_encoder(request.headers.get("accept", ""))
        return Response(encode(metrics), headers={"Content-Type": content_type})

    def overview(_request: Request) -> Response:
        return HTMLResponse(pages.overview())

    def detail(request: Request) -> Response:
        text = pages.detail(request.path_params["name"])
        return HTMLResponse(text) if text is not None else PlainTextResponse("There is no SLO of that name.", 404)

    def api_slo(_request: Request) -> Response:
        content = status.read(settings.status_path, "slo")
        if content is None:
            return JSONResponse({"error": "No SLO has been computed yet; is the jobs process running?"}, 503)
        return JSONResponse(content)

    def health(_request: Request) -> Response:
        return PlainTextResponse("ok")

    routes = [
        Route("/", overview),
        Route("/slo/{name}", detail),
        Route("/metrics", show_metrics),
        Route("/api/slo", api_slo),
        Route("/healthz", health),
    ]
    return Starlette(routes=routes, middleware=[Middleware(_Guard, allowed=_allowed_hosts(settings))])


class _Guard(BaseHTTPMiddleware):
    """Refuses foreign hosts and origins; adds the headers."""

    def __init__(self, app: ASGIApp, allowed: frozenset[str]) -> None:
        super().__init__(app)
        self._allowed = allowed

    async def dispatch(self, request: Request, call_next: Handler) -> Response:
        host = _name(request.headers.get("host", ""))
        if host not in self._allowed:
            return PlainTextResponse(f"This server does not answer for the host {host[:80]!r}.", 421)
        origin = request.headers.get("origin")
        if request.method not in ("GET", "HEAD") and origin is not None and not self._is_own(origin, request):
            return PlainTextResponse("Requests from other origins may only read.", 403)
        response = await call_next(request)
        response.headers.update(_HEADERS)
        return response

    def _is_own(self, origin: str, request: Request) -> bool:
        return urlsplit(origin).netloc == request.headers.get("host")


def _name(host: str) -> str:
    """The Host header without its port."""
    name = host.rpartition(":")[0] if host.rpartition(":")[2].isdigit() else host
    return name.lower()


def _allowed_hosts(settings: Settings) -> frozenset[str]:
    named = {name.strip().lower() for name in settings.web_hosts.split(",") if name.strip()}
    return _LOOPBACK | {settings.host.lower(), *named}


def serve(settings: Settings) -> None:
    """Serve until SIGTERM; says where in one JSON line. Raises UnreachableError if the port is taken."""
    listening = socket.socket(socket.AF_INET6 if ":" in settings.host else socket.AF_INET)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((settings.host, settings.port_web))
    except OSError as error:
        listening.close()
        raise UnreachableError(
            f"Cannot listen on {settings.host}:{settings.port_web}: {error.strerror}. "
            f"`ss -ltnp 'sport = :{settings.port_web}'` shows who uses it; choose another with --port-web, 0 for any."
        ) from error
    listening.listen(_BACKLOG)  # before the ready line: whoever reads it may connect at once
    server = uvicorn.Server(
        uvicorn.Config(create_app(settings), log_level="warning", access_log=False, timeout_graceful_shutdown=5)
    )

    def request_stop(_number: int, _frame: FrameType | None) -> None:
        server.should_exit = True

    # uvicorn has handlers of its own while it runs, and raises the signal that stopped it once more when it is done;
    # ours hold before and after, so that no signal is lost and none ends the process with an error.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, request_stop)
    port = listening.getsockname()[1]
    print(json.dumps({"web": f"http://{settings.host}:{port}"}), flush=True)  # noqa: T201 - the ready line
    server.run(sockets=[listening])


def main() -> int:
    """``python -m surefoot.dashboards.web``; returns the exit code."""
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="surefoot web: %(levelname)s %(message)s")
    try:
        serve(Settings())
    except SurefootError as error:
        log.error("%s", error)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
