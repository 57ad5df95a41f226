"""A Google ADK agent with a scripted model. The first argument is what is to happen."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import AsyncGenerator

from google.adk.agents import LlmAgent
from google.adk.agents.run_config import RunConfig, StreamingMode
from google.adk.models import BaseLlm, LlmRequest, LlmResponse
from google.adk.runners import InMemoryRunner
from google.adk.tools.agent_tool import AgentTool
from google.genai import types

SCENARIO = sys.argv[1]
reached = asyncio.Event()
USAGE = types.GenerateContentResponseUsageMetadata(
    prompt_token_count=11, candidates_token_count=7, total_token_count=18
)


async def wait_to_be_cancelled() -> None:
    reached.set()
    await asyncio.Event().wait()


class Scripted(BaseLlm):
    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        if SCENARIO == "model_error":
            raise ConnectionError("the model is not there")
        last = llm_request.contents[-1].parts[-1] if llm_request.contents else None
        if last is not None and last.function_response is not None:
            if SCENARIO == "cancelled":
                await wait_to_be_cancelled()
            parts = [types.Part(text="done")]
        else:
            parts = [
                types.Part(
                    function_call=types.FunctionCall(
                        name=name, args={"request" if name == "helper" else "city": "Paris"}
                    )
                )
                for name in llm_request.tools_dict
            ]
        if stream and parts[0].text:
            yield LlmResponse(content=types.Content(role="model", parts=[types.Part(text="do")]), partial=True)
        yield LlmResponse(content=types.Content(role="model", parts=parts), usage_metadata=USAGE)


def weather(city: str) -> str:
    """Tell the weather."""
    if SCENARIO == "tool_fatal":
        raise ValueError(city)
    return "sunny"


def distance(city: str) -> int:
    """Tell the distance."""
    return 7


def look(city: str) -> str:
    """Look."""
    return f"{city} is there"


helper = LlmAgent(name="helper", model=Scripted(model="scripted"), tools=[look])
tools = [AgentTool(helper)] if SCENARIO == "sub_agent" else [weather, distance]
boss = LlmAgent(name="boss", model=Scripted(model="scripted"), tools=tools)


async def ask() -> None:
    runner = InMemoryRunner(boss, app_name="desk")
    session = await runner.session_service.create_session(app_name="desk", user_id="u")
    mode = StreamingMode.SSE if SCENARIO == "streaming" else StreamingMode.NONE
    async for _ in runner.run_async(
        user_id="u",
        session_id=session.id,
        new_message=types.Content(role="user", parts=[types.Part(text="go")]),
        run_config=RunConfig(streaming_mode=mode),
    ):
        pass


async def main() -> None:
    if SCENARIO == "cancelled":
        running = asyncio.ensure_future(ask())
        await reached.wait()
        running.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await running
    elif SCENARIO in ("tool_fatal", "model_error"):
        with contextlib.suppress(ValueError, ConnectionError):
            await ask()
    else:
        await ask()


asyncio.run(main())
