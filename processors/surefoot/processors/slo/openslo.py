"""An OpenSLO v1 file to definitions, or to problems that name file, line, field and remedy.

Contract: every document is read by itself; one that is wrong yields problems and its neighbours are used. A file that
is not YAML yields one problem from there on. Its shape is checked by ``openslo_schema``, what reaches across fields by
``openslo_rules``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any, Final, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from surefoot.processors.documents import Document, DocumentError, dotted, read_documents
from surefoot.processors.slo import openslo_schema as schema
from surefoot.processors.slo.definition import Slo
from surefoot.processors.slo.openslo_rules import Refused, check, metric
from surefoot.processors.slo.windows import seconds
from surefoot.processors.suggestions import suggestion


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
    wrong = list(check(parsed))
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


def _definition(document: schema.SloDocument, file: str, line: int) -> Slo:
    _, selection = metric(document)
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
    return suggestion(wrong, [info.alias or "" for info in model.model_fields.values()])


def _model_in(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((found for part in get_args(annotation) for found in [_model_in(part)] if found), None)
