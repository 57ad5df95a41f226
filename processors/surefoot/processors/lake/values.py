"""Values of SQL as JSON and back, for the pipe between ``console.query`` and its process.

Rule: what comes back equals what went in, type and all, and reading it can make nothing but values. (Arrow knows no
HUGEINT and makes lists of maps; pickle would run what the bytes say.) JSON has its own words for text, numbers, truth
and null; everything else is an object with one key, the kind.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

_AS_THEY_ARE: Final = (str, bool, int, float, type(None))
_KINDS: Final[dict[str, tuple[type, Callable[[Any], Any], Callable[[Any], Any]]]] = {
    # datetime stands before date, which it is a kind of.
    "datetime": (datetime, datetime.isoformat, datetime.fromisoformat),
    "date": (date, date.isoformat, date.fromisoformat),
    "time": (time, time.isoformat, time.fromisoformat),
    "interval": (timedelta, lambda d: [d.days, d.seconds, d.microseconds], lambda parts: timedelta(*parts)),
    "decimal": (Decimal, str, Decimal),
    "uuid": (UUID, str, UUID),
    "bytes": (bytes, lambda raw: base64.b64encode(raw).decode(), base64.b64decode),
}


def dumps(values: Any) -> bytes:
    """JSON of lists, tuples, dicts and values of SQL. Raises TypeError for anything else."""
    return json.dumps(_packed(values)).encode()


def loads(text: bytes) -> Any:
    """What :func:`dumps` was given."""
    return _unpacked(json.loads(text))


def _packed(value: Any) -> Any:
    if isinstance(value, _AS_THEY_ARE):
        return value
    if isinstance(value, list):
        return [_packed(item) for item in value]
    if isinstance(value, tuple):
        return {"tuple": [_packed(item) for item in value]}
    if isinstance(value, dict):
        return {"map": [[_packed(key), _packed(item)] for key, item in value.items()]}
    for kind, (python, write, _) in _KINDS.items():
        if isinstance(value, python):
            return {kind: write(value)}
    raise TypeError(f"a value of type {type(value).__name__} cannot be shown; cast it to text")


def _unpacked(value: Any) -> Any:
    if isinstance(value, list):
        return [_unpacked(item) for item in value]
    if not isinstance(value, dict):
        return value
    ((kind, content),) = value.items()
    if kind == "tuple":
        return tuple(_unpacked(item) for item in content)
    if kind == "map":
        return {_unpacked(key): _unpacked(item) for key, item in content}
    return _KINDS[kind][2](content)
