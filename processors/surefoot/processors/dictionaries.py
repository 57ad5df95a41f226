"""Dictionary-encoded text: how the writer carries what repeats, from the wire to the Parquet file.

Rule: a dictionary holds each text once, and only text that some row has. A Parquet writer takes a dictionary at its
word: an entry that stands twice shifts all that follow, and one that no row uses, such as the content of a message or
of a row that was dropped, would be written to the file and outlive every erasure.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa


def codes_of(array: pa.DictionaryArray) -> Any:
    """The indices into the dictionary; -1 where there is no value."""
    indices = array.indices.fill_null(-1) if array.null_count else array.indices
    return indices.to_numpy(zero_copy_only=False)


def picked(array: pa.DictionaryArray, at: Any) -> pa.DictionaryArray:
    """The items at these places (below 0: null), with a dictionary of what they use."""
    codes = np.where(at < 0, -1, codes_of(array)[at]) if len(array) else np.full(len(at), -1)
    return _with_codes(array, codes)


def compacted(array: pa.Array) -> pa.Array:
    """The same values; every dictionary in it, at any depth, holds only what is used."""
    kind = array.type
    if pa.types.is_dictionary(kind):
        codes = codes_of(array)
        return array if _used(array, codes)[:-1].all() else _with_codes(array, codes)
    if kind == plain_type(kind):
        return array
    if pa.types.is_map(kind):
        offsets, first, last = _offsets(array)
        keys, items = (compacted(child.slice(first, last - first)) for child in (array.keys, array.items))
        return pa.MapArray.from_arrays(offsets, keys, items)
    if pa.types.is_list(kind):
        offsets, first, last = _offsets(array)
        values = compacted(array.values.slice(first, last - first))
        mask = array.is_null() if array.null_count else None
        return pa.ListArray.from_arrays(offsets, values, mask=mask)
    children = [compacted(child) for child in array.flatten()]
    mask = array.is_null() if array.null_count else None
    return pa.StructArray.from_arrays(children, [field.name for field in kind], mask=mask)


def plain_type(kind: pa.DataType) -> pa.DataType:
    """The type with dictionary-encoded text, at any depth, as the text that every reader of the file finds."""
    if pa.types.is_dictionary(kind):
        return kind.value_type
    if pa.types.is_map(kind):
        return pa.map_(plain_type(kind.key_type), plain_type(kind.item_type))
    if pa.types.is_list(kind):
        return pa.list_(plain_type(kind.value_type))
    if pa.types.is_struct(kind):
        return pa.struct([(field.name, plain_type(field.type)) for field in kind])
    return kind


def _used(array: pa.DictionaryArray, codes: Any) -> Any:
    used = np.zeros(len(array.dictionary) + 1, np.bool_)
    used[codes] = True  # -1 marks the last, which is no entry
    return used


def _with_codes(array: pa.DictionaryArray, codes: Any) -> pa.DictionaryArray:
    used = _used(array, codes)
    missing = codes < 0 if used[-1] else None
    if not used[:-1].all():
        array = pa.DictionaryArray.from_arrays(pa.array([], pa.int32()), array.dictionary.filter(pa.array(used[:-1])))
        codes = np.where(codes < 0, -1, np.cumsum(used)[codes] - 1)
    return pa.DictionaryArray.from_arrays(pa.array(codes.astype(np.int32, copy=False), mask=missing), array.dictionary)


def _offsets(array: pa.Array) -> tuple[pa.Array, int, int]:
    offsets = np.asarray(array.offsets)
    return pa.array(offsets - offsets[0]), int(offsets[0]), int(offsets[-1])
