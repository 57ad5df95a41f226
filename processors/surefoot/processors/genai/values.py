"""Attribute text to typed columns, vectorised: right or null, never an error."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

# What exporters write when they have no value, or were told to hide it.
PLACEHOLDERS = pa.array(["", "<REDACTED>", "__REDACTED__", "[REDACTED]"])
_ODD = np.zeros(256, np.bool_)
_ODD[np.frombuffer(b'<_["', np.uint8)] = True
_HALVES = re.compile(r"[\ud800-\udfff]")
_INTEGER = r"^[+-]?[0-9]{1,18}(\.0+)?$"
_NUMBER = r"^-?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,9})?$"


def on_distinct(
    convert: Callable[[pa.Array], pa.Array], values: pa.DictionaryArray | pa.StringArray
) -> pa.DictionaryArray | pa.StringArray:
    """``convert`` applied once per distinct value."""
    if not pa.types.is_dictionary(values.type):
        return convert(values)
    converted = convert(values.dictionary)
    if converted is values.dictionary:
        return values
    # Two values may become one, or none, and a Parquet writer takes the dictionary at its word.
    new = converted.dictionary_encode()
    return pa.DictionaryArray.from_arrays(new.indices.take(values.indices), new.dictionary)


def as_text(values: pa.StringArray) -> pa.StringArray:
    """Text as it is; text that is JSON-encoded once more is unwrapped; a placeholder is null."""
    odd = pa.array(_may_be_odd(values))
    if not pc.any(odd).as_py():
        return values
    return pc.replace_with_mask(values, odd, _plain_text(values.filter(odd)))


def _may_be_odd(values: pa.StringArray) -> Any:
    """Whether each text is empty or begins like a placeholder or like JSON text: few do, and to look is cheap."""
    if values.null_count or not len(values):
        return np.ones(len(values), np.bool_)
    offsets = np.frombuffer(values.buffers()[1], np.int32)[values.offset : values.offset + len(values) + 1]
    text = np.frombuffer(values.buffers()[2] or b"", np.uint8)
    odd = offsets[:-1] == offsets[1:]
    if len(text):
        odd |= _ODD[text[np.minimum(offsets[:-1], len(text) - 1)]]
    return odd


def _plain_text(values: pa.StringArray) -> pa.StringArray:
    values = pc.if_else(pc.is_in(values, PLACEHOLDERS), pa.scalar(None, pa.string()), values)
    quoted = pc.fill_null(pc.and_(pc.starts_with(values, '"'), pc.ends_with(values, '"')), fill_value=False)
    if not pc.any(quoted).as_py():
        return values
    unquoted = [_unquoted(value) for value in values.filter(quoted).to_pylist()]
    return pc.replace_with_mask(values, quoted, pa.array(unquoted, pa.string()))


def as_int(values: pa.StringArray) -> pa.Int64Array:
    """Whole numbers written as such, as ``5.0``, or in quotes."""
    text = pc.utf8_trim(values, '" ')
    whole = pc.replace_substring_regex(_only(text, _INTEGER), r"\.0+$|\+", "")
    return whole.cast(pa.int64())


def as_float(values: pa.StringArray) -> pa.DoubleArray:
    """Finite numbers."""
    text = pc.utf8_trim(values, '" ')
    numbers = _only(text, _NUMBER).cast(pa.float64())
    return pc.if_else(pc.is_finite(numbers), numbers, pa.scalar(None, pa.float64()))


def _only(text: pa.StringArray, pattern: str) -> pa.StringArray:
    matches = pc.fill_null(pc.match_substring_regex(text, pattern), fill_value=False)
    return pc.if_else(matches, text, pa.scalar(None, pa.string()))


def _unquoted(value: str) -> str:
    try:
        inner = json.loads(value)
    except ValueError:
        return value
    return inner if isinstance(inner, str) and is_storable(inner) else value


def is_storable(text: str) -> bool:
    """Whether text can be UTF-8: JSON may spell half of a surrogate pair, which no table can hold."""
    return not _HALVES.search(text)
