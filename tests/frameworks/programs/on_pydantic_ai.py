"""A pydantic-ai agent with a scripted model. The first argument is what is to happen."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator

from pydantic_ai import Agent, ModelRetry, RunContext
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, DeltaToolCalls, FunctionModel

SCENARIO = sys.argv[1]
reached = asyncio.Event()


async def wait_to_be_cancelled() -> None:
    reached.set()
    await asyncio.Event().wait()


async def script(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    if SCENARIO == "model_error":
        raise ConnectionError("the model is not there")
    last = messages[-1].parts[-1]
    if isinstance(last, ToolReturnPart):
        if SCENARIO == "cancelled":
            await wait_to_be_cancelled()
        return ModelResponse(parts=[TextPart("done")])
    return ModelResponse(parts=[ToolCallPart(tool.name, {"city": "Paris"}) for tool in info.function_tools])


async def stream(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str | DeltaToolCalls]:
    if isinstance(messages[-1].parts[-1], ToolReturnPart):
        yield "do"
        yield "ne"
    else:
        for number, tool in enumerate(info.function_tools):
            yield {number: DeltaToolCall(name=tool.name, json_args='{"city": "Paris"}')}


model = FunctionModel(script, stream_function=stream, model_name="scripted")
boss = Agent(model, name="boss", retries=2)
helper = Agent(model, name="helper")
calls = 0


@helper.tool_plain
def look(city: str) -> str:
    return f"{city} is there"


if SCENARIO == "sub_agent":

    @boss.tool
    async def ask_helper(context: RunContext[None], city: str) -> str:
        return (await helper.run(city)).output

else:

    @boss.tool_plain
    def weather(city: str) -> str:
        global calls
        calls += 1
        if SCENARIO == "tool_retried" and calls == 1:
            raise ModelRetry("say it differently")
        if SCENARIO == "tool_fatal":
            raise ValueError(city)
        return "sunny"

    @boss.tool_plain
    def distance(city: str) -> int:
        return 7


async def main() -> None:
    if SCENARIO == "streaming":
        async with boss.run_stream("go") as result:
            async for _ in result.stream_text():
                pass
    elif SCENARIO == "cancelled":
        running = asyncio.ensure_future(boss.run("go"))
        await reached.wait()
        running.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await running
    elif SCENARIO in ("tool_fatal", "model_error"):
        with contextlib.suppress(ValueError, ConnectionError):
            await boss.run("go")
    else:
        await boss.run("go")


asyncio.run(main())
