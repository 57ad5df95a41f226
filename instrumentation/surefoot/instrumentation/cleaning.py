"""Cleans what is about to be exported: content that was not asked for, reasoning, and what the redaction takes out.

Works on copies, so it sees every span and log record of the pipeline, whoever made it, and never touches an object that
another exporter may hold. Rule: a redaction that fails lets nothing out: the value is replaced and the failure counted.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, Final

from opentelemetry.sdk._logs import ReadableLogRecord
from opentelemetry.sdk.trace import Event, ReadableSpan
from opentelemetry.trace import Link, Status

from surefoot.instrumentation import content, semconv
from surefoot.instrumentation.redaction import REDACTED, Redaction

# The conventions' own words. A redaction must not make a span unrecognisable.
_KEPT: Final = frozenset({semconv.OPERATION_NAME, semconv.EVALUATION_NAME})


class CleanSpan(ReadableSpan):
    """A copy of a span that still knows how much the original had dropped."""

    def __init__(self, original: ReadableSpan, **changed: Any) -> None:
        super().__init__(
            name=original.name,
            context=original.context,
            parent=original.parent,
            resource=original.resource,
            kind=original.kind,
            start_time=original.start_time,
            end_time=original.end_time,
            instrumentation_scope=original.instrumentation_scope,
            **changed,
        )
        self._original = original

    @property
    def dropped_attributes(self) -> int:
        """Attributes that the SDK's limits dropped; not those that cleaning took out."""
        return self._original.dropped_attributes

    @property
    def dropped_events(self) -> int:
        """Events that the SDK's limits dropped."""
        return self._original.dropped_events

    @property
    def dropped_links(self) -> int:
        """Links that the SDK's limits dropped."""
        return self._original.dropped_links


class Cleaner:
    """Cleans spans and log records for export. ``failures`` counts texts that the redaction could not handle."""

    def __init__(self, redaction: Redaction | None = None, capture: content.CaptureMode | None = None) -> None:
        self._redaction = redaction
        self._capture = content.capture_mode() if capture is None else capture
        self.failures = 0

    def span(self, span: ReadableSpan) -> ReadableSpan:
        """The span as it may leave; the same object if nothing had to change."""
        # Read once: a span makes a new view of its attributes at each look.
        old = (span.attributes, span.events, span.links, span.status)
        attributes = self._attributes(old[0], keep_content=self._capture.spans)
        events = [self._event(event) for event in old[1]]
        links = [self._link(link) for link in old[2]]
        status = self._status(old[3])
        parts: list[tuple[object, object]] = [(attributes, old[0]), (status, old[3])]
        parts.extend(zip(events, old[1], strict=True))
        parts.extend(zip(links, old[2], strict=True))
        if all(new is before for new, before in parts):
            return span
        return CleanSpan(span, attributes=attributes, events=events, links=links, status=status)

    def log(self, record: ReadableLogRecord) -> ReadableLogRecord:
        """The log record as it may leave; the same object if nothing had to change."""
        inner = record.log_record
        attributes = self._attributes(inner.attributes, keep_content=self._capture.events)
        body = self._body(inner.event_name or (inner.attributes or {}).get("event.name"), inner.body)
        if attributes is inner.attributes and body is inner.body:
            return record
        cleaned = copy.copy(inner)
        cleaned.attributes = attributes
        cleaned.body = body
        return dataclasses.replace(record, log_record=cleaned)

    def _attributes(self, attributes: Mapping[str, Any] | None, *, keep_content: bool) -> Mapping[str, Any] | None:
        if not attributes:
            return attributes
        reasoning = content.flattened_reasoning(attributes) if keep_content else ()
        kept: dict[str, Any] = {}
        changed = False
        for key, value in attributes.items():
            new = value
            if content.is_content(key):
                is_reasoning = content.names_reasoning(key) or (reasoning and key.startswith(reasoning))
                new = content.without_reasoning(value) if keep_content and not is_reasoning else None
            if new is not None and key not in _KEPT:
                new = self._redacted(key, new)
            changed = changed or new is not value
            if new is not None:
                kept[key] = new
        return kept if changed else attributes

    def _redacted(self, key: str, value: Any) -> Any:
        """The value with every text in it redacted; the same object if nothing had to change."""
        if self._redaction is None:
            return value
        if isinstance(value, str):
            new = self._call(self._redaction, key, value)
            return value if new == value else new
        if isinstance(value, Mapping):
            cleaned = {name: self._redacted(key, item) for name, item in value.items()}
            return cleaned if any(cleaned[name] is not item for name, item in value.items()) else value
        if isinstance(value, Sequence) and not isinstance(value, (bytes, bytearray)):
            items = [self._redacted(key, item) for item in value]
            return items if any(new is not old for new, old in zip(items, value, strict=True)) else value
        return value

    def _call(self, redaction: Redaction, key: str, text: str) -> str:
        try:
            new = redaction(key, text)
        except Exception:  # noqa: BLE001 - the user's callable; counted, reported at exit, and nothing gets out
            self.failures += 1
            return REDACTED
        if not isinstance(new, str):
            self.failures += 1
            return REDACTED
        return new

    def _event(self, event: Event) -> Event:
        attributes = event.attributes
        if event.name in content.MESSAGE_EVENTS and not self._capture.spans:
            attributes = {}
        attributes = self._attributes(attributes, keep_content=self._capture.spans)
        return event if attributes is event.attributes else Event(event.name, attributes, event.timestamp)

    def _link(self, link: Link) -> Link:
        attributes = self._attributes(link.attributes, keep_content=self._capture.spans)
        return link if attributes is link.attributes else Link(link.context, attributes)

    def _status(self, status: Status) -> Status:
        if not status.description:
            return status
        description = self._redacted("status", status.description)
        return status if description == status.description else Status(status.status_code, description)

    def _body(self, event_name: Any, body: Any) -> Any:
        if event_name in content.MESSAGE_EVENTS:
            if not self._capture.events:
                return None
            cleaned = content.without_reasoning(body)
            body = body if cleaned == body else cleaned
        return None if body is None else self._redacted("body", body)
