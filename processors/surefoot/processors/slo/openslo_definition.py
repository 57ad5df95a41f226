"""An SLO document in which nothing is wrong, with the documents that it refers to, as the engine's definition."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any, Final, TypeVar

from surefoot.processors.slo import openslo_documents as documents
from surefoot.processors.slo.definition import Alerting, Labels, Slo, TierSpec
from surefoot.processors.slo.indicator import INDICATORS, SECONDS, USD
from surefoot.processors.slo.openslo import Entry
from surefoot.processors.slo.openslo_alerting import AlertConditionSpec, PolicyItem
from surefoot.processors.slo.openslo_rules import calendar_of
from surefoot.processors.slo.openslo_source import IndicatorSpec
from surefoot.processors.slo.periods import longest_seconds
from surefoot.processors.slo.windows import MINUTE, seconds, shortest_name

D = TypeVar("D", bound=documents.Document)

PAGING_SEVERITIES: Final = ("page", "critical", "high")
# The document of a kind and name.
Find = Callable[[str, Any], Entry | None]


def definition(find: Find, entry: Entry) -> Slo:
    """What the engine is to compute. Every reference leads to a document without problems."""
    document = _of(documents.SloDocument, entry)
    spec, objective = document.spec, document.spec.objectives[0]
    found, home = _indicator(find, entry, spec)
    selection = found.selection
    window = spec.time_window[0]
    calendar = calendar_of(window)
    length = seconds(window.duration) if calendar is None else longest_seconds(calendar)
    percent, value, unit = objective.target_percent, objective.value, INDICATORS[selection.indicator].threshold
    file = selection.file
    return Slo(
        name=document.metadata.name,
        service=spec.service,
        indicator=selection.indicator,
        objective=objective.target or float(Decimal(repr(percent)) / 100),
        period=shortest_name(length) if calendar is None else f"{calendar.count}{calendar.unit}",
        period_seconds=length,
        where=_sorted(selection.where),
        by=tuple(selection.by),
        threshold_ns=int(Decimal(repr(value)) * 1_000_000_000) if value is not None and unit == SECONDS else None,
        threshold=value if unit == USD else None,
        calendar=calendar,
        budgeting=spec.budgeting_method,
        slice_seconds=None if objective.time_slice_window is None else seconds(objective.time_slice_window),
        slice_target=objective.time_slice_target,
        selected=_sorted(selection.selected),
        custom_sql=None if file is None else (Path(home.file).parent / file).read_text(encoding="utf-8"),
        max_age_seconds=None if selection.max_age is None else seconds(selection.max_age),
        labels=_labels(found),
        alerting=_alerting(find, found, spec),
        display_name=document.metadata.display_name,
        description=spec.description,
        file=entry.file,
        line=entry.line(),
    )


def _sorted(conditions: dict[str, list[str]]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    return tuple((column, tuple(values)) for column, values in sorted(conditions.items()))


def _labels(found: IndicatorSpec) -> Labels:
    given = found.selection.labels
    if given is None:
        return Labels()
    delay = Labels().max_delay_seconds if given.max_delay is None else seconds(given.max_delay)
    return Labels(given.quantile, delay, given.min_labelled)


def _indicator(find: Find, entry: Entry, spec: documents.SloSpec) -> tuple[IndicatorSpec, Entry]:
    """The indicator of an SLO, and the document in which it stands."""
    if spec.indicator is not None:
        return spec.indicator.spec, entry
    home = find(documents.SLI, spec.indicator_ref)
    return _of(documents.SliDocument, home).spec, home or entry


def _alerting(find: Find, found: IndicatorSpec, spec: documents.SloSpec) -> Alerting:
    given = found.selection.alerting
    tiers = tuple(_tier(_name_of(item), condition) for item, condition in _conditions(find, spec))
    return Alerting(given.alpha, given.reach, given.consecutive, given.min_bad_events, tiers, given.correlation)


def _name_of(item: PolicyItem) -> str:
    return item.alert_policy_ref or (item.metadata.name if item.metadata is not None else "")


def _conditions(find: Find, spec: documents.SloSpec) -> Iterator[tuple[PolicyItem, AlertConditionSpec]]:
    for item in spec.alert_policies:
        policy = item.spec
        if policy is None:
            policy = _of(documents.AlertPolicyDocument, find(documents.ALERT_POLICY, item.alert_policy_ref)).spec
        condition = policy.conditions[0]
        if condition.spec is not None:
            yield item, condition.spec
            continue
        home = find(documents.ALERT_CONDITION, condition.condition_ref)
        yield item, _of(documents.AlertConditionDocument, home).spec


def _of(model: type[D], entry: Entry | None) -> D:
    found = None if entry is None else entry.parsed
    assert isinstance(found, model)  # noqa: S101 - an SLO whose references lead nowhere is no definition
    return found


def _tier(name: str, spec: AlertConditionSpec) -> TierSpec:
    long = seconds(spec.condition.lookback_window)
    # A twelfth (Site Reliability Workbook, chapter 5), in whole minutes, because counts are by the minute.
    short = MINUTE * math.ceil(long / 12 / MINUTE)
    severity = "page" if spec.severity.lower() in PAGING_SEVERITIES else "ticket"
    return TierSpec(name, severity, shortest_name(long), shortest_name(short), spec.condition.threshold)
