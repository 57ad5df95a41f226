"""The benchmark of derivation runs and tells every stage; how fast they are is not for a test to say."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

BENCHMARK = Path(__file__).parents[3] / "benchmarks" / "understand.py"


def test_the_benchmark_reports_every_stage() -> None:
    command = [sys.executable, str(BENCHMARK), "--rounds", "2", "--traces", "20"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    stages = re.findall(r"^(\D+?) +\d+\.\d+ us a span, [\d,]+ spans/s", done.stdout, re.MULTILINE)
    assert stages[:2] == ["decode", "canonical columns"]
    assert stages[-2:] == ["a whole step, with commits", "settle"]
