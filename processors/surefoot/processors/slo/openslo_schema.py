"""What every document of OpenSLO v1 is made of: names, descriptions, durations, metadata.

Names, nesting and rules are those of the specification (github.com/OpenSLO/OpenSLO, README of v1) and of its Go SDK.
Rule: a field that OpenSLO has and we do not read is refused by name with a way out, a field that OpenSLO does not have
is unknown; neither is ignored. All that is wrong with a part is told at once, also by rules that compare its fields, so
that a mended file does not show the next mistake.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Annotated, Any, ClassVar, Final, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    ModelWrapValidatorHandler,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WrapValidator,
    model_validator,
)
from pydantic.alias_generators import to_camel
from pydantic_core import InitErrorDetails, PydanticCustomError

T = TypeVar("T")

API_VERSION: Final = "openslo/v1"
REFUSED: Final = "surefoot_refused"
_LONGEST_DESCRIPTION: Final = 1050
_LONGEST_DISPLAY_NAME: Final = 63
_KEY: Final = r"[a-zA-Z0-9]([-._a-zA-Z0-9]{0,61}[a-zA-Z0-9])?"
DNS_LABEL: Final = r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?"


def refusal(what: str, remedy: str, field: str | None = None) -> PydanticCustomError:
    """An error that says what is wrong and what to do, at ``field`` of the model or value that raises it."""
    return PydanticCustomError(REFUSED, "{what}", {"what": what, "remedy": remedy, "field": field})


def _name(value: str) -> str:
    if not re.fullmatch(DNS_LABEL, value):
        allowed = re.sub(r"[^a-z0-9]+", "-", value.lower()).strip("-")[:63].strip("-") or "support-desk-availability"
        raise refusal(
            f"{value!r} is not a name: lower-case letters, digits and hyphens, 63 at most (RFC 1123)",
            f"write {allowed}",
        )
    return value


def _at_most(longest: int) -> AfterValidator:
    def check(value: str) -> str:
        if len(value) > longest:
            raise refusal(f"{len(value)} characters, OpenSLO allows {longest}", "shorten it")
        return value

    return AfterValidator(check)


def _label_key(value: str) -> str:
    if not re.fullmatch(_KEY, value):
        what = f"{value!r} is not a key of a label: letters, digits and - _ . between them, 63 at most"
        raise refusal(what, "write one such as team")
    return value


def _annotation_key(value: str) -> str:
    prefix, slash, name = value.rpartition("/")
    good_prefix = not slash or (len(prefix) <= 253 and re.fullmatch(rf"{DNS_LABEL}(\.{DNS_LABEL})*", prefix))
    if not (good_prefix and re.fullmatch(_KEY, name)):
        what = f"{value!r} is not a key of an annotation: a name of letters, digits and - _ ., before it a domain and /"
        raise refusal(what, "write one such as example.com/runbook")
    return value


def _duration(value: str) -> str:
    if not re.fullmatch(r"[0-9]+[mhdwMQY]", value) or int(value[:-1]) == 0:
        raise refusal(f"{value!r} is not a duration: a whole number above 0 and one of m h d w M Q Y", "write 28d")
    return value


def one(kind: str, remedy: str) -> WrapValidator:
    """Exactly one item."""

    def check(value: Any, handler: ValidatorFunctionWrapHandler) -> Any:
        wrong = []
        if isinstance(value, list) and len(value) != 1:
            wrong.append(refusal(f"exactly one {kind} is needed, there are {len(value)}", remedy))
        return _with(wrong, value, handler)

    return WrapValidator(check)


def _with(wrong: list[PydanticCustomError], value: Any, handler: Any) -> Any:
    """What the handler makes of ``value``; raises what is wrong by itself and what the handler refuses, together."""
    told = [InitErrorDetails(type=error, loc=(), input=value) for error in wrong]
    try:
        made = handler(value)
    except ValidationError as error:
        if not told:
            raise
        told += [_again(details) for details in error.errors(include_url=False)]
    if told:
        raise ValidationError.from_exception_data("", told)
    return made


def _again(details: Any) -> InitErrorDetails:
    kind, loc, value, context = details["type"], details["loc"], details["input"], details.get("ctx", {})
    if kind == REFUSED:
        return InitErrorDetails(type=PydanticCustomError(REFUSED, "{what}", context), loc=loc, input=value)
    return InitErrorDetails(type=kind, loc=loc, input=value, ctx=context)


def _some(items: list[str]) -> list[str]:
    if not items:
        raise refusal("an empty list matches nothing", "name at least one value, or remove the condition")
    return items


def _as_list(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


Name = Annotated[str, AfterValidator(_name)]
Description = Annotated[str, _at_most(_LONGEST_DESCRIPTION)]
Duration = Annotated[str, AfterValidator(_duration)]
Texts = Annotated[list[str], BeforeValidator(_as_list)]
SomeTexts = Annotated[Texts, AfterValidator(_some)]


class Part(BaseModel):
    """A mapping of the document: nothing unknown, nothing converted."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, alias_generator=to_camel, allow_inf_nan=False)
    # Fields that OpenSLO has and we do not read: what to say, and the way out.
    refused: ClassVar[dict[str, tuple[str, str]]] = {}

    @classmethod
    def wrong(cls, data: dict[Any, Any]) -> Iterable[PydanticCustomError]:  # noqa: ARG003 - for those that have rules
        """What the rules between its fields refuse, of the mapping as it was written: nothing in it is checked yet."""
        return ()

    @model_validator(mode="wrap")
    @classmethod
    def _all_at_once(cls, data: Any, handler: ModelWrapValidatorHandler[Any]) -> Any:
        if not isinstance(data, dict):
            return handler(data)
        refused = [refusal(*cls.refused[name], name) for name in cls.refused if name in data]
        if refused:  # what else is missing may be missing because of them
            raise ValidationError.from_exception_data(
                "", [InitErrorDetails(type=error, loc=(), input=data) for error in refused]
            )
        return _with(list(cls.wrong(data)), data, handler)


class Metadata(Part):
    """``metadata`` of any document."""

    name: Name
    display_name: Annotated[str, _at_most(_LONGEST_DISPLAY_NAME)] = ""
    labels: dict[Annotated[str, AfterValidator(_label_key)], Texts] = {}
    annotations: dict[Annotated[str, AfterValidator(_annotation_key)], str] = {}


def one_of_two(data: dict[Any, Any], reference: str, inline: str) -> Iterator[PydanticCustomError]:
    """Refuse a mapping that has both a reference and an object written out, or neither."""
    if (reference in data) == (inline in data):
        count, remedy = ("both are", "keep one of the two") if reference in data else ("neither is", f"add {reference}")
        yield refusal(f"exactly one of {reference} and {inline} is needed, {count} there", remedy)
    yield from not_null(data, reference, inline)


def not_null(data: dict[Any, Any], *names: str) -> Iterator[PydanticCustomError]:
    """Refuse a mapping in which one of the fields is there and says nothing."""
    for name in names:
        if name in data and data[name] is None:
            yield refusal(f"{name} is empty", "write what belongs there", name)


def given(data: dict[Any, Any], *names: str) -> list[str]:
    """Those of the fields that say something."""
    return [name for name in names if data.get(name) is not None]


def must_be(kind: str) -> AfterValidator:
    """The ``kind`` of an object that is written into another one."""

    def check(value: str) -> str:
        if value != kind:
            raise refusal(f"{value!r} cannot stand here", f"write kind: {kind}")
        return value

    return AfterValidator(check)
