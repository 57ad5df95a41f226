"""Parts of large JSON files, one at a time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ijson

from surefoot.evaluation.importers.reading import ResultsError


def items(path: Path, prefix: str) -> Iterator[Any]:
    """Yield the values at ``prefix`` ("item" are an array's). Raises ResultsError where the file is no JSON."""
    try:
        with path.open("rb") as file:
            yield from ijson.items(file, prefix, use_float=True)
    except (ijson.JSONError, UnicodeDecodeError) as error:
        raise ResultsError(f"Reading {path.name}: it is no whole JSON document ({error}). Get it again.") from error


def first(path: Path, prefix: str) -> Any:
    """Return the first value at ``prefix``, None if there is none."""
    return next(items(path, prefix), None)


def keys(path: Path) -> Iterator[tuple[str, Any]]:
    """Yield an object's keys and values, one at a time."""
    try:
        with path.open("rb") as file:
            yield from ijson.kvitems(file, "", use_float=True)
    except (ijson.JSONError, UnicodeDecodeError) as error:
        raise ResultsError(f"Reading {path.name}: it is no whole JSON document ({error}). Get it again.") from error
