"""How traces were understood: every node of their trees with what became of it and why, and what the counts came from.

Contract: :func:`explain` tells of one derivation what :func:`~surefoot.processors.genai.rows.derive` decided, per
trace. Rule: nothing is decided here. What a span became is derivation's own reason code, runs and calls are its rows;
so the page an engineer opens when a count surprises cannot tell another story than the tables.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa

from surefoot.processors.genai import why
from surefoot.processors.genai.arrays import NONE, Ints, take
from surefoot.processors.genai.explain_notes import Facts, Told, note, outcome_reason
from surefoot.processors.genai.marks import read_marks
from surefoot.processors.genai.rows import Derived
from surefoot.processors.genai.traces import AGENT, CHAIN, MISSING, MODEL, SPAN, START, TOOL, UNFINISHED, WORKFLOW

_COLUMNS: Final = (
    *("parent_span_id", "name", "scope_name", "dialect", "operation", "agent_name", "tool_name", "request_model"),
    *("status", "status_message", "error_type", "input_tokens", "output_tokens"),
)
_KINDS: Final = {SPAN: "span", START: "start", MISSING: "missing"}
_COUNTED: Final = {"agent": AGENT, "workflow": WORKFLOW, "chain": CHAIN, "tool": TOOL, "model": MODEL}


@dataclass(frozen=True, slots=True)
class Node:
    """One line of a tree: a span, a run of which only the start came, or a parent that has not come."""

    depth: int
    kind: str  # span, start or missing
    span_id: str
    parent_span_id: str | None
    name: str | None
    operation: str | None
    dialect: str | None
    scope: str | None
    agent_name: str | None
    tool_name: str | None
    request_model: str | None
    status: str | None
    error_type: str | None
    input_tokens: int | None
    output_tokens: int | None
    duration_ns: int | None
    reason: str  # of why.REASONS
    run: int | None  # the run it belongs to, by number within the trace
    note: str


@dataclass(frozen=True, slots=True)
class Run:
    """A run, and where its outcome and its tokens come from."""

    number: int
    run_id: str
    parent: int | None
    agent_name: str | None
    outcome: str
    because: str
    error_type: str | None
    recovered: bool
    tool_calls: int
    tool_errors: int
    model_calls: int
    input_tokens: int | None
    output_tokens: int | None
    tokens_from: str | None


@dataclass(frozen=True, slots=True)
class Count:
    """Spans of one kind, how many of them counted, and what became of the others."""

    kind: str  # agent, workflow, chain, tool or model
    spans: int
    counted: int
    others: dict[str, int]


@dataclass(frozen=True, slots=True)
class Explained:
    """One trace."""

    trace_id: str
    settled: bool
    spans: int
    copies: int  # spans that came more than once (rule 1)
    dialects: dict[str, list[str]]  # scopes by dialect
    nodes: list[Node]  # in order of the tree, a parent before its children
    runs: list[Run]
    counts: list[Count]
    outside: dict[str, int]  # calls of no run


def explain(derived: Derived, spans: pa.Table) -> list[Explained]:
    """Explain every trace that has a node. ``spans`` are the rows that ``derived`` was derived from, whole."""
    facts = _facts(derived, spans)
    traces = derived.traces
    sent = Counter(spans["trace_id"].to_pylist())
    by_trace: dict[int, list[int]] = {}
    for node, trace in enumerate(traces.trace.tolist()):
        by_trace.setdefault(trace, []).append(node)
    begins = _begins(derived)
    return [_trace(derived, facts, trace, nodes, begins, sent) for trace, nodes in sorted(by_trace.items())]


def _trace(
    derived: Derived, facts: Sequence[Facts], trace: int, nodes: list[int], begins: Ints, sent: Counter[str]
) -> Explained:
    traces = derived.traces
    whole = sum(facts[node].kind == SPAN for node in nodes)
    dialects: dict[str, set[str]] = {}
    for node in nodes:
        told = facts[node].told
        if told["dialect"]:
            dialects.setdefault(told["dialect"], set()).add(told["scope_name"] or "")
    tree = [_node(derived, facts[node], node, depth) for node, depth in _in_order(traces.parent, nodes, begins)]
    counts = [_count(facts, nodes, traces.operation, kind, code) for kind, code in _COUNTED.items()]
    outside = Counter(
        why.REASONS[facts[node].reason].name
        for node in nodes
        if facts[node].reason in (why.TOOL_CALL, why.MODEL_CALL) and facts[node].run is None
    )
    return Explained(
        traces.ids[trace],
        bool(traces.settled[trace]),
        whole,
        sent[traces.ids[trace]] - whole,
        {name: sorted(scopes) for name, scopes in sorted(dialects.items())},
        tree,
        sorted((_run(facts[node]) for node in nodes if facts[node].reason == why.RUN), key=lambda run: run.number),
        [count for count in counts if count.spans],
        dict(outside),
    )


def _node(derived: Derived, facts: Facts, node: int, depth: int) -> Node:
    traces, told = derived.traces, facts.told
    start, end = int(traces.start[node]), int(traces.end[node])
    return Node(
        depth=depth,
        kind=_KINDS[facts.kind],
        span_id=traces.span_id[node].as_py(),
        scope=told["scope_name"],
        duration_ns=None if end == UNFINISHED else end - start,
        reason=why.REASONS[facts.reason].name,
        run=facts.run,
        note=note(facts),
        **{name: told[name] for name in _COLUMNS if name not in ("scope_name", "status_message")},
    )


def _run(facts: Facts) -> Run:
    row = facts.row or {}
    told = row["input_tokens"] is not None or row["output_tokens"] is not None
    copied = ("run_id", "agent_name", "outcome", "error_type", "recovered", "tool_calls", "tool_errors", "model_calls")
    because = outcome_reason(facts)
    if row["recovered"]:
        because += "; a tool call that failed is no failed run (rule 7)"
    return Run(
        number=facts.run or 0,
        parent=facts.parent_run,
        because=because,
        input_tokens=row["input_tokens"],
        output_tokens=row["output_tokens"],
        tokens_from=_tokens_from(facts, row) if told else None,
        **{name: row[name] for name in copied},
    )


def _tokens_from(facts: Facts, row: Told) -> str:
    if facts.by_model_calls:
        return "its model calls"
    whole = all(row[kind] == facts.told[kind] for kind in ("input_tokens", "output_tokens"))
    return "its own span" if whole else "its own span, less what its sub-runs used"


def _count(facts: Sequence[Facts], nodes: list[int], operation: Any, kind: str, code: int) -> Count:
    found = [facts[node] for node in nodes if operation[node] == code]
    counted = {TOOL: why.TOOL_CALL, MODEL: why.MODEL_CALL}.get(code, why.RUN)
    others = Counter(why.REASONS[one.reason].short for one in found if one.reason != counted)
    return Count(kind, len(found), len(found) - others.total(), dict(others))


def _begins(derived: Derived) -> Ints:
    """When each node began; a parent that has not come, when its first child did."""
    traces = derived.traces
    begins = np.where(traces.kind == MISSING, UNFINISHED, traces.start)
    below = np.flatnonzero(traces.parent >= 0)
    below = below[traces.kind[traces.parent[below]] == MISSING]
    np.minimum.at(begins, traces.parent[below], traces.start[below])
    return begins


def _in_order(parent: Ints, nodes: list[int], begins: Ints) -> Iterator[tuple[int, int]]:
    """Nodes with their depths, each before what is below it, siblings in order of time."""
    children: dict[int, list[int]] = {}
    for node in sorted(nodes, key=lambda node: (begins[node], node), reverse=True):
        children.setdefault(int(parent[node]), []).append(node)
    waiting = [(node, 0) for node in children.get(NONE, [])]
    while waiting:
        node, depth = waiting.pop()
        yield node, depth
        waiting += [(child, depth + 1) for child in children.get(node, [])]


def _facts(derived: Derived, spans: pa.Table) -> list[Facts]:
    traces, runs = derived.traces, derived.runs
    everything = np.arange(len(traces.row))
    marks = read_marks(traces)
    told = _told(derived, spans)
    rows, by_calls = _rows(derived)
    exceptions = marks.exceptions(everything).to_pylist()
    first = np.searchsorted(traces.trace[runs.node], traces.trace[runs.node], side="left")
    number = (np.arange(len(runs.node)) - first + 1).tolist()
    parent_of = dict(zip(runs.node.tolist(), runs.parent.tolist(), strict=True))
    parents = traces.parent.tolist()
    errors = traces.trace[runs.node][np.array(derived.tables["runs"]["outcome"].to_pylist(), object) == "error"]
    failed = np.isin(traces.trace, errors).tolist()
    found = []
    for node, (owner, kind, reason) in enumerate(
        zip(runs.owner.tolist(), traces.kind.tolist(), runs.why.tolist(), strict=True)
    ):
        up = parent_of.get(node, NONE)
        parent = told[node]["parent_span_id"]
        found.append(
            Facts(
                told=told[node],
                kind=kind,
                reason=reason,
                run=None if owner == NONE else number[owner],
                row=rows.get(node),
                parent_run=None if up == NONE else number[up],
                cancelled=bool(marks.cancelled[node]),
                exception=exceptions[node],
                handoff=bool(marks.handoffs[node]),
                other_scope=_richer(derived, told, node) if reason == why.TWIN else None,
                failed_run=failed[node],
                by_model_calls=owner in by_calls,
                by_time=kind == SPAN and parent is None and parents[node] != NONE,
                cut=kind == SPAN and parent is not None and parents[node] == NONE,
            )
        )
    return found


def _told(derived: Derived, spans: pa.Table) -> list[Told]:
    """What each node's columns say; of a start event, what it tells."""
    traces = derived.traces
    row = np.where(traces.row < spans.num_rows, traces.row, NONE)
    everything = np.arange(len(traces.row))
    columns = {
        name: traces.column(name, everything) if name in traces.table.column_names else take(spans[name], row)
        for name in _COLUMNS
    }
    found: list[Told] = pa.table(columns).to_pylist()
    return found


