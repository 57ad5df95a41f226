"""How a span ended: its outcome and the name of its error. The same rules for runs, tool calls and model calls.

Rules that real instrumentations force: cancellation is told apart from failure by the name of the exception, wherever
it stands; an exception that asks for a deferral is no failure; ``error.type`` is often missing or ``_OTHER``, then the
exception event and the status message are asked. Names lose their module, so one error has one name.
"""

from __future__ import annotations

import re
from typing import Final

from surefoot.instrumentation import semconv
from surefoot.processors.genai.trace import Span

OTHER: Final = "_OTHER"

_CANCELLED: Final = frozenset({"CancelledError", "GeneratorExit", "KeyboardInterrupt"})
_ABANDONED_STREAM: Final = "abandoned stream"
# pydantic-ai raises these to hand a tool call to a person or another process.
_DEFERRED: Final = frozenset({"CallDeferred", "ApprovalRequired"})

_IDENTIFIER: Final = re.compile(r"[\w.\-]{1,200}")
# "RuntimeError: 429" and "pkg.errors.RateLimit: slow down", but not "failed: no such city".
_PREFIX: Final = re.compile(r"((?:\w+\.)*[A-Z]\w*):(?:\s|$)")


def outcome(span: Span) -> str:
    """``ok``, ``error``, ``cancelled`` or ``deferred``."""
    if span.status != "error" and span.error_type is None and not span.marks:
        return "ok"
    if span.marks.get(semconv.CANCELLED, "").lower() == "true":
        return "cancelled"
    if span.status != "error" and span.error_type is None:
        return "ok"
    name = error_name(span)
    if name in _CANCELLED or span.status_message == _ABANDONED_STREAM:
        return "cancelled"
    if name in _DEFERRED:
        return "deferred"
    return "error"


def error_name(span: Span) -> str:
    """The span's error, first that tells something: ``error.type``, exception event, status message, ``_OTHER``."""
    for name in (span.error_type, span.exception_type):
        if name and name != OTHER and _IDENTIFIER.fullmatch(name):
            return _short(name)
    prefix = _PREFIX.match(span.status_message or "")
    return _short(prefix[1]) if prefix else OTHER


def _short(name: str) -> str:
    return name.rstrip(".").rpartition(".")[2] or name
