"""Tools in a world: what is one call, who is asked, what comes back, what is missed."""

from __future__ import annotations

import asyncio
import dataclasses
import re
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from surefoot.evaluation import InfrastructureError, replay
from surefoot.evaluation.replay.cassette import read_cassette


@dataclasses.dataclass
class Order:
    number: int
    lines: list[str]


class StockError(Exception):
    pass


class Shop:
    """A world that changes: every look at an order is counted."""

    def __init__(self) -> None:
        self.looks = 0
        self.refunds: list[int] = []

    def look_up(self, order: int, *extra: str, unit: str = "kg", **more: Any) -> dict[str, Any]:
        self.looks += 1
        return {"order": order, "look": self.looks}

    @replay.declare(effect="write")
    def refund(self, order: int) -> Order:
        self.refunds.append(order)
        if order < 0:
            raise StockError("there is no such order")
        return Order(order, ["pen"])

    async def slow(self, order: int) -> int:
        await asyncio.sleep(0.02 - order / 1000)
        self.looks += 1
        return self.looks


def record(path: Path, work: Callable[[replay.World], Any]) -> Any:
    with replay.opened(path, "record") as world:
        return work(world)


def play(path: Path, work: Callable[[replay.World], Any]) -> Any:
    with replay.opened(path) as world:
        return work(world)


def test_one_call_however_it_is_written(tmp_path: Path) -> None:
    shop, path = Shop(), tmp_path / "a.jsonl"

    def work(world: replay.World) -> list[Any]:
        look_up = world.tool("look_up", shop.look_up)
        return [look_up(1), look_up(order=1), look_up(1, unit="kg"), look_up(1.0), look_up(2), look_up(1, x=[1], y=2)]

    first = record(path, work)
    assert [one["look"] for one in first] == [1, 2, 3, 4, 5, 6]
    entries = read_cassette(path).entries
    assert [entry.occurrence for entry in entries] == [0, 1, 2, 3, 0, 0]
    assert entries[0].arguments == {"order": 1, "unit": "kg"}
    assert entries[5].arguments == {"order": 1, "unit": "kg", "x": [1], "y": 2}
    assert all(re.fullmatch("[0-9a-f]{64}", entry.key) for entry in entries)
    assert play(path, work) == first
    assert shop.looks == 6, "a replay called the tool"


def test_each_attempt_meets_the_same_world_from_the_start(tmp_path: Path) -> None:
    shop, path = Shop(), tmp_path / "a.jsonl"
    first = record(path, lambda world: [world.tool("t", shop.look_up)(1) for _ in range(3)])

    # Two worlds of one cassette at the same time, call by call in turns; and what one does to a result is its own.
    with replay.opened(path) as one, replay.opened(path) as two:
        tools = [world.tool("t", shop.look_up) for world in (one, two)]
        met = [[tool(1) for tool in tools] for _ in range(3)]
        met[0][0]["order"] = "spoiled"
    assert [pair[1] for pair in met] == first


def test_order_matters_within_one_key_only(tmp_path: Path) -> None:
    shop, path = Shop(), tmp_path / "a.jsonl"

    def asked(orders: list[int]) -> Callable[[replay.World], list[Any]]:
        return lambda world: [(order, world.tool("t", shop.look_up)(order)["look"]) for order in orders]

    assert record(path, asked([1, 2, 1, 3])) == [(1, 1), (2, 2), (1, 3), (3, 4)]
    assert play(path, asked([3, 1, 1, 2])) == [(3, 4), (1, 1), (1, 3), (2, 2)]


def test_exceptions_come_back_as_what_they_were(tmp_path: Path) -> None:
    shop, path = Shop(), tmp_path / "a.jsonl"

    def work(world: replay.World) -> Any:
        refund = world.tool("refund", shop.refund)
        with pytest.raises(StockError, match="there is no such order"):
            refund(-1)
        return refund(1)

    assert record(path, work) == Order(1, ["pen"])
    assert play(path, work) == Order(1, ["pen"])
    assert shop.refunds == [-1, 1], "a replay wrote into the world"
    assert [entry.effect for entry in read_cassette(path).entries] == ["write", "write"]


def test_a_miss_names_the_call_the_nearest_one_and_the_remedy(tmp_path: Path) -> None:
    shop, path = Shop(), tmp_path / "a.jsonl"
    record(path, lambda world: [world.tool("look_up", shop.look_up)(order, note="x") for order in (1, 20)])
    with pytest.raises(InfrastructureError) as caught:
        play(path, lambda world: world.tool("look_up", shop.look_up)(20, note="y"))
    text = str(caught.value)
    nearest = next(entry for entry in read_cassette(path).entries if entry.arguments["order"] == 20)
    assert "no call look_up with these arguments" in text
    assert f"key {nearest.key}" in text
    assert '- arguments.note = "x"  (recorded)' in text
    assert '+ arguments.note = "y"  (now)' in text
    assert "arguments.order" not in text
    assert "Nothing was called" in text
    assert "mode 'record'" in text
    with pytest.raises(replay.CassetteMissError, match=r"was recorded once; this is call 2"):
        play(path, lambda world: [world.tool("look_up", shop.look_up)(20, note="x") for _ in range(2)])
    with pytest.raises(replay.CassetteMissError, match=r"Recorded were calls of: look_up"):
        play(path, lambda world: world.tool("lookup", shop.look_up)(20))
    assert shop.looks == 2


