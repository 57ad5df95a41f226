"""Which spans are agent runs, and which run every other span belongs to.

Rules (docs/runs.md gives the reasons):

- A run is an ``invoke_agent`` span, except a nameless one with a named one below it or directly above it, one directly
  under another of the same name, one that marks a handoff, and a second report by another instrumentation. A trace
  without any falls back to its topmost ``invoke_workflow``, then to a root that is a chain.
- A start event whose span has not come is a run too, under the same id, so a killed agent leaves a run.
- Everything belongs to the nearest run above it. Spans whose parent has not come belong to the run that was open when
  they began.
- Calls that nothing claims, once the trace is quiet, tell of one run of unknown outcome, if they look like a run's.

A span therefore belongs to at most one run, and a late root takes over the id that its children point to already.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from surefoot.processors.genai import why
from surefoot.processors.genai.arrays import NONE, Bools, Codes, Ints
from surefoot.processors.genai.links import above, cut_circles, mark_upwards, nearest
from surefoot.processors.genai.traces import (
    AGENT,
    CHAIN,
    MISSING,
    MODEL,
    SPAN,
    START,
    TOOL,
    UNFINISHED,
    WORKFLOW,
    Traces,
)
from surefoot.processors.genai.twins import twin_agents


@dataclass(frozen=True, slots=True)
class Runs:
    """The runs of all traces in order of trace, start and id. All fields but ``owner`` and ``why`` are by run."""

    node: Ints  # the run's own span, start event, or the missing parent that an unknown run is called after
    parent: Ints  # the run above, -1 for none
    start: Ints  # unix ns; of an unknown run, of its first span
    owner: Ints  # by node: the run that it belongs to, -1 for none; a run's own span belongs to the run
    why: Codes  # by node: what became of it


def find_runs(traces: Traces, handoffs: Bools) -> Runs:
    """All runs. ``handoffs`` are nodes that pass the conversation on, whatever their operation says."""
    reasons = np.zeros(len(traces.row), np.int8)
    heads = _agents(traces, handoffs, reasons)
    twin_of = twin_agents(traces, np.flatnonzero(heads), reasons)
    heads[twin_of >= 0] = False
    heads |= traces.kind == START
    _fall_back(traces, heads, reasons)
    climbed = nearest(traces.parent, heads | (twin_of >= 0))
    end = np.where(twin_of[climbed] >= 0, twin_of[climbed], climbed)
    timeline = _Timeline(traces, heads)
    adopted, unknown, first = _orphans(traces, heads, end, timeline)
    of = np.flatnonzero(heads)
    parent = _parents(traces, heads, _over(traces.parent, of, climbed, twin_of), of, unknown, timeline)
    fresh = np.unique(unknown[unknown >= 0])
    node = np.concatenate((of, fresh))
    parent = np.concatenate((parent, np.full(len(fresh), NONE, np.int64)))
    start = np.concatenate((traces.start[of], first[fresh]))
    order = np.lexsort((traces.number[node], start, traces.trace[node]))
    node, parent, start = node[order], parent[order], start[order]
    index = np.full(len(heads) + 1, NONE, np.int64)  # by node; the last for -1
    index[node] = np.arange(len(node))
    reasons[node] = why.RUN
    # A climb ends at a run, a root, or a missing parent that a run adopted.
    claimed = np.where(traces.kind[end] == MISSING, np.where(adopted[end] >= 0, adopted[end], unknown[end]), NONE)
    owner = np.where(heads[end], end, claimed)
    parent = _called_as_tools(traces, node, index[parent], index[owner])
    # Two instrumentations that nest in opposite ways would make a circle.
    parent = cut_circles(parent, start, np.arange(len(node)))
    return Runs(node, parent, start, index[owner], reasons)


def _called_as_tools(traces: Traces, node: Ints, parent: Ints, owner: Ints) -> Ints:
    """Parents of runs, with those that Traceloop does not tell: of an agent that another agent calls as a tool.

    It hangs such an agent under the workflow. In one workflow of one program the agent that runs within a tool call of
    another is called by it; agents after a handoff run one after another, within no call.
    """
    dialects, names = traces.numbers("dialect")
    if "traceloop" not in names:
        return parent
    up = traces.parent[node]
    lost = np.flatnonzero(
        (parent < 0) & (dialects[node] == names.index("traceloop")) & (up >= 0) & (traces.operation[up] == WORKFLOW)
    )
    counts = np.bincount(traces.trace[node[lost]], minlength=len(traces.ids))
    lost = lost[counts[traces.trace[node[lost]]] > 1]
    found = parent.copy()
    for run in lost.tolist():
        own = node[run]
        around = np.flatnonzero(
            (traces.trace == traces.trace[own])
            & (traces.operation == TOOL)
            & (owner >= 0)
            & (owner != run)
            & (traces.start <= traces.start[own])
            & (traces.end >= traces.end[own])
        )
        if len(around):
            found[run] = owner[around[np.argmax(traces.start[around])]]
    return found


def _over(parent: Ints, of: Ints, climbed: Ints, twin_of: Ints) -> Ints:
    """What the climb from above each run ends at, -1 for a root; a second report of the run itself is passed by."""
    here = np.append(climbed, NONE)[parent[of]]
    while (own := (here >= 0) & (twin_of[here] == of)).any():
        here[own] = np.append(climbed, NONE)[parent[here[own]]]
    return np.where((here >= 0) & (twin_of[here] >= 0), twin_of[here], here)


def _agents(traces: Traces, handoffs: Bools, reasons: Codes) -> Bools:
    """The ``invoke_agent`` spans that are runs."""
    candidates = (traces.operation == AGENT) & ~handoffs
    reasons[(traces.operation == AGENT) & handoffs] = why.HANDOFF
    named = traces.agent != NONE
    at = np.flatnonzero(candidates & ~named)
    if len(at):
        # Among agents alone: who is the next agent above, and is no tool call between.
        of = np.flatnonzero(candidates)
        over = np.full(len(candidates), NONE, np.int64)
        over[of] = above(traces.parent, candidates, of)
        wrapping = mark_upwards(over, np.flatnonzero(candidates & named))
        wrappers = at[wrapping[at]]
        reasons[wrappers] = why.WRAPPER
        next_up = above(traces.parent, (candidates & named) | (traces.operation == TOOL), at)
        turns = at[(next_up >= 0) & (traces.operation[next_up] == AGENT) & ~wrapping[at]]
        reasons[turns] = why.TURN
    of = np.flatnonzero(candidates & named & (traces.parent >= 0))
    up = traces.parent[of]
    repeats = of[candidates[up] & (traces.agent[up] == traces.agent[of])]
    reasons[repeats] = why.REPEAT
    found: Bools = candidates & (reasons == why.NOTHING)
    return found


def _fall_back(traces: Traces, heads: Bools, reasons: Codes) -> None:
    """Where a trace has no run, its topmost workflows are runs; where it has none of those, roots that are chains."""
    for kind in (WORKFLOW, CHAIN):
        spans = np.flatnonzero(traces.operation == kind)
        if not len(spans):
            continue
        taken = np.zeros(len(traces.ids), np.bool_)
        taken[traces.trace[heads]] = True
        reasons[spans[taken[traces.trace[spans]]]] = why.AROUND_RUNS
        spans = spans[~taken[traces.trace[spans]]]
        topmost = above(traces.parent, traces.operation == kind, spans) < 0
        if kind == CHAIN:
            topmost &= traces.parent[spans] < 0
        heads[spans[topmost]] = True


class _Timeline:
    """Which run was open at a moment."""

    def __init__(self, traces: Traces, heads: Bools) -> None:
        of = np.flatnonzero(heads)
        self._order = of[np.lexsort((traces.number[of], traces.start[of], traces.trace[of]))]
        self._trace = traces.trace[self._order]
        self._start = traces.start[self._order]
        self._end = traces.end[self._order]
        self._place = np.full(len(heads), NONE, np.int64)
        self._place[self._order] = np.arange(len(self._order))
        self._begins = np.searchsorted(self._trace, self._trace, side="left")

    def unfinished_before(self, heads: Ints) -> Ints:
        """For each run the last one of its trace that began before it and did not finish; -1 for none."""
        place = self._place[heads]
        unfinished = np.where(self._end == UNFINISHED, np.arange(len(self._end)), NONE)
        last = np.append(np.maximum.accumulate(unfinished), NONE)[place - 1]  # of the first, the appended -1
        return np.where(last >= self._begins[place], self._order[last], NONE)

    def open_at(self, trace: Ints, moment: Ints) -> Ints:
        """For each moment the run of its trace that began last before it and was open then; -1 for none."""
        found = np.full(len(trace), NONE, np.int64)
        if not len(self._order) or not len(trace):
            return found
        both = np.concatenate((self._trace, trace))
        order = np.lexsort((np.arange(len(both)) >= len(self._trace), np.concatenate((self._start, moment)), both))
        is_run = order < len(self._trace)
        at = np.empty(len(trace), np.int64)
        at[order[~is_run] - len(self._trace)] = (np.cumsum(is_run) - 1)[~is_run]
        lowest = np.searchsorted(self._trace, trace, side="left")
        waiting = np.arange(len(trace))
        while len(waiting := waiting[at[waiting] >= lowest[waiting]]):
            fits = self._end[at[waiting]] >= moment[waiting]
            found[waiting[fits]] = self._order[at[waiting[fits]]]
            waiting = waiting[~fits]
            at[waiting] -= 1
        return found


def _orphans(traces: Traces, heads: Bools, end: Ints, timeline: _Timeline) -> tuple[Ints, Ints, Ints]:
    """By missing parent: the run that adopts its children, the unknown run that they make up, and when they begin."""
    adopted, unknown = (np.full(len(heads), NONE, np.int64) for _ in range(2))
    first = np.full(len(heads), UNFINISHED, np.int64)
    lost = np.flatnonzero((traces.kind == SPAN) & (traces.kind[end] == MISSING) & ~heads)
    if not len(lost):
        return adopted, unknown, first
    np.minimum.at(first, end[lost], traces.start[lost])
    groups = np.unique(end[lost])
    adopted[groups] = timeline.open_at(traces.trace[groups], first[groups])
    calls = lost[np.isin(traces.operation[lost], (TOOL, MODEL))]
    calls = calls[(adopted[end[calls]] < 0) & traces.quiet[traces.trace[calls]]]
    if not len(calls):
        return adopted, unknown, first
    group, size = end[calls], len(heads)
    has_tool = np.bincount(group[traces.operation[calls] == TOOL], minlength=size) > 0
    has_model = np.bincount(group[traces.operation[calls] == MODEL], minlength=size) > 0
    names_agent = np.bincount(group[traces.agent[calls] != NONE], minlength=size) > 0
    of_run = np.zeros(len(traces.ids), np.bool_)
    of_run[traces.trace[np.flatnonzero((has_tool & has_model) | names_agent)]] = True
    groups = np.unique(group)
    groups = groups[of_run[traces.trace[groups]]]
    groups = groups[np.lexsort((traces.number[groups], first[groups], traces.trace[groups]))]
    lead = np.searchsorted(traces.trace[groups], traces.trace[groups], side="left")
    unknown[groups] = groups[lead]
    return adopted, unknown, first


def _parents(traces: Traces, heads: Bools, over: Ints, of: Ints, unknown: Ints, timeline: _Timeline) -> Ints:
    """The run above each run, whose climb ended at ``over``.

    A parent that never came may be a caller that reports elsewhere. So only a run that did not finish, and for that
    reason lost spans, takes in a run by time alone.
    """
    lost = (over >= 0) & (traces.kind[over] == MISSING)
    parent = np.where((over >= 0) & heads[over], over, NONE)
    parent = np.where(lost & (unknown[over] >= 0), unknown[over], parent)
    by_time = (lost & (parent < 0)) | (traces.kind[of] == START)
    if by_time.any():
        parent[by_time] = timeline.unfinished_before(of[by_time])
    return parent
