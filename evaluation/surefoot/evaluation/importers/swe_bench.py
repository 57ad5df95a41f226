"""SWE-bench's run reports, one file per run of the harness: ids of instances by what became of them.

The published share is resolved of all instances, so an instance that was not submitted, had an empty patch or ended in
an error of the evaluation counts as not resolved, unless the import is asked to count what has no verdict as missing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from surefoot.evaluation.importers.json_parts import items, keys
from surefoot.evaluation.importers.reading import Dropped, Format, Options, ResultsError
from surefoot.evaluation.records import Attempt, Failure, Outcome, Verdict

# What the lists of a report mean: (how the attempt ended, whether it is resolved; None: nobody judged it).
_LISTS: Final[Mapping[str, tuple[Outcome, bool | None]]] = {
    "resolved_ids": ("ok", True),
    "unresolved_ids": ("ok", False),
    "empty_patch_ids": ("ok", False),
    "error_ids": ("error", None),
    "incomplete_ids": ("error", None),
}
_SAYS: Final = {
    "empty_patch_ids": "the patch was empty",
    "error_ids": "the evaluation ended in an error",
    "incomplete_ids": "no prediction was submitted",
}


def _header(path: Path, _options: Options) -> dict[str, Any]:
    plain = {name: value for name, value in keys(path) if isinstance(value, int | str)}
    # The harness names the file MODEL.RUN_ID.json.
    return {"suite": "swe-bench", "variant": path.stem.rpartition(".")[0] or path.stem, **plain}


def _read(path: Path, options: Options, _header: Mapping[str, Any]) -> Iterator[Attempt | Dropped]:
    seen: dict[str, str] = {}
    if not any(name in _LISTS for name, _ in keys(path)):
        yield from _by_instance(path, options)
        return
    for name in _LISTS:
        for place, instance in enumerate(items(path, f"{name}.item")):
            if not isinstance(instance, str):
                yield Dropped(path.name, f"{name}[{place}]", f"{instance!r} is no instance's id; ids are text")
            elif instance in seen:
                yield Dropped(path.name, f"{name}[{place}]", f"{instance} is in {seen[instance]} already; keep one")
            else:
                seen[instance] = name
                yield _attempt(instance, name, *_LISTS[name], options)


def _by_instance(path: Path, options: Options) -> Iterator[Attempt | Dropped]:
    """``report.json``: an object with a report for each instance."""
    for instance, report in keys(path):
        if isinstance(report, dict) and isinstance(report.get("resolved"), bool):
            name = "resolved_ids" if report["resolved"] else "unresolved_ids"
            yield _attempt(instance, name, "ok", report["resolved"], options)
        elif isinstance(report, dict):
            yield Dropped(path.name, instance, "its report has no `resolved` that is true or false")
        else:
            raise ResultsError(
                f"Reading {path.name} as swe-bench: it has neither resolved_ids nor a report for each instance. "
                "Give the harness's report of a run (schema 2), or report.json."
            )


def _attempt(instance: str, listed: str, outcome: Outcome, resolved: bool | None, options: Options) -> Attempt:
    if resolved is None and options.no_verdict != "missing":
        resolved = False
    why = _SAYS.get(listed)
    return Attempt(
        attempt_id="",
        suite="",
        variant="",
        task_id=instance,
        repetition=-1,
        outcome=outcome,
        error=None if outcome == "ok" else Failure(listed, why or listed),
        acceptable=resolved,
        verdicts=(
            Verdict(
                name="resolved",
                kind="outcome",
                verdict="unresolved" if resolved is None else "pass" if resolved else "fail",
                explanation=why,
                grader_name="swe-bench",
                grader_kind="executable",
            ),
        ),
        extra={"listed": listed},
    )


FORMAT: Final = Format(
    name="swe-bench",
    about="reports of runs with resolved_ids and unresolved_ids, one file per run",
    read=_read,
    header=_header,
    cannot_tell={
        "times": "a report has none",
        "costs": "a report has none",
        "tokens": "a report has none",
        "equivalence of failures": "a report does not hold the patches",
        "tool calls": "a report has no trajectory",
        "whose error": "error_ids mixes patches that break the build with failures of the evaluation itself",
    },
    grader_kind="executable",
)
