"""The cost benchmark runs and its figures are figures; how large they are is not for a test to say."""

from __future__ import annotations

import math
import re
import subprocess
import sys
from pathlib import Path

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "sdk_cost.py"


def test_the_benchmark_reports_ratios_with_their_spread_and_number() -> None:
    done = subprocess.run(
        [sys.executable, str(BENCHMARK), "--rounds", "3", "--spans", "50"], capture_output=True, text=True, check=True
    )
    number = r"(\d+\.\d+)"
    pattern = rf"^(.+): {number} times bare OpenTelemetry \(quartiles {number} to {number}, n = 3 rounds; .*\)$"
    lines = re.findall(pattern, done.stdout, re.MULTILINE)
    assert [line[0] for line in lines] == ["import", "span, nothing set up", "span, recorded"]
    figures = [float(figure) for line in lines for figure in line[1:]]
    assert all(math.isfinite(figure) and figure > 0 for figure in figures)
