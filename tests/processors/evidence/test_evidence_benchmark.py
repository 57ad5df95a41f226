"""The evidence benchmark runs; how fast that is, is not for a test to say."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

BENCHMARKS = Path(__file__).parents[3] / "benchmarks"


def test_every_stage_of_the_benchmark_runs() -> None:
    command = [sys.executable, str(BENCHMARKS / "evidence.py"), "--tasks", "200", "--rounds", "1"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=240)
    assert done.returncode == 0, done.stderr
    assert "1,000 runs, 200 tasks" in done.stdout
    for stage in ("group the runs", "estimators from runs", "intervals, every method", "profile with intervals"):
        assert f"| {stage}" in done.stdout
