"""The worksheet of an audit: a CSV or JSONL file with a line for each run, whose ``verdict`` a person fills in.

Contract: ``write`` and ``read`` agree, also after a spreadsheet saved the file. Rule: a line that cannot be used is
told with its number and what to do, and costs nothing but itself. The grader's verdict is not in the file unless asked
for, because who sees it tends to agree.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from surefoot.processors.errors import ProcessorsError
from surefoot.processors.evidence.grading.reading import GradedRun
from surefoot.processors.evidence.grading.sampling import judged_by
from surefoot.processors.genai.evaluations import FAIL, PASS, UNRESOLVED, plain
from surefoot.processors.genai.evaluations import verdict as meant

COLUMNS: Final = ("run_id", "task_class", "task_id", "verdict", "comment")
_SHOWN: Final = "grader_verdict"
_SHORT: Final = {"y": PASS, "n": FAIL, "u": UNRESOLVED, "unresolved": UNRESOLVED, "unclear": UNRESOLVED}


class WorksheetError(ProcessorsError):
    """A worksheet that cannot be read or written."""


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a worksheet. ``verdict``: pass, fail, unresolved, or None where nobody answered yet."""

    number: int  # in the file, from 1; a CSV's first is its header
    run_id: str
    verdict: str | None
    comment: str | None


@dataclass(frozen=True, slots=True)
class Bad:
    """A line that is not used, and what to do."""

    number: int
    why: str


def write(path: Path, runs: Sequence[GradedRun], *, grader: str | None = None, show: bool = False) -> None:
    """A worksheet of these runs; ``show`` adds the grader's verdict."""
    rows = []
    for run in runs:
        said = judged_by(run, grader)
        shown = {_SHOWN: said.verdict if said else ""} if show else {}
        known = {"run_id": run.run_id, "task_class": run.task_class or "", "task_id": run.task_id or ""}
        rows.append({**known, **shown, "verdict": "", "comment": ""})
    _write_rows(path, rows)


def fill(path: Path, answers: Mapping[str, str]) -> None:
    """Write answers, by run id, into the worksheet."""
    rows = [row for _, row in _rows(path)]
    for row in rows:
        if row.get("run_id") in answers:
            row["verdict"] = answers[row["run_id"]]
    _write_rows(path, rows)


def read(path: Path) -> tuple[list[Line], list[Bad]]:
    """Its lines and those that cannot be used; a run that stands there twice with two answers is no line."""
    lines: list[Line] = []
    bad: list[Bad] = []
    for number, row in _rows(path):
        found = _line(number, row)
        if isinstance(found, Bad):
            bad.append(found)
        else:
            lines.append(found)
    by_run: dict[str, list[Line]] = {}
    for line in lines:
        by_run.setdefault(line.run_id, []).append(line)
    kept = []
    for told in by_run.values():
        answered = [line for line in told if line.verdict is not None]
        first, *others = answered or told
        if len({line.verdict for line in answered}) > 1:
            said = ", ".join(f"{line.verdict} on line {line.number}" for line in answered)
            bad.append(Bad(first.number, f"run {first.run_id} is answered more than once: {said}; keep one of them"))
            continue
        kept.append(first)
        bad += [
            Bad(line.number, f"run {line.run_id} stands on line {first.number}, too; remove one") for line in others
        ]
    return kept, sorted(bad, key=lambda one: one.number)


def _line(number: int, row: Mapping[str, Any]) -> Line | Bad:
    run_id = str(row.get("run_id") or "").strip()
    if not run_id:
        return Bad(number, "there is no run_id; copy it from the sample")
    told = str(row.get("verdict") or "").strip()
    comment = str(row.get("comment") or "").strip() or None
    if not told:
        return Line(number, run_id, None, comment)
    verdict = _SHORT.get(plain(told)) or meant(told, None, None)
    if verdict == UNRESOLVED and plain(told) not in _SHORT:
        return Bad(number, f"{told!r} is no verdict: write y (acceptable), n (not) or u (cannot tell)")
    return Line(number, run_id, verdict, comment)


def _rows(path: Path) -> list[tuple[int, dict[str, Any]]]:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise WorksheetError(f"Cannot read the worksheet {path}: {error}. Save it as UTF-8 text.") from error
    if _is_json(path):
        return _json_rows(path, text)
    first = text.partition("\n")[0]
    reader = csv.DictReader(
        io.StringIO(text, newline=""), delimiter=";" if first.count(";") > first.count(",") else ","
    )
    missing = [name for name in ("run_id", "verdict") if name not in (reader.fieldnames or ())]
    if missing:
        raise WorksheetError(
            f"Cannot read the worksheet {path}: its first line has no column {' and no '.join(missing)}. "
            "Keep the header that `surefoot grade sample` wrote."
        )
    return [
        (reader.line_num, {key: value for key, value in row.items() if key is not None})
        for row in reader
        if any(row.values())
    ]


def _json_rows(path: Path, text: str) -> list[tuple[int, dict[str, Any]]]:
    rows = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except ValueError as error:
            raise WorksheetError(
                f"Cannot read {path}, line {number}: {error}. Each line is one JSON object."
            ) from error
        if not isinstance(row, dict):
            raise WorksheetError(f"Cannot read {path}, line {number}: it is no JSON object.")
        rows.append((number, row))
    return rows


def _write_rows(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    out = io.StringIO(newline="")
    if _is_json(path):
        out.writelines(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows)
    else:
        found = list(rows)
        writer = csv.DictWriter(out, list(found[0]) if found else COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(found)
    try:
        path.write_text(out.getvalue(), encoding="utf-8", newline="")
    except OSError as error:
        raise WorksheetError(f"Cannot write the worksheet {path}: {error}.") from error


def _is_json(path: Path) -> bool:
    return path.suffix in {".jsonl", ".ndjson", ".json"}
