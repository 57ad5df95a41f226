"""The tool calls and model calls of a trace, each real one once.

Rules: ``execute_tool`` directly or indirectly inside ``execute_tool`` of the same tool is the same call seen twice (MCP
client and server), the outer one counts; of inference spans inside inference spans the innermost counts; phantom tools
and handoffs are no calls. A failed tool does not make a failed run.
"""

from __future__ import annotations

import re
from collections import Counter
from operator import attrgetter
from typing import Final

from surefoot.instrumentation import semconv
from surefoot.processors.genai.outcome import error_name, outcome
from surefoot.processors.genai.runs import Run, Runs
from surefoot.processors.genai.trace import RETRY_CAUSE, Span, Trace
from surefoot.processors.genai.tree import climb

# google-adk adds "(merged tools)" after parallel calls; smolagents ends by calling the tool "final_answer".
_PHANTOMS: Final = frozenset({"(merged tools)", "final_answer"})
_HANDOFF: Final = "handoff to "
_TRANSFER: Final = "transfer_to_"
_RETRY: Final = "ToolRetryError"

RETRY: Final = "retry"
FAILED: Final = frozenset({"error", RETRY})


def tool_spans(trace: Trace, runs: Runs) -> list[Span]:
    """The spans that are tool calls, in order of time."""
    tools = {span.span_id: span for span in trace.spans.values() if span.operation == semconv.EXECUTE_TOOL}
    if not tools:
        return []
    above = climb(trace.spans, tools.keys() | runs.by_id.keys())
    agents = {_plain(span.agent_name) for span in trace.spans.values() if span.agent_name}

    def counts(span: Span) -> bool:
        outer = tools.get(above(span.parent_span_id) or "")
        nested = outer is not None and outer.tool_name == span.tool_name
        return not nested and span.tool_name not in _PHANTOMS and not _is_handoff(span.tool_name, agents)

    return [span for span in tools.values() if counts(span)]


def _is_handoff(tool_name: str | None, agents: set[str]) -> bool:
    """Whether the tool passes the conversation to another agent.

    ``transfer_to_x`` is one only if x is an agent that the trace knows: it may as well move money.
    """
    if tool_name is None:
        return False
    if tool_name.startswith(_TRANSFER):
        target = _plain(tool_name.removeprefix(_TRANSFER))
        return target == "agent" or target in agents
    return tool_name.startswith(_HANDOFF)


def _plain(name: str | None) -> str:
    return re.sub(r"[^a-z0-9]", "", (name or "").lower())


def tool_outcome(span: Span) -> str:
    """``ok``, ``error``, ``retry`` (the tool asked the model to try again), ``cancelled`` or ``deferred``."""
    ended = outcome(span)
    if ended == "error" and (RETRY_CAUSE in span.marks or error_name(span) == _RETRY):
        return RETRY
    return ended


def model_spans(trace: Trace, runs: Runs) -> list[Span]:
    """The spans that are model calls, in order of time."""
    inferences = {span.span_id: span for span in trace.spans.values() if span.operation in semconv.MODEL_OPERATIONS}
    if not inferences:
        return []
    above = climb(trace.spans, inferences.keys() | runs.by_id.keys())
    outer = {above(span.parent_span_id) for span in inferences.values()}
    return [span for span in inferences.values() if span.span_id not in outer]


def tokens(runs: Runs, models: list[Span], kind: str) -> dict[str, int | None]:
    """Tokens of each run by its span id, of the ``kind`` that is a span's column. None where nothing reported any.

    A run's own model calls decide. If none of them tells, the agent span's aggregate does, without what its sub-runs
    used (a smaller aggregate does not include them).
    """
    count = attrgetter(kind)
    own: dict[str, int] = {}
    for span in models:
        run_id, used = runs.run_of.get(span.span_id), count(span)
        if run_id is not None and used is not None:
            own[run_id] = own.get(run_id, 0) + used
    result: dict[str, int | None] = {}
    including: Counter[str] = Counter()  # with sub-runs
    for run in _sub_runs_first(runs):
        below, used = including[run.span_id], own.get(run.span_id)
        aggregate = count(run.span) if run.span is not None else None
        if used is None and aggregate is not None:
            used = aggregate - below if aggregate >= below else aggregate
        result[run.span_id] = used
        if run.parent is not None:
            including[run.parent] += below + (used or 0)
    return result


def _sub_runs_first(runs: Runs) -> list[Run]:
    """All runs, each after those directly under it."""
    waiting = Counter(run.parent for run in runs.by_id.values() if run.parent is not None)
    ready = [run for run in runs.by_id.values() if not waiting[run.span_id]]
    for run in ready:
        if run.parent is not None:
            waiting[run.parent] -= 1
            if not waiting[run.parent]:
                ready.append(runs.by_id[run.parent])
    return ready
