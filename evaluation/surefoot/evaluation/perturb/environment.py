"""The same world in another form: dates, key order, units, extra fields, other names.

Rule: the tool behind sees originals. Whatever form the agent is shown, it may answer in; parameters are mapped back
before the call, so a failure is the agent's, not the variation's. Results that are not plain data (or JSON text) pass
unchanged and are counted: a variation that never happened proves nothing.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import json
import random
import re
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final, Literal

from surefoot.evaluation.agent import AttemptContext
from surefoot.evaluation.perturb.calls import Call, Counts, PerturbError, around

_DATES: Final = {"us": "%m/%d/%Y", "european": "%d.%m.%Y", "long": "%d %B %Y"}
_ISO: Final = re.compile(r"[1-9]\d{3}-\d\d-\d\d")  # strftime does not pad earlier years
_DIGITS: Final = 12  # significant: a value times a factor and back is the same number again


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """A field in another unit: its name there, and how many of the new unit one old unit is."""

    name: str
    factor: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """What differs. Nothing named: nothing differs."""

    dates: Literal["us", "european", "long"] | None = None  # of values that are ISO dates
    key_order: Literal["reversed", "sorted", "shuffled"] | None = None
    units: Mapping[str, Unit] = field(default_factory=dict)
    extra_fields: Mapping[str, Any] = field(default_factory=dict)  # in every object
    rename: Mapping[str, str] = field(default_factory=dict)  # fields and parameters: old name, new name
    names: Literal["camel"] | None = None  # all_fields in snake_case as allFields
    tools: tuple[str, ...] = ()  # none named: all

    def __post_init__(self) -> None:
        given = [*self.rename.values(), *(unit.name for unit in self.units.values())]
        if len(set(given)) != len(given):
            raise PerturbError("Environment: two fields get the same new name, so none could be mapped back.")
        if any(unit.factor == 0 for unit in self.units.values()):
            raise PerturbError("Environment: a unit's factor is 0; give how many of the new unit one old unit is.")
        if self.dates is not None and self.dates not in _DATES:
            raise PerturbError(f"Environment: no date format {self.dates!r}; use {', '.join(_DATES)}.")

    @contextlib.contextmanager
    def __call__(self, context: AttemptContext) -> Iterator[Variation]:
        """Stand around an attempt's tools, and note how many results looked different."""
        variation = Variation(self, context.seed)
        context.wraps.append(variation.wrap)
        try:
            yield variation
        finally:
            context.notes["environment"] = {"varied": variation.varied, "unchanged": variation.unchanged}


