"""Tasks from a template: parameters drawn with a seed, and neighbours that differ from a task in one of them."""

from __future__ import annotations

import random
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from math import prod
from typing import Any, Final

from surefoot.evaluation.errors import SuiteError
from surefoot.evaluation.suite import Task

_HOLE: Final = re.compile(r"\{(\w+)\}")
Parameters = dict[str, Any]


def expand(
    template: Task, choices: Mapping[str, Sequence[Any]], *, count: int, neighbours: int = 0, seed: int = 0
) -> list[Task]:
    """Return ``count`` different tasks, each followed by its neighbours, equal for equal seeds.

    ``{name}`` stands for a parameter in every text of the template; a text that is nothing else becomes its value.
    Raises SuiteError if the choices do not give as many.
    """
    possible = prod(len(values) for values in choices.values())
    if count > possible:
        raise SuiteError(f"{count} tasks are asked for, and its parameters give {possible}; widen vary or lower count")
    draw = random.Random(seed)  # noqa: S311 - drawn to be repeated
    tasks: list[Task] = []
    taken: list[Parameters] = []
    for place in sorted(_places(draw, possible, count)):
        base = _at(choices, place)
        taken.append(base)
        first = replace(fill(template, base), made_from=template.id)
        tasks.append(first)
    for base, first in zip(list(taken), list(tasks), strict=True):
        near = [other for other in _next_to(base, choices) if other not in taken]
        if len(near) < neighbours:
            raise SuiteError(f"{first.id} has {len(near)} neighbours that are no tasks yet; widen vary")
        for other in draw.sample(near, neighbours):
            taken.append(other)
            tasks.append(replace(fill(template, other), made_from=template.id, neighbour_of=first.id))
    return tasks


def _places(draw: random.Random, possible: int, count: int) -> list[int]:
    if possible <= sys.maxsize:
        return draw.sample(range(possible), count)
    found: dict[int, None] = {}  # longer than any range may be
    while len(found) < count:
        found[draw.randrange(possible)] = None
    return list(found)


def fill(value: Any, parameters: Parameters) -> Any:
    """Return a copy of ``value`` in which the parameters stand for their names."""
    if isinstance(value, str):
        whole = _HOLE.fullmatch(value)
        if whole and whole[1] in parameters:
            return parameters[whole[1]]
        return _HOLE.sub(lambda hole: str(parameters.get(hole[1], hole[0])), value)
    if isinstance(value, Mapping):
        return {fill(key, parameters): fill(item, parameters) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(fill(item, parameters) for item in value)
    if is_dataclass(value) and not isinstance(value, type):
        return replace(value, **{part.name: fill(getattr(value, part.name), parameters) for part in fields(value)})
    return value


def _at(choices: Mapping[str, Sequence[Any]], place: int) -> Parameters:
    found: Parameters = {}
    for name, values in choices.items():
        place, which = divmod(place, len(values))
        found[name] = values[which]
    return found


# Of a wide range a neighbour is near enough if it is drawn from this many.
_MOST: Final = 1000


def _next_to(base: Parameters, choices: Mapping[str, Sequence[Any]]) -> list[Parameters]:
    return [
        base | {name: value} for name, values in choices.items() for value in values[: _MOST + 1] if value != base[name]
    ]
