"""The SLO benchmark runs, and what it counts together is what it counts alone; how fast, is not for a test to say."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

BENCHMARKS = Path(__file__).parents[3] / "benchmarks"


def test_every_part_of_the_benchmark_runs(tmp_path: Path) -> None:
    command = [sys.executable, str(BENCHMARKS / "slo.py"), "--million", "0.003", "--slos", "4", "--plain", "4"]
    command += ["--rounds", "1", "--folder", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=900)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout.splitlines()[-1])
    assert (told["runs"], told["slos"]) == (3000, 4)
    for days in (4, 7, 28):
        assert {f"first_{days}", f"after a new minute_{days}", f"after nothing_{days}"} <= told.keys()
    assert not list(tmp_path.iterdir())
