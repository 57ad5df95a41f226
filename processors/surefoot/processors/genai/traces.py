"""Whole traces as derivation sees them: many at once, as columns over nodes.

Contract: :func:`build` takes rows of ``spans`` and the log events that matter, and gives one node per span, per run
that was started and whose span has not come, and per parent that is missing. Rule: no order of arrival survives here.
Spans are unique by identity and everything is in order of trace, time and id, so whatever is derived is a function of
the set of spans and events, and one trace never changes another.

Times are unix nanoseconds, arrivals unix microseconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from surefoot.instrumentation import semconv
from surefoot.processors.genai.arrays import NONE, Bools, Codes, Ints, among, codes, id_numbers, ints, one_array, take
from surefoot.processors.genai.events import Started
from surefoot.processors.genai.links import cut_circles
from surefoot.processors.genai.loose import contained
from surefoot.processors.lake.schema import SPANS

# What derivation reads of a span.
COLUMNS: Final = (
    "trace_id",
    "span_id",
    "parent_span_id",
    "start_unix_nano",
    "end_unix_nano",
    "status",
    "status_message",
    "service_name",
    "environment",
    "scope_name",
    "dialect",
    "operation",
    "agent_name",
    "agent_version",
    "conversation_id",
    "workflow_name",
    "tool_name",
    "tool_call_id",
    "provider_name",
    "request_model",
    "response_model",
    "response_id",
    "input_tokens",
    "output_tokens",
    "cache_read_tokens",
    "cache_write_tokens",
    "reasoning_tokens",
    "error_type",
    "task_class",
    "task_id",
    "consequence_class",
    "intent_id",
    "run_group",
    "repetition",
    "variant",
    "tool_effect",
    "tool_dependency",
    "confidence",
    "boundary_id",
    "mode",
    "sample_weight",
    "received_at",
    "source",
    "attributes",
    "events",
)
SCHEMA: Final = pa.schema([SPANS.field(name) for name in COLUMNS])

# Kinds of nodes.
SPAN: Final = 0
START: Final = 1  # a run that was started and whose span has not come
MISSING: Final = 2  # a parent that has not come

# What a span is about, of its operation.
AGENT: Final = 1
TOOL: Final = 2
MODEL: Final = 3
WORKFLOW: Final = 4
CHAIN: Final = 5  # of a framework that tells no better; a root of this kind stands for a run where nothing else does
_OPERATIONS: Final = {
    semconv.INVOKE_AGENT: AGENT,
    semconv.EXECUTE_TOOL: TOOL,
    semconv.INVOKE_WORKFLOW: WORKFLOW,
    "chain": CHAIN,
    **dict.fromkeys(semconv.MODEL_OPERATIONS, MODEL),
}

UNFINISHED: Final = np.iinfo(np.int64).max  # end of a run that has none


@dataclass(frozen=True, slots=True)
class Life:
    """Per trace, when something last happened, and last arrived.

    ``sign_us`` is the latest arrival of a span or of a log that is no evaluation: the agent was alive. An evaluation is
    an arrival, but no sign of life: a verdict on a dead run must not revive it.
    """

    event_unix_nano: Ints
    sign_us: Ints
    arrival_us: Ints

    @classmethod
    def none(cls, traces: int) -> Life:
        """Nothing happened."""
        return cls(*(np.zeros(traces, np.int64) for _ in range(3)))


@dataclass(frozen=True, slots=True)
class Traces:
    """Nodes of many traces: spans in order of trace, start and id, then starts, then missing parents.

    ``row`` says where in ``table`` a node's columns are; -1 for a missing parent. ``number`` orders the nodes of a
    trace as their ids do.
    """

    ids: Sequence[str]
    table: pa.Table
    row: Ints
    kind: Codes
    trace: Ints
    number: Ints
    span_id: pa.StringArray
    parent: Ints
    start: Ints
    end: Ints
    operation: Codes
    agent: Ints
    agent_names: list[str]
    life: Life
    quiet: Bools  # by trace: no sign of life for the settle time, or all imported: nothing missing is waited for
    settled: Bools  # by trace: nothing arrived for the settle time, or all imported
    settle_seconds: float

    @property
    def spans(self) -> int:
        """How many nodes are spans: they come first."""
        return int(np.searchsorted(self.kind, START))

    def column(self, name: str, nodes: Ints) -> pa.Array:
        """A column of these nodes' rows."""
        return take(self.table[name], self.row[nodes])

    def numbers(self, name: str) -> tuple[Ints, list[str]]:
        """A text column of all nodes as numbers into the distinct values; -1 for null and for missing parents."""
        found, words = codes(self.table[name])
        return np.where(self.row >= 0, found[self.row], NONE) if len(found) else np.full(len(self.row), NONE), words

    def ints(self, name: str, missing: int) -> Ints:
        """An integer column of all nodes."""
        found = ints(self.table[name], missing)
        return np.where(self.row >= 0, found[self.row], missing) if len(found) else np.full(len(self.row), missing)


