"""A folder of SLO files to definitions, and to sentences about what cannot be used.

Rule: a bad file never takes a good one down. What is wrong is told, by file and line, and everything else is loaded.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from surefoot.processors.slo.definition import Slo
from surefoot.processors.slo.openslo import Problem, Unused, read_file


@dataclass(frozen=True, slots=True)
class Loaded:
    """What a folder or file held."""

    slos: list[Slo]  # by name
    problems: list[Problem]  # by file and line
    unused: list[Unused]  # documents that are fine and do nothing here


def slo_files(path: Path) -> list[Path]:
    """The YAML files under a folder, or the file itself; none if there is nothing."""
    if path.is_file():
        return [path]
    return sorted(file for pattern in ("*.yaml", "*.yml") for file in path.rglob(pattern) if file.is_file())


def load_slos(path: Path) -> Loaded:
    """Read OpenSLO v1 files: one file, or every ``*.yaml`` and ``*.yml`` under a folder."""
    loaded = Loaded([], [], [])
    first_of: dict[str, Slo] = {}
    for file in slo_files(path):
        found = read_file(file)
        loaded.problems.extend(found.problems)
        loaded.unused.extend(found.unused)
        for slo in found.slos:
            first = first_of.setdefault(slo.name, slo)
            if first is slo:
                loaded.slos.append(slo)
            else:
                loaded.problems.append(_taken(slo, first))
    loaded.slos.sort(key=lambda slo: slo.name)
    loaded.problems.sort(key=lambda problem: (problem.file, problem.line))
    return loaded


def _taken(slo: Slo, first: Slo) -> Problem:
    return Problem(
        slo.file,
        slo.line,
        "metadata.name",
        f"there is another SLO {slo.name!r}, in {first.file}:{first.line}, and that one is used",
        "give this one another name, or remove it",
    )
