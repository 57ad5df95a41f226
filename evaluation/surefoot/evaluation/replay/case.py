"""From a trace in the lake to what a regression case needs: the task's input, the tools' calls, what went wrong.

Rule: nothing is made up. A tool call whose arguments or result the trace does not tell stays in the case as a gap, and
every gap is listed; an input that was not captured is a placeholder that says so.
"""

from __future__ import annotations

import builtins
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from surefoot.evaluation.errors import EvaluationError
from surefoot.evaluation.replay.canonical import call_key
from surefoot.evaluation.replay.cassette import Entry
from surefoot.evaluation.replay.redaction import BUILT_IN
from surefoot.evaluation.replay.values import encode
from surefoot.instrumentation import semconv
from surefoot.instrumentation.redaction import REDACTED
from surefoot.processors.lake import Lake

Row = dict[str, Any]
# Where dialects keep them; names that mean other things elsewhere are left alone.
_ARGUMENTS: Final = (semconv.TOOL_ARGUMENTS, "tool_arguments", "input.value", "input", "langfuse.observation.input")
_RESULTS: Final = (semconv.TOOL_RESULT, "tool_response")
_MESSAGES: Final = (semconv.INPUT_MESSAGES, semconv.OUTPUT_MESSAGES, "pydantic_ai.all_messages")
_INPUTS: Final = (semconv.INPUT_MESSAGES, "pydantic_ai.all_messages", "gen_ai.task.input", "input.value")
_OUTPUTS: Final = ("final_result", semconv.OUTPUT_MESSAGES, "gen_ai.task.output", "output.value")
_NOT_CALLED: Final = frozenset({"deferred", "refused"})
_BAD: Final = frozenset({"error", "cancelled", "abandoned"})


class CaseError(EvaluationError):
    """A trace that no case can be made of."""


@dataclass(frozen=True, slots=True)
class Case:
    """What a trace tells. ``input`` and ``output`` are None where they were not captured."""

    trace_id: str
    run: Row
    input: Any
    output: Any
    entries: tuple[Entry, ...]
    failures: tuple[str, ...]  # in words; empty if the trace shows none
    crashed: bool  # the run itself did not end well
    versions: dict[str, str]
    gaps: tuple[str, ...]


@dataclass(slots=True)
class _Trace:
    spans: dict[str, Row]
    contents: dict[str, dict[str, str]] = field(default_factory=dict)
    # By tool call id, from messages: what the model asked for, and what it was told.
    asked: dict[str, Any] = field(default_factory=dict)
    told: dict[str, Any] = field(default_factory=dict)


def read_case(lake: Lake, trace_id: str) -> Case:
    """Return the case of a trace. Raises CaseError if it holds no run."""
    runs = _read(lake, "runs", trace_id, "started_unix_nano")
    if not runs:
        raise CaseError(
            f"Making a case of trace {trace_id}: it holds no run of an agent. `surefoot explain {trace_id}` shows what "
            "it holds; if it came just now, its runs follow within seconds."
        )
    roots = [row for row in runs if row["parent_run_id"] is None] or runs[:1]
    verdicts = [row for row in _read(lake, "verdicts", trace_id, "occurred_at") if row["verdict"] == "fail"]
    blamed = {row["run_id"] for row in verdicts}
    run = next((row for row in roots if row["outcome"] in _BAD or row["run_id"] in blamed), roots[0])
    # What was said of another root is not this one's failure, and its answer is not what must not recur.
    others = {row["run_id"] for row in roots if row is not run}
    verdicts = [row for row in verdicts if row["run_id"] not in others]
    trace = _Trace({row["span_id"]: row for row in _read(lake, "spans", trace_id, "start_unix_nano")})
    for row in _read(lake, "contents", trace_id, "start_time"):
        trace.contents.setdefault(row["span_id"], {})[row["name"]] = row["content"]
        if row["name"] in _MESSAGES:
            _take_calls(trace, _parsed(row["content"]))
    gaps: list[str] = []
    calls = _read(lake, "tool_calls", trace_id, "started_at")
    entries = tuple(_entries(trace, calls, gaps))
    given, output = _input(trace, run), _first(trace, run, _OUTPUTS, _answer)
    if given is None:
        gaps.append("the task's input was not captured: write it into the suite")
    elif REDACTED in json.dumps(given):
        gaps.append(f"the task's input holds {REDACTED}: write into the suite what stood there")
    if output is not None and REDACTED in json.dumps(output):
        gaps.append(f"the answer holds {REDACTED}: the checker will not know it again; say in it what is wrong")
    if len(runs) > 1:
        which = "the first one's" if len(roots) == 1 else f"that of one of {len(roots)} that no other began"
        which += "" if len(roots) == 1 else ", the first that failed, else the first"
        gaps.append(f"the trace has {len(runs)} runs: the case is {which}, with the tool calls of all")
    crashed = run["outcome"] in _BAD
    failures = tuple(_failures(trace, run, verdicts, crashed=crashed))
    if not failures:
        gaps.append(
            "the trace shows no failure, neither an error nor a verdict: say in the checker what must not recur"
        )
    return Case(trace_id, run, given, output, entries, failures, crashed, _versions(run, trace), tuple(gaps))


