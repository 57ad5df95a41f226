"""The verdicts of many traces: whose runs they judge.

Only traces that have an evaluation, or had one, are looked at, and one by one: evaluations are few beside spans.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable

import numpy as np

from surefoot.processors.genai.arrays import NONE, take
from surefoot.processors.genai.rows import Derived
from surefoot.processors.genai.traces import MISSING
from surefoot.processors.genai.verdicts import RunIndex, unique_responses


def run_indexes(derived: Derived, trace_ids: Collection[str]) -> dict[str, RunIndex]:
    """Where the verdicts of these traces find their runs."""
    traces, runs = derived.traces, derived.runs
    wanted = np.isin(np.array(traces.ids, dtype=object), list(trace_ids)) if trace_ids else np.zeros(0, np.bool_)
    if not len(wanted):
        return {}
    known = traces.kind != MISSING
    known[runs.node] = True
    nodes = np.flatnonzero(wanted[traces.trace] & (runs.owner >= 0) & known)
    spans = zip(
        traces.trace[nodes].tolist(),
        take(traces.span_id, nodes).to_pylist(),
        take(derived.run_ids, runs.owner[nodes]).to_pylist(),
        strict=True,
    )
    by_span: defaultdict[int, dict[str, str]] = defaultdict(dict)
    for trace, span_id, run_id in spans:
        by_span[trace][span_id] = run_id
    calls: defaultdict[int, list[dict[str, str]]] = defaultdict(list)
    at = np.flatnonzero(wanted[traces.trace[derived.models]])
    rows = derived.tables["model_calls"].select(["response_id", "run_id"]).take(at).to_pylist()
    for trace, row in zip(traces.trace[derived.models[at]].tolist(), rows, strict=True):
        calls[trace].append(row)
    soles = _soles(derived)
    return {
        traces.ids[trace]: RunIndex(by_span[trace], unique_responses(calls[trace]), soles.get(trace))
        for trace in np.flatnonzero(wanted).tolist()
    }


def _soles(derived: Derived) -> dict[int, str]:
    """By trace, its only run that stands under no other, if there is exactly one."""
    top = np.flatnonzero(derived.runs.parent == NONE)
    trace = derived.traces.trace[derived.runs.node[top]]
    alone = np.bincount(trace, minlength=1)[trace] == 1
    return dict(zip(trace[alone].tolist(), take(derived.run_ids, top[alone]).to_pylist(), strict=True))


def index_of(run_ids_by_span: Iterable[tuple[str, str]], models: list[dict[str, str]], top: list[str]) -> RunIndex:
    """The same, from rows of the tables."""
    return RunIndex(dict(run_ids_by_span), unique_responses(models), top[0] if len(top) == 1 else None)
