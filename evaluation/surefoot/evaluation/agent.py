"""What an agent under test is, and what it may know of its attempt.

An agent is ``async def agent(task_input, ctx)``, or a plain function; ``ctx`` may be left out. In a conversation it is
called once per turn with the messages so far. What it returns is its answer, kept in full.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True)
class AttemptContext:
    """One attempt, as the agent, its fixture and its checkers see it."""

    suite: str
    variant: str
    task_id: str
    repetition: int
    seed: int
    session_id: str
    input: Any = None  # what the agent is given; what stands around an attempt may change it
    sampling: Mapping[str, Any] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    state: Any = None  # what the fixture gave; what is in it at the end is the final state
    notes: dict[str, Any] = field(default_factory=dict)  # for the record: faults delivered, cassette hits
    wraps: list[Callable[[str, Callable[..., Any]], Callable[..., Any]]] = field(default_factory=list)
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost_usd: float | None = None
    stated_confidence: float | None = None

    def tool(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return the tool as this attempt has it: replayed, disturbed, or as it is."""
        for wrap in self.wraps:
            function = wrap(name, function)
        return function

    def tools(self, functions: Mapping[str, Callable[..., Any]]) -> dict[str, Callable[..., Any]]:
        """Return several tools as this attempt has them."""
        return {name: self.tool(name, function) for name, function in functions.items()}

    def add_usage(self, *, input_tokens: int = 0, output_tokens: int = 0, cost_usd: float = 0.0) -> None:
        """Add what was used, where model calls are not recorded as spans."""
        self.input_tokens = (self.input_tokens or 0) + input_tokens
        self.output_tokens = (self.output_tokens or 0) + output_tokens
        self.cost_usd = (self.cost_usd or 0.0) + cost_usd

    def confidence(self, percent: float) -> None:
        """Say how sure the agent is, from 0 to 100. Raises ValueError outside of that."""
        if not 0 <= percent <= 100:
            raise ValueError(f"An attempt's confidence is between 0 and 100, not {percent}.")
        self.stated_confidence = float(percent)


def takes_context(function: Callable[..., Any], wanted: int) -> bool:
    """Whether a function takes ``wanted`` positional arguments and the context after them."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return False  # a built-in that does not tell
    positional = [p for p in parameters if p.kind in {p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD}]
    return len(positional) > wanted or any(p.kind is p.VAR_POSITIONAL for p in parameters)


def call_with(function: Callable[..., Any], *given: Any, context: AttemptContext) -> Any:
    """Call a function of the suite; it gets the context if it takes one."""
    return function(*given, context) if takes_context(function, len(given)) else function(*given)
