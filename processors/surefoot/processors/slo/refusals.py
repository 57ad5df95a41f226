"""What pydantic found wrong with a document, as place, fault and remedy in plain words.

Rule: an unknown field is answered with the fields that are known there, and every refusal says what to write instead.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final, TypeVar, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from surefoot.processors.slo import openslo_schema as schema
from surefoot.processors.slo.openslo_rules import Refused
from surefoot.processors.suggestions import suggestion

M = TypeVar("M", bound=BaseModel)

OWN_VERSION: Final = "surefoot/v1"
_EXPECTED: Final = {
    "string_type": ("text", "write text, in quotes if it looks like something else"),
    "int_type": ("a whole number", "write a whole number without quotes"),
    "float_type": ("a number", "write a number without quotes"),
    "finite_number": ("a number", "write a finite number"),
    "bool_type": ("true or false", "write true or false without quotes"),
    "list_type": ("a list", "begin each item with a hyphen"),
    "dict_type": ("a mapping", "write key: value lines below it"),
    "model_type": ("a mapping", "write key: value lines below it"),
}


_LARGEST_SHOWN: Final = 10**18
_LONGEST_SHOWN: Final = 120


def parse(model: type[M], data: Any, remedies: str) -> M | list[Refused]:
    """``data`` as a ``model``, or all that is wrong with it; ``remedies`` names the page that shows a right one."""
    try:
        return model.model_validate(data)
    except ValidationError as error:
        return list(_refused(error, model, remedies))


def _refused(error: ValidationError, model: type[BaseModel], remedies: str) -> Iterator[Refused]:
    for details in error.errors(include_url=False):
        yield _one(details, model, remedies)


def _one(details: ErrorDetails, model: type[BaseModel], remedies: str) -> Refused:
    path, kind = tuple(step for step in details["loc"] if step != "[key]"), details["type"]
    context = details.get("ctx", {})
    if kind == schema.REFUSED:
        named = (context["field"],) if context["field"] else ()
        return Refused((*path, *named), context["what"], context["remedy"])
    if kind == "missing":
        return Refused(path, "the field is missing", f"add {path[-1]}")
    if kind in {"extra_forbidden", "invalid_key"}:
        return Refused(path, "the field is unknown", _known_fields(str(path[-1]), path[:-1], model))
    expected, remedy = _EXPECTED.get(kind, (None, f"see {remedies}"))
    what = details["msg"] if expected is None else f"expected {expected}, found {kind_of(details['input'])}"
    return Refused(path, what, remedy)


def kind_of(value: Any) -> str:
    """A value in an error: scalars as written, collections by their kind."""
    if value is None:
        return "nothing"
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list):
        return "a list"
    if isinstance(value, int) and abs(value) > _LARGEST_SHOWN:  # thousands of digits, perhaps
        return "a number that is far too large"
    return repr(value) if len(repr(value)) <= _LONGEST_SHOWN else f"{repr(value)[:_LONGEST_SHOWN]}..."


def _known_fields(wrong: str, path: Iterable[str | int], model: type[BaseModel]) -> str:
    for step in path:
        for name, info in model.model_fields.items():
            if (info.alias or name) == step:
                model = _model_in(info.annotation) or model
    return suggestion(wrong, [info.alias or name for name, info in model.model_fields.items()])


def _model_in(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((found for part in get_args(annotation) for found in [_model_in(part)] if found), None)
