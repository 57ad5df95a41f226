"""The indicators: one portable ``.sql`` file each, and the columns by which its events may be chosen and divided.

Contract: a file yields one row per event with ``event_id``, ``trace_id``, ``ended_at``, its population's columns,
``strata``, ``weight`` and ``class`` (good, bad, unlabelled or excluded), and where labels come late also with
``fast_class``, ``labelled_at`` and ``label_imported``; its header says who is counted and why. The text runs verbatim
on DuckDB, Spark and ClickHouse, which is why the files spell everything out and share nothing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Final

# When it is known how an event ended: with the event, or when somebody has judged it.
AT_ONCE: Final = "at once"
LATE: Final = "late"

# How `where` and `by` name an attribute surefoot.stratum.<name>.
STRATUM: Final = "stratum."

_RUN_COLUMNS: Final = (
    "service_name",
    "environment",
    "agent_name",
    "agent_version",
    "task_class",
    "consequence_class",
    "task_id",
    "variant",
    "boundary_id",
    "mode",
    "dialect",
)
_TOOL_CALL_COLUMNS: Final = (
    "service_name",
    "environment",
    "agent_name",
    "task_class",
    "consequence_class",
    "tool_name",
    "effect",
    "dependency",
)


@dataclass(frozen=True, slots=True)
class Indicator:
    """What an SLO can be about. ``columns`` are those of its population that ``where`` and ``by`` may name."""

    name: str
    population: str  # table of the events
    columns: tuple[str, ...]
    has_threshold: bool = False  # compares a duration with a value of the objective
    labels: str = AT_ONCE

    @property
    def sql(self) -> str:
        """The text of its file."""
        return _read(self.name)

    @property
    def parameters(self) -> frozenset[str]:
        """Names of the parameters in the text."""
        return _parameters(self.name)

    def knows(self, dimension: str) -> bool:
        """Whether ``where`` and ``by`` may name this."""
        return dimension in self.columns or re.fullmatch(rf"{re.escape(STRATUM)}[\w.-]+", dimension) is not None


@cache
def _read(name: str) -> str:
    return (files("surefoot.processors.slo") / "indicators" / f"{name}.sql").read_text(encoding="utf-8")


@cache
def _parameters(name: str) -> frozenset[str]:
    code = re.sub(r"--[^\n]*", "", _read(name))
    return frozenset(re.findall(r"\$(\w+)", code))


INDICATORS: Final = {
    indicator.name: indicator
    for indicator in (
        Indicator("availability", "runs", _RUN_COLUMNS),
        Indicator("acceptable_outcome", "runs", _RUN_COLUMNS, labels=LATE),
        Indicator("policy_compliance", "runs", _RUN_COLUMNS, labels=LATE),
        Indicator("tool_success", "tool_calls", _TOOL_CALL_COLUMNS),
        Indicator("latency", "runs", _RUN_COLUMNS, has_threshold=True),
    )
}
