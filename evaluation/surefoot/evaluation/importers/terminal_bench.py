"""Terminal-Bench's ``results.json`` of one run of the harness: every trial of every task, and its own pass@k.

The harness counts a trial without a result (``is_resolved`` null: the test ran out of time, its output could not be
parsed, the agent broke) as not resolved, and so does the import, unless it is asked to count them as missing.
"""

from __future__ import annotations

import functools
import json
import operator
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from surefoot.evaluation.importers.json_parts import first, items
from surefoot.evaluation.importers.reading import Dropped, Format, Options, ResultsError, made, missing_fields
from surefoot.evaluation.records import Attempt, Failure, Outcome, Verdict

_NEEDED: Final = ("task_id", "is_resolved")
_WELL: Final = frozenset({"unset", "none"})  # failure modes that are none
_OUTCOME: Final[Mapping[str, Outcome]] = {
    "agent_timeout": "timeout",
    "unknown_agent_error": "error",
    "fatal_llm_parse_error": "error",
    "context_length_exceeded": "error",
}


def _header(path: Path, _options: Options) -> dict[str, Any]:
    said: dict[str, Any] = {"suite": "terminal-bench"}
    for name in ("id", "pass_at_k", "accuracy"):
        value = first(path, name)
        if value is not None:
            said[name] = value
    beside = path.with_name("run_metadata.json")
    if beside.is_file():
        run = _metadata(beside)
        said["run_metadata"] = run
        names = [str(run[name]) for name in ("agent_name", "model_name") if run.get(name)]
        said["variant"] = "/".join(names) or None
        said["suite"] = run.get("dataset_name") or said["suite"]
    return said


def _metadata(file: Path) -> dict[str, Any]:
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ResultsError(f"Reading {file.name}: it is no JSON ({error}). Get it again, or move it away.") from error
    if not isinstance(found, dict):
        raise ResultsError(f"Reading {file.name}: it is no JSON object. Get it again, or move it away.")
    return found


def _read(path: Path, options: Options, _header: Mapping[str, Any]) -> Iterator[Attempt | Dropped]:
    seen: dict[str, int] = {}
    for number, trial in enumerate(items(path, "results.item")):
        absent = missing_fields(trial, _NEEDED)
        if absent:
            reason = f"no {', '.join(absent)}; a trial has task_id, trial_name, is_resolved, failure_mode"
            yield Dropped(path.name, f"trial {number}", reason)
            continue
        identity = next((str(trial[name]) for name in ("uuid", "id") if trial.get(name)), str(number))
        first = seen.setdefault(identity, number)
        if first != number:
            yield Dropped(path.name, f"trial {number}", f"it is trial {first} again (id {identity}); keep one of them")
        else:
            yield made(path, f"trial {number}", functools.partial(_attempt, trial, options))


def _attempt(trial: Mapping[str, Any], options: Options) -> Attempt:
    mode = trial.get("failure_mode") or "unset"
    resolved: bool | None = trial["is_resolved"]
    if resolved is not None and not isinstance(resolved, bool):
        raise TypeError(f"is_resolved is {resolved!r}, neither true, false nor null")
    unknown = resolved is None
    if unknown and options.no_verdict != "missing":
        resolved = False
    tests = trial.get("parser_results") or {}
    failed = sorted(name for name, result in tests.items() if result != "passed")
    why = f"no result ({mode}), which the harness counts as not resolved" if unknown else None
    return Attempt(
        attempt_id="",
        suite="",
        variant="",
        task_id=str(trial["task_id"]),
        repetition=-1,
        outcome=_OUTCOME.get(mode, "ok"),
        error=None if mode in _WELL else Failure(mode, f"the harness reported {mode}"),
        started_at=_seconds(trial.get("agent_started_at") or trial.get("trial_started_at")),
        ended_at=_seconds(trial.get("agent_ended_at") or trial.get("trial_ended_at")),
        acceptable=resolved,
        verdicts=(
            Verdict(
                name="is_resolved",
                kind="outcome",
                verdict="unresolved" if resolved is None else "pass" if resolved else "fail",
                explanation=why or (f"failed: {', '.join(failed)}" if failed else None),
                grader_name="terminal-bench",
                grader_kind="executable",
            ),
        ),
        input_tokens=_count(trial.get("total_input_tokens")),
        output_tokens=_count(trial.get("total_output_tokens")),
        extra={name: trial[name] for name in ("trial_name", "uuid", "id", "failure_mode") if name in trial},
    )


def _count(value: Any) -> int | None:
    return None if value is None else operator.index(value)


def _seconds(text: str | None) -> float | None:
    return None if text is None else datetime.fromisoformat(text).timestamp()


FORMAT: Final = Format(
    name="terminal-bench",
    about="results.json with an array results of trials, each with task_id and is_resolved",
    read=_read,
    header=_header,
    cannot_tell={
        "costs": "the harness counts tokens, not money",
        "equivalence of failures": "the container's final state is not kept",
        "tool calls": "results.json has no trajectory",
        "order": "trials are numbered in the order of the file",
    },
    grader_kind="executable",
)