def _rows(derived: Derived) -> tuple[dict[int, Told], set[int]]:
    """Rows of the derived tables by node, and which runs have their tokens from their model calls."""
    traces, runs = derived.traces, derived.runs
    rows = dict(zip(runs.node.tolist(), derived.tables["runs"].to_pylist(), strict=True))
    by_calls: set[int] = set()
    for row, node in zip(derived.tables["model_calls"].to_pylist(), derived.models.tolist(), strict=True):
        rows[node] = row
        if row["input_tokens"] is not None or row["output_tokens"] is not None:
            by_calls.add(int(runs.owner[node]))
    tools = np.flatnonzero(runs.why == why.TOOL_CALL)
    places = {(int(traces.trace[node]), traces.span_id[node].as_py()): node for node in tools.tolist()}
    trace_of = {trace_id: number for number, trace_id in enumerate(traces.ids)}
    for row in derived.tables["tool_calls"].to_pylist():
        rows[places[trace_of[row["trace_id"]], row["span_id"]]] = row
    return rows, by_calls


def _richer(derived: Derived, told: Sequence[Told], node: int) -> str | None:
    """The scope of the report that counts in place of this second one, if only one can be it."""
    traces, runs = derived.traces, derived.runs
    same = (runs.why > why.NOTHING) & (runs.why <= why.MODEL_CALL) & (traces.trace == traces.trace[node])
    same &= (traces.operation == traces.operation[node]) & (traces.start <= traces.end[node])
    same &= traces.end >= traces.start[node]
    scopes = {told[other]["scope_name"] for other in np.flatnonzero(same).tolist()} - {told[node]["scope_name"]}
    return scopes.pop() if len(scopes) == 1 else None
