"""Arrow building blocks of the decoder: ids to hex, attribute lists to maps, nested lists to rows.

Nothing here loops over spans. Text that repeats stays dictionary-encoded as far as the Parquet file, which takes the
dictionary as it is. Attributes come as bytes from protobuf bodies (:mod:`surefoot.processors.otlp.wire`) and as structs
from JSON ones.
"""

from __future__ import annotations

import base64
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue

from surefoot.processors.dictionaries import codes_of
from surefoot.processors.otlp.wire import Pairs, finite, json_text, plain_value, read_pairs, read_values

LARGEST_INT = 2**63 - 1
_HEX = np.frombuffer(b"".join(f"{byte:02x}".encode() for byte in range(256)), dtype=np.uint16)
_LARGEST_TABLE = 1 << 26  # cells


def hex_text(ids: pa.BinaryArray) -> pa.StringArray:
    """Binary ids as lower-case hex text; an empty or missing id is null."""
    ids = ids.fill_null(b"")
    offsets = np.frombuffer(ids.buffers()[1], np.int32)[ids.offset : ids.offset + len(ids) + 1]
    data = ids.buffers()[2]
    raw = np.frombuffer(data, np.uint8)[offsets[0] : offsets[-1]] if data is not None else np.empty(0, np.uint8)
    text = pa.py_buffer(_HEX[raw].view(np.uint8))
    doubled = (offsets - offsets[0]) * 2
    array = pa.StringArray.from_buffers(len(ids), pa.py_buffer(doubled), text)
    empty = doubled[1:] == doubled[:-1]
    return pc.if_else(pa.array(empty), pa.scalar(None, pa.string()), array) if empty.any() else array


def int64(unsigned: pa.Array) -> pa.Array:
    """Unsigned 64-bit numbers as signed ones; what does not fit becomes the largest that does."""
    return pa.array(
        np.minimum(unsigned.fill_null(0).to_numpy(zero_copy_only=False), np.uint64(LARGEST_INT)).astype(np.int64)
    )


def microseconds(nanos: pa.Array) -> pa.Array:
    """Nanoseconds since the epoch as timestamp[us, UTC], rounded down."""
    return pc.divide(nanos, 1000).cast(pa.timestamp("us", tz="UTC"))


def expand(lists: pa.Array) -> tuple[pa.Array, np.ndarray[Any, np.dtype[np.int64]]]:
    """The items of all lists, one after another, and for each item the number of its list."""
    return lists.flatten(), pc.list_parent_indices(lists).to_numpy(zero_copy_only=False)


def offsets_of(lists: pa.Array) -> pa.Array:
    """Offsets of the lists into their flattened items; a missing list is an empty one."""
    lengths = pc.fill_null(pc.list_value_length(lists), 0).to_numpy(zero_copy_only=False)
    return pa.array(np.concatenate(([0], np.cumsum(lengths))).astype(np.int32))


def attribute_maps(lists: pa.Array) -> pa.MapArray:
    """Lists of OTLP KeyValue as maps of dictionary-encoded text. Of a key that stands twice the last value counts."""
    items = lists.flatten()
    pairs = read_pairs(items) if pa.types.is_binary(items.type) else _pairs_of_structs(items)
    offsets = offsets_of(lists)
    owners = np.repeat(np.arange(len(lists)), np.diff(offsets))
    return _without_repeated_keys(owners, pairs, len(lists)) or pa.MapArray.from_arrays(offsets, *pairs)


def _pairs_of_structs(items: pa.StructArray) -> Pairs:
    return Pairs(items.field("key").dictionary_encode(), value_text(items.field("value")).dictionary_encode())


def pairs_of(maps: pa.MapArray) -> tuple[np.ndarray[Any, np.dtype[np.int64]], Pairs]:
    """For each pair of all maps its row, and the pairs."""
    offsets = np.asarray(maps.offsets)
    first, last = int(offsets[0]), int(offsets[-1])
    pairs = Pairs(maps.keys.slice(first, last - first), maps.items.slice(first, last - first))
    return np.repeat(np.arange(len(maps)), np.diff(offsets)), pairs


