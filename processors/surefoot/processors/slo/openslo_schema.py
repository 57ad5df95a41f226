"""What every document of OpenSLO v1 is made of: names, descriptions, durations, metadata.

Names, nesting and rules are those of the specification (github.com/OpenSLO/OpenSLO, README of v1) and of its Go SDK.
Rule: a field that OpenSLO has and we do not read is refused by name with a way out, a field that OpenSLO does not have
is unknown; neither is ignored.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, ClassVar, Final, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, model_validator
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError

T = TypeVar("T")

API_VERSION: Final = "openslo/v1"
REFUSED: Final = "surefoot_refused"
_LONGEST_DESCRIPTION: Final = 1050
_LONGEST_DISPLAY_NAME: Final = 63
_KEY: Final = r"[a-zA-Z0-9]([-._a-zA-Z0-9]{0,61}[a-zA-Z0-9])?"
_DNS_LABEL: Final = r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?"


def refusal(what: str, remedy: str, field: str | None = None) -> PydanticCustomError:
    """An error that says what is wrong and what to do, at ``field`` of the model or value that raises it."""
    return PydanticCustomError(REFUSED, "{what}", {"what": what, "remedy": remedy, "field": field})


def _name(value: str) -> str:
    if not re.fullmatch(_DNS_LABEL, value):
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
    good_prefix = not slash or (len(prefix) <= 253 and re.fullmatch(rf"{_DNS_LABEL}(\.{_DNS_LABEL})*", prefix))
    if not (good_prefix and re.fullmatch(_KEY, name)):
        what = f"{value!r} is not a key of an annotation: a name of letters, digits and - _ ., before it a domain and /"
        raise refusal(what, "write one such as example.com/runbook")
    return value


def _duration(value: str) -> str:
    if not re.fullmatch(r"[0-9]+[mhdwMQY]", value) or int(value[:-1]) == 0:
        raise refusal(f"{value!r} is not a duration: a whole number above 0 and one of m h d w M Q Y", "write 28d")
    return value


def one(kind: str, remedy: str) -> AfterValidator:
    """Exactly one item."""

    def check(items: list[T]) -> list[T]:
        if len(items) != 1:
            raise refusal(f"exactly one {kind} is needed, there are {len(items)}", remedy)
        return items

    return AfterValidator(check)


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

    @model_validator(mode="before")
    @classmethod
    def _refuse(cls, data: Any) -> Any:
        for name, (what, remedy) in cls.refused.items():
            if isinstance(data, dict) and name in data:
                raise refusal(what, remedy, name)
        return data


class Metadata(Part):
    """``metadata`` of any document."""

    name: Name
    display_name: Annotated[str, _at_most(_LONGEST_DISPLAY_NAME)] = ""
    labels: dict[Annotated[str, AfterValidator(_label_key)], Texts] = {}
    annotations: dict[Annotated[str, AfterValidator(_annotation_key)], str] = {}


def one_of_two(data: Any, reference: str, inline: str) -> Any:
    """Refuse a mapping that has both a reference and an object written out, or neither."""
    if not isinstance(data, dict):
        return data
    if (reference in data) == (inline in data):
        count, remedy = ("both are", "keep one of the two") if reference in data else ("neither is", f"add {reference}")
        raise refusal(f"exactly one of {reference} and {inline} is needed, {count} there", remedy)
    return not_null(data, reference, inline)


def not_null(data: Any, *names: str) -> Any:
    """Refuse a mapping in which one of the fields is there and says nothing."""
    for name in names:
        if isinstance(data, dict) and name in data and data[name] is None:
            raise refusal(f"{name} is empty", "write what belongs there", name)
    return data


def must_be(kind: str) -> AfterValidator:
    """The ``kind`` of an object that is written into another one."""

    def check(value: str) -> str:
        if value != kind:
            raise refusal(f"{value!r} cannot stand here", f"write kind: {kind}")
        return value

    return AfterValidator(check)
