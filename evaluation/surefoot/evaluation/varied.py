"""What still varied between attempts that should have met the same world, and what varied in what they did."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from surefoot.evaluation.checkers import canonical
from surefoot.evaluation.records import SPARED, Attempt


@dataclass(frozen=True, slots=True)
class Varied:
    """One thing: in how many of the tasks with two attempts or more it was not the same in all of them."""

    what: str
    of_world: bool
    tasks: int
    of: int
    example: str  # two different values of one task


_DONE: Final[dict[str, Callable[[Attempt], Any]]] = {
    "the answer": lambda attempt: attempt.output,
    "the final state, by the task's rule": lambda attempt: attempt.signature,
    "the tools, in order": lambda attempt: attempt.actions,
    "tokens": lambda attempt: (attempt.input_tokens, attempt.output_tokens),
    "how it ended": lambda attempt: attempt.outcome,
}


def varied(attempts: Sequence[Attempt]) -> list[Varied]:
    """Return what was not the same, in the world first; nothing that was."""
    groups: dict[tuple[str, str], list[Attempt]] = {}
    for attempt in attempts:
        if attempt.outcome not in SPARED:
            groups.setdefault((attempt.variant, attempt.task_id), []).append(attempt)
    repeated = [group for group in groups.values() if len(group) > 1]
    worlds = sorted({name for attempt in attempts for name in attempt.extra.get("world", {})})
    found = [_compared(name, True, repeated, _of_world(name)) for name in worlds]
    found += [_compared(name, False, repeated, look) for name, look in _DONE.items()]
    return [each for each in found if each.tasks]


def _of_world(name: str) -> Callable[[Attempt], Any]:
    return lambda attempt: attempt.extra.get("world", {}).get(name)


def _compared(what: str, of_world: bool, groups: list[list[Attempt]], look: Callable[[Attempt], Any]) -> Varied:
    differing = [sorted({canonical(look(attempt)) for attempt in group}) for group in groups]
    several = [values for values in differing if len(values) > 1]
    example = " and ".join(value[:80] for value in several[0][:2]) if several else ""
    return Varied(what, of_world, len(several), len(groups), example)
