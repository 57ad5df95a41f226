"""The benchmark of repeating runs, every side to its last attempt; how fast, is not for a test to say."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "repeat.py"
SIDES = {"inline", "thread", "process", "process, all children", "inspect-ai", "inspect-ai, log_realtime=False"}


def test_every_side_of_the_benchmark_makes_every_attempt(tmp_path: Path) -> None:
    command = [sys.executable, str(BENCHMARK), "--rounds", "1", "--tasks", "2", "--concurrency", "3"]
    done = subprocess.run(
        [*command, "--folder", str(tmp_path)], capture_output=True, text=True, check=False, timeout=240
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout.splitlines()[-1])
    assert {(run["side"], run["concurrency"]) for run in told["runs"]} == {(side, n) for side in SIDES for n in (1, 3)}
    for run in told["runs"]:
        assert (run["attempts"], run["steady_attempts"]) == (20, 20 - run["concurrency"])
        assert 0 < run["steady_s"] <= run["whole_s"]
    for concurrency in ("1", "3"):
        figures = [value for found in told["told"][concurrency].values() for value in found.values()]
        assert all(math.isfinite(figure) and figure >= 0 for figure in figures)
    assert not list(tmp_path.iterdir())
