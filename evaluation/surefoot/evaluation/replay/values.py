"""Results and exceptions as JSON, and back as what they were.

Rule: what cannot be built again is refused when it is recorded, never changed silently; a value comes back equal and of
the same type. Only dataclasses, pydantic models, enums and exceptions are built by their names, and only names that
this module wrote: a mapping that looks like one of its marks is written so that it comes back as a mapping.
"""

from __future__ import annotations

import base64
import dataclasses
import datetime
import decimal
import enum
import importlib
import math
import pathlib
import uuid
from collections.abc import Callable, Mapping
from typing import Any, Final

from surefoot.evaluation.replay.canonical import NotPlainError
from surefoot.evaluation.replay.errors import ReplayedError

# Kinds that are one text each: their mark, how to write them, how to read them.
_TEXTS: Final[dict[type, tuple[str, Callable[[Any], str], Callable[[str], Any]]]] = {
    bytes: ("$bytes", lambda value: base64.b64encode(value).decode("ascii"), base64.b64decode),
    bytearray: (
        "$bytearray",
        lambda value: base64.b64encode(value).decode("ascii"),
        lambda text: bytearray(_raw(text)),
    ),
    datetime.datetime: ("$datetime", lambda value: value.isoformat(), datetime.datetime.fromisoformat),
    datetime.date: ("$date", lambda value: value.isoformat(), datetime.date.fromisoformat),
    datetime.time: ("$time", lambda value: value.isoformat(), datetime.time.fromisoformat),
    decimal.Decimal: ("$decimal", str, decimal.Decimal),
    uuid.UUID: ("$uuid", str, uuid.UUID),
    pathlib.PosixPath: ("$path", str, pathlib.Path),
    pathlib.WindowsPath: ("$path", str, pathlib.Path),
}
_READ: Final = {mark: read for mark, _, read in _TEXTS.values()}
_LISTS: Final[dict[type, str]] = {tuple: "$tuple", set: "$set", frozenset: "$frozenset"}
_BUILD: Final = {mark: kind for kind, mark in _LISTS.items()}


def _raw(text: str) -> bytes:
    return base64.b64decode(text)


def encode(value: Any, path: str = "value") -> Any:
    """Return the value as JSON data. Raises NotPlainError where it could not be built again."""
    kind = type(value)
    if isinstance(value, enum.Enum):
        return {"$enum": name_of(kind, path), "name": value.name}
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"$float": repr(float(value))}
    if kind in _TEXTS:
        mark, write, _ = _TEXTS[kind]
        return {mark: write(value)}
    if isinstance(value, datetime.timedelta):
        return {"$timedelta": [value.days, value.seconds, value.microseconds]}
    if isinstance(value, list):
        return [encode(item, f"{path}[{number}]") for number, item in enumerate(value)]
    if kind in _LISTS:
        items = [encode(item, f"{path}[{number}]") for number, item in enumerate(value)]
        return {_LISTS[kind]: items if kind is tuple else sorted(items, key=repr)}
    if isinstance(value, dict):
        return _mapping(value, path)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        parts = {part.name: getattr(value, part.name) for part in dataclasses.fields(value)}
        return {"$dataclass": name_of(kind, path), "fields": _mapping(parts, path)}
    if _is_model(kind):
        return _model(value, path)
    raise NotPlainError(path, kind.__qualname__)


def _mapping(value: Mapping[Any, Any], path: str) -> Any:
    if all(isinstance(key, str) for key in value) and not any(str(key).startswith("$") for key in value):
        return {key: encode(item, f"{path}.{key}") for key, item in value.items()}
    pairs = [[encode(key, f"a key of {path}"), encode(item, f"{path}[{key!r}]")] for key, item in value.items()]
    return {"$dict": pairs}


def _model(value: Any, path: str) -> dict[str, Any]:
    if value.__pydantic_private__:
        raise NotPlainError(path, f"{type(value).__qualname__}, a model with private attributes")
    told = {"$model": name_of(type(value), path), "fields": _mapping(value.__dict__, path)}
    if value.__pydantic_extra__:
        told["extra"] = _mapping(value.__pydantic_extra__, path)
    return {**told, "set": sorted(value.__pydantic_fields_set__)}


