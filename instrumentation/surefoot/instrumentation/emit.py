"""The tracer and the logger of the SDK, and the one function that sends a log event.

Both are looked up once. Until a provider is set they are OpenTelemetry's proxies, which record nothing and take up a
provider that comes later. (Asking the provider anew for every span takes a lock and changes Python's warning filters.)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from opentelemetry import trace
from opentelemetry._logs import get_logger
from opentelemetry.context import Context

from surefoot.instrumentation import clock, semconv

SCOPE: Final = "surefoot"
tracer: Final = trace.get_tracer(SCOPE)
_logger: Final = get_logger(SCOPE)

_TOLD_AT_START: Final = frozenset(
    {semconv.OPERATION_NAME, semconv.AGENT_NAME, semconv.AGENT_VERSION, semconv.CONVERSATION_ID}
)


def log_event(name: str, attributes: Mapping[str, Any], context: Context | None = None) -> None:
    """Send one log event, by default on the current span. Without a provider this does nothing."""
    now = clock.now_unix_nano()
    _logger.emit(event_name=name, attributes=attributes, context=context, timestamp=now, observed_timestamp=now)


def run_started(attributes: Mapping[str, Any], context: Context) -> None:
    """Say at once that a run began: a root span is exported only at its end, and a killed agent never ends one.

    ``attributes`` are the run span's; the agent's name, the conversation and everything of ``surefoot.*`` is passed on.
    """
    told = {key: value for key, value in attributes.items() if key in _TOLD_AT_START or key.startswith("surefoot.")}
    log_event(semconv.RUN_STARTED_EVENT, told, context)
