"""Tools that return odd things, or are called in odd ways, are disturbed as all others are."""

from __future__ import annotations

import dataclasses
import functools
from collections import namedtuple
from typing import Any

import pytest
from pydantic import BaseModel

from surefoot.evaluation import AttemptContext, Protocol, Suite, Task, Variant
from surefoot.evaluation.perturb import Environment, Faults, Unit
from surefoot.evaluation.perturb.faults import spoiled
from surefoot.evaluation.perturb.ratios import of_suite
from surefoot.evaluation.records import Attempt

Pair = namedtuple("Pair", "a b")


@dataclasses.dataclass
class Order:
    number: int = 1
    lines: int = 2


class Model(BaseModel):
    number: int = 1
    lines: int = 2


class Insists(dict[str, int]):
    def __init__(self, must: Any) -> None:
        super().__init__(must)


@pytest.mark.parametrize(
    ("result", "partial", "empty"),
    [
        (Pair(1, 2), (1,), ()),
        (Order(), {"number": 1}, None),
        (Model(), {"number": 1}, None),
        (Insists({"a": 1, "b": 2}), {"a": 1}, {}),
        ({(1, 2): 3, "b": 4}, {(1, 2): 3}, {}),
        (b"abcd", b"ab", b""),
        ({1, 2}, None, set()),
    ],
)
def test_every_result_can_be_spoiled(result: Any, partial: Any, empty: Any) -> None:
    assert spoiled("partial", result) == partial
    assert spoiled("empty", result) == empty
    assert spoiled("malformed", result).endswith("\ufffd")


def context() -> AttemptContext:
    return AttemptContext(suite="s", variant="v", task_id="t", repetition=0, seed=3, session_id="")


def ship(item: str, weight_kg: float, *notes: str, express: bool = False) -> dict[str, Any]:
    return {"item": item, "weight_kg": weight_kg, "notes": notes, "express": express}


def test_a_value_in_its_place_is_in_the_other_unit_too() -> None:
    got: list[float] = []

    @functools.wraps(ship)
    def noting(*args: Any, **kwargs: Any) -> dict[str, Any]:
        found = ship(*args, **kwargs)
        got.append(found["weight_kg"])
        return found

    ctx = context()
    with Environment(units={"weight_kg": Unit(name="weight_lb", factor=2.0)})(ctx):
        tool = ctx.tool("ship", noting)
        tool("pen", 10)
        tool(item="pen", weight_lb=10)
        tool("pen", 10, "fragile", "heavy", express=True)
    assert got == [5, 5, 5]


def test_tools_without_annotations_take_other_names() -> None:
    ctx = context()
    with Environment(names="camel")(ctx):
        assert ctx.tool("p", functools.partial(ship, "pen"))(weightKg=1)["weightKg"] == 1
        assert ctx.tool("max", max)(1, 2) == 2


def test_the_baseline_is_the_suites_first_not_the_first_that_ended() -> None:
    unwritten = Variant(name="unwritten", agent="os:no_such_agent")  # not made, so not looked at
    variants = (
        *(Variant(name="baseline"), Variant(name="candidate"), unwritten),
        Variant(name="faults", perturb=(Faults(),)),
    )
    suite = Suite(
        name="s",
        agent=str,
        tasks=(Task(id="t", input="x"),),
        protocol=Protocol(k=1, effects="none"),
        variants=variants,
    )

    def attempt(variant: str, good: bool) -> Attempt:
        return Attempt(
            attempt_id=variant, suite="s", variant=variant, task_id="t", repetition=0, outcome="ok", acceptable=good
        )

    ended = [attempt("candidate", False), attempt("baseline", True), attempt("faults", True)]
    (line,) = of_suite(suite, ended)
    assert "baseline 1.0000 (n = 1), perturbed 1.0000 (n = 1)" in str(line)
