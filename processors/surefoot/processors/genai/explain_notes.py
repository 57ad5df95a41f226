"""Words for what became of each span, and for why something ended as it did.

Contract: functions of one span's facts, as derivation saw them, to sentences for people. They decide nothing: codes,
owners and outcomes come from derivation. Numbers of rules are those of docs/explain.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from surefoot.instrumentation import semconv
from surefoot.processors.genai import why
from surefoot.processors.genai.outcome import OTHER, error_name
from surefoot.processors.genai.traces import MISSING, START

Told = dict[str, Any]  # columns of ``spans``
_WITHOUT: Final = {
    semconv.CREATE_AGENT: "not a run: an agent is created here, not called (rule 12)",
    semconv.EMBEDDINGS: "no model call: embeddings are counted nowhere (rule 9)",
    semconv.INVOKE_WORKFLOW: "not a run: inside another workflow (rule 2)",
    "chain": "a step of a program (rule 2)",
}


@dataclass(frozen=True, slots=True)
class Facts:
    """One node as derivation left it."""

    told: Told
    kind: int
    reason: int
    run: int | None  # number within the trace
    row: Told | None  # of runs, tool_calls or model_calls, if it has one
    parent_run: int | None  # of a run
    cancelled: bool
    exception: str | None
    handoff: bool = False  # bears the marker of one
    other_scope: str | None = None  # of a second report, who reports the same
    failed_run: bool = False  # its trace has one
    by_model_calls: bool = False  # the run's tokens are those of its model calls
    by_time: bool = False
    cut: bool = False


def note(facts: Facts) -> str:
    """What became of a node."""
    reason = facts.reason
    if reason == why.RUN:
        parts = [_run(facts)]
    elif facts.kind == MISSING:
        place = f"in run {facts.run}, which was open then" if facts.run else "outside of any run"
        parts = [f"this parent has not come: what is below is {place} (rule 14)"]
    elif reason in (why.TOOL_CALL, why.MODEL_CALL):
        parts = [_call(facts)]
    elif reason == why.NOTHING:
        parts = [_nothing(facts)]
    else:
        parts = [_folded(facts)]
    if facts.by_time:
        parts.append("placed by time: no span of the trace names a parent (rule 14)")
    if facts.cut:
        parts.append("its parents form a circle, which was cut here")
    return "; ".join([*parts, *_tokens(facts)])


def _run(facts: Facts) -> str:
    row, told = facts.row or {}, facts.told
    whose = f" of agent {row['agent_name']}" if row.get("agent_name") else ""
    under = f", sub-run of run {facts.parent_run}" if facts.parent_run else ""
    why_run = ""
    if facts.kind == START:
        why_run = ", of which only the start has come (rule 14)"
    elif facts.kind == MISSING:
        why_run = ", told by its calls: this parent never came (rule 14)"
    elif told["operation"] != semconv.INVOKE_AGENT:
        what = "the topmost workflow" if told["operation"] == semconv.INVOKE_WORKFLOW else "a root chain"
        why_run = f": {what}, and no span is an agent's (rule 2)"
    outcome = row["outcome"]
    because = "" if outcome in ("ok", "unknown") else f": {outcome_reason(facts)}"
    return f"run {facts.run}{whose}{under}{why_run}, outcome {outcome}{because}"


def _call(facts: Facts) -> str:
    row = facts.row or {}
    place = f" of run {facts.run}" if facts.run else " outside of any run"
    outcome = "" if row["outcome"] == "ok" else f", outcome {row['outcome']}: {outcome_reason(facts)}"
    doubt = ", perhaps another's second report: nothing says whose (rule 16)" if row.get("possible_duplicate") else ""
    return f"{why.REASONS[facts.reason].text}{place}{outcome}{doubt}"


def _folded(facts: Facts) -> str:
    reason = why.REASONS[facts.reason]
    told = facts.told
    if facts.reason == why.HANDOFF:
        if told["operation"] == semconv.EXECUTE_TOOL:
            return "handoff, not a tool call (rule 7)"
        return f"handoff, not a run (rule {reason.rule})"
    if facts.reason == why.AROUND_RUNS:
        workflow = told["operation"] == semconv.INVOKE_WORKFLOW
        root = " root" if workflow and told["parent_span_id"] is None else ""
        thing = f"workflow{root}" if workflow else "a step"
        says_so = told["status"] == "error" or (root and told["status"] == "ok")
        contradicts = says_so and (told["status"] == "error") != facts.failed_run
        status = f"; its status {told['status']} is no run's outcome (rule 4)" if contradicts else ""
        return f"{reason.text.format(thing=thing)} (rule {reason.rule}){status}"
    things = {semconv.INVOKE_AGENT: "run", semconv.EXECUTE_TOOL: "tool call"}
    text = reason.text.format(thing=things.get(told["operation"], "call"))
    richer = f", of which {facts.other_scope} tells more" if facts.other_scope else ""
    return f"{text}{richer} (rule {reason.rule})"


def _nothing(facts: Facts) -> str:
    operation = facts.told["operation"]
    place = f"in run {facts.run}" if facts.run else "outside of any run"
    if operation == "handoff":
        return f"handoff: no run and no tool call (rule {15 if facts.handoff else 7})"
    if operation in _WITHOUT:
        return _WITHOUT[operation]
    if facts.told["dialect"] is None:
        return f"not about GenAI, {place}"
    return f"{why.REASONS[why.NOTHING].text}, {place}"


def _tokens(facts: Facts) -> list[str]:
    """What became of the tokens that a span tells."""
    told = facts.told.get("input_tokens") is not None or facts.told.get("output_tokens") is not None
    if facts.reason == why.MODEL_CALL:
        return [] if told or (facts.row or {}).get("input_tokens") is not None else ["no tokens told"]
    if not told or facts.reason == why.SECOND_HALF or facts.told.get("operation") == semconv.EMBEDDINGS:
        return []
    if facts.reason == why.OUTER_MODEL:
        return ["tokens not counted: an inner model call has them (rule 9)"]
    if facts.reason == why.TWIN:
        return ["tokens not counted again"]
    if facts.reason == why.RUN:
        if facts.by_model_calls:
            return ["tokens not counted: its model calls have them (rule 9)"]
        return ["its tokens are the run's: no model call tells any (rule 9)"]
    return ["tokens not counted: only model calls and runs have any (rule 9)"]


def outcome_reason(facts: Facts) -> str:
    """Why a run or a call ended as it did."""
    outcome = (facts.row or {})["outcome"]
    if facts.kind == MISSING:
        return "its own span never came (rule 14)"
    if outcome == "running":
        return "its span has not come, and the trace still gives signs of life (rule 14)"
    if outcome == "abandoned":
        return "its span never came, and nothing more is to come (rule 14)"
    if outcome == "ok":
        return "its own span ended without an error (rule 4)"
    if outcome == "retry":
        return "the tool asked for another try (rule 7)"
    told = facts.told
    name = error_name(told["error_type"], facts.exception, told["status_message"])
    if outcome == "cancelled":
        if facts.cancelled:
            return "marked as cancelled (rule 5)"
        return f"{'an abandoned stream' if name == OTHER else name} is no failure (rule 5)"
    if outcome == "deferred":
        return f"{name} hands it to somebody else (rule 5)"
    if outcome == "refused":
        by_mode = (facts.row or {}).get("mode") == "refuse"
        return "its mode is refuse" if by_mode else f"{name}: a guard or a person said no (rule 5)"
    if told["status"] != "error":
        return f"error.type {name}, although its status is not error"
    return f"own status{_named(facts, name)}"


def _named(facts: Facts, name: str) -> str:
    """Where the name of an error comes from (rule 6)."""
    told = facts.told
    if name == OTHER:
        return ", error without a name (rule 6)"
    if name == error_name(told["error_type"], None, None):
        return f", error.type {name}"
    if name == error_name(None, facts.exception, None):
        return f", {name} from the exception event (rule 6)"
    return f", {name} from the status message (rule 6)"
