"""Whole traces to their rows of ``runs``, ``tool_calls`` and ``model_calls``.

Contract: :func:`derive` is a pure function of the traces, and its rows replace everything that was derived from these
traces before. A trace's rows do not depend on which others stand beside it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from surefoot.processors.genai import calls, outcome
from surefoot.processors.genai.arrays import NONE, Bools, Codes, Ints, bools, take, text
from surefoot.processors.genai.inherit import Maps, call_maps, first_named, inherited, members_of, run_maps
from surefoot.processors.genai.marks import Marks, read_marks
from surefoot.processors.genai.outcome import Endings, endings
from surefoot.processors.genai.pricing import Costs, costs
from surefoot.processors.genai.runs import Runs, find_runs
from surefoot.processors.genai.traces import MISSING, SPAN, UNFINISHED, Traces
from surefoot.processors.lake.schema import TABLES

NANOS_A_DAY: Final = 86_400_000_000_000
TOKENS: Final = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "reasoning_tokens")
_INHERITED: Final = (
    "agent_version",
    "conversation_id",
    "task_class",
    "task_id",
    "consequence_class",
    "intent_id",
    "run_group",
    "repetition",
    "variant",
    "boundary_id",
    "mode",
    "sample_weight",
)
_REFUSE: Final = "refuse"  # a mode


@dataclass(frozen=True, slots=True)
class Derived:
    """What traces amount to. Verdicts are joined by :mod:`~surefoot.processors.genai.judged`."""

    tables: Mapping[str, pa.Table]
    traces: Traces
    runs: Runs
    run_ids: pa.StringArray
    models: Ints  # nodes of the rows of model_calls


def derive(traces: Traces) -> Derived:
    """Runs, tool calls and model calls, in order of trace and time."""
    marks = read_marks(traces)
    runs = find_runs(traces, marks.handoffs)
    tools = calls.tool_calls(traces, runs)
    models = calls.model_calls(traces, runs)
    tool_ends = endings(traces, tools, marks, tools=True)
    strata = run_maps(runs, marks.strata)
    prices = costs(traces, models)
    run_columns = _run_columns(traces, runs, marks, strata)
    run_columns |= _roll_ups(traces, runs, run_columns["outcome"], tools, tool_ends, models, prices)
    tool_columns = _tool_columns(traces, runs, run_columns, tools, tool_ends, marks, strata)
    model_columns = _model_columns(traces, runs, run_columns, models, endings(traces, models.node, marks), prices)
    run_columns["outcome"] = outcome.words(run_columns["outcome"])
    tables = {"runs": run_columns, "tool_calls": tool_columns, "model_calls": model_columns}
    return Derived(
        {name: table_of(name, columns) for name, columns in tables.items()},
        traces,
        runs,
        run_columns["run_id"],
        models.node,
    )


def table_of(name: str, columns: Mapping[str, Any]) -> pa.Table:
    """Columns as a table of the lake; numbers become times and dates."""
    schema = TABLES[name]
    return pa.table([_typed(columns[field.name], field.type) for field in schema], schema=schema)


def _typed(column: Any, kind: pa.DataType) -> pa.Array:
    array = column if isinstance(column, pa.Array) else pa.array(column)
    if array.type == kind:
        return array
    return array.cast(pa.int32()).cast(kind) if pa.types.is_date(kind) else array.cast(kind)


def run_ids_of(traces: Traces, nodes: Ints) -> pa.StringArray:
    """The ids of the runs whose own spans these are, whether the spans came or not."""
    of_trace = text(traces.ids, traces.trace[nodes])
    return pc.binary_join_element_wise(of_trace, take(traces.span_id, nodes), "-")


def _run_columns(traces: Traces, runs: Runs, marks: Marks, strata: Maps) -> dict[str, Any]:
    node, of_trace = runs.node, traces.trace[runs.node]
    kind = traces.kind[node]
    members = members_of(traces, runs)
    ended_as, errors = _endings_of_runs(traces, runs, marks)
    run_ids = run_ids_of(traces, node)
    started, ended = runs.start, _ends(traces, runs, ended_as)
    unfinished = ended == UNFINISHED
    last = np.where(unfinished, started, ended)
    head = np.where(kind == MISSING, members.first, node)
    own_name = pc.if_else(pc.equal(traces.column("agent_name", node), ""), None, traces.column("agent_name", node))
    other_name = pc.if_else(
        pa.array(kind == SPAN), traces.column("workflow_name", node), first_named(traces, runs, members)
    )
    columns: dict[str, Any] = {
        "run_id": run_ids,
        "parent_run_id": take(run_ids, runs.parent),
        "trace_id": text(traces.ids, of_trace),
        "span_id": take(traces.span_id, node),
        **{name: _at(traces, name, head) for name in ("service_name", "environment", "source")},
        "agent_name": pc.coalesce(own_name, other_name),
        **{name: inherited(traces, runs, members, name) for name in _INHERITED},
        "versions": run_maps(runs, marks.versions).array(len(node)),
        "strata": strata.array(len(node)),
        "started_at": started // 1000,
        "ended_at": pa.array(ended // 1000, mask=unfinished),
        "started_unix_nano": started,
        "ended_unix_nano": pa.array(ended, mask=unfinished),
        "duration_ns": pa.array(ended - started, mask=unfinished),
        "error_type": errors,
        "confidence": _at(traces, "confidence", np.where(kind == SPAN, node, NONE)),
        "settled": traces.settled[of_trace],
        "dialect": _at(traces, "dialect", np.where(kind == SPAN, node, members.first)),
        "received_at": traces.life.arrival_us[of_trace],
        "date": last // NANOS_A_DAY,
    }
    refused = bools(pc.equal(columns["mode"], _REFUSE)) & (ended_as <= outcome.ERROR)
    columns["outcome"] = np.where(refused, outcome.REFUSED, ended_as).astype(np.int8)
    return columns


def _at(traces: Traces, name: str, nodes: Ints) -> pa.Array:
    """A column at nodes of which some may be -1."""
    return take(traces.table[name], np.where(nodes >= 0, traces.row[nodes], NONE))


def _endings_of_runs(traces: Traces, runs: Runs, marks: Marks) -> tuple[Codes, pa.StringArray]:
    own = traces.kind[runs.node] == SPAN
    ends = endings(traces, runs.node[own], marks)
    quiet = traces.quiet[traces.trace[runs.node]]
    ended_as = np.where(quiet, outcome.ABANDONED, outcome.RUNNING).astype(np.int8)
    ended_as[traces.kind[runs.node] == MISSING] = outcome.UNKNOWN
    ended_as[own] = ends.outcome
    place = np.full(len(own), NONE, np.int64)
    place[own] = np.arange(int(own.sum()))
    return ended_as, take(ends.error_type, place)


def _ends(traces: Traces, runs: Runs, ended_as: Codes) -> Ints:
    """When runs ended, unix ns. An abandoned run ends at the last event of its trace plus the settle time."""
    ended = traces.end[runs.node].copy()
    given_up = ended_as == outcome.ABANDONED
    latest = traces.life.event_unix_nano[traces.trace[runs.node]] + int(traces.settle_seconds * 1e9)
    ended[given_up] = latest[given_up]
    unknown = ended_as == outcome.UNKNOWN
    if unknown.any():
        ended[unknown] = np.iinfo(np.int64).min
        owner = runs.owner[: traces.spans]
        spans = np.flatnonzero(owner >= 0)
        spans = spans[unknown[owner[spans]]]
        np.maximum.at(ended, owner[spans], traces.end[spans])
    return ended


def _roll_ups(
    traces: Traces,
    runs: Runs,
    ended_as: Codes,
    tools: Ints,
    ends: Endings,
    models: calls.ModelCalls,
    prices: Costs,
) -> dict[str, Any]:
    size = len(runs.node)

    def count(nodes: Ints, which: Bools | None = None) -> Ints:
        owner = runs.owner[nodes if which is None else nodes[which]]
        return np.bincount(owner[owner >= 0], minlength=size)

    failed = count(tools, outcome.failures(ends.outcome))
    used = {kind: calls.tokens(traces, runs, models, kind) for kind in TOKENS}
    return {
        "tool_calls": count(tools),
        "tool_errors": count(tools, ends.outcome == outcome.ERROR),
        "tool_retries": count(tools, ends.outcome == outcome.RETRY),
        "model_calls": count(models.node),
        **{kind: pa.array(amount, mask=amount < 0) for kind, amount in used.items()},
        "cost_usd": prices.by_run(runs.owner[models.node], size),
        "recovered": (ended_as == outcome.OK) & (failed > 0),
    }


def _call_columns(traces: Traces, runs: Runs, of_runs: Mapping[str, Any], nodes: Ints, end: Ints) -> dict[str, Any]:
    """What tool calls and model calls have in common."""
    owner, start = runs.owner[nodes], traces.start[nodes]
    names = text(traces.agent_names, traces.agent[nodes])
    return {
        "run_id": take(of_runs["run_id"], owner),
        "trace_id": text(traces.ids, traces.trace[nodes]),
        "span_id": take(traces.span_id, nodes),
        **{
            name: traces.column(name, nodes)
            for name in ("service_name", "environment", "sample_weight", "received_at", "source")
        },
        "agent_name": pc.coalesce(names, take(of_runs["agent_name"], owner)),
        "started_at": start // 1000,
        "ended_at": end // 1000,
        "duration_ns": end - start,
        "settled": traces.settled[traces.trace[nodes]],
        "date": end // NANOS_A_DAY,
    }


def _tool_columns(
    traces: Traces, runs: Runs, of_runs: Mapping[str, Any], nodes: Ints, ends: Endings, marks: Marks, strata: Maps
) -> dict[str, Any]:
    owner = runs.owner[nodes]
    own = {name: traces.column(name, nodes) for name in ("task_class", "consequence_class")}
    maps = call_maps(nodes, owner, strata, marks.strata, len(traces.row))
    return _call_columns(traces, runs, of_runs, nodes, traces.end[nodes]) | {
        **{name: pc.coalesce(column, take(of_runs[name], owner)) for name, column in own.items()},
        "tool_name": traces.column("tool_name", nodes),
        "tool_call_id": traces.column("tool_call_id", nodes),
        "outcome": outcome.words(ends.outcome),
        "error_type": ends.error_type,
        "effect": pc.fill_null(traces.column("tool_effect", nodes), "unknown"),
        "dependency": traces.column("tool_dependency", nodes),
        "strata": maps.array(len(nodes)),
    }


def _model_columns(
    traces: Traces, runs: Runs, of_runs: Mapping[str, Any], models: calls.ModelCalls, ends: Endings, prices: Costs
) -> dict[str, Any]:
    end = np.maximum(traces.end[models.node], np.where(models.told_by != models.node, traces.end[models.told_by], 0))
    return _call_columns(traces, runs, of_runs, models.node, end) | {
        **{name: traces.column(name, models.node) for name in ("provider_name", "request_model")},
        **{name: traces.column(name, models.told_by) for name in ("response_id", "response_model", *TOKENS)},
        "outcome": outcome.words(ends.outcome),
        "error_type": ends.error_type,
        "cost_usd": prices.by_call(),
        "possible_duplicate": models.doubtful,
    }
