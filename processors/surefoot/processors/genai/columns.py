"""Canonical columns: whatever dialect a span is written in, its row says it in the conventions' words.

Works on the flat keys and values of all attribute maps at once: keys are dictionary-encoded, so every decision is made
once per distinct key and applied by index. Raw attributes are kept, except message contents, which go to the contents
table. A value that is not what its column holds becomes null, never an error.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from surefoot.instrumentation import semconv
from surefoot.processors.genai.contents import split_contents, split_event_contents, split_log_contents
from surefoot.processors.genai.dialects import DIALECTS, otel_genai
from surefoot.processors.genai.values import as_float, as_int, as_json_list, as_text, renamed
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

# Older and library spellings of gen_ai.provider.name (conventions' migration guide).
PROVIDERS: Final[dict[str, str | None]] = {
    "vertex_ai": "gcp.vertex_ai",
    "gemini": "gcp.gemini",
    "az.ai.inference": "azure.ai.inference",
    "az.ai.openai": "azure.ai.openai",
    "xai": "x_ai",
    # Frameworks that write themselves here.
    **dict.fromkeys(
        (
            "langchain",
            "langgraph",
            "crewai",
            "strands-agents",
            "microsoft.agent_framework",
            "pydantic-ai",
            "gcp.vertex.agent",
        )
    ),
}

_NONE: Final = -1  # the code of a span that no dialect recognises


def canonical_spans(raw: pa.Table) -> tuple[pa.Table, pa.Table]:
    """Rows of the ``spans`` and ``contents`` tables from decoded spans (``otlp.decode_spans``)."""
    if raw.num_rows == 0:
        return SPANS.empty_table(), CONTENTS.empty_table()
    raw = raw.combine_chunks()
    flat = _Flat(raw["attributes"].combine_chunks())
    dialects = _recognise(raw["scope_name"].combine_chunks(), flat, raw.num_rows)
    columns = {name: _column(name, flat, dialects, raw.num_rows) for name in _PROMOTED}
    columns["operation"] = _operations(columns["operation"], dialects)
    columns["provider_name"] = renamed(columns["provider_name"], PROVIDERS)
    columns["finish_reasons"] = as_json_list(columns["finish_reasons"])
    names = pa.array([dialect.name for dialect in DIALECTS])
    columns["dialect"] = names.take(pa.array(dialects, mask=dialects == _NONE))
    contents_of = [(otel_genai.CONTENTS, None)]
    contents_of += [(dialect.contents, dialects == number) for number, dialect in enumerate(DIALECTS)]
    attributes, contents = split_contents(raw, raw["attributes"].combine_chunks(), contents_of)
    events, event_contents = split_event_contents(raw, raw["events"].combine_chunks(), contents_of)
    given = {name: raw[name] for name in raw.column_names}
    rows = {**given, **columns, "attributes": attributes, "events": events}
    spans = pa.table([_typed(rows[name], kind) for name, kind in _SPAN_TYPES], schema=SPANS)
    return spans, pa.concat_tables([contents, event_contents])


def canonical_logs(raw: pa.Table) -> tuple[pa.Table, pa.Table]:
    """Rows of the ``logs`` and ``contents`` tables from decoded log records (``otlp.decode_logs``)."""
    if raw.num_rows == 0:
        return LOGS.empty_table(), CONTENTS.empty_table()
    logs, contents = split_log_contents(raw.combine_chunks(), [(otel_genai.CONTENTS, None)])
    return logs.select(LOGS.names).cast(LOGS), contents


class _Flat:
    """All attributes of all rows, one after another."""

    def __init__(self, maps: pa.MapArray) -> None:
        offsets = np.asarray(maps.offsets)
        first, last = int(offsets[0]), int(offsets[-1])
        encoded = maps.keys.slice(first, last - first).dictionary_encode()
        self.values = maps.items.slice(first, last - first)
        self.keys: list[str] = encoded.dictionary.to_pylist()
        self.codes = encoded.indices.to_numpy(zero_copy_only=False)
        self.rows = np.repeat(np.arange(len(maps)), np.diff(offsets))
        self.code_of = {key: code for code, key in enumerate(self.keys)}


def _recognise(scopes: pa.StringArray, flat: _Flat, rows: int) -> Any:
    """For each row the index of its dialect, or _NONE. Scope names count before marker attributes."""
    found = np.full(rows, _NONE)
    encoded = scopes.dictionary_encode()
    scope_codes = encoded.indices.fill_null(_NONE).to_numpy(zero_copy_only=False)
    for number in reversed(range(len(DIALECTS))):
        dialect = DIALECTS[number]
        marked = [code for code, key in enumerate(flat.keys) if dialect.has_marker(key)]
        found[flat.rows[np.isin(flat.codes, marked)]] = number
    for number in reversed(range(len(DIALECTS))):
        named = [c for c, scope in enumerate(encoded.dictionary.to_pylist()) if DIALECTS[number].has_scope(scope)]
        found[np.isin(scope_codes, named)] = number
    return found


def _column(name: str, flat: _Flat, dialects: Any, rows: int) -> pa.Array:
    """The values of one column: of each row the best of the keys that its dialect names."""
    at = np.full(rows, _NONE)
    if name in COMMON:
        for key in reversed(COMMON[name]):
            _note(at, key, flat, None)
    for number, dialect in enumerate(DIALECTS):
        for key in reversed(dialect.columns.get(name, ())):
            _note(at, key, flat, dialects == number)
    if (at == _NONE).all():
        return pa.nulls(rows, SPANS.field(name).type)
    values = flat.values.take(pa.array(at, mask=at == _NONE))
    return _CONVERTERS[str(SPANS.field(name).type)](values)


def _note(at: Any, key: str, flat: _Flat, among: Any | None) -> None:
    """Remember where each row has ``key``, for the rows in ``among``."""
    code = flat.code_of.get(key)
    if code is None:
        return
    where = np.flatnonzero(flat.codes == code)
    rows = flat.rows[where]
    if among is not None:
        chosen = among[rows]
        where, rows = where[chosen], rows[chosen]
    at[rows] = where


def _operations(column: pa.Array, dialects: Any) -> pa.Array:
    for number, dialect in enumerate(DIALECTS):
        if dialect.operations:
            own = pa.array(dialects == number)
            column = pc.if_else(own, renamed(column, dialect.operations), column)
    return column


def _typed(column: Any, kind: pa.DataType) -> Any:
    return column if column.type == kind else column.cast(kind)


_CONVERTERS = {"string": as_text, "int64": as_int, "double": as_float}
_PROMOTED: Final = tuple(
    dict.fromkeys([*COMMON, *(name for dialect in DIALECTS for name in dialect.columns)]),
)
_SPAN_TYPES: Final = [(field.name, field.type) for field in SPANS]
