"""The rules that reach across fields: indicators and columns, targets, windows, thresholds, slices, burn-rate tiers.

Rule: every rule yields the place, what is wrong there and what to write instead; none stops the others.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from surefoot.processors.errors import QueryError
from surefoot.processors.slo import custom
from surefoot.processors.slo.definition import OCCURRENCES, TIMESLICES, Calendar
from surefoot.processors.slo.indicator import (
    INDICATORS,
    LATE,
    SECONDS,
    SQL,
    STRATUM,
    TAKEN_LABELS,
    USD,
    Indicator,
    label,
)
from surefoot.processors.slo.periods import longest_seconds
from surefoot.processors.slo.windows import DAY, LONGEST_PERIOD, MINUTE, SHORTEST_PERIOD, seconds
from surefoot.processors.suggestions import suggestion

if TYPE_CHECKING:
    from surefoot.processors.slo import openslo_documents as documents
    from surefoot.processors.slo.openslo_alerting import AlertConditionSpec
    from surefoot.processors.slo.openslo_source import IndicatorSpec, Selection

Steps = tuple[str | int, ...]


class Refused(NamedTuple):
    """Something wrong at a place of a document."""

    path: Steps
    what: str
    remedy: str


_OBJECTIVE: Final[Steps] = ("spec", "objectives", 0)
_WINDOW: Final[Steps] = ("spec", "timeWindow", 0)


def check_indicator(spec: IndicatorSpec, at: Steps, folder: Path) -> Iterator[Refused]:
    """What is wrong with an SLI that stands at ``at`` of its document; files are looked for from ``folder``."""
    selection, path = spec.selection, (*at, *spec.path)
    indicator = INDICATORS.get(selection.indicator)
    if indicator is None:
        what = f"there is no indicator {selection.indicator!r}"
        yield Refused((*path, "indicator"), what, suggestion(selection.indicator, INDICATORS))
        return
    is_threshold = spec.threshold_metric is not None
    if is_threshold != indicator.has_threshold:
        metric, right = ("thresholdMetric", "ratioMetric") if is_threshold else ("ratioMetric", "thresholdMetric")
        what = f"{indicator.name} {f'compares {_UNITS[indicator.threshold]}' if indicator.threshold else 'is a ratio'}"
        yield Refused((*at, metric), what, f"write {right} instead of {metric}")
    if (selection.file is not None) != (indicator.name == SQL):
        yield _file_or_none(selection, path)
        return
    columns, late = indicator.columns, indicator.labels == LATE
    if selection.file is not None:
        found = _columns_of(selection.file, folder)
        if isinstance(found, str):
            yield Refused((*path, "file"), found, "correct the query, or its path from the folder of this file")
            return
        columns, late = found, "fast_class" in found
    yield from _check_dimensions(selection, indicator, columns, path)
    yield from _check_waiting(selection, indicator, late, path)


_UNITS: Final = {SECONDS: "a duration", USD: "a cost"}


def _file_or_none(selection: Selection, path: Steps) -> Refused:
    if selection.file is None:
        what = "the indicator sql needs a file with the query"
        return Refused((*path, "file"), what, "add file: my-indicator.sql")
    what = f"{selection.indicator} has a query of its own"
    return Refused((*path, "file"), what, "remove it, or write indicator: sql")


def _columns_of(file: str, folder: Path) -> tuple[str, ...] | str:
    """The columns of a query of one's own, or why it cannot be used."""
    if Path(file).is_absolute():
        return f"{file!r} is not a path from the folder of this file"
    try:
        return custom.columns_of((folder / file).read_text(encoding="utf-8"))
    except OSError as error:
        return f"{file!r} cannot be read: {error.strerror}"
    except UnicodeDecodeError:
        return f"{file!r} cannot be read: it is not UTF-8"
    except QueryError as error:
        return f"{file}: {error}"


