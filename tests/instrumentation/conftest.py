"""Captures in memory, a collector, and programs run as processes."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from support.collecting import Collector, collecting
from surefoot.instrumentation.testing import Capture, capture


@pytest.fixture
def collector() -> Iterator[Collector]:
    with collecting() as running:
        yield running


@pytest.fixture
def captured() -> Iterator[Capture]:
    with capture() as inside:
        yield inside


Environment = Callable[..., dict[str, str]]


@pytest.fixture
def environment(collector: Collector) -> Environment:
    """The environment of a program that sends to the collector; keyword arguments are added."""

    def make(**more: str) -> dict[str, str]:
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("OTEL_", "SUREFOOT_", "PYTHONPATH"))}
        return {**kept, "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url, **more}

    return make


Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def run(environment: Environment, tmp_path: Path) -> Run:
    """Run a program text; ``through`` are words of the command before ``python``."""

    def go(text: str, *, through: tuple[str, ...] = (), **more: str) -> subprocess.CompletedProcess[str]:
        program = tmp_path / "program.py"
        program.write_text(textwrap.dedent(text))
        return subprocess.run(
            [*through, sys.executable, str(program)],
            capture_output=True,
            text=True,
            env=environment(**more),
            timeout=60,
            check=False,
        )

    return go