def build(
    ids: Sequence[str],
    spans: pa.Table,
    starts: Started | None = None,
    *,
    now: float,
    settle_seconds: float,
    life: Life | None = None,
    imported: Bools | None = None,
) -> Traces:
    """Put traces together; ``now`` in unix seconds. ``life`` tells of what is not among ``spans``.

    Of traces that are ``imported`` as a whole nothing more is to come: they are quiet and settled at once.

    Of a span id that comes twice, the version that ends later is kept, then the one that arrived last.
    """
    if starts is None:
        starts = Started.none()
    known = pa.array(ids, pa.string())
    (number, above, of_start), size = id_numbers(spans["span_id"], spans["parent_span_id"], starts.rows["span_id"])
    trace = ints(pc.index_in(spans["trace_id"], known))
    start, end = ints(spans["start_unix_nano"]), ints(spans["end_unix_nano"])
    received = ints(spans["received_at"])
    kept = _unique(trace * size + number, end, received)
    order = kept[np.lexsort((number[kept], start[kept], trace[kept]))]
    keys = trace[order] * size + number[order]
    begun = ints(pc.index_in(starts.rows["trace_id"], known)) * size + of_start
    first = _first_starts(begun, starts, keys)
    parents = np.where(above[order] >= 0, trace[order] * size + above[order], NONE)
    keys = np.concatenate((keys, begun[first]))
    missing, example = np.unique(parents, return_index=True)
    absent = (missing >= 0) & ~among(missing, keys)
    missing, example = missing[absent], order[example[absent]]
    keys = np.concatenate((keys, missing))
    kind = np.repeat(np.array([SPAN, START, MISSING], np.int8), [len(order), len(first), len(missing)])
    times = starts.times[first]
    begins = np.concatenate((start[order], times, np.zeros(len(missing), np.int64)))
    table = spans.select(COLUMNS)
    if len(first):
        table = pa.concat_tables([table, starts.rows.select(COLUMNS)])
    parent = np.full(len(keys), NONE, np.int64)
    parent[: len(order)] = _places(keys, parents)
    parent = cut_circles(parent, begins, keys % size)
    ends = np.concatenate((end[order], np.full(len(times) + len(missing), UNFINISHED)))
    row = np.concatenate((order, spans.num_rows + first, np.full(len(missing), NONE)))
    operation = np.zeros(len(keys), np.int8)
    operation[: len(order)] = _operations(spans["operation"])[order]
    agent, agent_names = codes(pc.if_else(pc.equal(table["agent_name"], ""), None, table["agent_name"]))
    traces = keys // size
    parent = contained(traces, parent, begins, ends, operation == AGENT, operation == WORKFLOW, len(order))
    lived = _life(life or Life.none(len(ids)), traces[: len(order)], start[order], end[order], received[order])
    limit_us = micros(now) - micros(settle_seconds)
    over = np.zeros(len(ids), np.bool_) if imported is None else imported
    return Traces(
        ids=ids,
        table=table,
        row=row,
        kind=kind,
        trace=traces,
        number=keys % size,
        span_id=_texts(table["span_id"], row, spans["parent_span_id"], example),
        parent=parent,
        start=begins,
        end=ends,
        operation=operation,
        agent=np.where(row >= 0, agent[row], NONE) if len(agent) else np.full(len(row), NONE),
        agent_names=agent_names,
        life=lived,
        quiet=over | (lived.sign_us <= limit_us),
        settled=over | (lived.arrival_us <= limit_us),
        settle_seconds=settle_seconds,
    )


def micros(seconds: float) -> int:
    """Whole microseconds: times are compared as integers, so a deadline is met exactly when it is due."""
    return round(seconds * 1e6)


def _unique(keys: Ints, end: Ints, received: Ints) -> Ints:
    """Rows of which no better one has the same key."""
    order = np.argsort(keys, kind="stable")
    repeated = keys[order[1:]] == keys[order[:-1]]
    if not repeated.any():
        return order
    order = np.lexsort((received, end, keys))
    best: Ints = order[np.append(keys[order[1:]] != keys[order[:-1]], True)]
    return best


def _first_starts(keys: Ints, starts: Started, spans: Ints) -> Ints:
    """The earliest start event of each run whose span is not among ``spans``."""
    order = np.lexsort((ints(starts.rows["received_at"]), starts.times, keys))
    chosen = np.append(True, keys[order[1:]] != keys[order[:-1]]) if len(order) else np.empty(0, np.bool_)
    first: Ints = order[chosen]
    return first[~among(keys[first], spans)]


def _places(keys: Ints, wanted: Ints) -> Ints:
    """Where in ``keys`` each wanted one stands; -1 for -1. The others are all there."""
    order = np.argsort(keys, kind="stable")
    found = order[np.minimum(np.searchsorted(keys[order], wanted), len(keys) - 1)] if len(keys) else wanted
    places: Ints = np.where(wanted >= 0, found, NONE)
    return places


def _operations(column: pa.ChunkedArray) -> Codes:
    found, words = codes(column)
    meaning = np.array([*(_OPERATIONS.get(word, 0) for word in words), 0], np.int8)  # the last one for null
    operations: Codes = meaning[found]
    return operations


def _texts(span_ids: pa.ChunkedArray, row: Ints, parent_ids: pa.ChunkedArray, example: Ints) -> pa.StringArray:
    """The ids of all nodes; of a missing parent from one of its children."""
    own = take(span_ids, row[row >= 0])
    return pa.concat_arrays([own, one_array(parent_ids).take(pa.array(example))]) if len(example) else own


def _life(life: Life, traces: Ints, start: Ints, end: Ints, received: Ints) -> Life:
    """With the times of these spans, which are in order of trace."""
    event, sign = life.event_unix_nano.copy(), life.sign_us.copy()
    if len(traces):
        new = np.flatnonzero(np.append(True, traces[1:] != traces[:-1]))
        of = traces[new]
        event[of] = np.maximum(event[of], np.maximum.reduceat(np.maximum(start, end), new))
        sign[of] = np.maximum(sign[of], np.maximum.reduceat(received, new))
    return Life(event, sign, np.maximum(sign, life.arrival_us))