def _read(lake: Lake, table: str, trace_id: str, order: str) -> list[Row]:
    rows: list[Row] = lake.read(table, None, "trace_id = ?", [trace_id]).to_pylist()
    return sorted(rows, key=lambda row: (row[order] is None, row[order] or 0))


def _entries(trace: _Trace, calls: Sequence[Row], gaps: list[str]) -> Iterable[Entry]:
    seen: Counter[str] = Counter()
    for row in calls:
        name = row["tool_name"] or "unknown"
        what = f"the call of {name} at {row['started_at']:%H:%M:%S.%f}"
        if row["outcome"] in _NOT_CALLED:
            gaps.append(f"{what} was {row['outcome']}: the tool was not called, and there is nothing to replay")
            continue
        arguments = _arguments(trace, row)
        if arguments is None:
            gaps.append(f"{what}: its arguments were not captured, so it can be found by no key and is left out")
            continue
        outcome = _outcome(trace, row)
        if outcome.get("missing"):
            gaps.append(f'{what}: its result was not captured; write "result" into its line and seal the cassette')
        if REDACTED in json.dumps(outcome):
            gaps.append(f"{what}: its result holds {REDACTED}, and so it is replayed")
        cleaned = BUILT_IN.clean(arguments)
        if REDACTED in json.dumps(cleaned):
            gaps.append(f"{what}: its arguments hold {REDACTED}; a call with the real value may not find it")
        key = call_key(name, cleaned)
        yield Entry(key, seen[key], name, "tool", row["effect"] or "unknown", cleaned, BUILT_IN.clean(outcome))
        seen[key] += 1


def _arguments(trace: _Trace, row: Row) -> dict[str, Any] | None:
    kept = trace.contents.get(row["span_id"], {})
    found = [_parsed(kept[name]) for name in _ARGUMENTS if name in kept] + [trace.asked.get(row["tool_call_id"] or "")]
    return next((one for one in found if isinstance(one, dict)), None)


def _outcome(trace: _Trace, row: Row) -> dict[str, Any]:
    if row["outcome"] == "cancelled":
        return {"cancelled": True}
    if row["outcome"] in {"error", "retry"}:
        return {"error": _error(trace.spans.get(row["span_id"]), row["error_type"])}
    kept = trace.contents.get(row["span_id"], {})
    said = next((kept[name] for name in _RESULTS if name in kept), None)
    call_id = row["tool_call_id"] or ""
    if call_id in trace.told and (said is None or str(trace.told[call_id]) == said):
        return {"result": encode(trace.told[call_id])}  # from a message: there text and number are told apart
    return {"missing": True} if said is None else {"result": encode(_parsed(said))}


