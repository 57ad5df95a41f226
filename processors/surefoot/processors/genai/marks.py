"""The few attributes and events of a span that no column holds and that derivation reads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from surefoot.instrumentation import semconv
from surefoot.processors.genai.arrays import Bools, Ints, firsts, one_array, places_of, take
from surefoot.processors.genai.traces import Traces

RETRY_CAUSE: Final = "pydantic_ai.tool.retry.cause"
HANDOFF_SOURCE: Final = "gen_ai.agent.source"  # OpenLIT marks so the agent span that stands for a handoff
STRANDS_CANCELLED: Final = "strands.cancellation.type"  # the status stays unset then
KEYS: Final = (semconv.CANCELLED, RETRY_CAUSE, HANDOFF_SOURCE, STRANDS_CANCELLED)
_PREFIXES: Final = {"versions": semconv.VERSIONS_PREFIX, "strata": semconv.STRATUM_PREFIX}


@dataclass(frozen=True, slots=True)
class Entries:
    """Attributes whose names begin with one prefix, by node in order of nodes. ``key`` numbers ``names``."""

    node: Ints
    key: Ints
    value: pa.StringArray
    names: list[str]  # without the prefix


@dataclass(frozen=True, slots=True)
class Marks:
    """By node."""

    cancelled: Bools
    retries: Bools  # tools that asked for another try
    handoffs: Bools
    versions: Entries
    strata: Entries
    _traces: Traces

    def exceptions(self, nodes: Ints) -> pa.StringArray:
        """``exception.type`` of the last exception event of each node."""
        return _exception_types(self._traces.column("events", nodes))


def read_marks(traces: Traces) -> Marks:
    """Look through all attributes once."""
    size = len(traces.row)
    keys, values, rows = places_of(one_array(traces.table["attributes"]))
    node_of = np.full(traces.table.num_rows + 1, -1, np.int64)
    node_of[traces.row] = np.arange(size)
    node_of[-1] = -1  # missing parents are at row -1
    wanted = pc.or_(pc.is_in(keys, pa.array(KEYS)), pc.starts_with(keys, "surefoot."))
    at = np.flatnonzero(wanted.to_numpy(zero_copy_only=False))
    encoded = keys.take(pa.array(at)).dictionary_encode()
    code, names = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64), encoded.dictionary.to_pylist()
    node = node_of[rows[at]]
    chosen = np.flatnonzero(node >= 0)
    chosen = chosen[np.argsort(node[chosen], kind="stable")]
    at, code, node = at[chosen], code[chosen], node[chosen]

    def having(key: str) -> Any:
        return node[code == names.index(key)] if key in names else node[:0]

    cancelled, retries, handoffs = (np.zeros(size, np.bool_) for _ in range(3))
    if semconv.CANCELLED in names:
        told = code == names.index(semconv.CANCELLED)
        true = pc.equal(pc.utf8_lower(values.take(pa.array(at[told]))), "true")
        cancelled[node[told][true.to_numpy(zero_copy_only=False)]] = True
    cancelled[having(STRANDS_CANCELLED)] = True
    retries[having(RETRY_CAUSE)] = True
    handoffs[having(HANDOFF_SOURCE)] = True
    entries = {field: _entries(prefix, node, code, names, values, at) for field, prefix in _PREFIXES.items()}
    return Marks(cancelled, retries, handoffs, entries["versions"], entries["strata"], traces)


def _entries(prefix: str, node: Ints, code: Ints, names: list[str], values: pa.Array, at: Ints) -> Entries:
    of_prefix = sorted((name, number) for number, name in enumerate(names) if name.startswith(prefix))
    place = np.full(len(names) + 1, -1, np.int64)
    place[[number for _, number in of_prefix]] = np.arange(len(of_prefix))
    chosen = np.flatnonzero(place[code] >= 0)
    return Entries(
        node[chosen],
        place[code[chosen]],
        values.take(pa.array(at[chosen])),
        [name.removeprefix(prefix) for name, _ in of_prefix],
    )


def _exception_types(events: pa.ListArray) -> pa.StringArray:
    structs = events.flatten()
    of_event = pc.list_parent_indices(events).to_numpy(zero_copy_only=False)
    named = pc.fill_null(pc.equal(structs.field("name"), "exception"), False).to_numpy(zero_copy_only=False)
    places = np.flatnonzero(named)
    if not len(places):
        return pa.nulls(len(events), pa.string())
    keys, values, event = places_of(structs.field("attributes").take(pa.array(places)))
    types = np.flatnonzero(pc.equal(keys, "exception.type").to_numpy(zero_copy_only=False))
    rows = of_event[places[event[types]]]
    return take(values, firsts(rows[::-1], len(events), types[::-1]))  # the last one of each
