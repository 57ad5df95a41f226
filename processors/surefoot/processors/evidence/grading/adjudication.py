"""A person's verdicts as evaluations: checked against the lake, and written as OTLP that any collector takes.

Rule: an answer is never overwritten in silence. One that says something else than the stored audit is refused unless
asked to replace it; then it names the verdict that it supersedes, and both stay in the table.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from surefoot.instrumentation import semconv
from surefoot.processors.evidence.grading.reading import AUDIT, GradedRun
from surefoot.processors.evidence.grading.worksheet import Bad, Line

_LABELS: Final = {"pass": "pass", "fail": "fail", "unresolved": "unresolved"}


@dataclass(frozen=True, slots=True)
class Answer:
    """A verdict to store."""

    run: GradedRun
    verdict: str
    comment: str | None
    supersedes: str | None


@dataclass(frozen=True, slots=True)
class Checked:
    """What became of a worksheet's lines."""

    answers: list[Answer]
    stored: int  # said the same already
    open: int  # not answered yet
    bad: list[Bad]


def check(lines: Iterable[Line], runs: Mapping[str, GradedRun], *, replace: bool = False) -> Checked:
    """Lines against the graded runs of the lake, by run id."""
    answers, bad, stored, unanswered = [], [], 0, 0
    for line in lines:
        run = runs.get(line.run_id)
        if run is None:
            why = f"there is no graded run {line.run_id}; copy the run_id from the sample, or widen --since and --until"
            bad.append(Bad(line.number, why))
        elif line.verdict is None:
            unanswered += 1
        elif run.audit is None:
            answers.append(Answer(run, line.verdict, line.comment, None))
        elif run.rivals:
            rivals = [one for one in run.rivals if one.verdict != line.verdict]
            said = " and ".join(f"{one.grader} said {one.verdict}" for one in run.rivals)
            if replace:
                answers.append(Answer(run, line.verdict, line.comment, rivals[0].verdict_id))
            else:
                why = f"{said} of run {line.run_id}: agree, and let the answer count with --replace"
                bad.append(Bad(line.number, why))
        elif run.audit.verdict == line.verdict:
            stored += 1
        elif replace:
            answers.append(Answer(run, line.verdict, line.comment, run.audit.verdict_id))
        else:
            day = f" on {run.audit.at:%Y-%m-%d}" if run.audit.at else ""
            said = f"{run.audit.grader} said {run.audit.verdict}{day}"
            bad.append(
                Bad(line.number, f"{line.verdict} for run {line.run_id}, but {said}; --replace lets the new one count")
            )
    return Checked(answers, stored, unanswered, bad)


def otlp_lines(answers: Sequence[Answer], by: str, now: float) -> str:
    """OTLP/JSON, a request for each service: final outcome verdicts of a human, on the runs' own spans."""
    by_service: dict[str | None, list[dict[str, Any]]] = {}
    for answer in answers:
        told = {
            semconv.EVALUATION_NAME: AUDIT,
            semconv.EVALUATION_LABEL: _LABELS[answer.verdict],
            semconv.EVALUATION_KIND: "outcome",
            semconv.EVALUATION_FINALITY: "final",
            semconv.EVALUATOR_NAME: by,
            semconv.EVALUATOR_KIND: "human",
            semconv.EVALUATION_EXPLANATION: answer.comment,
            semconv.EVALUATION_SUPERSEDES: answer.supersedes,
        }
        record = {
            "timeUnixNano": str(int(now * 1e9)),
            "eventName": semconv.EVALUATION_EVENT,
            "traceId": answer.run.trace_id,
            "spanId": answer.run.span_id,
            "attributes": _attributes(told),
        }
        by_service.setdefault(answer.run.service_name, []).append(record)
    return "".join(
        json.dumps(
            {
                "resourceLogs": [
                    {
                        "resource": {"attributes": _attributes({"service.name": service})},
                        "scopeLogs": [{"scope": {"name": "surefoot.grade"}, "logRecords": records}],
                    }
                ]
            },
            ensure_ascii=False,
        )
        + "\n"
        for service, records in by_service.items()
    )


def _attributes(values: Mapping[str, str | None]) -> list[dict[str, Any]]:
    return [{"key": key, "value": {"stringValue": value}} for key, value in values.items() if value is not None]
