"""A suite whose agent looks a seat up: one variant undisturbed, the others each with one kind of trouble."""

from __future__ import annotations

from typing import Any

from surefoot.evaluation import AttemptContext, Checker, Protocol, Suite, Task, Variant
from surefoot.evaluation.perturb import ConcurrentUpdate, Environment, Faults, Interrupted, Prompts


def find(ctx: AttemptContext) -> Any:
    def seats(flight_number: str) -> dict[str, Any]:
        return {"flight_number": flight_number, "seats": ctx.state["seats"]}

    return ctx.tool("seats", seats)


def agent(task_input: str, ctx: AttemptContext) -> int:
    """Looks twice, does not know what to do about errors of the server, and knows a field by one name only."""
    look, flight = find(ctx), task_input.rsplit(maxsplit=1)[-1]
    found = 0
    for _ in range(2):
        try:
            found = look(flight)["seats"]
        except TimeoutError:
            found = look(flight)["seats"]
    return found


def sell(state: dict[str, int]) -> None:
    state["seats"] = 0


words = Prompts(given={f"t{n}": [f"seats on AB{n}", f"AB{n}, how many seats"] for n in range(5)})

suite = Suite(
    name="disturbed",
    agent=agent,
    protocol=Protocol(k=4, effects="fixture", concurrency=2, infrastructure_errors=("ConnectionError",)),
    tasks=tuple(
        Task(
            id=f"t{n}",
            input=f"how many seats has AB{n}",
            fixture={"seats": 4},
            checkers=(Checker(type="exact", expected=4),),
        )
        for n in range(5)
    ),
    variants=(
        Variant(name="baseline"),
        Variant(name="faults", perturb=(Faults(p=0.2),)),
        Variant(name="renamed", perturb=(Environment(rename={"seats": "free"}),)),
        Variant(name="words", perturb=(words,)),
        Variant(name="sold", perturb=(ConcurrentUpdate(change=sell),)),
        Variant(name="cut off", agent=Interrupted(agent=agent)),
    ),
)
