"""A YAML or JSON file that people write to a pydantic model, or to every mistake in it, each with line and remedy.

Rule: nothing that stands in the file is ignored. An unknown field is a mistake, with the name that may have been meant.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from datetime import date, datetime
from pathlib import Path
from typing import Annotated, Any, Final, TypeVar, get_args

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, ValidationError
from pydantic_core import ErrorDetails, PydanticCustomError

from surefoot.processors.documents import Document, DocumentError, dotted, read_documents
from surefoot.processors.errors import ProcessorsError
from surefoot.processors.suggestions import suggestion

M = TypeVar("M", bound=BaseModel)

_REFUSED: Final = "surefoot_refused"


class FileError(ProcessorsError):
    """A file that cannot be used; the message has a line for each mistake."""


class Part(BaseModel):
    """A mapping of a file: nothing unknown, nothing converted."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)


def refusal(what: str, remedy: str, field: str | None = None) -> PydanticCustomError:
    """An error that says what is wrong and what to do, at ``field`` of the model or value that raises it."""
    return PydanticCustomError(_REFUSED, "{what}", {"what": what, "remedy": remedy, "field": field})


def _text(value: str) -> str:
    if not value.strip():
        raise refusal("the text is empty", "write it, or remove the field")
    return value


def _word(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value
    if isinstance(value, int):
        return str(value)
    raise refusal(f"{value!r} is a number, and 1.10 would become 1.1", "put it in quotes")


def _name(value: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", value):
        allowed = re.sub(r"[^A-Za-z0-9._-]+", "-", value).strip("-._")[:100] or "reconcile"
        raise refusal(f"{value!r} is not a name: letters, digits, points, hyphens, underscores", f"write {allowed}")
    return value


def _date(value: Any) -> Any:
    if isinstance(value, str):
        try:
            return date.fromisoformat(value)
        except ValueError as error:
            raise refusal(f"{value!r} is not a date", "write it as 2026-12-31") from error
    if isinstance(value, datetime):
        raise refusal("a day is wanted, not a time", "write it as 2026-12-31")
    return value


def _facts(value: Any) -> Any:
    """One message for what may be text, a list or a mapping; pydantic would tell one for each of them."""
    if value in ([], {}):
        raise refusal("it is empty", "write it, or remove the field")
    if isinstance(value, dict):
        return {_text(str(_word(key))): _fact(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_fact(item) for item in value]
    return None if value is None else _fact(value)


def _fact(value: Any) -> str:
    found = _word(value)
    if not isinstance(found, str):
        raise refusal(f"expected text, a list or a mapping of text, found {_kind_of(value)}", "write it as text")
    return _text(found)


Text = Annotated[str, AfterValidator(_text)]
Word = Annotated[str, BeforeValidator(_word), AfterValidator(_text)]  # a name or version; 3 means "3"
# A sentence, a list of them, or names with values; null where nobody wrote it.
Facts = Annotated[str | list[str] | dict[str, str] | None, BeforeValidator(_facts)]
Name = Annotated[str, BeforeValidator(_word), AfterValidator(_name)]  # what files and rows are called by
Day = Annotated[date, BeforeValidator(_date)]


def read_model(path: Path, model: type[M]) -> M:
    """The file's one document as ``model``. Raises FileError."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise FileError(f"Cannot read {path}: {error}. Name a readable UTF-8 file.") from error
    return parse_model(text, model, str(path))


def parse_model(text: str, model: type[M], name: str) -> M:
    """The same of a text; ``name`` is what messages call it."""
    document: Document | None = None
    try:
        if name.endswith(".json"):
            data = json.loads(text, object_pairs_hook=_no_twins)
        else:
            document = _only_document(text)
            data = document.data
        return model.model_validate(data)
    except DocumentError as error:
        raise FileError(_line(name, error.line, error.path, error.what, error.remedy)) from error
    except RecursionError as error:
        raise FileError(_line(name, 1, (), "nested too deeply", "write it flat")) from error
    except json.JSONDecodeError as error:
        raise FileError(_line(name, error.lineno, (), f"not JSON: {error.msg}", "see the place before it")) from error
    except ValidationError as error:
        # JSON is read as YAML only to find the line: that takes a hundred times as long.
        document = document or _only_document(text)
        told = [_told(details, model) for details in error.errors(include_url=False)]
        lines = dict.fromkeys(_line(name, document.line(path), path, what, remedy) for path, what, remedy in told)
        raise FileError("\n".join(lines)) from error


def _only_document(text: str) -> Document:
    documents = list(read_documents(text))
    if len(documents) > 1:
        raise DocumentError(documents[1].line(()), (), "a second document begins here", "one file holds one document")
    return documents[0]


def _no_twins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise DocumentError(1, (key,), "the key stands twice in one object", "keep one of the two")
        found[key] = value
    return found


def _line(name: str, line: int, path: Sequence[str | int], what: str, remedy: str) -> str:
    where = f"{dotted(path)}: " if path else ""
    return f"{name}:{line}: {where}{what}; {remedy}"


# Words for what pydantic found

_EXPECTED: Final = {
    "string_type": ("text", "write text, in quotes if it looks like something else"),
    "int_type": ("a whole number", "write a number without quotes and point"),
    "float_type": ("a number", "write a number without quotes"),
    "finite_number": ("a number", "write a finite number"),
    "bool_type": ("true or false", "write true or false without quotes"),
    "date_type": ("a date", "write it as 2026-12-31"),
    "list_type": ("a list", "begin each item with a hyphen"),
    "dict_type": ("a mapping", "write key: value lines below it"),
    "model_type": ("a mapping", "write key: value lines below it"),
}
Told = tuple[tuple[str | int, ...], str, str]


def _told(details: ErrorDetails, model: type[BaseModel]) -> Told:
    path, kind = _path(details["loc"], model), details["type"]
    context = details.get("ctx", {})
    if kind == _REFUSED:
        named = (context["field"],) if context["field"] else ()
        return (*path, *named), context["what"], context["remedy"]
    if kind == "missing":
        return path, "the field is missing", f"add {path[-1]}"
    if kind == "extra_forbidden":
        return path, "the field is unknown", suggestion(str(path[-1]), _fields(path[:-1], model))
    if kind == "literal_error":
        allowed = [word for word in context["expected"].replace(" or ", ", ").replace("'", "").split(", ") if word]
        return path, f"{_kind_of(details['input'])} is not one of the words", suggestion(str(details["input"]), allowed)
    expected, remedy = _EXPECTED.get(kind, (None, "correct it"))
    what = details["msg"] if expected is None else f"expected {expected}, found {_kind_of(details['input'])}"
    return path, what, remedy


def _path(location: Iterable[str | int], model: type[BaseModel]) -> tuple[str | int, ...]:
    """The place in the file: pydantic adds the name of the branch of a union, which nobody wrote."""
    steps = [step for step in location if not (isinstance(step, str) and ("[" in step or step in _BRANCHES))]
    return tuple(step for step in steps if step not in {part.__name__ for part in _models(model)})


_BRANCHES: Final = frozenset({"str", "float", "int", "bool"})


def _models(model: type[BaseModel]) -> set[type[BaseModel]]:
    found = {model}
    for info in model.model_fields.values():
        inner = _model_in(info.annotation)
        if inner is not None and inner not in found:
            found |= _models(inner)
    return found


def _kind_of(value: Any) -> str:
    if value is None:
        return "nothing"
    if isinstance(value, dict):
        return "a mapping"
    return "a list" if isinstance(value, list) else repr(value)


def _fields(path: Iterable[str | int], model: type[BaseModel]) -> list[str]:
    """The names of the fields that may stand where ``path`` leads."""
    for step in path:
        info = model.model_fields.get(str(step))
        if info is not None:
            model = _model_in(info.annotation) or model
    return list(model.model_fields)


def _model_in(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((found for part in get_args(annotation) for found in [_model_in(part)] if found), None)
