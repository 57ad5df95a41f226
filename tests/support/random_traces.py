"""Random traces: trees of agents, tools, model calls and plain spans, some never exported, with start events and
evaluations, as hypothesis strategies over rows of ``spans`` and ``logs``."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from support.traces import TRACE, evaluation, run_started, span

Row = dict[str, Any]

_OPERATIONS = ["invoke_agent", "invoke_agent", "execute_tool", "execute_tool", "chat", "chat", "invoke_workflow", None]


@st.composite
def traces(draw: st.DrawFn, trace: str = TRACE, most: int = 12) -> list[Row]:
    """Rows of one trace in order of creation, parents first."""
    rows: list[Row] = []
    for number in range(draw(st.integers(1, most))):
        rows += draw(_node(trace, number))
    return rows


@st.composite
def _node(draw: st.DrawFn, trace: str, number: int) -> list[Row]:
    name = f"s{number}"
    parent = draw(st.one_of(st.none(), st.integers(0, number))) if number else None
    operation = draw(st.sampled_from(_OPERATIONS))
    at = draw(st.integers(0, 20))
    failed = draw(st.booleans())
    columns: Row = {
        "operation": operation,
        "agent_name": draw(st.sampled_from(["desk", "billing", None])) if operation != "execute_tool" else None,
        "tool_name": draw(st.sampled_from(["pay", "look", "transfer_to_billing"]))
        if operation == "execute_tool"
        else None,
        "input_tokens": draw(st.one_of(st.none(), st.integers(0, 50))),
        "response_id": draw(st.sampled_from([None, f"r-{trace[-4:]}-{number}", "constant"]))
        if operation == "chat"
        else None,
        "task_id": draw(st.sampled_from([None, "t1"])),
        "status": "error" if failed else "unset",
        "error_type": draw(st.sampled_from([None, "Broken", "CancelledError"])) if failed else None,
    }
    # A parent of its own number is the span itself, a later one does not exist: broken links are part of life.
    above = None if parent is None else f"s{parent}"
    rows: list[Row] = []
    if draw(st.integers(0, 4)):
        lasts = draw(st.integers(0, 10))
        rows.append(span(name, above, at, lasts, trace=trace, received=at + lasts, **columns))
    if operation == "invoke_agent" and draw(st.booleans()):
        rows.append(run_started(name, at, trace=trace))
    if draw(st.integers(0, 3)) == 0:
        told = {"score.label": draw(st.sampled_from(["pass", "fail", "perhaps"]))}
        home = draw(st.sampled_from([trace, trace, None]))
        if home is None:
            told["gen_ai.response.id"] = f"r-{trace[-4:]}-{draw(st.integers(0, number))}"
        rows.append(evaluation(name if home else None, at + 15, trace=home, attributes=told))
    return rows