class Variation:
    """The environment of one attempt."""

    def __init__(self, plan: Environment, seed: int) -> None:
        self.plan = plan
        self.varied = 0
        self.unchanged = 0
        self._counts = Counts()
        self._order = random.Random(f"{seed}/order")  # noqa: S311 - luck, no secret
        self._original = {new: old for old, new in plan.rename.items()}

    def wrap(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return the tool as this attempt meets it, with its parameters under their new names."""
        if self.plan.tools and name not in self.plan.tools:
            return function
        try:
            parameters = inspect.signature(function).parameters
        except ValueError:  # a built-in that does not tell its signature
            return around(name, function, self._counts, functools.partial(self._steps, ()))
        placed = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        shown = [self._shown(each.name) for each in parameters.values() if each.kind in placed]
        wrapped = around(name, function, self._counts, functools.partial(self._steps, shown))
        self._rename_parameters(function, wrapped)
        return wrapped

    def _steps(self, shown: Sequence[str], call: Call) -> Generator[Call, Any, Any]:
        # A value without its name has that of its place: it may be in the other unit.
        names = [*shown, *[None] * len(call.args)]
        args = tuple(self._back(name, one)[1] for name, one in zip(names, call.args, strict=False))
        asked = replace(call, args=args, kwargs=self._back(None, call.kwargs)[1])
        result = yield asked
        changed = self._forth_whole(result)
        if changed is result:
            self.unchanged += 1
        else:
            self.varied += 1
        return changed

    def _forth_whole(self, result: Any) -> Any:
        if isinstance(result, str) and result[:1] in {"{", "["}:
            try:
                inside = json.loads(result)
            except ValueError:
                return result
            return json.dumps(self._forth(None, inside)[1], ensure_ascii=False)
        changed = self._forth(None, result)[1] if isinstance(result, str | dict | list | tuple) else result
        return result if _text(changed) == _text(result) else changed

    def _forth(self, key: str | None, value: Any) -> tuple[str | None, Any]:
        unit = self.plan.units.get(key) if key is not None else None
        if unit is not None and isinstance(value, int | float) and not isinstance(value, bool):
            return unit.name, _rounded(value * unit.factor)
        return self._new_name(key), self._inside(value)

    def _inside(self, value: Any) -> Any:
        if isinstance(value, dict):
            pairs = dict(self._forth(name, one) for name, one in value.items())
            return self._ordered({**pairs, **{k: v for k, v in self.plan.extra_fields.items() if k not in pairs}})
        if isinstance(value, list | tuple):
            return [self._inside(one) for one in value]
        if isinstance(value, str) and self.plan.dates and _ISO.fullmatch(value):
            return _reformat(value, "%Y-%m-%d", _DATES[self.plan.dates])
        return value

    def _back(self, key: str | None, value: Any) -> tuple[str | None, Any]:
        for old, unit in self.plan.units.items():
            if key == unit.name and isinstance(value, int | float) and not isinstance(value, bool):
                return old, _rounded(value / unit.factor)
        name = self._old_name(key)
        if isinstance(value, Mapping):
            kept = {k: v for k, v in value.items() if k not in self.plan.extra_fields}
            return name, dict(self._back(k, v) for k, v in kept.items())
        if isinstance(value, list):
            return name, [self._back(None, one)[1] for one in value]
        if isinstance(value, str) and self.plan.dates:
            return name, _reformat(value, _DATES[self.plan.dates], "%Y-%m-%d")
        return name, value

    def _new_name(self, key: str | None) -> str | None:
        if key is None or key in self.plan.rename:
            return key if key is None else self.plan.rename[key]
        if self.plan.names == "camel" and isinstance(key, str):
            new = re.sub(r"(?<=[a-z0-9])_([a-z])", lambda found: found[1].upper(), key)
            self._original[new] = key  # of keys that stay as they are, too
            return new
        return key

    def _old_name(self, key: str | None) -> str | None:
        if self.plan.names == "camel" and isinstance(key, str) and key not in self._original:
            # Never shown, so the agent follows the style.
            return re.sub(r"(?<=[a-z0-9])([A-Z])", lambda found: f"_{found[1].lower()}", key)
        return key if key is None else self._original.get(key, key)

    def _ordered(self, pairs: dict[Any, Any]) -> dict[Any, Any]:
        names = list(pairs)
        if self.plan.key_order == "reversed":
            names.reverse()
        elif self.plan.key_order == "sorted":
            names.sort(key=str)
        elif self.plan.key_order == "shuffled":
            self._order.shuffle(names)
        return {name: pairs[name] for name in names}

    def _shown(self, parameter: str) -> str:
        unit = self.plan.units.get(parameter)
        return unit.name if unit is not None else self._new_name(parameter) or parameter

    def _rename_parameters(self, function: Callable[..., Any], wrapped: Callable[..., Any]) -> None:
        """Frameworks make a tool's schema from its signature: show the new names there."""
        signature = inspect.signature(function)
        new = {name: self._shown(name) for name in signature.parameters}
        if all(name == other for name, other in new.items()):
            return
        parameters = [one.replace(name=new[one.name]) for one in signature.parameters.values()]
        wrapped.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]  # inspect reads it
        annotated = getattr(function, "__annotations__", {})  # which a partial, or an object, need not have
        wrapped.__annotations__ = {new.get(name, name): one for name, one in annotated.items()}


def _reformat(text: str, now: str, then: str) -> str:
    try:
        return datetime.strptime(text, now).strftime(then)  # noqa: DTZ007 - a date, in no zone
    except ValueError:
        return text  # looks like a date and is none


def _rounded(value: float) -> float:
    whole = float(f"{value:.{_DIGITS}g}")
    return int(whole) if whole.is_integer() else whole


def _text(value: Any) -> str:
    try:
        return json.dumps(value, default=str)
    except (TypeError, ValueError):  # keys that are no text; a circle
        return repr(value)
