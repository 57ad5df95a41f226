"""A LangGraph agent with a scripted model. The first argument is what is to happen."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from typing import Any

from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool

SCENARIO = sys.argv[1]
reached = asyncio.Event()


async def wait_to_be_cancelled() -> None:
    reached.set()
    await asyncio.Event().wait()


class Scripted(BaseChatModel):
    names: list[str] = []
    model_name: str = "scripted"

    @property
    def _llm_type(self) -> str:
        return "scripted"

    @property
    def _identifying_params(self) -> dict[str, Any]:
        return {"model_name": self.model_name}  # without a name the instrumentation leaves the call out

    def bind_tools(self, tools: Any, **options: Any) -> Scripted:
        return Scripted(names=[tool.name for tool in tools])

    def _answer(self, messages: list[BaseMessage]) -> ChatResult:
        if SCENARIO == "model_error":
            raise ConnectionError("the model is not there")
        usage = {"input_tokens": 11, "output_tokens": 7, "total_tokens": 18}
        if isinstance(messages[-1], ToolMessage):
            message = AIMessage("done", usage_metadata=usage)
        else:
            calls = [{"name": name, "args": {"city": "Paris"}, "id": f"call-{name}"} for name in self.names]
            message = AIMessage("", tool_calls=calls, usage_metadata=usage)
        return ChatResult(generations=[ChatGeneration(message=message)])

    def _generate(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **more: Any
    ) -> ChatResult:
        return self._answer(messages)

    async def _agenerate(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **more: Any
    ) -> ChatResult:
        if SCENARIO == "cancelled" and isinstance(messages[-1], ToolMessage):
            await wait_to_be_cancelled()
        return self._answer(messages)


@tool
def weather(city: str) -> str:
    """Tell the weather."""
    if SCENARIO == "tool_fatal":
        raise ValueError(city)
    return "sunny"


@tool
def distance(city: str) -> int:
    """Tell the distance."""
    return 7


@tool
def look(city: str) -> str:
    """Look."""
    return f"{city} is there"


helper = create_agent(Scripted(), [look], name="helper")


@tool
async def ask_helper(city: str) -> str:
    """Ask the helper."""
    answer = await helper.ainvoke({"messages": [("user", city)]})
    return str(answer["messages"][-1].content)


boss = create_agent(Scripted(), [ask_helper] if SCENARIO == "sub_agent" else [weather, distance], name="boss")
question = {"messages": [("user", "go")]}


async def main() -> None:
    if SCENARIO == "streaming":
        async for _ in boss.astream(question):
            pass
    elif SCENARIO == "cancelled":
        running = asyncio.ensure_future(boss.ainvoke(question))
        await reached.wait()
        running.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await running
    elif SCENARIO in ("tool_fatal", "model_error"):
        with contextlib.suppress(ValueError, ConnectionError):
            await boss.ainvoke(question)
    else:
        await boss.ainvoke(question)


asyncio.run(main())
