"""The same thing reported twice: by two instrumentations side by side, or by one in two halves.

Rule: two reports are of one thing only if they come from different scopes, of the same run, overlap in time, and
contradict each other nowhere. Of two the richer counts: the one with more columns filled, then the one that tells of a
failure, then the earlier. Two instrumentations are rare, so the few groups with several scopes are matched one by one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from surefoot.processors.genai import why
from surefoot.processors.genai.arrays import NONE, Bools, Codes, Ints, equal_runs
from surefoot.processors.genai.traces import Traces


def twin_agents(traces: Traces, heads: Ints, reasons: Codes) -> Ints:
    """By node: the run that an agent span is a second report of; -1 for none."""
    found = np.full(len(traces.row), NONE, np.int64)
    named = heads[traces.agent[heads] != NONE]
    groups = _mixed(traces, (traces.agent[named], traces.trace[named]), named)
    if groups:
        rich = _Richness(traces, ("conversation_id", "request_model", "error_type", "agent_version"))
        for group in groups:
            for kept, twin in _pairs(traces, group, rich, ()):
                found[twin] = kept
                reasons[twin] = why.TWIN
    return found


def twin_calls(traces: Traces, calls: Ints, places: Ints, names: Ints, columns: Sequence[str], reasons: Codes) -> Bools:
    """Which of ``calls`` are second reports. ``places`` is where each belongs, ``names`` what it calls (-1: any)."""
    again = np.zeros(len(traces.row), np.bool_)
    groups = _mixed(traces, (names, places, traces.trace[calls]), calls)
    if groups:
        rich = _Richness(traces, columns)
        for group in groups:
            for _, twin in _pairs(traces, group, rich, columns):
                again[twin] = True
                reasons[twin] = why.TWIN
    return again[calls]


def _mixed(traces: Traces, keys: tuple[Ints, ...], nodes: Ints) -> list[Ints]:
    """Groups of nodes with the same keys in which more than one scope reports."""
    scopes = _scopes(traces)
    if len(np.unique(scopes[nodes])) < 2:
        return []
    order, begins = equal_runs(*keys)
    scope = scopes[nodes][order]
    low, high = np.minimum.reduceat(scope, begins), np.maximum.reduceat(scope, begins)
    ends = np.append(begins[1:], len(order))
    return [nodes[order[a:b]] for a, b, mixed in zip(begins, ends, low != high, strict=True) if mixed]


def _scopes(traces: Traces) -> Ints:
    return traces.numbers("scope_name")[0]


def failed(traces: Traces) -> Bools:
    """Nodes of status error."""
    codes, words = traces.numbers("status")
    found: Bools = codes == (words.index("error") if "error" in words else -2)
    return found


class _Richness:
    """How much each report tells, and what."""

    def __init__(self, traces: Traces, columns: Sequence[str]) -> None:
        self.scope = _scopes(traces)
        self.told = {name: self._codes(traces, name) for name in columns}
        self._failed = failed(traces)

    @staticmethod
    def _codes(traces: Traces, name: str) -> Ints:
        if name.endswith("_tokens"):
            return traces.ints(name, NONE)
        return traces.numbers(name)[0]

    def rank(self, node: int) -> tuple[int, bool]:
        return sum(int(told[node] != NONE) for told in self.told.values()), bool(self._failed[node])


@dataclass(slots=True)
class _Thing:
    members: list[int]
    scopes: set[int]


# Reports that differ in one of these are of different calls.
_TELLING = ("tool_call_id", "response_id", "provider_name", "input_tokens", "output_tokens")


def _pairs(traces: Traces, group: Ints, rich: _Richness, columns: Sequence[str]) -> list[tuple[int, int]]:
    """Richest report and another, for each thing of the group that several scopes report."""
    telling = [rich.told[name] for name in columns if name in _TELLING]
    things: list[_Thing] = []
    open_things: list[_Thing] = []  # a long run has thousands of calls, of which few are open at a moment
    for node in group[np.lexsort((traces.number[group], traces.start[group]))].tolist():
        scope, start = int(rich.scope[node]), traces.start[node]
        open_things = [
            thing
            for thing in open_things
            if traces.end[thing.members[0]] > start or traces.start[thing.members[0]] == start
        ]
        for thing in open_things:
            if scope not in thing.scopes and _same(traces, thing.members[0], node, telling):
                thing.members.append(node)
                thing.scopes.add(scope)
                break
        else:
            open_things.append(_Thing([node], {scope}))
            things.append(open_things[-1])
    found = []
    for thing in things:
        best = max(thing.members, key=lambda node: (*rich.rank(node), -thing.members.index(node)))
        found += [(best, node) for node in thing.members if node != best]
    return found


def _same(traces: Traces, one: int, other: int, telling: Sequence[Ints]) -> bool:
    if any(told[one] != told[other] and NONE not in (told[one], told[other]) for told in telling):
        return False
    overlap = traces.start[one] < traces.end[other] and traces.start[other] < traces.end[one]
    return bool(overlap or traces.start[one] == traces.start[other])


# Instrumentations of a library that since its version 2 reports every call by itself. Where the library's own span is
# inside of theirs, theirs is no call of its own.
_BESIDE = frozenset(
    {
        "openinference.instrumentation.anthropic",
        "opentelemetry.instrumentation.anthropic",
        "opentelemetry.instrumentation.genai.anthropic",
    }
)


def _beside_the_library(traces: Traces, calls: Ints) -> Bools:
    numbers, names = traces.numbers("scope_name")
    beside = [number for number, name in enumerate(names) if name in _BESIDE]
    return np.isin(numbers[calls], beside) if beside else np.zeros(len(calls), np.bool_)


def halves(traces: Traces, calls: Ints, owner: Ints, reasons: Codes) -> tuple[Ints, Ints, Bools]:
    """Model calls without second halves, the node that tells the tokens of each, and which may be second halves.

    Some instrumentations report a streamed call twice: as a span that ends when the stream begins, without tokens, and
    when it has ended as a span that takes no time, with them. In one run the second is folded into the call before it;
    elsewhere nothing says which call it belongs to. The same holds for a streamed call outside a run of a library that
    reports its calls itself: its instrumentation does so in another trace.
    """
    told = traces.ints("input_tokens", NONE) >= 0
    instant = (traces.start[calls] == traces.end[calls]) & told[calls]
    told_by, doubtful = calls.copy(), _beside_the_library(traces, calls) & (owner < 0)
    if not instant.any():
        return calls, told_by, doubtful
    scopes = _scopes(traces)
    models = traces.numbers("request_model")[0]
    broken = failed(traces)
    gone = np.zeros(len(calls), np.bool_)
    waiting: dict[tuple[int, ...], int] = {}
    for place in np.lexsort((traces.number[calls], traces.start[calls], traces.trace[calls])).tolist():
        node = calls[place]
        key = (int(traces.trace[node]), int(owner[place]), int(scopes[node]), int(models[node]))
        if not instant[place]:
            waiting.pop(key, None)
            if not told[node] and not broken[node]:
                waiting[key] = place
        elif owner[place] >= 0 and key in waiting:
            first = waiting.pop(key)
            told_by[first] = node
            gone[place] = True
            reasons[node] = why.SECOND_HALF
        else:
            doubtful[place] = True
    return calls[~gone], told_by[~gone], doubtful[~gone]
