"""An openai-agents agent with a scripted model. The first argument is what is to happen."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import sys
from collections.abc import AsyncIterator
from typing import Any

from agents import Agent, Model, ModelResponse, Runner, Usage, function_tool
from openai.types.responses import (
    Response,
    ResponseCompletedEvent,
    ResponseFunctionToolCall,
    ResponseOutputMessage,
    ResponseOutputText,
)

SCENARIO = sys.argv[1]
reached = asyncio.Event()
numbers = itertools.count()


async def wait_to_be_cancelled() -> None:
    reached.set()
    await asyncio.Event().wait()


def output(tools: list[Any], seen: Any) -> list[Any]:
    answered = not isinstance(seen, str) and any(
        isinstance(item, dict) and item.get("type") == "function_call_output" for item in seen
    )
    if answered or not tools:
        text = ResponseOutputText(text="done", type="output_text", annotations=[])
        return [
            ResponseOutputMessage(id="m", role="assistant", status="completed", type="message", content=[text]),
        ]
    return [
        ResponseFunctionToolCall(
            call_id=f"call-{next(numbers)}",
            name=tool.name,
            type="function_call",
            arguments='{"input": "Paris"}' if tool.name == "ask_helper" else '{"city": "Paris"}',
        )
        for tool in tools
    ]


class Scripted(Model):
    async def get_response(
        self, system_instructions: Any, input: Any, model_settings: Any, tools: Any, *rest: Any, **more: Any
    ) -> ModelResponse:
        if SCENARIO == "model_error":
            raise ConnectionError("the model is not there")
        found = output(tools, input)
        if SCENARIO == "cancelled" and found[0].type == "message":
            await wait_to_be_cancelled()
        return ModelResponse(output=found, usage=Usage(requests=1, input_tokens=11, output_tokens=7), response_id=None)

    async def stream_response(
        self, system_instructions: Any, input: Any, model_settings: Any, tools: Any, *rest: Any, **more: Any
    ) -> AsyncIterator[Any]:
        response = Response(
            id="r",
            created_at=0,
            model="scripted",
            object="response",
            output=output(tools, input),
            parallel_tool_calls=False,
            tool_choice="auto",
            tools=[],
        )
        yield ResponseCompletedEvent(response=response, sequence_number=0, type="response.completed")


@function_tool
def weather(city: str) -> str:
    if SCENARIO == "tool_error":
        raise ValueError(city)
    return "sunny"


@function_tool(failure_error_function=None, name_override="weather")
def fragile(city: str) -> str:
    raise ValueError(city)


@function_tool
def distance(city: str) -> int:
    return 7


@function_tool
def look(city: str) -> str:
    return f"{city} is there"


helper = Agent(name="helper", model=Scripted(), tools=[look])
if SCENARIO == "sub_agent":
    tools: list[Any] = [helper.as_tool("ask_helper", "asks")]
elif SCENARIO == "tool_fatal":
    tools = [fragile]
else:
    tools = [weather, distance]
boss = Agent(name="boss", model=Scripted(), tools=tools)


async def main() -> None:
    if SCENARIO == "streaming":
        async for _ in Runner.run_streamed(boss, "go").stream_events():
            pass
    elif SCENARIO == "cancelled":
        running = asyncio.ensure_future(Runner.run(boss, "go"))
        await reached.wait()
        running.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await running
    elif SCENARIO in ("tool_fatal", "model_error"):
        with contextlib.suppress(Exception):
            await Runner.run(boss, "go")
    else:
        await Runner.run(boss, "go")


asyncio.run(main())
