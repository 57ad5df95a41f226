"""The errors that an ill tool raises. They look like real ones: an agent must not read that it is being tested.

Rule: the harness can always tell them (``injected``), so that a fault made on purpose is never counted as the
infrastructure's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from surefoot.evaluation.errors import EvaluationError

_SAYS: Final = {
    "timeout": "timed out",
    "http_500": "HTTP 500 Internal Server Error",
    "http_429": "HTTP 429 Too Many Requests",
    "network_error": "connection reset by peer",
}
STATUS: Final = {"http_500": 500, "http_429": 429}


@dataclass(frozen=True, slots=True)
class Raised:
    """One failure: of which tool, of which kind, and when a rate limit says to come back."""

    tool: str
    kind: str
    retry_after: int

    @property
    def message(self) -> str:
        """What a client would say."""
        wait = f", retry after {self.retry_after} s" if self.kind == "http_429" else ""
        return f"{self.tool}: {_SAYS[self.kind]}{wait}"

    @property
    def headers(self) -> dict[str, str]:
        """The response's headers."""
        return {"retry-after": str(self.retry_after)} if self.kind == "http_429" else {}

    def as_result(self) -> dict[str, Any]:
        """Return it as tools do that report errors instead of raising them."""
        error: dict[str, Any] = {"type": self.kind, "message": self.message}
        if self.kind in STATUS:
            error["status"] = STATUS[self.kind]
        if self.kind == "http_429":
            error["retry_after"] = self.retry_after
        return {"error": error}


class ToolFailedError(EvaluationError):
    """A tool did not do what it was asked."""

    status_code: int | None = None
    retry_after: int | None = None
    headers: Mapping[str, str] = MappingProxyType({})


class ToolTimeoutError(ToolFailedError, TimeoutError):
    """It did not answer in time."""


class ToolConnectionError(ToolFailedError, ConnectionError):
    """It was not reachable, or hung up."""


class ToolHTTPError(ToolFailedError):
    """It answered with ``status_code`` 500 or 429, the latter with ``retry_after`` in seconds."""


def _plain(raised: Raised) -> Exception:
    kinds: dict[str, type[ToolFailedError]] = {"timeout": ToolTimeoutError, "network_error": ToolConnectionError}
    error = kinds.get(raised.kind, ToolHTTPError)(raised.message)
    if raised.kind in STATUS:
        error.status_code, error.headers = STATUS[raised.kind], raised.headers
    if raised.kind == "http_429":
        error.retry_after = raised.retry_after
    return _own(error)


def _httpx(raised: Raised) -> Exception:
    import httpx

    request = httpx.Request("POST", f"http://{raised.tool}.invalid/")
    if raised.kind == "timeout":
        return _own(httpx.ReadTimeout(raised.message, request=request))
    if raised.kind == "network_error":
        return _own(httpx.ReadError(raised.message, request=request))
    response = httpx.Response(STATUS[raised.kind], headers=raised.headers, request=request)
    return _own(httpx.HTTPStatusError(raised.message, request=request, response=response))


MAKERS: Final[Mapping[str, Callable[[Raised], Exception]]] = {"plain": _plain, "httpx": _httpx}
_MARK: Final = "surefoot_injected"


def _own(error: Exception) -> Exception:
    setattr(error, _MARK, True)
    return error


def injected(error: BaseException | None) -> bool:
    """Whether an error is, or came of, a fault that was made on purpose."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        if getattr(error, _MARK, False):
            return True
        if isinstance(error, BaseExceptionGroup):
            return any(injected(one) for one in error.exceptions)
        seen.add(id(error))
        error = error.__cause__ or error.__context__
    return False
