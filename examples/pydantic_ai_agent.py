"""A pydantic-ai agent that knows nothing of Surefoot.

Run it as: surefoot run python examples/pydantic_ai_agent.py
The model is scripted so that the example works offline; put your own in its place.
"""

from __future__ import annotations

from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel


def script(messages: list[ModelMessage], _info: AgentInfo) -> ModelResponse:
    last = messages[-1].parts[-1]
    if isinstance(last, ToolReturnPart):
        return ModelResponse(parts=[TextPart(f"It is {last.content} there.")])
    return ModelResponse(parts=[ToolCallPart("weather", {"city": "Galway"})])


agent = Agent(FunctionModel(script, model_name="scripted"), name="forecaster")


@agent.tool_plain
def weather(city: str) -> str:
    """What the sky looks like in a city."""
    return {"Galway": "raining"}.get(city, "sunny")


if __name__ == "__main__":
    print(agent.run_sync("What is the weather in Galway?").output)
