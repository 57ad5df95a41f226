"""What became of a span, as small numbers, for whoever wants to see how a trace was understood. Not stored.

The numbers of rules are those of docs/explain.md. Rule: every code has words here; ``surefoot explain`` shows them.
"""

from __future__ import annotations

from typing import Final, NamedTuple

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


class Reason(NamedTuple):
    """A name for scripts, words for people (after the span), a short word for lists, and the rule."""

    name: str
    text: str
    short: str
    rule: int


REASONS: Final = {
    NOTHING: Reason("nothing", "nothing to count", "nothing to count", 2),
    RUN: Reason("run", "a run", "run", 2),
    TOOL_CALL: Reason("tool_call", "tool call", "tool call", 7),
    MODEL_CALL: Reason("model_call", "model call", "model call", 9),
    WRAPPER: Reason("wrapper", "folded: no name, around a named agent", "wrapper", 2),
    TURN: Reason("turn", "folded into the agent above: no name, so one of its turns", "turn", 2),
    REPEAT: Reason("repeat", "folded into its parent: same agent name directly under", "repeat of its parent", 2),
    HANDOFF: Reason("handoff", "handoff", "handoff", 15),
    TWIN: Reason("twin", "second report of the same {thing} by another instrumentation", "second report", 8),
    AROUND_RUNS: Reason("around_runs", "not a run: {thing} in a trace that has agents", "around or between agents", 2),
    NESTED_TOOL: Reason("nested_tool", "folded: inside a call of the same tool", "inside the same tool", 7),
    PHANTOM: Reason("phantom", "not a tool call: no tool stands behind this name", "no real tool", 7),
    OUTER_MODEL: Reason("outer_model", "not the model call: the one inside it is", "around a model call", 9),
    SECOND_HALF: Reason("second_half", "the end of a streamed call, which has these tokens", "end of a stream", 16),
}