def _error(span: Row | None, error_type: str | None) -> dict[str, Any]:
    name, message = error_type or "Error", (span or {}).get("status_message") or ""
    for event in (span or {}).get("events") or ():
        attributes = dict(event["attributes"])
        if event["name"] == "exception":
            name = attributes.get("exception.type", name)
            message = attributes.get("exception.message", message)
    module, _, kind = name.rpartition(".")
    module = module or ("builtins" if isinstance(getattr(builtins, kind, None), type) else "unknown")
    return {"type": f"{module}:{kind}", "message": message, "args": [message]}


def _take_calls(trace: _Trace, messages: Any) -> None:
    for message in messages if isinstance(messages, list) else ():
        for part in _parts(message):
            if part.get("type") == "tool_call" and part.get("id"):
                given = part.get("arguments")
                trace.asked[part["id"]] = _parsed(given) if isinstance(given, str) else given
            if part.get("type") == "tool_call_response" and part.get("id"):
                told = [part[name] for name in ("response", "result") if name in part]
                trace.told.update({part["id"]: told[0]} if told else {})


def _parts(message: Any) -> list[dict[str, Any]]:
    parts = message.get("parts") if isinstance(message, dict) else None
    return [part for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []


def _input(trace: _Trace, run: Row) -> Any:
    """What the run was given: of its span, else of its first model call."""
    found = _first(trace, run, _INPUTS, _asked)
    if found is not None:
        return found
    chats = [row for row in trace.spans.values() if semconv.INPUT_MESSAGES in trace.contents.get(row["span_id"], {})]
    return _first(trace, chats[0], _INPUTS, _asked) if chats else None


def _first(trace: _Trace, row: Row, names: Iterable[str], read: Any) -> Any:
    kept = trace.contents.get(row["span_id"], {})
    return next((found for name in names if name in kept and (found := read(_parsed(kept[name]))) is not None), None)


def _asked(given: Any) -> Any:
    """Messages up to the model's first own: the text if it is one, else the messages; anything else as it is."""
    if not _are_messages(given):
        return given
    before = []
    for message in given:
        if message["role"] == "assistant":
            break
        before.append(message)
    users = [message for message in before if message["role"] == "user"]
    texts = [_text(message) for message in users]
    return texts[0] if len(texts) == 1 and texts[0] else given if users else None


def _answer(given: Any) -> Any:
    return (_text(given[-1]) or None) if _are_messages(given) and given else given


def _are_messages(given: Any) -> bool:
    return isinstance(given, list) and all(isinstance(one, dict) and "role" in one and "parts" in one for one in given)


def _text(message: Mapping[str, Any]) -> str:
    return "".join(str(part.get("content", "")) for part in _parts(message) if part.get("type") == "text")


def _failures(trace: _Trace, run: Row, verdicts: Sequence[Row], *, crashed: bool) -> Iterable[str]:
    if crashed:
        error = _error(trace.spans.get(run["span_id"]), run["error_type"])
        kind = error["type"].partition(":")[2] if run["error_type"] else ""
        yield f"the run ended as {run['outcome']}: {kind} {error['message']}".rstrip(": ")
    for row in verdicts:
        grader = " ".join(str(row[name]) for name in ("grader_name", "grader_version") if row[name])
        why = f": {row['explanation']}" if row["explanation"] else ""
        yield f"{row['kind']} verdict {row['name']} failed{f' (by {grader})' if grader else ''}{why}"


def _versions(run: Row, trace: _Trace) -> dict[str, str]:
    found = {f"model.{model}": model for row in trace.spans.values() if (model := row["response_model"])}
    span = trace.spans.get(run["span_id"], {})
    told = {"agent": run["agent_version"], "service": span.get("service_version")}
    named = {name: str(value) for name, value in told.items() if value}
    models = {"model": ", ".join(sorted(found.values()))} if found else {}
    return {**named, **models, **dict(run["versions"] or ())}


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text
