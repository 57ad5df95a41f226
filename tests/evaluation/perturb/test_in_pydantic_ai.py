"""A real agent framework: what its model gets to read of each kind of fault, and of other names."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from pydantic_ai import Agent, ModelRetry
from pydantic_ai.messages import ModelMessage, ModelResponse, RetryPromptPart, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.models.instrumented import InstrumentationSettings
from scipy import stats

from surefoot.evaluation.agent import AttemptContext
from surefoot.evaluation.perturb import KINDS, Environment, Faults
from surefoot.evaluation.perturb.faults import RAISING
from surefoot.instrumentation import semconv
from surefoot.instrumentation.testing import capture

ANSWER = {"flight": "HAT136", "seats": 4}
CALLS = 5


async def lookup(flight: str) -> dict[str, Any]:
    """Look a flight up."""
    return {**ANSWER, "flight": flight}


class Model:
    """A scripted model that calls the tool several times, whatever comes back, and notes what it reads."""

    def __init__(self, calls: int = CALLS, parameter: str = "flight") -> None:
        self.read: list[Any] = []
        self.schema: dict[str, Any] = {}
        self._calls, self._parameter = calls, parameter

    async def __call__(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        self.schema = info.function_tools[0].parameters_json_schema
        last = messages[-1].parts[-1]
        if isinstance(last, ToolReturnPart | RetryPromptPart):
            self.read.append(last.content)
        if len(self.read) >= self._calls:
            return ModelResponse(parts=[TextPart("done")])
        return ModelResponse(parts=[ToolCallPart(info.function_tools[0].name, {self._parameter: "HAT136"})])


def context(repetition: int = 0) -> AttemptContext:
    return AttemptContext(
        suite="s", variant="v", task_id="t", repetition=repetition, seed=repetition, session_id="", input="go"
    )


async def run(model: Model, ctx: AttemptContext) -> None:
    """An agent as people write them: what a tool raises is told to the model."""
    tool = ctx.tool("lookup", lookup)

    async def look(flight: str) -> Any:
        try:
            return await tool(flight)
        except (OSError, RuntimeError, Exception) as error:
            raise ModelRetry(str(error)) from error

    agent = Agent(FunctionModel(model), tools=[look], retries=100)
    await agent.run(ctx.input)


@pytest.mark.parametrize("kind", KINDS)
def test_the_model_reads_every_kind_that_is_raised_or_spoiled(kind: str) -> None:
    model, ctx = Model(calls=1), context()
    with Faults(p=1, weights={kind: 1.0})(ctx):
        asyncio.run(run(model, ctx))
    (read,) = model.read
    assert read != ANSWER
    assert ctx.notes["faults"][0]["injections"][0]["delivered"]
    words = {"timeout": "timed out", "http_500": "500", "http_429": "retry after", "network_error": "reset by peer"}
    assert words.get(kind, "") in str(read)


@pytest.mark.parametrize("kind", KINDS)
def test_the_model_reads_every_kind_that_is_returned(kind: str) -> None:
    model, ctx = Model(calls=1), context()
    with Faults(p=1, weights={kind: 1.0}, deliver="return")(ctx):
        agent = Agent(FunctionModel(model), tools=[ctx.tool("lookup", lookup)])
        asyncio.run(agent.run("go"))
    assert model.read[0] != ANSWER
    if kind in RAISING:
        assert model.read[0]["error"]["type"] == kind


def test_an_agent_that_catches_nothing_fails_with_it() -> None:
    ctx = context()
    with Faults(p=1, weights={"network_error": 1.0})(ctx), pytest.raises(ConnectionError):
        asyncio.run(Agent(FunctionModel(Model()), tools=[ctx.tool("lookup", lookup)]).run("go"))


def test_the_dose_that_the_model_reads_is_the_one_asked_for() -> None:
    async def all_runs() -> tuple[int, int]:
        read = delivered = 0
        for repetition in range(30):
            model, ctx = Model(), context(repetition)
            with Faults(p=0.2)(ctx):
                await run(model, ctx)
            read += sum(one != ANSWER for one in model.read)
            delivered += sum(one["delivered"] for one in ctx.notes["faults"][0]["injections"])
        return read, delivered

    read, delivered = asyncio.run(all_runs())
    assert read == delivered
    low, high = stats.binom.interval(0.999, 30 * CALLS, 0.2)
    assert low <= delivered <= high


def test_its_tool_span_is_marked() -> None:
    ctx = context()
    with capture() as captured, Faults(p=1, weights={"empty": 1.0})(ctx):
        agent = Agent(FunctionModel(Model(calls=1)), tools=[ctx.tool("lookup", lookup)])
        agent.instrument = InstrumentationSettings()
        asyncio.run(agent.run("go"))
        kinds = [(span.attributes or {}).get(semconv.FAULT_INJECTED) for span in captured.spans()]
        tools = [span for span in captured.spans() if semconv.TOOL_NAME in (span.attributes or {})]
    assert [(span.attributes or {}).get(semconv.FAULT_INJECTED) for span in tools] == ["empty"]
    assert [kind for kind in kinds if kind] == ["empty"]


def test_the_model_calls_by_the_new_names() -> None:
    model, ctx = Model(calls=1, parameter="flightNumber"), context()
    with Environment(rename={"flight": "flightNumber"}, extra_fields={"etag": 1})(ctx):
        asyncio.run(Agent(FunctionModel(model), tools=[ctx.tool("lookup", lookup)]).run("go"))
    assert list(model.schema["properties"]) == ["flightNumber"]
    assert model.read == [{"flightNumber": "HAT136", "seats": 4, "etag": 1}]
