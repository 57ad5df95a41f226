"""Lets web pages of chosen origins send: agents that run in a browser. Off unless origins are set.

Rule: an origin that is not chosen gets no header at all, and the browser then refuses by itself. Credentials such as
cookies are never allowed; a page that needs a token sends it as a header.
"""

from __future__ import annotations

from fnmatch import fnmatchcase

from aiohttp import hdrs, web
from aiohttp.typedefs import Handler, Middleware

from surefoot.collector.config import Config

_HEADERS = ("Content-Type", "Content-Encoding", "Authorization")


def cors(config: Config) -> list[Middleware]:
    """The middleware, or nothing."""
    origins = _list(config.cors_origins)
    if not origins:
        return []
    headers = ", ".join((*_HEADERS, *_list(config.cors_headers)))
    age = str(config.cors_max_age_seconds)

    @web.middleware
    async def middleware(request: web.Request, handler: Handler) -> web.StreamResponse:
        origin = request.headers.get(hdrs.ORIGIN, "")
        allowed = bool(origin) and any(fnmatchcase(origin, pattern) for pattern in origins)
        is_preflight = request.method == hdrs.METH_OPTIONS and hdrs.ACCESS_CONTROL_REQUEST_METHOD in request.headers
        response: web.StreamResponse
        if allowed and is_preflight:
            response = web.Response(status=204)
            response.headers[hdrs.ACCESS_CONTROL_ALLOW_METHODS] = hdrs.METH_POST
            response.headers[hdrs.ACCESS_CONTROL_ALLOW_HEADERS] = headers
            response.headers[hdrs.ACCESS_CONTROL_MAX_AGE] = age
        else:
            response = await handler(request)
        response.headers.add(hdrs.VARY, hdrs.ORIGIN)
        if allowed:
            response.headers[hdrs.ACCESS_CONTROL_ALLOW_ORIGIN] = origin
            response.headers[hdrs.ACCESS_CONTROL_EXPOSE_HEADERS] = hdrs.RETRY_AFTER
        return response

    return [middleware]


def _list(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]
