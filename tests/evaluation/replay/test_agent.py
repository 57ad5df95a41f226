"""A real agent of a framework: recorded once beside a model that varies, then the same ten times with nothing there."""

from __future__ import annotations

import asyncio
import json
import socket
from pathlib import Path
from typing import Any

import httpx
import httpx2
import pytest
from openai import OpenAI
from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessagesTypeAdapter
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from support.scripted_model import scripted_model
from surefoot.evaluation import replay

KEY = "sk-live-0123456789abcdefghij"
# What the framework adds to a message that comes neither from the model nor from a tool.
VARIES = {"timestamp", "run_id", "conversation_id", "provider_url"}


async def transcript(url: str, world: replay.World, *, stream: bool = False) -> tuple[Any, int]:
    """Run the agent; returns its whole transcript, and how often the tools themselves were called."""
    called = 0

    async def look_up(order: int) -> str:
        nonlocal called
        called += 1
        await asyncio.sleep(0.01 if order == 42 else 0)
        return f"{order}: paid {called}"

    def note(text: str) -> dict[str, Any]:
        nonlocal called
        called += 1
        return {"noted": text, "id": called}

    async with httpx2.AsyncClient(transport=replay.async_transport(library="httpx2")) as client:
        provider = OpenAIProvider(base_url=url, api_key=KEY, http_client=client)
        agent = Agent(
            OpenAIChatModel("scripted", provider=provider),
            tools=list(world.tools({"look_up": look_up, "note": note}).values()),
        )
        if stream:
            async with agent.run_stream("Where are my orders?") as result:
                pieces = [piece async for piece in result.stream_text(delta=True, debounce_by=None)]
                assert len(pieces) > 3
        else:
            result = await agent.run("Where are my orders?")  # type: ignore[assignment]  # has the messages, too
            pieces = [str(result.output)]  # type: ignore[attr-defined]  # of a run that is not streamed
        messages = json.loads(ModelMessagesTypeAdapter.dump_json(result.all_messages()))
    return [pieces, without(messages)], called


def without(data: Any) -> Any:
    if isinstance(data, dict):
        return {key: without(value) for key, value in data.items() if key not in VARIES}
    return [without(item) for item in data] if isinstance(data, list) else data


@pytest.mark.parametrize("stream", [False, True])
async def test_ten_replays_without_a_network_are_identical(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stream: bool
) -> None:
    path = tmp_path / "desk.jsonl"
    with scripted_model() as model:
        with replay.opened(path, "record") as world:
            first, called = await transcript(model.url, world, stream=stream)
        with replay.opened(tmp_path / "other.jsonl", "record") as world:
            second, _ = await transcript(model.url, world, stream=stream)
    assert called == 3
    assert first != second, "the model does not vary: a replay could not be told from another run"

    def refuse(*_: Any) -> None:
        raise AssertionError("a replay opened a connection")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    for _ in range(10):
        with replay.opened(path) as world:
            again, called = await transcript(model.url, world, stream=stream)
        assert again == first
        assert called == 0
        report = world.report()
        assert (report.calls, report.unused, report.misses) == (5, (), ())
    assert KEY not in path.read_text()
    assert "Bearer" not in path.read_text()


def test_the_clients_of_openai(tmp_path: Path) -> None:
    def ask(url: str, library: str) -> list[Any]:
        module: Any = httpx if library == "httpx" else httpx2
        options = {"library": library, "match_host": False, "volatile": ["user", "metadata.*"]}
        with module.Client(transport=replay.transport(**options)) as client:
            openai = OpenAI(base_url=url, api_key=KEY, http_client=client, max_retries=2)
            asked: dict[str, Any] = {"model": "scripted", "messages": [{"role": "user", "content": "Hi"}]}
            several = openai.chat.completions.create(**asked, n=3, user=str(id(client)), metadata={"at": str(id(url))})
            streamed = openai.chat.completions.create(**asked, stream=True)
            seeded = [openai.chat.completions.create(**asked, seed=7) for _ in range(2)]
            return [several.to_dict(), [chunk.to_dict() for chunk in streamed], *(one.to_dict() for one in seeded)]

    path = tmp_path / "openai.jsonl"
    with scripted_model() as model:
        model.failures.append((500, '{"error": {"message": "overloaded"}}'))
        with replay.opened(path, "record"):
            first = ask(model.url, "httpx2")
        assert len(model.requests) == 5, "the client tries again after an error"
    assert len(first[0]["choices"]) == 3
    assert first[2]["choices"] == first[3]["choices"]
    # Another port, another library: neither is part of the key here. The error is met, and the retry, again.
    for library in ("httpx", "httpx2"):
        with replay.opened(path) as world:
            assert ask("http://127.0.0.1:9/v1", library) == first
        assert world.report().unused == ()
