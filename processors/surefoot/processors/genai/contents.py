"""Message contents leave the attributes and go to a table of their own, with its own retention and access.

Rule: no reasoning is ever kept. Parts of type ``reasoning`` or ``thinking`` are taken out of a content before it is
stored; a content that mentions one and cannot be parsed is not stored at all.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from fnmatch import translate
from functools import lru_cache
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from surefoot.processors.dictionaries import codes_of
from surefoot.processors.genai.values import is_storable
from surefoot.processors.lake.schema import CONTENTS
from surefoot.processors.otlp.arrays import map_from, pairs_of

# For each set of keys and key patterns: the rows whose contents they name, or None for all rows.
ContentKeys = Sequence[tuple[frozenset[str], Any]]

_REASONING: Final = frozenset({"reasoning", "thinking", "redacted_thinking"})
_REASONING_KEYS: Final = frozenset(
    {"reasoning", "reasoning_content", "reasoning_details", "thinking", "thinking_blocks"}
)
# Such a word as a whole text, be it in JSON, in JSON inside of JSON text, or in a Python repr.
_MENTION: Final = re.compile(rf"""["']({"|".join(sorted(_REASONING | _REASONING_KEYS | {"thought"}))})\\*["']""")
# Older conventions send each message as a log event whose body is the message.
_MESSAGE_EVENTS = r"^gen_ai\.((system|user|assistant|tool)\.message|choice)$"


def split_contents(owners: pa.Table, maps: pa.MapArray, keys: ContentKeys) -> tuple[pa.MapArray, pa.Table]:
    """Attribute maps without contents, and the contents as rows. ``owners`` has one row per map."""
    kept, rows, names, values = _split(maps, keys)
    return kept, _rows(owners, rows, names, values)


def split_event_contents(owners: pa.Table, events: pa.ListArray, keys: ContentKeys) -> tuple[pa.ListArray, pa.Table]:
    """The same for the attributes of span events."""
    items = events.flatten()
    owner_of_event = pc.list_parent_indices(events).to_numpy(zero_copy_only=False)
    of_event = [(names, None if rows is None else rows[owner_of_event]) for names, rows in keys]
    kept, event_rows, names, values = _split(items.field("attributes"), of_event)
    if len(names) == 0:
        return events, CONTENTS.empty_table()
    struct = pa.StructArray.from_arrays(
        [items.field("name"), items.field("time_unix_nano"), kept], names=["name", "time_unix_nano", "attributes"]
    )
    offsets = pa.array(np.asarray(events.offsets) - events.offsets[0].as_py())
    return pa.ListArray.from_arrays(offsets, struct), _rows(owners, owner_of_event[event_rows], names, values)


def split_log_contents(logs: pa.Table, keys: ContentKeys) -> tuple[pa.Table, pa.Table]:
    """Log rows without contents, and the contents as rows: of their attributes, and the bodies of message events."""
    owners = logs.append_column("start_time", logs["time"])
    attributes, contents = split_contents(owners, logs["attributes"].combine_chunks(), keys)
    logs = logs.set_column(logs.schema.get_field_index("attributes"), "attributes", attributes)
    spoken = pc.fill_null(pc.match_substring_regex(logs["event_name"], _MESSAGE_EVENTS), fill_value=False)
    spoken = spoken.combine_chunks()
    if not pc.any(spoken).as_py():
        return logs, contents
    rows = np.flatnonzero(spoken.to_numpy(zero_copy_only=False))
    taken = logs.take(pa.array(rows))
    bodies = _rows(owners, rows, taken["event_name"].combine_chunks(), taken["body"].combine_chunks())
    body = pc.if_else(spoken, pa.scalar(None, pa.string()), logs["body"])
    return logs.set_column(logs.schema.get_field_index("body"), "body", body), pa.concat_tables([contents, bodies])


def _split(maps: pa.MapArray, wanted: ContentKeys) -> tuple[pa.MapArray, Any, pa.Array, pa.Array]:
    rows, (keys, values) = pairs_of(maps)
    codes, distinct = codes_of(keys), keys.dictionary.to_pylist()
    is_content = np.zeros(len(codes), np.bool_)
    for patterns, of_rows in wanted:
        named = np.array([_is_named(key, patterns) for key in distinct], np.bool_)
        if named.any():
            is_content |= named[codes] & (True if of_rows is None else of_rows[rows])
    if not is_content.any():
        return maps, rows[:0], pa.array([], pa.string()), pa.array([], pa.string())
    stay, go = pa.array(np.flatnonzero(~is_content)), pa.array(np.flatnonzero(is_content))
    kept = map_from(rows[~is_content], keys.take(stay), values.take(stay), len(maps))
    names, texts = (array.take(go).dictionary_decode() for array in (keys, values))
    return kept, rows[is_content], names, texts


@lru_cache(maxsize=1 << 16)
def _is_named(key: str, patterns: frozenset[str]) -> bool:
    return _pattern(patterns).fullmatch(key) is not None


@lru_cache(maxsize=64)
def _pattern(patterns: frozenset[str]) -> re.Pattern[str]:
    return re.compile("|".join(map(translate, patterns)) or r"(?!)")


def _rows(owners: pa.Table, rows: Any, names: pa.Array, values: pa.Array) -> pa.Table:
    values = without_reasoning(values)
    present = values.is_valid()
    rows = pa.array(rows).filter(present)
    owned = owners.select(["trace_id", "span_id", "start_time", "received_at", "source", "date"]).take(rows)
    table = owned.append_column("name", names.filter(present)).append_column("content", values.filter(present))
    return table.select(CONTENTS.names).cast(CONTENTS)


def without_reasoning(values: pa.StringArray) -> pa.StringArray:
    """Contents with their reasoning parts taken out; null where that is not possible."""
    mentions = pc.fill_null(pc.match_substring_regex(values, _MENTION.pattern), fill_value=False)
    if not pc.any(mentions).as_py():
        return values
    cleaned = [_clean(value) for value in values.filter(mentions).to_pylist()]
    return pc.replace_with_mask(values, mentions, pa.array(cleaned, pa.string()))


def _clean(value: str) -> str | None:
    """Structured text without its reasoning; None if it cannot be read. Other text is a person's or a model's words."""
    if not value.lstrip().startswith(("{", "[", '"')):
        return value
    try:
        text = json.dumps(_pruned(json.loads(value)), ensure_ascii=False)
        return text if is_storable(text) else json.dumps(json.loads(text))
    except (ValueError, RecursionError):
        return None


def _pruned(content: Any) -> Any:
    if isinstance(content, list):
        return [_pruned(item) for item in content if not _is_reasoning(item)]
    if isinstance(content, dict):
        if _is_reasoning(content):
            return None
        return {key: _pruned(item) for key, item in content.items() if key not in _REASONING_KEYS}
    if isinstance(content, str) and _MENTION.search(content):
        return _clean(content)
    return content


def _is_reasoning(item: Any) -> bool:
    """Whether this is a reasoning part, as the conventions, Anthropic, OpenAI, pydantic-ai or Google write it."""
    if not isinstance(item, dict):
        return False
    kinds = (item.get("type"), item.get("part_kind"))
    return item.get("thought") is True or any(isinstance(kind, str) and kind in _REASONING for kind in kinds)