def _check_dimensions(
    selection: Selection, indicator: Indicator, columns: tuple[str, ...], path: Steps
) -> Iterator[Refused]:
    own = indicator.name == SQL
    known = [*columns, "stratum.<name>"] if not own or "strata" in columns else list(columns)
    named: list[tuple[Steps, str]] = [((*path, "where", name), name) for name in selection.where]
    named += [((*path, "selected", name), name) for name in selection.selected]
    named += [((*path, "by", index), name) for index, name in enumerate(selection.by)]
    unknown = set()
    for place, name in named:
        has = name in columns or (name.startswith(STRATUM) and "stratum.<name>" in known)
        if not (has and indicator.knows(name)):
            table = indicator.population.replace("_", " ")
            unknown.add(name)
            yield Refused(place, f"{table} have no {name!r} to choose or divide by", suggestion(name, known))
    for index, name in enumerate(selection.by):
        wrong = _not_a_label(name, selection.by[:index])
        if wrong is not None and name not in unknown:
            yield Refused((*path, "by", index), *wrong)


def _not_a_label(name: str, before: Sequence[str]) -> tuple[str, str] | None:
    """Why a dimension cannot be a label of a metric, and what to do: one bad label, and Prometheus takes none."""
    if name in before:
        return f"{name!r} stands twice", "keep one of the two"
    made = label(name)
    if not re.fullmatch(r"[a-zA-Z][a-zA-Z0-9_]*", made):
        return f"{name!r} cannot be a label of a metric", "divide by a name of the letters a to z, digits and . - _"
    if made in TAKEN_LABELS:
        return f"every metric has a label {made} of its own", f"give it another name in the query, such as my_{made}"
    same = next((other for other in before if label(other) == made), None)
    if same is not None:
        return f"{name!r} and {same!r} would be one label of a metric, {made}", "keep one of the two"
    return None


def _check_waiting(selection: Selection, indicator: Indicator, late: bool, path: Steps) -> Iterator[Refused]:
    if selection.labels is not None and selection.labels.max_delay is not None:
        yield from _check_length(selection.labels.max_delay, (*path, "labels", "max_delay"), MINUTE, 31 * DAY)
    if selection.max_age is not None:
        if not indicator.repeated and indicator.name != SQL:
            what = f"events of {indicator.name} come with the traffic and do not age"
            yield Refused((*path, "max_age"), what, "remove it; it is for run groups, such as strict_repeat")
        yield from _check_length(selection.max_age, (*path, "max_age"), MINUTE, seconds(LONGEST_PERIOD))
    if not late:
        for name in ("labels", "selected"):
            if name in selection.model_fields_set:
                what = f"how an event of {indicator.name} ended is known at once, so there is nothing to wait for"
                remedy = "remove it" if name == "labels" else "remove it, or choose events with where"
                yield Refused((*path, name), what, remedy)


def _check_length(duration: str, path: Steps, least: int, most: int) -> Iterator[Refused]:
    if duration[-1] in "MQY":
        yield Refused(path, f"{duration!r} has no fixed length", "write it in minutes, hours, days or weeks")
    elif not least <= seconds(duration) <= most:
        yield Refused(path, f"{duration!r} is not between {least // MINUTE}m and {most // DAY}d", "write 3d")


def check_slo(
    window: documents.TimeWindow | None,
    objective: documents.Objective | None,
    method: str | None,
    indicator: Indicator | None,
) -> Iterator[Refused]:
    """What is wrong with an SLO beside its indicator and policies; a part is None if it cannot be read."""
    if window is not None:
        yield from _check_window(window)
    if objective is None:
        return
    if method is not None:
        yield from _check_slices(objective, method)
    if indicator is not None:
        yield from _check_threshold(objective, indicator)


def calendar_of(window: documents.TimeWindow) -> Calendar | None:
    """The calendar of a window; None if it rolls."""
    if window.calendar is None:
        return None
    start, zone = window.calendar.start_time, window.calendar.time_zone
    return Calendar(start, zone, int(window.duration[:-1]), window.duration[-1])


def _check_window(window: documents.TimeWindow) -> Iterator[Refused]:
    text, path = window.duration, (*_WINDOW, "duration")
    calendar = calendar_of(window)
    if calendar is None and text[-1] in "MQY":
        what = f"{text!r} has no fixed length, so it cannot roll"
        yield Refused(path, what, "write it in days, such as 28d, or add a calendar instead of isRolling")
        return
    # In words before in windows: a thousand years have no calendar.
    rough = (
        int(text[:-1])
        * {"m": 60, "h": 3600, "d": DAY, "w": 7 * DAY, "M": 28 * DAY, "Q": 90 * DAY, "Y": 365 * DAY}[text[-1]]
    )
    longest = seconds(LONGEST_PERIOD)
    if rough <= longest:
        rough = seconds(text) if calendar is None else longest_seconds(calendar)
        longest += 3600 if calendar is not None else 0  # clocks that change
    if not seconds(SHORTEST_PERIOD) <= rough <= longest:
        what = f"{text!r} is not between {SHORTEST_PERIOD} and {LONGEST_PERIOD}"
        yield Refused(path, what, "write 28d")