def map_from(owners: Any, keys: pa.Array, values: pa.Array, rows: int) -> pa.MapArray:
    """Maps from flat keys and values, of which ``owners`` (ascending) says the row."""
    offsets = np.concatenate(([0], np.cumsum(np.bincount(owners, minlength=rows)))).astype(np.int32)
    return pa.MapArray.from_arrays(pa.array(offsets), keys, values)


def first_value(maps: pa.MapArray, key: str) -> pa.DictionaryArray:
    """The value of ``key`` in each map, or null."""
    rows, (keys, values) = pairs_of(maps)
    at = np.full(len(maps), -1)
    code = keys.dictionary.index(key).as_py()
    if code >= 0:
        where = np.flatnonzero(codes_of(keys) == code)
        at[rows[where]] = where
    return values.take(pa.array(at, mask=at < 0))


def _without_repeated_keys(owners: Any, pairs: Pairs, rows: int) -> pa.MapArray | None:
    distinct = max(1, len(pairs.keys.dictionary))
    codes = owners * distinct + codes_of(pairs.keys)
    if rows * distinct <= _LARGEST_TABLE:  # ten times as fast as sorting
        seen = np.zeros(rows * distinct, np.bool_)
        seen[codes] = True
        if np.count_nonzero(seen) == len(codes):
            return None
    reversed_unique = np.unique(codes[::-1], return_index=True)[1]
    if len(reversed_unique) == len(codes):
        return None
    kept = np.sort(len(codes) - 1 - reversed_unique)
    taken = pa.array(kept)
    return map_from(owners[kept], pairs.keys.take(taken), pairs.values.take(taken), rows)


def value_text(values: pa.Array) -> pa.StringArray:
    """AnyValues as text: text as it is, true/false, numbers in shortest form, bytes as base64, the rest as JSON."""
    if pa.types.is_binary(values.type):
        return read_values(values)
    text = pc.coalesce(
        values.field("string_value"),
        values.field("bool_value").cast(pa.string()),
        values.field("int_value").cast(pa.string()),
        values.field("double_value").cast(pa.string()),
    )
    rare = pc.and_(
        pc.is_null(text),
        pc.or_(
            pc.is_valid(values.field("bytes_value")),
            pc.or_(pc.is_valid(values.field("array_value")), pc.is_valid(values.field("kvlist_value"))),
        ),
    )
    where = np.flatnonzero(rare.to_numpy(zero_copy_only=False))
    if len(where) == 0:
        return text
    taken = values.take(pa.array(where))
    replaced = [_rare_text(item) for item in taken.to_pylist()]
    return pc.replace_with_mask(text, rare, pa.array(replaced, pa.string()))


def _rare_text(value: dict[str, Any]) -> str:
    plain = _plain_row(value)
    return plain if isinstance(plain, str) else json_text(plain)


def _plain_row(value: dict[str, Any] | bytes | None) -> Any:
    """An AnyValue as the decoder gave it: a row of its fields, or bytes where it stopped descending."""
    if value is None:
        return None
    if isinstance(value, bytes):
        return plain_value(AnyValue.FromString(value))
    if value["array_value"] is not None:
        return [_plain_row(item) for item in value["array_value"]["values"] or []]
    if value["kvlist_value"] is not None:
        return dict(_pair(item) for item in value["kvlist_value"]["values"] or [])
    if value["bytes_value"] is not None:
        return base64.b64encode(value["bytes_value"]).decode()
    scalars = (value[name] for name in ("string_value", "bool_value", "int_value", "double_value"))
    return finite(next((scalar for scalar in scalars if scalar is not None), None))


def _pair(item: dict[str, Any] | bytes) -> tuple[str, Any]:
    if isinstance(item, bytes):
        pair = KeyValue.FromString(item)
        return pair.key, plain_value(pair.value)
    return item["key"] or "", _plain_row(item["value"])
