"""Where the events of an SLO come from: its indicator's text, made one relation with the same columns for all.

Rule: what an SLO file says reaches SQL as a parameter or as a column that the indicator has, never as text; the one
exception, a query of one's own, never reaches the engine's connection (``count.count_custom``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any, Final

from surefoot.processors.errors import QueryError
from surefoot.processors.slo import custom
from surefoot.processors.slo.definition import FAST, MATURED, Slo
from surefoot.processors.slo.indicator import LATE, SQL, STRATUM, Indicator, parameters_of

Parameters = dict[str, Any]

# An event counts as 1 if its weight is not a number above 0 or says that it stands for more than a million.
MAX_WEIGHT: Final = 1_000_000

# What a stratum key uses itself is escaped in values, so that two strata never share a key.
_ESCAPED: Final = "replace(replace(replace(coalesce({value}, ''), '%', '%25'), ',', '%2C'), '=', '%3D')"

# Columns that not every text has, and what stands for them.
_DEFAULTS: Final = {
    "event_id": "CAST(NULL AS VARCHAR)",
    "trace_id": "CAST(NULL AS VARCHAR)",
    "weight": "CAST(1 AS DOUBLE)",
    "fast_class": "class",
    "labelled_at": "CAST(NULL AS TIMESTAMPTZ)",
    "label_imported": "false",
}
_LATE_COLUMNS: Final = frozenset({"fast_class", "labelled_at", "label_imported"})


@dataclass(frozen=True, slots=True)
class Source:
    """A text and what it is asked with. Two SLOs with equal ones can be counted from one scan."""

    indicator: Indicator
    threshold_ns: int | None
    threshold: float | None
    custom_sql: str | None

    @classmethod
    def of(cls, slo: Slo) -> Source:
        """The source of an SLO's events."""
        return cls(slo.source, slo.threshold_ns, slo.threshold, slo.custom_sql)

    @property
    def text(self) -> str:
        """The indicator's SQL."""
        if self.indicator.name != SQL:
            return self.indicator.sql
        if self.custom_sql is None:
            raise QueryError("the indicator sql needs a query; write file: my-indicator.sql beside indicator: sql")
        return custom.embedded(self.custom_sql)

    @property
    def is_late(self) -> bool:
        """Whether its labels come later than its events."""
        if self.indicator.name == SQL:
            return "fast_class" in custom.columns_of(self.text)
        return self.indicator.labels == LATE

    @property
    def views(self) -> tuple[str, ...]:
        """The views that its events are counted in."""
        return (FAST, MATURED) if self.is_late else (FAST,)

    @property
    def of_one_run(self) -> bool:
        """Whether an event is a run with the verdicts and tool calls on it, and no other run decides what it is."""
        return self.indicator.alone

    @property
    def relation(self) -> str:
        """SQL of its rows with all the columns that counting needs."""
        has = self._optional_columns()
        missing = [f"{default} AS {name}" for name, default in _DEFAULTS.items() if name not in has]
        weight = f"CASE WHEN weight > 0 AND weight <= {MAX_WEIGHT} THEN CAST(weight AS DOUBLE) ELSE 1.0 END AS weight"
        kept = f"* REPLACE ({weight})" if "weight" in has else "*"
        # A query of one's own may give events of other dates than it was asked for.
        bounds = "WHERE CAST(ended_at AS DATE) BETWEEN $from_date AND $to_date" if self.indicator.name == SQL else ""
        # S608: the texts are files of this package, or run in the console.
        return f"SELECT {', '.join([kept, *missing])} FROM ({self.text}) AS events {bounds}"  # noqa: S608

    def parameters(self, first: date, last: date, lookback_days: int) -> Parameters:
        """What its relation asks for."""
        return self.offered(self.relation, first, last, lookback_days)

    def offered(self, text: str, first: date, last: date, lookback_days: int) -> Parameters:
        """What a text about these dates asks for."""
        offered: Parameters = {
            "from_date": first,
            "to_date": last,
            "verdicts_from": verdicts_from(first, lookback_days),
            # A part of a run, a call or a run below it, can end after it and on another date.
            "runs_to": last + timedelta(days=lookback_days),
            "threshold_ns": self.threshold_ns,
            "threshold": self.threshold,
        }
        return {name: offered[name] for name in parameters_of(text)}

    def column(self, dimension: str, parameter: str, values: Parameters) -> str:
        """SQL for the value of a dimension; ``parameter`` is the name that a stratum's own name gets."""
        if dimension.startswith(STRATUM):
            if self.indicator.name == SQL and "strata" not in custom.columns_of(self.text):
                raise QueryError(f"{dimension} needs a column strata, a map from text to text, in the query")
            values[parameter] = dimension.removeprefix(STRATUM)
            return f"strata[${parameter}]"
        if self.indicator.name != SQL:
            return dimension
        if dimension not in custom.columns_of(self.text):
            raise QueryError(f"the query has no column {dimension!r} to choose or divide by")
        return f'CAST("{dimension}" AS VARCHAR)'

    def _optional_columns(self) -> frozenset[str]:
        if self.indicator.name == SQL:
            return frozenset(custom.columns_of(self.text))
        return frozenset(_DEFAULTS) if self.is_late else frozenset(_DEFAULTS) - _LATE_COLUMNS


def verdicts_from(first: date, lookback_days: int) -> date:
    """The first date of any row that decides an event of ``first``; no text reads an earlier one."""
    return first - timedelta(days=lookback_days)


def holds(
    conditions: Iterable[tuple[str, tuple[str, ...]]], places: Mapping[str, str], values: Parameters, prefix: str
) -> str:
    """SQL that is true where each dimension has one of its values; ``places`` say where a dimension's value is."""
    parts = []
    for position, (dimension, allowed) in enumerate(conditions):
        names = [f"{prefix}_{position}_{index}" for index in range(len(allowed))]
        values.update(zip(names, allowed, strict=True))
        parts.append(f"{places[dimension]} IN ({', '.join(f'${name}' for name in names)})")
    return " AND ".join(parts) or "true"


def class_of(slo: Slo, places: Mapping[str, str], values: Parameters, prefix: str) -> str:
    """SQL for the class where labels count: verdicts on what nobody meant to grade, such as complaints, would bias."""
    if not slo.selected or not Source.of(slo).is_late:
        return "class"
    return f"CASE WHEN {holds(slo.selected, places, values, prefix)} THEN class ELSE 'excluded' END"


def stratum_key(slo: Slo, places: Mapping[str, str], values: Parameters, prefix: str) -> str:
    """SQL for the key of an event's stratum."""
    parts = ["''"]
    for position, dimension in enumerate(slo.by):
        values[f"{prefix}_{position}"] = f"{',' if position else ''}{dimension}="
        parts += [f"${prefix}_{position}", _ESCAPED.format(value=places[dimension])]
    return " || ".join(parts)
