"""Canonical columns: whatever dialect a span is written in, its row says it in the conventions' words.

Works on the flat keys and values of all attribute maps at once: both are dictionary-encoded, so every decision is made
once per distinct key, every conversion once per distinct value, and applied by index. Raw attributes are kept, except
message contents, which go to the contents table. A value that is not what its column holds becomes null, never an
error.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from surefoot.instrumentation import semconv
from surefoot.processors.dictionaries import plain_type
from surefoot.processors.genai.contents import ContentKeys, split_contents, split_event_contents, split_log_contents
from surefoot.processors.genai.dialects import DIALECTS, reading
from surefoot.processors.genai.resolve import NONE, Flat, Resolver, is_of, numbers_of, of_scopes, recognise
from surefoot.processors.genai.values import as_float, as_int, as_text, on_distinct
from surefoot.processors.lake.schema import CONTENTS, LOGS, SPANS

# Surefoot's own attributes, and error.type: the same in every dialect, and on spans of none.
COMMON: Final[dict[str, tuple[str, ...]]] = {
    "error_type": (semconv.ERROR_TYPE,),
    "task_class": (semconv.TASK_CLASS,),
    "task_id": (semconv.TASK_ID,),
    "consequence_class": (semconv.CONSEQUENCE_CLASS,),
    "intent_id": (semconv.INTENT_ID,),
    "run_group": (semconv.RUN_GROUP,),
    "repetition": (semconv.REPETITION,),
    "variant": (semconv.VARIANT,),
    "tool_effect": (semconv.TOOL_EFFECT,),
    "tool_dependency": (semconv.TOOL_DEPENDENCY,),
    "authority_domain": (semconv.AUTHORITY_DOMAIN,),
    "principal": (semconv.PRINCIPAL,),
    "checkpoint": (semconv.CHECKPOINT,),
    "confidence": (semconv.RUN_CONFIDENCE,),
    "boundary_id": (semconv.BOUNDARY_ID,),
    "mode": (semconv.MODE,),
    "sample_weight": (semconv.SAMPLE_WEIGHT,),
}


def canonical_spans(raw: pa.Table) -> tuple[pa.Table, pa.Table]:
    """Rows of the ``spans`` and ``contents`` tables from decoded spans (``otlp.decode_spans``).

    Text columns of ``spans`` are dictionary-encoded where they repeat, as the lake's commit takes them.
    """
    if raw.num_rows == 0:
        return SPANS.empty_table(), CONTENTS.empty_table()
    raw = raw.combine_chunks()
    maps = raw["attributes"].combine_chunks()
    flat = Flat(maps, raw["name"].combine_chunks())
    dialects = recognise(raw["scope_name"].combine_chunks(), flat)
    columns = _columns(Resolver(flat, dialects), raw.num_rows)
    columns["input_tokens"] = _with_cache(columns, dialects)
    columns["dialect"] = _dialect_names(dialects)
    columns["attribute_count"] = pa.array(np.diff(maps.offsets), pa.int64())
    contents_of = _contents_of(dialects)
    attributes, contents = split_contents(raw, maps, contents_of)
    events, event_contents = split_event_contents(raw, raw["events"].combine_chunks(), contents_of)
    given = {name: raw[name] for name in raw.column_names}
    rows = {**given, **columns, "attributes": attributes, "events": events}
    spans = pa.table({name: _typed(rows[name], kind) for name, kind in _SPAN_TYPES})
    return spans, pa.concat_tables([contents, event_contents])


def canonical_logs(raw: pa.Table) -> tuple[pa.Table, pa.Table]:
    """Rows of the ``logs`` and ``contents`` tables from decoded log records (``otlp.decode_logs``)."""
    if raw.num_rows == 0:
        return LOGS.empty_table(), CONTENTS.empty_table()
    if "fingerprint" not in raw.column_names:  # only a writer that looks for copies gives one
        raw = raw.append_column("fingerprint", pa.nulls(raw.num_rows, pa.int64()))
    raw = raw.combine_chunks()
    scopes = raw["scope_name"].combine_chunks().dictionary_encode()
    logs, contents = split_log_contents(raw, _contents_of(of_scopes(scopes)))
    return logs.select(LOGS.names).cast(LOGS), contents


def _columns(resolver: Resolver, rows: int) -> dict[str, pa.Array]:
    """All promoted columns, the operation first: what other columns are may depend on it."""
    columns = {"operation": _column("operation", resolver, rows)}
    resolver.tell_operations(columns["operation"])
    return columns | {name: _column(name, resolver, rows) for name in _PROMOTED if name != "operation"}


def _column(name: str, resolver: Resolver, rows: int) -> pa.Array:
    """The values of one column: of each row the best of the sources that its dialect names."""
    kind = SPANS.field(name).type
    texts = resolver.texts(name, COMMON.get(name, ()))
    if texts is None:
        return pa.nulls(rows, kind)
    values = on_distinct(_CONVERTERS[str(kind)], texts)
    if name in _CLEANERS:
        values = on_distinct(_CLEANERS[name], values)
    return values if kind == pa.string() else values.dictionary_decode()


def _cleaner(read: Callable[[str], str]) -> Callable[[pa.StringArray], pa.StringArray]:
    def clean(distinct: pa.StringArray) -> pa.StringArray:
        return pa.array(
            [read(text) or None if text is not None else None for text in distinct.to_pylist()], pa.string()
        )

    return clean


def _with_cache(columns: dict[str, pa.Array], dialects: Any) -> pa.Array:
    """Input tokens as the conventions count them: with what was read from a cache, or written to it."""
    excluding = is_of(dialects, [number for number, dialect in enumerate(DIALECTS) if dialect.input_excludes_cache])
    told = columns["input_tokens"]
    if not excluding.any():
        return told
    cached = pc.add(*(pc.fill_null(columns[name], 0) for name in ("cache_read_tokens", "cache_write_tokens")))
    return pc.if_else(pa.array(excluding), pc.add(told, cached), told)


def _contents_of(dialects: Any) -> ContentKeys:
    """Which keys are contents, and in which rows (None: all)."""
    bare = [(number, _BARE_CONTENTS[number]) for number in numbers_of(dialects) if number != NONE]
    return [(_CONTENTS, None), *((keys, dialects == number) for number, keys in bare if keys)]


def _dialect_names(dialects: Any) -> pa.DictionaryArray:
    names = list(dict.fromkeys(dialect.name for dialect in DIALECTS))
    code_of = np.array([names.index(dialect.name) for dialect in DIALECTS], np.int32)
    return pa.DictionaryArray.from_arrays(pa.array(code_of[dialects], mask=dialects == NONE), pa.array(names))


def _typed(column: Any, kind: pa.DataType) -> Any:
    return column if plain_type(column.type) == kind else column.cast(kind)


_CONVERTERS = {"string": as_text, "int64": as_int, "double": as_float}
_CLEANERS: Final = {
    "provider_name": _cleaner(reading.provider),
    "request_model": _cleaner(reading.model),
    "response_model": _cleaner(reading.model),
    "finish_reasons": _cleaner(reading.finish_reasons),
}
# Contents in every row: keys with a dot, since instrumentations write on each other's spans. Others in a dialect's own.
_CONTENTS: Final = frozenset(key for dialect in DIALECTS for key in dialect.contents if "." in key)
_BARE_CONTENTS: Final = [frozenset(key for key in dialect.contents if "." not in key) for dialect in DIALECTS]
_PROMOTED: Final = tuple(
    dict.fromkeys([*COMMON, *(name for dialect in DIALECTS for name in dialect.columns)]),
)
_SPAN_TYPES: Final = [(field.name, field.type) for field in SPANS]
