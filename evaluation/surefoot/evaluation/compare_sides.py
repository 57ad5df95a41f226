"""What is compared: the attempts of one variant, and the provenance that came with them.

Rule: a side is one variant. A folder that holds several has to be asked for one of them, as ``FOLDER@VARIANT``: a mix
of variants has no Pass^k.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from surefoot.evaluation.errors import EvaluationError
from surefoot.evaluation.records import MANIFEST, SPARED, Attempt, Verdict, attempts_file, read_records


class CompareError(EvaluationError):
    """Two sets of attempts that cannot be compared as asked."""


@dataclass(frozen=True, slots=True)
class Side:
    """One variant's attempts."""

    name: str
    attempts: tuple[Attempt, ...]
    provenance: Mapping[str, Any] = field(default_factory=dict)
    lost: int = 0  # attempts that began and never ended
    conditions: int = 1  # under how many different ones attempts were made
    tasks: Mapping[str, str] = field(default_factory=dict)  # how each task is defined, where the source tells


@dataclass(frozen=True, slots=True)
class TaskRuns:
    """One task's attempts on one side."""

    n: int  # judged
    c: int  # of those, acceptable
    unjudged: int  # nobody knows whether they were acceptable
    infrastructure: int  # ended by the set-up, or lost
    strip: str  # the attempts in order: ● acceptable, ○ not, · not judged
    first_failure: str | None = None  # repetition and reason

    @property
    def share(self) -> float | None:
        """The share of judged attempts that were acceptable."""
        return self.c / self.n if self.n else None


def read_side(source: str) -> Side:
    """Return the side that a folder, a file or either with ``@VARIANT`` names. Raises CompareError, RecordsError."""
    path, variant = Path(source), ""
    if not path.exists() and "@" in source:
        name, _, variant = source.rpartition("@")
        path = Path(name)
    if path.is_dir() and not attempts_file(path).exists():
        raise CompareError(f"Comparing {path}: there is no {attempts_file(path).name} in it; name a run folder.")
    records = read_records(path)
    there = sorted({attempt.variant for attempt in (*records.finished, *records.open, *records.lost)})
    if not records.finished:
        raise CompareError(f"Comparing {path}: no attempt in it was finished; repeat the suite first.")
    if variant and variant not in there:
        raise CompareError(f"Comparing {path}: it has no variant {variant!r}; it has {', '.join(there)}.")
    if not variant and len(there) > 1:
        raise CompareError(f"Comparing {path}: it has the variants {', '.join(there)}; name one: {path}@{there[0]}")
    variant = variant or there[0]
    attempts = tuple(attempt for attempt in records.finished if attempt.variant == variant)
    ids = {attempt.provenance_id for attempt in attempts if attempt.provenance_id is not None}
    manifest = _manifest(path)
    try:
        provenance, tasks = _provenance(manifest, ids, variant), _tasks(manifest)
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        raise CompareError(
            f"Reading {_manifest_file(path)}: it is not as a run leaves it ({error}); restore it, or remove it."
        ) from error
    return Side(
        name=f"{path.resolve().name if path.is_dir() else path.stem}@{variant}",
        attempts=attempts,
        provenance=provenance,
        conditions=len(ids) or 1,
        tasks=tasks,
        lost=sum(attempt.variant == variant for attempt in (*records.open, *records.lost)),
    )


def _manifest_file(path: Path) -> Path:
    return path / MANIFEST if path.is_dir() else path.parent / MANIFEST


def _manifest(path: Path) -> Mapping[str, Any]:
    file = _manifest_file(path)
    try:
        found = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    except ValueError as error:
        raise CompareError(f"Reading {file}: it is no JSON ({error}); restore it, or remove it.") from error
    return found if isinstance(found, dict) else {}


def _provenance(manifest: Mapping[str, Any], ids: set[str], variant: str) -> dict[str, Any]:
    """Return the conditions of the variant's attempts: the last ones, where a run was continued under others."""
    suite = manifest.get("suite") or {}
    if "provenances" not in manifest:
        return dict(manifest)
    of_these = [found for key, found in manifest["provenances"].items() if key in ids or not ids]
    last = dict(of_these[-1]) if of_these else {}
    last["versions"] = (last.get("versions") or {}).get(variant)
    packages = (str(each).partition("==") for each in last.get("packages") or ())
    last["packages"] = {name: version for name, _, version in packages}
    protocol = suite.get("protocol") or {}
    own = next((each.get("agent") for each in suite.get("variants") or () if each.get("name") == variant), None)
    return {**last, "agent": own or suite.get("agent"), "protocol": protocol}


def _tasks(manifest: Mapping[str, Any]) -> dict[str, str]:
    tasks = (manifest.get("suite") or {}).get("tasks") or ()
    return {str(task["id"]): json.dumps(task, sort_keys=True) for task in tasks}


def judged(attempt: Attempt) -> bool:
    """Whether an attempt says something about the agent."""
    return attempt.outcome not in SPARED and attempt.acceptable is not None


def in_order(attempts: Iterator[Attempt] | tuple[Attempt, ...] | list[Attempt]) -> list[Attempt]:
    """Return attempts by repetition."""
    return sorted(attempts, key=lambda each: (each.repetition, each.started_at or 0.0, each.attempt_id))


def task_runs(attempts: list[Attempt]) -> TaskRuns:
    """Return what the attempts at one task come to."""
    ordered = in_order(attempts)
    seen = [attempt for attempt in ordered if judged(attempt)]
    spared = sum(attempt.outcome in SPARED for attempt in ordered)
    failed = next((attempt for attempt in seen if not attempt.acceptable), None)
    return TaskRuns(
        n=len(seen),
        c=sum(bool(attempt.acceptable) for attempt in seen),
        unjudged=len(ordered) - len(seen) - spared,
        infrastructure=spared,
        strip=strip(ordered),
        first_failure=None if failed is None else f"repetition {failed.repetition}: {reason(failed)}",
    )


def strip(attempts: list[Attempt]) -> str:
    """Return one sign for each attempt: ● acceptable, ○ not acceptable, · not judged."""
    return "".join("·" if not judged(attempt) else "●" if attempt.acceptable else "○" for attempt in attempts)


def reason(attempt: Attempt) -> str:
    """Return in one line why an attempt was not acceptable."""
    if attempt.error is not None:
        text = f"{attempt.error.type}: {attempt.error.message}"
    else:
        told = [f"{each.name}: {each.explanation or each.verdict}" for each in attempt.verdicts if _counts(each)]
        text = "; ".join(told) or f"output {attempt.output!r}"
    line = shown(text)
    return line if len(line) <= 200 else f"{line[:200]}..."


def shown(text: str) -> str:
    """Return :func:`printable` text in one line."""
    return printable(" ".join(text.split()))


def printable(text: str, keep: str = "") -> str:
    """Return text as any terminal and file can hold it: nothing that commands a terminal, no surrogate."""
    return "".join(letter if letter.isprintable() or letter in keep else "?" for letter in text)


def _counts(verdict: Verdict) -> bool:
    return verdict.kind == "outcome" and verdict.verdict != "pass"
