"""An agent that is unreliable on purpose: how often it succeeds at each task is known, so figures can be checked.

`surefoot repeat examples/flaky_agent/suite.yaml` repeats it. Its luck is drawn from the seed of each attempt.
"""

from __future__ import annotations

import random

from surefoot.evaluation import AttemptContext
from surefoot.instrumentation import model_call, tool

# How often the agent refunds the right order, by order.
CHANCES = {1001: 1.0, 1002: 0.9, 1003: 0.6, 1004: 0.0}


def shop() -> dict[str, list[int]]:
    """The fixture: a fresh shop for every attempt."""
    return {"refunded": []}


async def refund(order: int, ctx: AttemptContext) -> str:
    """Refund the order, or, now and then, the one after it."""
    luck = random.Random(ctx.seed)
    with model_call("gpt-4o-mini", provider="openai") as call:
        call.set_usage(input_tokens=200 + luck.randrange(20), output_tokens=20)
    right = luck.random() < CHANCES[order]

    def issue_refund(number: int) -> str:
        with tool("issue_refund", effect="irreversible"):
            ctx.state["refunded"].append(number)
            return f"refunded order {number}"

    ctx.tool("issue_refund", issue_refund)(order if right else order + 1)
    return f"I refunded order {order}."
