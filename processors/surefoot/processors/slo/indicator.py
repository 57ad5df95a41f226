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

# The indicator whose text is the user's own.
SQL: Final = "sql"

# Units of a threshold, the value of an objective: the parameter is $threshold_ns of seconds, $threshold of dollars.
SECONDS: Final = "seconds"
USD: Final = "USD"

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
_GROUP_COLUMNS: Final = (*_RUN_COLUMNS, "run_group", "k")
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
    """What an SLO can be about. ``columns`` are those of its events that ``where`` and ``by`` may name."""

    name: str
    population: str  # table of the events, or what they are made of
    columns: tuple[str, ...]
    labels: str = AT_ONCE
    repeated: bool = False  # an event is made of several runs, so it can move to another date
    alone: bool = False  # an event is one run with the verdicts and tool calls on it, and no other run decides
    threshold: str | None = None  # unit of the value that an objective must give

    @property
    def sql(self) -> str:
        """The text of its file; "" of ``sql``, which has none."""
        return "" if self.name == SQL else _read(self.name)

    @property
    def parameters(self) -> frozenset[str]:
        """Names of the parameters in the text."""
        return parameters_of(self.sql)

    @property
    def has_threshold(self) -> bool:
        """Whether an objective must give a value."""
        return self.threshold is not None

    def knows(self, dimension: str) -> bool:
        """Whether ``where`` and ``by`` may name this. Of ``sql`` only its text tells (``custom.columns_of``)."""
        if re.fullmatch(rf"{re.escape(STRATUM)}[\w.-]+", dimension):
            return True
        return dimension in self.columns or (self.name == SQL and re.fullmatch(r"[A-Za-z_]\w*", dimension) is not None)


# Labels that a gauge, an alert or a scrape has anyway; a stratum's would take their place.
TAKEN_LABELS: Final = frozenset(
    {"slo", "service", "view", "window", "outcome", "tier", "severity", "long_window", "short_window", "bound"}
    | {"policy", "action", "allowed_mode", "instance", "job", "alertname", "alertstate"}
)


def label(dimension: str) -> str:
    """A dimension's name as a Prometheus label's: ``stratum.region`` becomes ``stratum_region``."""
    return dimension.replace(".", "_").replace("-", "_")


@cache
def _read(name: str) -> str:
    return (files("surefoot.processors.slo") / "indicators" / f"{name}.sql").read_text(encoding="utf-8")


@cache
def parameters_of(text: str) -> frozenset[str]:
    """Names of the parameters in an indicator's text."""
    return frozenset(re.findall(r"\$(\w+)", _code(text)))


@cache
def words_of(text: str) -> frozenset[str]:
    """The words in an indicator's text, among them the names of all tables and columns that it reads."""
    return frozenset(re.findall(r"\w+", _code(text)))


def _code(text: str) -> str:
    """Without comments and texts in quotes."""
    return re.sub(r"--[^\n]*|'(?:[^']|'')*'", "", text)


INDICATORS: Final = {
    indicator.name: indicator
    for indicator in (
        Indicator("availability", "runs", _RUN_COLUMNS, alone=True),
        Indicator("acceptable_outcome", "runs", _RUN_COLUMNS, LATE, alone=True),
        Indicator("policy_compliance", "runs", _RUN_COLUMNS, LATE, alone=True),
        Indicator("tool_success", "tool_calls", _TOOL_CALL_COLUMNS),
        Indicator("latency", "runs", _RUN_COLUMNS, threshold=SECONDS, alone=True),
        Indicator("cost", "runs", _RUN_COLUMNS, threshold=USD),
        Indicator("recovery", "runs", _RUN_COLUMNS, LATE, alone=True),
        Indicator("autonomous_coverage", "runs", _RUN_COLUMNS, alone=True),
        Indicator("intervention_success", "runs", _RUN_COLUMNS, LATE, alone=True),
        Indicator("strict_repeat", "run_groups", _GROUP_COLUMNS, LATE, repeated=True),
        Indicator("consistent_wrong", "run_groups", _GROUP_COLUMNS, LATE, repeated=True),
        Indicator(SQL, "events", ()),
    )
}
