"""Which of several installed instrumentors records a library: at most one, and none where the library does it itself.

OpenTelemetry, OpenInference and Traceloop register theirs under the same entry-point names (``openai``, ``langchain``,
``crewai``, ...), so OpenTelemetry's own switch cannot tell them apart and activates all: every call is then recorded
two or three times. Rule: the choice goes by distribution and does not depend on the order of installation.
"""

from __future__ import annotations

import importlib.metadata
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib.metadata import EntryPoint
from typing import Final

from opentelemetry.instrumentation.dependencies import get_dist_dependency_conflicts

GROUP: Final = "opentelemetry_instrumentor"
VARIABLE: Final = "SUREFOOT_INSTRUMENTORS"
NONE: Final = "none"

# In the order in which they are preferred. The first records the conventions of today; Traceloop publishes under
# OpenTelemetry's prefix; the `-v2` ones are what the first replaced.
_FAMILIES: Final = tuple(
    re.compile(pattern)
    for pattern in (
        r"opentelemetry-instrumentation-genai-(?P<library>.+)",
        r"openinference-instrumentation-(?P<library>.+)",
        r"opentelemetry-instrumentation-(?P<library>.+)(?<!-v2)",
        r"opentelemetry-instrumentation-(?P<library>.+)-v2",
        r"loongsuite-instrumentation-(?P<library>.+)",
    )
)
# Library -> distributions that emit by themselves from a major version on.
_NATIVE: Final[Mapping[str, tuple[tuple[str, int], ...]]] = {
    "anthropic": (("anthropic", 2),),
    "pydantic-ai": (("pydantic-ai-slim", 1),),
    "google-adk": (("google-adk", 1),),
    "strands": (("strands-agents", 1),),
    "strands-agents": (("strands-agents", 1),),
    "fastmcp": (("fastmcp", 2),),
    "mcp": (("mcp", 2), ("fastmcp", 2)),
    "agent-framework": (("agent-framework-core", 1),),
}


@dataclass(frozen=True, slots=True)
class Choice:
    """What becomes of one instrumentor. ``why_off`` is None if it is activated; ``rivals`` it was preferred to."""

    why_off: str | None
    rivals: tuple[str, ...] = ()


def key(entry: EntryPoint) -> tuple[str, str]:
    """What a choice is found by: distribution and entry-point name."""
    return distribution(entry), entry.name


def distribution(entry: EntryPoint) -> str:
    """The distribution that an entry point came with, in its normal spelling."""
    name = entry.dist.name if entry.dist is not None else entry.value.partition(":")[0]
    return re.sub(r"[-_.]+", "-", name).lower()


def library(entry: EntryPoint) -> str:
    """The library that an instrumentor is for, by the name of its distribution, or else of the entry point."""
    found = _family(entry)[1]
    return found or re.sub(r"[-_.]+", "-", entry.name).lower().removeprefix("aws-")


def choose(
    entries: Iterable[EntryPoint],
    environ: Mapping[str, str],
    major: Callable[[str], int | None] | None = None,
) -> dict[tuple[str, str], Choice]:
    """The choice for each instrumentor, by :func:`key`.

    ``SUREFOOT_INSTRUMENTORS`` in ``environ`` overrides it: ``openai=openinference-instrumentation-openai,crewai=none``.
    ``major`` tells the installed major version of a distribution, None without it (for tests).
    Raises ValueError if the variable cannot be read.
    """
    wishes = _wishes(environ.get(VARIABLE, ""))
    groups: defaultdict[str, list[EntryPoint]] = defaultdict(list)
    for entry in entries:
        groups[library(entry)].append(entry)
    choices: dict[tuple[str, str], Choice] = {}
    for name, group in groups.items():
        choices |= _in_group(name, group, wishes.get(name), major or _major)
    return choices


def _in_group(
    name: str, group: list[EntryPoint], wish: str | None, major: Callable[[str], int | None]
) -> dict[tuple[str, str], Choice]:
    if wish == NONE:
        return {key(entry): Choice(f"{VARIABLE} says {name}={NONE}") for entry in group}
    if wish is not None:
        why = f"{VARIABLE} says {name}={wish}"
        return {key(entry): Choice(None if distribution(entry) == wish else why) for entry in group}
    emitter = next((d for d, since in _NATIVE.get(name, ()) if (major(d) or 0) >= since), None)
    if emitter is not None:
        why = f"{emitter} emits by itself; {VARIABLE}={name}={distribution(group[0])} would record it twice"
        return {key(entry): Choice(why) for entry in group}
    if len({distribution(entry) for entry in group}) == 1:
        return {key(entry): Choice(None) for entry in group}
    ranked = sorted(group, key=lambda entry: (_family(entry)[0], key(entry)))
    # Of several, one that cannot work must not keep out one that can.
    winner = distribution(next((entry for entry in ranked if _works(entry)), ranked[0]))
    rivals = tuple(sorted({distribution(entry) for entry in group} - {winner}))
    why = f"{winner} records {name}; {VARIABLE}={name}=... chooses another"
    return {key(e): Choice(None, rivals) if distribution(e) == winner else Choice(why) for e in group}


def _family(entry: EntryPoint) -> tuple[int, str | None]:
    name = distribution(entry)
    for rank, pattern in enumerate(_FAMILIES):
        if (match := pattern.fullmatch(name)) is not None:
            return rank, match["library"]
    return len(_FAMILIES), None


def _works(entry: EntryPoint) -> bool:
    if entry.dist is not None and get_dist_dependency_conflicts(entry.dist) is not None:
        return False
    try:
        entry.load()
    except Exception:  # noqa: BLE001 - what is wrong with it is said when it is loaded as the only one left
        return False
    return True


def _wishes(text: str) -> dict[str, str]:
    wishes = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, equals, wanted = (piece.strip() for piece in part.partition("="))
        if not (name and equals and wanted):
            raise ValueError(
                f"{VARIABLE} has {part!r}; write library=distribution, such as "
                "openai=openinference-instrumentation-openai, or library=none"
            )
        wishes[re.sub(r"[-_.]+", "-", name).lower()] = re.sub(r"[-_.]+", "-", wanted).lower()
    return wishes


def _major(name: str) -> int | None:
    try:
        return int(importlib.metadata.version(name).partition(".")[0])
    except (importlib.metadata.PackageNotFoundError, ValueError):
        return None
