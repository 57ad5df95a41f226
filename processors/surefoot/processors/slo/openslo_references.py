"""The documents of a folder to SLO definitions: references followed, rules checked, what is left over named.

Rule: a reference leads over the whole folder, whatever file its object stands in; a Service needs no document. All that
can be told is told at once, and each mistake once, where it stands: who refers to a document that is wrong has no
problem of its own, the mistake says which SLOs it holds up.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from surefoot.processors.documents import at, items
from surefoot.processors.slo import openslo_documents as documents
from surefoot.processors.slo.definition import Slo
from surefoot.processors.slo.indicator import INDICATORS, Indicator
from surefoot.processors.slo.openslo import Entry
from surefoot.processors.slo.openslo_alerting import AlertConditionSpec, AlertPolicySpec
from surefoot.processors.slo.openslo_definition import definition
from surefoot.processors.slo.openslo_parts import INDICATOR, POLICIES, links, part, read_indicator
from surefoot.processors.slo.openslo_rules import Refused, Steps, check_condition, check_indicator, check_slo
from surefoot.processors.slo.openslo_schema import API_VERSION
from surefoot.processors.slo.problems import Problem, Unused
from surefoot.processors.slo.windows import seconds
from surefoot.processors.suggestions import suggestion

Key = tuple[str, str]  # kind and name

# Kinds that something may refer to; the others have nothing to do here.
_REFERRED: Final = (documents.SLI, documents.SERVICE, documents.ALERT_POLICY, documents.ALERT_CONDITION)
# Kinds without which who refers to them cannot be used.
_NEEDED: Final = (documents.SLI, documents.ALERT_POLICY, documents.ALERT_CONDITION, documents.TARGET)
_SPEC: Final[Steps] = ("spec",)
_REFERENCE: Final[Steps] = ("spec", "indicatorRef")


@dataclass(slots=True)
class Folder:
    """All documents that were read, and which of them something refers to."""

    entries: list[Entry]
    places: dict[Key, int] = field(default_factory=dict)  # in `entries`, of the documents of OpenSLO
    used: set[Key] = field(default_factory=set)
    unused: list[Unused] = field(default_factory=list)

    def find(self, kind: str, name: Any) -> Entry | None:
        """The document of a kind and name."""
        place = self.places.get((kind, name)) if isinstance(name, str) else None
        return None if place is None else self.entries[place]


def resolve(entries: list[Entry]) -> tuple[list[Slo], list[Problem], list[Unused]]:
    """The SLOs of all documents of a folder, their problems, and what is fine and does nothing."""
    folder = Folder(entries)
    wrong = [list(entry.refused) for entry in entries]
    for place in range(len(entries)):
        wrong[place] += _add(folder, place)
    for place, entry in enumerate(entries):
        if entry.kind in documents.KINDS and entry.document.data.get("apiVersion") in (None, API_VERSION):
            wrong[place] += _check(folder, entry)
    slos: list[Slo] = []
    holds_up: dict[int, list[str]] = {}
    for (kind, name), place in folder.places.items():
        if kind == documents.SLO:
            causes = sorted(cause for cause in _reached(folder, place) if wrong[cause])
            for cause in causes:
                holds_up.setdefault(cause, []).extend([name] * (cause != place))
            if not causes:
                slos.append(definition(folder.find, entries[place]))
    problems = [
        entries[place].problem(refused, () if index else tuple(holds_up.get(place, ())))
        for place, found in enumerate(wrong)
        for index, refused in enumerate(found)
    ]
    _name_unused(folder)
    return slos, problems, folder.unused


def _add(folder: Folder, place: int) -> Iterator[Refused]:
    entry = folder.entries[place]
    if entry.kind not in documents.KINDS or not entry.name:
        return
    first = folder.find(entry.kind, entry.name)
    if first is None or first.parsed is None:
        folder.places[entry.kind, entry.name] = place
    elif entry.parsed is not None:
        what = f"there is another {entry.kind} {entry.name!r}, in {first.file}:{first.line()}, and that one is used"
        yield Refused(("metadata", "name"), what, "give this one another name, or remove it")


def _reached(folder: Folder, place: int) -> set[int]:
    """The document itself and those that it refers to, directly or through others."""
    entry = folder.entries[place]
    reached = {place}
    for link in links(entry.kind, entry.document.data):
        if link.kind in _NEEDED and (link.kind, link.name) in folder.places:
            reached |= _reached(folder, folder.places[link.kind, link.name])
    return reached


def _check(folder: Folder, entry: Entry) -> Iterator[Refused]:
    data = entry.document.data
    for link in links(entry.kind, data):
        folder.used.add((link.kind, link.name))
        if link.kind != documents.SERVICE and folder.find(link.kind, link.name) is None:
            names = [known for found, known in folder.places if found == link.kind]
            remedy = suggestion(link.name, names)
            if not names:
                remedy = f"write a document of kind {link.kind}, in any file of the folder"
            yield Refused(link.path, f"there is no {link.kind} {link.name!r}", remedy)
    match entry.kind:
        case documents.ALERT_CONDITION:
            yield from _check_condition(folder, entry, _SPEC)
        case documents.ALERT_POLICY:
            yield from _check_policy(folder, entry, _SPEC)
        case documents.SLI:
            yield from _check_indicator(entry, _SPEC)
        case documents.SLO:
            yield from _check_slo(folder, entry)


def _check_indicator(entry: Entry, path: Steps) -> Iterator[Refused]:
    found = read_indicator(entry.document.data, path)
    if found is not None:
        yield from check_indicator(found, path, Path(entry.file).parent)


def _check_condition(folder: Folder, entry: Entry, path: Steps) -> Iterator[Refused]:
    spec = part(AlertConditionSpec, entry.document.data, path)
    if spec is None:
        return
    yield from check_condition(spec, path)
    if spec.condition.alert_after is not None and int(spec.condition.alert_after[:-1]):
        what = "alertAfter is not used: a tier needs a short window to burn, too, which takes care of that"
        folder.unused.append(Unused(entry.file, entry.line((*path, "condition", "alertAfter")), what))


def _check_policy(folder: Folder, entry: Entry, path: Steps) -> Iterator[Refused]:
    data = entry.document.data
    for place, _ in items(data, (*path, "conditions")):
        yield from _check_condition(folder, entry, (*place, "spec"))
    spec = part(AlertPolicySpec, data, path)
    if spec is None:
        return
    for index, target in enumerate(spec.notification_targets):
        if target.target_ref is None:
            what = "notification targets are not used: Alertmanager decides where a notification goes"
            line = entry.line((*path, "notificationTargets", index))
            folder.unused.append(Unused(entry.file, line, what))
    for name, is_on, instead in (
        ("alertWhenNoData", spec.alert_when_no_data, "the rules alert on silence by themselves"),
        ("alertWhenResolved", spec.alert_when_resolved, "Alertmanager sends what is resolved"),
    ):
        if is_on:
            folder.unused.append(Unused(entry.file, entry.line((*path, name)), f"{name} is not used: {instead}"))


def _check_slo(folder: Folder, entry: Entry) -> Iterator[Refused]:
    data = entry.document.data
    window = part(documents.TimeWindow, data, ("spec", "timeWindow", 0))
    names: set[str] = set()
    for path, item in items(data, POLICIES):
        yield from _check_policy(folder, entry, (*path, "spec"))
        name = at(item, ("alertPolicyRef",)) or at(item, ("metadata", "name"))
        if isinstance(name, str):
            if name in names:
                yield Refused(path, f"the policy {name!r} stands twice", "keep one of the two")
            names.add(name)
        if window is not None:
            yield from _check_fits(window.duration, _lookback(folder, entry, path), path)
    yield from _check_indicator(entry, INDICATOR)
    objective = part(documents.Objective, data, ("spec", "objectives", 0))
    method = at(data, ("spec", "budgetingMethod"))
    yield from check_slo(window, objective, method if method in documents.METHODS else None, _indicator(folder, data))


def _indicator(folder: Folder, data: Any) -> Indicator | None:
    """The indicator of an SLO, its own or a shared one; None if it cannot be told."""
    spec = read_indicator(data, INDICATOR)
    shared = folder.find(documents.SLI, at(data, _REFERENCE))
    if spec is None and shared is not None:
        spec = read_indicator(shared.document.data, _SPEC)
    return None if spec is None else INDICATORS.get(spec.selection.indicator)


def _check_fits(duration: str, lookback: str | None, path: Steps) -> Iterator[Refused]:
    """A tier looks back less than the period, whose name its window would have. What is unknown was told elsewhere."""
    if lookback is None or duration[-1] in "MQY" or lookback[-1] in "MQY":
        return
    if seconds(lookback) >= seconds(duration):
        what = f"its condition looks back {lookback}, and the window of the SLO is {duration}"
        yield Refused(path, what, "look back less in the condition, or choose a longer window")


def _lookback(folder: Folder, entry: Entry, path: Steps) -> str | None:
    """How far the condition of a policy of an SLO looks back; None if that cannot be told."""
    policy = folder.find(documents.ALERT_POLICY, at(entry.document.data, (*path, "alertPolicyRef")))
    data = at(entry.document.data, path) if policy is None else policy.document.data
    condition = at(data, ("spec", "conditions", 0))
    shared = folder.find(documents.ALERT_CONDITION, at(condition, ("conditionRef",)))
    spec = part(AlertConditionSpec, condition if shared is None else shared.document.data, _SPEC)
    return None if spec is None else spec.condition.lookback_window


def _name_unused(folder: Folder) -> None:
    for (kind, name), place in folder.places.items():
        entry = folder.entries[place]
        if entry.parsed is None or kind == documents.SLO:
            continue
        if kind not in _REFERRED:
            what = f"documents of kind {kind} are not used"
        elif (kind, name) not in folder.used:
            what = f"nothing refers to the {kind} {name!r}"
        else:
            continue
        folder.unused.append(Unused(entry.file, entry.line(), what))
