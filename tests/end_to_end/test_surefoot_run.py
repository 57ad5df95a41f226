"""(b) A pydantic-ai agent with a scripted model under ``surefoot run``: unchanged code, the right runs and calls."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from support.serving import SUREFOOT, Server, eventually

AGENT = """
from pydantic_ai import Agent, ModelRetry
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

def script(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    last = messages[-1].parts[-1]
    refused = "no such city" in str(last.content)
    if isinstance(last, ToolReturnPart) and not refused:
        return ModelResponse(parts=[TextPart(f"It is {last.content}.")])
    city = "Paris" if refused else str(last.content)
    return ModelResponse(parts=[ToolCallPart("weather", {"city": city})])

agent = Agent(FunctionModel(script, model_name="scripted"), name="forecaster")

@agent.tool_plain
def weather(city: str) -> str:
    if city == "Atlantis":
        raise ModelRetry("no such city")
    if city == "Nowhere":
        raise ConnectionError("weather service is down")
    return "sunny"

print(agent.run_sync("Paris").output)
print(agent.run_sync("Atlantis").output)
try:
    agent.run_sync("Nowhere")
except ConnectionError as error:
    print("failed:", error)
"""


def test_a_pydantic_ai_agent_arrives_as_the_right_runs_and_calls(server: Server, tmp_path: Path) -> None:
    program = tmp_path / "agent.py"
    program.write_text(AGENT)
    done = subprocess.run(
        [*SUREFOOT, "run", sys.executable, str(program)],
        env={**server.environment, "OTEL_EXPORTER_OTLP_ENDPOINT": server.http, "OTEL_SERVICE_NAME": "weather"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["It is sunny.", "It is sunny.", "failed: weather service is down"]
    runs = "SELECT * FROM runs WHERE service_name = 'weather' AND outcome <> 'running' ORDER BY started_at"
    rows = eventually("three runs", lambda: (found := server.rows(runs)) and len(found) == 3 and found)
    assert [r["outcome"] for r in rows] == ["ok", "ok", "error"]
    assert [r["agent_name"] for r in rows] == ["forecaster"] * 3
    assert [r["tool_calls"] for r in rows] == [1, 2, 1]
    assert [r["model_calls"] for r in rows] == [2, 3, 1]
    assert [r["recovered"] for r in rows] == [False, True, False]
    assert rows[2]["error_type"] == "ConnectionError"
    assert all(r["input_tokens"] > 0 and r["output_tokens"] > 0 for r in rows)
    calls = server.rows("SELECT run_id, tool_name, outcome FROM tool_calls ORDER BY started_at")
    assert [(c["tool_name"], c["outcome"]) for c in calls] == [
        ("weather", "ok"),
        ("weather", "retry"),
        ("weather", "ok"),
        ("weather", "error"),
    ]
    assert [c["run_id"] for c in calls] == [rows[i]["run_id"] for i in (0, 1, 1, 2)]
    # Content was not asked for, so none is kept.
    assert server.rows("SELECT * FROM contents") == []
    kept = server.rows("SELECT count(*) AS n FROM spans WHERE CAST(attributes AS VARCHAR) LIKE '%sunny%'")
    assert kept == [{"n": 0}]
