"""The tool calls and model calls of traces, each real one once, and the tokens of their runs.

Rules: ``execute_tool`` directly or indirectly inside ``execute_tool`` of the same tool is the same call seen twice (MCP
client and server), the outer one counts; of inference spans inside inference spans the innermost counts; of two
instrumentations side by side the richer counts; phantom tools and handoffs are no calls. A failed tool does not make a
failed run.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

import numpy as np

from surefoot.processors.genai import why
from surefoot.processors.genai.arrays import NONE, Bools, Ints, among, distinct
from surefoot.processors.genai.links import above, depths
from surefoot.processors.genai.runs import Runs
from surefoot.processors.genai.traces import MODEL, TOOL, Traces
from surefoot.processors.genai.twins import halves, twin_calls

# google-adk adds "(merged tools)" after parallel calls; smolagents ends by calling the tool "final_answer".
_PHANTOMS: Final = frozenset({"(merged tools)", "final_answer"})
_HANDOFF: Final = "handoff to "
_TRANSFER: Final = "transfer_to_"


@dataclass(frozen=True, slots=True)
class ModelCalls:
    """Model calls in order of time within their traces."""

    node: Ints
    told_by: Ints  # the node that has its response and tokens: the call's own, or its second half
    doubtful: Bools  # may be a second report of a call that another row stands for


def tool_calls(traces: Traces, runs: Runs) -> Ints:
    """The nodes that are tool calls, in order of time within their traces."""
    tools = np.flatnonzero(traces.operation == TOOL)
    if not len(tools):
        return tools
    codes, names = traces.numbers("tool_name")
    stops = traces.operation == TOOL
    stops[runs.node] = True
    outer = above(traces.parent, stops, tools)
    nested = (outer >= 0) & (traces.operation[outer] == TOOL) & (codes[outer] == codes[tools])
    phantom = np.isin(codes[tools], [number for number, name in enumerate(names) if name in _PHANTOMS])
    handoff = _handoffs(traces, tools, codes, names)
    runs.why[tools] = why.TOOL_CALL
    for reason, folded in ((why.NESTED_TOOL, nested), (why.PHANTOM, phantom), (why.HANDOFF, handoff)):
        runs.why[tools[folded]] = reason
    tools = tools[~(nested | phantom | handoff)]
    twins = twin_calls(traces, tools, runs.owner[tools], codes[tools], ("tool_call_id", "error_type"), runs.why)
    found: Ints = tools[~twins]
    return found


def _handoffs(traces: Traces, tools: Ints, codes: Ints, names: list[str]) -> Bools:
    """Which tools pass the conversation to another agent.

    ``transfer_to_x`` is one only if x is an agent that the trace knows: it may as well move money.
    """
    plain = [name.startswith(_HANDOFF) or _plain(name) == "transfertoagent" for name in names]
    found = np.array([*plain, False])[codes[tools]]
    transfers = [(number, name) for number, name in enumerate(names) if name.startswith(_TRANSFER)]
    targets = {number: _plain(name.removeprefix(_TRANSFER)) for number, name in transfers}
    if not targets:
        return found
    agents: dict[str, int] = {}
    agent_word = np.array([*(agents.setdefault(_plain(name), len(agents)) for name in traces.agent_names), NONE])
    target_word = np.full(len(names) + 1, NONE)
    for number, target in targets.items():
        target_word[number] = agents.get(target, NONE)
    size = len(agents) + 1
    spans = np.arange(traces.spans)
    present = distinct(traces.trace[spans] * size + agent_word[traces.agent[spans]])
    word = target_word[codes[tools]]
    return found | ((word >= 0) & among(traces.trace[tools] * size + word, present))


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


def model_calls(traces: Traces, runs: Runs) -> ModelCalls:
    """The model calls."""
    inferences = np.flatnonzero(traces.operation == MODEL)
    stops = traces.operation == MODEL
    stops[runs.node] = True
    outer = np.zeros(len(stops) + 1, np.bool_)
    outer[above(traces.parent, stops, inferences)] = True
    outer[-1] = False
    runs.why[inferences] = np.where(outer[inferences], why.OUTER_MODEL, why.MODEL_CALL)
    calls = inferences[~outer[inferences]]
    columns = ("response_id", "provider_name", "request_model", "input_tokens", "output_tokens")
    anything = np.full(len(calls), NONE)
    calls = calls[~twin_calls(traces, calls, runs.owner[calls], anything, columns, runs.why)]
    return ModelCalls(*halves(traces, calls, runs.owner[calls], runs.why))


def tokens(traces: Traces, runs: Runs, models: ModelCalls, kind: str) -> Ints:
    """Tokens of each run, of the ``kind`` that is a span's column. -1 where nothing reported any.

    A run's own model calls decide. If none of them tells, the agent span's aggregate does, without what its sub-runs
    used (a smaller aggregate does not include them).
    """
    count = traces.ints(kind, NONE)
    size = len(runs.node)
    owner, used = runs.owner[models.node], count[models.told_by]
    told = (owner >= 0) & (used >= 0)
    own = np.full(size, NONE, np.int64)
    own[owner[told]] = 0
    np.add.at(own, owner[told], used[told])
    aggregate = count[runs.node]
    asked = (own < 0) & (aggregate >= 0)
    if not asked.any():
        return own
    including = np.zeros(size, np.int64)  # with sub-runs
    depth = depths(runs.parent)
    for level in range(int(depth.max()), -1, -1):
        at = np.flatnonzero(depth == level)
        below = including[at]
        rest = np.where(aggregate[at] >= below, aggregate[at] - below, aggregate[at])
        own[at] = np.where(asked[at], rest, own[at])
        inside = at[runs.parent[at] >= 0]
        np.add.at(including, runs.parent[inside], including[inside] + np.maximum(own[inside], 0))
    return own
