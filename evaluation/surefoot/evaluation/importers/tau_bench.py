"""tau-bench's ``historical_trajectories/*.json``: an array of runs, each with task, trial, reward and conversation."""

from __future__ import annotations

import functools
import operator
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from surefoot.evaluation.importers.json_parts import items
from surefoot.evaluation.importers.reading import Dropped, Format, Options, accepted, made, missing_fields
from surefoot.evaluation.records import Attempt, Failure, Verdict

_NEEDED: Final = ("task_id", "reward")


def _header(_path: Path, _options: Options) -> dict[str, Any]:
    return {"suite": "tau-bench"}


def _read(path: Path, options: Options, _header: Mapping[str, Any]) -> Iterator[Attempt | Dropped]:
    seen: dict[tuple[str, int], int] = {}
    for number, run in enumerate(items(path, "item")):
        absent = missing_fields(run, _NEEDED)
        if absent or not isinstance(run["reward"], int | float):
            what = f"no {', '.join(absent)}" if absent else f"its reward is {run['reward']!r}, no number"
            yield Dropped(path.name, f"run {number}", f"{what}; a run of tau-bench has task_id, trial, reward, traj")
            continue
        found = made(path, f"run {number}", functools.partial(_attempt, run, options))
        if isinstance(found, Attempt) and found.repetition >= 0:
            first = seen.setdefault((found.task_id, found.repetition), number)
            if first != number:
                what = f"trial {found.repetition} of task {found.task_id} is run {first} already; keep one of them"
                found = Dropped(path.name, f"run {number}", what)
        yield found


def _attempt(run: Mapping[str, Any], options: Options) -> Attempt:
    info = run.get("info") or {}
    messages = run.get("traj") or []
    actions = tuple(_actions(messages))
    good = accepted(run["reward"], options)
    parts = (info.get("reward_info") or {}).get("info") or {}
    said = [message.get("content") for message in messages if message.get("role") == "assistant"]
    # An exception in the harness's loop: the published figures count it as reward 0.
    failure = Failure("error", str(info["error"]), info.get("traceback")) if "error" in info else None
    return Attempt(
        attempt_id="",
        suite="",
        variant="",
        task_id=str(run["task_id"]),
        repetition=operator.index(run.get("trial", -1)),
        outcome="ok" if failure is None else "error",
        error=failure,
        output=said[-1] if said else None,
        acceptable=good,
        verdicts=(
            Verdict(
                name="reward",
                kind="outcome",
                verdict="pass" if good else "fail",
                grader_name="tau-bench",
                grader_kind="executable",
                score=float(run["reward"]),
            ),
        ),
        actions=actions,
        tool_calls=len(actions),
        model_calls=len(said),
        extra={
            **{name: parts[name] for name in ("r_actions", "r_outputs") if name in parts},
            **({"user_cost": info["user_cost"]} if "user_cost" in info else {}),
        },
    )


def _actions(messages: list[Mapping[str, Any]]) -> Iterator[str]:
    for message in messages:
        for call in message.get("tool_calls") or ():
            yield call["function"]["name"]
        if message.get("function_call"):
            yield message["function_call"]["name"]


FORMAT: Final = Format(
    name="tau-bench",
    about="a JSON array of runs with task_id, trial, reward, info and traj",
    read=_read,
    header=_header,
    cannot_tell={
        "times": "tau-bench's trajectories have none",
        "costs": "only the simulated user's is written down (extra.user_cost), not the agent's",
        "tokens": "tau-bench's trajectories have none",
        "equivalence of failures": "the database's final state is written down of the goal only",
        "which agent": "the file names no model; the variant is its file's name, or what you give",
    },
    grader_kind="executable",
)
