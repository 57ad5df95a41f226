"""What of a document can be read although something else in it is wrong: its references, and its parts by themselves.

Rule: rules that reach across fields look at these parts, so that a mistake in one place does not hide the next one in
another. A part that cannot be read is None, and what is wrong with it was told where it stands.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from typing import Any, Final, NamedTuple, TypeVar

from pydantic import BaseModel, ValidationError

from surefoot.processors.documents import at, items
from surefoot.processors.slo import openslo_documents as documents
from surefoot.processors.slo.openslo_rules import Steps
from surefoot.processors.slo.openslo_schema import DNS_LABEL
from surefoot.processors.slo.openslo_source import IndicatorSpec

M = TypeVar("M", bound=BaseModel)

INDICATOR: Final[Steps] = ("spec", "indicator", "spec")
POLICIES: Final[Steps] = ("spec", "alertPolicies")


class Link(NamedTuple):
    """That a document refers to another one, and where."""

    kind: str
    name: str
    path: Steps


def part(model: type[M], data: Any, path: Steps) -> M | None:
    """A part of a document by itself; None if it is not there or something is wrong with it."""
    try:
        return model.model_validate(at(data, path))
    except ValidationError:
        return None


def read_indicator(data: Any, path: Steps) -> IndicatorSpec | None:
    """An indicator without those fields of it that are unknown or wrong; None if too little is left."""
    found = copy.deepcopy(at(data, path))
    ratio = at(found, ("ratioMetric",))
    if isinstance(ratio, dict):
        ratio["rawType"] = "success"  # another one is refused where it stands, and says nothing of the events
    while True:
        try:
            return IndicatorSpec.model_validate(found)
        except ValidationError as error:
            places = [details["loc"] for details in error.errors() if details["type"] != "missing"]
        holders = [(at(found, place[:-1]), place[-1]) for place in places if place]
        removable = [(holder, step) for holder, step in holders if isinstance(holder, dict) and step in holder]
        for holder, step in removable:
            holder.pop(step, None)
        if not removable or len(removable) < len(places):
            return None


def links(kind: str, data: Any) -> Iterator[Link]:
    """What a document refers to by name. Names that cannot be names are left out."""
    if kind == documents.SLO:
        yield from _link(documents.SLI, data, ("spec", "indicatorRef"))
        yield from _link(documents.SERVICE, data, ("spec", "service"))
        for path, item in items(data, POLICIES):
            yield from _link(documents.ALERT_POLICY, data, (*path, "alertPolicyRef"))
            if isinstance(item, dict):
                yield from _of_policy(data, (*path, "spec"))
    elif kind == documents.ALERT_POLICY:
        yield from _of_policy(data, ("spec",))


def _of_policy(data: Any, path: Steps) -> Iterator[Link]:
    for found, _ in items(data, (*path, "conditions")):
        yield from _link(documents.ALERT_CONDITION, data, (*found, "conditionRef"))
    for found, _ in items(data, (*path, "notificationTargets")):
        yield from _link(documents.TARGET, data, (*found, "targetRef"))


def _link(kind: str, data: Any, path: Steps) -> Iterator[Link]:
    name = at(data, path)
    if isinstance(name, str) and re.fullmatch(DNS_LABEL, name):
        yield Link(kind, name, path)
