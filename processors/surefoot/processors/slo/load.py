"""A folder of SLO files to definitions, and to sentences about what cannot be used.

Rule: a bad file never takes a good one down. What is wrong is told, by file and line, and everything else is loaded.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from surefoot.processors.documents import at
from surefoot.processors.slo import adjustments as adjusting
from surefoot.processors.slo import policy as deciding
from surefoot.processors.slo.adjustments import BudgetAdjustment
from surefoot.processors.slo.definition import Slo
from surefoot.processors.slo.openslo import Entry, read_file
from surefoot.processors.slo.openslo_documents import SLO
from surefoot.processors.slo.openslo_references import resolve
from surefoot.processors.slo.openslo_rules import Refused
from surefoot.processors.slo.policy import ErrorBudgetPolicy
from surefoot.processors.slo.problems import Problem, Unused

T = TypeVar("T", ErrorBudgetPolicy, BudgetAdjustment)


@dataclass(frozen=True, slots=True)
class Loaded:
    """What a folder or file held."""

    slos: list[Slo]  # by name
    problems: list[Problem]  # by file and line
    unused: list[Unused]  # documents, and parts of them, that are fine and do nothing here; by file and line
    policies: list[ErrorBudgetPolicy] = field(default_factory=list)  # by name
    adjustments: list[BudgetAdjustment] = field(default_factory=list)  # by name


def slo_files(path: Path) -> list[Path]:
    """The YAML files under a folder, or the file itself; none if there is nothing."""
    if path.is_file():
        return [path]
    return sorted(file for pattern in ("*.yaml", "*.yml") for file in path.rglob(pattern) if file.is_file())


def watched_files(path: Path) -> list[Path]:
    """All files on which :func:`load_slos` depends: beside the YAML files the queries that they name."""
    return [*slo_files(path), *sorted(file for file in path.rglob("*.sql") if file.is_file())]


def load_slos(path: Path) -> Loaded:
    """Read OpenSLO v1 files: one file, or every ``*.yaml`` and ``*.yml`` under a folder."""
    entries: list[Entry] = []
    problems: list[Problem] = []
    for file in slo_files(path):
        found = read_file(file)
        entries.extend(found.entries)
        problems.extend(found.problems)
    slos, wrong, unused = resolve(entries)
    problems += wrong
    policies, adjustments = _own(entries, slos, problems)
    return Loaded(
        sorted(slos, key=lambda slo: slo.name),
        sorted(problems, key=lambda problem: (problem.file, problem.line)),
        sorted(unused, key=lambda item: (item.file, item.line)),
        policies,
        adjustments,
    )


def _own(
    entries: list[Entry], slos: list[Slo], problems: list[Problem]
) -> tuple[list[ErrorBudgetPolicy], list[BudgetAdjustment]]:
    """The documents of our own kinds that fit the SLOs that there are."""
    by_policy = {slo.name: (slo.service, slo.objective, slo.period) for slo in slos}
    by_adjustment = {slo.name: slo.by for slo in slos}
    written = [entry for entry in entries if entry.kind == SLO]  # whether they can be used or not
    names = {entry.name for entry in written}
    services = {str(at(entry.document.data, ("spec", "service"))) for entry in written}
    policies: dict[str, ErrorBudgetPolicy] = {}
    adjustments: dict[str, BudgetAdjustment] = {}
    for entry in entries:
        data = entry.document.data
        missing: list[Refused] = []
        wrong: list[Refused] = []
        if entry.kind == deciding.KIND:
            missing = list(deciding.check_names(data, names, services))
        elif entry.kind == adjusting.KIND:
            missing = list(adjusting.check_names(data, names))
        if isinstance(entry.parsed, ErrorBudgetPolicy):
            wrong = [*_taken(entry, policies), *deciding.check(entry.parsed, by_policy)]
            # One SLO that is not there does not free the others.
            if not wrong and (not missing or any(slo in by_policy for slo in entry.parsed.slos)):
                policies[entry.name] = entry.parsed
        elif isinstance(entry.parsed, BudgetAdjustment):
            wrong = [*_taken(entry, adjustments), *adjusting.check(entry.parsed, by_adjustment)]
            if not wrong and not missing:
                adjustments[entry.name] = entry.parsed
        problems.extend(entry.problem(refused) for refused in [*missing, *wrong])
    return [policies[name] for name in sorted(policies)], [adjustments[name] for name in sorted(adjustments)]


def _taken(entry: Entry, known: dict[str, T]) -> list[Refused]:
    first = known.get(entry.name)
    if first is None:
        return []
    what = f"there is another {entry.kind} {entry.name!r}, in {first.file}:{first.line}, and that one is used"
    return [Refused(("metadata", "name"), what, "give this one another name, or remove it")]
