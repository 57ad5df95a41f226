"""Attribute pairs and values off the wire: each distinct one is read once, by numpy, and stands for all its copies.

The official descriptors are given to ptars with every KeyValue and AnyValue declared as ``bytes`` (the same wire type):
building a column for each of AnyValue's members cost 60 to 75 % of decoding. Attribute pairs repeat, so their bytes are
dictionary-encoded, and what follows works on the distinct ones and on integers.

Rule: numpy reads only the one layout that every encoder writes (fields in order, each once, nothing unknown) and checks
that it fills the pair to its last byte. Any other pair, and every list, map and bytes value, goes through upb, which
defines what a message means. Text is checked to be UTF-8 here, because ptars does not see it any more.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from google.protobuf import descriptor_pool
from google.protobuf.descriptor import FileDescriptor
from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, ArrayValue, KeyValue, KeyValueList
from ptars import HandlerPool

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

_AS_BYTES = frozenset({".opentelemetry.proto.common.v1.KeyValue", ".opentelemetry.proto.common.v1.AnyValue"})
_KEY, _VALUE = 0x0A, 0x12  # tags of KeyValue
_STRING, _BOOL, _INT, _DOUBLE = 0x0A, 0x10, 0x18, 0x21  # tags of AnyValue
_INLINE = 12  # bytes of a text that an Arrow view holds itself
_PADDING = 16


class Pairs(NamedTuple):
    """Attribute pairs, one after another."""

    keys: pa.DictionaryArray
    values: pa.DictionaryArray


@cache
def handler(message: Any) -> Any:
    """The decoder of a request class to Arrow, pairs and values left as bytes."""
    pool = descriptor_pool.DescriptorPool()
    _add(pool, message.DESCRIPTOR.file, set())
    descriptor = pool.FindMessageTypeByName(message.DESCRIPTOR.full_name)
    return HandlerPool([descriptor.file]).get_for_message(descriptor)


def _add(pool: descriptor_pool.DescriptorPool, file: FileDescriptor, done: set[str]) -> None:
    if file.name in done:
        return
    done.add(file.name)
    for dependency in file.dependencies:
        _add(pool, dependency, done)
    edited = FileDescriptorProto()
    file.CopyToProto(edited)
    for message in edited.message_type:
        for field in message.field:
            if field.type_name in _AS_BYTES:
                field.type = FieldDescriptorProto.TYPE_BYTES
                field.ClearField("type_name")
    pool.Add(edited)


def read_pairs(pairs: pa.BinaryArray) -> Pairs:
    """Serialised KeyValues as keys and values; a value that is not set is null."""
    encoded = pairs.dictionary_encode()
    codes = encoded.indices.to_numpy(zero_copy_only=False)
    data, begin, end = _bounds(encoded.dictionary)
    key_length = _at(data, begin + 1)
    tag_at = begin + 2 + key_length
    value, value_end, sound = _prefixed(data, tag_at + 1)
    regular = sound & (_at(data, begin) == _KEY) & (key_length < 0x80) & (_at(data, tag_at) == _VALUE)
    regular &= value_end == end
    keys = _slices(data, begin + 2, np.where(regular, key_length, 0))
    texts = _texts(data, np.where(regular, value, 0), np.where(regular, value_end, 0))
    odd = np.flatnonzero(~regular)
    if len(odd):
        read = [KeyValue.FromString(pair) for pair in encoded.dictionary.take(pa.array(odd)).to_pylist()]
        keys = _replaced(keys, odd, [pair.key for pair in read])
        texts = _replaced(texts, odd, [_text(pair.value) for pair in read])
    return Pairs(_spread(keys, codes), _spread(texts, codes))


def _spread(distinct: pa.StringArray, codes: Ints) -> pa.DictionaryArray:
    """The texts that the codes stand for; different pairs may have one key or one text."""
    encoded = distinct.dictionary_encode()
    return pa.DictionaryArray.from_arrays(encoded.indices.take(pa.array(codes)), encoded.dictionary)


def read_values(values: pa.BinaryArray) -> pa.StringArray:
    """Serialised AnyValues as text: text as it is, true/false, numbers in shortest form, bytes as base64, else JSON."""
    return _texts(*_bounds(values.fill_null(b"")))


def _bounds(array: pa.BinaryArray) -> tuple[npt.NDArray[np.uint8], Ints, Ints]:
    """The bytes behind an array, padded so that what looks a little beyond finds zeros, and where each item lies."""
    _, offsets, buffer = array.buffers()
    places = np.frombuffer(offsets, np.int32)[array.offset : array.offset + len(array) + 1].astype(np.int64)
    raw = np.frombuffer(buffer, np.uint8) if buffer is not None else np.empty(0, np.uint8)
    first, last = (int(places[0]), int(places[-1])) if len(array) else (0, 0)
    data = np.concatenate((raw[first:last], np.zeros(_PADDING, np.uint8)))
    return data, places[:-1] - first, places[1:] - first


def _at(data: npt.NDArray[np.uint8], places: Ints) -> Ints:
    return data.take(places, mode="clip").astype(np.int64)


def _prefixed(data: npt.NDArray[np.uint8], places: Ints) -> tuple[Ints, Ints, Flags]:
    """Length-prefixed bytes at ``places``: where they begin and end, and whether the length was one."""
    length = _at(data, places)
    begin = places + 1
    sound = np.ones(len(places), np.bool_)
    longer = np.flatnonzero(length >= 0x80)
    length[longer] &= 0x7F
    for shift in (7, 14, 21, 28):
        if len(longer) == 0:
            break
        byte = _at(data, begin[longer])
        length[longer] |= (byte & 0x7F) << shift
        begin[longer] += 1
        longer = longer[byte >= 0x80]
    sound[longer] = False
    return begin, begin + length, sound


def _texts(data: npt.NDArray[np.uint8], begin: Ints, end: Ints) -> pa.StringArray:
    tag, size = _at(data, begin), end - begin
    text, text_end, sound = _prefixed(data, begin + 1)
    is_text = sound & (tag == _STRING) & (size >= 2) & (text_end == end)
    readers: list[tuple[Flags, Callable[[npt.NDArray[np.uint8], Ints, Ints], pa.Array]]] = [
        ((tag == _INT) & (size >= 2) & _is_varint(data, begin + 1, end), _integers),
        ((tag == _BOOL) & (size == 2) & (_at(data, begin + 1) <= 1), _booleans),
        ((tag == _DOUBLE) & (size == 9), _doubles),
    ]
    rare = ~is_text & (size > 0)
    parts = [_slices(data, text, np.where(is_text, text_end - text, 0)), pa.nulls(1, pa.string())]
    places = np.where(is_text, np.arange(len(begin)), len(begin))
    following = len(begin) + 1
    for chosen, read in [*readers, (None, _rare)]:
        where = np.flatnonzero(rare if chosen is None else chosen)
        if len(where):
            rare[where] = False
            parts.append(read(data, begin[where], end[where]))
            places[where] = np.arange(following, following + len(where))
            following += len(where)
    if following == len(begin) + 1 and is_text.all():
        return parts[0]
    return pa.concat_arrays(parts).take(pa.array(places))


def _is_varint(data: npt.NDArray[np.uint8], begin: Ints, end: Ints) -> Flags:
    """Whether a number fills the stretch: at most ten bytes, all but the last with their high bit set."""
    fits = (end - begin >= 1) & (end - begin <= 10) & (_at(data, end - 1) < 0x80)
    for place in range(9):
        more = begin + place < end - 1
        if not more.any():
            break
        fits &= ~more | (_at(data, begin + place) >= 0x80)
    return fits


def _integers(data: npt.NDArray[np.uint8], begin: Ints, end: Ints) -> pa.StringArray:
    number = np.zeros(len(begin), np.uint64)
    for place in range(int((end - begin).max()) - 1):
        at = begin + 1 + place
        digits = np.where(at < end, _at(data, at) & 0x7F, 0).astype(np.uint64)
        number |= digits << np.uint64(7 * place)
    return pa.array(number.view(np.int64)).cast(pa.string())


def _booleans(data: npt.NDArray[np.uint8], begin: Ints, _end: Ints) -> pa.StringArray:
    return pa.array(_at(data, begin + 1) == 1).cast(pa.string())


def _doubles(data: npt.NDArray[np.uint8], begin: Ints, _end: Ints) -> pa.StringArray:
    raw = data[(begin + 1)[:, None] + np.arange(8)]
    return pa.array(raw.view("<f8").reshape(-1)).cast(pa.string())


def _rare(data: npt.NDArray[np.uint8], begin: Ints, end: Ints) -> pa.StringArray:
    whole = data.tobytes()
    values = [whole[first:last] for first, last in zip(begin.tolist(), end.tolist(), strict=True)]
    return pa.array([_text(AnyValue.FromString(value)) for value in values], pa.string())


def _slices(data: npt.NDArray[np.uint8], begin: Ints, length: Ints) -> pa.StringArray:
    """Stretches of the data as text; ArrowInvalid where that is not UTF-8."""
    views = np.zeros((len(begin), 16), np.uint8)
    begin = np.where(length, begin, 0)
    views[:, 4:] = np.lib.stride_tricks.sliding_window_view(data, _INLINE)[begin]
    views[:, 4:] *= np.arange(_INLINE) < length[:, None]
    words = views.view(np.int32)
    words[:, 0] = length
    out_of_line = np.flatnonzero(length > _INLINE)
    words[out_of_line, 2] = 0
    words[out_of_line, 3] = begin[out_of_line]
    buffers = [None, pa.py_buffer(views), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.binary_view(), len(begin), buffers).cast(pa.string())


def _replaced(array: pa.StringArray, places: Ints, texts: list[str | None]) -> pa.StringArray:
    order = np.arange(len(array))
    order[places] = len(array) + np.arange(len(places))
    return pa.concat_arrays([array, pa.array(texts, pa.string())]).take(pa.array(order))


def _text(value: AnyValue) -> str | None:
    kind = value.WhichOneof("value")
    if kind in (None, "string_value_strindex"):  # an index into a profile's table, which is not here
        return None
    if kind in ("bool_value", "int_value", "double_value"):
        return str(pa.scalar(getattr(value, kind)).cast(pa.string()).as_py())
    plain = plain_value(value)
    return plain if isinstance(plain, str) else json_text(plain)


def plain_value(value: AnyValue) -> Any:
    """What a value stands for, as JSON has it."""
    kind = value.WhichOneof("value")
    if kind in (None, "string_value_strindex"):
        return None
    content = getattr(value, kind)
    if isinstance(content, ArrayValue):
        return [plain_value(item) for item in content.values]
    if isinstance(content, KeyValueList):
        return {pair.key: plain_value(pair.value) for pair in content.values}
    return base64.b64encode(content).decode() if isinstance(content, bytes) else finite(content)


def finite(content: Any) -> Any:
    """JSON has no NaN and no infinity: they become text."""
    return str(content) if isinstance(content, float) and not math.isfinite(content) else content


def json_text(value: Any) -> str:
    """JSON, as short as it gets."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