def _check_slices(objective: documents.Objective, method: str) -> Iterator[Refused]:
    path = (*_OBJECTIVE, "timeSliceTarget")
    if method != TIMESLICES and objective.time_slice_target is not None:
        yield Refused(path, f"{method} has no target for a slice", "remove it, or use budgetingMethod: Timeslices")
    elif method == TIMESLICES and objective.time_slice_target is None:
        yield Refused(path, "Timeslices needs the share of good events of a good slice", "add timeSliceTarget: 0.95")
    elif objective.time_slice_target is not None and not 0 < objective.time_slice_target <= 1:
        what = f"{objective.time_slice_target:g} is not a share above 0, at most 1"
        yield Refused(path, what, "write one such as 0.95")
    path = (*_OBJECTIVE, "timeSliceWindow")
    length = objective.time_slice_window
    if (method == OCCURRENCES) != (length is None):
        if length is None:
            yield Refused(path, f"{method} needs the length of a slice", "add timeSliceWindow: 5m")
        else:
            yield Refused(path, "Occurrences has no time slices", "remove it, or use budgetingMethod: Timeslices")
    elif length is not None and (length[-1] in "MQY" or DAY % seconds(length)):
        what = f"{length!r} does not divide a day, and slices begin anew at midnight UTC"
        yield Refused(path, what, "write 1m, 5m, 15m, 1h or 1d")


def _check_threshold(objective: documents.Objective, indicator: Indicator) -> Iterator[Refused]:
    example, most = {SECONDS: ("value: 30 (seconds)", seconds("1w")), USD: ("value: 0.5 (USD)", 1_000_000)}.get(
        indicator.threshold or "", ("", 0)
    )
    for name, value in (("op", objective.op), ("value", objective.value)):
        if indicator.has_threshold and value is None:
            yield Refused((*_OBJECTIVE, name), f"{indicator.name} needs op and value", f"write op: lte and {example}")
        elif not indicator.has_threshold and value is not None:
            yield Refused((*_OBJECTIVE, name), f"{indicator.name} is a ratio and has no threshold", "remove it")
    if not indicator.has_threshold:
        return
    if objective.op not in {None, "lte"}:
        what = f"{objective.op!r} is not supported: good is what is at most the value"
        yield Refused((*_OBJECTIVE, "op"), what, "write op: lte")
    if objective.value is not None and not 0 < objective.value <= most:
        unit = "seconds above 0 and up to a week" if indicator.threshold == SECONDS else f"USD above 0 and up to {most}"
        yield Refused((*_OBJECTIVE, "value"), f"{objective.value:g} is not a number of {unit}", f"write {example}")


LONGEST_LOOKBACK: Final = "7d"
SHORTEST_LOOKBACK: Final = "5m"


def check_condition(spec: AlertConditionSpec, at: Steps) -> Iterator[Refused]:
    """What is wrong with an alert condition that stands at ``at`` of its document."""
    condition, path = spec.condition, (*at, "condition")
    if condition.op != "gt":
        what = f"{condition.op!r} is not supported: a tier burns above its threshold"
        yield Refused((*path, "op"), what, "write op: gt")
    if condition.threshold <= 0:
        what = f"{condition.threshold:g} is no burn rate to alert on: at 1 the budget lasts exactly the period"
        yield Refused((*path, "threshold"), what, "write more than 0, such as 14.4")
    text = condition.lookback_window
    if text[-1] in "MQY" or not seconds(SHORTEST_LOOKBACK) <= seconds(text) <= seconds(LONGEST_LOOKBACK):
        what = f"{text!r} is not between {SHORTEST_LOOKBACK} and {LONGEST_LOOKBACK}"
        yield Refused((*path, "lookbackWindow"), what, "write one such as 1h")
