"""The rules for an SLO that reach across fields: targets, windows, thresholds, columns.

Rule: every rule yields the place, what is wrong there and what to write instead; none stops the others.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from surefoot.processors.slo import openslo_schema as schema
from surefoot.processors.slo.indicator import INDICATORS, Indicator
from surefoot.processors.slo.windows import LONGEST_PERIOD, SHORTEST_PERIOD, seconds
from surefoot.processors.suggestions import suggestion

Steps = tuple[str | int, ...]


class Refused(NamedTuple):
    """Something wrong at a place of a document."""

    path: Steps
    what: str
    remedy: str


_INDICATOR: Final[Steps] = ("spec", "indicator", "spec")
_OBJECTIVE: Final[Steps] = ("spec", "objectives", 0)
_DURATION: Final[Steps] = ("spec", "timeWindow", 0, "duration")


def metric(document: schema.SloDocument) -> tuple[Steps, schema.Selection]:
    """What the SLO is about, and where the document says so."""
    spec = document.spec.indicator.spec
    if spec.threshold_metric is not None:
        return (*_INDICATOR, "thresholdMetric", "metricSource", "spec"), spec.threshold_metric.metric_source.spec
    assert spec.ratio_metric is not None  # noqa: S101 - the schema let exactly one through
    return (*_INDICATOR, "ratioMetric", "raw", "metricSource", "spec"), spec.ratio_metric.raw.metric_source.spec


def check(document: schema.SloDocument) -> Iterator[Refused]:
    """What is wrong with a document whose shape is right."""
    path, selection = metric(document)
    yield from _check_window(document.spec.time_window[0])
    yield from _check_target(document.spec.objectives[0])
    indicator = INDICATORS.get(selection.indicator)
    if indicator is None:
        what = f"there is no indicator {selection.indicator!r}"
        yield Refused((*path, "indicator"), what, suggestion(selection.indicator, INDICATORS))
        return
    yield from _check_threshold(document, indicator)
    yield from _check_dimensions(selection, indicator, path)


def _check_window(window: schema.TimeWindow) -> Iterator[Refused]:
    text = window.duration
    if not re.fullmatch(r"[0-9]+[mhdwMQY]", text):
        yield Refused(_DURATION, f"{text!r} is not a duration: a whole number and one of m h d w M Q Y", "write 28d")
    elif text[-1] in "MQY":
        what = f"{text!r} has no fixed length, so it cannot roll; calendar windows come with a later version"
        yield Refused(_DURATION, what, "write it in days, such as 28d")
    elif not seconds(SHORTEST_PERIOD) <= seconds(text) <= seconds(LONGEST_PERIOD):
        what = f"{text!r} is not between {SHORTEST_PERIOD} (the longest alert window is 3d) and {LONGEST_PERIOD}"
        yield Refused(_DURATION, what, "write 28d")
    if not window.is_rolling:
        what = "a window that does not roll needs a calendar, which comes with a later version"
        yield Refused(("spec", "timeWindow", 0, "isRolling"), what, "write isRolling: true")


def _check_target(objective: schema.Objective) -> Iterator[Refused]:
    name, value, whole = "target", objective.target, 1
    if value is None:
        name, value, whole = "targetPercent", objective.target_percent, 100
    assert value is not None  # noqa: S101 - the schema let exactly one through
    path = (*_OBJECTIVE, name)
    if value >= whole:
        what = f"{value:g} leaves no error budget: nothing could ever fail, and any failure would burn infinitely fast"
        remedy = f"write less than {whole}, such as {name}: {0.99 * whole:g}"
        if name == "target" and 1 < value < 100:
            what, remedy = f"{value:g} is not a share between 0 and 1", f"write targetPercent: {value:g}"
        yield Refused(path, what, remedy)
    elif value <= 0:
        yield Refused(path, f"{value:g} asks for nothing", f"write more than 0, such as {name}: {0.99 * whole:g}")


def _check_threshold(document: schema.SloDocument, indicator: Indicator) -> Iterator[Refused]:
    objective, is_threshold = document.spec.objectives[0], document.spec.indicator.spec.threshold_metric is not None
    if is_threshold != indicator.has_threshold:
        metric, right = ("thresholdMetric", "ratioMetric") if is_threshold else ("ratioMetric", "thresholdMetric")
        what = f"{indicator.name} {'compares a duration' if indicator.has_threshold else 'is a ratio'}"
        yield Refused((*_INDICATOR, metric), what, f"write {right} instead of {metric}")
        return
    for name, value in (("op", objective.op), ("value", objective.value)):
        if indicator.has_threshold and value is None:
            remedy = "write op: lte and value: 30 (seconds)"
            yield Refused((*_OBJECTIVE, name), f"{indicator.name} needs op and value", remedy)
        elif not indicator.has_threshold and value is not None:
            yield Refused((*_OBJECTIVE, name), f"{indicator.name} is a ratio and has no threshold", "remove it")
    if not indicator.has_threshold:
        return
    if objective.op not in {None, "lte"}:
        what = f"{objective.op!r} is not supported: good is a duration of at most the value"
        yield Refused((*_OBJECTIVE, "op"), what, "write op: lte")
    if objective.value is not None and not 0 < objective.value <= seconds("1w"):
        what = f"{objective.value:g} is not a number of seconds above 0 and up to a week"
        yield Refused((*_OBJECTIVE, "value"), what, "write the duration in seconds, such as value: 30")


def _check_dimensions(selection: schema.Selection, indicator: Indicator, path: Steps) -> Iterator[Refused]:
    known = [*indicator.columns, "stratum.<name>"]
    named: list[tuple[Steps, str]] = [((*path, "where", name), name) for name in selection.where]
    named += [((*path, "by", index), name) for index, name in enumerate(selection.by)]
    for place, name in named:
        if not indicator.knows(name):
            table = indicator.population
            yield Refused(place, f"{table} have no {name!r} to choose or divide by", suggestion(name, known))
    for index, name in enumerate(selection.by):
        if name in selection.by[:index]:
            yield Refused((*path, "by", index), f"{name!r} stands twice", "keep one of the two")
