"""When two calls are the same call: canonical JSON of the name and the arguments, and its SHA-256.

What counts as equal, decided once, because a key that differs for a reason nobody sees makes replay useless:

- The order of an object's keys does not matter; the order of a list does; a set is a sorted list.
- 1 and 1.0 are equal (JSON has one kind of number), and so are 0 and -0.0; true and 1 are not. Other floats are written
  as the shortest text that gives the same double.
- Text is compared in Unicode's normal form C: a composed letter equals the same letter with a combining mark.
- A value is compared as the plain JSON that it stands for: a tuple as a list, a dataclass or pydantic model as an
  object, a date as ISO 8601, an enum as its value. So what a model wrote as JSON equals what a typed tool was given.
- Nothing else is folded: not case, not white space, not "1" and 1, not null and absent.
"""

from __future__ import annotations

import base64
import dataclasses
import datetime
import decimal
import enum
import hashlib
import json
import math
import os
import unicodedata
import uuid
from collections.abc import Mapping, Set
from typing import Any, Final

_EXACT: Final = 2**53  # integers up to here are doubles, too
_AS_TEXT: Final = (decimal.Decimal, uuid.UUID, os.PathLike)
_AS_ISO: Final = (datetime.date, datetime.time)


class NotPlainError(TypeError):
    """A value that has no JSON; ``path`` says where it is."""

    def __init__(self, path: str, what: str) -> None:
        super().__init__(f"{path} is of the type {what}")
        self.path = path


def call_key(name: str, arguments: Any) -> str:
    """Return the key of a call: 64 hex digits. Raises NotPlainError."""
    return hashlib.sha256(canonical_json({"name": name, "arguments": arguments}).encode("ascii")).hexdigest()


def canonical_json(value: Any) -> str:
    """Return the one text of a value, ASCII only. Raises NotPlainError."""
    return json.dumps(_canonical(plain(value)), sort_keys=True, separators=(",", ":"), allow_nan=False)


def plain(value: Any, path: str = "value") -> Any:  # noqa: C901 - one line per kind of value
    """Return what a value stands for, as data of JSON. Raises NotPlainError."""
    if isinstance(value, enum.Enum):
        return plain(value.value, path)
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str | int):
        return str(value) if isinstance(value, str) else int(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else {"$float": repr(float(value))}
    if isinstance(value, Mapping):
        named = {_key(key, path): plain(item, f"{path}.{key}") for key, item in value.items()}
        if len(named) == len(value):
            return named
        # 1 and "1" would be one key, and two calls one call.
        return {
            "$dict": [[plain(key, f"a key of {path}"), plain(item, f"{path}.{key}")] for key, item in value.items()]
        }
    if isinstance(value, list | tuple):
        return [plain(item, f"{path}[{number}]") for number, item in enumerate(value)]
    if isinstance(value, Set):
        return sorted((plain(item, f"{path}{{}}") for item in value), key=canonical_json)
    if isinstance(value, bytes | bytearray | memoryview):
        return {"$bytes": base64.b64encode(bytes(value)).decode("ascii")}
    if isinstance(value, datetime.timedelta):
        return value.total_seconds()
    if isinstance(value, _AS_ISO):
        return value.isoformat()
    if isinstance(value, _AS_TEXT):
        return os.fspath(value) if isinstance(value, os.PathLike) else str(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {
            part.name: plain(getattr(value, part.name), f"{path}.{part.name}") for part in dataclasses.fields(value)
        }
    dump = getattr(value, "model_dump", None)  # pydantic's models
    if callable(dump) and not isinstance(value, type):
        return plain(dump(mode="json"), path)
    raise NotPlainError(path, type(value).__qualname__)


def _key(key: Any, path: str) -> str:
    found = plain(key, f"a key of {path}")
    return found if isinstance(found, str) else json.dumps(found, sort_keys=True)


def _canonical(value: Any) -> Any:
    if isinstance(value, str):
        return unicodedata.normalize("NFC", value)
    if isinstance(value, float):
        return int(value) if value.is_integer() and abs(value) < _EXACT else value
    if isinstance(value, list):
        return [_canonical(item) for item in value]
    if isinstance(value, dict):
        named = {unicodedata.normalize("NFC", key): _canonical(item) for key, item in value.items()}
        # Two keys that differ in their normal form only: both are kept, as they came.
        return named if len(named) == len(value) else {key: _canonical(item) for key, item in value.items()}
    return value
