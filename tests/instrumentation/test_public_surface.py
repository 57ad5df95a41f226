"""What others may import stays as it is, and costs little."""

from __future__ import annotations

import subprocess
import sys

import surefoot.instrumentation


def test_the_public_surface_is_this() -> None:
    assert sorted(surefoot.instrumentation.__all__) == [
        "AgentRun",
        "Evaluation",
        "ModelCall",
        "PATTERNS",
        "Pattern",
        "Redact",
        "Redaction",
        "RunThreadPool",
        "ToolCall",
        "Workflow",
        "agent_run",
        "evaluation",
        "flush",
        "init",
        "model_call",
        "propagate",
        "record_evaluation",
        "tool",
        "workflow",
    ]
    assert all(hasattr(surefoot.instrumentation, name) for name in surefoot.instrumentation.__all__)


def test_importing_loads_nothing_heavy() -> None:
    code = "import sys, surefoot.instrumentation; print('\\n'.join(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert {"asyncio", "opentelemetry.sdk", "opentelemetry.proto", "requests", "wrapt", "json"}.isdisjoint(loaded)


def test_without_a_provider_nothing_is_recorded_sent_or_said() -> None:
    code = """
import asyncio
from surefoot.instrumentation import *
with agent_run("desk", conversation_id="c") as run:
    run.set_confidence(10)
    run.checkpoint("half")
    with tool("t") as call, model_call("m", provider="openai") as model, workflow("w"):
        call.set_arguments({"a": 1})
        model.set_messages(input=[{"role": "user"}])
    assert not run.span.is_recording() and not run.span_context.is_valid
@tool("stream")
async def stream():
    yield 1
    yield 2
async def main():
    async for item in stream():
        break
asyncio.run(main())
record_evaluation("final_state", label="pass")
assert flush()
import sys
assert "opentelemetry.sdk" not in sys.modules
"""
    done = subprocess.run([sys.executable, "-X", "dev", "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
