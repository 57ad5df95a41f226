"""Somebody else changes the state between two calls, and a workflow that is cut off."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from surefoot.evaluation.agent import AttemptContext
from surefoot.evaluation.perturb import ConcurrentUpdate, Interrupted, PerturbError


def context(state: Any) -> AttemptContext:
    return AttemptContext(suite="s", variant="v", task_id="t", repetition=0, seed=1, session_id="", state=state)


def sell(state: dict[str, int]) -> None:
    state["seats"] = 0


def test_the_state_changes_between_two_calls() -> None:
    ctx = context({"seats": 4})
    with ConcurrentUpdate(change=sell, before_call=2)(ctx):
        look = ctx.tool("look", lambda: ctx.state["seats"])
        assert [look(), look(), look()] == [4, 0, 0]
    assert ctx.notes["concurrent_update"] == {"before_call": 2, "done": True}


def test_an_agent_that_calls_too_seldom_never_meets_it() -> None:
    ctx = context({"seats": 4})
    with ConcurrentUpdate(change=sell, before_call=2)(ctx):
        ctx.tool("look", lambda: ctx.state["seats"])()
    assert ctx.notes["concurrent_update"]["done"] is False


def _steps(ctx: AttemptContext) -> Any:
    def charge(order: int) -> int:
        ctx.state.append(order)
        return order

    return ctx.tool("charge", charge)


async def forgetful(_: Any, ctx: AttemptContext) -> str:
    """Charges twice when it is cut off: it never looks."""
    for order in (1, 2):
        _steps(ctx)(order)
    return "done"


def careful(_: Any, ctx: AttemptContext) -> str:
    for order in (1, 2):
        if order not in ctx.state:
            _steps(ctx)(order)
    return "done"


async def grouped(_: Any, ctx: AttemptContext) -> str:
    """Its framework puts errors into groups, and tries to carry on after any Exception."""

    async def one(order: int) -> None:
        try:
            _steps(ctx)(order)
        except Exception:
            ctx.state.append("swallowed")

    async with asyncio.TaskGroup() as group:
        for order in (1, 2):
            group.create_task(one(order))
    return "done"


@pytest.mark.parametrize(("agent", "left"), [(forgetful, [1, 1, 2]), (careful, [1, 2]), (grouped, [1, 1, 2])])
def test_cut_off_and_resumed_on_what_it_left(agent: Any, left: list[int]) -> None:
    ctx = context([])
    assert asyncio.run(Interrupted(agent=agent, after_call=1)(None, ctx)) == "done"
    assert ctx.state == left
    assert ctx.notes["interrupt"] == {"after_call": 1, "done": True}


def test_it_goes_on_as_it_is_told() -> None:
    ctx = context([])
    resumed = Interrupted(agent=forgetful, after_call=2, resume=careful)
    assert asyncio.run(resumed(None, ctx)) == "done"
    assert ctx.state == [1, 2]


def test_an_agent_that_ends_before() -> None:
    ctx = context([])
    assert asyncio.run(Interrupted(agent=careful, after_call=9)(None, ctx)) == "done"
    assert ctx.notes["interrupt"]["done"] is False


def test_its_own_errors_are_its_own() -> None:
    async def breaks(_: Any, ctx: AttemptContext) -> None:
        raise LookupError(ctx.task_id)

    with pytest.raises(LookupError):
        asyncio.run(Interrupted(agent=breaks)(None, context([])))


def test_places_count_from_one() -> None:
    with pytest.raises(PerturbError):
        ConcurrentUpdate(change=sell, before_call=0)
    with pytest.raises(PerturbError):
        Interrupted(agent=careful, after_call=0)
