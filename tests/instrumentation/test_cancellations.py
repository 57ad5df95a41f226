"""A cancellation that ends a span of another instrumentation is told; nothing else is taken for one."""

from __future__ import annotations

import subprocess
from collections.abc import Callable

import pytest

from support.collecting import Collector, attributes

Run = Callable[..., "subprocess.CompletedProcess[str]"]
PROGRAM = """
import asyncio
from opentelemetry import trace
from surefoot.instrumentation import init
init()
tracer = trace.get_tracer("another")
def span(name, operation="invoke_agent"):
    return tracer.start_as_current_span(name, attributes={"gen_ai.operation.name": operation} if operation else {})

async def work(): %s

async def main():
    task = asyncio.ensure_future(work())
    await asyncio.sleep(0)
    task.cancel()
    try:
        await task
    except asyncio.CancelledError:
        pass
asyncio.run(main())
"""
CASES: dict[str, dict[str, str | None]] = {
    "with span('run'): await asyncio.sleep(60)": {"run": "CancelledError"},
    "with span('plain', None): await asyncio.sleep(60)": {"plain": None},
    "with span('quick'): pass": {"quick": None},
    """
    try:
        with span('run'): await asyncio.sleep(60)
    except asyncio.CancelledError:
        with span('clean up', 'execute_tool'): pass
        raise
""": {"run": "CancelledError", "clean up": None},
    """
    try:
        raise ValueError
    except ValueError:
        with span('after a failure'): await asyncio.sleep(60)
""": {"after a failure": "CancelledError"},
    """
    async def stream():
        with span('stream'):
            yield 1
    async for _ in (opened := stream()): break
    await opened.aclose()
""": {"stream": None},
}


@pytest.mark.parametrize("body", CASES)
def test_what_is_told_as_cancelled(body: str, run: Run, collector: Collector) -> None:
    done = run(PROGRAM.replace("%s", body if body.startswith("\n") else f"\n    {body}"))
    assert done.returncode == 0, done.stderr
    told = {span.name: attributes(span) for span in collector.spans}
    assert {name: of.get("error.type") for name, of in told.items()} == CASES[body]
    cancelled = {name for name, of in told.items() if of.get("surefoot.cancelled")}
    assert cancelled == {name for name, error in CASES[body].items() if error}
