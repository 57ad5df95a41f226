"""The same world in another form, and the way back."""

from __future__ import annotations

import asyncio
import inspect
import json
from datetime import date
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from surefoot.evaluation.agent import AttemptContext
from surefoot.evaluation.perturb import Environment, PerturbError, Unit
from surefoot.evaluation.perturb.environment import Variation

BOOKING = {
    "reservation_id": "R1",
    "travel_date": "2024-05-20",
    "weight_kg": 20,
    "legs": [{"flight_number": "HAT136", "travel_date": "2024-05-21"}],
}
ALL = Environment(
    dates="us",
    key_order="reversed",
    units={"weight_kg": Unit(name="weight_lb", factor=2.2046226218)},
    extra_fields={"etag": "w/1"},
    rename={"reservation_id": "booking_reference"},
    names="camel",
)


def test_what_the_agent_is_shown_and_what_the_tool_gets() -> None:
    got: list[Any] = []

    def update(reservation_id: str, travel_date: str, weight_kg: float, legs: list[dict[str, str]]) -> dict[str, Any]:
        got.append((reservation_id, travel_date, weight_kg, legs))
        return BOOKING

    tool = Variation(ALL, seed=1).wrap("update", update)
    shown = tool(
        booking_reference="R1",
        travelDate="05/20/2024",
        weight_lb=44.092452436,
        legs=[{"flightNumber": "HAT136", "travelDate": "05/21/2024"}],
    )
    assert got == [("R1", "2024-05-20", 20, BOOKING["legs"])]
    assert shown == {
        "etag": "w/1",
        "legs": [{"etag": "w/1", "travelDate": "05/21/2024", "flightNumber": "HAT136"}],
        "weight_lb": 44.092452436,
        "travelDate": "05/20/2024",
        "booking_reference": "R1",
    }
    assert list(shown)[-1] == "booking_reference"
    assert list(inspect.signature(tool).parameters) == ["booking_reference", "travelDate", "weight_lb", "legs"]
    assert tool.__annotations__["weight_lb"] == "float"


@pytest.mark.parametrize("style", ["us", "european", "long"])
@given(
    booking=st.fixed_dictionaries(
        {
            "travel_date": st.dates(min_value=date(1000, 1, 1)).map(str),
            "weight_kg": st.floats(0, 1e6),
            "n": st.integers(),
        }
    )
)
def test_the_way_back_is_exact(style: Any, booking: dict[str, Any]) -> None:
    got: list[Any] = []
    plan = Environment(dates=style, names="camel", units={"weight_kg": Unit(name="weight_lb", factor=2.2046226218)})
    variation = Variation(plan, seed=1)
    shown = variation.wrap("read", lambda: booking)()
    variation.wrap("write", lambda booking: got.append(booking))(booking=shown)
    assert got[0].pop("weight_kg") == pytest.approx(booking["weight_kg"], rel=1e-10)
    assert got[0] == {"travel_date": booking["travel_date"], "n": booking["n"]}


def test_json_text_and_what_is_no_data() -> None:
    variation = Variation(Environment(rename={"a": "b"}), seed=1)
    assert json.loads(variation.wrap("text", lambda: '{"a": 1}')()) == {"b": 1}
    assert variation.wrap("broken", lambda: '{"a": ')() == '{"a": '
    assert asyncio.run(variation.wrap("other", _thing)()) is Ellipsis
    assert (variation.varied, variation.unchanged) == (1, 2)


async def _thing() -> Any:
    return ...


def test_the_same_seed_gives_the_same_order() -> None:
    def order(seed: int) -> list[str]:
        tool = Variation(Environment(key_order="shuffled"), seed).wrap("t", lambda: dict.fromkeys("abcdefgh", 1))
        return list(tool())

    assert order(1) == order(1) != order(2)


def test_it_is_noted() -> None:
    context = AttemptContext(suite="s", variant="v", task_id="t", repetition=0, seed=1, session_id="")
    with Environment(dates="us")(context):
        assert context.tool("t", lambda: ["2024-05-20", "2024-13-77"])() == ["05/20/2024", "2024-13-77"]
        context.tool("t", lambda: "no date")()
    assert context.notes["environment"] == {"varied": 1, "unchanged": 1}


@pytest.mark.parametrize(
    "settings", [{"rename": {"a": "x", "b": "x"}}, {"units": {"a": Unit(name="b", factor=0)}}, {"dates": "roman"}]
)
def test_what_cannot_be_mapped_back(settings: dict[str, Any]) -> None:
    with pytest.raises(PerturbError):
        Environment(**settings)
