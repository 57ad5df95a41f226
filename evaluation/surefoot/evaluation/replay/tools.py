"""Tools whose calls are recorded and replayed: sync and async functions, one by one or by names.

Arguments are bound to the tool's signature, defaults included, so f(1), f(x=1) and f(1, unit="kg") with that default
are one call. Rule: the tool's own code runs while recording only; in replay not even its signature's checks matter.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from surefoot.evaluation.replay.canonical import NotPlainError
from surefoot.evaluation.replay.cassette import Entry
from surefoot.evaluation.replay.errors import CassetteError
from surefoot.evaluation.replay.values import decode, decode_error, encode
from surefoot.evaluation.replay.world import Call, Effect, World

_MARK: Final = "__surefoot_replay__"
F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Declared:
    """What a tool says of itself."""

    effect: Effect = "unknown"
    ignore: tuple[str, ...] = ()


def declare(*, effect: Effect = "unknown", ignore: tuple[str, ...] = ()) -> Callable[[F], F]:
    """Say of a tool what it does to the world, and which parameters are no part of the call (a context, a client)."""

    def mark(function: F) -> F:
        setattr(function, _MARK, Declared(effect, ignore))
        return function

    return mark


def wrap(
    world: World,
    name: str,
    function: Callable[..., Any],
    *,
    effect: Effect | None = None,
    ignore: tuple[str, ...] = (),
) -> Callable[..., Any]:
    """Return a function of the same signature that records or replays; in mode off the function itself."""
    if world.mode == "off":
        return function
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise CassetteError(f"Wrapping {name}: it is a generator, which a cassette cannot hold. Return a list.")
    said: Declared = getattr(function, _MARK, Declared())
    tool = _Tool(world, name, function, effect or said.effect, (*said.ignore, *ignore))
    if inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, "__call__", None)):  # noqa: B004 - is what it does async, not: can it be called

        @functools.wraps(function)
        async def waiting(*args: Any, **kwargs: Any) -> Any:
            return await tool.call_async(args, kwargs)

        return waiting

    @functools.wraps(function)
    def calling(*args: Any, **kwargs: Any) -> Any:
        return tool.call(args, kwargs)

    return calling


@dataclass(frozen=True, slots=True)
class _Tool:
    world: World
    name: str
    function: Callable[..., Any]
    effect: Effect
    ignore: tuple[str, ...]

    def call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        call = self._begin(args, kwargs)
        if call.entry is not None:
            if call.entry.outcome.get("cancelled"):
                raise asyncio.CancelledError
            return self._replayed(call.entry)
        try:
            result = self.function(*args, **kwargs)
        except BaseException as error:
            self.world.failed(call, error)
            raise
        return self._ended(call, result)

    async def call_async(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        call = self._begin(args, kwargs)
        if call.entry is not None:
            if call.entry.outcome.get("cancelled"):
                await asyncio.Event().wait()  # until whoever cancelled it does so again
            await asyncio.sleep(0)  # as a call that waits does, it lets others go on
            return self._replayed(call.entry)
        try:
            result = await self.function(*args, **kwargs)
        except BaseException as error:
            self.world.failed(call, error)
            raise
        return self._ended(call, result)

    def _begin(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call:
        whole, told = self._bound(args, kwargs)
        from_trace = self.world.cassette is not None and self.world.cassette.from_trace
        return self.world.begin(self.name, whole, kind="tool", effect=self.effect, others=told if from_trace else ())

    def _bound(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[dict[str, Any], tuple[Any, ...]]:
        """Return the arguments with defaults; and as given, and without those that are equal to their default."""
        try:
            bound = inspect.signature(self.function).bind(*args, **kwargs)
        except ValueError:  # a built-in that does not tell its signature
            return {"*args": list(args), **kwargs}, ()
        given = self._flat(bound)
        bound.apply_defaults()
        whole = self._flat(bound)
        parameters = bound.signature.parameters
        short = {
            name: value
            for name, value in whole.items()
            if name not in parameters
            or parameters[name].default is inspect.Parameter.empty
            or not _same(parameters[name].default, value)
        }
        return whole, (given, short)

    def _flat(self, bound: inspect.BoundArguments) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name, value in bound.arguments.items():
            kind = bound.signature.parameters[name].kind
            if name in self.ignore:
                continue
            if kind is inspect.Parameter.VAR_KEYWORD:
                found.update({key: item for key, item in value.items() if key not in self.ignore})
            elif kind is inspect.Parameter.VAR_POSITIONAL:
                found.update({f"*{name}": list(value)} if value else {})
            else:
                found[name] = value
        return found

    def _replayed(self, entry: Entry) -> Any:
        outcome = entry.outcome
        if "error" in outcome:
            raise decode_error(outcome["error"])
        try:
            return decode(outcome["result"])
        except Exception as error:
            raise self.world.problem(
                f"{self.name}: its recorded result cannot be given back here ({type(error).__name__}: {error}). Make "
                "its type importable, or record the cassette again."
            ) from error

    def _ended(self, call: Call, result: Any) -> Any:
        try:
            encoded = encode(result, "the result")
        except NotPlainError as error:
            self.world.failed(call, error)
            raise self.world.problem(
                f"{self.name}: {error}, which a cassette cannot give back. Return plain data, a dataclass or a "
                "pydantic model that can be imported by its name."
            ) from error
        self.world.ended(call, {"result": encoded})
        return result


def _same(default: Any, value: Any) -> bool:
    return default is value or (type(default) is type(value) and bool(default == value))
