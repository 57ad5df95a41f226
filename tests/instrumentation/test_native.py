"""pydantic-ai emits by itself once switched on: an unchanged program, a scripted model, no network."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Status

from support.collecting import Collector, plain

Run = Callable[..., "subprocess.CompletedProcess[str]"]
THROUGH = (sys.executable, "-c", "from surefoot.cli.main import main; main()", "run")

AGENT = """
from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ThinkingPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

def script(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    last = messages[-1].parts[-1]
    if isinstance(last, ToolReturnPart):
        return ModelResponse(parts=[ThinkingPart("a hidden thought"), TextPart(f"It is {last.content}.")])
    return ModelResponse(parts=[ToolCallPart("weather", {"city": str(last.content)})])

agent = Agent(FunctionModel(script, model_name="scripted"), name="forecaster")

@agent.tool_plain
def weather(city: str) -> str:
    if city == "Nowhere":
        raise ConnectionError("the service is down")
    return "sunny"

print(agent.run_sync("Paris").output)
try:
    agent.run_sync("Nowhere")
except ConnectionError as error:
    print(error)
"""


def told(span: Any) -> dict[str, Any]:
    return {pair.key: plain(pair.value) for pair in span.attributes}


@pytest.mark.parametrize("capture", ["NO_CONTENT", "SPAN_AND_EVENT"])
def test_a_pydantic_ai_agent_is_recorded_unchanged(run: Run, collector: Collector, capture: str) -> None:
    done = run(AGENT, through=THROUGH, OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=capture)
    assert (done.returncode, done.stdout) == (0, "It is sunny.\nthe service is down\n"), done.stderr
    assert collector.span_names() == [
        *["chat scripted"] * 3,
        *["execute_tool weather"] * 2,
        *["invoke_agent forecaster"] * 2,
    ]
    roots = {span.span_id for span in collector.spans if span.name == "invoke_agent forecaster"}
    started = collector.events("surefoot.run.started")
    assert {event.span_id for event in started} == roots
    assert len(started) == 2
    assert {plain(p.value) for event in started for p in event.attributes if p.key == "gen_ai.agent.name"} == {
        "forecaster"
    }
    failed = [span for span in collector.spans if span.status.code == Status.STATUS_CODE_ERROR]
    assert sorted(span.name for span in failed) == ["execute_tool weather", "invoke_agent forecaster"]
    raised = [told(event)["exception.type"] for span in failed for event in span.events if event.name == "exception"]
    assert raised == ["ConnectionError"] * 2
    everything = str([*collector.spans, *collector.logs])
    assert "a hidden thought" not in everything
    assert ("sunny" in everything) == (capture == "SPAN_AND_EVENT")
    assert ("Paris" in everything) == (capture == "SPAN_AND_EVENT")


def test_a_library_that_the_program_does_not_use_is_not_loaded(run: Run) -> None:
    done = run("import sys; print('pydantic_ai' in sys.modules)", through=THROUGH)
    assert (done.stdout, done.stderr) == ("False\n", "")


def test_a_library_that_cannot_be_switched_on_is_said_and_the_program_runs(run: Run, collector: Collector) -> None:
    done = run(
        """
        import sys, types
        sys.modules["pydantic_ai"] = types.ModuleType("pydantic_ai")  # a version that changed everything
        from surefoot.instrumentation import init
        init()
        print("runs")
        """
    )
    assert (done.returncode, done.stdout) == (0, "runs\n")
    assert "pydantic-ai-slim is not recorded: switching it on failed: AttributeError" in done.stderr


def test_an_agent_inside_an_agent_run_is_its_sub_run(run: Run, collector: Collector) -> None:
    wrapped = AGENT.replace(
        'print(agent.run_sync("Paris").output)',
        "from surefoot.instrumentation import agent_run\n"
        "with agent_run('desk', task_class='weather'):\n    print(agent.run_sync('Paris').output)",
    )
    done = run(wrapped, through=THROUGH)
    assert done.returncode == 0, done.stderr
    (desk,) = (span for span in collector.spans if span.name == "invoke_agent desk")
    inner = [s for s in collector.spans if s.name == "invoke_agent forecaster" and s.trace_id == desk.trace_id]
    assert [span.parent_span_id for span in inner] == [desk.span_id]


def test_a_run_is_announced_also_where_its_attributes_come_after_its_start(run: Run, collector: Collector) -> None:
    """Google ADK names its span by the conventions and sets the attributes later."""
    done = run(
        """
        from opentelemetry import trace
        from surefoot.instrumentation import init
        init()
        for name in ("invoke_agent late", "invoke_agent", "invoke_workflow late"):
            with trace.get_tracer("gcp.vertex.agent").start_as_current_span(name):
                pass
        """
    )
    assert done.returncode == 0, done.stderr
    (started,) = collector.events("surefoot.run.started")
    assert {pair.key: plain(pair.value) for pair in started.attributes} == {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "late",
    }