def test_no_tool_is_called_in_replay_whatever_its_effect(tmp_path: Path) -> None:
    path, called = tmp_path / "a.jsonl", []
    record(path, lambda world: None)
    with replay.opened(path) as world:
        for effect in ("read", "write", "irreversible", "unknown"):
            tool = world.tool("t", lambda: called.append(1), effect=effect)
            with pytest.raises(replay.CassetteMissError):
                tool()
        world._misses.clear()
    assert called == []


def test_recording_what_cannot_be_undone_needs_leave(tmp_path: Path) -> None:
    called: list[int] = []
    path = tmp_path / "a.jsonl"

    @replay.declare(effect="irreversible")
    def pay(amount: int) -> None:
        called.append(amount)

    with pytest.raises(replay.IrreversibleError, match="allow_irreversible"):
        record(path, lambda world: world.tool("pay", pay)(3))
    assert called == []
    with replay.opened(path, "record", allow_irreversible=True) as world:
        world.tool("pay", pay)(3)
    play(path, lambda world: world.tool("pay", pay)(3))
    assert called == [3]


def test_a_miss_that_the_agent_swallowed_is_told_at_the_end(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    record(path, lambda world: world.tool("t", len)([1]))

    def work(world: replay.World) -> str:
        try:
            return str(world.tool("t", len)([2]))
        except Exception:
            return "sorry"

    with pytest.raises(replay.CassetteMissError, match="the agent went on without"):
        play(path, work)


def test_what_was_recorded_and_not_used_is_told(tmp_path: Path) -> None:
    shop, path = Shop(), tmp_path / "a.jsonl"
    record(path, lambda world: [world.tool("t", shop.look_up)(order) for order in (1, 2, 2)])
    with replay.opened(path) as world:
        world.tool("t", shop.look_up)(2)
    report = world.report()
    assert (report.calls, report.misses, len(report.unused)) == (1, (), 2)
    assert all(name.startswith("t ") for name in report.unused)
    assert report.content_hash == read_cassette(path).content_hash


def test_tasks_and_threads_at_once(tmp_path: Path) -> None:
    shop, path, many = Shop(), tmp_path / "a.jsonl", 200

    async def at_once(world: replay.World) -> list[int]:
        slow = world.tool("slow", shop.slow)
        return list(await asyncio.gather(*(slow(number % 20) for number in range(many))))

    first = record(path, lambda world: asyncio.run(at_once(world)))
    assert sorted(first) == list(range(1, many + 1))
    assert first != sorted(first), "the calls did not overlap"
    for _ in range(3):
        assert play(path, lambda world: asyncio.run(at_once(world))) == first

    lock = threading.Lock()

    def counted(number: int) -> int:
        with lock:
            shop.looks += 1
            return shop.looks

    def in_threads(world: replay.World) -> list[int]:
        tool = world.tool("counted", counted)
        with ThreadPoolExecutor(16) as pool:
            return list(pool.map(lambda number: tool(number % 5), range(many)))

    path = tmp_path / "b.jsonl"
    first = record(path, in_threads)
    entries = read_cassette(path).entries
    assert len({(entry.key, entry.occurrence) for entry in entries}) == len(entries) == many
    again = play(path, in_threads)
    assert sorted(again) == sorted(first)


async def test_a_call_that_was_cancelled_waits_to_be_cancelled_again(tmp_path: Path) -> None:
    async def forever() -> None:
        await asyncio.Event().wait()

    async def work(world: replay.World) -> str:
        try:
            await asyncio.wait_for(world.tool("forever", forever)(), 0.05)
        except TimeoutError:
            return "gave up"
        return "it came back"

    with replay.opened(tmp_path / "a.jsonl", "record") as world:
        assert await work(world) == "gave up"
    with replay.opened(tmp_path / "a.jsonl") as world:
        assert await work(world) == "gave up"


def test_parameters_that_are_no_part_of_the_call(tmp_path: Path) -> None:
    def tool(context: object, order: int) -> int:
        return order

    path = tmp_path / "a.jsonl"
    with replay.opened(path, "record") as world:
        with pytest.raises(replay.CassetteError, match=r"arguments\.context .* object.*ignore=\('context',\)"):
            world.tool("t", tool)(object(), 1)
        world._problems.clear()
        world.tool("t", tool, ignore=("context",))(object(), 1)
    assert play(path, lambda world: world.tool("t", tool, ignore=("context",))(object(), 1)) == 1


def test_a_result_that_cannot_come_back_fails_the_recording_even_if_the_agent_does_not_care(tmp_path: Path) -> None:
    def work(world: replay.World) -> None:
        try:
            world.tool("t", lambda: object())()
        except replay.CassetteError:
            return

    with pytest.raises(replay.CassetteError, match="t: the result is of the type object"):
        record(tmp_path / "a.jsonl", work)
    with pytest.raises(replay.CassetteError, match="generator"):
        record(tmp_path / "b.jsonl", lambda world: world.tool("t", lambda: (yield 1)))


def test_off_is_the_tool_itself(tmp_path: Path) -> None:
    with replay.opened(tmp_path / "none.jsonl", "off") as world:
        assert world.tool("len", len) is len
    assert list(tmp_path.iterdir()) == []
