"""OTLP/JSON to protobuf messages, strict where the protocol is strict.

The generic protobuf JSON parser cannot be used: it reads hex ids as base64 (24 wrong bytes and no error), accepts enum
names and snake_case keys. Rules (OTLP specification, "JSON Protobuf Encoding"): ids are hex in any case, enums are
integers only, 64-bit integers may be text or numbers, bytes are base64, keys are lowerCamelCase, unknown keys
are ignored.

An id that is no hex becomes NOT_HEX, whose length no id has: validation then rejects that span alone and not its batch.
"""

from __future__ import annotations

import base64
import binascii
import re
from functools import cache
from typing import Any

import orjson
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message

from surefoot.collector.errors import BadRequestError

_HEX_FIELDS = frozenset({"trace_id", "span_id", "parent_span_id"})
NOT_HEX = b"not hex"
_INTEGER_TEXT = re.compile(r"-?[0-9]{1,20}", re.ASCII)
_NUMBER_TEXT = re.compile(r"-?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)?", re.ASCII)
# upb refuses AnyValue nested about 100 deep; each level is two messages here.
_DEEPEST = 250

_INTEGERS = {
    FieldDescriptor.CPPTYPE_INT32: (-(2**31), 2**31 - 1),
    FieldDescriptor.CPPTYPE_INT64: (-(2**63), 2**63 - 1),
    FieldDescriptor.CPPTYPE_UINT32: (0, 2**32 - 1),
    FieldDescriptor.CPPTYPE_UINT64: (0, 2**64 - 1),
    FieldDescriptor.CPPTYPE_ENUM: (-(2**31), 2**31 - 1),
}
_FLOATS = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}


def parse(body: bytes, message: Message) -> None:
    """Fill ``message`` from JSON. Raises BadRequestError naming the place and what was expected there."""
    try:
        data = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise BadRequestError(f"The body is not JSON: {error}.") from error
    if not isinstance(data, dict):
        raise BadRequestError(f"The body must be a JSON object, it is {_kind(data)}.")
    fill(message, data, "")


@cache
def _fields(descriptor: Descriptor) -> dict[str, FieldDescriptor]:
    return {field.json_name: field for field in descriptor.fields}


def fill(message: Message, content: Any, path: str, levels: int = _DEEPEST) -> None:
    """Fill a message from parsed JSON, at most so many ``levels`` deep. ``path`` is told when something is wrong.

    Of two members of a oneof, which the protocol does not allow, the one with the lower number counts.
    """
    data = _object(content, path)
    if levels < 0:
        raise BadRequestError(f"{path[:80]}...: nested too deeply.")
    fields = _fields(message.DESCRIPTOR)
    for key, value in data.items():
        field = fields.get(key)
        if field is None or value is None or _is_taken(message, field):  # unknown keys are ignored; null is the default
            continue
        place = f"{path}.{key}" if path else key
        if field.is_repeated:
            _fill_list(message, field, value, place, levels)
        elif field.message_type is not None:
            child = getattr(message, field.name)
            child.SetInParent()
            fill(child, value, place, levels - 1)
        else:
            setattr(message, field.name, _scalar(field, value, place))


def _is_taken(message: Message, field: FieldDescriptor) -> bool:
    if field.containing_oneof is None:
        return False
    other = message.WhichOneof(field.containing_oneof.name)
    return other is not None and message.DESCRIPTOR.fields_by_name[other].number < field.number


def _fill_list(message: Message, field: FieldDescriptor, value: Any, place: str, levels: int) -> None:
    if not isinstance(value, list):
        raise BadRequestError(f"{place}: expected a list, got {_kind(value)}.")
    target = getattr(message, field.name)
    if field.message_type is None:
        target.extend([_scalar(field, item, f"{place}[{n}]") for n, item in enumerate(value)])
        return
    for number, item in enumerate(value):
        where = f"{place}[{number}]"
        fill(target.add(), item, where, levels - 1)


def _scalar(field: FieldDescriptor, value: Any, place: str) -> Any:
    kind = field.cpp_type
    if kind in _INTEGERS:
        return _integer(value, place, kind)
    if kind in (FieldDescriptor.CPPTYPE_DOUBLE, FieldDescriptor.CPPTYPE_FLOAT):
        return _float(value, place)
    if kind == FieldDescriptor.CPPTYPE_BOOL:
        if not isinstance(value, bool):
            raise BadRequestError(f"{place}: expected true or false, got {_kind(value)}.")
        return value
    if not isinstance(value, str):
        raise BadRequestError(f"{place}: expected text, got {_kind(value)}.")
    if field.type != FieldDescriptor.TYPE_BYTES:
        return value
    return _hex(value) if field.name in _HEX_FIELDS else _base64(value, place)


def _integer(value: Any, place: str, kind: int) -> int:
    low, high = _INTEGERS[kind]
    if isinstance(value, str) and kind != FieldDescriptor.CPPTYPE_ENUM:
        if _INTEGER_TEXT.fullmatch(value) is None:
            raise BadRequestError(f"{place}: {value[:40]!r} is not an integer.")
        value = int(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool):
        raise BadRequestError(f"{place}: expected an integer, got {_kind(value)}.")
    if not low <= value <= high:
        raise BadRequestError(f"{place}: {value} does not fit, the range is {low} to {high}.")
    return value


def _float(value: Any, place: str) -> float:
    if isinstance(value, str):
        if value in _FLOATS:
            return _FLOATS[value]
        if _NUMBER_TEXT.fullmatch(value) is None:
            raise BadRequestError(f"{place}: {value[:40]!r} is not a number.")
        return float(value)
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        raise BadRequestError(f"{place}: expected a number, got {_kind(value)}.")
    return float(value)


def _hex(value: str) -> bytes:
    try:
        return binascii.unhexlify(value)  # unlike bytes.fromhex it refuses spaces
    except ValueError:
        return NOT_HEX


def _base64(value: str, place: str) -> bytes:
    try:
        # Both alphabets and missing padding are allowed by the protobuf JSON mapping.
        return base64.b64decode(value.replace("-", "+").replace("_", "/") + "=" * (-len(value) % 4), validate=True)
    except binascii.Error as error:
        raise BadRequestError(f"{place}: not base64 ({error}).") from error


def _object(value: Any, place: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise BadRequestError(f"{place}: expected an object, got {_kind(value)}.")
    return value


def _kind(value: Any) -> str:
    names = {dict: "an object", list: "a list", str: "text", bool: "a boolean", int: "a number", float: "a number"}
    return "null" if value is None else names.get(type(value), type(value).__name__)
