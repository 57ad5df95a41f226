"""What one span, log record or data point may be. Beyond it the item is rejected alone, never its batch.

Rule: what is within the limits costs next to nothing. Attributes are counted, and values measured, only where an item
is long enough to break a limit, which the lengths in the body tell (measured for 100 spans of 450 bytes: 20 us, where
counting takes 80 us). Nesting is held by protobuf's own parser: its limit is fixed, but a request that is parsed inside
some levels of groups has that many levels fewer for itself (2 to 15 us, where looking at each value takes 500 us).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto
from google.protobuf.message import DecodeError, Message
from google.protobuf.message_factory import GetMessageClass

# upb reads 100 levels of messages. A list takes two and a map three, so in a span 47 lists or 31 maps is its own limit.
DEEPEST = 47
_UPB_LEVELS = 100
_LEVELS_OF_A_RESOURCE_VALUE = 5  # request, resource spans, resource, attribute, value: nowhere is a value higher up
_START, _END, _REQUEST = b"\x0b", b"\x0c", b"\x12"  # start and end of a group in field 1, a message in field 2


@dataclass(frozen=True, slots=True)
class Limits:
    """Counts for one item; lengths are bytes."""

    attributes: int = 4096
    value_bytes: int = 16 << 20
    nesting: int = DEEPEST
    events: int = 4096
    links: int = 4096

    @property
    def shortest_bad(self) -> int:
        """Bytes of the shortest item that can hold too many attributes, events or links: each takes two."""
        return 2 * (min(self.attributes, self.events, self.links) + 1)


@dataclass(frozen=True, slots=True)
class Problem:
    """Why an item is rejected: ``reason`` is counted, ``text`` is told."""

    reason: str
    text: str


def parse_shallow(kind: Any, body: bytes, nesting: int) -> Any | None:
    """The message, or None if it cannot be parsed or may hold a value nested deeper than ``nesting``."""
    if nesting >= DEEPEST:
        message = kind()
        try:
            message.ParseFromString(body)
        except DecodeError:
            return None
        return message
    levels = _UPB_LEVELS - _LEVELS_OF_A_RESOURCE_VALUE - 2 * (nesting + 1) + 1
    wrapper = _wrapper(kind)()
    try:
        wrapper.ParseFromString(b"".join((_START * levels, _REQUEST, _varint(len(body)), body, _END * levels)))
    except DecodeError:
        return None
    for _ in range(levels):
        wrapper = wrapper.inner
    return wrapper.request


@cache
def _wrapper(kind: Any) -> Any:
    """A message that holds another of its own kind as a group, or a request."""
    source = kind.DESCRIPTOR.file
    name = f"surefoot_level_{kind.DESCRIPTOR.name}"
    file = FileDescriptorProto(name=f"{name}.proto", package=name, syntax="proto2", dependency=[source.name])
    level = file.message_type.add(name="Level")
    label = FieldDescriptorProto.LABEL_OPTIONAL
    level.field.add(
        name="inner", number=1, type=FieldDescriptorProto.TYPE_GROUP, label=label, type_name=f".{name}.Level"
    )
    level.field.add(
        name="request",
        number=2,
        type=FieldDescriptorProto.TYPE_MESSAGE,
        label=label,
        type_name=f".{kind.DESCRIPTOR.full_name}",
    )
    pool = source.pool
    pool.AddSerializedFile(file.SerializeToString())
    return GetMessageClass(pool.FindMessageTypeByName(f"{name}.Level"))


def _varint(number: int) -> bytes:
    encoded = bytearray()
    while number > 0x7F:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)


def longest_item(body: bytes) -> int:
    """Bytes of the longest span, log record or metric in a request that has been parsed before.

    All three signals have the same field numbers for this. A body with anything else in the places between may hold
    an item of any length, so its own length is the answer.
    """
    return _longest(body, 0, len(body), 0)


def _longest(body: bytes, position: int, end: int, level: int) -> int:
    most = 0
    nested = _NESTED[level]
    while position < end:
        tag = body[position]
        length = body[position + 1]
        position += 2
        if length > 0x7F:
            high = body[position]
            if high <= 0x7F:  # two bytes, as most of them are
                length += (high << 7) - 0x80
                position += 1
            else:
                length, position = _length(body, position - 1)
        if tag == nested:
            if level < _SCOPE:
                length_inside = _longest(body, position, position + length, level + 1)
                if length_inside > most:
                    most = length_inside
            elif length > most:
                most = length
        elif tag not in _OTHERS:
            return len(body)
        position += length
    return most


def _length(body: bytes, position: int) -> tuple[int, int]:
    """The number at a position, seven bits a byte, and the position after it."""
    low, high = body[position], body[position + 1]
    if high <= 0x7F:
        return low & 0x7F | high << 7, position + 2
    more, after = _length(body, position + 1)
    return low & 0x7F | more << 7, after


# Tags of fields with a length: what leads to the items at each level, and what else may stand beside it (resource or
# scope, and a schema's address); at the first level there is nothing else.
_NESTED = (0x0A, 0x12, 0x12)
_OTHERS = (0x0A, 0x1A)
_SCOPE = 2  # the level at which items stand


def attributes_problem(what: str, attributes: Any, limits: Limits) -> Problem | None:
    """Whether there are too many of them."""
    if len(attributes) > limits.attributes:
        return Problem("attributes", f"{what} has {len(attributes):,} attributes, the limit is {limits.attributes:,}")
    return None


def values_problem(what: str, item: Message, limits: Limits, *, deep: bool) -> Problem | None:
    """Whether a value anywhere in the item is too long, or, if ``deep``, nested too deep."""
    large = item.ByteSize() > limits.value_bytes
    if not large and not deep:
        return None
    for place, value in _values(item):
        if large and value.ByteSize() > limits.value_bytes:
            return Problem(
                "value_bytes",
                f"{what} has {value.ByteSize():,} bytes in {place[:80]!r}, the limit is {limits.value_bytes:,}",
            )
        if deep and _depth([value]) > limits.nesting:
            return Problem("nesting", f"{what} has {place[:80]!r} nested too deep, the limit is {limits.nesting}")
    return None


def _values(item: Message) -> Iterator[tuple[str, Any]]:
    """The values of all attributes, with their keys, and a log record's body; not those inside values."""
    for field, content in item.ListFields():
        if field.message_type is None:
            continue
        for child in content if field.is_repeated else (content,):
            if field.message_type.name == "KeyValue":
                yield child.key, child.value
            elif field.message_type.name == "AnyValue":
                yield field.name, child
            else:
                yield from _values(child)


def _depth(values: Iterable[Any]) -> int:
    """How many lists and maps are inside each other; upb's own limit bounds it."""
    depth = 0
    level = list(values)
    while level:
        below = []
        for value in level:
            kind = value.WhichOneof("value")
            if kind == "array_value":
                below.append(value.array_value.values)
            elif kind == "kvlist_value":
                below.append([pair.value for pair in value.kvlist_value.values])
        if not below:
            return depth
        depth += 1
        level = [value for values in below for value in values]
    return depth
