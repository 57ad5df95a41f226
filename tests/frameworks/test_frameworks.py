"""Agents of real frameworks with scripted models, in environments of their own, under ``surefoot run``, to a server.

Every framework does the same things; what it did is known, so what is expected is written once, and what a framework's
instrumentation does not tell stands beside it.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from support.environments import environment
from support.serving import Server, eventually, serving

PROGRAMS = Path(__file__).parent / "programs"
INPUT, OUTPUT = 11, 7  # tokens of each scripted model call


@dataclass(frozen=True)
class Framework:
    """Where it comes from, and what its instrumentation does not tell."""

    requirements: tuple[str, ...]
    helper_tool: str = "ask_helper"
    tells_model_calls: bool = True
    tells_tokens: bool = True
    tells_cancellation: bool = True
    scenarios: tuple[str, ...] = ("ok", "tool_fatal", "model_error", "streaming", "cancelled", "sub_agent")
    exact_tokens: bool = True


@dataclass(frozen=True)
class Expected:
    """What the program did: runs as (agent, outcome, parent agent), tools as (name, outcome)."""

    runs: list[tuple[str, str, str | None]]
    tools: list[tuple[str, str]]
    model_calls: int
    model_errors: int = 0


FRAMEWORKS = {
    "pydantic_ai": Framework(
        ("pydantic-ai-slim>=2.60,<3",),
        scenarios=("ok", "tool_retried", "tool_fatal", "model_error", "streaming", "cancelled", "sub_agent"),
        exact_tokens=False,  # its scripted model estimates them
    ),
    "openai_agents": Framework(
        ("openai-agents==0.24.0", "opentelemetry-instrumentation-genai-openai-agents==1.3b0"),
        scenarios=("ok", "tool_error", "tool_fatal", "model_error", "streaming", "cancelled", "sub_agent"),
        tells_model_calls=False,
        tells_tokens=False,
        tells_cancellation=False,  # its spans end as if all were well
    ),
    "langgraph": Framework(
        ("langgraph>=1.2,<2", "langchain>=1.5,<2", "opentelemetry-instrumentation-genai-langchain==1.3b0")
    ),
    "google_adk": Framework(
        ("google-adk>=2.13,<3",),
        helper_tool="helper",
        tells_cancellation=False,  # its spans end as if all were well
    ),
}


def expected(framework: Framework, scenario: str) -> Expected:
    both = [("distance", "ok"), ("weather", "ok")]
    match scenario:
        case "ok" | "streaming":
            return Expected([("boss", "ok", None)], both, 2)
        case "tool_error":  # the framework tells the model, which goes on
            return Expected([("boss", "ok", None)], [("distance", "ok"), ("weather", "error")], 2)
        case "tool_retried":
            return Expected([("boss", "ok", None)], [("distance", "ok"), ("weather", "retry")], 2)
        case "tool_fatal":
            return Expected([("boss", "error", None)], [("weather", "error")], 1)
        case "model_error":
            return Expected([("boss", "error", None)], [], 1, model_errors=1)
        case "cancelled":
            outcome = "cancelled" if framework.tells_cancellation else "ok"
            return Expected([("boss", outcome, None)], both, 2)
        case "sub_agent":
            tools = sorted([(framework.helper_tool, "ok"), ("look", "ok")])
            return Expected([("boss", "ok", None), ("helper", "ok", "boss")], tools, 4)
    raise AssertionError(scenario)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(tmp_path_factory.mktemp("frameworks") / "home") as running:
        yield running


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("name", "scenario"),
    [
        pytest.param(name, scenario, marks=pytest.mark.xdist_group(f"framework-{name}"))
        for name, framework in FRAMEWORKS.items()
        for scenario in framework.scenarios
    ],
)
def test_what_the_program_did_is_what_is_seen(name: str, scenario: str, server: Server) -> None:
    framework = FRAMEWORKS[name]
    programs = environment(name, *framework.requirements)
    service = f"{name}-{scenario}"
    done = subprocess.run(
        [programs / "surefoot", "run", programs / "python", PROGRAMS / f"on_{name}.py", scenario],
        env={
            **server.environment,
            "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
            "OTEL_EXPORTER_OTLP_ENDPOINT": server.http,
            "OTEL_SERVICE_NAME": service,
        },
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    wanted = expected(framework, scenario)

    def runs() -> Any:
        found = server.rows(f"SELECT * FROM runs WHERE service_name = '{service}'")
        return found if len(found) == len(wanted.runs) and all(row["outcome"] != "running" for row in found) else None

    rows = eventually("the runs", runs, 60)
    names = {row["run_id"]: row["agent_name"] for row in rows}
    ids = ", ".join(f"'{run_id}'" for run_id in names)
    assert sorted((r["agent_name"], r["outcome"], names.get(r["parent_run_id"])) for r in rows) == wanted.runs
    tools = server.rows(f"SELECT tool_name, outcome FROM tool_calls WHERE run_id IN ({ids})")
    found = sorted((row["tool_name"], row["outcome"]) for row in tools)
    if scenario == "tool_fatal":  # the other tool ran, was stopped, or never began
        found = [call for call in found if call[0] != "distance"]
    if name == "openai_agents" and scenario == "tool_fatal":
        found = [("weather" if tool == "fragile" else tool, outcome) for tool, outcome in found]
    assert found == wanted.tools
    calls = server.rows(f"SELECT outcome, input_tokens, output_tokens FROM model_calls WHERE run_id IN ({ids})")
    if framework.tells_model_calls:
        assert len(calls) == wanted.model_calls
        assert sum(call["outcome"] == "error" for call in calls) == wanted.model_errors
    if framework.tells_tokens and framework.exact_tokens and scenario not in ("model_error", "cancelled"):
        assert sum(row["input_tokens"] for row in rows) == INPUT * wanted.model_calls
        assert sum(row["output_tokens"] for row in rows) == OUTPUT * wanted.model_calls
    if scenario in ("tool_error", "tool_retried"):
        assert [row["recovered"] for row in rows] == [True]
    started = server.rows(
        f"SELECT count(*) AS n FROM logs WHERE service_name = '{service}' AND event_name = 'surefoot.run.started'"
    )
    assert started == [{"n": len(wanted.runs)}]
