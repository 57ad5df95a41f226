"""Whatever an agent may answer, as JSON has it.

Rule: nothing that an answer is or does keeps it from being recorded; what JSON does not know is kept as text.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any


def as_json(value: Any) -> Any:
    """Return whatever an agent may answer as JSON has it; what JSON does not know is kept as text."""
    try:
        return json.loads(json.dumps(value, default=_text, allow_nan=False))
    except Exception:  # noqa: BLE001 - keys that are no text, cycles, no number, and what an object's own methods raise
        return _each_as_json(value)


def _each_as_json(value: Any) -> Any:
    try:
        return _converted(value, ())
    except Exception:  # noqa: BLE001 - as above, and too deep
        return _text(value)


def _converted(value: Any, inside: tuple[int, ...]) -> Any:
    if id(value) in inside:
        return "<a part of itself>"
    inside = (*inside, id(value))
    if isinstance(value, Mapping):
        return {_text(key): _converted(item, inside) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_converted(item, inside) for item in value]
    if value is None or isinstance(value, bool | str):
        return value
    try:
        json.loads(json.dumps(value, allow_nan=False))
    except (TypeError, ValueError):
        return _text(value)
    return value


def _text(value: Any) -> str:
    try:
        return str(value)
    except Exception:  # noqa: BLE001 - an object's own method; that there was one is what can be kept
        return f"<{type(value).__qualname__}>"
