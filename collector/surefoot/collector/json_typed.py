"""OTLP/JSON checked and rewritten at C speed, for the requests that are in order, which is nearly all.

Contract: :func:`rewrite` gives a body that means exactly what ``json_codec`` makes of it as protobuf, or None. None is
not a verdict: it says only that the slow, exact way has to look (to reject one span, to name what is wrong, or because
of a form that is allowed and rare, such as "NaN" or 64-bit numbers above 2^63 - 1).

Rule: what is written is msgspec's own text of typed values: no key twice or unknown, no raw newline, valid UTF-8,
numbers in range. So the writer's JSON reader, which forgives none of these, can read it, and requests can be put
together as lines. Values in arrays and maps have no fixed shape: each stands there as base64 of its protobuf bytes.

The types are made from the official descriptors, so no field is written down twice.
"""

from __future__ import annotations

import binascii
import re
from collections.abc import Iterable, Sequence
from functools import cache
from operator import attrgetter
from typing import Annotated, Any, NamedTuple

import msgspec
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message
from msgspec import Meta
from opentelemetry.proto.common.v1.common_pb2 import ArrayValue, KeyValueList

from surefoot.collector import json_codec
from surefoot.collector.errors import BadRequestError
from surefoot.collector.limits import Limits

_KIND = FieldDescriptor
_INT32 = Annotated[int, Meta(ge=-(2**31), le=2**31 - 1)]
_UINT32 = Annotated[int, Meta(ge=0, le=2**32 - 1)]
_SIGNED = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
_INT64 = _SIGNED | Annotated[str, Meta(pattern=r"^-?[0-9]{1,18}\Z")]
_NUMBER = Annotated[int, Meta(ge=0, le=2**63 - 1)]
_UINT64 = _NUMBER | Annotated[str, Meta(pattern=r"^[0-9]{1,19}\Z")]
# A pattern costs 0.6 us a text (a span as a whole: 5 us), so what every span has gets only bounds and is looked at for
# many spans together: ids and times in _count_spans, integers of attributes in the text that is written.
_SHORT = Annotated[str, Meta(min_length=1, max_length=19)]
_NOT_AN_INTEGER = re.compile(rb'"intValue":"(?!-?[0-9]{1,18}")')  # a quote inside of a text would be escaped
_TYPES: dict[int, Any] = {
    _KIND.CPPTYPE_INT32: _INT32,
    _KIND.CPPTYPE_ENUM: _INT32,
    _KIND.CPPTYPE_UINT32: _UINT32,
    _KIND.CPPTYPE_INT64: _INT64,
    _KIND.CPPTYPE_UINT64: _UINT64,
    _KIND.CPPTYPE_DOUBLE: float,
    _KIND.CPPTYPE_BOOL: bool,
    _KIND.CPPTYPE_STRING: str,
}
_DIGITS = {"trace_id": 32, "span_id": 16, "parent_span_id": 16}
_METRIC_KINDS = ("gauge", "sum", "histogram", "exponential_histogram", "summary")


class Rewritten(NamedTuple):
    """A body and how many spans, log records or data points it holds."""

    body: bytes
    items: int


class _Values:
    """The values of an ``ArrayValue`` or ``KeyValueList``, each as protobuf bytes."""

    def __init__(self, message: Any, content: Any, nesting: int) -> None:
        # A list is two levels of messages and a map three: what is deeper than that many lists is looked at closely.
        json_codec.fill(message, content, "", levels=2 * nesting - 1)
        self.values = [value.SerializeToString() for value in message.values]


class _Array(_Values):
    message = ArrayValue


class _Map(_Values):
    message = KeyValueList


_OPEN = {kind.message.DESCRIPTOR.name: kind for kind in (_Array, _Map)}


def rewrite(message: type[Message], body: bytes, limits: Limits) -> Rewritten | None:
    """The body of a request of this type in canonical JSON, or None if it has to be looked at closely."""
    if len(body) > limits.value_bytes:  # so one value may be too long
        return None
    try:
        request = _decoder(message.DESCRIPTOR, limits).decode(body.decode())
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, BadRequestError):
        return None
    items = _items(request)
    if items is None:
        return None
    written = _ENCODER.encode(request)
    return None if _NOT_AN_INTEGER.search(written) else Rewritten(written, items)


def _items(request: Any) -> int | None:
    """How many items there are; None if one has to be looked at closely."""
    total = 0
    for resource in request.groups or ():
        for scope in resource.groups or ():
            items = scope.groups or ()
            counted = _COUNT[scope.__class__.__name__](items)
            if counted is None:
                return None
            total += counted
    return total


