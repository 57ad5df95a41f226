"""A desk whose shop changes with every call: recorded once, then met ten times as it was.

surefoot repeat examples/replay/desk.py, first with SUREFOOT_REPLAY=record and --k 1 (docs/replay.md).
"""

from __future__ import annotations

import random

from surefoot.evaluation import AttemptContext, Checker, Protocol, Suite, Task, replay


@replay.declare(effect="read")
def look_up(order: int) -> dict[str, int]:
    """The shop, whose prices never stay."""
    return {"order": order, "paid": random.randint(1, 1_000_000)}


@replay.declare(effect="write")
def refund(order: int, amount: int) -> str:
    """A tool that must not run ten times."""
    print(f"the shop really refunds {amount}")
    return f"order {order}: {amount} refunded"


def desk(task_input: str, ctx: AttemptContext) -> str:
    """Refund an order, with tools as the attempt has them."""
    tools = ctx.tools({"look_up": look_up, "refund": refund})
    order = int(task_input.rsplit(maxsplit=1)[-1])
    paid = tools["look_up"](order)["paid"]
    done: str = tools["refund"](order, amount=paid)
    return done


suite = Suite(
    name="replayed-desk",
    agent=desk,
    tasks=(Task(id="refund-42", input="Refund order 42", checkers=(Checker(type="regex", expected="refunded$"),)),),
    protocol=Protocol(
        k=10,
        why="as many as show a failure of one run in four in 94 % of cases",
        reset="each attempt replays the recorded tools from their first call on",
        effects="replayed",
        isolation="thread",
        around=(replay.Around("cassettes/{task_id}.jsonl"),),
    ),
)
