"""What leaves the process is cleaned first: message content that was not asked for, reasoning, and secrets.

Works on copies inside the exporters, so it sees every span and log record of the pipeline, whoever made it. Rule: a
redaction that fails lets nothing out: the value is replaced and the failure counted.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from opentelemetry._logs import LogRecord
from opentelemetry.sdk._logs import ReadableLogRecord
from opentelemetry.sdk.trace import Event, ReadableSpan
from opentelemetry.trace import Status

from surefoot.instrumentation import content, semconv

REDACTED: Final = "[REDACTED]"
Redact = Callable[[str, str], str]
"""Takes an attribute's name and its text, returns what may leave the process."""

PATTERNS: Final[Sequence[re.Pattern[str]]] = (
    re.compile(r"(?i)\bbearer\s+[a-z0-9._~+/=-]{8,}"),
    re.compile(r"\b(?:sk|pk|rk)-[A-Za-z0-9_-]{16,}"),
    re.compile(r"\bAKIA[0-9A-Z]{16}\b"),
    re.compile(r"\bgh[pousr]_[A-Za-z0-9]{20,}"),
    re.compile(r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}"),
    re.compile(r"\b[A-Za-z0-9._%+-]+@[A-Za-z0-9.-]+\.[A-Za-z]{2,}\b"),
    re.compile(r"\b(?:\d[ -]?){13,16}\b"),
)
"""Bearer tokens, API keys of common makes, JSON web tokens, mail addresses, numbers as long as a card's."""

# Identifiers and the conventions' own words are not free text: a trace must stay joinable.
_NOT_TEXT: Final = frozenset(
    {
        *(semconv.OPERATION_NAME, semconv.CONVERSATION_ID, semconv.TOOL_CALL_ID, semconv.RESPONSE_ID, semconv.AGENT_ID),
        *(semconv.TASK_ID, semconv.INTENT_ID, semconv.RUN_GROUP, semconv.EVALUATION_SUPERSEDES, semconv.ERROR_TYPE),
    }
)


def by_patterns(_name: str, text: str) -> str:
    """The built-in redaction."""
    for pattern in PATTERNS:
        text = pattern.sub(REDACTED, text)
    return text


def combined(redact: Redact | None, *, patterns: bool) -> Redact | None:
    """The built-in patterns and then a callable of one's own; None if neither is wanted."""
    if redact is None or not patterns:
        return redact if not patterns else by_patterns
    return lambda name, text: redact(name, by_patterns(name, text))


class Cleaner:
    """Cleans spans and log records for export. ``redact`` is called for every text; None means no redaction."""

    def __init__(self, redact: Redact | None = by_patterns) -> None:
        self._redact = redact
        self.failures = 0

    def span(self, span: ReadableSpan) -> ReadableSpan:
        """The span as it may leave; the same object if nothing had to change."""
        attributes = self._attributes(span.attributes)
        events = [self._event(event) for event in span.events]
        status = self._status(span.status)
        changed = any(new is not old for new, old in zip(events, span.events, strict=True))
        if attributes is span.attributes and status is span.status and not changed:
            return span
        return ReadableSpan(
            name=span.name,
            context=span.context,
            parent=span.parent,
            resource=span.resource,
            attributes=attributes,
            events=events,
            links=span.links,
            kind=span.kind,
            status=status,
            start_time=span.start_time,
            end_time=span.end_time,
            instrumentation_scope=span.instrumentation_scope,
        )

    def log(self, record: ReadableLogRecord) -> ReadableLogRecord:
        """The log record as it may leave."""
        inner = record.log_record
        attributes = self._attributes(inner.attributes)
        body = self._body(inner.event_name, inner.body)
        if attributes is inner.attributes and body is inner.body:
            return record
        cleaned = LogRecord(
            timestamp=inner.timestamp,
            observed_timestamp=inner.observed_timestamp,
            trace_id=inner.trace_id,
            span_id=inner.span_id,
            trace_flags=inner.trace_flags,
            severity_text=inner.severity_text,
            severity_number=inner.severity_number,
            body=body,
            attributes=attributes,
            event_name=inner.event_name,
        )
        return dataclasses.replace(record, log_record=cleaned)

    def _attributes(self, attributes: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
        if not attributes:
            return attributes
        kept: dict[str, Any] = {}
        changed = False
        for key, value in attributes.items():
            new = self._value(key, value)
            changed = changed or new is not value
            if new is not None:
                kept[key] = new
        return kept if changed else attributes

    def _value(self, key: str, value: Any) -> Any:
        if content.is_content(key):
            if not content.captures():
                return None
            value = (
                content.text_without_reasoning(value) if isinstance(value, str) else content.without_reasoning(value)
            )
        if self._redact is None or value is None or key in _NOT_TEXT:
            return value
        return self._redacted(key, value)

    def _redacted(self, key: str, value: Any) -> Any:
        if isinstance(value, str):
            new = self._call(key, value)
            return value if new == value else new
        if isinstance(value, Mapping):
            cleaned = {name: self._redacted(key, item) for name, item in value.items()}
            return cleaned if any(cleaned[name] is not item for name, item in value.items()) else value
        if isinstance(value, Sequence) and not isinstance(value, (bytes, bytearray)):
            items = [self._redacted(key, item) for item in value]
            return items if any(new is not old for new, old in zip(items, value, strict=True)) else value
        return value

    def _call(self, key: str, text: str) -> str:
        assert self._redact is not None  # noqa: S101 - asked before
        try:
            return self._redact(key, text)
        except Exception:  # noqa: BLE001 - the user's callable; counted, reported at exit, and nothing gets out
            self.failures += 1
            return REDACTED

    def _event(self, event: Event) -> Event:
        attributes = self._attributes(event.attributes)
        if attributes is event.attributes:
            return event
        return Event(event.name, attributes, event.timestamp)

    def _status(self, status: Status) -> Status:
        if not status.description or self._redact is None:
            return status
        description = self._call("status", status.description)
        return status if description == status.description else Status(status.status_code, description)

    def _body(self, event_name: str | None, body: Any) -> Any:
        if event_name in content.MESSAGE_EVENTS:
            if not content.captures():
                return None
            body = content.without_reasoning(body)
        return body if self._redact is None or body is None else self._redacted("body", body)