def _count_spans(spans: Sequence[Any]) -> int | None:
    sound = (
        _are_ids(_column(spans, "trace_id"), 32, needed=len(spans))
        and _are_ids(_column(spans, "span_id"), 16, needed=len(spans))
        and _are_ids(_column(spans, "parent_span_id"), 16)
        and _are_times(_column(spans, "start_time_unix_nano"))
        and _are_times(_column(spans, "end_time_unix_nano"))
    )
    return len(spans) if sound else None


def _count_logs(records: Sequence[Any]) -> int | None:
    sound = (
        _are_ids(_column(records, "trace_id"), 32)
        and _are_ids(_column(records, "span_id"), 16)
        and _are_times(_column(records, "time_unix_nano"))
        and _are_times(_column(records, "observed_time_unix_nano"))
    )
    return len(records) if sound else None


def _count_points(metrics: Sequence[Any]) -> int | None:
    total = 0
    for metric in metrics:
        kinds = [kind for kind in _METRIC_KINDS if getattr(metric, kind) is not None]
        if len(kinds) > 1:  # of which only one may count
            return None
        total += sum(len(getattr(metric, kind).data_points or ()) for kind in kinds)
    return total


_COUNT = {"ScopeSpans": _count_spans, "ScopeLogs": _count_logs, "ScopeMetrics": _count_points}


def _column(items: Iterable[Any], name: str) -> list[Any]:
    """What the items have under a name, without what is not given."""
    return [value for value in map(attrgetter(name), items) if value is not None]


def _are_ids(texts: list[str], digits: int, needed: int = 0) -> bool:
    """Whether all are hex of this length, or empty where none is needed; where they are, none may be zero."""
    given = texts if needed else [text for text in texts if text]
    # None is longer than this, so together they are as long as can be only if each is.
    if len(given) < needed or (needed and "0" * digits in given):
        return False
    joined = "".join(given)
    if len(joined) != digits * len(given):
        return False
    try:
        binascii.unhexlify(joined)
    except ValueError:
        return False
    return True


def _are_times(values: list[Any]) -> bool:
    joined = "".join(map(str, values))
    return not joined or (joined.isascii() and joined.isdigit())


@cache
def _decoder(descriptor: Descriptor, limits: Limits) -> msgspec.json.Decoder[Any]:
    def values(kind: type[_Array | _Map], content: Any) -> _Values:
        return kind(kind.message(), content, limits.nesting)

    return msgspec.json.Decoder(_struct(descriptor, limits), dec_hook=values)


_ENCODER = msgspec.json.Encoder(enc_hook=lambda nested: {"values": nested.values})

# Resources, scopes and items have another name for each signal; here all are groups.
_GROUPS = frozenset(
    {
        *(f"{level}_{signal}" for level in ("resource", "scope") for signal in ("spans", "logs", "metrics")),
        *("spans", "log_records", "metrics"),
    }
)


@cache
def _struct(descriptor: Descriptor, limits: Limits) -> Any:
    """The type of a message. Fields that are null or not there are None, and are not written."""
    names = {"groups" if field.name in _GROUPS else field.name: field.json_name for field in descriptor.fields}
    fields = [(name, _type(field, limits) | None, None) for name, field in zip(names, descriptor.fields, strict=True)]
    return msgspec.defstruct(descriptor.name, fields, rename=names, omit_defaults=True, gc=False)


def _type(field: FieldDescriptor, limits: Limits) -> Any:
    kind: Any
    if field.message_type is None:
        kind = _scalar(field)
    else:
        kind = _OPEN.get(field.message_type.name) or _struct(field.message_type, limits)
    if not field.is_repeated:
        return kind
    most = {"KeyValue": limits.attributes, "Event": limits.events, "Link": limits.links}
    name = field.message_type.name if field.message_type is not None else ""
    return Annotated[list[kind], Meta(max_length=most.get(name))]


def _scalar(field: FieldDescriptor) -> Any:
    owner = field.containing_type.name if field.containing_type is not None else ""
    in_bulk = owner in ("Span", "LogRecord")
    if field.name in _DIGITS:
        digits = _DIGITS[field.name]
        pattern = None if in_bulk else rf"^(?:[0-9a-fA-F]{{{digits}}})?\Z"
        return Annotated[str, Meta(max_length=digits, pattern=pattern)]
    if field.type == _KIND.TYPE_BYTES:
        return bytes
    if in_bulk and field.cpp_type == _KIND.CPPTYPE_UINT64:
        return _NUMBER | _SHORT
    if owner == "AnyValue" and field.cpp_type == _KIND.CPPTYPE_INT64:
        return _SIGNED | _SHORT
    return _TYPES[field.cpp_type]
