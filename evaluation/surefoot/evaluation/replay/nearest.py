"""The recorded call that is most like one that was not recorded, and what differs: for the message of a miss."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator, Sequence
from typing import Any, Final

from surefoot.evaluation.replay.canonical import canonical_json
from surefoot.evaluation.replay.cassette import Entry

_LINES: Final = 20
_WIDTH: Final = 160
_CANDIDATES: Final = 500


def nearest(name: str, arguments: Any, entries: Sequence[Entry]) -> str:
    """Return sentences about the recorded call that is most like this one."""
    alike = [entry for entry in entries if entry.name == name][:_CANDIDATES]
    if not alike:
        names = sorted({entry.name for entry in entries})
        close = difflib.get_close_matches(name, names, 3) or names[:10]
        return f"Recorded were calls of: {', '.join(close)}." if close else "The cassette holds no calls."
    wanted = dict(_leaves("arguments", arguments))
    leaves = [dict(_leaves("arguments", entry.arguments)) for entry in alike]
    differs = [sum(one.get(path) != wanted.get(path) for path in one.keys() | wanted.keys()) for one in leaves]
    best = min(range(len(alike)), key=differs.__getitem__)
    first = f"The nearest recorded call has the key {alike[best].key}; it differs in:"
    return "\n".join([first, *_lines(leaves[best], wanted)])


def _lines(recorded: dict[str, str], wanted: dict[str, str]) -> list[str]:
    lines = []
    for path in sorted(recorded.keys() | wanted.keys()):
        if recorded.get(path) != wanted.get(path):
            lines += [f"  - {path} = {_cut(recorded[path])}  (recorded)"] if path in recorded else []
            lines += [f"  + {path} = {_cut(wanted[path])}  (now)"] if path in wanted else []
    return lines[:_LINES] + ([f"  ... and {len(lines) - _LINES} more"] if len(lines) > _LINES else [])


def _leaves(path: str, value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict) and value:
        for key, item in value.items():
            yield from _leaves(f"{path}.{key}", item)
    elif isinstance(value, list) and value:
        for number, item in enumerate(value):
            yield from _leaves(f"{path}[{number}]", item)
    else:
        yield path, canonical_json(value) if not isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _cut(text: str) -> str:
    return text if len(text) <= _WIDTH else f"{text[:_WIDTH]}…"
