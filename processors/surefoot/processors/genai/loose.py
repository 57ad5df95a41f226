"""Traces whose spans carry no parent links at all: who contains whom is told by time.

Rule: only where a trace has several spans and not one link. A span then belongs to the innermost agent (or workflow)
span that was open from its start to its end. Tools contain nothing: parallel calls often lie inside each other in time.
"""

from __future__ import annotations

import numpy as np

from surefoot.processors.genai.arrays import NONE, Bools, Ints


def contained(trace: Ints, parent: Ints, start: Ints, end: Ints, agents: Bools, workflows: Bools, spans: int) -> Ints:
    """The parents of all nodes, of which the first ``spans`` are spans in order of trace and start."""
    traces = int(trace.max()) + 1 if len(trace) else 0
    linked = np.zeros(traces, np.bool_)
    linked[trace[parent >= 0]] = True
    linked |= np.bincount(trace[:spans], minlength=traces) < 2
    holding = np.zeros(traces, np.bool_)
    holding[trace[agents | workflows]] = True
    loose = np.flatnonzero((~linked & holding)[trace[:spans]])
    if not len(loose):
        return parent
    parent = parent.copy()
    holders: list[int] = []
    for node in loose[np.lexsort((-end[loose], start[loose], trace[loose]))].tolist():
        holders = [other for other in holders if trace[other] == trace[node] and end[other] >= start[node]]
        around = (other for other in reversed(holders) if end[other] >= end[node])
        parent[node] = next(around, NONE)
        if agents[node] or workflows[node]:
            holders.append(node)
    return parent
