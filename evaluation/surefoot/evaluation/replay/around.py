"""Cassettes in a suite: a hook that stands around each attempt.

    around=(replay.Around(Path(__file__).parent / "cassettes/{task_id}.jsonl"),)

Attempts are replayed unless ``SUREFOOT_REPLAY=record`` says otherwise. The tools that the agent takes by ``ctx.tool``
are the cassette's, and so are HTTP calls through the transports of this package.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from surefoot.evaluation.agent import AttemptContext
from surefoot.evaluation.replay.cassette import read_cassette
from surefoot.evaluation.replay.errors import CassetteError
from surefoot.evaluation.replay.redaction import Redaction
from surefoot.evaluation.replay.world import Mode, opened

VARIABLE: Final = "SUREFOOT_REPLAY"


@dataclass(frozen=True, slots=True)
class Around:
    """``path`` may hold {task_id}, {variant} and {repetition}; its fields are part of the suite's hash."""

    path: Path | str
    redact: tuple[str, ...] = ()  # names of fields, beside the built-in ones
    allow_irreversible: bool = False  # while recording

    @contextlib.contextmanager
    def __call__(self, context: AttemptContext) -> Iterator[None]:
        """Open the attempt's world."""
        mode = _mode()
        if mode == "record" and context.repetition and "{repetition}" not in str(self.path):
            raise CassetteError(
                f"Recording {self.path}: a cassette holds one attempt, and this is repetition {context.repetition}. "
                "Record with --k 1, or write {repetition} into the path."
            )
        path = self._path_of(context)
        about = {"task": context.task_id, "variant": context.variant}
        if mode == "record":
            _refuse_to_replace(path, about)
        redaction = Redaction(self.redact)
        with opened(path, mode, redaction=redaction, allow_irreversible=self.allow_irreversible, about=about) as world:
            context.wraps.append(world.tool)
            try:
                yield
            finally:
                context.notes["cassette"] = world.report().to_json()

    def _path_of(self, context: AttemptContext) -> Path:
        values: dict[str, Any] = {name: getattr(context, name) for name in ("task_id", "variant", "repetition")}
        found = str(self.path)
        for name, value in values.items():
            found = found.replace(f"{{{name}}}", re.sub(r"[^\w.-]", "_", str(value)))
        return Path(found)


def _refuse_to_replace(path: Path, about: dict[str, str]) -> None:
    """Raise CassetteError if ``path`` holds another task's or variant's attempt: two names may give one file."""
    header = read_cassette(path, torn=True).header if path.exists() else {}
    for what, name in about.items():
        if header.get(what, name) != name:
            raise CassetteError(
                f"Recording {path}: it holds the attempt of the {what} {header[what]!r}, and this is {name!r}. Write "
                f"{{{what}}} into the path, or record one {what} only (--{what}); to replace it, remove it first."
            )


def _mode() -> Mode:
    said = os.environ.get(VARIABLE) or "replay"
    if said == "record":
        return "record"
    if said == "replay":
        return "replay"
    # Not off: a suite whose effects are said to be replayed must not reach the world k times for a variable's sake.
    raise CassetteError(f"{VARIABLE}={said}: a suite's cassettes are recorded or replayed; write record, or nothing.")
