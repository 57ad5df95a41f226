"""Requests kept as canonical JSON, decoded to the nested Arrow that protobuf bodies give.

Contract: :func:`resource_groups` gives, for bodies that the collector's ``json_typed`` wrote, the lists of structs that
ptars gives for the same requests as protobuf, without the fields that no table has. From there on both take the same
way, so a cell cannot depend on the encoding. :func:`each_encoding` makes a decoder of one encoding one of both.

Rule: one body is one line, and its shape is known before it is read. Arrow's JSON reader refuses a key that stands
twice and any value of another type, which is why the collector writes bodies anew before it acknowledges them. 64-bit
integers are read as decimals, the one type of which it takes text and numbers alike.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from functools import cache, wraps
from typing import Final

import numpy as np
import pyarrow as pa
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from pyarrow import json

from surefoot.collector.segment import Encoding, Record
from surefoot.processors.errors import DecodeError

Decode = Callable[[Sequence[Record]], pa.Table]

_KIND: Final = FieldDescriptor
_WIDE: Final = pa.decimal128(20, 0)
_TYPES: Final = {
    _KIND.CPPTYPE_INT32: pa.int32(),
    _KIND.CPPTYPE_ENUM: pa.int32(),
    _KIND.CPPTYPE_UINT32: pa.uint32(),
    _KIND.CPPTYPE_INT64: pa.int64(),
    _KIND.CPPTYPE_UINT64: pa.uint64(),
    _KIND.CPPTYPE_DOUBLE: pa.float64(),
    _KIND.CPPTYPE_BOOL: pa.bool_(),
    _KIND.CPPTYPE_STRING: pa.string(),
}
_DEFAULTS: Final = {_KIND.CPPTYPE_STRING: "", _KIND.CPPTYPE_BOOL: False, _KIND.CPPTYPE_DOUBLE: 0.0}
_IDS: Final = frozenset({"trace_id", "span_id", "parent_span_id"})
_WITHOUT_SHAPE: Final = frozenset({"ArrayValue", "KeyValueList"})
# No table has these, and each would cost a column.
_UNREAD: Final = frozenset(
    {
        *("schema_url", "entity_refs", "exemplars", "flags", "dropped_events_count", "dropped_links_count"),
        *(
            "string_value_strindex",
            "key_strindex",
            "description",
            "metadata",
            "quantile_values",
            "positive",
            "negative",
        ),
        *("scale", "zero_count", "zero_threshold"),
    }
)
_DIGITS: Final = np.full(256, 0, np.uint8)
_DIGITS[np.frombuffer(b"0123456789abcdef", np.uint8)] = np.arange(16)
_DIGITS[np.frombuffer(b"ABCDEF", np.uint8)] = np.arange(10, 16)


def each_encoding(decode: Decode) -> Decode:
    """A decoder that takes records of any encoding, from one that takes records of one encoding at a time."""

    @wraps(decode)
    def decoded(records: Sequence[Record]) -> pa.Table:
        places = [[n for n, record in enumerate(records) if record.encoding is encoding] for encoding in Encoding]
        if sum(map(bool, places)) <= 1:
            return decode(records)
        tables: list[pa.Table] = []
        errors: list[DecodeError] = []
        for chosen in places:
            try:
                tables.append(decode([records[place] for place in chosen]))
            except DecodeError as error:
                errors.append(DecodeError(str(error), [chosen[place] for place in error.places]))
        if errors:
            raise DecodeError("; ".join(map(str, errors)), [place for error in errors for place in error.places])
        return pa.concat_tables(tables)

    return decoded


def resource_groups(records: Sequence[Record], message: Descriptor, field: str) -> pa.ListArray:
    """For each record the list of its resource groups. Raises DecodeError naming those that cannot be read."""
    try:
        return _groups([record.body for record in records], message, field)
    except pa.ArrowInvalid:
        refused = {}
        for place, record in enumerate(records):
            try:
                _groups([record.body], message, field)
            except pa.ArrowInvalid as error:
                refused[place] = f"the one received at {record.received_unix_nano} from {record.source}: {error}"
        if not refused:
            raise
        text = f"Cannot decode {len(refused)} of {len(records)} {message.name}: {'; '.join(refused.values())}"
        raise DecodeError(text, list(refused)) from None


def _groups(bodies: Sequence[bytes], message: Descriptor, field: str) -> pa.ListArray:
    text = b"\n".join(bodies)
    table = json.read_json(
        pa.BufferReader(text),
        read_options=json.ReadOptions(use_threads=False, block_size=len(text) + 1),
        parse_options=json.ParseOptions(explicit_schema=_schema(message, field), unexpected_field_behavior="ignore"),
    )
    if table.num_rows != len(bodies):
        raise pa.ArrowInvalid(f"{len(bodies)} bodies have {table.num_rows} lines")
    return _shaped(table.column(0).combine_chunks(), message.fields_by_name[field])


@cache
def _schema(message: Descriptor, field: str) -> pa.Schema:
    top = message.fields_by_name[field]
    return pa.schema([(top.json_name, _written(top))])


def _read_fields(message: Descriptor) -> list[FieldDescriptor]:
    return [field for field in message.fields if field.name not in _UNREAD]


def _written(field: FieldDescriptor) -> pa.DataType:
    """The type of a field as it stands in the text."""
    kind: pa.DataType
    if field.message_type is None:
        kind = _TYPES.get(field.cpp_type, pa.string())
        kind = _WIDE if kind in (pa.int64(), pa.uint64()) else pa.string() if field.type == _KIND.TYPE_BYTES else kind
    elif field.message_type.name in _WITHOUT_SHAPE:
        kind = pa.struct([("values", pa.list_(pa.string()))])
    else:
        kind = pa.struct([(child.json_name, _written(child)) for child in _read_fields(field.message_type)])
    return pa.list_(kind) if field.is_repeated else kind


def _shaped(array: pa.Array, field: FieldDescriptor) -> pa.Array:
    """A field as the text had it, with names, types and defaults of protobuf."""
    if not field.is_repeated:
        return _one(array, field)
    # Without the nulls: protobuf knows no missing list, only an empty one.
    return pa.ListArray.from_arrays(array.offsets, _one(array.values, field))


def _one(array: pa.Array, field: FieldDescriptor) -> pa.Array:
    if field.message_type is None:
        return _scalar(array, field)
    missing = array.is_null() if array.null_count else None
    if field.message_type.name in _WITHOUT_SHAPE:
        values = array.field(0)
        lists = pa.ListArray.from_arrays(values.offsets, _from_base64(values.values))
        return pa.StructArray.from_arrays([lists], ["values"], mask=missing)
    fields = _read_fields(field.message_type)
    children = [_shaped(array.field(place), child) for place, child in enumerate(fields)]
    return pa.StructArray.from_arrays(children, [child.name for child in fields], mask=missing)


def _scalar(array: pa.Array, field: FieldDescriptor) -> pa.Array:
    if field.name in _IDS:
        return _from_hex(array)
    if field.type == _KIND.TYPE_BYTES:
        return _from_base64(array)
    kind = _TYPES[field.cpp_type]
    values = array if array.type == kind else array.cast(kind)
    # What may be missing, such as a member of a oneof, stays so; of the rest protobuf knows no absence.
    if values.null_count == 0 or field.has_presence or field.is_repeated:
        return values
    return values.fill_null(_DEFAULTS.get(field.cpp_type, 0))


def _from_hex(texts: pa.StringArray) -> pa.BinaryArray:
    texts = texts.fill_null("")
    offsets = np.frombuffer(texts.buffers()[1], np.int32)[texts.offset : texts.offset + len(texts) + 1]
    data = texts.buffers()[2]
    raw = np.frombuffer(data, np.uint8)[offsets[0] : offsets[-1]] if data is not None else np.empty(0, np.uint8)
    digits = _DIGITS[raw]
    packed = digits[0::2] << 4 | digits[1::2]
    halved = ((offsets - offsets[0]) // 2).astype(np.int32)
    return pa.BinaryArray.from_buffers(pa.binary(), len(texts), [None, pa.py_buffer(halved), pa.py_buffer(packed)])


def _from_base64(texts: pa.StringArray) -> pa.BinaryArray:
    """Values of arrays and maps, and bytes: rare, so one by one."""
    if texts.null_count == len(texts):
        return pa.nulls(len(texts), pa.binary())
    return pa.array([None if text is None else base64.b64decode(text) for text in texts.to_pylist()], pa.binary())