def decode(data: Any) -> Any:
    """Return the value of JSON data that ``encode`` gave. Raises ReplayedError if its type is not here any more."""
    if isinstance(data, list):
        return [decode(item) for item in data]
    if not isinstance(data, dict):
        return data
    mark = next(iter(data), "")
    if not mark.startswith("$"):
        return {key: decode(item) for key, item in data.items()}
    given = data[mark]
    if mark in _READ:
        return _READ[mark](given)
    if mark in _BUILD:
        return _BUILD[mark](decode(item) for item in given)
    if mark == "$float":
        return float(given)
    if mark == "$timedelta":
        return datetime.timedelta(*given)
    if mark == "$dict":
        return {decode(key): decode(item) for key, item in given}
    return _built(mark, given, data)


def _built(mark: str, name: str, data: Mapping[str, Any]) -> Any:
    kind = find(name)
    if mark == "$enum" and kind is not None and issubclass(kind, enum.Enum):
        return kind[data["name"]]
    if kind is None or not (dataclasses.is_dataclass(kind) if mark == "$dataclass" else _is_model(kind)):
        raise ReplayedError("CassetteError", f"the recorded result is a {name}, which cannot be imported here")
    fields = decode(data["fields"])
    made: Any = object.__new__(kind)
    if mark == "$model":
        state = {"__dict__": fields, "__pydantic_fields_set__": set(data["set"])}
        extra = decode(data["extra"]) if "extra" in data else None
        made.__setstate__({**state, "__pydantic_extra__": extra, "__pydantic_private__": None})
        return made
    for field, value in fields.items():
        object.__setattr__(made, field, value)
    return made


def encode_error(error: BaseException) -> dict[str, Any]:
    """Return an exception as JSON data: its type, its text, and as much as can be written of what it carries."""
    kind = type(error)
    told: dict[str, Any] = {"type": f"{kind.__module__}:{kind.__qualname__}", "message": str(error)}
    try:
        told["args"] = [encode(item) for item in _arguments(error)]
    except NotPlainError:
        return told
    attributes = {}
    for name, value in vars(error).items():
        try:
            attributes[name] = encode(value)
        except NotPlainError:
            continue
    if attributes:
        told["attributes"] = attributes
    return told


def _arguments(error: BaseException) -> tuple[Any, ...]:
    if isinstance(error, OSError) and error.filename is not None:  # which its ``args`` leave out
        return (error.errno, error.strerror, error.filename)
    return error.args


def decode_error(data: Mapping[str, Any]) -> BaseException:
    """Return the exception of the same type and text where it can be built, else a ReplayedError."""
    kind = find(data["type"])
    if kind is not None and issubclass(kind, BaseException) and "args" in data:
        made = _exception(kind, tuple(decode(item) for item in data["args"]), decode(data.get("attributes", {})))
        if made is not None and str(made) == data["message"]:
            return made
    return ReplayedError(data["type"].replace(":", "."), data["message"])


def _exception(kind: type[BaseException], args: tuple[Any, ...], attributes: dict[str, Any]) -> BaseException | None:
    try:
        # As pickle does, but without __init__: what a type of one's own computes there is among its attributes.
        builtin = not isinstance(getattr(kind.__init__, "__code__", None), type(_raw.__code__))
        made = kind(*args) if builtin else kind.__new__(kind, *args)
        if not builtin:
            made.args = args
        for name, value in attributes.items():
            setattr(made, name, value)
    except Exception:  # noqa: BLE001 - a type of others may refuse in any way; a ReplayedError then says what it was
        return None
    return made


def name_of(kind: type, path: str) -> str:
    """Return ``module:name`` of a type that can be imported again. Raises NotPlainError."""
    name = f"{kind.__module__}:{kind.__qualname__}"
    if find(name) is not kind:
        raise NotPlainError(path, f"{name}, which cannot be imported by its name")
    return name


def find(name: str) -> type | None:
    """Return the type of ``module:name``, or None."""
    module, _, steps = name.partition(":")
    try:
        found: Any = importlib.import_module(module)
    except ImportError:
        return None
    for step in steps.split("."):
        found = getattr(found, step, None)
    return found if isinstance(found, type) else None


def _is_model(kind: type) -> bool:
    return hasattr(kind, "model_construct") and hasattr(kind, "model_fields")
