"""An OpenSLO v1 file to definitions, or to problems that name file, line, field and remedy.

Contract: every document is read by itself; one that is wrong yields problems and its neighbours are used. A file that
is not YAML yields one problem from there on. The shape is ``openslo_schema``'s; here are the rules that reach across
fields, and the words.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any, Final, NamedTuple, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from surefoot.processors.slo import openslo_schema as schema
from surefoot.processors.slo.definition import Slo
from surefoot.processors.slo.documents import Document, DocumentError, dotted, read_documents
from surefoot.processors.slo.indicator import INDICATORS, Indicator, suggestion
from surefoot.processors.slo.windows import LONGEST_PERIOD, SHORTEST_PERIOD, seconds

Steps = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Problem:
    """Why a document is not used."""

    file: str
    line: int
    path: str  # of the field, such as spec.objectives[0].target; "" for the document
    what: str
    remedy: str

    def __str__(self) -> str:
        where = f"{self.path}: " if self.path else ""
        return f"{self.file}:{self.line}: {where}{self.what}; {self.remedy}"


@dataclass(frozen=True, slots=True)
class Unused:
    """A document, or a part of one, that is fine and does nothing here."""

    file: str
    line: int
    what: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.what}"


@dataclass(frozen=True, slots=True)
class Read:
    """What one file held."""

    slos: list[Slo] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    unused: list[Unused] = field(default_factory=list)


class Refused(NamedTuple):
    """Something wrong at a place of a document."""

    path: Steps
    what: str
    remedy: str


def read_file(file: Path) -> Read:
    """The SLOs of a file. Never raises for what the file holds, or because it cannot be read."""
    read = Read()
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        read.problems.append(Problem(str(file), 1, "", f"it cannot be read: {error}", "make it a readable UTF-8 file"))
        return read
    try:
        for document in read_documents(text):
            for wrong in _read_document(document, str(file), read):
                line = document.line(wrong.path)
                read.problems.append(Problem(str(file), line, dotted(wrong.path), wrong.what, wrong.remedy))
    except DocumentError as error:
        read.problems.append(Problem(str(file), error.line, dotted(error.path), error.what, error.remedy))
    return read


def _read_document(document: Document, file: str, read: Read) -> Iterator[Refused]:
    data = document.data
    if not isinstance(data, dict):
        yield Refused((), f"the document is {_kind_of(data)}, not a mapping", "begin with apiVersion: openslo/v1")
        return
    wrong = list(_refuse_head(data))
    if wrong:
        yield from wrong
        return
    is_slo = data["kind"] == schema.SLO_KIND
    model: type[BaseModel] = schema.SloDocument if is_slo else schema.OtherDocument
    try:
        parsed = model.model_validate(data)
    except ValidationError as error:
        yield from (_refused(details, model) for details in error.errors(include_url=False))
        return
    line = document.line(("metadata", "name"))
    if not isinstance(parsed, schema.SloDocument):
        read.unused.append(Unused(file, line, f"documents of kind {data['kind']} are not used"))
        return
    wrong = list(_check(parsed))
    if wrong:
        yield from wrong
        return
    read.slos.append(_definition(parsed, file, line))
    if parsed.spec.alert_policies:
        place = document.line(("spec", "alertPolicies"))
        read.unused.append(Unused(file, place, "alertPolicies are not used; every SLO gets the burn-rate alerts"))


def _refuse_head(data: dict[Any, Any]) -> Iterator[Refused]:
    version, kind = data.get("apiVersion"), data.get("kind")
    if version != schema.API_VERSION:
        found = "is missing" if version is None else f"is {version!r}"
        yield Refused(("apiVersion",), f"the version {found}", f"write apiVersion: {schema.API_VERSION}")
    kinds = (schema.SLO_KIND, *schema.UNUSED_KINDS)
    if kind is None:
        yield Refused(("kind",), "the kind is missing", "write kind: SLO")
    elif kind not in kinds:
        yield Refused(("kind",), f"{kind!r} is not a kind of OpenSLO", suggestion(str(kind), kinds))


# Rules across fields

_INDICATOR: Final[Steps] = ("spec", "indicator", "spec")
_OBJECTIVE: Final[Steps] = ("spec", "objectives", 0)
_DURATION: Final[Steps] = ("spec", "timeWindow", 0, "duration")


def _metric(document: schema.SloDocument) -> tuple[Steps, schema.Selection]:
    spec = document.spec.indicator.spec
    if spec.threshold_metric is not None:
        return (*_INDICATOR, "thresholdMetric", "metricSource", "spec"), spec.threshold_metric.metric_source.spec
    assert spec.ratio_metric is not None  # noqa: S101 - the schema let exactly one through
    return (*_INDICATOR, "ratioMetric", "raw", "metricSource", "spec"), spec.ratio_metric.raw.metric_source.spec


def _check(document: schema.SloDocument) -> Iterator[Refused]:
    path, selection = _metric(document)
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
    name = "target" if objective.target is not None else "targetPercent"
    whole = 1 if objective.target is not None else 100
    value = objective.target if objective.target is not None else objective.target_percent
    path = (*_OBJECTIVE, name)
    if value is None or not value < whole:
        what = f"{value} leaves no error budget: nothing could ever fail, and any failure would burn infinitely fast"
        remedy = f"write less than {whole}, such as {name}: {0.99 * whole:g}"
        if name == "target" and value is not None and 1 < value < 100:
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


def _definition(document: schema.SloDocument, file: str, line: int) -> Slo:
    _, selection = _metric(document)
    spec, objective = document.spec, document.spec.objectives[0]
    percent = objective.target_percent
    return Slo(
        name=document.metadata.name,
        service=spec.service,
        indicator=selection.indicator,
        objective=objective.target or float(Decimal(repr(percent)) / 100),
        period=spec.time_window[0].duration,
        period_seconds=seconds(spec.time_window[0].duration),
        where=tuple((column, tuple(values)) for column, values in sorted(selection.where.items())),
        by=tuple(selection.by),
        threshold_ns=None if objective.value is None else int(Decimal(repr(objective.value)) * 1_000_000_000),
        display_name=document.metadata.display_name,
        description=spec.description,
        file=file,
        line=line,
    )


# Words for what pydantic found

_EXPECTED: Final = {
    "string_type": ("text", "write text, in quotes if it looks like something else"),
    "float_type": ("a number", "write a number without quotes"),
    "finite_number": ("a number", "write a finite number"),
    "bool_type": ("true or false", "write true or false without quotes"),
    "list_type": ("a list", "begin each item with a hyphen"),
    "dict_type": ("a mapping", "write key: value lines below it"),
    "model_type": ("a mapping", "write key: value lines below it"),
}


def _refused(details: ErrorDetails, model: type[BaseModel]) -> Refused:
    path, kind = tuple(step for step in details["loc"] if step != "[key]"), details["type"]
    context = details.get("ctx", {})
    if kind == schema.REFUSED:
        named = (context["field"],) if context["field"] else ()
        return Refused((*path, *named), context["what"], context["remedy"])
    if kind == "missing":
        return Refused(path, "the field is missing", f"add {path[-1]}")
    if kind in {"extra_forbidden", "invalid_key"}:
        return Refused(path, "the field is unknown", _known_fields(str(path[-1]), path[:-1], model))
    expected, remedy = _EXPECTED.get(kind, (None, "see docs/slos.md"))
    what = details["msg"] if expected is None else f"expected {expected}, found {_kind_of(details['input'])}"
    return Refused(path, what, remedy)


def _kind_of(value: Any) -> str:
    if value is None:
        return "nothing"
    if isinstance(value, dict):
        return "a mapping"
    return "a list" if isinstance(value, list) else repr(value)


def _known_fields(wrong: str, path: Iterable[str | int], model: type[BaseModel]) -> str:
    """What stands where ``path`` leads, and what is close to ``wrong``."""
    for step in path:
        for info in model.model_fields.values():
            if info.alias == step:
                model = _model_in(info.annotation) or model
    known = [info.alias or "" for info in model.model_fields.values()]
    close = difflib.get_close_matches(wrong, known, n=1)
    return f"did you mean {close[0]}?" if close else f"remove it; known here: {', '.join(known)}"


def _model_in(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((found for part in get_args(annotation) for found in [_model_in(part)] if found), None)
