"""Agents of real frameworks with scripted models, in environments of their own, under ``surefoot run``, to a server.

Every framework does the same things; what it did is known, so what is expected is written once, and what a framework's
instrumentation does not tell stands beside it.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
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
        exact_tokens=False,
    ),
    "langgraph": Framework(
        ("langgraph>=1.2,<2", "langchain>=1.5,<2", "opentelemetry-instrumentation-genai-langchain==1.3b0")
    ),
    "google_adk": Framework(
        ("google-adk>=2.13,<3",),
        helper_tool="helper",
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
            return Expected([("boss", "cancelled", None)], both, 2)
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
    look = partial(seen, server, service, framework, scenario)
    with contextlib.suppress(pytest.fail.Exception):  # the comparison below says what differs
        eventually("all of it", lambda: look() == wanted, 30)
    assert look() == wanted
    totals = server.rows(
        f"SELECT sum(input_tokens) AS input, sum(output_tokens) AS output FROM runs WHERE service_name = '{service}'"
    )
    if framework.exact_tokens and scenario not in ("model_error", "cancelled"):
        assert totals == [{"input": INPUT * wanted.model_calls, "output": OUTPUT * wanted.model_calls}]
    if scenario in ("tool_error", "tool_retried"):
        assert server.rows(f"SELECT recovered FROM runs WHERE service_name = '{service}'") == [{"recovered": True}]
    started = server.rows(
        f"SELECT count(*) AS n FROM logs WHERE service_name = '{service}' AND event_name = 'surefoot.run.started'"
    )
    assert started == [{"n": len(wanted.runs)}]


def seen(server: Server, service: str, framework: Framework, scenario: str) -> Expected:
    runs = server.rows(f"SELECT * FROM runs WHERE service_name = '{service}'")
    names = {row["run_id"]: row["agent_name"] for row in runs}
    ids = ", ".join(f"'{run_id}'" for run_id in names) or "''"
    tools = server.rows(f"SELECT tool_name, outcome FROM tool_calls WHERE run_id IN ({ids})")
    calls = server.rows(f"SELECT outcome FROM model_calls WHERE run_id IN ({ids})")
    if not framework.tells_model_calls:
        assert calls == []
        told = expected(framework, scenario)
        return Expected(_runs(runs, names), _tools(tools, scenario), told.model_calls, told.model_errors)
    errors = sum(call["outcome"] == "error" for call in calls)
    return Expected(_runs(runs, names), _tools(tools, scenario), len(calls), errors)


def _runs(rows: list[dict[str, Any]], names: dict[str, str]) -> list[tuple[str, str, str | None]]:
    return sorted((row["agent_name"], row["outcome"], names.get(row["parent_run_id"])) for row in rows)


def _tools(rows: list[dict[str, Any]], scenario: str) -> list[tuple[str, str]]:
    """Beside a tool that fails for good the other one ran, was stopped, or never began."""
    found = sorted((row["tool_name"], row["outcome"]) for row in rows)
    return [call for call in found if scenario != "tool_fatal" or call[0] != "distance"]
