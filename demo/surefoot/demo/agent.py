"""The desk's agent: asks the model what to do, calls the tool, answers; retries what may be retried.

This is an ordinary agent written against the SDK. It keeps its rules: a refund is never tried again after a timeout,
because nobody knows whether the money left.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

from surefoot.demo.desk import DependencyTimeout, Ticket, ToolFacts, World, toolbox
from surefoot.demo.model import NAME, PROVIDER, Mistakes, ToolRequest, plan
from surefoot.instrumentation import model_call, tool

VERSIONS = {"prompt": "2026-11-02", "policy": "7", "tools": "3.1"}
ATTEMPTS = 3

# Lets a number of seconds pass: a virtual clock moves on, a live desk sleeps.
Pass = Callable[[float], None]


@dataclass(slots=True)
class Desk:
    """What a run needs beside its ticket."""

    dice: random.Random
    wait: Pass
    mistakes: Mistakes = field(default_factory=Mistakes)
    slowness: float = 1.0


def handle(ticket: Ticket, world: World, desk: Desk) -> tuple[str, list[str]]:
    """Work on one ticket as one agent run. Returns the answer and the tools that were called, in order.

    Raises DependencyTimeout if a tool failed too often.
    """
    used: list[str] = []
    tools = toolbox(world)
    for request in plan(ticket, desk.dice, desk.mistakes):
        _think(ticket, request, desk)
        used.append(request.tool)
        _call(tools[request.tool], request, desk)
    _think(ticket, None, desk)
    return f"Ticket {ticket.task_id} is done.", used


def _think(ticket: Ticket, request: ToolRequest | None, desk: Desk) -> None:
    with model_call(NAME, provider=PROVIDER) as call:
        desk.wait(desk.dice.uniform(0.4, 2.0) * desk.slowness)
        words = len(ticket.text.split()) + (12 if request else 30)
        call.set_usage(input_tokens=240 + 3 * words, output_tokens=2 * words)
        call.set_response(model=NAME, finish_reasons=["tool_call" if request else "stop"])


def _call(facts: ToolFacts, request: ToolRequest, desk: Desk) -> str:
    attempts = 1 if facts.effect == "irreversible" else ATTEMPTS
    for attempt in range(1, attempts + 1):
        try:
            with tool(request.tool, effect=facts.effect, dependency=facts.dependency):
                desk.wait(desk.dice.uniform(0.05, 0.6))
                return facts.call(**request.arguments)
        except DependencyTimeout:
            if attempt == attempts:
                raise
            desk.wait(0.5 * attempt)
    raise AssertionError("unreachable: the last attempt returns or raises")
