"""The documents of a folder to SLO definitions: references followed, rules checked, what is left over named.

Rule: a reference leads over the whole folder, whatever file its object stands in. One that leads nowhere, or to a
document with problems of its own, is a problem of the document that refers; a Service needs no document.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Final, TypeVar

from surefoot.processors.slo import openslo_documents as documents
from surefoot.processors.slo.definition import Alerting, Labels, Slo, TierSpec
from surefoot.processors.slo.indicator import INDICATORS, SECONDS, USD
from surefoot.processors.slo.openslo import Entry
from surefoot.processors.slo.openslo_alerting import AlertConditionSpec, AlertPolicySpec, PolicyItem
from surefoot.processors.slo.openslo_rules import (
    Refused,
    Steps,
    calendar_of,
    check_condition,
    check_indicator,
    check_slo,
)
from surefoot.processors.slo.openslo_source import IndicatorSpec
from surefoot.processors.slo.periods import longest_seconds
from surefoot.processors.slo.problems import Problem, Unused
from surefoot.processors.slo.windows import MINUTE, seconds, shortest_name
from surefoot.processors.suggestions import suggestion

D = TypeVar("D", bound=documents.Document)

PAGING_SEVERITIES: Final = ("page", "critical", "high")
# Kinds that something may refer to; the others have nothing to do here.
_REFERRED: Final = (documents.SLI, documents.SERVICE, documents.ALERT_POLICY, documents.ALERT_CONDITION)
_AT_INDICATOR: Final[Steps] = ("spec", "indicator", "spec")


@dataclass(slots=True)
class Folder:
    """All documents of OpenSLO that were read, and which of them something refers to."""

    entries: dict[tuple[str, str], Entry] = field(default_factory=dict)  # by kind and name
    broken: set[tuple[str, str]] = field(default_factory=set)
    used: set[tuple[str, str]] = field(default_factory=set)
    problems: list[Problem] = field(default_factory=list)
    unused: list[Unused] = field(default_factory=list)


def resolve(entries: list[Entry]) -> tuple[list[Slo], list[Problem], list[Unused]]:
    """The SLOs of all documents of a folder, their problems, and what is fine and does nothing."""
    folder = Folder()
    for entry in entries:
        _add(folder, entry)
    # From the bottom up, so that who refers to a document knows whether it is right.
    for kind in (documents.ALERT_CONDITION, documents.ALERT_POLICY, documents.SLI):
        for (found, name), entry in folder.entries.items():
            if found == kind:
                wrong = list(_check(folder, entry))
                folder.problems.extend(entry.problem(refused) for refused in wrong)
                if wrong:
                    folder.broken.add((found, name))
    slos = []
    for (kind, _), entry in folder.entries.items():
        if kind == documents.SLO and isinstance(entry.parsed, documents.SloDocument):
            wrong = list(_check_slo(folder, entry, entry.parsed))
            folder.problems.extend(entry.problem(refused) for refused in wrong)
            if not wrong:
                slos.append(_definition(folder, entry, entry.parsed))
    _name_unused(folder)
    return slos, folder.problems, folder.unused


def _add(folder: Folder, entry: Entry) -> None:
    if entry.kind not in documents.KINDS or not entry.name:
        return
    key = (entry.kind, entry.name)
    first = folder.entries.get(key)
    if first is None or first.parsed is None:
        folder.entries[key] = entry
        folder.broken.discard(key)
        if entry.parsed is None:
            folder.broken.add(key)
    elif entry.parsed is not None:
        what = f"there is another {entry.kind} {entry.name!r}, in {first.file}:{first.line()}, and that one is used"
        remedy = "give this one another name, or remove it"
        folder.problems.append(entry.problem(Refused(("metadata", "name"), what, remedy)))


def _follow(folder: Folder, kind: str, name: str, path: Steps) -> Iterator[Refused]:
    """Mark a document as used, or say why it cannot be."""
    folder.used.add((kind, name))
    entry = folder.entries.get((kind, name))
    if entry is None:
        names = [known for found, known in folder.entries if found == kind]
        remedy = suggestion(name, names) if names else f"write a document of kind {kind}, in any file of the folder"
        yield Refused(path, f"there is no {kind} {name!r}", remedy)
    elif (kind, name) in folder.broken:
        where = f"{entry.file}:{entry.line()}"
        yield Refused(path, f"the {kind} {name!r} cannot be used", f"correct it first, in {where}")


def _check(folder: Folder, entry: Entry) -> Iterator[Refused]:
    match entry.parsed:
        case documents.AlertConditionDocument(spec=condition):
            yield from _check_condition(folder, entry, condition, ("spec",))
        case documents.AlertPolicyDocument(spec=policy):
            yield from _check_policy(folder, entry, policy, ("spec",))
        case documents.SliDocument(spec=indicator):
            yield from check_indicator(indicator, ("spec",), Path(entry.file).parent)


def _check_condition(folder: Folder, entry: Entry, spec: AlertConditionSpec, at: Steps) -> Iterator[Refused]:
    yield from check_condition(spec, at)
    if spec.condition.alert_after is not None and int(spec.condition.alert_after[:-1]):
        what = "alertAfter is not used: a tier needs a short window to burn, too, which takes care of that"
        folder.unused.append(Unused(entry.file, entry.line((*at, "condition", "alertAfter")), what))


def _check_policy(folder: Folder, entry: Entry, spec: AlertPolicySpec, at: Steps) -> Iterator[Refused]:
    item, path = spec.conditions[0], (*at, "conditions", 0)
    if item.condition_ref is not None:
        yield from _follow(folder, documents.ALERT_CONDITION, item.condition_ref, (*path, "conditionRef"))
    elif item.spec is not None:
        yield from _check_condition(folder, entry, item.spec, (*path, "spec"))
    for index, target in enumerate(spec.notification_targets):
        path = (*at, "notificationTargets", index)
        if target.target_ref is not None:
            yield from _follow(folder, documents.TARGET, target.target_ref, (*path, "targetRef"))
        else:
            what = "notification targets are not used: Alertmanager decides where a notification goes"
            folder.unused.append(Unused(entry.file, entry.line(path), what))
    for name, instead in (
        ("alertWhenNoData", "the rules alert on silence by themselves"),
        ("alertWhenResolved", "Alertmanager sends what is resolved"),
    ):
        if {"alertWhenNoData": spec.alert_when_no_data, "alertWhenResolved": spec.alert_when_resolved}[name]:
            folder.unused.append(Unused(entry.file, entry.line((*at, name)), f"{name} is not used: {instead}"))


def _check_slo(folder: Folder, entry: Entry, document: documents.SloDocument) -> Iterator[Refused]:
    spec = document.spec
    folder.used.add((documents.SERVICE, spec.service))
    names: set[str] = set()
    for index, item in enumerate(spec.alert_policies):
        path: Steps = ("spec", "alertPolicies", index)
        if item.alert_policy_ref is not None:
            yield from _follow(folder, documents.ALERT_POLICY, item.alert_policy_ref, (*path, "alertPolicyRef"))
        elif item.spec is not None:
            yield from _check_policy(folder, entry, item.spec, (*path, "spec"))
        name = _name_of(item)
        if name in names:
            yield Refused(path, f"the policy {name!r} stands twice", "keep one of the two")
        names.add(name)
        yield from _check_fits(folder, spec, item, path)
    if spec.indicator_ref is not None:
        wrong = list(_follow(folder, documents.SLI, spec.indicator_ref, ("spec", "indicatorRef")))
    elif spec.indicator is not None:
        wrong = list(check_indicator(spec.indicator.spec, _AT_INDICATOR, Path(entry.file).parent))
    yield from wrong
    indicator = None
    if not wrong:
        found, _ = _indicator(folder, entry, spec)
        indicator = INDICATORS[found.selection.indicator]
    yield from check_slo(spec, indicator)


def _check_fits(folder: Folder, spec: documents.SloSpec, item: PolicyItem, path: Steps) -> Iterator[Refused]:
    """A tier looks back less than the period, whose name its window would have. What is unknown was told elsewhere."""
    found = _condition_of(folder, item)
    duration = spec.time_window[0].duration
    if found is None or duration[-1] in "MQY" or found.condition.lookback_window[-1] in "MQY":
        return
    if seconds(found.condition.lookback_window) >= seconds(duration):
        what = f"its condition looks back {found.condition.lookback_window}, and the window of the SLO is {duration}"
        yield Refused(path, what, "look back less in the condition, or choose a longer window")


def _condition_of(folder: Folder, item: PolicyItem) -> AlertConditionSpec | None:
    """The condition of a policy by name or in place; None if a reference leads nowhere."""
    policy = item.spec
    if policy is None:
        match folder.entries.get((documents.ALERT_POLICY, item.alert_policy_ref or "")):
            case Entry(parsed=documents.AlertPolicyDocument(spec=policy)):
                pass
            case _:
                return None
    condition = policy.conditions[0]
    if condition.spec is not None:
        return condition.spec
    match folder.entries.get((documents.ALERT_CONDITION, condition.condition_ref or "")):
        case Entry(parsed=documents.AlertConditionDocument(spec=found)):
            return found
    return None


def _indicator(folder: Folder, entry: Entry, spec: documents.SloSpec) -> tuple[IndicatorSpec, Entry]:
    """The indicator of an SLO, and the document in which it stands."""
    if spec.indicator is not None:
        return spec.indicator.spec, entry
    home = folder.entries[documents.SLI, spec.indicator_ref or ""]
    assert isinstance(home.parsed, documents.SliDocument)  # noqa: S101 - by its kind
    return home.parsed.spec, home


def _definition(folder: Folder, entry: Entry, document: documents.SloDocument) -> Slo:
    spec, objective = document.spec, document.spec.objectives[0]
    found, home = _indicator(folder, entry, spec)
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
        alerting=_alerting(folder, found, spec),
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


def _alerting(folder: Folder, found: IndicatorSpec, spec: documents.SloSpec) -> Alerting:
    given = found.selection.alerting
    tiers = tuple(_tier(_name_of(item), condition) for item, condition in _conditions(folder, spec))
    return Alerting(given.alpha, given.reach, given.consecutive, given.min_bad_events, tiers, given.correlation)


def _name_of(item: PolicyItem) -> str:
    return item.alert_policy_ref or (item.metadata.name if item.metadata is not None else "")


def _conditions(folder: Folder, spec: documents.SloSpec) -> Iterator[tuple[PolicyItem, AlertConditionSpec]]:
    for item in spec.alert_policies:
        found = _condition_of(folder, item)
        assert found is not None  # noqa: S101 - an SLO whose references lead nowhere is no definition
        yield item, found


def _tier(name: str, spec: AlertConditionSpec) -> TierSpec:
    long = seconds(spec.condition.lookback_window)
    # A twelfth (Site Reliability Workbook, chapter 5), in whole minutes, because counts are by the minute.
    short = MINUTE * math.ceil(long / 12 / MINUTE)
    severity = "page" if spec.severity.lower() in PAGING_SEVERITIES else "ticket"
    return TierSpec(name, severity, shortest_name(long), shortest_name(short), spec.condition.threshold)


def _name_unused(folder: Folder) -> None:
    for (kind, name), entry in folder.entries.items():
        if entry.parsed is None or kind == documents.SLO:
            continue
        if kind not in _REFERRED:
            what = f"documents of kind {kind} are not used"
        elif (kind, name) not in folder.used:
            what = f"nothing refers to the {kind} {name!r}"
        else:
            continue
        folder.unused.append(Unused(entry.file, entry.line(), what))
