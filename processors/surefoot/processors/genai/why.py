"""What became of a span, as small numbers, for whoever wants to see how a trace was understood. Not stored."""

from __future__ import annotations

from typing import Final

NOTHING: Final = 0  # it is around or between the others
RUN: Final = 1
TOOL_CALL: Final = 2
MODEL_CALL: Final = 3
WRAPPER: Final = 4
TURN: Final = 5
REPEAT: Final = 6
HANDOFF: Final = 7
TWIN: Final = 8
AROUND_RUNS: Final = 9
NESTED_TOOL: Final = 10
PHANTOM: Final = 11
OUTER_MODEL: Final = 12
SECOND_HALF: Final = 13

TEXTS: Final = {
    NOTHING: "belongs to the run above it, if any",
    RUN: "a run",
    TOOL_CALL: "a tool call",
    MODEL_CALL: "a model call",
    WRAPPER: "folded: a nameless agent span around a named one",
    TURN: "folded: a nameless agent span inside a named one, which is its turn",
    REPEAT: "folded: an agent span directly under another of the same name",
    HANDOFF: "folded: passes the conversation to another agent",
    TWIN: "folded: another instrumentation's report of the same thing is richer",
    AROUND_RUNS: "folded: a workflow or chain in a trace that has agent spans",
    NESTED_TOOL: "folded: a tool span inside another of the same tool",
    PHANTOM: "folded: a tool that is none",
    OUTER_MODEL: "folded: a model span around another, which is the call",
    SECOND_HALF: "folded: the second half of a streamed model call, whose tokens the first half got",
}
